"""What happens in a fleet, as lines of its journal, and the state that they fold into."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tunesmith.deliver.fleet import CellStatus, VerifiedCell
from tunesmith.errors import BadInput
from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.run.files import explained, open_plain, read_plain

FLEET_JOURNAL = "fleet.jsonl"
DAMAGED = "restore the folder from a copy, or begin another fleet with --out"
Then = Literal["stop", "finish"]  # what a run does when its share is used up
How = Literal["finished", "paused", "failed", "waiting", "no device", "lost"]
MOST_LOSSES = 3  # of a cell in a row that got nowhere; after so many in a row a slot rests
REST, LONGEST_REST = 300.0, 1200.0  # seconds: the first time, then twice that, and so on
MOST_RESTS = 8  # then it is left out, as long as this head is there


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
    at: float = 0.0  # seconds since the epoch


FleetEvent = HeadBegan | CellBegan | CellEnded


@dataclass(frozen=True)
class FleetLine:
    """One line of the journal: it has one of these."""

    number: int
    head: HeadBegan | None = None
    began: CellBegan | None = None
    ended: CellEnded | None = None

    @staticmethod
    def of(number: int, event: FleetEvent) -> FleetLine:
        match event:
            case HeadBegan():
                return FleetLine(number, head=event)
            case CellBegan():
                return FleetLine(number, began=event)
            case CellEnded():
                return FleetLine(number, ended=event)

    @property
    def event(self) -> FleetEvent | None:
        return self.head or self.began or self.ended


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
class SlotLosses:
    """In a row, under this head. What one cell loses again and again is no fault of the slot."""

    count: int = 0
    cell: str = ""  # the last
    at: float = 0.0
    worked: bool = False  # something ended well there before

    def after(self, event: CellEnded, got_on: bool) -> SlotLosses:
        if event.how not in ("lost", "no device"):
            return SlotLosses(worked=True)
        if got_on:  # it was there in between
            return SlotLosses(1, event.cell, event.at, worked=True)
        if event.asked or (event.how == "lost" and event.cell == self.cell):
            return self
        return SlotLosses(self.count + 1, event.cell, event.at, self.worked)

    @property
    def until(self) -> float:
        """When it may be used again. What never worked is not waited for: its name may be wrong."""
        rests = self.count - MOST_LOSSES
        if rests < 0:
            return 0.0
        if not self.worked or rests >= MOST_RESTS:
            return math.inf
        return self.at + min(LONGEST_REST, REST * float(2**rests))


@dataclass(frozen=True)
class FleetState:
    hours: float = 0.0
    heads: int = 0
    cells: Mapping[str, CellState] = field(default_factory=dict)  # of which something is known
    slots: Mapping[str, SlotLosses] = field(default_factory=dict)

    def of(self, cell: str) -> CellState:
        return self.cells.get(cell, CellState())

    def rests_until(self, slot: str) -> float:
        """Seconds since the epoch; 0: it does not; infinite: it is left out."""
        return self.slots[slot].until if slot in self.slots else 0.0

    def is_resting(self, slot: str, now: float) -> bool:
        """Nobody rests for longer than the longest rest: where the clock has been put back, it is over."""
        until = self.rests_until(slot)
        return until == math.inf or 0 < until - now <= LONGEST_REST

    @property
    def spent(self) -> float:
        """Device-seconds, of all cells."""
        return sum(cell.standing.device_seconds for cell in self.cells.values())

    @property
    def reserved(self) -> float:
        """Device-seconds that cells at work may still use."""
        at_work = [cell for cell in self.cells.values() if cell.began is not None]
        return sum((max(0.0, c.began.until - c.standing.device_seconds) for c in at_work if c.began), 0.0)


def apply(state: FleetState, event: FleetEvent) -> FleetState:
    match event:
        case HeadBegan(hours):
            cells = {name: _tried_again(cell) for name, cell in state.cells.items()}
            slots = {name: SlotLosses(worked=own.worked) for name, own in state.slots.items()}
            return replace(state, hours=hours, heads=state.heads + 1, cells=cells, slots=slots)
        case CellBegan(name):
            own = replace(state.of(name), status="at work", began=event, reason="", code=0)
            return replace(state, cells={**state.cells, name: own})
        case CellEnded(name, slot):
            got_on = event.standing.device_seconds > state.of(name).standing.device_seconds
            slots = {**state.slots, slot: state.slots.get(slot, SlotLosses()).after(event, got_on)}
            own = _ended(state.of(name), event)
            return replace(state, cells={**state.cells, name: own}, slots=slots)


def fold(events: Iterable[FleetEvent]) -> FleetState:
    state = FleetState()
    for event in events:
        state = apply(state, event)
    return state


def _tried_again(cell: CellState) -> CellState:
    """What is wrong with a kernel stays wrong; a disk, a device or a reply may be there by now."""
    if cell.status == "waiting" or (cell.status == "failed" and cell.code != 3):
        return replace(cell, status="paused", losses=0, lost_on="", reason="", code=0)
    return replace(cell, losses=0, lost_on="")


def _ended(cell: CellState, event: CellEnded) -> CellState:
    before, now = cell.standing, event.standing
    known = replace(cell, standing=now, began=None, reason=event.reason, code=event.code)
    if event.how == "no device":  # which is no fault of the cell
        return replace(known, status="no device", lost_on=event.slot)
    if event.how == "lost":
        got_on = now.device_seconds > before.device_seconds
        losses = 0 if got_on or event.asked else cell.losses + 1
        if losses < MOST_LOSSES:
            return replace(known, status="paused", losses=losses, lost_on=event.slot, code=0)
        words = f"lost {losses} times in a row: {event.reason}"
        return replace(known, status="failed", losses=losses, reason=words, code=event.code or 1)
    known = replace(known, status=event.how, losses=0, lost_on="")
    if event.how != "paused" or event.asked:
        return known
    return replace(
        known,
        sessions=cell.sessions + 1,
        searches=cell.searches + (now.evaluations > 0),
        gained=_log_ratio(now.best, before.best),
        before=cell.before if now.evaluations else now.device_seconds,
    )


def _log_ratio(now: float, before: float) -> float:
    return max(0.0, math.log(now / before)) if now > 0 and before > 0 else 0.0


class FleetJournal:
    """Append-only lines, each on disk before anyone acts on it; a torn last line is dropped."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FLEET_JOURNAL
        self._number = 0
        self._descriptor: int | None = None

    def read(self) -> Iterator[FleetEvent]:
        if not self._path.exists():
            return
        with explained("read the fleet's journal", self._path):
            lines = read_plain(self._path).split(b"\n")[:-1]
        for number, data in enumerate(lines):
            try:
                line = decode(data, FleetLine, "line of a fleet's journal")
                if line.number != number or line.event is None:
                    raise Malformed(f"event {line.number} stands in place {number}")
            except Malformed as error:
                where = f"{self._path}:{number + 1}"
                raise BadInput(f"the journal is damaged: {error}", where=where, hint=DAMAGED) from error
            yield line.event
        self._number = len(lines)

    def append(self, event: FleetEvent) -> None:
        """After everything was read."""
        with explained("write the fleet's journal", self._path):
            if self._descriptor is None:
                self._descriptor = open_plain(self._path, os.O_RDWR | os.O_CREAT)
                data = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
                os.ftruncate(self._descriptor, data.rfind(b"\n") + 1)
                os.lseek(self._descriptor, 0, os.SEEK_END)
            data = encode(FleetLine.of(self._number, event)) + b"\n"
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        self._number += 1

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
