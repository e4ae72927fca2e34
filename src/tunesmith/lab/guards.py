"""The memory of a launch: guard zones and poison, so that stray writes and missing ones show, what lies in it
before a run, arguments bound to it, and outputs read from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tunesmith.backends.port import Call, Executable, LocalBytes, Pointer, Scalar
from tunesmith.core.checks.draws import logical, packed
from tunesmith.core.counted import counted
from tunesmith.core.digest import digest_of
from tunesmith.core.dtypes import element_type
from tunesmith.core.plan import BufferPlan, Plan

GUARD = 1 << 16  # bytes on either side
# What outputs hold before the first and the second run. Every half, bfloat16, float and double made of these
# bytes is a quiet NaN, so that stray reads show as well.
PATTERN = bytes((0xE7, 0xFF, 0xF5, 0xFF))
OTHER_PATTERN = bytes((0xD3, 0x7F, 0xF9, 0x7F))
Array = NDArray[Any]
POISON_PERIOD = 8  # bytes; the pattern repeats, and no element is wider


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


def as_array(buffer: BufferPlan, data: bytes) -> Array:
    return logical(np.frombuffer(data, dtype=element_type(buffer.type).memory), buffer)


def count_poisoned(buffer: BufferPlan, data: bytes) -> int:
    """Elements that still hold exactly what an output is poisoned with before the first run."""
    if buffer.role != "output" or buffer.init is not None:
        return 0
    word = np.dtype(f"u{buffer.itemsize}")
    cycle = np.frombuffer(fill(PATTERN, POISON_PERIOD), dtype=word)
    memory = np.frombuffer(data, dtype=word)
    if buffer.packed > 1:  # by whole bytes: half of one is poison by chance too often
        return buffer.packed * int(np.count_nonzero(memory == np.resize(cycle, memory.shape)))
    view = logical(memory, buffer)
    return int(np.count_nonzero(view == np.resize(cycle, buffer.shape)))


def gaps_damaged(buffer: BufferPlan, data: bytes, before: str | None) -> bool:
    """Whether the memory between strided elements changed; an output's was poisoned."""
    if buffer.extent == buffer.count:
        return False
    poisoned = fill(PATTERN, len(data))
    return gaps_digest(buffer, data) != (before or gaps_digest(buffer, poisoned))


def bind_calls(plan: Plan, executable: Executable, pointers: dict[str, Pointer]) -> list[Call]:
    bound: dict[str, Pointer | Scalar | LocalBytes] = {**pointers}
    bound.update({s.name: Scalar(s.type, s.value) for s in plan.scalars})
    bound.update({x.name: LocalBytes(x.nbytes) for x in plan.locals})
    bound.update({name: pointers[target] for name, target in plan.aliases})
    return [
        Call(executable, x.entry, x.grid, x.block, x.shared, tuple(bound[name] for name in x.args), x.cluster,
             x.cooperative, x.pdl)
        for x in plan.launches
    ]  # fmt: skip


def initial_payload(item: BufferPlan, pattern: bytes) -> bytes:
    """What an array that is no input holds before a run: poison, or what the caller promises to put there.

    Gaps between strided rows keep one pattern in both runs, so that only real elements may differ.
    """
    element = element_type(item.type)
    if item.init is None and item.extent == item.count:
        return fill(pattern, item.nbytes)
    word = np.dtype(f"u{element.bytes}")
    memory = np.frombuffer(fill(PATTERN, item.nbytes), dtype=word).copy()
    shape, strides = (item.shape, item.strides) if element.packed == 1 else ((item.words,), (1,))
    view = as_strided(memory, shape, tuple(s * element.bytes for s in strides))
    if item.init is not None:
        view[...] = packed(np.full(element.packed, item.init).astype(element.numpy), element).view(word)
    else:
        view[...] = np.resize(np.frombuffer(fill(pattern, 8), dtype=word), item.shape)
    return memory.tobytes()
