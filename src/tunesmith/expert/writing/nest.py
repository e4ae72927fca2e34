"""Loop nests as data: axes from the outermost to the innermost, and the one place that prints them.

An axis says which values an index takes here. Who takes the others is in where it starts and how it steps:

    tasks of a block        first = TASK_BLOCK * TASKS, on by TASK_BLOCKS * TASKS    serial
    turns of a thread       base = lane * VEC, on by CHUNK                           serial
    packs of a turn         k below ITEMS, `own`: here = base + k * (LANES * VEC)    registers: unrolled
    elements of a pack      v below VEC, `own`: i = here + v                         registers: unrolled
    tasks taken at once     r below BLOCKED, `own`: the task's index                 registers: unrolled
    chunks under way        s below STAGES                                           registers: unrolled
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.csource import nodes as c
from tunesmith.csource.snippets import code
from tunesmith.csource.types import integer

Body = Sequence[c.Stmt]
_ZERO, _ONE = integer(0), integer(1)


@dataclass(frozen=True)
class LoopAxis:
    name: str
    stop: c.Expr
    start: c.Expr = _ZERO
    step: c.Expr = _ONE
    type: str = "int"
    unrolled: bool = False  # whole, so that arrays it goes through stay in registers
    own: tuple[c.Stmt, ...] = ()  # what follows from its value
    within: c.Expr | None = None  # that there is something to do at its value

    def over(self, body: Body) -> tuple[c.Stmt, ...]:
        inside = tuple(body) if self.within is None else (c.If(self.within, tuple(body)),)
        text = "for (T i = start; i < stop; i++) { own; inside; }"
        if self.step != _ONE:
            text = text.replace("i++", "i += step")
        return code(
            f"#pragma unroll\n{text}" if self.unrolled else text, T=self.type, i=self.name, start=self.start,
            stop=self.stop, step=self.step, own=self.own, inside=inside,
        )  # fmt: skip

    def at_start(self, body: Body = ()) -> tuple[c.Stmt, ...]:
        """A block in place of the loop, where there is one value only."""
        first = code("const T i = start;", T=self.type, i=self.name, start=self.start)
        return (c.Scope((*first, *body)),)


def nest(axes: Sequence[LoopAxis], body: Body) -> tuple[c.Stmt, ...]:
    """The body for every value of all axes; the first is the outermost."""
    for axis in reversed(axes):
        body = axis.over(body)
    return tuple(body)


def items(name: str, count: c.Expr, own: Body = (), within: c.Expr | None = None) -> LoopAxis:
    """So many places of an array in registers."""
    return LoopAxis(name, count, unrolled=True, own=tuple(own), within=within)
