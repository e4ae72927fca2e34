"""Where the arrays of a case lie: drawn from the ways in which programs lay theirs (`docs/lab.md`, Layouts).

Two places are drawn for each case; the last run of a kernel is at the second one. All that decides is the
case's seed, so that those who judge know what lies around every array.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from tunesmith.base.text import seed_of
from tunesmith.problem.device import Device
from tunesmith.problem.plan import BufferPlan

GUARD = 1 << 16  # bytes on either side
PAGE = 4096
PHASE = 64  # both places of an array are alike within so many bytes, so that whole vectors can be compared
MOVED_BYTES = 1 << 24  # of a case, zones and all: what is larger lies where it lies for all runs
MOVED_SHARE = 1 << 4  # of a device's memory
FAR = 1 << 26  # bytes between two arrays, at most
FAR_SHARE = 1 << 8  # of a device's memory
GRAINS = (1, 1, 1, 256, 512, PAGE)  # what arrays begin at multiples of, where their own alignment is less

Arrangement = Literal["together", "apart", "far", "fenced"]
# At the first place and at the second: most cases have fences at one of them.
WEIGHTS: tuple[dict[Arrangement, int], ...] = (
    {"together": 4, "apart": 2, "far": 1, "fenced": 1},
    {"together": 1, "apart": 1, "far": 1, "fenced": 5},
)


@dataclass(frozen=True)
class GuardedLayout:
    """Part of a block of memory, [zone | payload | zone]; the payload is aligned as promised."""

    offset: int  # of the payload within its part
    nbytes: int
    total: int
    start: int = 0  # of the part within its block
    block: int = 0

    @property
    def place(self) -> int:
        return self.start + self.offset

    @property
    def zone_sizes(self) -> tuple[int, int]:
        return self.offset, self.total - self.offset - self.nbytes

    @property
    def fenced_pages(self) -> tuple[int, int]:
        """From where to where the payload's own pages reach, within the block."""
        return self.place // PAGE * PAGE, -(-(self.place + self.nbytes) // PAGE) * PAGE


@dataclass(frozen=True)
class CaseLayout:
    arrangement: Arrangement
    parts: tuple[GuardedLayout, ...]  # in the plan's order

    @property
    def blocks(self) -> tuple[int, ...]:
        """Bytes of each block of memory."""
        ends = [0] * (1 + max((p.block for p in self.parts), default=0))
        for p in self.parts:
            ends[p.block] = max(ends[p.block], p.start + p.total)
        return tuple(ends)


def is_fenced(layout: CaseLayout) -> bool:
    """Every array has pages of its own."""
    return layout.arrangement == "fenced"


def layouts_of(buffers: Sequence[BufferPlan], device: Device, seed: int) -> tuple[CaseLayout, ...]:
    """The two places of a case; one where its arrays are large."""
    limits = device.limits
    arrays = tuple((b.name, b.nbytes, max(b.align, limits.alignment)) for b in buffers)
    far = min(FAR, limits.memory // FAR_SHARE)
    most = min(MOVED_BYTES, limits.memory // MOVED_SHARE)
    return _drawn_layouts(arrays, seed, far, most, limits.max_allocation)


@lru_cache(256)
def _drawn_layouts(
    arrays: tuple[tuple[str, int, int], ...], seed: int, far: int, most: int, largest: int
) -> tuple[CaseLayout, ...]:
    is_small = sum(nbytes + 2 * GUARD for _, nbytes, _ in arrays) <= most
    grain = random.Random(seed).choice(GRAINS)
    fine = {n: 0 if grain > 1 else _odd_place(seed_of(seed, "place", n), align) for n, _, align in arrays}
    placed = [
        _ArrayToPlace(name, max(1, nbytes), nbytes, align, max(align, grain), fine[name])
        for name, nbytes, align in arrays
    ]
    return tuple(
        _draw_layout(placed, seed_of(seed, "layout", turn), far, largest, is_small, weights)
        for turn, weights in enumerate(WEIGHTS if is_small else WEIGHTS[:1])
    )


def _odd_place(seed: int, align: int) -> int:
    """Where an array begins within PHASE bytes; half of them are aligned no better than promised."""
    return 0 if seed % 2 or align >= PHASE else (seed // 2 % (PHASE // align) | 1) * align


@dataclass(frozen=True)
class _ArrayToPlace:
    name: str
    size: int  # at least a byte: no driver binds nothing
    nbytes: int
    align: int
    unit: int  # what it begins at a multiple of
    fine: int  # and so many bytes further on

    def after(self, cursor: int) -> int:
        unit = max(self.unit, PHASE)
        return -(-(cursor - self.fine) // unit) * unit + self.fine


def _draw_layout(
    arrays: list[_ArrayToPlace],
    seed: int,
    far: int,
    largest: int,
    is_small: bool,
    weights: dict[Arrangement, int],
) -> CaseLayout:
    chance = random.Random(seed)
    arrangement = chance.choices(list(weights), list(weights.values()))[0]
    order = chance.sample(range(len(arrays)), len(arrays))
    parts, cursor = dict[int, GuardedLayout](), 0
    for number, array in ((number, arrays[number]) for number in order):
        if arrangement == "fenced":
            pages = max(PAGE, array.align)
            zone = max(GUARD, pages)
            start, room = -(-cursor // pages) * pages, -(-array.size // pages) * pages
            spare = (room - array.size) // array.align * array.align
            ends = is_small and chance.random() < 0.5
            offset = zone + (spare if ends else min(spare, array.fine))
            parts[number] = GuardedLayout(offset, array.nbytes, 2 * zone + room, start)
            cursor = start + 2 * zone + room
            continue
        if arrangement == "together" and parts:
            cursor += chance.choice((0, 0, 64, 512, chance.randrange(PAGE)))
        else:
            cursor += GUARD + chance.randrange(far if arrangement == "far" else PAGE)
        place = array.after(cursor)
        parts[number] = GuardedLayout(GUARD, array.nbytes, 2 * GUARD + array.size, place - GUARD)
        cursor = place + array.size + (0 if arrangement == "together" else GUARD)
    if arrangement == "together":
        parts = dict(zip(order, _share_guard_zones([parts[n] for n in order]), strict=True))
    layout = CaseLayout(arrangement, tuple(parts[n] for n in range(len(arrays))))
    if max(layout.blocks) <= largest:
        return layout
    single = (GuardedLayout(p.offset, p.nbytes, p.total, 0, n) for n, p in enumerate(layout.parts))
    if arrangement == "together":
        return _draw_layout(arrays, seed + 1, far, largest, is_small, weights)
    return CaseLayout(arrangement, tuple(single))


def _share_guard_zones(parts: list[GuardedLayout]) -> list[GuardedLayout]:
    """Neighbours share what lies between them: it is the zone behind the first of the two."""
    starts = [parts[0].start, *(b.place for _, b in pairwise(parts))]
    ends = [*starts[1:], parts[-1].start + parts[-1].total]
    return [
        GuardedLayout(p.place - start, p.nbytes, end - start, start)
        for p, start, end in zip(parts, starts, ends, strict=True)
    ]
