"""From a plan to launches: arguments bound to memory, and what that memory holds before a run."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tunesmith.backends.port import Call, Executable, LocalBytes, Pointer, Scalar
from tunesmith.core.checks.draws import packed
from tunesmith.core.dtypes import element_type
from tunesmith.core.plan import BufferPlan, Plan
from tunesmith.lab import guards


def bind_calls(plan: Plan, executable: Executable, pointers: dict[str, Pointer]) -> list[Call]:
    bound: dict[str, Pointer | Scalar | LocalBytes] = {**pointers}
    bound.update({s.name: Scalar(s.type, s.value) for s in plan.scalars})
    bound.update({x.name: LocalBytes(x.nbytes) for x in plan.locals})
    bound.update({name: pointers[target] for name, target in plan.aliases})
    return [
        Call(
            executable,
            x.entry,
            x.grid,
            x.block,
            x.shared,
            tuple(bound[name] for name in x.args),
            x.cluster,
            x.cooperative,
            x.pdl,
        )
        for x in plan.launches
    ]


def initial_payload(item: BufferPlan, pattern: bytes) -> bytes:
    """What an array that is no input holds before a run: poison, or what the caller promises to put there.

    Gaps between strided rows keep one pattern in both runs, so that only real elements may differ.
    """
    element = element_type(item.type)
    if item.init is None and item.extent == item.count:
        return guards.fill(pattern, item.nbytes)
    word = np.dtype(f"u{element.bytes}")
    memory = np.frombuffer(guards.fill(guards.PATTERN, item.nbytes), dtype=word).copy()
    shape, strides = (item.shape, item.strides) if element.packed == 1 else ((item.words,), (1,))
    view = as_strided(memory, shape, tuple(s * element.bytes for s in strides))
    if item.init is not None:
        view[...] = packed(np.full(element.packed, item.init).astype(element.numpy), element).view(word)
    else:
        view[...] = np.resize(np.frombuffer(guards.fill(pattern, 8), dtype=word), item.shape)
    return memory.tobytes()
