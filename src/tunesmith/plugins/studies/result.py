"""What the runs of a comparison say together: for each arm at each problem, and over all problems; and in
sentences that follow from it, what that does and does not show.

Means are of log speed-ups, so that twice as fast and half as fast cancel out. A run that failed counts as
1.00×, because its user is left with the original; one that is not finished does not count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import combinations

from tunesmith import backends
from tunesmith.base.text import format_count
from tunesmith.plugins.studies.plan import ARMS, ComparisonPlan, RunResult
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
    searched_seconds: float | None = None


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


def summarize_runs(plan: ComparisonPlan, runs: Sequence[RunResult]) -> ComparisonResult:
    problems = [p.folder for p in plan.problems]
    by_place = {
        (problem, arm): [r for r in runs if r.planned.problem == problem and r.planned.arm == arm]
        for problem in problems
        for arm in plan.arms
    }
    common = tuple(p for p in problems if all(any(r.counts for r in by_place[p, a]) for a in plan.arms))
    cells = [_comparison_cell(p, a, [by_place[p, a]]) for p in problems for a in plan.arms]
    overall = [_comparison_cell("", a, [by_place[p, a] for p in common]) for a in plan.arms]
    pairs = [
        pair
        for problem in problems
        for first, second in combinations(plan.arms, 2)
        if (pair := _compare_pair(problem, by_place[problem, first], by_place[problem, second])) is not None
    ]
    contrasts = [
        _contrast_arms(
            one, other, [(_log_speedups(by_place[p, one]), _log_speedups(by_place[p, other])) for p in common]
        )
        for one, other in combinations(plan.arms, 2)
        if common
    ]
    return ComparisonResult(
        plan, tuple(runs), tuple(cells), tuple(overall), common, tuple(pairs), tuple(contrasts)
    )


def _comparison_cell(problem: str, arm: str, groups: Sequence[Sequence[RunResult]]) -> ComparisonCell:
    """`groups`: the runs of each problem."""
    planned = [run for group in groups for run in group]
    counted = [run for run in planned if run.counts]
    logs = [found for group in groups if (found := _log_speedups(group))]
    every = [value for group in logs for value in group]
    facts = [run.facts for run in counted if run.facts is not None]
    won = [f for f in facts if f.refactoring is not None and f.search is not None]
    interval = mean_interval(logs) if logs and min(map(len, logs)) >= ENOUGH else None
    names = (field.name for field in fields(MeanCosts) if field.name != "runs")
    costs = [mean_if_known([getattr(f, name) for f in facts]) for name in names]
    return ComparisonCell(
        problem=problem,
        arm=arm,
        counted=len(counted),
        planned=len(planned),
        successes=sum(run.success for run in counted),
        mean=_ratio_from_log(_arithmetic_mean(_arithmetic_mean(group) for group in logs)) if logs else None,
        least=_ratio_from_log(min(every)) if every else None,
        most=_ratio_from_log(max(every)) if every else None,
        deviation=pooled_deviation(logs),
        interval=(_ratio_from_log(interval.low), _ratio_from_log(interval.high)) if interval else None,
        rounds=_by_round([[r.facts.rounds if r.facts else () for r in g if r.counts] for g in groups]),
        refactoring=geometric_mean(f.refactoring or 1.0 for f in won) if won else None,
        search=geometric_mean(f.search or 1.0 for f in won) if won else None,
        attributed=len(won),
        costs=MeanCosts(len(facts), *costs) if facts else None,  # type: ignore[arg-type]
    )


def _log_speedups(runs: Iterable[RunResult]) -> list[float]:
    return [math.log(run.speedup) for run in runs if run.counts and run.speedup is not None]


def pooled_deviation(groups: Sequence[Sequence[float]], least: int = FREEDOM) -> float | None:
    """Pooled over the problems: how far two runs of the same thing are apart, whatever that thing is."""
    freedom = sum(len(group) - 1 for group in groups)
    if freedom < least:
        return None
    means = [_arithmetic_mean(group) for group in groups]
    squares = sum((value - mean) ** 2 for group, mean in zip(groups, means, strict=True) for value in group)
    return _ratio_from_log(math.sqrt(squares / freedom))


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


def _compare_pair(problem: str, first: Sequence[RunResult], second: Sequence[RunResult]) -> Pair | None:
    one, other = _log_speedups(first), _log_speedups(second)
    if not one or not other:
        return None
    names = first[0].planned.arm, second[0].planned.arm
    ahead = names[0] if min(one) > max(other) else names[1] if min(other) > max(one) else ""
    # Of all ways to deal the runs to two arms, two keep the fast ones together.
    return Pair(problem, *names, ahead, min(1.0, 2 / math.comb(len(one) + len(other), len(one))))


def _contrast_arms(first: str, second: str, groups: Sequence[tuple[list[float], list[float]]]) -> Contrast:
    ratio = _ratio_from_log(
        _arithmetic_mean(_arithmetic_mean(one) - _arithmetic_mean(other) for one, other in groups)
    )
    runs = sum(len(one) + len(other) for one, other in groups)
    return Contrast(first, second, ratio, runs, float(f"{chance_apart(groups):.6g}"))


def _arithmetic_mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


def mean_if_known(values: Sequence[float | None]) -> float | None:
    """None: it is not known of every one, or there is none."""
    known = [value for value in values if value is not None]
    return _arithmetic_mean(known) if known and len(known) == len(values) else None


def _ratio_from_log(log: float) -> float:
    return to_six_digits(math.exp(log))


def to_six_digits(value: float) -> float:
    """More than a clock can tell, and the same on every machine."""
    return float(f"{value:.6g}")


# -- in words -----------------------------------------------------------------------------------------------


FAR = 1.25  # ratio of short measurements to the verified speed-up, from which on it is told
CHANCE = 0.05  # a separation that chance brings more often than this shows little


def caveat_sentences(found: ComparisonResult) -> tuple[str, ...]:
    """Most important first."""
    parts = (
        _note_unfinished, _state_scope, _note_repeats, _note_pairs, _note_disagreements, _note_failures,
        _note_early_stops, _note_lost_requests, _note_expense, _note_environments
    )  # fmt: skip
    return tuple(sentence for part in parts for sentence in part(found))


def describe_devices(found: ComparisonResult) -> tuple[str, ...]:
    """In words: name, driver and compiler."""
    every = dict.fromkeys((f.device, f.driver, f.compiler) for r in found.runs if (f := r.facts))
    return tuple(
        f"{name} ({driver})" + (f", built with {compiler}" if compiler else "")
        for name, driver, compiler in every
    )


def join_names(names: Iterable[str]) -> str:
    *most, last = list(names) or ["none"]
    return f"{', '.join(most)} and {last}" if most else last


def _note_unfinished(found: ComparisonResult) -> Iterator[str]:
    if found.unfinished:
        kinds = Counter(run.status for run in found.unfinished)
        why = ", ".join(f"{count} {status}" for status, count in kinds.items())
        yield (
            f"{len(found.unfinished)} of {len(found.runs)} runs are not finished ({why}): they do not count, "
            "and all figures may still change."
        )


def _state_scope(found: ComparisonResult) -> Iterator[str]:
    names = [p.folder for p in found.plan.problems]
    what = f"{format_count(len(names), 'problem')} ({join_names(names)})"
    by = ", and with the model named above" if any(ARMS[a].talks for a in found.plan.arms) else ""
    yield (
        f"The figures are about {what} at their workloads, on the device named above{by}. They say nothing "
        "about other kernels, sizes, devices or models."
    )


def _note_repeats(found: ComparisonResult) -> Iterator[str]:
    count = found.plan.repeats
    if count == 1:
        yield (
            "Each arm ran once at each problem. How much a result varies from run to run is not known, so "
            "any difference between arms may be chance."
        )
    elif count < ENOUGH:
        yield (
            f"Each arm has {count} repeats at each problem: too few for an interval of the mean, which would "
            f"take {ENOUGH}. The worst of {count} runs is not the worst there can be."
        )
    else:
        yield (
            f"Each arm has {count} repeats at each problem. Intervals are for the mean of log speed-ups over "
            "such repeats, by Student's distribution; they do not cover what all repeats have in common, "
            "such as this device and this day."
        )


def _note_pairs(found: ComparisonResult) -> Iterator[str]:
    if found.plan.repeats == 1:
        return
    by_arms: dict[tuple[str, str], list[Pair]] = {}
    for pair in found.pairs:
        by_arms.setdefault((pair.first, pair.second), []).append(pair)
    over = {(c.first, c.second): c for c in found.contrasts}
    everywhere = len(found.common) == len(found.plan.problems)
    where = "over all problems" if everywhere else f"at {join_names(found.common)}"
    for arms, pairs in by_arms.items():
        yield _of_two(*arms, pairs, over.get(arms), where)
    apart = [pair for pair in found.pairs if pair.ahead]
    if apart and len(found.pairs) > 1:
        expected = sum(pair.chance for pair in found.pairs)
        yield (
            f"{len(found.pairs)} pairs were looked at, {len(apart)} are apart; were all arms alike, "
            f"about {expected:.2g} would be."
        )


def _of_two(first: str, second: str, pairs: Sequence[Pair], over: Contrast | None, where: str) -> str:
    """Problem by problem, and what that comes to together."""
    parts: list[str] = []
    for ahead, other in ((first, second), (second, first)):
        if won := [pair for pair in pairs if pair.ahead == ahead]:
            chance = max(pair.chance for pair in won)
            little = ", which shows little" if chance > CHANCE and len(won) == 1 else ""
            parts.append(
                f"every run of {ahead} is faster than every run of {other} at "
                f"{join_names(pair.problem for pair in won)} (by chance alone this happens to "
                f"{format_chance(chance)} "
                f"of pairs that are alike{little})"
            )
    if alike := [pair.problem for pair in pairs if not pair.ahead]:
        parts.append(f"their ranges overlap at {join_names(alike)}, where the repeats do not tell them apart")
    together = f" {_combined_sentence(over, where)}" if over is not None and len(pairs) > 1 else ""
    return f"{first} and {second}: {'; '.join(parts)}.{together}"


def _combined_sentence(over: Contrast, where: str) -> str:
    ahead, other = (over.first, over.second) if over.ratio >= 1 else (over.second, over.first)
    much = max(over.ratio, 1 / over.ratio)
    little = "" if over.chance <= CHANCE else ", so this shows little"
    return (
        f"Together, {where}, {ahead} is {much:.2f}× as fast as {other} in the mean; by chance alone two that "
        f"are alike get as far apart in {format_chance(over.chance)} of cases{little}."
    )


def format_chance(chance: float) -> str:
    """Never 0 %: there is always the one deal that was seen."""
    if chance < 1e-4:
        return "less than 0.01 %"
    return f"{100 * chance:.0f} %" if chance >= 0.1 else f"{100 * chance:.2g} %"


def _note_disagreements(found: ComparisonResult) -> Iterator[str]:
    known = [(c, c.rounds[-1], c.mean) for c in found.cells if c.mean is not None and c.rounds]
    apart = [
        f"{cell.arm} at {cell.problem} ({last:.2f}× and {mean:.2f}×)"
        for cell, last, mean in known
        if max(last / mean, mean / last) > FAR
    ]
    if apart:
        yield (
            f"Short measurements of the search and the verification differ much for {join_names(apart)}. The "
            "verified figures count: the best of many short looks is a lucky one, the more so on a busy "
            "machine."
        )


def _note_failures(found: ComparisonResult) -> Iterator[str]:
    for arm in found.plan.arms:
        runs = found.of(arm)
        if count := sum(run.status == "failed" for run in runs):
            yield f"{arm}: {count} of {len(runs)} runs failed and count as 1.00×, for reasons given below."


def _note_early_stops(found: ComparisonResult) -> Iterator[str]:
    arms: list[str] = []
    for arm in found.plan.arms:
        runs = found.of(arm)
        if early := sum(r.status == "finished" and r.facts is not None and r.facts.early for r in runs):
            arms.append(f"{arm} in {early} of {len(runs)} runs")
    if arms:
        end = "It was not the budget that ended these."
        yield f"Stopped before any budget was used up: {join_names(arms)}. {end}"


def _note_lost_requests(found: ComparisonResult) -> Iterator[str]:
    for arm in found.plan.arms:
        counts = [run.facts.unanswered for run in found.of(arm) if run.facts is not None]
        if any(counts):
            hit = sum(count > 0 for count in counts)
            yield (
                f"{arm}: in {hit} of {len(counts)} runs requests were given up without a reply "
                f"({sum(counts)} in all); there the expert stood in for the model, or the round was lost."
            )


def _note_expense(found: ComparisonResult) -> Iterator[str]:
    costs = {cell.arm: cell.costs for cell in found.overall if cell.costs is not None}
    if len(costs) > 1:
        least, most = (pick(costs, key=lambda arm: costs[arm].evaluations) for pick in (min, max))
        if costs[most].evaluations > costs[least].evaluations:
            yield (
                "The budget is the same for all arms, what they spent of it is not: evaluations of a run, in "
                f"the mean, from {costs[least].evaluations:.0f} ({least}) to {costs[most].evaluations:.0f} "
                f"({most})."
            )
    if unknown := [arm for arm, cost in costs.items() if cost.tokens is None]:
        yield (
            f"How many tokens {join_names(unknown)} took is not known, since not every reply came with the "
            "number; estimates by length are marked as such."
        )


def _note_environments(found: ComparisonResult) -> Iterator[str]:
    facts = [run.facts for run in found.runs if run.facts is not None]
    if len(describe_devices(found)) > 1:
        yield f"The runs were not all made on the same device: {join_names(describe_devices(found))}."
    if len({f.versions for f in facts}) > 1:
        yield "The runs were not all made with the same versions; each run's report names its own."
    if any(backends.find_backend_kind(f.backend).simulated for f in facts):
        yield "The device is simulated: times are computed, and nothing here is about a real one."


def spread_text(cell: ComparisonCell) -> str:
    if cell.least is None or cell.most is None or cell.counted < 2:
        return "one run" if cell.counted == 1 else ""
    reach = f"{cell.least:.2f} to {cell.most:.2f}" if cell.problem else ""  # of one thing
    deviation = f"×/÷ {cell.deviation:.3f}" if cell.deviation is not None else ""
    return ", ".join(filter(None, [reach, deviation])) or "too few repeats"


def interval_text(cell: ComparisonCell) -> str:
    if cell.interval is None:
        return "" if not cell.counted else "no run differs" if cell.deviation == 1.0 else "too few repeats"
    return f"{cell.interval[0]:.2f} to {cell.interval[1]:.2f}"
