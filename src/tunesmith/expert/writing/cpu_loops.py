"""One loop over a task's elements in OpenCL C for a CPU: vectors, then what is left.

A body on vectors is the same statements, with what differs between lanes made OpenCL vectors (`cpu_bodies`).
Compilers for CPUs turn arithmetic on vector types into vector instructions; a loop over lanes with a call in
it they leave alone. What has no vector form (places made of data, branches with more than one assignment) is
refused, and the loop stays scalar.
"""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.csource import nodes as c
from tunesmith.csource.snippets import code
from tunesmith.csource.substitution import substitute
from tunesmith.expert.model.kernel import Total
from tunesmith.expert.writing.buffers import LoopPlan
from tunesmith.expert.writing.comments import at_line
from tunesmith.expert.writing.cpu_bodies import LaneElement, LanePlaces, VectorBody
from tunesmith.expert.writing.cpu_words import Lift, NoVector, has_vectors
from tunesmith.expert.writing.fast_math import FastMath, known_types, used_functions
from tunesmith.expert.writing.loops import ElementLoops, unrolled
from tunesmith.expert.writing.naming import Unwritable
from tunesmith.expert.writing.nest import items, nest
from tunesmith.expert.writing.packs import Pack
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.team_totals import CpuTotals, Folds, assigned, joined, started
from tunesmith.expert.writing.texts import vectors

# -- the loop ----------------------------------------------------------------------------------------


class CpuLoops(ElementLoops):
    def __init__(self, plan: WritingPlan, fast: FastMath) -> None:
        super().__init__(plan, fast)
        if plan.kernel.staged:
            raise Unwritable(
                "a loop leaves values for a later one in local memory, which a CPU has no use for"
            )
        if any(value not in (1, 2, 4, 8, 16) for value in plan.knobs.vector.values):
            raise Unwritable("OpenCL has vectors of 2, 4, 8 and 16 elements")
        self.totals: CpuTotals = CpuTotals(plan)
        functions = {function.name: function for function in used_functions(plan.kernel)}
        types = {name: type_ for name, type_ in known_types(plan.kernel).items() if type_ is not None}
        vec, ivec, load = plan.word("vec"), plan.word("ivec"), plan.word("LOAD")
        self._lift = Lift(vec, ivec, load, plan.names, functions, fast, types, store=plan.word("STORE"))
        self._uses_vectors, self._folds = False, Folds(plan, self._lift.vec)

    def before(self) -> list[str]:
        if not self._uses_vectors:
            return []
        lift = self._lift
        return [vectors(self._plan, self._fast.fast, lift.conversions, lift.narrow, lift.lane_words)]

    def functions(self) -> tuple[c.Function, ...]:
        return (*self._lift.written, *self._folds.functions())

    def write(self, loop: LoopPlan, scope: set[str]) -> tuple[c.Stmt, ...]:
        each, type_ = loop.each, self._plan.index_type(loop)
        before, end = self._end(loop)
        done = list(before)
        body, inverses = self._fast_body(loop)
        for total in each.totals:
            done += at_line(started(total, scope), self._plan.lines.get(total.name, 0))
            scope.add(total.name)
        vectors = self._vectors(loop, body)
        if vectors is None:
            first = self._first(loop, c.Name(self.lane), self.words.expr("LANES"), type_)
            turns = self._scalar(loop, first, end)
        else:
            for name, divisor in inverses:
                done += code("const float inverse = 1.0f / by;", inverse=name, by=divisor)
            turns = self._vector_loop(loop, vectors, end)
        return (*done, *at_line(turns, each.line), *self.totals.reduce(loop, self.lane))

    # -- one element at a time ----------------------------------------------------------------------

    def _scalar(self, loop: LoopPlan, first: c.Expr, end: c.Expr) -> tuple[c.Stmt, ...]:
        each, type_ = loop.each, self._plan.index_type(loop)
        own = self.words.code("const T i = base;", T=each.type, i=each.index)
        body = (*own, *unrolled(each.body, self._plan))
        return self._turns(type_, first, end, self.words.expr("LANES")).over(body)

    # -- vectors ------------------------------------------------------------------------------------

    def _vectors(self, loop: LoopPlan, body: Sequence[c.Stmt]) -> tuple[c.Stmt, ...] | None:
        """The body on vectors; None where it has no such form, or nothing to load or store as vectors."""
        if self._plan.knobs.vector.most == 1 or not any(pack.width for pack in loop.packs):
            return None
        places: dict[c.Expr, LaneElement] = {}
        for pack in loop.packs:
            base = self._base_of(pack)
            if pack.width > 1 or not has_vectors(base):
                return None
            first = self._place(pack, loop, self._here)
            vector = c.Name(loop.name(pack)) if pack.width else first
            places |= {node: LaneElement(vector, base) for node, _ in pack.sites}
        if any(total.type.base != "float" for total in loop.each.totals):
            return None
        totals = {total.name: total.type.base for total in loop.each.totals}
        here = self._index_of(loop, self._here)
        around = LanePlaces(places, self._direct(loop), here, loop.each.type, self._plan.word("VEC"))
        try:
            lifted = VectorBody(self._lift, loop.each.index, around, totals).whole(body)
        except NoVector:
            return None
        self._uses_vectors = True
        return lifted

    def _direct(self, loop: LoopPlan) -> dict[str, c.Type]:
        """Arrays that may be reached between packs: only read, or held by no pack, whatever it is called."""
        plan, packed = self._plan, {pack.array for pack in loop.packs}
        own = (parameter.name for parameter in plan.kernel.function.parameters)
        names = dict(zip(plan.problem.launches[0].args, own, strict=False))
        aliases = [(one.name, one.alias) for one in plan.problem.arguments if one.alias is not None]
        packed |= {names.get(name, name) for pair in aliases for name in pair}
        shut = packed & plan.written
        return {name: type_ for name, type_ in plan.arrays.items() if name not in shut}

    def _base_of(self, pack: Pack) -> str:
        return (pack.element or self._plan.arrays[pack.array]).base

    def _vector_loop(self, loop: LoopPlan, vectors: tuple[c.Stmt, ...], end: c.Expr) -> tuple[c.Stmt, ...]:
        w, each, type_ = self.words, loop.each, self._plan.index_type(loop)
        parts = {total.name: self._plan.names.fresh(f"{total.name}_parts") for total in each.totals}
        count, done = w.expr("ITEMS"), list[c.Stmt]()
        for total in each.totals:
            array = c.Name(parts[total.name])
            begun = w.code(
                "array[k] = start;", array=array, start=c.Cast(c.Type(self._lift.vec), total.start)
            )
            done.append(c.Declare(c.Type(self._lift.vec), array.name, dims=(count,)))
            done += items(self._item, count).over(begun)
        own: dict[str, c.Expr] = {name: w.expr("a[k]", a=array) for name, array in parts.items()}
        stores = [self._store(pack, loop) for pack in loop.packs if pack.stores]
        body = (
            *(self._load(pack, loop) for pack in loop.packs if pack.width),
            *unrolled(substitute(vectors, own), self._plan),
            *stores,
        )
        first, chunk = self._first(loop, w.expr("lane * VEC"), w.expr("CHUNK"), type_), w.expr("CHUNK")
        axes = (self._turns(type_, first, end, chunk), self._items(loop, end, "ITEMS"))
        rest = self._scalar(loop, self._rest(loop, end, type_), end)
        return (
            *done,
            *nest(axes, body),
            *w.when("VEC > 1", rest, said="what is left of the range"),
            *(stmt for total in each.totals for stmt in self._join(total, parts[total.name])),
        )

    def _join(self, total: Total, parts: str) -> tuple[c.Stmt, ...]:
        """Vectors to one value, in pairs: a chain of additions would add up their roundings."""
        near, far = (self.words.expr(text, p=parts) for text in ("p[k]", "p[k + apart]"))
        whole = self._plan.names.fresh(f"{total.name}_whole")
        text = """#pragma unroll
            for (int apart = 1; apart < ITEMS; apart *= 2) {
                #pragma unroll
                for (int k = 0; k + apart < ITEMS; k += 2 * apart)
                    near = pair;
            }
            const float whole = folded(p[0]);"""
        pair, folded = joined(total, near, far), self._folds.name(total)
        done = self.words.code(text, near=near, pair=pair, whole=whole, folded=folded, p=parts)
        return (*done, assigned(total.name, joined(total, c.Name(total.name), c.Name(whole))))

    def _load(self, pack: Pack, loop: LoopPlan) -> c.Stmt:
        base = self._base_of(pack)
        value = self._lift.loaded(base, self._address(pack, loop)) if pack.loads else None
        type_ = c.Type(self._lift.vector_of(base), const=pack.loads and not pack.stores)
        return c.Declare(type_, loop.name(pack), value)

    def _store(self, pack: Pack, loop: LoopPlan) -> c.Stmt:
        base = self._base_of(pack)
        return c.Evaluate(self._lift.stored(base, c.Name(loop.name(pack)), self._address(pack, loop)))
