"""What a comparison does and does not show, in sentences that follow from its facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tunesmith.deliver.compared import ENOUGH, ComparisonCell, ComparisonResult, Contrast, Pair
from tunesmith.deliver.comparing import ARMS
from tunesmith.text import counted

FAR = 1.25  # ratio of short measurements to the verified speed-up, from which on it is told
CHANCE = 0.05  # a separation that chance brings more often than this shows little


def limits(found: ComparisonResult) -> tuple[str, ...]:
    """Most important first."""
    parts = (
        _finished, _scope, _repeats, _pairs, _disagreements, _failures, _early, _unanswered, _expense, _places
    )  # fmt: skip
    return tuple(sentence for part in parts for sentence in part(found))


def devices(found: ComparisonResult) -> tuple[str, ...]:
    """In words: name, driver and compiler."""
    every = dict.fromkeys((f.device, f.driver, f.compiler) for r in found.runs if (f := r.facts))
    return tuple(
        f"{name} ({driver})" + (f", built with {compiler}" if compiler else "")
        for name, driver, compiler in every
    )


def listed(names: Iterable[str]) -> str:
    *most, last = list(names) or ["none"]
    return f"{', '.join(most)} and {last}" if most else last


def _finished(found: ComparisonResult) -> tuple[str, ...]:
    if not found.unfinished:
        return ()
    kinds = Counter(run.status for run in found.unfinished)
    why = ", ".join(f"{count} {status}" for status, count in kinds.items())
    return (
        f"{len(found.unfinished)} of {len(found.runs)} runs are not finished ({why}): they do not count, and "
        "all figures may still change.",
    )


def _scope(found: ComparisonResult) -> tuple[str, ...]:
    names = [p.folder for p in found.plan.problems]
    what = f"{counted(len(names), 'problem')} ({listed(names)})"
    by = ", and with the model named above" if any(ARMS[a].talks for a in found.plan.arms) else ""
    return (
        f"The figures are about {what} at their workloads, on the device named above{by}. They say nothing "
        "about other kernels, sizes, devices or models.",
    )


def _repeats(found: ComparisonResult) -> tuple[str, ...]:
    count = found.plan.repeats
    if count == 1:
        return (
            "Each arm ran once at each problem. How much a result varies from run to run is not known, so "
            "any difference between arms may be chance.",
        )
    if count < ENOUGH:
        return (
            f"Each arm has {count} repeats at each problem: too few for an interval of the mean, which would "
            f"take {ENOUGH}. The worst of {count} runs is not the worst there can be.",
        )
    return (
        f"Each arm has {count} repeats at each problem. Intervals are for the mean of log speed-ups over "
        "such repeats, by Student's distribution; they do not cover what all repeats have in common, such as "
        "this device and this day.",
    )


def _pairs(found: ComparisonResult) -> tuple[str, ...]:
    if found.plan.repeats == 1:
        return ()
    by_arms: dict[tuple[str, str], list[Pair]] = {}
    for pair in found.pairs:
        by_arms.setdefault((pair.first, pair.second), []).append(pair)
    over = {(c.first, c.second): c for c in found.contrasts}
    everywhere = len(found.common) == len(found.plan.problems)
    where = "over all problems" if everywhere else f"at {listed(found.common)}"
    lines = [_of_two(*arms, pairs, over.get(arms), where) for arms, pairs in by_arms.items()]
    apart = [pair for pair in found.pairs if pair.ahead]
    if apart and len(found.pairs) > 1:
        expected = sum(pair.chance for pair in found.pairs)
        lines.append(
            f"{len(found.pairs)} pairs were looked at, {len(apart)} are apart; were all arms alike, "
            f"about {expected:.2g} would be."
        )
    return tuple(lines)


def _of_two(first: str, second: str, pairs: Sequence[Pair], over: Contrast | None, where: str) -> str:
    """Problem by problem, and what that comes to together."""
    parts: list[str] = []
    for ahead, other in ((first, second), (second, first)):
        if won := [pair for pair in pairs if pair.ahead == ahead]:
            chance = max(pair.chance for pair in won)
            little = ", which shows little" if chance > CHANCE and len(won) == 1 else ""
            parts.append(
                f"every run of {ahead} is faster than every run of {other} at "
                f"{listed(pair.problem for pair in won)} (by chance alone this happens to {percent(chance)} "
                f"of pairs that are alike{little})"
            )
    if alike := [pair.problem for pair in pairs if not pair.ahead]:
        parts.append(f"their ranges overlap at {listed(alike)}, where the repeats do not tell them apart")
    together = f" {_together(over, where)}" if over is not None and len(pairs) > 1 else ""
    return f"{first} and {second}: {'; '.join(parts)}.{together}"


def _together(over: Contrast, where: str) -> str:
    ahead, other = (over.first, over.second) if over.ratio >= 1 else (over.second, over.first)
    much = max(over.ratio, 1 / over.ratio)
    little = "" if over.chance <= CHANCE else ", so this shows little"
    return (
        f"Together, {where}, {ahead} is {much:.2f}× as fast as {other} in the mean; by chance alone two that "
        f"are alike get as far apart in {percent(over.chance)} of cases{little}."
    )


def percent(chance: float) -> str:
    """Never 0 %: there is always the one deal that was seen."""
    if chance < 1e-4:
        return "less than 0.01 %"
    return f"{100 * chance:.0f} %" if chance >= 0.1 else f"{100 * chance:.2g} %"


def _disagreements(found: ComparisonResult) -> tuple[str, ...]:
    known = [(c, c.rounds[-1], c.mean) for c in found.cells if c.mean is not None and c.rounds]
    apart = [
        f"{cell.arm} at {cell.problem} ({last:.2f}× and {mean:.2f}×)"
        for cell, last, mean in known
        if max(last / mean, mean / last) > FAR
    ]
    text = (
        f"Short measurements of the search and the verification differ much for {listed(apart)}. The "
        "verified figures count: the best of many short looks is a lucky one, the more so on a busy machine."
    )
    return (text,) if apart else ()


def _failures(found: ComparisonResult) -> tuple[str, ...]:
    every = ((arm, found.of(arm)) for arm in found.plan.arms)
    failed = ((arm, sum(run.status == "failed" for run in runs), len(runs)) for arm, runs in every)
    return tuple(
        f"{arm}: {count} of {of} runs failed and count as 1.00×, for reasons given below."
        for arm, count, of in failed
        if count
    )


def _early(found: ComparisonResult) -> tuple[str, ...]:
    arms: list[str] = []
    for arm in found.plan.arms:
        runs = found.of(arm)
        if early := sum(r.status == "finished" and r.facts is not None and r.facts.early for r in runs):
            arms.append(f"{arm} in {early} of {len(runs)} runs")
    text = f"Stopped before any budget was used up: {listed(arms)}. It was not the budget that ended these."
    return (text,) if arms else ()


def _unanswered(found: ComparisonResult) -> tuple[str, ...]:
    lines: list[str] = []
    for arm in found.plan.arms:
        counts = [run.facts.unanswered for run in found.of(arm) if run.facts is not None]
        if any(counts):
            hit = sum(count > 0 for count in counts)
            lines.append(
                f"{arm}: in {hit} of {len(counts)} runs requests were given up without a reply "
                f"({sum(counts)} in all); there the expert stood in for the model, or the round was lost."
            )
    return tuple(lines)


def _expense(found: ComparisonResult) -> tuple[str, ...]:
    costs = {cell.arm: cell.costs for cell in found.overall if cell.costs is not None}
    lines: list[str] = []
    if len(costs) > 1:
        least, most = (pick(costs, key=lambda arm: costs[arm].evaluations) for pick in (min, max))
        if costs[most].evaluations > costs[least].evaluations:
            lines.append(
                "The budget is the same for all arms, what they spent of it is not: evaluations of a run, in "
                f"the mean, from {costs[least].evaluations:.0f} ({least}) to {costs[most].evaluations:.0f} "
                f"({most})."
            )
    unknown = [arm for arm, cost in costs.items() if cost.tokens is None]
    if unknown:
        lines.append(
            f"How many tokens {listed(unknown)} took is not known, since not every reply came with the "
            "number; estimates by length are marked as such."
        )
    return tuple(lines)


def _places(found: ComparisonResult) -> tuple[str, ...]:
    lines: list[str] = []
    facts = [run.facts for run in found.runs if run.facts is not None]
    if len(devices(found)) > 1:
        lines.append(f"The runs were not all made on the same device: {listed(devices(found))}.")
    if len({f.versions for f in facts}) > 1:
        lines.append("The runs were not all made with the same versions; each run's report names its own.")
    if any(f.backend == "fake" for f in facts):
        lines.append("The device is simulated: times are computed, and nothing here is about a real one.")
    return tuple(lines)


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
