"""Guard zones and poison: how a buffer is laid out so that stray writes and missing ones show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tunesmith.core.digest import digest_of
from tunesmith.core.plan import BufferPlan

GUARD = 1 << 14  # bytes on either side
# Every half, float and double made of these bytes is a NaN, so that stray reads show as well.
PATTERN = bytes((0xA7, 0xFF, 0xC5, 0xFF))
OTHER_PATTERN = bytes((0xD3, 0x7F, 0xE9, 0x7F))


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


def intact_digest(layout: GuardedLayout) -> str:
    """What the two zones digest to when nothing has touched them."""
    return digest_of(
        fill(PATTERN, layout.offset), fill(PATTERN, layout.total - layout.offset - layout.nbytes)
    )


def zones_digest(before: bytes, after: bytes) -> str:
    return digest_of(before, after)


def gaps_digest(buffer: BufferPlan, memory: bytes) -> str:
    """The memory between strided elements alone: no operator has any business there."""
    words = np.frombuffer(memory, dtype=f"u{buffer.itemsize}").copy()
    as_strided(words, buffer.shape, tuple(s * buffer.itemsize for s in buffer.strides))[...] = 0
    return digest_of(words.tobytes())


def damage(before: bytes, after: bytes) -> str:
    """Where the zones were hit, relative to the array, in words."""
    hits = []
    for zone, name in ((before, "before its start"), (after, "past its end")):
        clean = fill(PATTERN, len(zone))
        if zone != clean:
            bad = [i for i in range(len(zone)) if zone[i] != clean[i]]
            distance = len(zone) - bad[-1] if zone is before else bad[0]
            hits.append(f"{len(bad)} bytes {name}, the nearest {distance} away")
    return "; ".join(hits)
