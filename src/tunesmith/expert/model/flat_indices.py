"""What an index of a flat kernel counts: threads of the grid, of one axis, of a block, or blocks."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.expert.model.geometry import Form
from tunesmith.expert.model.scenario import Scenario


@dataclass(frozen=True)
class FlatIndex:
    """What a variable counts. `kind`: "flat" (all threads of the grid), "both" (of one axis), "thread" or
    "block"; `times`: how far apart neighbours are."""

    kind: str
    axis: int
    times: int = 1


RANK = {"flat": 0, "both": 0, "thread": 1, "block": 1}


def says(known: FlatIndex, other: FlatIndex) -> bool:
    """Whether `other` follows from `known`."""
    if known.kind == other.kind and known.axis == other.axis:
        return other.times % known.times == 0
    if known.times != 1 or other.times != 1:
        return False
    if known.kind == "both":
        return other.kind in ("thread", "block") and other.axis == known.axis
    return known.kind == "flat" and other.kind == "block" and other.axis == known.axis


def kinds_of(form: Form, scenario: Scenario) -> set[FlatIndex]:
    """Everything the values fit; in small launches several."""
    found: set[FlatIndex] = set()
    places = [scenario.thread(thread) for thread in range(scenario.threads)]
    moving = [axis for axis in range(3) if form.per_block[axis]]
    if len(moving) > 1:
        return found
    for axis in moving or range(3):
        step = form.per_block[axis]
        if step and step % scenario.threads == 0:
            times = step // scenario.threads
            if all(value == times * thread for thread, value in enumerate(form.base)) and times > 0:
                found.add(FlatIndex("flat", axis, times))
        if step and step % scenario.block[axis] == 0:
            times = step // scenario.block[axis]
            if times > 0 and all(
                v == times * place[axis] for v, place in zip(form.base, places, strict=True)
            ):
                found.add(FlatIndex("both", axis, times))
        if step == 1 and not any(form.base):
            found.add(FlatIndex("block", axis))
        if step == 0 and all(v == place[axis] for v, place in zip(form.base, places, strict=True)):
            found.add(FlatIndex("thread", axis))
    return found
