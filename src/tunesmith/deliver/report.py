"""The report as the user keeps it: JSON for programs, Markdown for people, HTML for notebooks."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from html import escape

from tunesmith.deliver.plots import best_so_far_svg, effects_svg
from tunesmith.deliver.svg import times
from tunesmith.problem.cases import ExtraCase
from tunesmith.problem.codec import encode
from tunesmith.problem.plan import show_sizes
from tunesmith.run.budget import strategy_words
from tunesmith.run.events import ReplacedCase
from tunesmith.run.explain import Explanation, ParamEffect, ValueEffect
from tunesmith.run.report import RULES, Report, config_text, general_text, unfinished_text, workload_cells
from tunesmith.run.rounds import RoundReport
from tunesmith.run.survey import LABELS, SurveyReport
from tunesmith.text import cell, counted, named_values, plain, ratio_text, sentence, table

PLOTS = "plots"  # the folder beside the report
SURVEY_HEAD = "by the compiler | original: | least: | median: | most:"
LONGEST_END = 160  # characters of a reason that the summary has room for
_HOW_TO_READ = (
    "Times are in units of the winner's, by the short measurements of the search. *Measured*: with this "
    "value alone changed. *Model*: estimated from all that was measured, with two deviations to either side. "
    "*At best*: the best tried with this value, where others are changed too."
)


def report_json(report: Report) -> bytes:
    return encode(report) + b"\n"


def report_markdown(report: Report, story: str = "") -> str:
    lines = [f"# {report.problem}", ""]
    built = f", built with {cell(report.compiler)}" if report.compiler else ""
    if report.survey is not None:
        lines += [f"For {cell(report.device)}, which is not here{built}.", "", *_notes(report)]
        lines += _survey(report.survey)
        return "\n".join(lines + _appendix(report)) + "\n"
    lines += [f"{cell(report.device)} ({cell(report.driver)}){built}, {report.judged_by}.", *_what(report)]
    lines += _notes(report)
    if report.origin:
        origin = f"Retuned from {cell(report.origin)}"
        lines += [f"{origin}: nothing was written, what it has was searched again.", ""]
    head = "workload | sizes | before: | after: | speed-up: | 95 % interval | configuration"
    rows = ((w.name, named_values(w.sizes), *workload_cells(w)) for w in report.workloads)
    lines += table(head, rows)
    lines.append("")
    if report.geometric_mean is not None:
        mean = f"Geometric mean {report.geometric_mean:.2f}×"
        lines.append(f"{mean}. General configuration: {general_text(report)}.")
    cases = f"Verified on {counted(report.verified_cases, 'fresh case')}."
    known = "Not verified." if report.unproven else cases
    lines.append(f"{_evaluations(report)}; {sentence(_end(report))} {known} {report.seconds:.1f} s.")
    lines += _tested(report)
    if report.busy is not None:
        lines.append(f"During the search the device was in kernels {report.busy:.0%} of the time.")
    if report.priors:
        lines.append(f"The search began from what earlier runs found: {cell(', '.join(report.priors))}.")
    if report.so_far is not None:
        where = f", in `{report.so_far.file}`" if report.so_far.file else ""
        lines.append(f"So far: {cell(unfinished_text(report.so_far))}{where}.")
    if report.known_first:
        known = counted(report.known_first, "configuration")
        lines.append(f"Up to {known} that did well there came first.")
    if report.pruned:
        built = counted(report.built, "configuration")
        lines += ["", f"Built: {built}. By builds alone these were not measured:", ""]
        pruned = (
            (RULES.get(p.rule, p.rule), p.count, config_text(p.config), cell(p.reason)) for p in report.pruned
        )
        lines += table("rule | how many: | for example | why", pruned)
    if report.rounds:
        lines += _rounds(report)
    lines += _bounds(report)
    if story:
        lines += ["", story]
    if report.finished and report.workloads:
        lines += _effects_section(report)
    return "\n".join(lines + _appendix(report)) + "\n"


def _evaluations(report: Report) -> str:
    counts = ", ".join(f"{n} {status}" for status, n in report.evaluations.items()) or "none"
    whose = f"; {report.tried_by}, which is beside the budget" if report.tried_by else ""
    feasible = counted(report.space.get("feasible", 0), "feasible configuration")
    of = f"{feasible}, {counted(report.space.get('combinations', 0), 'combination')}"
    of = "kernels that were written" if report.noun == "kernel" else of
    return f"{counted(sum(report.evaluations.values()), 'evaluation')} ({counts}{whose}) of {of}"


def _what(report: Report) -> list[str]:
    """Against what, and how the figures came about."""
    if not report.workloads or not report.kernel or report.unproven:
        return [""]
    return [
        f"Before: the original, {cell(report.kernel)}, launched as its problem file says. After: what is "
        "delivered. Speed-ups and intervals are those of the verification: rebuilt in a fresh process, "
        "checked on fresh cases, timed in alternation with the original.",
        "",
    ]


def _notes(report: Report) -> list[str]:
    return [line for note in report.notes for line in (f"Note: {sentence(note)}", "")]


def _end(report: Report) -> str:
    """Why it ended, for the summary: what is said at length stands at the end of the story."""
    long = report.rounds and len(report.reason) > LONGEST_END
    return "why it ended is at the end of the story" if long else report.reason


def _rounds(report: Report) -> list[str]:
    """The story: what was tried, what it gave, why it was kept or dropped, and what does not apply."""
    lines = ["", "## How it came about", ""]
    lines += [strategy_words(report.strategy), ""] if report.noun == "kernel" else []
    rows = []
    for r in report.rounds:
        base = f"{report.noun} {r.base}" if r.base else "the original"
        how = ", ".join(r.moves) or (f"by {r.author}" if r.author else "")
        how = cell(f"{r.library} of the library" if r.library else how)
        figures = r.evaluations, ratio_text(r.speedup), ratio_text(r.gain), ratio_text(r.best)
        rows.append((r.number, how, base, *figures, cell(r.verdict)))
    lines += table("round: | moves | from | tried: | its best: | gain: | best so far: | verdict", rows)
    lines += [
        "",
        "Speed-ups here are by the short measurements of the search; a gain is over the best before it.",
    ]
    if report.chain is not None:
        lines += ["", f"{cell(report.chain.words)}. Delivered is what is best."]
    for r in report.rounds:
        lines += ["", f"**Round {r.number}.** {sentence(r.reason)}", *_plan(r, report.noun), *_analysis(r)]
        lines += [*_drafts(r, report.noun), *_changes(r)]
    if _end(report) != report.reason:
        lines += ["", f"**The end.** {sentence(report.reason)}"]
    lines += _talk(report)
    files = [
        f"`{name}`" + (f" ({report.noun} {own})" if own else "") for name, own in report.templates.items()
    ]
    return [*lines, "", f"Delivered: {', '.join(files)}."] if files else lines


def _plan(r: RoundReport, noun: str) -> list[str]:
    """What was asked for and hoped for, and which part of the gain each stage has."""
    lines = [f"What to change: {sentence(r.what)}"] if r.what else []
    if r.expected is not None:
        lines.append(f"Hoped for: {r.expected:.2f}×.")
    if r.author:
        lines.append(f"Written by {cell(r.author)}.")
    if r.default is not None and r.speedup is not None and noun == "template":
        searched = r.speedup / r.default if r.default else 0.0
        lines.append(f"By refactoring alone {r.default:.2f}×, by search {searched:.2f}× on top of that.")
    return ["", " ".join(lines)] if lines else []


def _analysis(r: RoundReport) -> list[str]:
    """As what it is: a model's words, which no measurement stands behind."""
    if not r.analysis:
        return []
    words = [f"> - {sentence(line.removeprefix('- '))}" for line in r.analysis.splitlines()]
    return ["", "The analyst, a model, before this round, in its own words, not measured:", "", *words]


def _changes(r: RoundReport) -> list[str]:
    if not r.changes:
        return []
    longest = max((len(run) for line in r.changes for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    summary = f"<details><summary>What changed, {counted(len(r.changes), 'line')}</summary>"
    return ["", summary, "", f"{fence}diff", *map(plain, r.changes), fence, "", "</details>"]


def _talk(report: Report) -> list[str]:
    if report.talk is None:
        return []
    cost = report.talk
    known = (("sent", cost.sent), ("received", cost.received))
    tokens = ", ".join(f"{'unknown' if n is None else n} tokens {name}" for name, n in known)
    dollars = "unknown" if cost.dollars is None else f"${cost.dollars:.4f}"
    asked = f"{counted(cost.requests, 'request')}, {counted(cost.replies, 'reply', 'replies')}"
    lines: list[str] = []
    if report.added is not None:
        cases, refused = report.added.cases, report.added.aside
        note = report.added.note or f"The tester added {counted(len(cases), 'case')}"
        lines += ["", sentence(note), *([""] if cases or refused else [])]
        lines += [f"- {_case(c)}" + (f": {cell(c.why)}" if c.why else "") for c in cases]
        lines += [f"- set aside: {_case(c)}, {cell(why)}" for c, why in refused]
    return [*lines, "", f"Models ({cell(report.models)}): {asked}, {tokens}, cost {dollars}."]


def _tested(report: Report) -> list[str]:
    """How far a verification went, and the cases that were replaced."""
    lines: list[str] = []
    if report.where:
        ends = " and ".join(report.where)
        why = f" ({report.shown})" if report.shown else ""
        lines.append(
            f"The general configuration serves where {cell(ends)}{cell(why)}; elsewhere the original does."
        )
    lines += [sentence(cell(line, 600)) for line in report.sanitizers]
    replaced = [f"- {_case(case)}, {cell(case.reason)}" for case in report.replaced]
    return lines + (
        ["", "Cases that the original itself fails, replaced:", "", *replaced, ""] if replaced else []
    )


def _case(case: ExtraCase | ReplacedCase) -> str:
    return cell(f"{show_sizes(dict(case.sizes))} ({case.distribution})")


def _drafts(r: RoundReport, noun: str) -> list[str]:
    lines: list[str] = []
    for draft in r.drafts:
        count = "" if draft.feasible is None else f", {counted(draft.feasible, 'feasible configuration')}"
        why = f": {cell(draft.why)}" if draft.why else ""
        status = f"{draft.status}{count}{why}"
        if noun == "kernel" and draft.status == "searched":
            status = "is right"
        lines.append(f"- {noun} {draft.template} {status}")
        lines += [f"  - excluded, because the gate found it wrong: {rule}" for rule in draft.forbidden]
        lines += [f"  - {cell(note)}" for note in draft.notes]
    lines += [f"- {cell(move)} does not apply: {cell(why)}" for move, why in r.refused.items()]
    return ["", *lines] if lines else []


def _bounds(report: Report) -> list[str]:
    """What was profiled, and where that led the search."""
    lines: list[str] = []
    if report.bounds:
        lines += ["", "## What bounds it", ""]
        rows = []
        for b in report.bounds:
            before = b.workload, b.bound or "not known", _distance(b.distance)
            after = b.tuned_bound or "the original stays", _distance(b.tuned_distance)
            rows.append((*before, *after, cell(b.summary or b.note)))
        lines += table("workload | before | × its floor: | after | × its floor: | in words", rows)
        if report.profile_notes:
            lines += ["", *(f"- {cell(note)}" for note in report.profile_notes)]
    if report.steering:
        lines += ["", "Where the search looked first, by these diagnoses:", ""]
    for step in report.steering:
        focus = f"at {cell(step.focus)} ({counted(step.inside, 'configuration')})"
        where = "everywhere alike" if not step.focus else focus if step.moved else "as before"
        lines.append(f"- after {counted(step.after, 'evaluation')} {where}: {cell(step.reason)}")
    return lines


def _distance(distance: float | None) -> str:
    return "" if distance is None else f"{distance:.2f}"


def plot_files(report: Report) -> dict[str, bytes]:
    """What the report shows, by its name in the folder of plots."""
    files = {"best-so-far.svg": best_so_far_svg(report.history, report.problem)}
    for explanation in report.explanations:
        files[_effects_name(explanation)] = effects_svg(explanation, report.problem)
    return files


def _effects_name(explanation: Explanation) -> str:
    return f"effects-{explanation.workload}.svg" if explanation.workload else "effects.svg"


def _effects_section(report: Report) -> list[str]:
    lines = ["", "## Effect of each parameter", ""]
    if report.noun == "kernel":
        lines += ["The kernels have no parameters, so there is nothing to compare."]
    elif not report.explanations:
        lines += ["The original stays, so there is no winner to explain."]
    for explanation in report.explanations:
        lines += [*_explained(explanation), ""]
        lines += [f"![What other values would cost]({PLOTS}/{_effects_name(explanation)})", ""]
    if report.explanations:
        lines += [_HOW_TO_READ]
    return [*lines, "", f"![Best speed-up so far]({PLOTS}/best-so-far.svg)"]


def _explained(explanation: Explanation) -> list[str]:
    whose = f"the winner at {explanation.workload}" if explanation.workload else "the general configuration"
    lines = [f"For {whose}, {config_text(explanation.config)}:", ""]
    if not explanation.params:
        return [*lines, "no parameter has a second value."]
    rows = [
        (p.name, p.value, *_effect(p, explanation.is_clear(p)), ", ".join(map(_other, p.others)))
        for p in explanation.params
    ]
    lines += table("parameter | winner: | effect | from | other values", rows)
    lines += ["", f"Differences below {times(explanation.noticed)} may be chance."]
    if explanation.explained is not None and any(p.source == "model" for p in explanation.params):
        share = f"{explanation.explained:.0%}"
        fitted = f"The model is fitted to {counted(explanation.modelled, 'configuration')}"
        lines += [f"{fitted}; of each left out in turn it foretells {share} of the variance."]
    return lines


def _effect(param: ParamEffect, is_clear: bool) -> tuple[str, str]:
    """What a reader takes away, and how it is known."""
    if param.effect is None:
        best = [(v.best, v.value) for v in param.others if v.best is not None]
        if best:
            time, value = min(best)
            return f"{times(time)} at best with {value}", "others changed too"
        return "not known", ""
    if not is_clear:
        return ("none noticed" if param.source == "measured" else "not clear"), param.source
    if param.effect < 1:
        return f"{times(1 / param.effect)} faster with {param.with_value}", param.source
    return f"{times(param.effect)} slower with {param.with_value}", param.source


def _other(value: ValueEffect) -> str:
    best = f", at best {times(value.best)}" if value.best is not None else ""
    if value.interval is not None and value.slower is not None:
        low, high = value.interval
        return f"{value.value}: {times(value.slower)} (model, {low:.2f} to {high:.2f})"
    if value.slower is not None:
        return f"{value.value}: {times(value.slower)}"
    if value.source == "failed":
        return f"{value.value}: {_name(value.why) or 'failed'}"
    if value.source == "excluded":
        return f"{value.value}: excluded by {_name(value.why)}{best}"
    return f"{value.value}: not tried{best}"


def survey_counts(survey: SurveyReport) -> str:
    return ", ".join(f"{n} {'can run' if s == 'ok' else s}" for s, n in survey.statuses.items()) or "none"


def survey_rows(survey: SurveyReport) -> list[tuple[str, ...]]:
    """What the compiler says: of the original; the least, the median and the most of configurations."""
    return [
        (LABELS[n], "" if s.original is None else str(s.original), str(s.least), f"{s.median:g}", str(s.most))
        for n, s in survey.spans.items()
    ]


def _survey(survey: SurveyReport) -> list[str]:
    built = f"{sum(survey.statuses.values())} of {survey.planned} configurations built"
    lines = [f"{built} ({survey_counts(survey)})."]
    if survey.spans:
        lines += ["", *table(SURVEY_HEAD, survey_rows(survey))]
    if survey.spilling:
        spilling = ((config_text(s.config), s.spills) for s in survey.spilling)
        lines += ["", "## What spills registers", "", *table("configuration | bytes:", spilling)]
    return lines


def _appendix(report: Report) -> list[str]:
    lines: list[str] = []
    if report.failures:
        failures = ((config_text(f.config, f.template), f.status, cell(f.detail)) for f in report.failures)
        lines += ["", "## What did not work", "", *table("configuration | status | why", failures)]
    lines += ["", "## Digests and versions", ""]
    lines += [f"- {name}: `{value}`" for name, value in (*report.digests.items(), *report.versions.items())]
    return lines


def _name(text: str) -> str:
    """An identifier as it is, anything else made harmless."""
    return text if text.isascii() and text.isidentifier() else cell(text)


# -- HTML ---------------------------------------------------------------------------------------------------

_HEAD = ("workload", "sizes", "before", "after", "speed-up", "95 % interval", "configuration")


def report_html(report: Report, folder: str) -> str:
    """For a notebook. Names and texts are not ours, so all are escaped. Plots are images: whatever a text in
    one says, no script and no style of it acts on the page."""
    where = f"on {report.device}" if report.survey is None else f"for {report.device}, which is not here"
    parts = [f"<p><b>{_html(report.problem)}</b> {_html(where)}</p>"]
    if report.workloads:
        rows = [(w.name, named_values(w.sizes), *workload_cells(w)) for w in report.workloads]
        parts.append(f"<table><thead>{_html_row(_HEAD, 'th')}</thead>")
        parts.append(f"<tbody>{''.join(_html_row(row, 'td') for row in rows)}</tbody></table>")
    if report.geometric_mean is not None:
        mean = f"Geometric mean {report.geometric_mean:.2f}×, {report.judged_by}."
        parts.append(f"<p>{_html(mean)} {_html(f'General configuration: {general_text(report)}.')}</p>")
    elif not report.finished:
        parts.append(f"<p>Not finished: {_html(report.reason)}</p>")
    elif report.unproven:
        parts.append(f"<p>{_html(report.judged_by)}</p>")
    parts += [f"<p>Note: {_html(note)}</p>" for note in report.notes]
    for name, data in plot_files(report).items():
        source = f"data:image/svg+xml;base64,{b64encode(data).decode()}"
        parts.append(f'<p><img src="{source}" alt="{_html(name)}" style="max-width: 100%"></p>')
    parts.append(f"<p><code>{_html(folder)}</code></p>")
    return f"<div>{''.join(parts)}</div>"


def _html_row(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_html(cell)}</{tag}>' for cell in cells)}</tr>"


def _html(text: str) -> str:
    return escape(plain(text), quote=True)
