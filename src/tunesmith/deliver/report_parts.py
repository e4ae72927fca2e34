"""What a report says, in parts: its first screen here, all else in `report_sections`.

Parts are plain text, neither Markdown nor HTML, and much of it is in the words of others: who shows a part
makes it harmless.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.deliver import names_for
from tunesmith.run.chain import is_broken
from tunesmith.run.figures import Figure
from tunesmith.run.report import Failure, Report, UnfinishedBest, WorkloadReport
from tunesmith.run.rounds import BY_SEARCH
from tunesmith.run.store import CERTIFICATE
from tunesmith.run.survey import LABELS, SurveyReport
from tunesmith.text import counted, cut, first_line, flat, named_values, one_line

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


# -- words --------------------------------------------------------------------------------------------------


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
    timed = f"timed at {counted(report.timed, 'size')}, least {report.least:.2f}×" if report.least else ""
    tail = f", {timed or 'timed at the workloads alone'}"
    if not report.serves:
        return f"every size of the contract{tail}"
    tail += "; elsewhere the original"
    return f"{_first_terms(flat(report.serves), max(most - len(tail), 20))}{tail}"


def _first_terms(condition: str, most: int) -> str:
    """As many terms of a conjunction as there is room for; a number that is cut short is another one."""
    if len(condition) <= most:
        return condition
    whole = condition[: most - len(" …")].rpartition(" and ")[0]
    return f"{whole} and …" if whole else cut(condition, most)


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


# -- the first screen ---------------------------------------------------------------------------------------


def title(report: Report) -> str:
    where = f"on {report.device}" if report.survey is None else f"for {report.device}, which is not here"
    return f"{report.problem} {where}{f', built with {report.compiler}' if report.compiler else ''}"


def verified_grid(report: Report) -> Grid | None:
    """What was verified; where the device is absent what compilers say."""
    if report.survey is not None:
        return Grid("by the compiler | original: | least: | median: | most:", _survey_rows(report.survey))
    rows = [(w.name, named_values(w.sizes), *_figures(w), interval_text(w)) for w in report.workloads]
    return Grid("workload | sizes | before: | after: | speed-up: | 95 % interval", rows) if rows else None


def _figures(w: WorkloadReport) -> tuple[str, ...]:
    return f"{w.baseline_us:.1f} µs", f"{w.tuned_us:.1f} µs", w.figure.words


def facts(report: Report, folder: str, go_on: str, note: int = NOTE) -> list[tuple[str, str]]:
    """What stands below the table, each with its name; paths and commands can be copied into a shell. An
    empty `folder`: seen from inside it. `go_on`: the command for a run that is not finished."""

    def path(name: str) -> str:
        return shlex.quote(f"{folder}/{name}") if folder else name

    own, aside = (shlex.quote(folder), "") if folder else (".", " (in this folder)")
    found: list[tuple[str, str]] = []
    if report.figure is not None:
        cases = counted(report.verified_cases, "fresh case")
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
        found.append(("nothing worked", _failure(report.failures[0])))
    if report.finished and report.workloads:
        there = f" in {path('tuned/dispatch.json')}" if report.tuned else ""
        won = f"{report.winners - len(report.left_out)} of {counted(report.winners, 'tuned kernel')}{there}"
        found.append(("delivered", won if report.winners else "nothing, the original stays"))
        if report.winners > len(report.left_out):
            found.append(("serves", serves_text(report, note)))
        found += [("not delivered", one_line(why)) for why in report.left_out]
    if report.rounds or report.origin:
        found += [(report.noun, path(name)) for name in report.templates]
    if report.so_far is not None and report.so_far.file:
        found.append((f"{report.noun} so far", path(report.so_far.file)))
    certified = report.finished and not report.unproven
    if report.finished and not is_broken(report.unproven) and folder:
        found.append(("report", f"{path('report.md')}{f', {CERTIFICATE} beside it' if certified else ''}"))
    elif certified:
        found.append(("certificate", path(CERTIFICATE)))
    if folder:
        found.append((MORE, f"tunesmith report {own} --full"))
    if certified:
        # Of a run without winners there is nothing to take home.
        targets = names_for(report.language)
        listed = ", ".join([*targets[:TARGETS], *(["…"] if len(targets) > TARGETS else [])])
        forms = f"tunesmith export {own} --to TARGET{aside}: {listed}"
        found.append(("next", forms if report.winners and targets else f"tunesmith verify {own}{aside}"))
    elif not report.finished and not report.live:
        found.append(("resume it with", go_on or f"tunesmith resume {own}{aside}"))
    return found


def _failure(f: Failure) -> str:
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
    return found + [
        (status, f"{config_text(f.config)}: {first_line(f.detail)}") for status, f in first.items()
    ]
