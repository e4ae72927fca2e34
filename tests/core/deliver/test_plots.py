"""The report's pictures are well-formed, harmless and the same every time, whatever they show."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thoroughness import examples
from tunesmith.deliver.pages.plots import (
    Linear,
    Log,
    best_so_far_svg,
    effects_svg,
    fit_label,
    format_coordinate,
    format_ratio,
    spread_out,
    width_of,
)
from tunesmith.run.explain import Explanation, ParamEffect, ValueEffect
from tunesmith.run.rounds import Best, History

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('x')</script>&\"\n\x00\x1b[31m"


def a_history(count: int, workloads: tuple[str, ...] = ("decode", "prefill")) -> History:
    speedups = tuple(None if n % 7 == 3 else 0.3 + 4 * n / count for n in range(count))
    good = [(n, s) for n, s in enumerate(speedups, 1) if s is not None]
    return History(speedups, tuple(Best(name, tuple(good)) for name in ("", *workloads)))


def a_param(name: str = "VEC", factor: float = 1.9) -> ParamEffect:
    values = (
        ValueEffect(8, "winner", 1.0),
        ValueEffect(1, "measured", factor, best=1.2, tried=3),
        ValueEffect(2, "model", 1.4, interval=(1.2, 1.6), best=1.3),
        ValueEffect(4, "excluded", None, why="whole", best=1.1),
        ValueEffect(16, "failed", None, why="over_limits"),
        ValueEffect(32, "unknown", None),
    )
    return ParamEffect(name, 8, factor, 1, "measured", values)


def an_explanation(*params: ParamEffect, workload: str = "") -> Explanation:
    return Explanation(workload, {p.name: p.value for p in params}, params, 96, 0.8)


def parsed(data: bytes) -> ElementTree.Element:
    root = ElementTree.fromstring(data)
    assert root.tag == f"{SVG}svg"
    allowed = {"svg", "title", "desc", "rect", "line", "circle", "polyline", "polygon", "text"}
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= allowed
    placed = [value for e in root.iter() for value in e.attrib.values()]  # a name may well be "inf"
    assert not any(re.search(r"nan|inf\b|e[+-]\d+$", value) for value in placed)
    return root


def texts(root: ElementTree.Element) -> list[str]:
    return [e.text or "" for e in root.iter(f"{SVG}text")]


def on_paper(root: ElementTree.Element) -> bool:
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    places = [(float(c.get("cx", 0)), float(c.get("cy", 0))) for c in root.iter(f"{SVG}circle")]
    for text in root.iter(f"{SVG}text"):
        x, y, size = (float(text.get(name, 0)) for name in ("x", "y", "font-size"))
        if not text.get("transform"):
            wide = width_of(text.text or "", size)
            start = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.get("text-anchor", "start")] * wide
            places += [(start, y), (start + wide, y)]
    for line in root.iter(f"{SVG}polyline"):
        places += [tuple(map(float, p.split(","))) for p in line.get("points", "").split()]  # type: ignore[misc]
    return all(0 <= x <= width and 0 <= y <= height for x, y in places)


@pytest.mark.parametrize("count", [0, 1, 2, 10, 10_000])
@pytest.mark.parametrize("workloads", [(), ("one",), tuple(f"workload_{i}" * 9 for i in range(30))])
def test_searches_of_every_length(count: int, workloads: tuple[str, ...]) -> None:
    data = best_so_far_svg(a_history(count, workloads) if count else History(), "x")
    root = parsed(data)
    assert on_paper(root)
    assert len(data) < 600_000
    assert data == best_so_far_svg(a_history(count, workloads) if count else History(), "x")


@given(st.lists(st.none() | st.floats(1e-20, 1e20), max_size=40))
@examples()
def test_any_speedups_can_be_drawn(speedups: list[float | None]) -> None:
    best, steps = 0.0, []
    for n, s in enumerate(speedups, 1):
        if s is not None and s > best:
            best = s
            steps.append((n, s))
    assert on_paper(parsed(best_so_far_svg(History(tuple(speedups), (Best("", tuple(steps)),)), "x")))


@pytest.mark.parametrize("count", [0, 1, 40, 100])
def test_effects_of_few_and_many_parameters(count: int) -> None:
    params = [a_param(f"A_RATHER_LONG_PARAMETER_NAME_{i}", 1.001**i) for i in range(count)]
    data = effects_svg(an_explanation(*params), "x")
    root = parsed(data)
    assert on_paper(root)
    assert float(root.get("height", 0)) < 2100
    assert ("60 more parameters in report.json" in texts(root)) == (count == 100)
    assert data == effects_svg(an_explanation(*params), "x")


@given(st.floats(1e-20, 1e20), st.floats(1e-20, 1e20))
@examples()
def test_any_effect_can_be_drawn(a: float, b: float) -> None:
    assert on_paper(parsed(effects_svg(an_explanation(a_param("A", a), a_param("B", b)), "x")))


@given(st.text() | st.just(HOSTILE))
@examples()
def test_no_name_acts_in_a_picture(name: str) -> None:
    for data in (
        best_so_far_svg(a_history(5, (name, "b")), name),
        effects_svg(an_explanation(a_param(name), workload=name), name),
    ):
        assert b"<script" not in data
        parsed(data)


# -- scales -------------------------------------------------------------------------------------------------


def test_a_linear_scale() -> None:
    scale = Linear(0, 50, 100, 0)
    assert (scale.at(0), scale.at(25), scale.at(50)) == (100, 50, 0)
    assert scale.ticks(5) == [0, 10, 20, 30, 40, 50]


def test_a_log_scale() -> None:
    scale = Log(0.1, 10, 0, 100)
    assert scale.at(1) == pytest.approx(50)
    assert scale.ticks(7) == [0.1, 0.2, 0.5, 1, 2, 5, 10]
    assert Log(0.95, 1.15, 0, 1).ticks(5) == pytest.approx([0.95, 1.0, 1.05, 1.1, 1.15])
    assert Log(1e-9, 1e9, 0, 1).ticks(6) == [1e-9, 1e-6, 1e-3, 1, 1e3, 1e6, 1e9]


@given(st.floats(1e-15, 1e15), st.floats(1.001, 1e15), st.integers(2, 12))
def test_ticks_lie_on_the_scale_and_are_few(low: float, factor: float, count: int) -> None:
    for scale in (Log(low, low * factor, 0, 1), Linear(low, low * factor, 0, 1)):
        ticks = scale.ticks(count)
        assert len(ticks) <= count + 2
        assert ticks == sorted(set(ticks))
        assert all(-1e-6 <= scale.at(tick) <= 1 + 1e-6 for tick in ticks)


def test_numbers_as_people_write_them() -> None:
    assert [format_ratio(v) for v in (0.0123, 0.95, 1.9, 9.999, 13.04, 250.4)] == [
        "0.012×",
        "0.95×",
        "1.90×",
        "10.0×",
        "13.0×",
        "250×",
    ]
    assert [format_coordinate(v) for v in (0.0, -0.0, 2.50, 1e-9, 123456.0)] == [
        "0",
        "0",
        "2.5",
        "0",
        "123456",
    ]


def test_what_is_too_long_is_cut() -> None:
    assert fit_label("short", 100, 10) == "short"
    assert fit_label("a" * 1000, 100, 10).endswith("…")
    assert width_of(fit_label("a" * 1000, 100, 10), 10) <= 100
    assert fit_label("漢" * 100, 50, 10) == "漢漢漢漢…"


@given(st.lists(st.floats(0, 100), max_size=12))
def test_labels_keep_their_distance(wanted: list[float]) -> None:
    found = spread_out(wanted, 5, 0, 100)
    assert all(-1e-9 <= place <= 100 + 1e-9 for place in found)
    gaps = [b - a for a, b in zip(sorted(found), sorted(found)[1:], strict=False)]
    assert all(gap >= 5 - 1e-9 for gap in gaps)
    assert all(math.isfinite(place) for place in found)
