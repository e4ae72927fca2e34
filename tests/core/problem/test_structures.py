"""Rows of every structure are among the inputs of a verification, and what is promised of values holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.core.problem.row_predicates import PREDICATES
from tests.core.problem.test_cases import DEVICE, FLAT
from tests.core.problem.test_draws import buffer
from tests.hostile.cheats.corpus import problem as cheated
from tunesmith.problem import inputs
from tunesmith.problem.cases import verify_cases
from tunesmith.problem.domain import domain_of
from tunesmith.problem.inputs import (
    DISTRIBUTIONS,
    MIXED,
    SlotPlace,
    draw_array,
    draw_block,
    draw_rows,
    shaped_view,
    slot_items,
)
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.structures import CATALOGUE
from tunesmith.problem.template import original_variant

SMALL = 4 << 20  # the larger cases take long to look at, and show the same
BASES = ("rmsnorm", "softmax")
LONG = 64  # columns: shorter rows are constant or in order by chance


def met(problem: Problem, seed: int) -> set[str]:
    """The structures of which a verification has a row in its first array."""
    found: set[str] = set()
    for case in verify_cases(problem, original_variant(problem), DEVICE, seed, ()):
        plan = plan_launch(problem, original_variant(problem), dict(case.sizes), DEVICE, None)
        assert isinstance(plan, Plan)
        b = max((b for b in plan.buffers if b.role == "input"), key=lambda b: b.count)
        if b.nbytes <= SMALL and b.shape[-1] >= LONG:
            rows = shaped_view(draw_array(b, case.distribution, case.seed), b).astype(np.float64)
            with np.errstate(all="ignore"):
                found |= {name for name in PREDICATES.keys() - found if PREDICATES[name](rows).any()}
    return found


@pytest.mark.parametrize(
    ("base", "seeds"), [("rmsnorm", 2), *(pytest.param(one, 20, marks=pytest.mark.long) for one in BASES)]
)
@pytest.mark.parametrize("type", ["float32", pytest.param("float16", marks=pytest.mark.long)])
def test_a_verification_has_rows_of_every_structure(base: str, seeds: int, type: str) -> None:
    """As docs/lab.md says."""
    problem = cheated(base)
    arguments = tuple(replace(one, type=type) if one.type == "float32" else one for one in problem.arguments)
    problem = replace(problem, arguments=arguments)
    counts = Counter(name for seed in range(seeds) for name in met(problem, 1000 + seed))
    if type == "float16":  # none is so small in it
        counts["denormal"] = seeds
    assert all(counts[name] >= 0.9 * seeds for name in PREDICATES), counts


@pytest.mark.parametrize("type", ["float16", "float32", "int32", "int8"])
@pytest.mark.parametrize("range", [None, (1.0, 100.0)])
@pytest.mark.parametrize("values", [None, "positive", "integers", "uniform"])
def test_structures_keep_what_is_promised(type: str, range: tuple[float, float] | None, values: str) -> None:
    whole = replace(buffer(type, 6400), shape=(100, 64), strides=(64, 1), range=range, values=values)
    for distribution in (*DISTRIBUTIONS, MIXED, "halves"):
        drawn = draw_array(whole, distribution, 1).astype(np.float64)
        assert np.isfinite(drawn).all()
        if range is not None:
            assert range[0] <= drawn.min() <= drawn.max() <= range[1]
        if values == "positive" and type.startswith("float"):
            assert drawn.min() > 0


@pytest.mark.parametrize(("rows", "d"), [(5000, 60), (700, 129), (3, 1 << 14)])
def test_a_large_array_has_whole_rows_of_a_structure(
    rows: int, d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "BLOCK", 1 << 13)
    whole = replace(buffer("float32", rows * d), shape=(rows, d), strides=(d, 1))
    array = draw_array(whole, MIXED, 7).reshape(rows, d)
    some = sorted({0, rows // 3, rows // 2, rows - 1})
    np.testing.assert_array_equal(draw_rows(whole, MIXED, 7, some), array[some])
    block = draw_block(whole, MIXED, 7)
    if d < 1 << 10:  # as many repetitions begin elsewhere
        assert block.roll % d == 0 == block.values.size % d
        assert rows * d <= block.values.size * (block.values.size // d)
        constant = np.ptp(array, axis=1) == 0
        assert constant.mean() > 1 / (2 * len(CATALOGUE))


def test_timed_memory_has_runs_of_the_calm_structures_and_integers_none() -> None:
    timed = slot_items(buffer("float32", 1 << 20), "normal", 1, SlotPlace(0, 128))
    pairs = (timed[1:] == timed[:-1]).mean()
    assert 0.002 < pairs < 0.05
    whole = slot_items(buffer("int32", 1 << 20), "normal", 1, SlotPlace(0, 128))
    assert abs((whole[1:] == whole[:-1]).mean() - 1 / 101) < 0.002


def chance_to_meet(low: float, high: float, seeds: int) -> float:
    """That a verification has a size between these."""
    problem = FLAT
    rule = problem.contract.sizes[0]
    hits = 0
    for seed in range(seeds):
        cases = verify_cases(problem, original_variant(problem), DEVICE, seed, ())
        hits += any(low <= dict(case.sizes)[rule.name] <= high for case in cases)
    return hits / seeds


def test_a_band_of_sizes_is_met_as_often_as_the_docs_say() -> None:
    """A quarter of the sizes, on a scale of logarithms or as they are, and an eighth in most runs."""
    rule = FLAT.contract.sizes[0]
    top = domain_of(FLAT, original_variant(FLAT), DEVICE).byte_limit() / 8
    assert rule.max > 1e5
    logs = np.log(max(rule.min, 1)), np.log(min(rule.max, top))

    def band(first: float, share: float) -> tuple[float, float]:
        low = logs[0] + first * (logs[1] - logs[0])
        return float(np.exp(low)), float(np.exp(low + share * (logs[1] - logs[0])))

    assert chance_to_meet(*band(0.6, 1 / 4), 20) == 1.0
    assert chance_to_meet(*band(0.7, 1 / 8), 40) >= 0.8
