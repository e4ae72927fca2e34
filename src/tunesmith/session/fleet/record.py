"""What happens in a fleet, as lines of its journal, the state that they fold into, and how that state deals
the budget out: the same journal gives the same answer. docs/fleet.md has the rule in words."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tunesmith.deliver.fleet import CellStatus, VerifiedCell
from tunesmith.errors import BadInput
from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.run.files import explained, open_plain, read_plain
from tunesmith.session.fleet.plan import DAMAGED, HOUR, FleetCell, FleetSlot

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
            data = encode(FleetLine(self._number, **{_FIELDS[type(event)]: event})) + b"\n"  # type: ignore[arg-type]
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


def apply(state: FleetState, event: FleetEvent) -> FleetState:
    match event:
        case HeadBegan(hours):
            cells = {name: _try_again(cell) for name, cell in state.cells.items()}
            return replace(state, hours=hours, heads=state.heads + 1, cells=cells)
        case CellBegan(name):
            cell = replace(state.of(name), status="at work", began=event, reason="", code=0)
        case CellEnded(name):
            cell = _end_session(state.of(name), event)
    return replace(state, cells={**state.cells, name: cell})


def fold(events: Iterable[FleetEvent]) -> FleetState:
    state = FleetState()
    for event in events:
        state = apply(state, event)
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
