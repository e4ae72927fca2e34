"""An output's memory: as an array, and what shows that it was not written or written beside."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.core.checks.draws import logical
from tunesmith.core.dtypes import element_type
from tunesmith.core.plan import BufferPlan
from tunesmith.lab import guards

Array = NDArray[Any]
POISON_PERIOD = 8  # bytes; the pattern repeats, and no element is wider


def as_array(buffer: BufferPlan, data: bytes) -> Array:
    return logical(np.frombuffer(data, dtype=element_type(buffer.type).memory), buffer)


def count_poisoned(buffer: BufferPlan, data: bytes) -> int:
    """Elements that still hold exactly what an output is poisoned with before the first run."""
    if buffer.role != "output" or buffer.init is not None:
        return 0
    word = np.dtype(f"u{buffer.itemsize}")
    cycle = np.frombuffer(guards.fill(guards.PATTERN, POISON_PERIOD), dtype=word)
    memory = np.frombuffer(data, dtype=word)
    if buffer.packed > 1:  # by whole bytes: half of one is poison by chance too often
        return buffer.packed * int(np.count_nonzero(memory == np.resize(cycle, memory.shape)))
    view = logical(memory, buffer)
    return int(np.count_nonzero(view == np.resize(cycle, buffer.shape)))


def unwritten_words(buffer: BufferPlan, count: int) -> str:
    """Poison plus something is still that poison, so what adds to an output looks as if it never wrote it."""
    never = f"{count} of {buffer.count} elements of {buffer.name} are never written"
    return f"{never}, or computed from what was there before: is it inout?"


def gaps_damaged(buffer: BufferPlan, data: bytes, before: str | None) -> bool:
    """Whether the memory between strided elements changed; an output's was poisoned."""
    if buffer.extent == buffer.count:
        return False
    poisoned = guards.fill(guards.PATTERN, len(data))
    return guards.gaps_digest(buffer, data) != (before or guards.gaps_digest(buffer, poisoned))
