"""Templates wrong in a part of the contract, or at values that nobody foresaw: each must be caught."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.lab.labs import device_of, lab
from tests.opencl_here import needs_opencl
from tunesmith.problem.cases import full_cases, smoke_cases
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import original_variant
from tunesmith.session import problems

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[2] / "examples" / "opencl"
WRONG = (Status.WRONG,)
pytestmark = needs_opencl


def judged(
    problem: Problem, text: str, scratch: Path, seed: int, allowed: Collection[Status] = WRONG
) -> tuple[str, ...]:
    """What a verification says of the template, which must be one of these."""
    with lab(
        problem,
        text,
        spec="opencl",
        scratch=scratch,
        device=device_of("opencl", scratch),
        baseline=False,
        verify_seed=seed,
    ) as harness:
        verified = harness.lab.verify(harness.trial(effort="long"))
    assert {result.status for result in verified.outcome.results} <= set(allowed)
    return tuple(result.detail for result in verified.outcome.results)


def example(name: str) -> Problem:
    return problems.load_problem(EXAMPLES / name / "problem.toml")[0]


def narrowed(problem: Problem) -> Problem:
    """The same where everything is small: sizes up to 1024, one workload."""
    sizes = tuple(replace(rule, max=min(rule.max, 1024)) for rule in problem.contract.sizes)
    small = replace(problem.workloads[0], sizes=tuple((name, 64) for name in problem.size_names))
    return replace(problem, contract=replace(problem.contract, sizes=sizes), workloads=(small,))


def predicted(problem: Problem, scratch: Path) -> str:
    """All sizes that an author who has read our source could foresee."""
    device, kernel = device_of("opencl", scratch), original_variant(problem)
    cases = (*smoke_cases(problem, kernel, device, 0), *full_cases(problem, kernel, device, 0))
    sizes = dict.fromkeys(tuple(value for _, value in case.sizes) for case in cases)
    return " || ".join(f"(rows == {rows} && d == {d})" for rows, d in sizes)


CHEATS = [
    ("rmsnorm", "rmsnorm_predicted_sizes", WRONG),
    ("rmsnorm", "rmsnorm_large", WRONG),
    ("rmsnorm", "rmsnorm_constant", WRONG),
    ("rmsnorm", "rmsnorm_zero_samples", WRONG),
    ("rmsnorm", "rmsnorm_hang", (Status.TIMED_OUT,)),
    ("silu_and_mul", "silu_nan", WRONG),
    ("silu_and_mul", "silu_clamped", WRONG),
    ("transpose", "transpose_flushed", WRONG),
]


def quick(cheat: str) -> bool:
    return cheat == "rmsnorm_constant"


@pytest.mark.parametrize(
    ("name", "cheat", "allowed"),
    [pytest.param(*one, marks=() if quick(one[1]) else pytest.mark.long) for one in CHEATS],
)
def test_what_is_wrong_somewhere_is_found(
    name: str, cheat: str, allowed: Collection[Status], tmp_path: Path
) -> None:
    problem = narrowed(example(name)) if quick(cheat) else example(name)
    text = (HERE / f"{cheat}.cl").read_text()
    if "PREDICTED" in text:
        text = text.replace("PREDICTED)", f"{predicted(problem, tmp_path)})")
    for seed in (1,) if quick(cheat) else (1, 2, 3):
        judged(problem, text, tmp_path, seed, allowed)
