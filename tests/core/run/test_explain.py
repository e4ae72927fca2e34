"""Effects of parameters: measured neighbours to the digit, a model only where it holds, else nothing."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thoroughness import examples
from tunesmith.run.explain import Explanation, ParamEffect, ValueEffect, explain_params
from tunesmith.run.ports import Tried
from tunesmith.run.rounds import Best, search_history
from tunesmith.space.configset import Config, Param
from tunesmith.space.space import Space

SPACE = Space((Param("BLOCK", (32, 64, 128, 256)), Param("VEC", (1, 2, 4, 8)), Param("PAD", (0, 1))))
BLOCK = {32: 1.3, 64: 1.0, 128: 1.1, 256: 2.0}  # the time each value costs
VEC = {1: 1.9, 2: 1.4, 4: 1.05, 8: 1.0}
PAD = {0: 1.0, 1: 1.001}
WINNER = Config.of({"BLOCK": 64, "VEC": 8, "PAD": 0})


def config(block: int, vec: int, pad: int) -> Config:
    return Config.of({"BLOCK": block, "VEC": vec, "PAD": pad})


def speedup(found: Config) -> float:
    """Log speed-up of a kernel whose choices do not meddle with each other."""
    return math.log(5.0 / (BLOCK[found["BLOCK"]] * VEC[found["VEC"]] * PAD[found["PAD"]]))


EVERYTHING = [(c, speedup(c)) for c in (config(*values) for values in product(BLOCK, VEC, PAD))]


def param(explanation: Explanation, name: str) -> ParamEffect:
    return next(p for p in explanation.params if p.name == name)


def value(explanation: Explanation, name: str, wanted: int) -> ValueEffect:
    return next(v for v in param(explanation, name).values if v.value == wanted)


def test_measured_neighbours_tell_the_truth() -> None:
    found = explain_params(SPACE, WINNER, EVERYTHING)
    assert [p.name for p in found.params] == ["BLOCK", "VEC", "PAD"]
    for name, costs in (("BLOCK", BLOCK), ("VEC", VEC), ("PAD", PAD)):
        for v in param(found, name).values:
            assert v.source == ("winner" if v.value == WINNER[name] else "measured")
            assert v.slower == pytest.approx(costs[v.value], rel=1e-5)
            assert v.interval is None
    vec = param(found, "VEC")
    assert (vec.value, vec.with_value, vec.source) == (8, 1, "measured")
    assert vec.effect == pytest.approx(1.9, rel=1e-5)
    assert found.is_clear(vec)
    assert not found.is_clear(param(found, "PAD"))  # one in a thousand is noise
    noisy = explain_params(SPACE, WINNER, EVERYTHING, noise=0.3)
    assert noisy.noticed == pytest.approx(math.exp(0.9), rel=1e-5)
    assert not noisy.is_clear(param(noisy, "VEC"))


def test_a_faster_neighbour_is_reported_as_such() -> None:
    found = explain_params(SPACE, config(128, 8, 0), EVERYTHING)
    assert value(found, "BLOCK", 64).slower == pytest.approx(1 / 1.1, rel=1e-5)


WIDE = Space((*(Param(f"P{i}", (1, 2, 4, 8)) for i in range(6)), Param("ONLY", (3,))))
COSTS = [[1.0, 1.0 + 0.1 * i, 1.0 + 0.2 * i, 1.0 + 0.5 * i] for i in range(6)]
FIRST = Config.of({f"P{i}": 1 for i in range(6)} | {"ONLY": 3})


def wide(found: Config) -> float:
    places = {1: 0, 2: 1, 4: 2, 8: 3}
    return -sum(math.log(COSTS[i][places[found[f"P{i}"]]]) for i in range(6))


def some(count: int, seed: int = 1) -> list[tuple[Config, float | None]]:
    """The winner, and others that differ from it in two parameters or more."""
    draw = random.Random(seed)
    found = {FIRST: None}
    while len(found) < count:
        drawn = Config.of({f"P{i}": draw.choice((1, 1, 2, 4, 8)) for i in range(6)} | {"ONLY": 3})
        if sum(a != b for a, b in zip(drawn.items, FIRST.items, strict=True)) != 1:
            found[drawn] = None
    return [(c, wide(c)) for c in found]


def test_where_nobody_looked_a_model_tells_and_says_so() -> None:
    found = explain_params(WIDE, FIRST, some(120))
    assert found.modelled == 96
    assert found.explained is not None
    assert found.explained > 0.8
    assert found.params[0].name == "P5"  # the one that costs most
    assert "ONLY" not in [p.name for p in found.params]  # nothing to choose
    last = param(found, "P5")
    assert (last.source, last.with_value) == ("model", 8)
    inside = 0
    for i in range(6):
        for place, v in enumerate(param(found, f"P{i}").values[1:], 1):
            assert v.source == "model"
            assert v.interval[0] <= v.slower <= v.interval[1]
            inside += v.interval[0] <= COSTS[i][place] <= v.interval[1]
    assert inside >= 16  # of 18


@pytest.mark.parametrize(
    "rows", [some(20), [(c, random.Random(n).gauss(0, 1)) for n, (c, _) in enumerate(some(120))]]
)
def test_from_little_or_noise_no_model_is_made(rows: list[tuple[Config, float | None]]) -> None:
    found = explain_params(WIDE, FIRST, rows)
    assert (found.modelled, found.explained) == (0, None)
    assert "model" not in {v.source for p in found.params for v in p.others}


def test_a_value_never_measured_is_unknown_to_the_model_too() -> None:
    rows = [(c, None if c["P3"] == 8 else s) for c, s in some(150)]
    found = explain_params(WIDE, FIRST, rows)
    assert found.modelled
    assert value(found, "P3", 8).source == "unknown"
    assert value(found, "P3", 4).source == "model"


def test_a_model_does_not_speak_of_what_may_not_be() -> None:
    found = explain_params(WIDE, FIRST, some(120), excluded=lambda c: "rule" if c["P4"] == 8 else "")
    assert value(found, "P4", 8).source == "excluded"


def test_a_winner_nobody_measured_explains_nothing() -> None:
    found = explain_params(SPACE, WINNER, [row for row in EVERYTHING if row[0] != WINNER])
    assert {v.source for p in found.params for v in p.others} == {"unknown"}


@st.composite
def anything(draw: st.DrawFn) -> tuple[Space, Config, list[tuple[Config, float | None]]]:
    params = tuple(
        Param(f"P{i}", tuple(range(draw(st.integers(1, 4)))), draw(st.booleans()))
        for i in range(draw(st.integers(0, 5)))
    )
    configs = st.builds(
        lambda *values: Config(tuple(zip([p.name for p in params], values, strict=True))),
        *(st.sampled_from(p.values) for p in params),
    )
    scores = st.none() | st.floats() | st.floats(-3, 3)
    return Space(params), draw(configs), draw(st.lists(st.tuples(configs, scores), max_size=60))


@given(anything())
@examples(150)
def test_whatever_was_tried_there_is_an_explanation(case: tuple) -> None:
    space, winner, rows = case
    found = explain_params(space, winner, rows)
    assert {p.name for p in found.params} == {p.name for p in space.params if len(p.values) > 1}
    for p in found.params:
        assert (p.effect is None) == (p.source == "unknown")
        for v in p.values:
            assert (v.slower is not None) == (v.source in ("winner", "measured", "model"))
            numbers = [n for n in (v.slower, v.best, *(v.interval or ())) if n is not None]
            assert all(math.isfinite(n) and n > 0 for n in numbers)


def tried(score: float | None, *at: float | None) -> Tried:
    return Tried(WINNER, score, at)


def test_the_best_so_far_over_all_and_at_each_workload() -> None:
    double, half = math.log(2), -math.log(2)
    found = search_history(
        [
            tried(half, half, half),
            tried(None, None, None),
            tried(double, None, double),
            tried(0.0, double, 0.0),
        ],
        ["small", "wide"],
    )
    assert found.speedups == (0.5, None, 2.0, 1.0)
    assert found.failed == 1
    assert found.best == (
        Best("", ((1, 0.5), (3, 2.0))),
        Best("small", ((1, 0.5), (4, 2.0))),
        Best("wide", ((1, 0.5), (3, 2.0))),
    )


@given(st.lists(st.builds(tried, st.none() | st.floats(), st.none() | st.floats()), max_size=30))
def test_the_best_only_rises(rows: list[Tried]) -> None:
    found = search_history(rows, ["one", "two"])
    assert len(found.speedups) == len(rows)
    for best in found.best:
        numbers = [n for n, _ in best.steps]
        values = [v for _, v in best.steps]
        assert numbers == sorted(set(numbers))
        assert values == sorted(values)
