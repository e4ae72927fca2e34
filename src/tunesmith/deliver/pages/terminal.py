"""What people see: a progress line while work goes on, tables when it is done."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import Literal, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tunesmith.base.text import first_line, flatten_text, format_count, one_line, strip_controls
from tunesmith.deliver.pages import parts
from tunesmith.deliver.pages.parts import RULES, report_sections
from tunesmith.run import events as ev
from tunesmith.run.budget import beside_budget, candidate_noun, is_concrete, spent_text
from tunesmith.run.candidates import rule_text
from tunesmith.run.figures import best_so_far
from tunesmith.run.outcome import Outcome, Trial, median
from tunesmith.run.prior import change_text
from tunesmith.run.progress import RunProgress, budget_text, clock_text, done_text, left_text
from tunesmith.run.race import CLAIM, SLOWER
from tunesmith.run.report import Report, survey_size
from tunesmith.run.rounds import BY_SEARCH
from tunesmith.run.state import State

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
            return EventLine(_survey_progress(state), passing=True)
        case ev.Rehearsed(config, left=left) if config is not None and config.candidate:
            done = [r for r in state.rehearsed if r.config and r.config.candidate == config.candidate]
            if len(done) > 1 and not event.convicts:
                tried = format_count(len(done), "configuration")
                return EventLine(f"at the gate: {tried} tried, {left} to go; not timed", passing=True)
        case ev.Measured(outcome):
            always = outcome.trial.purpose == "finalist"
            return EventLine(_search_progress(state), passing=True, always=always)
        case ev.Asked(trials) if gated := [t for t in trials if t.purpose == "gate"]:
            return _before_gate(gated, state)
    text = _worth_keeping(event, state)
    return EventLine(text) if text else None


def _worth_keeping(event: ev.Event, state: State) -> str:
    match event:
        case ev.Attached(device, compiler):
            again = "; what was checked without it is checked again" if state.rehearsed else ""
            return f"going on with {device.name}" + (f" and {compiler}" if compiler else "") + again
        case ev.Enlisted(devices):
            return f"measuring on {format_count(len(devices), 'device')}: {', '.join(devices)}"
        case ev.LeftOut(device, reason):
            left = format_count(len(state.devices), "device")
            return f"{device} is left out: {first_line(reason)}; going on with {left}"
        case ev.Primed(name, rows):
            return f"begins from {name}: {format_count(len(rows), 'configuration')}"
        case ev.Rehearsed():
            return event.sentence
        case ev.Baseline(outcome):
            return f"the original is right; it takes {_workload_times(outcome)}"
        case ev.Decided("refactor", reason):
            number = sum(d.decision == "refactor" for d in state.decided)
            return f"round {number}: {first_line(reason)}"
        case ev.Steered():
            return change_text(state.prior_changes[-1])
        case ev.Decided("finish", reason):
            ended = "no further kernel" if is_concrete(state) else "search ended"
            return f"{ended}: {first_line(reason)}"
        case ev.Extended(cases, aside, note):
            return first_line(note or f"cases: {len(cases)} added, {len(aside)} set aside")
        case ev.Replied(number, reply):
            note = f" ({reply.note})" if reply.note else ""
            return f"request {number} is answered; {spent_text(state)}{note}"
        case ev.Unanswered(number, reason, final=final):
            then = "given up" if final else "asking again"
            return f"request {number} is not answered, {then}: {first_line(reason)}"
        case ev.Instructed():
            return _instruction_text(event)
        case ev.Served(calls=calls):
            timed = [(c.sizes, median(c.result.timing.ratios)) for c in calls if c.result.timing is not None]
            slower = len({sizes for sizes, ratio in timed if ratio < SLOWER})
            where = format_count(len({sizes for sizes, _ in timed}), "size")
            return f"called through its dispatch at {where}, slower than the original at {slower or 'none'}"
        case ev.Verified(outcome):
            bad = [r for r in outcome.results if not r.ok]
            verdict = f"failed: {bad[0].status} {bad[0].detail}" if bad else "holds"
            config = outcome.trial.config
            return f"verification of {config.label if config else 'the original'}: {verdict}"
    return _candidate_words(event, state)


def _candidate_words(event: ev.Event, state: State) -> str:
    """Of what authors write, and what comes of it."""
    word = candidate_noun(state.settings) if state.started else "template"
    match event:
        case ev.Drafted(candidate, moves=moves, author=author):
            by = f"by {author}" if author else ", ".join(moves) or "no moves"
            if state.plain_kernel is not None:
                from tunesmith.run.rounds import moves_on  # which few runs need

                on = moves_on(state, state.candidates[-1])
                by = by if on is None else f"{', '.join(moves)} on template {on.id}, the plain kernel"
            return f"{word} {candidate} is written: {by}"
        case ev.Declined(reason):
            return f"no {word}: {first_line(reason)}"
        case ev.Rejected(candidate, reason, again=again):
            then = "; asking for another" if again else ""
            return f"{word} {candidate} is turned away: {first_line(reason)}{then}"
        case ev.Admitted(candidate=candidate) if is_concrete(state):
            return f"kernel {candidate} is right"
        case ev.Searched(candidate) if is_concrete(state):
            best = best_so_far(state)
            gain = best.speedup if best is not None else 1.0
            return f"kernel {candidate} is measured; best so far {gain:.2f}× {BY_SEARCH}"
        case ev.Admitted(candidate=own) if (plain := state.plain_kernel) is not None and plain.id == own:
            return f"template {own} is right, and the expert reads it: its moves are made on that from now on"
        case ev.Admitted(feasible=feasible, candidate=candidate, rules=rules) if candidate:
            without = f", without {', '.join(rule_text(rule) for rule in rules)}" if rules else ""
            return f"template {candidate} is right, {format_count(feasible, 'configuration')}{without}"
        case ev.Searched(candidate, reason) if candidate:
            return f"search of template {candidate} ended: {reason}"
    return ""


def _before_gate(trials: Sequence[Trial], state: State) -> EventLine:
    """Of a template, before the first of it is tried."""
    config = trials[0].config
    own = config.candidate if config is not None else ""
    asked = state.asked.count(("gate", own))
    word = candidate_noun(state.settings) if state.started else "template"
    beside = "" if state.started and is_concrete(state) else ", beside the budget"
    what = format_count(len(trials), "evaluation")
    if asked == len(trials):
        first = f"{what} first, more as they show nothing wrong"
        return EventLine(f"gate: {word} {own} is checked before it may be searched: {first}{beside}")
    return EventLine(f"gate: {what} more of {word} {own}{beside}", passing=True)


def _instruction_text(event: ev.Instructed) -> str:
    asked = {"stop": "to stop after this batch", "finish": "to finish now", "hint": "to try a configuration"}
    if event.what == "resume":
        return ""
    if event.refused:
        return f"whoever watches asked {asked[event.what]}, which is refused: {first_line(event.refused)}"
    config = f": {event.config.label} is next" if event.config is not None else ""
    return f"whoever watches asks {asked[event.what]}{config}"


def detail_line(event: ev.Event) -> str:
    """What `-v` adds: each trial, each build that is left out, each question and profile."""
    match event:
        case ev.Started(problem, device=device, settings=settings, compiler=compiler):
            built = f", built with {compiler}" if compiler else ""
            how = f"search {settings.search}, seed {settings.seed}"
            return f"{problem} on {device.name} ({device.driver}){built}; {how}"
        case ev.Measured(outcome):
            bad = next((r for r in outcome.results if not r.ok), None)
            verdict = f"{bad.status} {first_line(bad.detail)}" if bad else _workload_times(outcome)
            config, where = outcome.trial.config, f" on {outcome.device}" if outcome.device else ""
            return f"{outcome.trial.purpose} {config.label if config else 'original'}{where}: {verdict}"
        case ev.Pruned(config, rule, reason):
            return f"not measured, {RULES.get(rule, rule)}: {config.label}: {first_line(reason)}"
        case ev.Requested(request):
            return f"request {request.number} to the {request.role}"
        case ev.Profiled(config, workload, diagnosis, notes):
            found = diagnosis.summary if diagnosis else "; ".join(notes) or "not known"
            name = config.label if config else "the original"
            return f"profile of {name} at {workload}: {first_line(found)}"
    return ""


def _workload_times(outcome: Outcome) -> str:
    return ", ".join(f"{r.workload} {r.timing.seconds * 1e6:.0f} µs" for r in outcome.results if r.timing)


def _survey_progress(state: State) -> str:
    found = len(state.surveyed) - state.surveyed.count("original")
    unable = state.surveyed.count("unable")
    if not survey_size(state):
        return "built the original"
    return f"built {found} of {survey_size(state)}" + (f", {unable} cannot run" if unable else "")


def _search_progress(state: State) -> str:
    statuses = state.statuses()
    done, failed = statuses.total(), statuses.total() - statuses["ok"]
    limit = state.started.settings.evals if state.started else None
    feasible = state.admitted.feasible if state.admitted else 0
    total = feasible if limit is None else min(limit, feasible)
    if state.draft is not None:
        tried = format_count(len(state.gated(state.draft.id)), "configuration")
        return f"checking {candidate_noun(state.settings)} {state.draft.id}, {tried}"
    leader = best_so_far(state)
    best = f", best so far {leader.speedup:.2f}× {BY_SEARCH}" if leader is not None else ""
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
    """Listens to a run and shows it: one block that changes on a terminal, a line now and then elsewhere.

    A run outlives its audience: when the stream is gone, there is silence, not an error.
    """

    def __init__(self, stream: TextIO | None, quiet: bool = False, verbose: bool = False) -> None:
        self._stream = None if quiet else stream
        self._verbose = verbose
        self._block: LiveBlock | None = None
        self._last = 0.0
        self._start = time.monotonic()
        self._gained: ev.Started | None = None  # the run whose first speed-up has been told

    @contextmanager
    def live(self) -> Iterator[Progress]:
        if self._stream is None or not self._stream.isatty():
            yield self
            return

        block = LiveBlock(Console(file=self._stream, highlight=False))
        with block.open():
            self._block = block
            try:
                yield self
            finally:
                self._block = None

    def event(self, record: ev.Recorded, state: State) -> None:
        if self._stream is None:
            return
        if self._verbose and (detail := detail_line(record.event)):
            self.say(detail)
        line = event_line(record.event, state)
        if self._block is not None:
            from tunesmith.run.progress import current_standing

            self._block.show(current_standing(state))
        self._tell_first_gain(record.event, state)
        if line is not None and not line.passing:
            self.say(line.text)
        elif line is not None and (self._block is None or not isinstance(record.event, ev.Measured)):
            self.note(line.text, line.always)  # the block says of itself what is measured

    def _tell_first_gain(self, event: ev.Event, state: State) -> None:
        """As soon as there is one; of a run that is resumed only where it had none before."""
        if state.started is None or self._gained is state.started or not isinstance(event, ev.Measured):
            return
        best = best_so_far(state)
        if best is None or best.speedup < CLAIM:
            return
        self._gained = state.started
        if best.config == event.outcome.trial.config:
            by = "at the gate, not verified" if event.outcome.trial.purpose == "gate" else BY_SEARCH
            self.say(f"first speed-up: {best.speedup:.2f}× {by}, with {best.config.label}")

    def say(self, text: str) -> None:
        """Something worth keeping on the screen."""
        try:
            if self._block is not None:
                self._block.print(Text.assemble((self._clock(), "dim"), " ", strip_controls(text)))
            elif self._stream is not None:
                self._stream.write(f"{self._clock()} {strip_controls(text)}\n")
                self._stream.flush()
        except OSError:
            self._stream = None

    def note(self, text: str, always: bool = False) -> None:
        """Something true only for now."""
        if self._block is not None:
            self._block.note(strip_controls(text))
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


# A head as `text.markdown_table` takes it: names with | between them, a colon behind those of figures; rows.
TableContent = tuple[str, Sequence[Sequence[str]]]


def table_text(stream: TextIO | None, head: str, rows: Iterable[Sequence[str]]) -> str:
    """The table as it suits the stream it is for. Where it is too wide, words are broken into lines, but not
    figures and not the first column."""
    table = Table()
    for place, name in enumerate(head.split(" | ")):
        is_figure = name.endswith(":")
        justify: Literal["left", "right"] = "right" if is_figure else "left"
        table.add_column(name.removesuffix(":"), justify=justify, no_wrap=is_figure or not place)
    for row in rows:
        table.add_row(*(Text(strip_controls(cell)) for cell in row))
    stand_in = _StandIn(stream)
    width = None if stand_in.isatty() else PLAIN_WIDTH
    Console(file=stand_in, highlight=False, width=width).print(table)
    return stand_in.getvalue().rstrip("\n")


def report_text(
    report: Report,
    folder: str,
    go_on: str,
    library: Sequence[str] = (),
    stream: TextIO | None = None,
    full: bool = False,
) -> str:
    """What was verified, on one screen, its table as wide as suits the stream; with `full` the rest too."""
    grid = parts.verified_grid(report)
    shown = [flatten_text(parts.report_title(report))]
    shown += [_render_part(grid, folder, stream)] if grid else []
    below = [*parts.report_facts(report, folder, go_on), *(("library", line) for line in library)]
    if full:
        below = [(name, text) for name, text in below if name != parts.MORE]
    shown += [strip_controls(f"{name:<16} {text}") for name, text in below]
    for section in report_sections(report) if full else ():
        shown += ["", f"== {section.title}", *(_render_part(part, folder, stream) for part in section.parts)]
    return "\n".join(shown)


def _render_part(part: parts.Part, folder: str, stream: TextIO | None) -> str:
    match part:
        case parts.Grid(head, rows):
            return table_text(stream, head, [[str(value) for value in row] for row in rows])
        case parts.Items(lines):
            return "\n".join(f"- {flatten_text(line)}" for line in lines)
        case parts.Diff(lines):
            return "\n".join(f"    {strip_controls(line)}" for line in lines)
        case parts.Picture(alt, file):
            return strip_controls(f"{alt}: {shlex.quote(f'{folder}/plots/{file}')}")
    return flatten_text(part)


# The block that a terminal shows while a run is at work: phase, done of how many, best so far, time left.
BAR = 24  # columns
REFRESHES = 8  # a second


def render_standing(
    now: RunProgress | None, note: str, clock: str, since: float = 0.0
) -> list[RenderableType]:
    """Lines, the first without the sign that something moves. `since`: seconds since the standing was so."""
    if now is None:
        return [Text.assemble(flatten_text(note), " ", (clock, "dim"))]
    lines: list[RenderableType] = [Text.assemble((flatten_text(now.phase), "bold"), " ", (clock, "dim"))]
    if now.done or now.of:
        lines.append(_with_bar(now))
    if now.best is not None:
        config = f": {one_line(now.best_config, 120)}" if now.best_config else ""
        lines.append(Text.assemble("best so far ", (f"{now.best:.2f}×", "bold"), f" {BY_SEARCH}{config}"))
    left = [f"{left_text(max(0.0, now.left - since))} of searching left"] if now.left is not None else []
    limited = [budget_text(use) for use in now.budgets if use.limit is not None]
    gone = f", {now.left_out} left out" if now.left_out else ""
    several = [f"{format_count(now.devices, 'device')}{gone}"] if now.devices else []
    if several or left or limited:
        lines.append(Text("; ".join([*several, *left, *limited])))
    doing = note or now.doing
    if doing:
        lines.append(Text(one_line(doing, 200), style="dim"))
    return lines


def _with_bar(now: RunProgress) -> RenderableType:
    words = Text(done_text(now))
    if not now.of:
        return words
    row = Table.grid(padding=(0, 1))
    row.add_row(ProgressBar(total=now.of, completed=min(now.done, now.of), width=BAR), words)
    return row


class LiveBlock:
    """What is shown last, drawn again and again by a thread of its own: what it draws never changes."""

    def __init__(self, console: Console) -> None:
        self._shown: tuple[RunProgress | None, str, float] = (None, "starting", time.monotonic())
        self._start = time.monotonic()
        self._spinner = Spinner("dots")
        self._live = Live(
            console=console, get_renderable=self._drawn, refresh_per_second=REFRESHES, transient=True
        )

    def open(self) -> AbstractContextManager[object]:
        return self._live

    @property
    def print(self) -> Callable[[Text], None]:
        """Above the block."""
        return self._live.console.print

    def show(self, now: RunProgress) -> None:
        self._shown = now, "", time.monotonic()

    def note(self, text: str) -> None:
        now, _, at = self._shown
        self._shown = now, text, at

    def _drawn(self) -> RenderableType:
        now, note, at = self._shown
        moment = time.monotonic()
        first, *others = render_standing(now, note, clock_text(moment - self._start), moment - at)
        head = Table.grid(padding=(0, 1))
        head.add_row(self._spinner, first)
        return Group(head, *others)
