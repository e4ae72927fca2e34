"""What loops over a task's elements have in common wherever they run: who starts where, and their bodies.

A body is made ready: cheap divisions, fast forms behind macros, packs for accesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource.snippets import chained, code
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import map_statements
from tunesmith.expert.writing.buffers import LoopPlan
from tunesmith.expert.writing.fast_math import FastMath, Inverses, known_types
from tunesmith.expert.writing.index_division import IndexDivision
from tunesmith.expert.writing.nest import LoopAxis, items
from tunesmith.expert.writing.packs import Pack
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.sites import counted
from tunesmith.expert.writing.team_totals import CpuTotals, TeamTotals

_SHORT = 16  # turns


def is_short(loop: c.For) -> bool:
    """Such a loop is unrolled whole, so that arrays stay in registers."""
    count = counted(loop)
    return count is not None and count[1] <= _SHORT


def unrolled(body: Iterable[c.Stmt], plan: WritingPlan) -> tuple[c.Stmt, ...]:
    """Short counted loops unrolled whole; others as the schedule says."""
    others = plan.knobs.unroll

    def visit(stmt: c.Stmt) -> c.Stmt:
        if not isinstance(stmt, c.For) or stmt.unroll is not None:
            return stmt
        if is_short(stmt):
            return replace(stmt, unroll=0)
        return replace(stmt, unroll=others.name) if others.is_parameter else stmt

    return map_statements(body, on_stmt=visit)


class ElementLoops:
    """Loops over the elements of a task, which its threads share: the part that GPUs and CPUs have alike."""

    totals: TeamTotals | CpuTotals
    ring: Sequence[object] = ()  # what of shared memory holds chunks under way

    def __init__(self, plan: WritingPlan, fast: FastMath) -> None:
        self._plan, self._fast = plan, fast
        self.words = plan.words
        # base: where a thread's turn begins; k: which of its packs; here: the index where that one starts.
        self.lane, self._item, self._base = (plan.word(word) for word in ("lane", "k", "base"))
        self._here = c.Name(plan.word("here"))
        self.division = IndexDivision(plan)

    def defines(self) -> tuple[c.Stmt, ...]:
        """What the loops say at the top of the file."""
        team = "group" if self._plan.language == "opencl" else "block"
        about = f"elements of a task that a {team} takes at once"
        return (*self.totals.defines(), self.words.define("CHUNK", "LANES * VEC * ITEMS", about))

    def declare(self) -> tuple[c.Stmt, ...]:
        """What they need at the top of the kernel."""
        return (
            *self.division.declare(),
            *self.totals.declare(),
            *self.words.code("const int lane = threadIdx.x;"),
        )

    def before(self) -> list[str]:
        """What they need at the top of the file."""
        return []

    def functions(self) -> tuple[c.Function, ...]:
        """What they call of their own."""
        return ()

    def _fast_body(self, loop: LoopPlan) -> tuple[tuple[c.Stmt, ...], Inverses]:
        """The loop's body with fast forms behind macros, and what is to be computed before the loop."""
        varying = frozenset((loop.each.index, *(total.name for total in loop.each.totals)))
        return self._fast.statements(loop.each.body, known_types(self._plan.kernel), varying)

    def _end(self, loop: LoopPlan) -> tuple[tuple[c.Stmt, ...], c.Expr]:
        """Where the loop ends: nowhere behind its start, for a thread without a task."""
        stop = loop.each.stop
        if self._plan.guards:
            stop = c.Ternary(self.words.expr("inside"), stop, loop.each.start)
        elif isinstance(stop, c.Name | c.Number) and self._plan.language != "opencl":
            return (), stop
        name = self._plan.names.fresh("end")
        return code("const T end = stop;", T=self._plan.index_type(loop), end=name, stop=stop), c.Name(name)

    def _first(self, loop: LoopPlan, own: c.Expr, per_block: c.Expr, type_: str) -> c.Expr:
        """Where a thread starts: its place in the block, behind the blocks before it."""
        start = () if loop.each.start == c.Number("0", 0) else (loop.each.start,)
        return chained("+", *start, *self._blocks_before(per_block, type_), own)

    def _blocks_before(self, per_block: c.Expr, type_: str) -> tuple[c.Expr, ...]:
        before = self.words.expr("(T)PIECE * per_block", T=type_, per_block=per_block)
        return (before,) if self._plan.is_spread else ()

    def _turns(self, type_: str, first: c.Expr, end: c.Expr, per_block: c.Expr, name: str = "") -> LoopAxis:
        """A thread's turns, of which all blocks at a task together take `per_block` each."""
        step = self.words.expr("(T)PIECES * per_block", T=type_, per_block=per_block)
        return LoopAxis(name or self._base, end, first, step if self._plan.is_spread else per_block, type_)

    def _items(self, loop: LoopPlan, end: c.Expr, count: str, base: c.Expr | None = None) -> LoopAxis:
        """A thread's packs of the chunk at hand, or at `base`, as far as they lie in the range."""
        within = self.words.expr("here + (VEC - 1) < end" if loop.tail else "here < end", end=end)
        return self._all_items(self._plan.index_type(loop), count, base, within)

    def _all_items(
        self, type_: str, count: str, base: c.Expr | None = None, within: c.Expr | None = None
    ) -> LoopAxis:
        text, base = "const T here = base + k * (LANES * VEC);", base or c.Name(self._base)
        own = self.words.code(text, T=type_, base=base)
        return items(self._item, self.words.expr(count), own, within)

    def _rest(self, loop: LoopPlan, end: c.Expr, type_: str) -> c.Expr:
        """Where a thread starts on what the whole vectors leave of the range, one element at a time."""
        start, lanes = loop.each.start, self.words.expr("LANES")
        text = "end - end % VEC" if start == c.Number("0", 0) else "end - (end - start) % VEC"
        whole = self.words.expr(text, end=end, start=start)
        return chained("+", whole, *self._blocks_before(lanes, type_), c.Name(self.lane))

    def _place(self, pack: Pack, loop: LoopPlan, here: c.Expr) -> c.Index:
        """The pack's first element, where `here` is the first index of the pack."""
        here = self._index_of(loop, here)
        index = {loop.each.index: here}
        bare = here.value if isinstance(here, c.Cast) else here
        base: c.Expr = c.Name(pack.array)
        if pack.offset is not None:
            base = c.Binary("+", base, self.division.in_expr(substitute(pack.offset, index), bare))
        if pack.element is not None:
            own = self._plan.arrays.get(pack.array, c.Type(""))
            base = c.Cast(c.Type(pack.element.base, 1, own.const, space=own.space), base)
        return c.Index(base, self.division.in_expr(substitute(pack.index, index), bare))

    def _index_of(self, loop: LoopPlan, here: c.Expr) -> c.Expr:
        """An index of the turns as one of the loop."""
        same = loop.each.type == self._plan.index_type(loop)
        return here if same else c.Cast(c.Type(loop.each.type), here)

    def _address(self, pack: Pack, loop: LoopPlan) -> c.Expr:
        return c.Unary("&", self._place(pack, loop, self._here))
