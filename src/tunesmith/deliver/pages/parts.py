"""What a report says, in parts: its first screen here, all else in `report_sections`.

Parts are plain text, neither Markdown nor HTML, and much of it is in the words of others: who shows a part
makes it harmless.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tunesmith.base.text import (
    as_sentence,
    first_line,
    flatten_text,
    format_count,
    named_values,
    one_line,
    ratio_text,
    truncate_text,
)
from tunesmith.deliver import names_for, no_target_takes
from tunesmith.deliver.pages.plots import format_ratio
from tunesmith.problem.plan import ExtraCase, show_sizes
from tunesmith.run.budget import BudgetUse, strategy_words
from tunesmith.run.devices import DeviceUse
from tunesmith.run.events import ReplacedCase
from tunesmith.run.explain import Explanation, ParamEffect, ValueEffect
from tunesmith.run.figures import Figure
from tunesmith.run.folder import CERTIFICATE
from tunesmith.run.journal import is_broken
from tunesmith.run.report import LABELS, Failure, Report, SurveyReport, UnfinishedBest, WorkloadReport
from tunesmith.run.rounds import BY_SEARCH, RoundReport

SHOWN = 4  # configurations of a kind, on a line
MORE = "all the rest"
TARGETS = 4  # of an export, on a line
NOTES, NOTE = 2, 83  # on the first screen: so many, and of each so many characters


@dataclass(frozen=True)
class Grid:
    """A table. `head` names its columns with ` | ` between them, a colon behind those of figures."""

    head: str
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Items:
    lines: Sequence[str]


@dataclass(frozen=True)
class Diff:
    lines: Sequence[str]


@dataclass(frozen=True)
class Picture:
    alt: str
    file: str  # in the folder of plots


Part = str | Grid | Items | Diff | Picture  # a text is a paragraph


@dataclass(frozen=True)
class ReportSection:
    title: str  # ours
    parts: Sequence[Part]
    key: str = ""  # what it is about, in one word


def interval_text(w: WorkloadReport) -> str:
    return w.figure.span if w.config is not None else "the original stays"


def mean_text(figure: Figure) -> str:
    return figure.words if figure.low == figure.high else f"{figure.words} ({figure.span})"


def config_text(config: dict[str, int] | None, template: str = "") -> str:
    if config is None:
        return "original"
    values = named_values(config)
    if not values:
        return f"kernel {template}" if template else "as written"
    return f"{values} of template {template}" if template else values


def general_text(report: Report) -> str:
    """The general configuration, and where it serves if that is less than all sizes."""
    found = config_text(report.general, report.general_template)
    if report.general_is_baked and report.beyond:
        return f"{found}, built for the workloads' sizes; the original serves where no build does"
    if report.general_is_baked:
        return f"{found}, built for the workloads' sizes alone; the original serves all others"
    return found


def serves_text(report: Report, most: int) -> str:
    """Where tuned kernels serve, and what that rests on. What is too long is the condition's end: the whole
    of it is behind this, and in dispatch.json."""
    if report.serves is None:
        others = " and others with the same builds" if report.beyond else ""
        return f"the workloads' sizes{others}; elsewhere the original"
    tail = ", timed at the workloads alone"
    if report.least:
        tail = f", timed at {format_count(report.timed, 'size')}, least {report.least:.2f}×"
    if not report.serves:
        return f"every size of the contract{tail}"
    tail += "; elsewhere the original"
    return f"{_first_terms(flatten_text(report.serves), max(most - len(tail), 20))}{tail}"


def _first_terms(condition: str, most: int) -> str:
    """As many terms of a conjunction as there is room for; a number that is cut short is another one."""
    if len(condition) <= most:
        return condition
    whole = condition[: most - len(" …")].rpartition(" and ")[0]
    return f"{whole} and …" if whole else truncate_text(condition, most)


def unfinished_text(found: UnfinishedBest) -> str:
    what = f"{found.noun} {found.template} by {found.by}"
    if found.status == "drafted":
        return f"{what} is written, and not checked yet"
    if found.speedup is None:
        return f"{what}, nothing measured"
    values = named_values(found.config or {})
    return f"{what}, {found.speedup:.2f}×{f' at {values}' if values else ''} {BY_SEARCH}"


def status_text(report: Report) -> tuple[str, str]:
    """Whether a run that has not ended is at work, and what it has so far."""
    steps = report.history.best[0].steps if report.history.best and not report.unproven else ()
    best = f"; best so far {steps[-1][1]:.2f}× {BY_SEARCH}" if steps else ""
    if report.so_far is not None:
        best = f"; so far {one_line(unfinished_text(report.so_far))}"
    if report.live:
        return "live", f"running, {report.seconds:.0f} s so far{best}"
    return "stopped", f"not finished, after {report.seconds:.0f} s{best}"


def report_title(report: Report) -> str:
    where = f"on {report.device}" if report.survey is None else f"for {report.device}, which is not here"
    return f"{report.problem} {where}{f', built with {report.compiler}' if report.compiler else ''}"


def verified_grid(report: Report) -> Grid | None:
    """What was verified; where the device is absent what compilers say."""
    if report.survey is not None:
        return Grid("by the compiler | original: | least: | median: | most:", _survey_rows(report.survey))
    rows = []
    for w in report.workloads:
        figures = f"{w.baseline_us:.1f} µs", f"{w.tuned_us:.1f} µs", w.figure.words
        rows.append((w.name, named_values(w.sizes), *figures, interval_text(w)))
    return Grid("workload | sizes | before: | after: | speed-up: | 95 % interval", rows) if rows else None


def report_facts(report: Report, folder: str, go_on: str, note: int = NOTE) -> list[tuple[str, str]]:
    """What stands below the table, each with its name; paths and commands can be copied into a shell. An
    empty `folder`: seen from inside it. `go_on`: the command for a run that is not finished."""
    path = partial(_file_path, folder)
    found: list[tuple[str, str]] = []
    if report.figure is not None:
        cases = format_count(report.verified_cases, "fresh case")
        proven = f"verified on {cases}; " if report.verified_cases else ""
        found.append(("geometric mean", f"{mean_text(report.figure)}, {proven}{report.judged_by}"))
    elif report.unproven:
        found.append(("not verified", report.unproven))
    found += [("not certified", one_line(f"{w.name}: {w.doubt}")) for w in report.workloads if w.doubt]
    if not report.finished and (report.survey is None or report.live or report.so_far):
        found.append(status_text(report))
    found += [("note", one_line(text, note)) for text in report.notes[:NOTES]]
    if report.survey is not None:
        found += _survey_facts(report, report.survey)
    elif report.failures and not report.evaluations.get("ok"):
        found.append(("nothing worked", _failure_text(report.failures[0])))
    if report.finished and report.workloads:
        there = f" in {path('tuned/dispatch.json')}" if report.tuned else ""
        won = f"{report.winners - len(report.left_out)} of {format_count(report.winners, 'tuned kernel')}"
        found.append(("delivered", f"{won}{there}" if report.winners else "nothing, the original stays"))
        if report.winners > len(report.left_out):
            found.append(("serves", serves_text(report, note)))
        found += [("not delivered", one_line(why)) for why in report.left_out]
    if report.rounds or report.origin:
        found += [(report.noun, path(name)) for name in report.templates]
    if report.so_far is not None and report.so_far.file:
        found.append((f"{report.noun} so far", path(report.so_far.file)))
    return found + _next_facts(report, folder, go_on)


def _next_facts(report: Report, folder: str, go_on: str) -> list[tuple[str, str]]:
    """What else there is, and the command that comes next."""
    place, aside = (shlex.quote(folder), "") if folder else (".", " (in this folder)")
    found: list[tuple[str, str]] = []
    certified = report.finished and not report.unproven
    if report.finished and not is_broken(report.unproven) and folder:
        found.append(
            (
                "report",
                f"{_file_path(folder, 'report.md')}{f', {CERTIFICATE} beside it' if certified else ''}",
            )
        )
    elif certified:
        found.append(("certificate", _file_path(folder, CERTIFICATE)))
    if folder:
        found.append((MORE, f"tunesmith report {place} --full"))
    if certified:
        # Of a run without winners there is nothing to take home.
        targets = names_for(report.language)
        listed = ", ".join([*targets[:TARGETS], *(["…"] if len(targets) > TARGETS else [])])
        forms = f"tunesmith export {place} --to TARGET{aside}: {listed}"
        if report.winners and not targets:
            found.append(("export", no_target_takes(report.language)))
        found.append(("next", forms if report.winners and targets else f"tunesmith verify {place}{aside}"))
    elif not report.finished and not report.live:
        found.append(("resume it with", go_on or f"tunesmith resume {place}{aside}"))
    return found


def _file_path(folder: str, name: str) -> str:
    """As it can be copied into a shell."""
    return shlex.quote(f"{folder}/{name}") if folder else name


def _failure_text(f: Failure) -> str:
    return f"{config_text(f.config, f.template)}: {f.status}, {first_line(f.detail)}"


def _survey_rows(survey: SurveyReport) -> list[tuple[str, ...]]:
    """What the compiler says: of the original; the least, the median and the most of configurations."""
    return [
        (LABELS[n], "" if s.original is None else str(s.original), str(s.least), f"{s.median:g}", str(s.most))
        for n, s in survey.spans.items()
    ]


def _survey_facts(report: Report, survey: SurveyReport) -> list[tuple[str, str]]:
    """What builds alone tell of the configurations, and an example of each kind of trouble."""
    counts = ", ".join(f"{n} {'can run' if s == 'ok' else s}" for s, n in survey.statuses.items()) or "none"
    found = [("configurations", f"{sum(survey.statuses.values())} of {survey.planned} built ({counts})")]
    found += [("checked", words) for words in survey.rehearsed]
    if survey.spilling:
        worst = [f"{config_text(s.config)} ({s.spills} bytes)" for s in survey.spilling[:SHOWN]]
        more = [f"{len(survey.spilling) - SHOWN} more"] if len(survey.spilling) > SHOWN else []
        found.append(("spilling", ", ".join(worst + more)))
    first: dict[str, Failure] = {}
    for failure in report.failures:
        first.setdefault(failure.status, failure)
    return found + [(s, f"{config_text(f.config)}: {first_line(f.detail)}") for s, f in first.items()]


# What a report has behind its first screen: the run, its rounds, what bounds the kernels, the effect of each
# parameter, what did not work.
BEST = "best-so-far.svg"  # in the folder of plots
TOLD = 300  # characters of an answer of the laboratory
LONGEST_END = 160  # characters of a reason that the summary has room for
# What people call the rules of `pruning`.
RULES = {
    "cannot_run": "cannot run", "same_code": "same as another",
    "spills": "spills", "occupancy": "little occupancy",
}  # fmt: skip


def report_sections(report: Report) -> list[ReportSection]:
    """All that a report has behind its first screen; the empty ones are left out."""
    found = [ReportSection("The run: configurations, evaluations, notes", _run_parts(report), "run")]
    rounds = _round_parts(report) if report.rounds else []
    found.append(ReportSection(f"How it came about: rounds, {BY_SEARCH}", rounds, "rounds"))
    found.append(ReportSection("What bounds it", _bound_parts(report), "bounds"))
    if report.survey is not None:
        spilling = [(config_text(s.config), s.spills) for s in report.survey.spilling]
        grids = [Grid("configuration | bytes:", spilling)] if spilling else []
        found.append(ReportSection("What spills registers", grids, "spills"))
    elif report.finished and report.workloads:
        title = f"Effect of each parameter, {BY_SEARCH}"
        found.append(ReportSection(title, _effect_parts(report), "effects"))
    failures = [(config_text(f.config, f.template), f.status, one_line(f.detail)) for f in report.failures]
    failed = [Grid("configuration | status | why", failures)] if failures else []
    found.append(ReportSection(f"What did not work: {len(failures)}", failed, "failures"))
    names = (*report.digests.items(), *report.versions.items(), ("driver", report.driver))
    lines = Items([f"{name}: {value}" for name, value in names])
    found.append(ReportSection("Digests and versions", [lines], "digests"))
    return [section for section in found if section.parts]


def _run_parts(report: Report) -> list[Part]:
    parts: list[Part] = []
    if report.workloads and report.kernel and not report.unproven:
        parts.append(
            f"Before: the original, {one_line(report.kernel)}, launched as its problem file says. After: "
            "what is delivered. Speed-ups and intervals are those of the verification: rebuilt in a fresh "
            "process, checked on fresh cases, timed in alternation with the original."
        )
    parts += [f"Note: {as_sentence(note)}" for note in report.notes]
    if report.origin:
        origin = f"Retuned from {one_line(report.origin)} in {report.seconds:.1f} s"
        parts.append(f"{origin}: nothing was written, what it has was searched again.")
    if report.workloads:
        rows = [(w.name, config_text(w.config, w.template)) for w in report.workloads]
        parts += [Grid("workload | configuration", rows), f"General configuration: {general_text(report)}."]
    if report.survey is None:
        ended = as_sentence(_end_reason(report))
        parts.append(f"{_evaluations_text(report)}; {ended} {report.seconds:.1f} s.")
        if report.budgets:
            parts.append(f"Used of the budgets: {'; '.join(map(_budget_text, report.budgets))}.")
    if report.where:
        why = f" ({report.shown})" if report.shown else ""
        where = " and ".join(report.where)
        parts.append(f"The general configuration serves where {where}{why}; elsewhere the original does.")
    if report.beyond:
        parts.append(f"Builds with sizes in them serve other sizes too: {report.beyond}.")
    parts += [as_sentence(one_line(line, 600)) for line in report.sanitizers]
    if report.replaced:
        replaced = [f"{_extra_case_text(case)}, {one_line(case.reason)}" for case in report.replaced]
        parts += ["Cases that the original itself fails, replaced:", Items(replaced)]
    return parts + _search_parts(report)


def _search_parts(report: Report) -> list[Part]:
    parts: list[Part] = []
    if report.devices:
        parts.append("Scores are by the original's time on the same device; finalists ran on one alone.")
        used = [(d.name, d.measured, _device_slowdown(d), d.left_out) for d in report.devices]
        parts.append(Grid("device | trials: | original's time: | left out", used))
    if report.busy is not None:
        parts.append(f"During the search the device was in kernels {report.busy:.0%} of the time.")
    if report.priors:
        parts.append(f"The search began from what earlier runs found: {one_line(', '.join(report.priors))}.")
    if report.known_first:
        known = format_count(report.known_first, "configuration")
        parts.append(f"Up to {known} that did well there came first.")
    if report.pruned:
        built = format_count(report.built, "configuration")
        parts.append(f"Built: {built}. By builds alone these were not measured:")
        rules = ((RULES.get(p.rule, p.rule), p) for p in report.pruned)
        pruned = [(name, p.count, config_text(p.config), one_line(p.reason)) for name, p in rules]
        parts.append(Grid("rule | how many: | for example | why", pruned))
    return parts


def _device_slowdown(device: DeviceUse) -> str:
    return f"{device.slower:.3f}×" if device.slower is not None else "not known"


_BUDGETS = {
    "rounds": "{used:.0f}{of} rounds",
    "evaluations": "{used:.0f}{of} evaluations",
    "seconds": "{used:.1f}{of} s",
    "device_seconds": "{used:.1f}{of} s on the device",
    "tokens": "{used:.0f}{of} tokens",
    "dollars": "${used:.4f}{of}",
}


def _budget_text(one: BudgetUse) -> str:
    of = "" if one.limit is None else f" of {'$' if one.what == 'dollars' else ''}{one.limit:g}"
    if one.used is None:
        return f"unknown{of} of money" if one.what == "dollars" else f"unknown{of} {one.what}"
    about = "about " if one.by_length else ""
    free = " (no limit)" if one.limit is None else ""
    return about + _BUDGETS[one.what].format(used=one.used, of=of) + free


def _evaluations_text(report: Report) -> str:
    counts = ", ".join(f"{n} {status}" for status, n in report.evaluations.items()) or "none"
    whose = f"; {report.tried_by}, which is beside the budget" if report.tried_by else ""
    feasible = format_count(report.space.get("feasible", 0), "feasible configuration")
    of = f"{feasible}, {format_count(report.space.get('combinations', 0), 'combination')}"
    of = "kernels that were written" if report.noun == "kernel" else of
    return f"{format_count(sum(report.evaluations.values()), 'evaluation')} ({counts}{whose}) of {of}"


def _end_reason(report: Report) -> str:
    """Why it ended, for the summary: what is said at length stands at the end of the story."""
    long = report.rounds and len(report.reason) > LONGEST_END
    return "why it ended is at the end of the story" if long else report.reason


def _round_parts(report: Report) -> list[Part]:
    """The story: what was tried, what it gave, why it was kept or dropped, and what does not apply."""
    parts: list[Part] = [strategy_words(report.strategy)] if report.noun == "kernel" else []
    rows = []
    for r in report.rounds:
        base = f"{report.noun} {r.base}" if r.base else "the original"
        none = "no moves" if report.noun == "template" else "a kernel"
        how = ", ".join(r.moves) or (f"by {r.author}" if r.author else none)
        how = f"plainly, {how}" if r.plain else how
        how = one_line(f"{r.library} of the library" if r.library else how)
        figures = r.evaluations, ratio_text(r.speedup), ratio_text(r.gain), ratio_text(r.best)
        rows.append((r.number, how, base, *figures, one_line(r.verdict)))
    parts.append(f"Speed-ups here are {BY_SEARCH}; a gain is over the best before it.")
    parts.append(Grid("round: | moves | from | tried: | its best: | gain: | best so far: | verdict", rows))
    if report.chain is not None:
        parts.append(f"{one_line(report.chain.words)}. Delivered is what is best.")
    for r in report.rounds:
        parts += [f"Round {r.number}. {as_sentence(r.reason)}", *_plan_parts(r, report.noun)]
        if r.analysis:  # a model's words, which no measurement stands behind
            parts.append("The analyst, a model, before this round, in its own words, not measured:")
            parts.append(Items([as_sentence(line.removeprefix("- ")) for line in r.analysis.splitlines()]))
        parts += [Items(lines)] if (lines := _draft_lines(r, report.noun)) else []
        parts += [Diff(r.changes)] if r.changes else []
    if _end_reason(report) != report.reason:
        parts.append(f"The end. {as_sentence(report.reason)}")
    parts += _dialogue_parts(report)
    files = [name + (f" ({report.noun} {own})" if own else "") for name, own in report.templates.items()]
    return [*parts, f"Delivered: {', '.join(files)}."] if files else parts


def _plan_parts(r: RoundReport, noun: str) -> list[Part]:
    """What was asked for and hoped for, and which part of the gain each stage has."""
    said = [f"What to change: {as_sentence(r.what)}"] if r.what else []
    if r.expected is not None:
        said.append(f"Hoped for: {r.expected:.2f}×.")
    if r.plain:
        said.append("A model was asked only to rewrite the kernel plainly, so that the expert can read it.")
    if r.on and not r.what:
        said.append(f"By the expert's moves on {noun} {r.on}, the kernel as {one_line(r.author)} rewrote it.")
    elif r.author:
        said.append(f"Written by {one_line(r.author)}.")
    if r.default is not None and r.speedup is not None and noun == "template":
        searched = r.speedup / r.default if r.default else 0.0
        said.append(f"As it was written {r.default:.2f}×, other values {searched:.2f}× on top, {BY_SEARCH}.")
    return [" ".join(said)] if said else []


def _draft_lines(r: RoundReport, noun: str) -> list[str]:
    lines: list[str] = []
    for draft in r.drafts:
        status = draft.status
        if draft.feasible is not None:
            status += f", {format_count(draft.feasible, 'feasible configuration')}"
        status += f": {one_line(draft.why)}" if draft.why else ""
        own = f"{noun} {draft.template}"
        lines.append(f"{own} {'is right' if noun == 'kernel' and draft.status == 'searched' else status}")
        lines += [f"{own}: excluded, because the gate found it wrong: {rule}" for rule in draft.forbidden]
        lines += [f"{own}: {one_line(note)}" for note in draft.notes]
    return lines + [f"{one_line(move)} does not apply: {one_line(why)}" for move, why in r.refused.items()]


def _dialogue_parts(report: Report) -> list[Part]:
    if (cost := report.talk) is None:
        return []
    parts: list[Part] = []
    if report.added is not None:
        cases, refused = report.added.cases, report.added.aside
        parts.append(as_sentence(report.added.note or f"The tester added {format_count(len(cases), 'case')}"))
        lines = [f"{_extra_case_text(c)}{f': {one_line(c.why)}' if c.why else ''}" for c in cases]
        lines += [f"set aside: {_extra_case_text(c)}, {one_line(why)}" for c, why in refused]
        parts += [Items(lines)] if lines else []
    known = (("sent", cost.sent), ("received", cost.received))
    tokens = ", ".join(f"{'unknown' if n is None else n} tokens {name}" for name, n in known)
    dollars = "unknown" if cost.dollars is None else f"${cost.dollars:.4f}"
    asked = f"{format_count(cost.requests, 'request')}, {format_count(cost.replies, 'reply', 'replies')}"
    failed = f" {cost.lost} of these tokens went to attempts that failed." if cost.lost else ""
    if cost.uncounted:
        failed += f" {format_count(cost.uncounted, 'attempt')} broke off, and nobody said what that took."
    return [*parts, f"Models ({one_line(report.models)}): {asked}, {tokens}, cost {dollars}.{failed}"]


def _extra_case_text(case: ExtraCase | ReplacedCase) -> str:
    return one_line(f"{show_sizes(dict(case.sizes))} ({case.distribution})")


def _bound_parts(report: Report) -> list[Part]:
    """What was profiled, and where that led the search."""
    parts: list[Part] = []
    if report.bounds:
        rows = []
        for b in report.bounds:
            before = b.workload, b.bound or "not known", _distance_text(b.distance)
            after = b.tuned_bound or "the original stays", _distance_text(b.tuned_distance)
            rows.append((*before, *after, one_line(b.summary or b.note)))
        parts.append(Grid("workload | before | × its floor: | after | × its floor: | in words", rows))
        parts += [Items([one_line(n) for n in report.profile_notes])] if report.profile_notes else []
    lines: list[str] = []
    for step in report.steering:
        focus = f"at {one_line(step.focus)} ({format_count(step.inside, 'configuration')})"
        where = "everywhere alike" if not step.focus else focus if step.moved else "as before"
        lines.append(f"after {format_count(step.after, 'evaluation')} {where}: {one_line(step.reason)}")
    return [*parts, "Where the search looked first, by these diagnoses:", Items(lines)] if lines else parts


def _distance_text(distance: float | None) -> str:
    return "" if distance is None else f"{distance:.2f}"


def effects_file(explanation: Explanation) -> str:
    return f"effects-{explanation.workload}.svg" if explanation.workload else "effects.svg"


def _effect_parts(report: Report) -> list[Part]:
    parts: list[Part] = []
    if report.noun == "kernel":
        parts.append("The kernels have no parameters, so there is nothing to compare.")
    elif not report.explanations:
        parts.append("The original stays, so there is no winner to explain.")
    for explanation in report.explanations:
        parts += _explanation_parts(explanation)
        parts.append(Picture("What other values would cost", effects_file(explanation)))
    if report.explanations:
        parts.append(
            f"Times are in units of the winner's, {BY_SEARCH}. Measured: with this value alone changed. "
            "Model: estimated from all that was measured, with two deviations to either side. At best: the "
            "best tried with this value, where others are changed too."
        )
    return [*parts, Picture(f"Best speed-up so far, {BY_SEARCH}", BEST)]


def _explanation_parts(explanation: Explanation) -> list[Part]:
    whose = f"the winner at {explanation.workload}" if explanation.workload else "the general configuration"
    parts: list[Part] = [f"For {whose}, {config_text(explanation.config)}:"]
    if not explanation.params:
        return [*parts, "no parameter has a second value."]
    rows = []
    for p in explanation.params:
        effect = _effect_cells(p, explanation.is_clear(p))
        rows.append((p.name, p.value, *effect, ", ".join(map(_other_value_text, p.others))))
    parts.append(Grid("parameter | winner: | effect | from | other values", rows))
    parts.append(f"Differences below {format_ratio(explanation.noticed)} may be chance.")
    if explanation.explained is not None and any(p.source == "model" for p in explanation.params):
        share = f"{explanation.explained:.0%}"
        fitted = f"The model is fitted to {format_count(explanation.modelled, 'configuration')}"
        parts.append(f"{fitted}; of each left out in turn it foretells {share} of the variance.")
    return parts


def effect_text(explanation: Explanation, param: ParamEffect) -> str:
    """What a parameter's value is worth, in a sentence."""
    effect, source = _effect_cells(param, explanation.is_clear(param))
    return f"{param.value} won; {effect}{f' ({source})' if source else ''}, {BY_SEARCH}."


def _effect_cells(param: ParamEffect, is_clear: bool) -> tuple[str, str]:
    """What a reader takes away, and how it is known."""
    if param.effect is None:
        best = [(v.best, v.value) for v in param.others if v.best is not None]
        if best:
            time, value = min(best)
            return f"{format_ratio(time)} at best with {value}", "others changed too"
        return "not known", ""
    if not is_clear:
        return ("none noticed" if param.source == "measured" else "not clear"), param.source
    if param.effect < 1:
        return f"{format_ratio(1 / param.effect)} faster with {param.with_value}", param.source
    return f"{format_ratio(param.effect)} slower with {param.with_value}", param.source


def _other_value_text(value: ValueEffect) -> str:
    best = f", at best {format_ratio(value.best)}" if value.best is not None else ""
    if value.interval is not None and value.slower is not None:
        low, high = value.interval
        return f"{value.value}: {format_ratio(value.slower)} (model, {low:.2f} to {high:.2f})"
    if value.slower is not None:
        return f"{value.value}: {format_ratio(value.slower)}"
    if value.source == "failed":
        return f"{value.value}: {one_line(value.why) or 'failed'}"
    if value.source == "excluded":
        return f"{value.value}: excluded by {one_line(value.why)}{best}"
    return f"{value.value}: not tried{best}"
