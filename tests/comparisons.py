"""Comparisons made up for tests: plans, and runs with the speed-ups that a test wants."""

from __future__ import annotations

from typing import Any

from tunesmith.plugins.studies.plan import (
    Allowance,
    ComparisonPlan,
    OriginalTime,
    Planned,
    PlannedProblem,
    RunFacts,
    RunResult,
    WorkloadGain,
    schedule_runs,
)

BUDGET = Allowance(evals=40, seconds=None, rounds=3)
FACTS = RunFacts(
    speedup=2.0,
    success=True,
    early=False,
    reason="the budget of 3 rounds is used up",
    judged_by="right by the float64 reference",
    originals=(OriginalTime("only", "n=64", 2e-5),),
    workloads=(WorkloadGain("only", 2.0, 1.9, 2.1, False),),
    rounds=(1.5, 2.0),
    refactoring=1.25,
    search=1.6,
    evaluations=30,
    of_budget=20,
    requests=0,
    unanswered=0,
    repairs=0,
    tokens=0,
    tokens_by_length=0,
    dollars=0.0,
    device_seconds=3.0,
    searched_seconds=2.0,
    kernel_seconds=1.0,
    seconds=4.0,
    device="a device",
    driver="7",
    compiler="",
    backend="cuda",
    versions=(("tunesmith", "0"),),
)


def plan(arms: str = "template,expert", problems: str = "p", repeats: int = 2, **more: Any) -> ComparisonPlan:
    known = tuple(PlannedProblem(name, name, f"digest of {name}", ()) for name in problems.split(","))
    return ComparisonPlan(known, tuple(arms.split(",")), repeats, 0, BUDGET, **more)


def facts(speedup: float | None = 2.0, **more: Any) -> RunFacts:
    known: dict[str, Any] = {name: getattr(FACTS, name) for name in FACTS.__dataclass_fields__}
    won = speedup is not None and speedup > 1
    if not won:
        known |= {"refactoring": None, "search": None}
    return RunFacts(**{**known, "speedup": speedup, "success": won, **more})


def ran(
    planned: ComparisonPlan, speedups: dict[tuple[str, str], list[RunFacts | float | str]]
) -> tuple[RunResult, ...]:
    """For each problem and arm its repeats: a speed-up, facts, or a status."""
    found: list[RunResult] = []
    for item in schedule_runs(planned):
        given = speedups[item.problem, item.arm][item.repeat - 1]
        found.append(_result(item, given))
    return tuple(found)


def _result(item: Planned, given: RunFacts | float | str) -> RunResult:
    if isinstance(given, str):
        return RunResult(item, given, f"{given} for a reason")  # type: ignore[arg-type]
    return RunResult(item, "finished", facts=given if isinstance(given, RunFacts) else facts(given))
