"""Guard zones and poison: how a buffer is laid out so that stray writes and missing ones show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tunesmith.core.counted import counted
from tunesmith.core.digest import digest_of
from tunesmith.core.plan import BufferPlan

GUARD = 1 << 16  # bytes on either side
# What outputs hold before the first and the second run. Every half, bfloat16, float and double made of these
# bytes is a quiet NaN, so that stray reads show as well.
PATTERN = bytes((0xE7, 0xFF, 0xF5, 0xFF))
OTHER_PATTERN = bytes((0xD3, 0x7F, 0xF9, 0x7F))


@dataclass(frozen=True)
class GuardedLayout:
    """A block [guard | payload | guard]; the payload is aligned exactly as promised, not better."""

    offset: int
    nbytes: int
    total: int


def guarded(nbytes: int, align: int) -> GuardedLayout:
    offset = (GUARD // (2 * align) + 1) * 2 * align + align
    # An empty array still gets a byte, because no driver allocates or binds nothing.
    return GuardedLayout(offset, nbytes, offset + max(nbytes, 1) + GUARD)


def fill(pattern: bytes, nbytes: int) -> bytes:
    return (pattern * (nbytes // len(pattern) + 1))[:nbytes]


def zone_pattern(number: int) -> bytes:
    """What surrounds the buffer with that number. NaNs again, but of its own: a kernel that reads past one
    array and writes past another carries the first one's NaNs into zones where they do not belong."""
    return bytes((0xC1 + number % 62, 0x7F, 0xFB, 0xFF))


def zones(layout: GuardedLayout, number: int) -> tuple[bytes, bytes]:
    """The two zones of the buffer with that number when nothing has touched them."""
    pattern = zone_pattern(number)
    return fill(pattern, layout.offset), fill(pattern, layout.total - layout.offset - layout.nbytes)


def gaps_digest(buffer: BufferPlan, memory: bytes) -> str:
    """The memory between strided elements alone: no operator has any business there."""
    words = np.frombuffer(memory, dtype=f"u{buffer.itemsize}").copy()
    as_strided(words, buffer.shape, tuple(s * buffer.itemsize for s in buffer.strides))[...] = 0
    return digest_of(words.tobytes())


def damage(now: tuple[bytes, bytes], clean: tuple[bytes, bytes], itemsize: int) -> str:
    """Where the zones before and after an array were hit, relative to it, in words.

    By whole items of the array: of a number that was written some bytes may be those that lay there, as of
    another zone's NaN, which differs in one byte alone."""
    hits = []
    for is_before, zone, intact in ((True, now[0], clean[0]), (False, now[1], clean[1])):
        if zone != intact:
            differs = np.frombuffer(zone, np.uint8) != np.frombuffer(intact, np.uint8)
            items = np.unique(np.flatnonzero(differs[::-1] if is_before else differs) // itemsize)
            name = "before its start" if is_before else "past its end"
            distance = int(items[0]) * itemsize + is_before
            hits.append(f"{counted(items.size * itemsize, 'byte')} {name}, the nearest {distance} away")
    return "; ".join(hits)
