"""What happens in a fleet, as lines of its journal, the state that they fold into, and how that state deals
the budget out: the same journal gives the same answer. docs/fleet.md has the rule in words.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.files import explain_disk_errors, open_plain, read_plain
from tunesmith.base.text import (
    Markup,
    digest_of,
    escape_markdown,
    format_count,
    html_element,
    markdown_table,
    ratio_text,
    truncate_text,
)
from tunesmith.deliver.pages import page
from tunesmith.deliver.pages.parts import Grid
from tunesmith.plugins.fleet.plan import DAMAGED, HOUR, FleetCell, FleetSlot
from tunesmith.run.figures import Figure
from tunesmith.run.outcome import geometric_mean
from tunesmith.run.report import Report

FLEET_VERSION = 1  # of `FleetResult` as JSON: raised when a field changes its meaning or goes
CellStatus = Literal["not begun", "at work", "paused", "finished", "failed", "waiting", "no device"]
STATUSES: tuple[CellStatus, ...] = (
    "finished", "at work", "paused", "waiting", "no device", "failed", "not begun",
)  # fmt: skip


@dataclass(frozen=True)
class VerifiedCell:
    """What a finished run delivers, over its workloads by their weights."""

    speedup: float  # geometric mean; 1: the original stays
    interval: tuple[float, float]  # 95 %
    floor: float | None  # how many times its floor it takes, in the geometric mean; None: not known
    winner: str  # digest of the configurations that won
    doubt: str = ""  # why it is not certified

    @property
    def figure(self) -> Figure:
        return Figure(self.speedup, *self.interval, self.doubt)

    @staticmethod
    def of(report: Report) -> VerifiedCell | None:
        """None: it is not finished, or nobody could prove it."""
        if not report.finished or report.unproven:
            return None
        figure = report.figure
        if figure is None:
            return VerifiedCell(1.0, (1.0, 1.0), None, "")
        distances = [b.tuned_distance or b.distance for b in report.bounds]
        known = [distance for distance in distances if distance]
        floor = geometric_mean(known) if known and len(known) == len(report.workloads) else None
        chosen = [f"{w.name} {sorted((w.config or {}).items())}" for w in report.workloads]
        interval, winner = (figure.low, figure.high), digest_of(*chosen)[:16]
        return VerifiedCell(figure.value, interval, floor, winner, figure.doubt)


@dataclass(frozen=True)
class FleetRow:
    """One problem on one kind of device by one author."""

    problem: str
    device: str
    author: str
    status: CellStatus
    weight: float
    device_seconds: float
    seconds: float  # in which somebody worked on it
    evaluations: int
    best: float  # by the search, not verified
    run: str  # its folder, from the fleet's
    verified: VerifiedCell | None = None
    reason: str = ""
    code: int = 0  # the exit code that the reason would have had


@dataclass(frozen=True)
class FleetResult:
    name: str
    hours: float  # that it may use
    rows: tuple[FleetRow, ...]
    notes: tuple[str, ...] = ()
    version: int = FLEET_VERSION

    @property
    def used(self) -> float:
        """Hours of devices."""
        return sum(row.device_seconds for row in self.rows) / 3600

    @property
    def held(self) -> float:
        """Hours in which somebody worked: builds, races, verification and models that think included."""
        return sum(row.seconds for row in self.rows) / 3600

    @property
    def counts(self) -> Counter[CellStatus]:
        return Counter(row.status for row in self.rows)

    @property
    def mean(self) -> float | None:
        return weighted_mean(self.rows)

    def by_device(self) -> list[tuple[str, float | None, int, int]]:
        """Name, weighted mean, how many are finished, and of how many."""
        names = dict.fromkeys(row.device for row in self.rows)
        rows = {name: [row for row in self.rows if row.device == name] for name in names}
        finished = {name: sum(row.status == "finished" for row in its) for name, its in rows.items()}
        return [(name, weighted_mean(its), finished[name], len(its)) for name, its in rows.items()]


def weighted_mean(rows: Sequence[FleetRow]) -> float | None:
    """Of what was verified; None where nothing was."""
    known = [(row.weight, math.log(row.verified.speedup)) for row in rows if row.verified is not None]
    whole = sum(weight for weight, _ in known)
    return math.exp(sum(weight * log for weight, log in known) / whole) if whole else None


FLEET_JOURNAL = "fleet.jsonl"
Then = Literal["stop", "finish"]  # what a run does when its share is used up
How = Literal["finished", "paused", "failed", "waiting", "no device", "lost"]
MAX_LOSSES = 3  # of a cell in a row that got nowhere
OPENING_SHARE = 0.25  # of the budget, for first shares: each cell has the same
LEAST_SHARE = 0.1  # of a first share: what is left below that is no share any more
FIRST_GAIN = math.log(1.5)  # log speed-up that a first share is expected to bring, where nothing is known
GAIN_DECAY = 0.25  # of that gain is left after each share in which something was searched
MIN_GAIN = 0.005  # log speed-up that a share must be expected to bring, or the cell finishes


@dataclass(frozen=True)
class CellStanding:
    """What a run's journal says of it."""

    device_seconds: float = 0.0  # as budgets of runs count them
    seconds: float = 0.0  # in which somebody worked on it
    evaluations: int = 0
    best: float = 1.0  # speed-up, by the search
    expected: float | None = None  # log speed-up that the searcher expects of its next batch
    headroom: float | None = None  # log of how many times its floor the best takes
    verified: VerifiedCell | None = None


@dataclass(frozen=True)
class HeadBegan:
    """A process that runs the fleet, with this budget. What an earlier one had lost patience with is tried
    again."""

    hours: float


@dataclass(frozen=True)
class CellBegan:
    """Before its process is there."""

    cell: str
    slot: str
    until: float  # device-seconds of its run, all together
    then: Then


@dataclass(frozen=True)
class CellEnded:
    cell: str
    slot: str
    how: How
    standing: CellStanding
    reason: str = ""
    code: int = 0
    asked: bool = False  # the whole fleet was being stopped


FleetEvent = HeadBegan | CellBegan | CellEnded


@dataclass(frozen=True)
class FleetLine:
    """One line of the journal: it has one of these."""

    number: int
    head: HeadBegan | None = None
    began: CellBegan | None = None
    ended: CellEnded | None = None

    @property
    def event(self) -> FleetEvent | None:
        return self.head or self.began or self.ended


_FIELDS: dict[type[FleetEvent], str] = {HeadBegan: "head", CellBegan: "began", CellEnded: "ended"}


class FleetJournal:
    """Append-only lines, each on disk before anyone acts on it; a torn last line is dropped."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FLEET_JOURNAL
        self._number = 0
        self._descriptor: int | None = None

    def read(self) -> Iterator[FleetEvent]:
        if not self._path.exists():
            return
        with explain_disk_errors("read the fleet's journal", self._path):
            lines = read_plain(self._path).split(b"\n")[:-1]
        for number, data in enumerate(lines):
            try:
                line = decode_json(data, FleetLine, "line of a fleet's journal")
                if line.number != number or line.event is None:
                    raise Malformed(f"event {line.number} stands in place {number}")
            except Malformed as error:
                where = f"{self._path}:{number + 1}"
                raise BadInput(f"the journal is damaged: {error}", where=where, hint=DAMAGED) from error
            yield line.event
        self._number = len(lines)

    def append(self, event: FleetEvent) -> None:
        """After everything was read."""
        with explain_disk_errors("write the fleet's journal", self._path):
            if self._descriptor is None:
                self._descriptor = open_plain(self._path, os.O_RDWR | os.O_CREAT)
                data = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
                os.ftruncate(self._descriptor, data.rfind(b"\n") + 1)
                os.lseek(self._descriptor, 0, os.SEEK_END)
            data = encode_json(FleetLine(self._number, **{_FIELDS[type(event)]: event})) + b"\n"  # type: ignore[arg-type]
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        self._number += 1

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


# -- the state ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellState:
    status: CellStatus = "not begun"
    standing: CellStanding = field(default_factory=CellStanding)
    began: CellBegan | None = None  # the session that is under way
    sessions: int = 0  # shares that were used, or given back early
    searches: int = 0  # of these, after which something had been searched
    gained: float = 0.0  # log speed-up that the last of them brought
    before: float = 0.0  # device-seconds that went into the original and gates, as far as is known
    losses: int = 0  # in a row without anything gained by it
    lost_on: str = ""  # the slot
    reason: str = ""
    code: int = 0

    @property
    def is_ready(self) -> bool:
        return self.status in ("not begun", "paused", "no device")


@dataclass(frozen=True)
class FleetState:
    hours: float = 0.0
    heads: int = 0
    cells: Mapping[str, CellState] = field(default_factory=dict)  # of which something is known

    def of(self, cell: str) -> CellState:
        return self.cells.get(cell, CellState())

    @property
    def spent(self) -> float:
        """Device-seconds, of all cells."""
        return sum(cell.standing.device_seconds for cell in self.cells.values())

    @property
    def at_work(self) -> dict[str, CellBegan]:
        return {name: cell.began for name, cell in self.cells.items() if cell.began is not None}

    @property
    def reserved(self) -> float:
        """Device-seconds that cells at work may still use."""
        used = {name: self.of(name).standing.device_seconds for name in self.at_work}
        return sum((max(0.0, began.until - used[name]) for name, began in self.at_work.items()), 0.0)


def apply_fleet_event(state: FleetState, event: FleetEvent) -> FleetState:
    match event:
        case HeadBegan(hours):
            cells = {name: _try_again(cell) for name, cell in state.cells.items()}
            return replace(state, hours=hours, heads=state.heads + 1, cells=cells)
        case CellBegan(name):
            cell = replace(state.of(name), status="at work", began=event, reason="", code=0)
        case CellEnded(name):
            cell = _end_session(state.of(name), event)
    return replace(state, cells={**state.cells, name: cell})


def fold_fleet_events(events: Iterable[FleetEvent]) -> FleetState:
    state = FleetState()
    for event in events:
        state = apply_fleet_event(state, event)
    return state


def _try_again(cell: CellState) -> CellState:
    """What is wrong with a kernel stays wrong; a disk, a device or a reply may be there by now."""
    if cell.status == "waiting" or (cell.status == "failed" and cell.code != 3):
        return replace(cell, status="paused", losses=0, lost_on="", reason="", code=0)
    return replace(cell, losses=0, lost_on="")


def _end_session(cell: CellState, event: CellEnded) -> CellState:
    before, now = cell.standing, event.standing
    ended = replace(cell, standing=now, began=None, reason=event.reason, code=event.code)
    if event.how == "no device":  # which is no fault of the cell
        return replace(ended, status="no device", lost_on=event.slot)
    if event.how == "lost":
        got_on = now.device_seconds > before.device_seconds
        losses = 0 if got_on or event.asked else cell.losses + 1
        if losses < MAX_LOSSES:
            return replace(ended, status="paused", losses=losses, lost_on=event.slot, code=0)
        words = f"lost {losses} times in a row: {event.reason}"
        return replace(ended, status="failed", losses=losses, reason=words, code=event.code or 1)
    ended = replace(ended, status=event.how, losses=0, lost_on="")
    if event.how != "paused" or event.asked:
        return ended
    return replace(
        ended,
        sessions=cell.sessions + 1,
        searches=cell.searches + (now.evaluations > 0),
        gained=math.log(now.best / before.best) if now.best > before.best > 0 else 0.0,
        before=cell.before if now.evaluations else now.device_seconds,
    )


# -- the budget -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellShare:
    cell: FleetCell
    seconds: float
    value: float  # expected log speed-up for each device-second, by its weight


def expected_gain(cell: CellState) -> float:
    """Log speed-up that the next share may bring, at most to the floor. A share doubles what a cell has had;
    where the best grows with the logarithm of the time, each brings what the last one brought."""
    known = cell.standing
    gain = max(cell.gained, known.expected or 0.0, FIRST_GAIN * GAIN_DECAY**cell.searches)
    return gain if known.headroom is None else min(gain, max(0.0, known.headroom))


def _start_cost(state: FleetState) -> float:
    """Device-seconds before anything is searched, beyond a first share: by the cells that have begun."""
    begun = [cell.before for cell in state.cells.values() if cell.sessions]
    return sum(begun) / len(begun) if begun else 0.0


def _next_share(state: FleetState, cell: FleetCell, opening: float, start: float) -> CellShare | None:
    """None: it can have none, or is not worth one."""
    known = state.of(cell.name)
    gain = expected_gain(known)
    if not known.is_ready or gain < MIN_GAIN:
        return None
    if known.sessions:
        seconds = max(opening, known.standing.device_seconds)
        return CellShare(cell, seconds, cell.weight * gain / seconds)
    # Nobody is judged by its prospects before it has had a first share, unless first shares prove too small.
    return CellShare(cell, opening, cell.weight * gain / (opening + start) if start > opening else math.inf)


def fund_cells(state: FleetState, cells: Sequence[FleetCell]) -> list[CellShare]:
    """Of cells that are ready those that the rest of the budget is for, the best first: it is poured over
    them in that order until nothing is left."""
    left = state.hours * HOUR - state.spent - state.reserved
    opening, start = OPENING_SHARE * state.hours * HOUR / max(1, len(cells)), _start_cost(state)
    wanted = [share for cell in cells if (share := _next_share(state, cell, opening, start)) is not None]
    funded = []
    for share in sorted(wanted, key=lambda s: (-s.value, -s.cell.weight, s.cell.number)):
        is_new = not state.of(share.cell.name).sessions
        if left <= LEAST_SHARE * opening:
            break
        if is_new and left < start:
            continue  # it would not come to its search
        funded.append(replace(share, seconds=min(share.seconds, left)))
        left -= share.seconds + (start if is_new and start > opening else 0.0)
    return funded


def next_start(
    state: FleetState, cells: Sequence[FleetCell], slots: Sequence[FleetSlot]
) -> tuple[FleetSlot, CellBegan] | None:
    """What starts next in a free one of these slots; None: nothing until something ends, or ever."""
    taken = {began.slot for began in state.at_work.values()}
    if all(slot.name in taken for slot in slots):
        return None
    funded = fund_cells(state, cells)
    for share in funded:
        if (slot := _free_slot(state, share.cell, slots, taken)) is not None:
            until = state.of(share.cell.name).standing.device_seconds + share.seconds
            return slot, CellBegan(share.cell.name, slot.name, until, "stop")
    is_searching = any(began.then == "stop" for began in state.at_work.values())
    for cell in sorted(cells, key=lambda c: (-c.weight, c.number)):
        known = state.of(cell.name)
        seconds = known.standing.device_seconds
        # Nothing can come back to it.
        is_over = expected_gain(known) < MIN_GAIN or not (funded or is_searching)
        is_due = known.is_ready and seconds > 0 and is_over
        if is_due and (slot := _free_slot(state, cell, slots, taken)) is not None:
            return slot, CellBegan(cell.name, slot.name, seconds, "finish")
    return None


def _free_slot(
    state: FleetState, cell: FleetCell, slots: Sequence[FleetSlot], taken: set[str]
) -> FleetSlot | None:
    """Of those for its device; the one where it was lost only if there is no other."""
    lost_on = state.of(cell.name).lost_on
    fitting = [slot for slot in slots if slot.device == cell.device.name]
    others = [slot for slot in fitting if slot.name != lost_on] or fitting
    return next((slot for slot in others if slot.name not in taken), None)


# -- What a fleet has come to, as a page, as Markdown and as a table for a terminal.


HTML, MARKDOWN, DATA = "fleet.html", "fleet.md", "fleet-data.json"
MAX_ROWS = 1500  # on a page; all are in the data
MAX_REASON = 200
_HEAD = "problem | device | author | status | speed-up: | 95 % interval | × floor: | device hours: | tried:"


def cell_values(row: FleetRow) -> tuple[str, ...]:
    """What was verified; in brackets what only the search says."""
    best = f"({row.best:.2f}×)" if row.evaluations and row.best > 1 else ""
    speedup, span, floor = best, "", ""
    if (found := row.verified) is not None:
        speedup, span = found.figure.words, found.figure.span
        floor = ratio_text(found.floor) if found.floor is not None else ""
    about = (row.problem, row.device, row.author, row.status)
    return (*about, speedup, span, floor, f"{row.device_seconds / 3600:.4f}", str(row.evaluations))


def fleet_grid(found: FleetResult) -> Grid:
    rows = [(*cell_values(row), _unfinished_reason(row)) for row in found.rows]
    return Grid(f"{_HEAD} | why", rows)


def _unfinished_reason(row: FleetRow) -> str:
    return "" if row.status == "finished" else truncate_text(row.reason, MAX_REASON)


def total_lines(found: FleetResult) -> list[tuple[str, str]]:
    counts = found.counts
    lines = [("cells", ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status]))]
    lines.append(("device hours", f"{found.used:.3f} of {found.hours:g}, {found.held:.3f} with all else"))
    if found.mean is not None:
        lines.append(("weighted mean", f"{found.mean:.3f}× verified"))
    for name, mean, finished, of in found.by_device():
        lines.append((f"on {name}", f"{'' if mean is None else f'{mean:.3f}×, '}{finished} of {of} finished"))
    return lines + [("note", note) for note in found.notes]


def fleet_markdown(found: FleetResult) -> str:
    grid = fleet_grid(found)
    lines = [f"# {escape_markdown(found.name)}: {format_count(len(found.rows), 'cell')}", ""]
    lines += [f"- {escape_markdown(f'{name}: {text}')}" for name, text in total_lines(found)]
    lines += ["", "A speed-up in brackets is by the search, not verified.", ""]
    lines += markdown_table(grid.head, ([escape_markdown(str(value)) for value in row] for row in grid.rows))
    return "\n".join(lines) + "\n"


def fleet_html(found: FleetResult) -> str:
    """In the form of a run's own page, with a link to each."""
    shown = found.rows[:MAX_ROWS]
    finished = found.counts["finished"]
    inside: list[Markup] = [html_element("h2", "What was verified")]
    figures = [(f"{finished} of {len(found.rows)}", "cells are finished", finished == len(found.rows))]
    if found.mean is not None:
        words = "weighted geometric mean of the finished, verified"
        figures.insert(0, (f"{found.mean:.2f}×", words, found.mean > 1))
    hours = f"of {found.hours:g} device hours used; with builds, races and verification {found.held:.3f}"
    figures.append((f"{found.used:.3f}", hours, False))
    inside.append(page.figures_markup(figures))
    rows = [(*cell_values(row), _report_link(row), _unfinished_reason(row)) for row in shown]
    words = "Each problem on each device; a speed-up in brackets is by the search, not verified"
    inside.append(page.table_markup(Grid(f"{_HEAD} | report | why", rows), words, MAX_ROWS))
    if len(found.rows) > len(shown):
        inside.append(html_element("p", f"{len(found.rows) - len(shown):,} more in {DATA}."))
    told: list[Markup] = []
    for name, text in total_lines(found):
        told += [html_element("dt", name), html_element("dd", truncate_text(text, 600))]
    altogether = html_element("section", html_element("h2", "Altogether"), html_element("dl", *told))
    parts = [html_element("section", *inside, id="verified"), altogether]
    cells = format_count(len(found.rows), "cell")
    about = f"A fleet of {cells} under one budget of {found.hours:g} device hours."
    return page.whole_page(truncate_text(found.name, 80), about, parts, "Written by Tunesmith.")


def _report_link(row: FleetRow) -> Markup | str:
    """Runs that have ended have a page."""
    if row.verified is None:
        return ""
    return html_element("a", "report", href=f"{quote(row.run)}/report.html")
