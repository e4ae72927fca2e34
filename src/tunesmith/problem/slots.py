"""Memory that timed launches rotate through: what lies at which slot of it, the same in every process.

An arena is one long stretch of drawn numbers; slot s of an array begins s strides into it, so what follows an
array up to the next slot is known as well. Swapping a few stretches makes an input that no launch has seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.draws import BLOCK, RepeatedBlock, draw_block
from tunesmith.problem.plan import BufferPlan
from tunesmith.text import seed_of

Array = NDArray[Any]
VERSIONS = 2  # of arrays that the user's function makes: neighbouring slots differ
GAP = 64  # bytes at least that belong to nobody between two slots
SWAPS = 8  # pairs of stretches
LONGEST = 1024  # items of a stretch: so many that the sum of a long row changes by more than a tolerance


@dataclass(frozen=True)
class SlotPlace:
    """One slot among those of a workload; `apart`: strides are multiples of so many bytes."""

    slot: int
    apart: int
    swaps: int = 0  # the seed of what was swapped; 0: nothing was

    @property
    def version(self) -> int:
        return self.slot % VERSIONS


def stride_of(b: BufferPlan, apart: int) -> int:
    """An odd number of alignments: slots begin at odd and even ones, as arrays do in checks."""
    align = max(b.align, apart, b.itemsize)
    return (-(-(b.nbytes + GAP) // align) | 1) * align


@lru_cache(8)
def arena_block(b: BufferPlan, distribution: str, seed: int) -> RepeatedBlock:
    """What the arena of an array repeats, however large it is."""
    count = b.packed * (BLOCK + 1)
    long = replace(b, shape=(count,), strides=(1,), extent=count)
    return draw_block(long, distribution, seed, is_timed=True)


def block_of(b: BufferPlan, distribution: str, seed: int) -> RepeatedBlock:
    # Sizes and tolerances change nothing: one block serves every workload.
    plain = replace(b, shape=(1,), strides=(1,), extent=1, traffic=None, rtol=0.0, atol=0.0, align=1)
    return arena_block(plain, distribution, seed)


@lru_cache(256)
def moves(b: BufferPlan, seed: int, back: bool = False) -> tuple[tuple[int, int, int], ...]:
    """What swapping moves: to which place, from which place of what was drawn, and how many items of memory;
    `back`: each its own again. Nothing where there are too few, or no seed."""
    if not seed or b.words < 2:
        return ()
    length = max(1, min(LONGEST, b.words // (16 * SWAPS)))
    stretches = b.words // length
    rng = np.random.default_rng(seed_of(seed, b.name))
    spare = int(rng.integers(b.words - stretches * length + 1))
    places = [
        spare + number * length for number in _different(rng, 2 * min(SWAPS, stretches // 2), stretches)
    ]
    others = [places[n ^ 1] for n in range(len(places))]  # neighbours in the list change places
    return tuple((to, to if back else source, length) for to, source in zip(places, others, strict=True))


def _different(rng: np.random.Generator, count: int, most: int) -> list[int]:
    """Different numbers out of possibly very many, without a list of them all."""
    found: dict[int, None] = {}
    while len(found) < count:
        found[int(rng.integers(most))] = None
    return list(found)


def slot_items(
    b: BufferPlan, distribution: str, seed: int, place: SlotPlace, first: int = 0, count: int | None = None
) -> Array:
    """The array at a slot in memory, with what was swapped: `count` items from `first` on, or all of them."""
    block = block_of(b, distribution, seed)
    start = place.slot * stride_of(b, place.apart) // b.itemsize
    items = np.array(block.stretch(start + first, b.words if count is None else count))
    for to, source, length in moves(b, place.swaps):
        begin, end = max(to, first), min(to + length, first + items.size)
        if begin < end:
            part = block.stretch(start + source + begin - to, end - begin)
            items[begin - first : end - first] = part
    return items


def after_slot(b: BufferPlan, distribution: str, seed: int, place: SlotPlace) -> bytes:
    """What lies between an array and the next slot."""
    stride = stride_of(b, place.apart)
    first = place.slot * stride // b.itemsize
    end = (place.slot + 1) * stride // b.itemsize
    gap = block_of(b, distribution, seed).stretch(first + b.words, end - first - b.words)
    return gap.tobytes()
