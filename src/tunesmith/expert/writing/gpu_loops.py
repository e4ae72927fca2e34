"""One loop over a task's elements for CUDA and HIP: packs first, then the body lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from tunesmith.csource.nodes import (
    BLANK,
    Alternative,
    Call,
    Cast,
    Comment,
    Declare,
    Evaluate,
    Expr,
    For,
    If,
    Index,
    Name,
    Number,
    Opaque,
    Scope,
    Stmt,
    Type,
)  # fmt: skip
from tunesmith.csource.snippets import Wording, code
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import byte_size, integer
from tunesmith.csource.walk import commented, map_nodes, map_statements, names_in
from tunesmith.expert.model.kernel import Each, Total
from tunesmith.expert.writing.blocking import RowTable
from tunesmith.expert.writing.comments import at_line
from tunesmith.expert.writing.fast_math import FastMath, Inverses
from tunesmith.expert.writing.loops import ElementLoops, repeated, unrolled
from tunesmith.expert.writing.packs import Pack, converted, replacements
from tunesmith.expert.writing.plan import Group, LoopPlan, WritingPlan
from tunesmith.expert.writing.team_totals import TeamTotals, assigned, joined, started


@dataclass(frozen=True)
class Body:
    """A loop's body made ready: fast forms behind macros, packs for accesses, partial totals."""

    plain: tuple[Stmt, ...]  # for one index, as in the source
    packed: tuple[Stmt, ...]  # for one lane of a pack
    inverses: Inverses  # reciprocals to compute before the loop


class GpuLoops(ElementLoops):
    """`pack`: the name of the type for packs."""

    def __init__(self, plan: WritingPlan, fast: FastMath, totals: TeamTotals, inside: str, pack: str) -> None:
        super().__init__(plan, fast, inside)
        self._totals, self._pack = totals, pack
        own = {word: plan.names.fresh(word) for word in ("CHAINS", "COUNT", "v")}
        knobs = {"KEEP": plan.knobs.keep.name, "SPLIT": plan.knobs.split.name}
        self.words = Wording({**self.words.words, **own, **knobs})
        self._of_pack = own["v"]
        self._blocking = plan.blocking
        self._declared: set[int] = set()  # groups whose packs are there already

    def defines(self) -> tuple[Stmt, ...]:
        found = list(super().defines())
        if any(loop.each.totals and loop.is_packed for loop in self._plan.all_loops):
            about = "totals that do not wait for each other"
            found.append(self.words.define("CHAINS", "VEC > 1 ? 2 : 1", about))
        if self._plan.keeps:
            found.append(self.words.define("COUNT", "KEEP ? KEEP : ITEMS", "packs a thread has under way"))
        return tuple(found)

    # -- the loop -----------------------------------------------------------------------------------

    def write(self, loop: LoopPlan, scope: set[str]) -> tuple[Stmt, ...]:
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
            loop = LoopPlan(each, ())
        body = self._prepared(loop, parts)
        done += self._inverses(body)
        done += at_line((self._packed if packed else self._plain)(loop, body, end), each.line)
        for total in each.totals if packed else ():
            first, second = (Index(Name(parts[total.name]), integer(at)) for at in range(2))
            both = joined(total, first, second)
            text = "own = CHAINS > 1 ? both : first;"
            own = self.words.code(text, own=total.name, both=both, first=first)
            done += self._blocking.over(own, guarded=False)
        done += self._before_totals(each)
        done += self._totals.reduce(each.totals)
        return commented(done, (BLANK,) if each.line else ())

    def _started(self, total: Total, parts: str, scope: Container[str]) -> tuple[Stmt, ...]:
        """What a thread's share begins with, `parts` or the total itself: for each of several tasks."""
        type_, blocking = total.type.base, self._blocking
        if blocking.task is None:
            if not parts:
                return started(total, scope)
            stmts = code("T a[2] = {start, start};", T=type_, a=parts, start=total.start)
            return stmts if total.name in scope else (*stmts, *code("T own;", T=type_, own=total.name))
        done = [] if total.name in scope else [Declare(Type(type_), total.name, dims=blocking.dims())]
        own: tuple[Stmt, ...] = (assigned(total.name, total.start),)
        if parts:
            done.append(Declare(Type(type_), parts, dims=blocking.dims(integer(2))))
            blocking.add(parts)
            own = code("a[0] = start; a[1] = start;", a=parts, start=total.start)
        return (*done, *blocking.over(own, guarded=bool(names_in(total.start) & blocking.names.keys())))

    def _before_totals(self, each: Each) -> tuple[Stmt, ...]:
        """What need not wait until the threads have joined the loop's totals."""
        return ()

    def _prepared(self, loop: LoopPlan, parts: Mapping[str, str] | None = None) -> Body:
        """`parts`: a total -> the array of its partial values, of which a lane takes one."""
        body, inverses = self._fast_body(loop)
        body = unrolled(body, self._plan)
        packs = {pack.key: Index(Name(loop.names[pack.key]), Name(self._item)) for pack in loop.packs}
        elements = replacements(loop.packs, packs, Name(self._of_pack))
        elements |= self._nearby(loop, body, elements)
        packed = map_nodes(body, lambda node: elements.get(node, node))
        if parts:
            mine = self.words.expr("v % CHAINS")
            body = substitute(body, {name: Index(Name(a), Number("0", 0)) for name, a in parts.items()})
            packed = substitute(packed, {name: Index(Name(a), mine) for name, a in parts.items()})
        return Body(body, packed, inverses)

    def _inverses(self, body: Body) -> list[Stmt]:
        done = list[Stmt]()
        for name, divisor in body.inverses:
            declare = Declare(Type("float", const=True), name, Call(self._fast.near, (divisor,)))
            if names_in(divisor) & self._blocking.names.keys():
                self._blocking.add(name)
            done += self._blocking.team_values([declare])
        return done

    def _plain(self, loop: LoopPlan, body: Body, end: Expr) -> tuple[Stmt, ...]:
        each, type_ = loop.each, self._plan.index_type(loop)
        index, lane = each.index, Name(self.lane)
        stmts = self._blocking.over(self._statements(each, body.plain))
        several = self._plan.knobs.items.most > 1
        per_block = self.words.expr("LANES * ITEMS" if several else "LANES")
        first, variable = self._first(loop, lane, per_block, type_), ""
        if several:
            text = "const T i = (T)(base + k * LANES); if (i < end) { body; }"
            inner = self.words.code(text, T=each.type, i=index, end=end, body=stmts)
            stmts = repeated(self._item, self.words.expr("ITEMS"), inner)
        elif type_ == each.type:
            variable = index
        else:
            stmts = (*self.words.code("const T i = (T)base;", T=each.type, i=index), *stmts)
        return (self._over(type_, first, end, per_block, stmts, variable),)

    def _chunks(
        self, loop: LoopPlan, type_: str, end: Expr, body: Sequence[Stmt], group: Group | None = None
    ) -> tuple[Stmt, ...]:
        """A loop over chunks, with the group's packs.

        There is no loop where a split task has a block for every chunk, or a thread keeps its whole row.
        """
        knobs, w = self._plan.knobs, self.words
        first = self._first(loop, w.expr("lane * VEC"), w.expr("CHUNK"), type_)
        before, own, said = list[Stmt](), tuple[Stmt, ...](), tuple[Comment, ...]()
        once = "SPLIT" if knobs.split.most > 0 and not self._plan.is_flat else ""
        if group is not None:
            once, said = "KEEP", (Comment("the whole row at once", behind=True),)
            own = self._declare([pack for pack in loop.packs if pack.key in group.shared], "ITEMS", loop)
            missing = set() if id(group) in self._declared else set(group.shared)
            self._declared.add(id(group))
            for other in group.loops:
                before += self._declare([p for p in other.packs if p.key in missing], "KEEP", other)
                missing -= other.names.keys()
        turns = self._head(loop, type_, first, end, own if once else ())
        if not once:
            whole = tuple(body)
            return (replace(turns, body=whole) if isinstance(turns, For) else replace(turns, inside=whole),)
        block = Scope(w.code("const T base = first;", T=type_, first=first))
        return (Alternative(w.expr(once), (*before, block), (turns,), tuple(body), comments=said),)

    def _head(
        self, loop: LoopPlan, type_: str, first: Expr, end: Expr, own: Sequence[Stmt]
    ) -> For | Alternative:
        """The loop over a task's chunks, with the first of its body; or two such loops to choose from."""
        return self._over(type_, first, end, self.words.expr("CHUNK"), own)

    def _packed(self, loop: LoopPlan, body: Body, end: Expr) -> tuple[Stmt, ...]:
        group = loop.group if self._plan.keeps and loop.group in self._plan.keeps else None
        shared = [pack for pack in loop.packs if group is not None and pack.key in group.shared]
        own = [pack for pack in loop.packs if pack not in shared]
        type_ = self._plan.index_type(loop)
        inner = (
            *self._declare(own, "ITEMS" if group is None else "COUNT", loop),
            *self._loads(loop, [*shared, *own], end, group),
            *self._lanes(loop, body, end, group),
            *(self._settle(loop, group) if group is not None and self.settles else ()),
        )
        chunks = self._chunks(loop, type_, end, inner, group)
        return (*chunks, *self._tail(loop, body, end)) if loop.tail else chunks

    def _declare(self, packs: Sequence[Pack], count: str, loop: LoopPlan) -> tuple[Stmt, ...]:
        size, spans = self.words.expr(count), {t.first.key: t.span for t in self._tables(loop)}
        done = list[Stmt]()
        for pack in packs:
            if self._blocking.is_same(pack):
                dims: tuple[Expr, ...] = (size,)
            elif pack.key in spans:
                dims = self._blocking.dims(size, span=spans[pack.key])
            else:
                continue  # a row of another's table
            done.append(Declare(Type(self._pack_type(pack)), loop.names[pack.key], dims=dims))
        return tuple(done)

    # -- neighbouring tasks at once: packs that they share, and those that each has ----------------------

    def _tables(self, loop: LoopPlan) -> tuple[RowTable, ...]:
        kept = loop.group.shared if loop.group is not None else ()
        return self._blocking.tables(loop.packs, kept)

    def _own_packs(self, loop: LoopPlan) -> dict[str, Expr]:
        """Names of packs that each task has -> its own."""
        found = dict[str, Expr]()
        for table in self._tables(loop):
            for key, row in table.rows.items():
                found[loop.names[key]] = self._blocking.row(loop.names[table.first.key], row)
            found[_whole(table, loop)] = Name(loop.names[table.first.key])
        return found

    def _for_each_task(
        self, loop: LoopPlan, packs: Sequence[Pack], made: Callable[[Sequence[Pack]], Sequence[Stmt]]
    ) -> tuple[Stmt, ...]:
        """What is made of packs: once of those that all tasks of a team share, of others for each task."""
        done = [*made([pack for pack in packs if self._blocking.is_same(pack)])]
        tables = {table.first.key: table.span for table in self._tables(loop)}
        for span in sorted(set(tables.values())):
            own = [pack for pack in packs if tables.get(pack.key) == span]
            names = {loop.names[p.key]: self._blocking.row(loop.names[p.key], 0) for p in own}
            done += self._blocking.over(made(own), names, span)
        return tuple(done)

    def _nearby(self, loop: LoopPlan, body: tuple[Stmt, ...], known: Mapping[Expr, Expr]) -> dict[Expr, Expr]:
        """Loads that some turns alone make, of what is in registers already."""
        if self._blocking.task is None:
            return {}
        tables = [(table, _whole(table, loop)) for table in self._tables(loop) if table.first.loads]
        item, lane = Name(self._item), Name(self._of_pack)
        return self._blocking.nearby(body, tables, known, item, lane, self._plan.knobs.vector.name)

    def _over_items(
        self, type_: str, count: str, body: Sequence[Stmt], base: Expr | None = None
    ) -> tuple[Stmt, ...]:
        """A loop over a thread's packs: of the chunk at hand, or at `base`."""
        text, base = "const T here = base + k * (LANES * VEC); body;", base or Name(self._base)
        inner = self.words.code(text, T=type_, base=base, body=body)
        return repeated(self._item, self.words.expr(count), inner)

    def _over_whole(
        self, loop: LoopPlan, end: Expr, count: str, body: Sequence[Stmt], base: Expr | None = None
    ) -> tuple[Stmt, ...]:
        """The same for those that lie in the range."""
        within = self.words.expr("here + (VEC - 1) < end" if loop.tail else "here < end", end=end)
        return self._over_items(self._plan.index_type(loop), count, [If(within, tuple(body))], base)

    def _loads(
        self, loop: LoopPlan, packs: Sequence[Pack], end: Expr, group: Group | None
    ) -> tuple[Stmt, ...]:
        # A load that waits for another one's result would hold up those behind it.
        loads = sorted((pack for pack in packs if pack.loads), key=self._waits)
        if not loads:
            return ()

        def loaded(some: Sequence[Pack]) -> list[Stmt]:
            return [self._method(loop, p, self._way_in(p), self._address(p, loop)) for p in some]

        def over(some: Sequence[Pack], count: str) -> tuple[Stmt, ...]:
            return self._over_whole(loop, end, count, loaded(some)) if some else ()

        if group is None:
            by_task = partial(self._for_each_task, loop, made=lambda some: over(some, "ITEMS"))
            return self._in_turn(loads, by_task)
        again = [pack for pack in loads if pack.key in loop.reused]
        fresh = [pack for pack in loads if pack not in again]

        def both(some: Sequence[Pack]) -> tuple[Stmt, ...]:
            new, old = ([p for p in part if any(p is one for one in some)] for part in (fresh, again))
            if not new and not old:
                return ()
            inner = (*loaded(new), *self.words.when("!KEEP" if old and new else "", loaded(old)))
            return self.words.when("" if new else "!KEEP", self._over_whole(loop, end, "COUNT", inner))

        return self._for_each_task(loop, loads, both)

    def _lanes(self, loop: LoopPlan, body: Body, end: Expr, group: Group | None) -> tuple[Stmt, ...]:
        inner = [*self._turns(loop.each, body, self._here, self._plan.index_type(loop))]
        for pack in loop.packs:
            if pack.stores:
                unkept = pack.key in loop.dead or pack.array not in self._plan.arrays
                store = self._method(loop, pack, self._way_out(pack), self._address(pack, loop))
                inner += self.words.when("!KEEP" if group is not None and unkept else "", [store])
        # Inside the condition: what the first task loads on the way is there for the others.
        by_task = self._blocking.over(inner, self._own_packs(loop))
        return self._over_whole(loop, end, "ITEMS" if group is None else "COUNT", by_task)

    def _method(self, loop: LoopPlan, pack: Pack, name: str, *args: Expr) -> Stmt:
        """Of the pack at hand."""
        return Evaluate(Call(name, args, of=Index(Name(loop.names[pack.key]), Name(self._item))))

    def _turns(self, each: Each, body: Body, here: Expr, type_: str) -> tuple[Stmt, ...]:
        """The body for every element of a pack; `here` is the index of the first."""
        found = None
        convert = self._plan.draft.schedule.get("convert")
        stored = [pack.array for loop in self._plan.all_loops for pack in loop.packs if pack.stores]
        in_words = all(self._plan.element_align.get(array, 16) >= 2 for array in stored)
        if convert is not None and self._plan.knobs.vector.most > 1 and in_words:
            found = converted(body.packed, self._of_pack, dict(self._plan.draft.in_pairs))
        plain = self._turn(each, body.packed, here, type_)
        if found is None or convert is None:
            return plain
        kept = self.words.code("values[v] = value;", values=self._values, value=found.value)
        both = found.form.format(
            a=f"{self._values}[{self._of_pack}]", b=f"{self._values}[{self._of_pack} + 1]"
        )
        text = """float values[VEC];
            single;
            #pragma unroll
            for (int v = 0; v < VEC; v += 2)
                ((unsigned short *)into)[v / 2] = both;"""
        single = self._turn(each, (*found.before, *kept), here, type_)
        pairs = self.words.code(text, values=self._values, single=single, into=found.into, both=Opaque(both))
        return self.words.when(f"{convert.name} && VEC > 1", pairs, plain, "two at a time")

    def _turn(self, each: Each, body: tuple[Stmt, ...], here: Expr, type_: str) -> tuple[Stmt, ...]:
        index, own = self.words.expr("here + v", here=here), list[Stmt]()
        if each.index in names_in(body):
            value = index if type_ == each.type else Cast(Type(each.type), index)
            own.append(Declare(Type(each.type, const=True), each.index, value))
        return repeated(self._of_pack, self.words.expr("VEC"), [*own, *self._statements(each, body)])

    @cached_property
    def _values(self) -> str:
        return self._plan.names.fresh("values")

    @property
    def settles(self) -> bool:
        return self._plan.language == "cuda" and bool(self._plan.keeps)

    def _settle(self, loop: LoopPlan, group: Group) -> tuple[Stmt, ...]:
        """What a later loop reads again stays as it came."""
        later = group.loops[group.loops.index(loop) + 1 :]
        again = {key for other in later for key in other.reused}
        packs = [p for p in loop.packs if p.key in again and p.array in self._plan.arrays]
        keep = self.words.expr("KEEP")

        def settled(some: Sequence[Pack]) -> tuple[Stmt, ...]:
            stmts = [self._method(loop, pack, "settle") for pack in some]
            return repeated(self._item, keep, stmts) if stmts else ()

        return self.words.when("KEEP", self._for_each_task(loop, packs, settled)) if packs else ()

    def _tail(self, loop: LoopPlan, body: Body, end: Expr) -> tuple[Stmt, ...]:
        each, type_ = loop.each, self._plan.index_type(loop)
        own = self.words.code("const T i = (T)base;", T=each.type, i=each.index)
        stmts = (*own, *self._blocking.over(self._statements(each, body.plain)))
        turns = self._over(type_, self._rest(loop, end, type_), end, self.words.expr("LANES"), stmts)
        return self.words.when("VEC > 1", [turns], said="what is left of the range")

    def _statements(self, each: Each, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return map_statements(body, lambda part: self.division.in_expr(part, Name(each.index)))

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
        return f"{self._pack}<{base}, {number}, {f'({limit})' if '<' in limit else limit}>"

    def _in_turn(
        self, loads: Sequence[Pack], loaded: Callable[[Sequence[Pack]], tuple[Stmt, ...]]
    ) -> tuple[Stmt, ...]:
        """Loads that wait for nothing, then the others, with a branch in between where there is no loop."""
        plan = self._plan
        at_once = [pack for pack in loads if not self._waits(pack)]
        later = [pack for pack in loads if self._waits(pack)]
        once = plan.language == "cuda" and plan.knobs.split.most > 0 and not plan.is_flat
        if not (at_once and later and once and later[0].array in plan.arrays):
            return loaded([*at_once, *later])
        about = "never so; but the compiler puts no load off beyond a branch"
        branch = code(f"if (!p)  // {about}\n__trap();", p=later[0].array)
        return (*loaded(at_once), *self.words.when("SPLIT", branch), *loaded(later))

    def _waits(self, pack: Pack) -> bool:
        """Whether its place depends on more than parameters, the task and the index."""
        plan = self._plan
        known = {p.name for p in plan.kernel.function.parameters if not p.type.is_pointer}
        known |= {task.name for task in plan.kernel.tasks} | {loop.each.index for loop in plan.all_loops}
        return not pack.names <= known

    def _is_once(self, pack: Pack) -> bool:
        """Elements that belong to one task nobody else wants in a cache."""
        tasks = self._plan.kernel.tasks
        return self._plan.is_flat or not pack.names.isdisjoint(task.name for task in tasks)

    def _way_in(self, pack: Pack) -> str:
        plan = self._plan
        plain = not (pack.width and pack.array in plan.arrays and self._is_once(pack))
        if "load_hint" not in plan.draft.schedule or plain:
            return "load"
        return "load_shared" if pack.array in plan.written else "load_once"

    def _way_out(self, pack: Pack) -> str:
        hinted = "store_hint" in self._plan.draft.schedule and pack.array in self._plan.arrays
        return "store_once" if hinted else "store"


def _whole(table: RowTable, loop: LoopPlan) -> str:
    """Stands for the array of all rows, until they are told apart by task."""
    return f"all rows of {loop.names[table.first.key]}"
