"""The tables of an experiment, in Markdown: one function for each question."""

from __future__ import annotations

from collections.abc import Iterable

from tunesmith.deliver.compared import listed, percent
from tunesmith.deliver.comparing import Allowance
from tunesmith.deliver.experiment import LEAST_PROBLEMS, TOKENS, Estimate, ExperimentFigures
from tunesmith.deliver.findings import StoppedCounts
from tunesmith.run.rounds import BY_SEARCH
from tunesmith.text import counted, markdown, ratio_text, table


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
            f"{ratio_text(arm.worst)}, {markdown(arm.worst_at)}",
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
    lines = [f"Verified speed-ups. {sure}", "", *table(head, rows)]
    if found.left_out:
        names = ", ".join(map(markdown, found.left_out))
        lines += ["", f"Left out, because some arm has no run that counts there: {names}."]
    return lines


def ratios_section(found: ExperimentFigures) -> list[str]:
    rows = [
        (r.first, r.second, len(r.problems), estimate_text(r.ratio), percent(r.chance)) for r in found.ratios
    ]
    return table("arm | over | problems: | ratio of means (95 % interval) | by chance:", rows)


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
    return [what, "", *table(f"arm | {names} | all:", rows)]


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
    return [what, "", *table(f"arm | tokens: | for each {TOKENS} (95 % interval){names}", rows)]


def searches_section(found: ExperimentFigures) -> list[str]:
    searched = [(arm, arm.searches) for arm in found.arms if arm.searches is not None]
    if not searched:
        return ["Nothing was searched."]
    rows = [
        (
            arm.arm,
            own.templates,
            ratio_text(own.default),
            ratio_text(own.best),
            estimate_text(own.gain),
            f"{own.least:.2f} to {own.most:.2f}",
            f"{ratio_text(arm.refactoring)} and {ratio_text(arm.search)}" if arm.search is not None else "",
        )
        for arm, own in searched
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
    return [what, "", *table(head, rows)]


def stopped_section(found: ExperimentFigures) -> list[str]:
    known = [(arm.arm, arm.stopped) for arm in found.arms if arm.stopped is not None]
    if not known:
        return ["These runs were written down before it was counted."]
    drafts = [
        (arm, s.drafts, s.admitted, *_turned_away(s), _share(s.turned_away, s.drafts)) for arm, s in known
    ]
    head = (
        "arm | drafts: | let in: | form: | build: | oracle: | crash, deadline: | too large: | "
        "the same again: | turned away:"
    )
    trials = [
        (arm, s.tried, s.tried_build, s.tried_wrong, s.tried_broken, s.forbidden, s.late, *_replies(s))
        for arm, s in known
    ]
    below = (
        "arm | configurations and kernels tried: | build: | oracle: | crash, deadline: | forbidden: | "
        "late: | replies: | unusable:"
    )
    return [
        "Drafts, a file each, by what turned them away: reader or vetting (form), compiler, oracle.",
        "",
        *table(head, drafts),
        "",
        "Of all that gates and searches tried, what was stopped by whom; combinations of values that a "
        "template which was let in may not have (forbidden); configurations that the short check let pass "
        "and a full check or the verification stopped (late); and replies of models that were not what was "
        "asked for.",
        "",
        *table(below, trials),
    ]


def _turned_away(s: StoppedCounts) -> tuple[int, ...]:
    return s.form, s.build, s.wrong, s.broken, s.unfit, s.repeated


def _replies(s: StoppedCounts) -> tuple[int, int]:
    return s.replies, s.unusable


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.0f} %)" if whole else "0"


def budget_text(budget: Allowance) -> str:
    shown = {
        "evaluations": None if budget.evals is None else counted(budget.evals, "evaluation"),
        "time": None if budget.seconds is None else f"{counted(float(budget.seconds), 'second')} of search",
        "device-seconds": None
        if budget.device_seconds is None
        else f"{counted(float(budget.device_seconds), 'second')} on the device",
        "tokens": None if budget.tokens is None else counted(budget.tokens, "token"),
        "money": None if budget.dollars is None else f"${budget.dollars:g}",
    }
    free = [name for name, text in shown.items() if text is None]
    parts = [counted(budget.rounds, "round"), *(text for text in shown.values() if text is not None)]
    return ", ".join(parts) + (f"; no limit on {listed(free)}" if free else "")


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
    lines = ["For one run, in the mean.", "", *table(f"arm | {' | '.join(heads)}", rows), ""]
    unequal = [words for name, what in _SPENT.items() if (words := _unequal(found, name, what))]
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


def _unequal(found: ExperimentFigures, name: str, what: str) -> str:
    """Arms that have no use for it (none of it was spent) are told apart by the table."""
    known = {arm.arm: value for arm in found.arms if (value := getattr(arm.spent, name))}
    if len(known) < 2:
        return ""
    least, most = (pick(known, key=lambda arm: known[arm]) for pick in (min, max))
    if known[most] < APART * known[least]:
        return ""
    low, high = (_spent_text(name, known[arm]) for arm in (least, most))
    return f"{what} from {low} ({least}) to {high} ({most})"
