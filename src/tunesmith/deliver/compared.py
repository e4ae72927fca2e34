"""What the runs of a comparison say together: for each arm at each problem, and over all problems.

Means are of log speed-ups, so that twice as fast and half as fast cancel out. A run that failed counts as
1.00×, because its user is left with the original; one that is not finished does not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any

from tunesmith.deliver.comparing import ComparisonPlan, RunFacts, RunResult
from tunesmith.run.outcome import chance_apart, geometric_mean, mean_interval

FREEDOM = 3  # degrees of it: with fewer a standard deviation is itself a dice roll, and the range is told
ENOUGH = 5  # repeats of a problem from which on an interval is given


@dataclass(frozen=True)
class MeanCosts:
    """Of one run, in the mean. None: it is not known of every run."""

    runs: int
    evaluations: float
    of_budget: float
    requests: float
    repairs: float
    tokens: float | None
    tokens_by_length: float
    dollars: float | None
    device_seconds: float
    kernel_seconds: float | None
    seconds: float


@dataclass(frozen=True)
class ComparisonCell:
    """One arm at one problem, or over all."""

    problem: str  # its folder; empty: all that count
    arm: str
    counted: int  # runs
    planned: int
    successes: int
    mean: float | None  # geometric; over all problems of their means; None: no run counts
    least: float | None  # the worst run
    most: float | None
    deviation: float | None  # standard deviation of log speed-ups within problems, as a factor
    interval: tuple[float, float] | None  # of the mean, 95 %
    rounds: tuple[float, ...]  # the best so far after each, geometric mean
    refactoring: float | None  # geometric means over the runs that won
    search: float | None
    attributed: int  # such runs
    costs: MeanCosts | None


@dataclass(frozen=True)
class Pair:
    """Two arms at a problem. `ahead`: the one whose every run is faster than all of the other's."""

    problem: str
    first: str
    second: str
    ahead: str  # empty: their ranges overlap
    chance: float  # of such a separation, either way, were the arms alike


@dataclass(frozen=True)
class Contrast:
    """Two arms over all problems together."""

    first: str
    second: str
    ratio: float  # of their means: above 1, the first is faster
    runs: int
    chance: float  # of a difference this large, either way, were the arms alike at every problem


@dataclass(frozen=True)
class ComparisonResult:
    plan: ComparisonPlan
    runs: tuple[RunResult, ...]
    cells: tuple[ComparisonCell, ...]  # problem by problem, arms in their order
    overall: tuple[ComparisonCell, ...]
    common: tuple[str, ...]  # problems at which every arm has a run that counts: those of `overall`
    pairs: tuple[Pair, ...]
    contrasts: tuple[Contrast, ...] = ()  # at the problems of `common`

    @property
    def unfinished(self) -> tuple[RunResult, ...]:
        return tuple(r for r in self.runs if not r.counts)

    def of(self, arm: str, problem: str | None = None) -> list[RunResult]:
        """The runs that count."""
        return [
            r for r in self.runs if r.counts and r.planned.arm == arm and problem in (None, r.planned.problem)
        ]


def compare(plan: ComparisonPlan, runs: Sequence[RunResult]) -> ComparisonResult:
    problems = [p.folder for p in plan.problems]
    by_place = {
        (problem, arm): [r for r in runs if r.planned.problem == problem and r.planned.arm == arm]
        for problem in problems
        for arm in plan.arms
    }
    common = tuple(p for p in problems if all(any(r.counts for r in by_place[p, a]) for a in plan.arms))
    cells = [_cell(p, a, [by_place[p, a]]) for p in problems for a in plan.arms]
    overall = [_cell("", a, [by_place[p, a] for p in common]) for a in plan.arms]
    pairs = [
        pair
        for problem in problems
        for first, second in combinations(plan.arms, 2)
        if (pair := _pair(problem, by_place[problem, first], by_place[problem, second])) is not None
    ]
    contrasts = [
        _contrast(one, other, [(_logs(by_place[p, one]), _logs(by_place[p, other])) for p in common])
        for one, other in combinations(plan.arms, 2)
        if common
    ]
    return ComparisonResult(
        plan, tuple(runs), tuple(cells), tuple(overall), common, tuple(pairs), tuple(contrasts)
    )


def _cell(problem: str, arm: str, groups: Sequence[Sequence[RunResult]]) -> ComparisonCell:
    """`groups`: the runs of each problem."""
    planned = [run for group in groups for run in group]
    counted = [run for run in planned if run.counts]
    logs = [found for group in groups if (found := _logs(group))]
    every = [value for group in logs for value in group]
    facts = [run.facts for run in counted if run.facts is not None]
    won = [f for f in facts if f.refactoring is not None and f.search is not None]
    interval = mean_interval(logs) if logs and min(map(len, logs)) >= ENOUGH else None
    return ComparisonCell(
        problem=problem,
        arm=arm,
        counted=len(counted),
        planned=len(planned),
        successes=sum(run.success for run in counted),
        mean=_exp(_mean(_mean(group) for group in logs)) if logs else None,
        least=_exp(min(every)) if every else None,
        most=_exp(max(every)) if every else None,
        deviation=_deviation(logs),
        interval=(_exp(interval.low), _exp(interval.high)) if interval else None,
        rounds=_by_round([[r.facts.rounds if r.facts else () for r in g if r.counts] for g in groups]),
        refactoring=geometric_mean(f.refactoring or 1.0 for f in won) if won else None,
        search=geometric_mean(f.search or 1.0 for f in won) if won else None,
        attributed=len(won),
        costs=_costs(facts) if facts else None,
    )


def _logs(runs: Iterable[RunResult]) -> list[float]:
    return [math.log(run.speedup) for run in runs if run.counts and run.speedup is not None]


def _deviation(groups: Sequence[Sequence[float]]) -> float | None:
    """Pooled over the problems: how far two runs of the same thing are apart, whatever that thing is."""
    freedom = sum(len(group) - 1 for group in groups)
    if freedom < FREEDOM:
        return None
    squares = sum((value - _mean(group)) ** 2 for group in groups for value in group)
    return _exp(math.sqrt(squares / freedom))


def _by_round(groups: Sequence[Sequence[Sequence[float]]]) -> tuple[float, ...]:
    """A run that has ended keeps what it had; before its first round it has the original."""
    groups = [group for group in groups if group]
    most = max((len(rounds) for group in groups for rounds in group), default=0)

    def after(rounds: Sequence[float], number: int) -> float:
        return rounds[min(number, len(rounds)) - 1] if rounds else 1.0

    return tuple(
        geometric_mean(geometric_mean(after(rounds, number) for rounds in group) for group in groups)
        for number in range(1, most + 1)
    )


def _costs(facts: Sequence[RunFacts]) -> MeanCosts:
    names = (field.name for field in fields(MeanCosts) if field.name != "runs")
    means: dict[str, Any] = {name: _known([getattr(f, name) for f in facts]) for name in names}
    return MeanCosts(len(facts), **means)


def _pair(problem: str, first: Sequence[RunResult], second: Sequence[RunResult]) -> Pair | None:
    one, other = _logs(first), _logs(second)
    if not one or not other:
        return None
    names = first[0].planned.arm, second[0].planned.arm
    ahead = names[0] if min(one) > max(other) else names[1] if min(other) > max(one) else ""
    # Of all ways to deal the runs to two arms, two keep the fast ones together.
    chance = 2 / math.comb(len(one) + len(other), len(one))
    return Pair(problem, *names, ahead, min(1.0, chance))


def _contrast(first: str, second: str, groups: Sequence[tuple[list[float], list[float]]]) -> Contrast:
    ratio = _exp(_mean(_mean(one) - _mean(other) for one, other in groups))
    runs = sum(len(one) + len(other) for one, other in groups)
    return Contrast(first, second, ratio, runs, float(f"{chance_apart(groups):.6g}"))


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


def _known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _mean(known) if len(known) == len(values) else None


def _exp(log: float) -> float:
    """Six digits: more than a clock can tell, and the same on every machine."""
    return float(f"{math.exp(log):.6g}")
