"""What runs of one or several comparisons show together, arm by arm, with how sure each figure is.

Intervals are 95 % by a bootstrap in two steps: problems are drawn with replacement, then of each problem
drawn its repeats; so they are about other kernels like these as well as about other runs. All means are of
logarithms, each problem weighs the same, and the generator has one seed: the same runs give the same page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tunesmith.base.text import escape_markdown, format_count, markdown_table, ratio_text
from tunesmith.plugins.studies.plan import (
    ARMS,
    Allowance,
    ComparisonPlan,
    RunFacts,
    RunResult,
    SearchGain,
    StoppedCounts,
    add_counts,
)
from tunesmith.plugins.studies.result import (
    format_chance,
    join_names,
    mean_if_known,
    pooled_deviation,
    to_six_digits,
)
from tunesmith.run.outcome import chance_apart, geometric_mean
from tunesmith.run.rounds import BY_SEARCH

SEED, DRAWS = 0, 10_000
LEAST_PROBLEMS = 3  # for an interval: of two, a draw in two is one of them alone
TOKENS = 10_000  # that gains are told for
STEPS = (1, 2, 4, 8, 16)  # times as many, within which the best so far is told

Numbers = NDArray[np.float64]
Statistic = Callable[[Numbers], Numbers]  # of the means of what each run has, a row for each draw


@dataclass(frozen=True)
class Estimate:
    """None: too few problems for an interval."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ExperimentRun:
    arm: str  # its strategy, and what sets its comparison apart from others
    problem: str
    result: RunResult


@dataclass(frozen=True)
class SearchFigures:
    """Over the templates of an arm, of whatever became of them: by short measurements."""

    templates: int
    default: float  # as written
    best: float  # after the search
    gain: Estimate  # the one over the other
    least: float
    most: float


@dataclass(frozen=True)
class ArmSpent:
    """Of one run, in the mean; None: it is not known of every run."""

    evaluations: float | None  # that the budget counts
    device_seconds: float | None  # before races and verification
    seconds: float | None
    sent: float | None  # tokens, as told and else by length
    received: float | None
    dollars: float | None


@dataclass(frozen=True)
class ArmFigures:
    arm: str
    problems: tuple[str, ...]
    runs: int
    mean: Estimate
    deviation: float | None  # standard deviation of log speed-ups within problems, as a factor
    worst: float
    worst_at: str  # problem
    successes: int
    after: tuple[Estimate, ...]  # each round: the best so far, by the search
    gains: tuple[Estimate, ...]  # each round over the one before
    tokens: float | None  # of a run, in the mean; None: not written down
    per_tokens: Estimate | None  # speed-up for each 10,000 tokens; None: no model was asked
    within: tuple[tuple[int, float], ...]  # so many tokens: the best so far by then
    searches: SearchFigures | None  # None: nothing was searched
    refactoring: float | None  # of the verified winners: what the template gave, and what the search did
    search: float | None
    stopped: StoppedCounts | None
    spent: ArmSpent


@dataclass(frozen=True)
class ArmRatio:
    """Two arms at the problems that both have."""

    first: str
    second: str
    problems: tuple[str, ...]
    ratio: Estimate  # above 1: the first is faster
    chance: float  # of a difference this large, were they alike at each problem


@dataclass(frozen=True)
class ExperimentFigures:
    problems: tuple[str, ...]  # at which every arm that was planned everywhere has a run that counts
    left_out: tuple[str, ...]
    arms: tuple[ArmFigures, ...]
    ratios: tuple[ArmRatio, ...]


def arm_label(arm: str, plan: ComparisonPlan) -> str:
    """What a comparison with other settings has of an arm is another arm."""
    parts = [f"{plan.drafts} drafts"] if plan.drafts > 1 and ARMS[arm].talks else []
    parts += [f"moves {plan.moves}"] if plan.moves != "usual" and ARMS[arm].talks else []
    return ", ".join([arm, *parts])


def experiment_figures(runs: Sequence[ExperimentRun]) -> ExperimentFigures:
    arms, every = tuple(dict.fromkeys(r.arm for r in runs)), tuple(dict.fromkeys(r.problem for r in runs))
    planned = {(r.arm, r.problem) for r in runs}
    counted: dict[tuple[str, str], list[RunResult]] = {}
    for run in runs:
        if run.result.counts and run.result.speedup is not None:
            counted.setdefault((run.arm, run.problem), []).append(run.result)
    everywhere = [arm for arm in arms if all((arm, p) in planned for p in every)]
    common = tuple(p for p in every if all((arm, p) in counted for arm in everywhere))
    at = {a: {p: counted[a, p] for p in common if (a, p) in counted} for a in arms}
    return ExperimentFigures(
        common,
        tuple(p for p in every if p not in common),
        tuple(_arm_figures(arm, at[arm]) for arm in arms if at[arm]),
        tuple(
            _arm_ratio(one, other, at[one], at[other])
            for one, other in combinations(arms, 2)
            if at[one].keys() & at[other].keys()
        ),
    )


def _arm_figures(arm: str, at: Mapping[str, Sequence[RunResult]]) -> ArmFigures:
    logs = {problem: [_log_speedup(run) for run in runs] for problem, runs in at.items()}
    worst, where = min((log, problem) for problem, runs in logs.items() for log in runs)
    known = {p: [run.facts for run in runs if run.facts is not None] for p, runs in at.items()}
    facts = [f for runs in known.values() for f in runs]
    won = [(f.refactoring, f.search) for f in facts if f.refactoring is not None and f.search is not None]
    spent = [f.tokens_by_length for f in facts]
    stopped = [f.stopped for f in facts if f.stopped is not None]
    after = _logs_by_round(at)
    rounds = range(max((len(logs) for group in after for logs in group), default=0))
    return ArmFigures(
        arm=arm,
        problems=tuple(at),
        runs=sum(map(len, at.values())),
        mean=estimate_mean(list(logs.values())),
        deviation=pooled_deviation(list(logs.values()), 1),
        worst=to_six_digits(math.exp(worst)),
        worst_at=where,
        successes=sum(run.success for runs in at.values() for run in runs),
        after=tuple(estimate_mean([[logs[n] for logs in g] for g in after]) for n in rounds),
        gains=tuple(estimate_mean([[_round_gain(logs, n) for logs in g] for g in after]) for n in rounds),
        tokens=sum(spent) / len(spent) if spent else None,
        per_tokens=_per_tokens(at),
        within=_token_curve(at),
        searches=_search_figures(known),
        refactoring=geometric_mean(one for one, _ in won) if won else None,
        search=geometric_mean(other for _, other in won) if won else None,
        stopped=add_counts(stopped) if stopped else None,
        spent=ArmSpent(*(_rounded_mean([getattr(f, name) for f in facts]) for name in _SPENT_FACTS)),
    )


_SPENT_FACTS = ("of_budget", "searched_seconds", "seconds", "sent", "received", "dollars")


def _rounded_mean(values: Sequence[float | None]) -> float | None:
    mean = mean_if_known(values)
    return None if mean is None else to_six_digits(mean)


def _log_speedup(run: RunResult) -> float:
    assert run.speedup is not None, "a run that counts has one"
    return math.log(run.speedup)


def _logs_by_round(at: Mapping[str, Sequence[RunResult]]) -> list[list[list[float]]]:
    """Logarithms of the best so far after each round; a run that has ended keeps what it had."""
    rounds = [[_best_by_round(run) for run in runs] for runs in at.values()]
    most = max((len(run) for group in rounds for run in group), default=0)
    return [
        [
            [math.log(run[min(number, len(run) - 1)]) if run else 0.0 for number in range(most)]
            for run in group
        ]
        for group in rounds
    ]


def _best_by_round(run: RunResult) -> tuple[float, ...]:
    return run.facts.rounds if run.facts is not None and run.status == "finished" else ()


def _round_gain(logs: Sequence[float], number: int) -> float:
    return logs[number] - (logs[number - 1] if number else 0.0)


def _per_tokens(at: Mapping[str, Sequence[RunResult]]) -> Estimate | None:
    """All logarithms over all tokens, problem by problem: the mean of what single runs have for their tokens
    would be that of the cheapest."""
    groups = [
        [(_log_speedup(run), float(run.facts.tokens_by_length) if run.facts else 0.0) for run in runs]
        for runs in at.values()
    ]
    if not any(tokens for group in groups for _, tokens in group):
        return None

    def gain(means: Numbers) -> Numbers:
        spent = np.where(means[:, 1] > 0, means[:, 1], np.inf)
        return np.asarray(means[:, 0] / spent * TOKENS)

    return estimate_statistic(groups, gain)


def _token_curve(at: Mapping[str, Sequence[RunResult]]) -> tuple[tuple[int, float], ...]:
    """What each run had reached when so many tokens were spent, by the search."""
    facts = [[run.facts for run in runs if run.facts is not None] for runs in at.values()]
    known = [f.tokens_by_length for group in facts for f in group if f.round_tokens is not None]
    if not any(known):
        return ()
    found: list[tuple[int, float]] = []
    for step in STEPS:
        groups = [[_best_within_tokens(f, step * TOKENS) for f in group] for group in facts if group]
        mean = geometric_mean(geometric_mean(group) for group in groups)
        found.append((step * TOKENS, to_six_digits(mean)))
        if step * TOKENS >= max(known):
            break
    return tuple(found)


def _best_within_tokens(facts: RunFacts, tokens: int) -> float:
    known = zip(facts.rounds, facts.round_tokens or (), strict=False)
    return max((best for best, spent in known if spent <= tokens), default=1.0)


def _search_figures(known: Mapping[str, Sequence[RunFacts]]) -> SearchFigures | None:
    groups = [[s for f in facts for s in f.searches or ()] for facts in known.values()]
    groups = [group for group in groups if group]
    every = [search for group in groups for search in group]
    if not every:
        return None
    ratios = [search.best / search.default for search in every]
    return SearchFigures(
        templates=len(every),
        default=_geometric_mean_by(groups, lambda s: s.default),
        best=_geometric_mean_by(groups, lambda s: s.best),
        gain=estimate_mean([[math.log(s.best / s.default) for s in group] for group in groups]),
        least=to_six_digits(min(ratios)),
        most=to_six_digits(max(ratios)),
    )


def _geometric_mean_by(groups: Sequence[Sequence[SearchGain]], of: Callable[[SearchGain], float]) -> float:
    return to_six_digits(geometric_mean(geometric_mean(map(of, group)) for group in groups))


def _arm_ratio(
    first: str, second: str, one: Mapping[str, Sequence[RunResult]], other: Mapping[str, Sequence[RunResult]]
) -> ArmRatio:
    """The same problems are drawn for both, of each its own repeats."""
    problems = tuple(p for p in one if p in other)
    sides = [[[_log_speedup(run) for run in at[p]] for p in problems] for at in (one, other)]
    value = _mean_of_means(sides[0]) - _mean_of_means(sides[1])
    found = Estimate(to_six_digits(math.exp(value)))
    if len(problems) >= LEAST_PROBLEMS:
        rng = np.random.default_rng(SEED)
        choice = rng.integers(0, len(problems), (DRAWS, len(problems)))
        drawn = [
            _bootstrap_means([[(log,) for log in group] for group in side], choice, rng)[:, 0]
            for side in sides
        ]
        found = _with_ends(value, drawn[0] - drawn[1])
    chance = chance_apart(list(zip(*sides, strict=True)), SEED)
    return ArmRatio(first, second, problems, found, float(f"{chance:.6g}"))


def estimate_mean(groups: Sequence[Sequence[float]]) -> Estimate:
    """Of logarithms, by problem: the mean of the problems' means, as a factor."""
    return estimate_statistic([[(value,) for value in group] for group in groups], lambda means: means[:, 0])


def estimate_statistic(groups: Sequence[Sequence[tuple[float, ...]]], statistic: Statistic) -> Estimate:
    """Of several numbers of each run: a logarithm that follows from their means, as a factor."""
    point = np.mean([np.mean(np.asarray(group, dtype=np.float64), axis=0) for group in groups], axis=0)
    value = float(statistic(point[None, :])[0])
    if len(groups) < LEAST_PROBLEMS:
        return Estimate(to_six_digits(math.exp(value)))
    rng = np.random.default_rng(SEED)
    choice = rng.integers(0, len(groups), (DRAWS, len(groups)))
    return _with_ends(value, statistic(_bootstrap_means(groups, choice, rng)))


def _bootstrap_means(
    groups: Sequence[Sequence[tuple[float, ...]]], choice: NDArray[np.int64], rng: np.random.Generator
) -> Numbers:
    """Means for each draw of problems, each time with other repeats of each."""
    counts = np.asarray([len(group) for group in groups])
    wide = max(counts)
    rows = np.zeros((len(groups), wide, len(groups[0][0])))
    for place, group in enumerate(groups):
        rows[place, : len(group)] = group
    total = np.zeros((len(choice), rows.shape[2]))
    for place in range(choice.shape[1]):
        problem = choice[:, place]
        many = counts[problem]
        repeats = (rng.random((len(choice), wide)) * many[:, None]).astype(np.int64)
        weights = (np.arange(wide) < many[:, None]) / many[:, None]
        total += np.einsum("dw,dwk->dk", weights, rows[problem[:, None], repeats])
    return np.asarray(total / choice.shape[1])


def _with_ends(value: float, draws: Numbers) -> Estimate:
    low, high = (float(end) for end in np.quantile(draws, [0.025, 0.975]))
    return Estimate(*(to_six_digits(math.exp(log)) for log in (value, low, high)))


def _mean_of_means(groups: Sequence[Sequence[float]]) -> float:
    return sum(sum(group) / len(group) for group in groups) / len(groups)


# -- The tables of an experiment, in Markdown: one function for each question.


def estimate_text(found: Estimate | None, digits: int = 2) -> str:
    if found is None:
        return ""
    if found.low is None or found.high is None:
        return f"{found.value:.{digits}f}×"
    return f"{found.value:.{digits}f}× ({found.low:.{digits}f} to {found.high:.{digits}f})"


def means_section(found: ExperimentFigures) -> list[str]:
    """Mean, spread and worst of each arm."""
    rows = [
        (
            arm.arm,
            len(arm.problems),
            arm.runs,
            estimate_text(arm.mean),
            "" if arm.deviation is None else f"×/÷ {arm.deviation:.3f}",
            f"{ratio_text(arm.worst)}, {escape_markdown(arm.worst_at)}",
            f"{arm.successes} of {arm.runs}",
        )
        for arm in found.arms
    ]
    head = "arm | problems: | runs: | mean (95 % interval) | between repeats | worst run | success:"
    sure = (
        "Intervals are by a bootstrap over problems and, of each, over repeats; with few of either they are "
        "too narrow rather than too wide."
        if len(found.problems) >= LEAST_PROBLEMS
        else f"Fewer than {LEAST_PROBLEMS} problems: no intervals."
    )
    lines = [f"Verified speed-ups. {sure}", "", *markdown_table(head, rows)]
    if found.left_out:
        names = ", ".join(map(escape_markdown, found.left_out))
        lines += ["", f"Left out, because some arm has no run that counts there: {names}."]
    return lines


def ratios_section(found: ExperimentFigures) -> list[str]:
    rows = [
        (r.first, r.second, len(r.problems), estimate_text(r.ratio), format_chance(r.chance))
        for r in found.ratios
    ]
    return markdown_table("arm | over | problems: | ratio of means (95 % interval) | by chance:", rows)


def together_section(found: ExperimentFigures) -> list[str]:
    return [*means_section(found), "", "Arm against arm:", "", *ratios_section(found)]


def rounds_section(found: ExperimentFigures) -> list[str]:
    most = max((len(arm.gains) for arm in found.arms), default=0)
    if not most:
        return ["No run has had a round yet."]
    rows = [
        (
            arm.arm,
            *(estimate_text(gain) for gain in arm.gains),
            *[""] * (most - len(arm.gains)),
            ratio_text(arm.after[-1].value) if arm.after else "",
        )
        for arm in found.arms
    ]
    names = " | ".join(f"round {number}:" for number in range(1, most + 1))
    what = (
        f"What each round added to the best so far, {BY_SEARCH} (95 % interval); a run that has ended adds "
        "1.00×."
    )
    return [what, "", *markdown_table(f"arm | {names} | all:", rows)]


def tokens_section(found: ExperimentFigures) -> list[str]:
    talks = [arm for arm in found.arms if arm.per_tokens is not None]
    if not talks:
        return ["No model was asked."]
    steps = max((arm.within for arm in talks), key=len)
    rows = [
        (
            arm.arm,
            "" if arm.tokens is None else f"{arm.tokens:.0f}",
            estimate_text(arm.per_tokens, 3),
            *(ratio_text(value) for _, value in arm.within),
            *[ratio_text(arm.within[-1][1]) if arm.within else ""] * (len(steps) - len(arm.within)),
        )
        for arm in talks
    ]
    names = "".join(f" | within {tokens}:" for tokens, _ in steps)
    what = (
        f"Tokens of a run, and the verified speed-up for each {TOKENS} of them: all logarithms over all "
        f"tokens; then the best so far when so many tokens were spent, {BY_SEARCH}. Tokens are as told by "
        "the model, else by length."
    )
    return [what, "", *markdown_table(f"arm | tokens: | for each {TOKENS} (95 % interval){names}", rows)]


def searches_section(found: ExperimentFigures) -> list[str]:
    searched = [(arm, arm.searches) for arm in found.arms if arm.searches is not None]
    if not searched:
        return ["Nothing was searched."]
    rows = [
        (
            arm.arm,
            found.templates,
            ratio_text(found.default),
            ratio_text(found.best),
            estimate_text(found.gain),
            f"{found.least:.2f} to {found.most:.2f}",
            f"{ratio_text(arm.refactoring)} and {ratio_text(arm.search)}" if arm.search is not None else "",
        )
        for arm, found in searched
    ]
    head = (
        "arm | templates: | at its default: | after the search: | the search adds (95 % interval) | "
        "least to most | verified winners: template, search"
    )
    what = (
        f"Every template with a default that is right, also those that lost, {BY_SEARCH}: the best of many "
        "short looks is a lucky one, so what the search adds is rather less. The last column divides the "
        "verified speed-up of winners alone."
    )
    return [what, "", *markdown_table(head, rows)]


def stopped_section(found: ExperimentFigures) -> list[str]:
    known = [(arm.arm, arm.stopped) for arm in found.arms if arm.stopped is not None]
    if not known:
        return ["These runs were written down before it was counted."]
    return [
        "Drafts, a file each, by what turned them away: reader or vetting (form), compiler, oracle.",
        "",
        *_drafts_table(known),
        "",
        "Of all that gates and searches tried, what was stopped by whom; combinations of values that a "
        "template which was let in may not have (forbidden); configurations that the short check let pass "
        "and a full check or the verification stopped (late); and replies of models that were not what was "
        "asked for.",
        "",
        *_trials_table(known),
    ]


def _drafts_table(known: Sequence[tuple[str, StoppedCounts]]) -> list[str]:
    rows = []
    for arm, s in known:
        faults = (s.form, s.build, s.wrong, s.broken, s.unfit, s.repeated)
        rows.append((arm, s.drafts, s.admitted, *faults, _share_text(s.turned_away, s.drafts)))
    head = (
        "arm | drafts: | let in: | form: | build: | oracle: | crash, deadline: | too large: | "
        "the same again: | turned away:"
    )
    return markdown_table(head, rows)


def _trials_table(known: Sequence[tuple[str, StoppedCounts]]) -> list[str]:
    rows = []
    for arm, s in known:
        stopped = (s.tried_build, s.tried_wrong, s.tried_broken, s.forbidden, s.late)
        rows.append((arm, s.tried, *stopped, s.replies, s.unusable))
    head = (
        "arm | configurations and kernels tried: | build: | oracle: | crash, deadline: | forbidden: | "
        "late: | replies: | unusable:"
    )
    return markdown_table(head, rows)


def _share_text(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.0f} %)" if whole else "0"


def _seconds_text(seconds: float) -> str:
    return format_count(float(seconds), "second")


def budget_text(budget: Allowance) -> str:
    limits: tuple[tuple[str, float | None, Callable[[float], str]], ...] = (
        ("evaluations", budget.evals, lambda n: format_count(n, "evaluation")),
        ("time", budget.seconds, lambda n: f"{_seconds_text(n)} of search"),
        (
            "device-seconds",
            budget.device_seconds,
            lambda n: f"{format_count(float(n), 'second')} on the device",
        ),
        ("tokens", budget.tokens, lambda n: format_count(n, "token")),
        ("money", budget.dollars, lambda n: f"${n:g}"),
    )
    free = [name for name, limit, _ in limits if limit is None]
    parts = [format_count(budget.rounds, "round")]
    parts += [text(limit) for _, limit, text in limits if limit is not None]
    return ", ".join(parts) + (f"; no limit on {join_names(free)}" if free else "")


_SPENT = {
    "evaluations": "evaluations",
    "device_seconds": "device-seconds",
    "seconds": "seconds",
    "sent": "tokens in",
    "received": "tokens out",
    "dollars": "money",
}
_LIMITED = {"evaluations": "evals", "device_seconds": "device_seconds", "seconds": "seconds"}
APART = 1.25  # ratio of the most to the least from which on arms have not spent the same


def spent_section(found: ExperimentFigures, budgets: Iterable[Allowance]) -> list[str]:
    """What a run of each arm spent of each budget, side by side, and where that was not the same."""
    allowed = set(budgets)
    heads = []
    for name, what in _SPENT.items():
        limits = {getattr(one, _LIMITED[name]) for one in allowed} if name in _LIMITED else {None}
        most = next(iter(limits)) if len(limits) == 1 else None
        heads.append(f"{what}{'' if most is None else f' of {most:g}'}:")
    rows = [
        (arm.arm, *(_spent_text(name, getattr(arm.spent, name)) for name in _SPENT)) for arm in found.arms
    ]
    lines = ["For one run, in the mean.", "", *markdown_table(f"arm | {' | '.join(heads)}", rows), ""]
    unequal = [words for name, what in _SPENT.items() if (words := _unequal_spending(found, name, what))]
    lines += (
        [f"Not the same for all arms: {'; '.join(unequal)}."]
        if unequal
        else ["All arms spent about the same."]
    )
    if len(allowed) > 1:
        lines.append(f"Nor was what they were allowed: {'; or '.join(sorted(map(budget_text, allowed)))}.")
    return lines


def _spent_text(name: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    if name == "dollars":
        return f"${value:.4f}"
    return f"{value:.1f}" if name.endswith("seconds") else f"{value:.0f}"


def _unequal_spending(found: ExperimentFigures, name: str, what: str) -> str:
    """Arms that have no use for it (none of it was spent) are told apart by the table."""
    known = {arm.arm: value for arm in found.arms if (value := getattr(arm.spent, name))}
    if len(known) < 2:
        return ""
    least, most = (pick(known, key=lambda arm: known[arm]) for pick in (min, max))
    if known[most] < APART * known[least]:
        return ""
    low, high = (_spent_text(name, known[arm]) for arm in (least, most))
    return f"{what} from {low} ({least}) to {high} ({most})"
