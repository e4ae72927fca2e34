"""One loop over a task's elements for CUDA and HIP: packs first, then the body lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tunesmith.csource import nodes as c
from tunesmith.csource.snippets import code
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import byte_size, integer
from tunesmith.csource.walk import commented, map_nodes, map_statements, names_in
from tunesmith.expert.model.kernel import Each, Total
from tunesmith.expert.writing.buffers import Buffer, Copy, LoopPlan
from tunesmith.expert.writing.comments import at_line
from tunesmith.expert.writing.fast_math import FastMath, Inverses
from tunesmith.expert.writing.loops import ElementLoops, unrolled
from tunesmith.expert.writing.nest import LoopAxis, items, nest
from tunesmith.expert.writing.packs import Pack, converted, replacements
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.team_totals import TeamTotals, assigned, joined, started
from tunesmith.expert.writing.texts import packs


@dataclass(frozen=True)
class Body:
    """A loop's body made ready: fast forms behind macros, packs for accesses, partial totals."""

    plain: tuple[c.Stmt, ...]  # for one index, as in the source
    packed: tuple[c.Stmt, ...]  # for one lane of a pack
    inverses: Inverses  # reciprocals to compute before the loop


class GpuLoops(ElementLoops):
    def __init__(self, plan: WritingPlan, fast: FastMath) -> None:
        super().__init__(plan, fast)
        self.totals: TeamTotals = TeamTotals(plan)
        self._of_pack = plan.word("v")
        self._blocking = plan.blocking

    def defines(self) -> tuple[c.Stmt, ...]:
        w = self.words
        chains = w.define("CHAINS", "VEC > 1 ? 2 : 1", "totals that do not wait for each other")
        count = w.define("COUNT", "KEEP ? KEEP : ITEMS", "packs a thread has under way")
        return (*super().defines(), chains, count)

    def copies(self) -> tuple[str, str]:
        """Further ways of moving packs: what is defined before their type, and in it."""
        return "", ""

    def before(self) -> list[str]:
        used = any(loop.packs for loop in self._plan.all_loops) or "tile" in self._plan.draft.schedule
        return [packs(self._plan, self.copies())] if used else []

    # -- the loop -----------------------------------------------------------------------------------

    def write(self, loop: LoopPlan, scope: set[str]) -> tuple[c.Stmt, ...]:
        each, packed = loop.each, loop.is_packed
        before, end = self._end(loop)
        done, parts = list(before), dict[str, str]()
        for total in each.totals:
            if packed:
                parts[total.name] = self._plan.names.fresh(f"{total.name}_parts")
            stmts = self._started(total, parts.get(total.name, ""), scope)
            done += at_line(stmts, self._plan.lines.get(total.name, 0))
            scope.add(total.name)
        if not packed:
            loop = LoopPlan(each)
        body = self._prepared(loop, parts)
        done += self._inverses(body)
        done += at_line((self._packed if packed else self._plain)(loop, body, end), each.line)
        for total in each.totals if packed else ():
            first, second = (c.Index(c.Name(parts[total.name]), integer(at)) for at in range(2))
            both = joined(total, first, second)
            text = "own = CHAINS > 1 ? both : first;"
            own = self.words.code(text, own=total.name, both=both, first=first)
            done += self._blocking.over(own, guarded=False)
        done += self._before_totals(each)
        done += self.totals.reduce(each.totals)
        return commented(done, (c.BLANK,) if each.line else ())

    def _started(self, total: Total, parts: str, scope: Container[str]) -> tuple[c.Stmt, ...]:
        """What a thread's share begins with, `parts` or the total itself: for each of several tasks."""
        type_, blocking = total.type.base, self._blocking
        if blocking.task is None:
            if not parts:
                return started(total, scope)
            stmts = code("T a[2] = {start, start};", T=type_, a=parts, start=total.start)
            return stmts if total.name in scope else (*stmts, *code("T own;", T=type_, own=total.name))
        done = [] if total.name in scope else [c.Declare(c.Type(type_), total.name, dims=blocking.dims())]
        own: tuple[c.Stmt, ...] = (assigned(total.name, total.start),)
        if parts:
            done.append(c.Declare(c.Type(type_), parts, dims=blocking.dims(integer(2))))
            blocking.add(parts)
            own = code("a[0] = start; a[1] = start;", a=parts, start=total.start)
        return (*done, *blocking.over(own, guarded=bool(names_in(total.start) & blocking.names.keys())))

    def _before_totals(self, each: Each) -> tuple[c.Stmt, ...]:
        """What need not wait until the threads have joined the loop's totals."""
        return ()

    def _prepared(self, loop: LoopPlan, parts: Mapping[str, str] | None = None) -> Body:
        """`parts`: a total -> the array of its partial values, of which a lane takes one."""
        body, inverses = self._fast_body(loop)
        body = unrolled(body, self._plan)
        packs = {pack.key: self._at_hand(loop, pack) for pack in loop.packs}
        elements = replacements(loop.packs, packs, c.Name(self._of_pack))
        elements |= self._nearby(loop, body, elements)
        packed = map_nodes(body, lambda node: elements.get(node, node))
        if parts:
            mine = self.words.expr("v % CHAINS")
            body = substitute(body, {name: c.Index(c.Name(a), c.Number("0", 0)) for name, a in parts.items()})
            packed = substitute(packed, {name: c.Index(c.Name(a), mine) for name, a in parts.items()})
        return Body(body, packed, inverses)

    def _inverses(self, body: Body) -> list[c.Stmt]:
        done = list[c.Stmt]()
        for name, divisor in body.inverses:
            declare = c.Declare(c.Type("float", const=True), name, c.Call(self._fast.near, (divisor,)))
            if names_in(divisor) & self._blocking.names.keys():
                self._blocking.add(name)
            done += self._blocking.team_values([declare])
        return done

    def _plain(self, loop: LoopPlan, body: Body, end: c.Expr) -> tuple[c.Stmt, ...]:
        each, type_ = loop.each, self._plan.index_type(loop)
        stmts = self._blocking.over(self._statements(each, body.plain))
        if self._plan.knobs.items.most > 1:
            own = self.words.code("const T i = (T)(base + k * LANES);", T=each.type, i=each.index)
            within = self.words.expr("i < end", i=each.index, end=end)
            axes = (self._turns_of_lanes(loop, end), items(self._item, self.words.expr("ITEMS"), own, within))
            return nest(axes, stmts)
        if type_ == each.type:
            return self._turns_of_lanes(loop, end, each.index).over(stmts)
        own = self.words.code("const T i = (T)base;", T=each.type, i=each.index)
        return self._turns_of_lanes(loop, end).over((*own, *stmts))

    def _turns_of_lanes(self, loop: LoopPlan, end: c.Expr, name: str = "", type_: str = "") -> LoopAxis:
        """One element after the other."""
        type_ = type_ or self._plan.index_type(loop)
        per_block = self.words.expr("LANES * ITEMS" if self._plan.knobs.items.most > 1 else "LANES")
        first = self._first(loop, c.Name(self.lane), per_block, type_)
        return self._turns(type_, first, end, per_block, name)

    def _chunks(self, loop: LoopPlan, type_: str, end: c.Expr, body: Sequence[c.Stmt]) -> tuple[c.Stmt, ...]:
        """A loop over chunks, with buffers that live longer than a turn.

        There is no loop where a split task has a block for every chunk, or a thread keeps its whole row.
        """
        w, chunk = self.words, self.words.expr("CHUNK")
        first = self._first(loop, w.expr("lane * VEC"), chunk, type_)
        turns = self._turns(type_, first, end, chunk)
        if self._keeps(loop):
            own = self._declare([pack for pack in loop.packs if pack.key in loop.kept], "ITEMS", loop)
            whole = (*self._declare(loop.opens, "KEEP", loop), *turns.at_start())
            said = (c.Comment("the whole row at once", behind=True),)
            head = (self._head(loop, turns, own),)
            return (c.Alternative(w.expr("KEEP"), whole, head, tuple(body), comments=said),)
        one = self._head(loop, turns, ())
        if self._plan.knobs.split.most > 0 and not self._plan.is_flat:
            return (c.Alternative(w.expr("SPLIT"), turns.at_start(), (one,), tuple(body)),)
        return (replace(one, inside=tuple(body)),) if isinstance(one, c.Alternative) else turns.over(body)

    def _head(self, loop: LoopPlan, turns: LoopAxis, own: Sequence[c.Stmt]) -> c.Stmt:
        """The loop over a task's chunks, with the first of its body; or two such loops to choose from."""
        (head,) = turns.over(own)
        return head

    def _keeps(self, loop: LoopPlan) -> bool:
        return loop.in_row and self._plan.keeps

    def _count(self, loop: LoopPlan) -> str:
        """How many packs a thread has under way."""
        return "COUNT" if self._keeps(loop) else "ITEMS"

    def _packed(self, loop: LoopPlan, body: Body, end: c.Expr) -> tuple[c.Stmt, ...]:
        kept = [pack for pack in loop.packs if self._keeps(loop) and pack.key in loop.kept]
        own = [pack for pack in loop.packs if pack not in kept]
        inner = (
            *self._declare(own, self._count(loop), loop),
            *self._loads(loop, loop.loads, end),
            *self._lanes(loop, body, end),
            *(self._settle(loop) if self._plan.settles and kept else ()),
        )
        chunks = self._chunks(loop, self._plan.index_type(loop), end, inner)
        return (*chunks, *self._tail(loop, body, end)) if loop.tail else chunks

    def _declare(self, packs: Sequence[Pack], count: str, loop: LoopPlan) -> tuple[c.Stmt, ...]:
        size, done = self.words.expr(count), list[c.Stmt]()
        for pack in packs:
            buffer = loop.buffers[pack.key]
            if self._is_shared(buffer) or buffer.table == buffer.name:  # else a row of another's table
                dims = (size,) if self._is_shared(buffer) else self._blocking.dims(size, span=buffer.span)
                done.append(c.Declare(c.Type(self._pack_type(pack)), buffer.name, dims=dims))
        return tuple(done)

    # -- neighbouring tasks at once: packs that they share, and those that each has ----------------------

    def _is_shared(self, buffer: Buffer) -> bool:
        """By all tasks that are taken at once."""
        return self._blocking.task is None or not buffer.table

    def _at_hand(self, loop: LoopPlan, pack: Pack) -> c.Index:
        """Of the packs in a buffer the one of this item, and of this task."""
        buffer = loop.buffers[pack.key]
        shared = self._is_shared(buffer)
        row = c.Name(buffer.name) if shared else self._blocking.row(buffer.table, buffer.row)
        return c.Index(row, c.Name(self._item))

    def _for_each_task(
        self, loop: LoopPlan, copies: Sequence[Copy], made: Callable[[Sequence[Copy]], Sequence[c.Stmt]]
    ) -> tuple[c.Stmt, ...]:
        """What is made of packs: once of those that all tasks of a team share, of others for each task."""
        held = [(copy, loop.buffers[copy.pack.key]) for copy in copies]
        done = [*made([copy for copy, buffer in held if self._is_shared(buffer)])]
        own = [(copy, b.span) for copy, b in held if not self._is_shared(b) and b.table == b.name]
        for span in sorted({span for _, span in own}):
            done += self._blocking.over(made([copy for copy, rows in own if rows == span]), span)
        return tuple(done)

    def _nearby(
        self, loop: LoopPlan, body: tuple[c.Stmt, ...], known: Mapping[c.Expr, c.Expr]
    ) -> dict[c.Expr, c.Expr]:
        """Loads that some turns alone make, of what is in registers already."""
        if self._blocking.task is None:
            return {}
        tables = [(table, loop.name(table.first)) for table in loop.tables if table.first.loads]
        item, lane = c.Name(self._item), c.Name(self._of_pack)
        return self._blocking.nearby(body, tables, known, item, lane, self._plan.knobs.vector.name)

    def _loads(self, loop: LoopPlan, copies: Sequence[Copy], end: c.Expr) -> tuple[c.Stmt, ...]:
        def loaded(some: Sequence[Copy]) -> tuple[c.Stmt, ...]:
            new, old = (
                [self._copy(loop, copy) for copy in some if copy.needless is kept] for kept in (False, True)
            )
            inner = (*new, *self.words.when("!KEEP" if old and new else "", old))
            over = self._items(loop, end, self._count(loop)).over(inner) if inner else ()
            return self.words.when("!KEEP" if old and not new else "", over)

        by_task = partial(self._for_each_task, loop, made=loaded)
        return by_task(copies) if self._keeps(loop) else self._in_turn(copies, by_task)

    def _lanes(self, loop: LoopPlan, body: Body, end: c.Expr) -> tuple[c.Stmt, ...]:
        inner = [*self._elements(loop.each, body, self._here, self._plan.index_type(loop))]
        for copy in loop.stores:
            inner += self.words.when("!KEEP" if copy.needless else "", [self._copy(loop, copy)])
        # Inside the condition: what the first task loads on the way is there for the others.
        by_task = self._blocking.over(inner)
        return self._items(loop, end, self._count(loop)).over(by_task)

    def _copy(self, loop: LoopPlan, copy: Copy) -> c.Stmt:
        return self._method(loop, copy.pack, copy.way, self._address(copy.pack, loop))

    def _method(self, loop: LoopPlan, pack: Pack, name: str, *args: c.Expr) -> c.Stmt:
        """Of the pack at hand."""
        return c.Evaluate(c.Call(name, args, of=self._at_hand(loop, pack)))

    def _elements(self, each: Each, body: Body, here: c.Expr, type_: str) -> tuple[c.Stmt, ...]:
        """The body for every element of a pack; `here` is the index of the first."""
        found, convert = None, self._plan.knobs.convert
        stored = [pack.array for loop in self._plan.all_loops for pack in loop.packs if pack.stores]
        in_words = all(self._plan.element_align.get(array, 16) >= 2 for array in stored)
        if convert.is_parameter and self._plan.knobs.vector.most > 1 and in_words:
            found = converted(body.packed, self._of_pack, dict(self._plan.draft.in_pairs))
        plain = self._element(each, body.packed, here, type_)
        if found is None:
            return plain
        kept = self.words.code("values[v] = value;", value=found.value)
        values = self._plan.word("values")
        both = found.form.format(a=f"{values}[{self._of_pack}]", b=f"{values}[{self._of_pack} + 1]")
        text = """float values[VEC];
            single;
            #pragma unroll
            for (int v = 0; v < VEC; v += 2)
                ((unsigned short *)into)[v / 2] = both;"""
        single = self._element(each, (*found.before, *kept), here, type_)
        pairs = self.words.code(text, single=single, into=found.into, both=c.Opaque(both))
        return self.words.when(f"{convert.name} && VEC > 1", pairs, plain, "two at a time")

    def _element(self, each: Each, body: tuple[c.Stmt, ...], here: c.Expr, type_: str) -> tuple[c.Stmt, ...]:
        index, own = self.words.expr("here + v", here=here), list[c.Stmt]()
        if each.index in names_in(body):
            value = index if type_ == each.type else c.Cast(c.Type(each.type), index)
            own.append(c.Declare(c.Type(each.type, const=True), each.index, value))
        return items(self._of_pack, self.words.expr("VEC"), own).over(self._statements(each, body))

    def _settle(self, loop: LoopPlan) -> tuple[c.Stmt, ...]:
        """What a later loop reads again stays as it came."""
        wanted = {key for key, buffer in loop.buffers.items() if buffer.wanted and buffer.home == "global"}

        def settled(some: Sequence[Copy]) -> tuple[c.Stmt, ...]:
            stmts = [self._method(loop, copy.pack, copy.way) for copy in some]
            return items(self._item, self.words.expr("KEEP")).over(stmts) if stmts else ()

        copies = [Copy(pack, "settle") for pack in loop.packs if pack.key in wanted]
        return self.words.when("KEEP", self._for_each_task(loop, copies, settled)) if copies else ()

    def _tail(self, loop: LoopPlan, body: Body, end: c.Expr) -> tuple[c.Stmt, ...]:
        each, type_ = loop.each, self._plan.index_type(loop)
        own = self.words.code("const T i = (T)base;", T=each.type, i=each.index)
        stmts = (*own, *self._blocking.over(self._statements(each, body.plain)))
        turns = self._turns(type_, self._rest(loop, end, type_), end, self.words.expr("LANES"))
        return self.words.when("VEC > 1", turns.over(stmts), said="what is left of the range")

    def _statements(self, each: Each, body: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        return map_statements(body, lambda part: self.division.in_expr(part, c.Name(each.index)))

    # -- packs: their types, and in which order they are loaded -----------------------------------------

    def _pack_type(self, pack: Pack) -> str:
        vec, align = self._plan.knobs.vector.name, self._plan.element_align.get(pack.array, 16)
        if pack.element is not None:
            base = pack.element.base
            align = byte_size(base) or 1
        else:
            staged = {staged.name: staged.type for staged in self._plan.kernel.staged}
            base = {**self._plan.arrays, **staged}[pack.array].base
        number = {0: "1", 1: vec}.get(pack.width, f"{pack.width} * {vec}")
        limit = str(align)
        size = byte_size(base)
        if pack.width == 0:
            limit = str(min(align, size or 1))
        elif pack.unit != pack.width:
            limit = f"{vec} * {size or 1} < {align} ? {vec} * {size or 1} : {align}"
        return f"{self._plan.word('Pack')}<{base}, {number}, {f'({limit})' if '<' in limit else limit}>"

    def _in_turn(
        self, loads: Sequence[Copy], loaded: Callable[[Sequence[Copy]], tuple[c.Stmt, ...]]
    ) -> tuple[c.Stmt, ...]:
        """Loads that wait for nothing, then the others, with a branch in between where there is no loop."""
        plan = self._plan
        at_once, later = ([copy for copy in loads if copy.waits is waits] for waits in (False, True))
        once = plan.language == "cuda" and plan.knobs.split.most > 0 and not plan.is_flat
        if not (at_once and later and once and later[0].pack.array in plan.arrays):
            return loaded(loads)
        about = "never so; but the compiler puts no load off beyond a branch"
        branch = code(f"if (!p)  // {about}\n__trap();", p=later[0].pack.array)
        return (*loaded(at_once), *self.words.when("SPLIT", branch), *loaded(later))
