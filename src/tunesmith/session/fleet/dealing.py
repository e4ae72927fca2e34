"""How the budget of a fleet is dealt out: what starts next, and how long it may search. Pure: the same
journal gives the same answer. docs/fleet.md has the rule in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.session.fleet.plans import HOUR, FleetCell, FleetSlot
from tunesmith.session.fleet.record import CellBegan, CellState, FleetState

OPENING = 0.25  # of the budget, for first shares: each cell has the same
LEAST = 0.1  # of a first share: what is left below that is no share any more
HOPE = math.log(1.5)  # log speed-up that a first share is expected to bring, where nothing is known
LESS = 0.25  # of that hope is left after each share in which something was searched
WORTH = 0.005  # log speed-up that a share must be expected to bring, or the cell finishes


@dataclass(frozen=True)
class CellShare:
    cell: FleetCell
    seconds: float
    value: float  # expected log speed-up for each device-second, by its weight


def opening_share(state: FleetState, count: int) -> float:
    return OPENING * state.hours * HOUR / max(1, count)


def expected_gain(cell: CellState) -> float:
    """Log speed-up that the next share may bring, at most to the floor. A share doubles what a cell has had;
    where the best grows with the logarithm of the time, each brings what the last one brought."""
    known = cell.standing
    gain = max(cell.gained, known.expected or 0.0, HOPE * LESS**cell.searches)
    return gain if known.headroom is None else min(gain, max(0.0, known.headroom))


def start_cost(state: FleetState) -> float:
    """Device-seconds before anything is searched, beyond a first share: by the cells that have begun."""
    begun = [cell for cell in state.cells.values() if cell.sessions]
    return sum(cell.before for cell in begun) / len(begun) if begun else 0.0


def share_of(state: FleetState, cell: FleetCell, opening: float, start: float) -> CellShare | None:
    """None: it can have none, or is not worth one."""
    own = state.of(cell.name)
    gain = expected_gain(own)
    if not own.is_ready or gain < WORTH:
        return None
    if own.sessions:
        seconds = max(opening, own.standing.device_seconds)
        return CellShare(cell, seconds, cell.weight * gain / seconds)
    # Nobody is judged by its prospects before it has had a first share, unless first shares prove too small.
    return CellShare(cell, opening, cell.weight * gain / (opening + start) if start > opening else math.inf)


def funded(state: FleetState, cells: Sequence[FleetCell]) -> list[CellShare]:
    """Of cells that are ready those that the rest of the budget is for, the best first: it is poured over
    them in that order until nothing is left."""
    left = state.hours * HOUR - state.spent - state.reserved
    opening, start = opening_share(state, len(cells)), start_cost(state)
    wanted = [share for cell in cells if (share := share_of(state, cell, opening, start)) is not None]
    found = []
    for share in sorted(wanted, key=lambda s: (-s.value, -s.cell.weight, s.cell.number)):
        is_new = not state.of(share.cell.name).sessions
        if left <= LEAST * opening:
            break
        if is_new and left < start:
            continue  # it would not come to its search
        found.append(CellShare(share.cell, min(share.seconds, left), share.value))
        left -= share.seconds + (start if is_new and start > opening else 0.0)
    return found


def next_start(
    state: FleetState, cells: Sequence[FleetCell], free: Sequence[FleetSlot], every: Sequence[FleetSlot]
) -> tuple[FleetSlot, CellBegan] | None:
    """What starts next in one of the free slots, of all that are in service; None: nothing until something
    ends, or ever."""
    if not free:
        return None
    paid = funded(state, cells)
    for share in paid:
        if (slot := _slot_for(state, share.cell, free, every)) is not None:
            until = state.of(share.cell.name).standing.device_seconds + share.seconds
            return slot, CellBegan(share.cell.name, slot.name, until, "stop")
    searching = any(c.began is not None and c.began.then == "stop" for c in state.cells.values())
    for cell in sorted(cells, key=lambda c: (-c.weight, c.number)):
        own = state.of(cell.name)
        over = expected_gain(own) < WORTH or not (paid or searching)  # nothing can come back to it
        begun = own.is_ready and own.standing.device_seconds > 0
        if begun and over and (slot := _slot_for(state, cell, free, every)) is not None:
            return slot, CellBegan(cell.name, slot.name, own.standing.device_seconds, "finish")
    return None


def _slot_for(
    state: FleetState, cell: FleetCell, free: Sequence[FleetSlot], every: Sequence[FleetSlot]
) -> FleetSlot | None:
    """Of those for its device; the one where it was lost only if there is no other."""
    lost_on = state.of(cell.name).lost_on
    others = any(slot.device == cell.device.name and slot.name != lost_on for slot in every)
    own = (slot for slot in free if slot.device == cell.device.name)
    return next((slot for slot in own if slot.name != lost_on or not others), None)
