"""What people see: a progress line while work goes on, tables when it is done."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import Literal, TextIO

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from tunesmith.deliver.report import SURVEY_HEAD, survey_counts, survey_rows
from tunesmith.run import events as ev
from tunesmith.run import report as reports
from tunesmith.run.budget import beside_budget, is_concrete, noun, spent_text
from tunesmith.run.candidates import rule_text
from tunesmith.run.chain import is_broken
from tunesmith.run.outcome import Outcome
from tunesmith.run.prior import change_text
from tunesmith.run.rounds import RoundReport
from tunesmith.run.scores import best_so_far
from tunesmith.run.state import State
from tunesmith.run.store import CERTIFICATE
from tunesmith.run.survey import SurveyReport, planned
from tunesmith.text import counted, cut, plain

LONGEST_LINE = 300  # characters of what others say
SHOWN = 4  # configurations of a kind, on a line
PLAIN_EVERY = 2.0  # seconds between two progress lines where there is no terminal
PLAIN_WIDTH = 160  # off a terminal a table may be as wide as it needs: what reads it there does not wrap


@dataclass(frozen=True)
class EventLine:
    """What people are told of an event."""

    text: str
    passing: bool = False  # true only for now, and may be left out
    always: bool = False  # passing, yet not to be left out


def event_line(event: ev.Event, state: State) -> EventLine | None:
    """None: nothing that is worth a line."""
    match event:
        case ev.Surveyed() if state.device.absent:
            return EventLine(_surveying(state), passing=True)
        case ev.Measured(outcome):
            return EventLine(_searching(state), passing=True, always=outcome.trial.purpose == "finalist")
    text = _worth_keeping(event, state)
    return EventLine(text) if text else None


def _worth_keeping(event: ev.Event, state: State) -> str:
    word = noun(state.settings) if state.started else "template"
    match event:
        case ev.Attached(device, compiler):
            return f"going on with {device.name}" + (f" and {compiler}" if compiler else "")
        case ev.Primed(name, rows):
            return f"begins from {name}: {counted(len(rows), 'configuration')}"
        case ev.Baseline(outcome):
            return f"the original is right; it takes {_times(outcome)}"
        case ev.Decided("refactor", reason):
            return f"round {sum(d.decision == 'refactor' for d in state.decided)}: {_first_line(reason)}"
        case ev.Steered():
            return change_text(state.prior_changes[-1])
        case ev.Decided("finish", reason):
            ended = "no further kernel" if is_concrete(state) else "search ended"
            return f"{ended}: {_first_line(reason)}"
        case ev.Drafted(candidate, moves=moves, author=author):
            by = f"by {author}" if author else ", ".join(moves) or "no moves"
            return f"{word} {candidate} is written: {by}"
        case ev.Declined(reason):
            return f"no {word}: {_first_line(reason)}"
        case ev.Rejected(candidate, reason, again=again):
            then = "; asking for another" if again else ""
            return f"{word} {candidate} is turned away: {_first_line(reason)}{then}"
        case ev.Admitted(candidate=candidate) if is_concrete(state):
            return f"kernel {candidate} is right"
        case ev.Searched(candidate) if is_concrete(state):
            best = best_so_far(state)
            return f"kernel {candidate} is measured; best roughly {best or 1.0:.2f}× so far"
        case ev.Admitted(feasible=feasible, candidate=candidate, rules=rules) if candidate:
            without = f", without {', '.join(rule_text(rule) for rule in rules)}" if rules else ""
            return f"template {candidate} is right, {counted(feasible, 'configuration')}{without}"
        case ev.Searched(candidate, reason) if candidate:
            return f"search of template {candidate} ended: {reason}"
        case ev.Extended(cases, aside, note):
            return _first_line(note or f"cases: {len(cases)} added, {len(aside)} set aside")
        case ev.Replied(number, reply):
            note = f" ({reply.note})" if reply.note else ""
            return f"request {number} is answered; {spent_text(state)}{note}"
        case ev.Unanswered(number, reason, final=final):
            then = "given up" if final else "asking again"
            return f"request {number} is not answered, {then}: {_first_line(reason)}"
        case ev.Verified(outcome):
            bad = [r for r in outcome.results if not r.ok]
            verdict = f"failed: {bad[0].status} {bad[0].detail}" if bad else "holds"
            config = outcome.trial.config
            return f"verification of {config.label if config else 'the original'}: {verdict}"
    return ""


def detail_line(event: ev.Event) -> str:
    """What `-v` adds: each trial, each build that is left out, each question and profile."""
    match event:
        case ev.Started(problem, device=device, settings=settings, compiler=compiler):
            built = f", built with {compiler}" if compiler else ""
            how = f"search {settings.search}, seed {settings.seed}"
            return f"{problem} on {device.name} ({device.driver}){built}; {how}"
        case ev.Measured(outcome):
            bad = next((r for r in outcome.results if not r.ok), None)
            verdict = f"{bad.status} {_first_line(bad.detail)}" if bad else _times(outcome)
            config = outcome.trial.config
            return f"{outcome.trial.purpose} {config.label if config else 'original'}: {verdict}"
        case ev.Pruned(config, rule, reason):
            return f"not measured, {reports.RULES.get(rule, rule)}: {config.label}: {_first_line(reason)}"
        case ev.Requested(request):
            return f"request {request.number} to the {request.role}"
        case ev.Profiled(config, workload, diagnosis, notes):
            found = diagnosis.summary if diagnosis else "; ".join(notes) or "not known"
            name = config.label if config else "the original"
            return f"profile of {name} at {workload}: {_first_line(found)}"
    return ""


def _times(outcome: Outcome) -> str:
    return ", ".join(f"{r.workload} {r.timing.seconds * 1e6:.0f} µs" for r in outcome.results if r.timing)


def _surveying(state: State) -> str:
    found = len(state.surveyed) - state.surveyed.count("original")
    unable = state.surveyed.count("unable")
    if not planned(state):
        return "built the original"
    return f"built {found} of {planned(state)}" + (f", {unable} cannot run" if unable else "")


def _searching(state: State) -> str:
    statuses = state.statuses()
    done, failed = statuses.total(), statuses.total() - statuses["ok"]
    limit = state.started.settings.evals if state.started else None
    feasible = state.admitted.feasible if state.admitted else 0
    total = feasible if limit is None else min(limit, feasible)
    if state.draft is not None:
        tried = counted(len(state.gated(state.draft.id)), "configuration")
        return f"checking {noun(state.settings)} {state.draft.id}, {tried}"
    leader = best_so_far(state)
    best = f", best roughly {leader:.1f}× so far" if leader is not None else ""
    trouble = f", {failed} failed" if failed else ""
    if raced := len(state.finalists()):
        entered = state.asked.count("finalist")
        return f"raced {raced} of {entered} finalists"
    of = "" if state.candidates and state.candidates[-1].drafted else f" of {total}"
    talk = f"; {spent_text(state)}" if state.dialogue else ""
    gated = beside_budget(state)
    extra = f" (and {gated} by the gate)" if gated else ""
    return f"searched {done - gated}{of}{extra}{best}{trouble}{talk}"


class Progress:
    """Listens to a run and shows it: one live line on a terminal, a line now and then elsewhere.

    A run outlives its audience: when the stream is gone, there is silence, not an error.
    """

    def __init__(self, stream: TextIO | None, quiet: bool = False, verbose: bool = False) -> None:
        self._stream = None if quiet else stream
        self._verbose = verbose
        self._console: Console | None = None
        self._status: Status | None = None
        self._last = 0.0
        self._start = time.monotonic()

    @contextmanager
    def live(self) -> Iterator[Progress]:
        if self._stream is None or not self._stream.isatty():
            yield self
            return
        self._console = Console(file=self._stream, highlight=False)
        with self._console.status("starting") as status:
            self._status = status
            try:
                yield self
            finally:
                self._status = None

    def event(self, record: ev.Recorded, state: State) -> None:
        if self._stream is None:
            return
        if self._verbose and (detail := detail_line(record.event)):
            self.say(detail)
        line = event_line(record.event, state)
        if line is not None and line.passing:
            self.note(line.text, line.always)
        elif line is not None:
            self.say(line.text)

    def say(self, text: str) -> None:
        """Something worth keeping on the screen."""
        try:
            if self._console is not None:
                self._console.print(Text.assemble((self._clock(), "dim"), " ", plain(text)))
            elif self._stream is not None:
                self._stream.write(f"{self._clock()} {plain(text)}\n")
                self._stream.flush()
        except OSError:
            self._stream = None

    def note(self, text: str, always: bool = False) -> None:
        """Something true only for now."""
        if self._status is not None:
            self._status.update(Text.assemble(plain(text), " ", (self._clock(), "dim")))
            return
        now = time.monotonic()
        if always or self._verbose or now - self._last >= PLAIN_EVERY:
            self._last = now
            self.say(text)

    def _clock(self) -> str:
        seconds = int(time.monotonic() - self._start)
        return f"{seconds // 60:02d}:{seconds % 60:02d}"


class _StandIn(StringIO):
    """Takes the place of a stream while a table is laid out for it: nothing is written there yet."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "encoding", None) or "utf-8"


# A head as `text.table` takes it: names with | between them, a colon behind those of figures; the rows; how
# many columns, the last ones, may be broken into lines.
TableContent = tuple[str, Sequence[Sequence[str]], int]


def table_text(stream: TextIO | None, head: str, rows: Iterable[Sequence[str]], wrapped: int = 0) -> str:
    """The table as it suits the stream it is for."""
    names = head.split(" | ")
    table = Table()
    for place, name in enumerate(names):
        justify: Literal["left", "right"] = "right" if name.endswith(":") else "left"
        fixed = place < len(names) - wrapped
        table.add_column(name.removesuffix(":"), justify=justify, no_wrap=fixed)
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    stand_in = _StandIn(stream)
    width = None if stand_in.isatty() else PLAIN_WIDTH
    Console(file=stand_in, highlight=False, width=width).print(table)
    return stand_in.getvalue().rstrip("\n")


def report_text(
    report: reports.Report, folder: str, go_on: str, library: Sequence[str] = (), stream: TextIO | None = None
) -> str:
    """Title, table and what stands below it; the table as wide as suits the stream."""
    head, rows, wrapped = report_table(report)
    shown = [table_text(stream, head, rows, wrapped)] if rows else []
    below = [*report_summary(report, folder, go_on), *(f"library          {line}" for line in library)]
    return "\n".join([plain(report_title(report)), *shown, *map(plain, below)])


def report_title(report: reports.Report) -> str:
    built = f", built with {report.compiler}" if report.compiler else ""
    where = f"on {report.device}" if report.survey is None else f"for {report.device}, which is not here"
    return f"{report.problem} {where}{built}"


def report_table(report: reports.Report) -> TableContent:
    if report.survey is not None:
        return SURVEY_HEAD, survey_rows(report.survey), 0
    head = "workload | before: | after: | speed-up: | 95 % interval | configuration"
    return head, [(w.name, *reports.workload_cells(w)) for w in report.workloads], 1


def report_summary(report: reports.Report, folder: str, go_on: str) -> list[str]:
    """What stands below the table; the paths and the command can be copied into a shell. `go_on`: the command
    for a run that is not finished."""
    if report.survey is not None:
        return _survey_summary(report, report.survey, folder, go_on)
    counts = ", ".join(f"{n} {status}" for status, n in report.evaluations.items()) or "none"
    lines = []
    if report.geometric_mean is not None:
        lines.append(f"geometric mean   {report.geometric_mean:.2f}×, {report.judged_by}")
    elif report.unproven:
        lines.append(f"not verified     {report.unproven}")
    lines += [f"note             {note}" for note in report.notes]
    if report.finished and report.workloads:
        lines.append(f"general config   {reports.general_text(report)}")
    if report.origin:
        lines.append(f"retuned from     {report.origin}, in {report.seconds:.1f} s")
    if report.strategy != "template":
        lines.append(f"strategy         {report.strategy}, nobody searched")
    if report.rounds:
        lines.append("rounds           by short measurements, not verified:")
    lines += [
        f"{f'round {r.number}':<16} {_what(r, report)}: {_first_line(r.verdict)}" for r in report.rounds
    ]
    if report.chain is not None:
        lines.append(f"chain            {_first_line(report.chain.words)}")
    if report.talk is not None:
        tokens, dollars = report.talk.tokens, report.talk.dollars
        cost = "unknown" if dollars is None else f"${dollars:.2f}"
        used = "unknown" if tokens is None else tokens
        lines.append(
            f"models           {counted(report.talk.requests, 'request')}, {used} tokens, cost {cost}"
        )
    total, whose = sum(report.evaluations.values()), f": {report.tried_by}" if report.tried_by else ""
    lines.append(f"evaluations      {total} ({counts}){whose}; {_first_line(report.reason)}")
    if report.pruned:
        why = ", ".join(f"{p.count} {reports.RULES.get(p.rule, p.rule)}" for p in report.pruned)
        lines.append(f"built            {report.built}; not measured: {why}")
    if report.failures and not report.evaluations.get("ok"):
        first = report.failures[0]
        why = _first_line(first.detail)
        lines.append(f"nothing worked   {reports.config_text(first.config)}: {first.status}, {why}")
    lines += [
        f"{report.noun:<16} {shlex.quote(f'{folder}/{name}')}"
        for name in report.templates
        if report.rounds or report.origin
    ]
    lines += _standing(report, folder)
    if report.tuned:
        lines.append(f"tuned kernel     {shlex.quote(f'{folder}/tuned/')}  (start with dispatch.json)")
    if not report.finished:
        lines.append(f"resume it with   {go_on}")
    elif not is_broken(report.unproven):
        lines.append(f"report           {shlex.quote(f'{folder}/report.md')}")
    if report.finished and not report.unproven:
        lines.append(f"certificate      {shlex.quote(f'{folder}/{CERTIFICATE}')}")
    return lines


def _what(r: RoundReport, report: reports.Report) -> str:
    if r.library:
        return f"{r.library} of the library"
    none = "no moves" if report.noun == "template" else "a kernel"
    return f"by {r.author}" if r.author else ", ".join(r.moves) or none


def _first_line(text: str) -> str:
    """Of what a model, a compiler or a kernel says: it has no second line of ours to write."""
    return cut((text.strip().splitlines() or ["no reason given"])[0], LONGEST_LINE)


def _survey_summary(report: reports.Report, survey: SurveyReport, folder: str, go_on: str) -> list[str]:
    """What builds alone tell of the configurations, an example of each kind of trouble, how to go on."""
    built = f"{sum(survey.statuses.values())} of {survey.planned} built"
    lines = [f"configurations   {built} ({survey_counts(survey)})"]
    if survey.spilling:
        worst = ", ".join(
            f"{reports.config_text(s.config)} ({s.spills} bytes)" for s in survey.spilling[:SHOWN]
        )
        more = f", {len(survey.spilling) - SHOWN} more" if len(survey.spilling) > SHOWN else ""
        lines.append(f"spilling         {worst}{more}")
    first: dict[str, reports.Failure] = {}
    for failure in report.failures:
        first.setdefault(failure.status, failure)
    for status, failure in first.items():
        why = _first_line(failure.detail)
        lines.append(f"{status:<16} {reports.config_text(failure.config)}: {why}")
    return [*lines, *_standing(report, folder), f"resume it with   {go_on}"]


def _standing(report: reports.Report, folder: str) -> list[str]:
    """What an unfinished run has, and where."""
    if report.so_far is None:
        return []
    lines = [f"so far           {reports.unfinished_text(report.so_far)}"]
    if report.so_far.file:
        lines.append(f"{report.noun + ' so far':<16} {shlex.quote(f'{folder}/{report.so_far.file}')}")
    return lines
