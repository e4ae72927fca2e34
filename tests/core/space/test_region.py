"""Where a search looks first: the two sides of a focus share out a space, and nothing is in both."""

from __future__ import annotations

import pytest

from tests.suites.searcher_suite import FREE, SMALL, TIED
from tunesmith.run.ports import SearchView
from tunesmith.space import space as module
from tunesmith.space.configset import Config
from tunesmith.space.space import Condition, Focus, build_region, count_configs

PARAMS = SMALL.space.params


def condition(text: str, remedy: str = "unroll") -> Condition:
    return Condition(remedy, text, "latency", "12 bytes in flight", 0.3)


def focus_on(view: SearchView, *texts: str) -> Focus:
    return Focus(
        tuple(condition(text, f"r{i}") for i, text in enumerate(texts)),
        count_configs(view.configs, view.space.params, texts),
        len(view.configs),
    )


def test_the_sides_share_out_the_space() -> None:
    texts = ("A >= 1", "C == 0")
    inside, outside = (build_region(SMALL.configs, PARAMS, texts, side) for side in ("inside", "outside"))
    assert {*inside, *outside} == {*SMALL.configs}
    assert len(inside) + len(outside) == len(SMALL.configs)
    assert len(inside) == count_configs(SMALL.configs, PARAMS, texts) > 0
    focus = focus_on(SMALL, *texts)
    for config in SMALL.configs:
        assert focus.holds(config) == (config in inside) == (config not in outside)
        assert focus.holds(config) == (config["A"] >= 1 and config["C"] == 0)
    assert [inside[i] for i in range(len(inside))] == list(inside)


def test_what_is_not_feasible_is_on_no_side() -> None:
    alien = Config.of({"A": 3, "B": 2, "C": 0})  # A + B < 5 does not hold
    for side in ("inside", "outside"):
        assert alien not in build_region(SMALL.configs, PARAMS, ("A >= 1",), side)
        assert "A=3" not in build_region(SMALL.configs, PARAMS, ("A >= 1",), side)


def test_what_has_no_value_does_not_hold() -> None:
    assert count_configs(SMALL.configs, PARAMS, ("4 // A >= 1",)) == sum(c["A"] > 0 for c in SMALL.configs)


def test_of_a_huge_space_a_part_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX", 20_000)
    texts = ("P0 < 4",)
    part = build_region(FREE.configs, FREE.space.params, texts, "inside")
    assert 4000 < len(part) < 6000
    assert count_configs(FREE.configs, FREE.space.params, texts) == pytest.approx(
        len(FREE.configs) / 4, rel=0.1
    )
    assert all(part[i]["P0"] < 4 for i in range(0, len(part), 500))
    assert len(build_region(TIED.configs, TIED.space.params, ("P0 == 99",), "inside")) == 0


def test_in_words() -> None:
    assert str(focus_on(SMALL, "A >= 1")) == "A >= 1"
    assert str(focus_on(SMALL, "A >= 1 or B == 0")) == "A >= 1 or B == 0"
    assert str(focus_on(SMALL, "A >= 1 or B == 0", "C == 0")) == "(A >= 1 or B == 0) and C == 0"
    rest = focus_on(SMALL, "A >= 1", "C == 0").without(frozenset({"r0"}))
    assert [c.text for c in rest] == ["C == 0"]
