"""A comparison as the user keeps it: JSON for programs, Markdown for people who were not there."""

from __future__ import annotations

from tunesmith.core.codec import encode
from tunesmith.core.compared import ENOUGH, FREEDOM, ComparisonCell, ComparisonResult, MeanCosts
from tunesmith.core.comparing import ARMS, Allowance, ComparisonPlan, RunResult
from tunesmith.core.comparison_words import devices, interval_text, limits, listed, percent, spread_text
from tunesmith.core.counted import counted
from tunesmith.deliver.comparison_plots import rounds_svg, speedups_svg
from tunesmith.deliver.markdown import cell as safe

UNKNOWN = "unknown"
MARKDOWN, DATA, PLOTS, RUNS = "compare.md", "compare-data.json", "plots", "runs"
_SPEEDUPS, _ROUNDS = "speed-ups.svg", "gain-per-round.svg"
_TERMS = {
    "Speed-up": "of a run: the original's time over the winner's, by the verification (rebuilt in a fresh "
    "process, timed in alternation with the original), as the weighted geometric mean over the problem's "
    "workloads, with 1.00× where the original stays.",
    "Mean": "geometric, over repeats; over all problems: of their means.",
    "Spread": "least to most of the runs at a problem; and the standard deviation of log speed-ups within "
    f"problems, as a factor (×/÷), where there are {FREEDOM} degrees of freedom for it (repeats − 1, added "
    "up over the problems).",
    "Interval": f"95 % for the mean, given from {ENOUGH} repeats of every problem on, if they differ at all.",
    "By chance": "were two arms alike at every problem, how often dealing their runs out anew would set "
    "their means as far apart, one way or the other (a permutation test on log speed-ups, problem by "
    "problem). Of several such figures some are small by chance.",
    "Success": "at one workload or more the interval of the verified speed-up lies above 1.01. A run that "
    "failed is no success and counts as 1.00×; one that is not finished does not count.",
    "Evaluations": "configurations or kernels that searches and gates tried, those that were wrong included.",
    "Of the budget": "of these, what the budget of evaluations counts: every kernel that is written as it "
    "stands; of a template what its search tried, while what the gate tried of it is extra.",
    "Repairs": "times an author was asked again within a round.",
    "Device-seconds": "in which an evaluation had the device (baseline, trials, races, verification), builds "
    "it waited for included; without profiling.",
    "In kernels": "of these, as far as trials say.",
    "Seconds": "in which somebody worked on the run; not those in which it was left waiting for a reply or "
    "for a device.",
}


def comparison_json(found: ComparisonResult) -> bytes:
    return encode({"comparison": found, "limits": limits(found)}) + b"\n"


def comparison_plots(found: ComparisonResult) -> dict[str, bytes]:
    return {_SPEEDUPS: speedups_svg(found), _ROUNDS: rounds_svg(found)}


def comparison_markdown(found: ComparisonResult) -> str:
    lines = [f"# Comparison: {listed(found.plan.arms)}", "", *what_was_compared(found)]
    for title, part in comparison_sections(found).items():
        lines += ["", f"## {title}", "", *part]
    return "\n".join(lines) + "\n"


def comparison_sections(found: ComparisonResult, plots: str = f"{PLOTS}/") -> dict[str, list[str]]:
    """Title -> lines. `plots`: what is before their names, seen from the page."""
    versions = [f"- problem {p.folder}: `{p.digest}`" for p in found.plan.problems]
    versions += [f"- {name}: `{value}`" for name, value in found.plan.versions]
    speedups = ["", f"![Speed-ups of all runs]({plots}{_SPEEDUPS})"]
    return {
        "Result": [*_results(found), *_contrasts(found), *speedups],
        "What this does and does not show": [f"- {safe_long(text)}" for text in limits(found)],
        "What it cost": _expenses(found),
        "Gain per round": [*_rounds(found), "", f"![Gain per round]({plots}{_ROUNDS})"],
        "Where the gain comes from": _attribution(found),
        "Every run": _runs(found),
        "What the words mean": [f"- **{word}**: {text}" for word, text in _TERMS.items()],
        "Digests and versions": versions,
    }


def safe_long(text: str) -> str:
    """Our own sentences, with names in them that are not ours: nothing of them is cut off."""
    return " ".join(safe(word) for word in text.split())


# -- parts --------------------------------------------------------------------------------------------------


def what_was_compared(found: ComparisonResult) -> list[str]:
    plan = found.plan
    lines = ["| arm | what it is | of the budget it does not use |", "|---|---|---|"]
    lines += [f"| {a} | {ARMS[a].says} | {ARMS[a].unused} |" for a in plan.arms]
    count = len(plan.problems)
    names = listed(p.folder for p in plan.problems)
    done = sum(run.counts for run in found.runs)
    where = "; ".join(safe(device) for device in devices(found)) or "no device so far"
    lines += ["", f"At {counted(count, 'problem')}: {names}. On {where}."]
    if any(ARMS[a].talks for a in plan.arms):
        unknown = "; who answers a mailbox is not recorded" if "mailbox" in plan.model else ""
        lines.append(f"The model: {safe(plan.model)}{unknown}.")
    lines += [
        "Against the original kernel of each problem, built and launched as its problem file says.",
        f"Every run of every arm may spend the same: {budget_text(plan.budget)}.",
        f"{_repeats(plan)}. No run knows of another: there is no cache of timings, and earlier runs are "
        f"ignored. {done} of {len(found.runs)} runs count.",
        "",
        *_problems(found),
    ]
    return lines


def _repeats(plan: ComparisonPlan) -> str:
    if plan.repeats == 1:
        return f"One run of each arm at each problem, with the seed {plan.seed}"
    turns = ", with another arm first each time" if len(plan.arms) > 1 else ""
    last = plan.seed + plan.repeats - 1
    return f"{plan.repeats} repeats, with the seeds {plan.seed} to {last}, one after the other{turns}"


def _problems(found: ComparisonResult) -> list[str]:
    """Where kernels must be fast, and what the originals take there."""
    lines = ["| problem | judged | workload | sizes | the original takes |", "|---|---|---|---|---:|"]
    for problem in found.plan.problems:
        facts = [r.facts for r in found.runs if r.facts is not None and r.planned.problem == problem.folder]
        facts = [f for f in facts if f.originals]
        every = [original for f in facts for original in f.originals]
        for original in facts[0].originals if facts else ():
            took = [o.seconds * 1e6 for o in every if o.workload == original.workload]
            reach = f"{min(took):.1f} to {max(took):.1f} µs" if len(took) > 1 else f"{took[0]:.1f} µs"
            cells = [problem.folder, facts[0].judged_by, original.workload, original.sizes, reach]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def budget_text(budget: Allowance) -> str:
    parts = [counted(budget.rounds, "round")]
    parts += [counted(budget.evals, "evaluation")] if budget.evals is not None else []
    parts += [f"{counted(float(budget.seconds), 'second')} of search"] if budget.seconds is not None else []
    parts += [counted(budget.tokens, "token")] if budget.tokens is not None else []
    parts += [f"${budget.dollars:g}"] if budget.dollars is not None else []
    free = [
        name
        for name, value in (
            ("evaluations", budget.evals),
            ("time", budget.seconds),
            ("tokens", budget.tokens),
            ("money", budget.dollars),
        )
        if value is None
    ]
    return ", ".join(parts) + (f"; no limit on {listed(free)}" if free else "")


def _named(found: ComparisonResult, cell: ComparisonCell) -> str:
    if cell.problem:
        return cell.problem
    return f"**all {len(found.common)}**" if len(found.common) > 1 else "**all**"


def _shown(found: ComparisonResult) -> tuple[ComparisonCell, ...]:
    """Over all problems only where there are several."""
    return (*found.cells, *(found.overall if len(found.plan.problems) > 1 and found.common else ()))


def _results(found: ComparisonResult) -> list[str]:
    lines = ["| problem | arm | runs | mean | spread | 95 % interval of the mean | worst | success |"]
    lines += ["|---|---|---:|---:|---|---|---:|---:|"]
    for cell in _shown(found):
        runs = f"{cell.counted}" if cell.counted == cell.planned else f"{cell.counted} of {cell.planned}"
        cells = [_named(found, cell), cell.arm, runs, ratio_text(cell.mean), spread_text(cell)]
        cells += [interval_text(cell), ratio_text(cell.least), f"{cell.successes} of {cell.counted}"]
        lines.append(f"| {' | '.join(cells)} |")
    left_out = [p.folder for p in found.plan.problems if p.folder not in found.common]
    if left_out and len(found.plan.problems) > 1:
        why = "some arm has no run that counts there"
        lines += ["", f"Not in the rows over all problems, because {why}: {', '.join(left_out)}."]
    return lines


def _contrasts(found: ComparisonResult) -> list[str]:
    """Arm against arm; of single runs nothing can be said."""
    if not found.contrasts or found.plan.repeats == 1:
        return []
    where = "" if len(found.common) == len(found.plan.problems) else f", at {listed(found.common)}"
    lines = ["", f"Arm against arm{where}:", ""]
    lines += ["| arm | over | ratio of their means | by chance |", "|---|---|---:|---:|"]
    for c in found.contrasts:
        lines.append(f"| {c.first} | {c.second} | {ratio_text(c.ratio)} | {percent(c.chance)} |")
    return lines


def ratio_text(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}×"


def _expenses(found: ComparisonResult) -> list[str]:
    head = [
        "evaluations",
        "of the budget",
        "requests",
        "repairs",
        "tokens",
        "cost",
        "device-seconds",
        "in kernels",
        "seconds",
    ]
    lines = ["For one run, in the mean over those that count.", ""]
    lines += [f"| problem | arm | {' | '.join(head)} |", f"|---|---|{'---:|' * len(head)}"]
    for cell in _shown(found):
        if cell.costs is not None:
            lines.append(f"| {_named(found, cell)} | {cell.arm} | {' | '.join(_spent(cell.costs))} |")
    return lines


def _spent(costs: MeanCosts) -> list[str]:
    kernels = UNKNOWN if costs.kernel_seconds is None else f"{costs.kernel_seconds:.3g}"
    return [
        f"{costs.evaluations:.0f}",
        f"{costs.of_budget:.0f}",
        f"{costs.requests:.1f}",
        f"{costs.repairs:.1f}",
        tokens_text(costs),
        dollars_text(costs),
        f"{costs.device_seconds:.1f}",
        kernels,
        f"{costs.seconds:.1f}",
    ]


def tokens_text(costs: MeanCosts) -> str:
    if not costs.requests:
        return "none"
    if costs.tokens is not None:
        return f"{costs.tokens:.0f}"
    return f"{UNKNOWN}, about {costs.tokens_by_length:.0f} by length" if costs.tokens_by_length else UNKNOWN


def dollars_text(costs: MeanCosts) -> str:
    if not costs.requests:
        return "none"
    return UNKNOWN if costs.dollars is None else f"${costs.dollars:.4f}"


def _rounds(found: ComparisonResult) -> list[str]:
    most = max((len(cell.rounds) for cell in _shown(found)), default=0)
    if not most:
        return ["No run has had a round yet."]
    lines = [
        "The best so far after each round, by the short measurements of the search (geometric mean over "
        "runs; one that has ended keeps what it had). Verified figures are those above.",
        "",
        f"| problem | arm | {' | '.join(map(str, range(1, most + 1)))} |",
        f"|---|---|{'---:|' * most}",
    ]
    for cell in _shown(found):
        if cell.counted:
            last = cell.rounds[-1] if cell.rounds else 1.0
            every = [*cell.rounds, *[last] * (most - len(cell.rounds))]
            own = " | ".join(ratio_text(value) for value in every)
            lines.append(f"| {_named(found, cell)} | {cell.arm} | {own} |")
    return lines


def _attribution(found: ComparisonResult) -> list[str]:
    lines = [
        "Of the runs that won: what of the verified speed-up the winner's template gave as it was written, "
        "and what the search gave on top of that; divided as short measurements say, geometric means. A "
        "kernel without parameters is refactoring alone. Below 1 for refactoring: as it was written the "
        "template was slower than the original.",
        "",
        "| problem | arm | runs | refactoring | search |",
        "|---|---|---:|---:|---:|",
    ]
    for cell in _shown(found):
        own = [str(cell.attributed), ratio_text(cell.refactoring), ratio_text(cell.search)]
        lines.append(f"| {_named(found, cell)} | {cell.arm} | {' | '.join(own)} |")
    return lines


def _runs(found: ComparisonResult) -> list[str]:
    lines = ["| run | status | speed-up | evaluations | rounds | requests | seconds | why it ended |"]
    lines += ["|---|---|---:|---:|---:|---:|---:|---|"]
    places = [(p.folder, arm) for p in found.plan.problems for arm in found.plan.arms]

    def order(run: RunResult) -> tuple[int, int]:
        return places.index((run.planned.problem, run.planned.arm)), run.planned.repeat

    return [*lines, *(f"| {' | '.join(_one(run))} |" for run in sorted(found.runs, key=order))]


def _one(run: RunResult) -> list[str]:
    place, facts = run.planned.place, run.facts
    name = f"[{place}]({RUNS}/{place}/report.md)" if run.status == "finished" else place
    cells = [name, run.status, ratio_text(run.speedup)]
    if facts is None:
        return [*cells, "", "", "", "", safe(run.reason)]
    cells += [str(facts.evaluations), str(len(facts.rounds)), str(facts.requests), f"{facts.seconds:.1f}"]
    return [*cells, safe(run.reason or facts.reason)]
