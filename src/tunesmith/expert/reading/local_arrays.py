"""How long arrays are that a launch gives to each block, from where the block's threads store in them."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.fold import int_value
from tunesmith.csource.substitution import substitute
from tunesmith.expert.model.kernel import KernelModel

_THREAD = c.Name("threadIdx.x")


def local_extent(kernel: KernelModel, array: str, block: Sequence[str]) -> str | None:
    """Of a kernel that was read: what is loaded there was stored before, so stores alone say how long it is.
    None where a store is not by the thread's number in a block of one axis."""
    if len(block) != 1:
        return None
    body = kernel.function.body
    nodes = [node for stmt in body for node in walk.nodes_in(stmt)]
    places = [n for n in nodes if isinstance(n, c.Index) and n.base == c.Name(array)]
    if sum(n == c.Name(array) for n in nodes) != len(places):
        return None  # a pointer to it goes elsewhere
    if any(isinstance(n, c.Unary) and n.operand in places for n in nodes):
        return None  # atomics, and what counts
    changed = walk.assigned_in(body)
    known = {
        n.name: n.init
        for n in nodes
        if isinstance(n, c.Declare) and n.init is not None and n.name not in changed
    }
    stored = [n.target for n in nodes if isinstance(n, c.Assign) and n.target in places]
    for place in stored:
        assert isinstance(place, c.Index)
        if not _within(substitute(place.index, known), block[0]):
            return None
    return block[0] if stored else None


def _within(index: c.Expr, threads: str) -> bool:
    match index:
        case c.Cast(value=value):
            return _within(value, threads)
        case c.Binary(op="/" | "%" | ">>" | "&", left=left):
            return _within(left, threads)
    at = int_value(index)
    return index == _THREAD or (at is not None and threads.isdecimal() and 0 <= at < int(threads))
