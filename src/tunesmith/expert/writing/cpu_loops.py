"""One loop over a task's elements, printed in OpenCL C for a CPU: vectors, then what is left."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.csource.nodes import Cast, Expr, Index, Name, Number, Stmt, Type
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import substitute
from tunesmith.expert.model.kernel import Total
from tunesmith.expert.writing.bodies import IndexDivision, known_types, unrolled
from tunesmith.expert.writing.cpu_vectors import Lift, NoVector
from tunesmith.expert.writing.fast_math import FastMath
from tunesmith.expert.writing.naming import CodeLines
from tunesmith.expert.writing.packs import Pack
from tunesmith.expert.writing.plan import LoopPlan, WritingPlan
from tunesmith.expert.writing.team_totals import Folds, joined

LANGUAGE = "opencl"


class CpuTotals:
    """Totals over the work-items of a task, through local memory."""

    def __init__(self, plan: WritingPlan) -> None:
        fresh = plan.names.fresh
        self._plan = plan
        totals = [total for loop in plan.all_loops for total in loop.each.totals]
        self._arrays = {total.name: (fresh(f"{total.name}_of_item"), total.type.base) for total in totals}
        self._turn, self._count, self._away = fresh("turn"), fresh("count"), fresh("away")

    def defines(self) -> list[str]:
        return []

    def declare(self, out: CodeLines) -> None:
        if self._arrays and self._plan.knobs.lanes.most > 1:
            lanes, tasks = self._plan.knobs.lanes.name, self._plan.knobs.tasks.name
            out.add(f"#if {lanes} > 1")
            for array, base in self._arrays.values():
                out.add(f"__local {base} {array}[2][{tasks}][{lanes}];")
            out.add(f"int {self._turn} = 0;  // while totals are read, the next ones are written elsewhere")
            out.add("#endif")

    def reduce(self, loop: LoopPlan, lane: str, out: CodeLines) -> None:
        lanes = self._plan.knobs.lanes
        if not loop.each.totals or lanes.most == 1:
            return
        out.add(f"#if {lanes.name} > 1")
        places = []
        for total in loop.each.totals:
            array = self._arrays[total.name][0]
            places.append((total, f"{array}[{self._turn}][get_local_id(1)]"))
            out.add(f"{places[-1][1]}[{lane}] = {total.name};")
        count, away = self._count, self._away
        # In pairs as far apart as can be: the fewest roundings, and the order of a tree written by hand.
        with out.block(f"for (int {count} = {lanes.name}; {count} > 1; {count} = ({count} + 1) / 2)"):
            out.add("barrier(CLK_LOCAL_MEM_FENCE);", f"const int {away} = ({count} + 1) / 2;")
            with out.block(f"if ({lane} + {away} < {count})"):
                for total, place in places:
                    other = self._plan.names.fresh(f"{total.name}_away")
                    out.add(f"const {total.type.base} {other} = {place}[{lane} + {away}];")
                    out.add(f"{total.name} = {joined(total, total.name, other)};")
                    out.add(f"{place}[{lane}] = {total.name};")
        out.add("barrier(CLK_LOCAL_MEM_FENCE);")
        for total, place in places:
            out.add(f"{total.name} = {place}[0];")
        out.add(f"{self._turn} ^= 1;", "#endif")


class CpuLoops:
    def __init__(self, plan: WritingPlan, fast: FastMath, totals: CpuTotals, inside: str, lift: Lift) -> None:
        fresh = plan.names.fresh
        self._plan, self._fast, self._totals, self._inside, self._lift = plan, fast, totals, inside, lift
        self.lane = fresh("lane")
        self.piece, self.pieces, self.chunk = fresh("PIECE"), fresh("PIECES"), fresh("CHUNK")
        self._base, self._here, self._item = fresh("base"), fresh("here"), fresh("k")
        self._apart = fresh("apart")
        self.load, self.store = fresh("LOAD"), fresh("STORE")
        self.uses_vectors, self.folds = False, Folds(plan, lift.vec)
        self.division = IndexDivision(plan)  # as it is: a CPU divides quickly

    def defines(self) -> list[str]:
        knobs = self._plan.knobs
        chunk = f"{knobs.lanes.name} * {knobs.vector.name} * {knobs.items.name}"
        return [f"#define {self.chunk} ({chunk})  // elements of a task that a group takes at once"]

    def write(self, loop: LoopPlan, out: CodeLines, scope: set[str]) -> None:
        each = loop.each
        end = self._end(loop, out)
        varying = frozenset((each.index, *(total.name for total in each.totals)))
        body, inverses = self._fast.statements(each.body, known_types(self._plan), varying)
        for total in each.totals:
            start = print_expr(total.start, LANGUAGE)
            declared = "" if total.name in scope else f"{total.type.base} "
            out.add(f"{declared}{total.name} = {start};")
            scope.add(total.name)
        vectors = self._vectors(loop, body)
        if vectors is None:
            self._scalar(loop, each.body, self._first(loop, "1", self._plan.knobs.lanes.name), end, out)
        else:
            for name, divisor in inverses:
                out.add(f"const float {name} = 1.0f / ({print_expr(divisor, LANGUAGE)});")
            self._vector_loop(loop, each.body, vectors, end, out)
        self._totals.reduce(loop, self.lane, out)

    def _end(self, loop: LoopPlan, out: CodeLines) -> str:
        stop = print_expr(loop.each.stop, LANGUAGE)
        name = self._plan.names.fresh("end")
        if self._inside:
            stop = f"{self._inside} ? {stop} : {print_expr(loop.each.start, LANGUAGE)}"
        out.add(f"const {self._type(loop)} {name} = {stop};")
        return name

    def _type(self, loop: LoopPlan) -> str:
        return self._plan.index_type(loop, "long")

    def _first(self, loop: LoopPlan, per_item: str, per_group: str) -> str:
        start = "" if loop.each.start == Number("0", 0) else f"({print_expr(loop.each.start, LANGUAGE)}) + "
        own = self.lane if per_item == "1" else f"{self.lane} * {per_item}"
        if not self._plan.is_spread:
            return f"{start}{own}"
        return f"{start}({self._type(loop)}){self.piece} * {per_group} + {own}"

    def _step(self, loop: LoopPlan, per_group: str) -> str:
        return f"({self._type(loop)}){self.pieces} * {per_group}" if self._plan.is_spread else per_group

    # -- one element at a time ----------------------------------------------------------------------

    def _scalar(self, loop: LoopPlan, body: Sequence[Stmt], first: str, end: str, out: CodeLines) -> None:
        each, type_ = loop.each, self._type(loop)
        step = self._step(loop, self._plan.knobs.lanes.name)
        with out.block(f"for ({type_} {self._base} = {first}; {self._base} < {end}; {self._base} += {step})"):
            out.add(f"const {each.type} {each.index} = {self._base};")
            self._statements(body, out)

    # -- vectors ------------------------------------------------------------------------------------

    def _vectors(self, loop: LoopPlan, body: Sequence[Stmt]) -> tuple[Stmt, ...] | None:
        """The body on vectors; None where it has no such form, or nothing to load or store as vectors."""
        if self._plan.knobs.vector.most == 1 or not any(pack.width for pack in loop.packs):
            return None
        places: dict[Expr, Expr] = {}
        for pack in loop.packs:
            if pack.width > 1 or (pack.element or self._plan.arrays[pack.array]).base != "float":
                return None
            for node, _ in pack.sites:
                places[node] = Name(loop.names[pack.key]) if pack.width else self._place(pack, loop)
        if any(total.type.base != "float" for total in loop.each.totals):
            return None
        parts = frozenset(total.name for total in loop.each.totals)
        try:
            lifted = self._lift.body(body, loop.each.index, places, parts)
        except NoVector:
            return None
        self.uses_vectors = True
        return lifted

    def _place(self, pack: Pack, loop: LoopPlan) -> Index:
        here: Expr = Name(self._here)
        if loop.each.type != self._type(loop):
            here = Cast(Type(loop.each.type), here)
        return Index(Name(pack.array), substitute(pack.index, {loop.each.index: here}))

    def _vector_loop(
        self, loop: LoopPlan, body: Sequence[Stmt], vectors: tuple[Stmt, ...], end: str, out: CodeLines
    ) -> None:
        knobs, each, type_ = self._plan.knobs, loop.each, self._type(loop)
        vec, items, lanes = knobs.vector.name, knobs.items.name, knobs.lanes.name
        item, here = self._item, self._here
        parts = {total.name: self._plan.names.fresh(f"{total.name}_parts") for total in each.totals}
        for total in each.totals:
            begin = f"({self._lift.vec})({print_expr(total.start, LANGUAGE)})"
            out.add(f"{self._lift.vec} {parts[total.name]}[{items}];")
            with out.repeated(item, items):
                out.add(f"{parts[total.name]}[{item}] = {begin};")
        renamed = {name: Index(Name(array), Name(item)) for name, array in parts.items()}
        first = self._first(loop, vec, self.chunk)
        step = self._step(loop, self.chunk)
        head = f"for ({type_} {self._base} = {first}; {self._base} < {end}; {self._base} += {step})"
        with out.block(head), out.repeated(item, items):
            out.add(f"const {type_} {here} = {self._base} + {item} * ({lanes} * {vec});")
            with out.block(f"if ({here} + ({vec} - 1) < {end})"):
                for pack in loop.packs:
                    if pack.width:
                        self._load(pack, loop, out)
                self._statements(substitute(vectors, dict(renamed)), out)
                for pack in loop.packs:
                    if pack.stores:
                        out.add(f"{self.store}({loop.names[pack.key]}, {self._address(pack, loop)});")
        start = "" if each.start == Number("0", 0) else f" - ({print_expr(each.start, LANGUAGE)})"
        rest = f"{end} - ({end}{start}) % {vec}" if start else f"{end} - {end} % {vec}"
        out.add(f"#if {vec} > 1  // what is left of the range")
        self._scalar(loop, body, f"{rest} + {self._first_left(type_)}", end, out)
        out.add("#endif")
        for total in each.totals:
            self._join(total, parts[total.name], out)

    def _join(self, total: Total, parts: str, out: CodeLines) -> None:
        """Vectors to one value, in pairs: a chain of additions would add up their roundings."""
        items, item, apart = self._plan.knobs.items.name, self._item, self._apart
        out.add("#pragma unroll")
        with out.block(f"for (int {apart} = 1; {apart} < {items}; {apart} *= 2)"):
            out.add("#pragma unroll")
            with out.block(f"for (int {item} = 0; {item} + {apart} < {items}; {item} += 2 * {apart})"):
                pair = joined(total, f"{parts}[{item}]", f"{parts}[{item} + {apart}]")
                out.add(f"{parts}[{item}] = {pair};")
        whole = self._plan.names.fresh(f"{total.name}_whole")
        out.add(f"const float {whole} = {self.folds.name(total)}({parts}[0]);")
        out.add(f"{total.name} = {joined(total, total.name, whole)};")

    def _first_left(self, type_: str) -> str:
        if not self._plan.is_spread:
            return self.lane
        return f"({type_}){self.piece} * {self._plan.knobs.lanes.name} + {self.lane}"

    def _load(self, pack: Pack, loop: LoopPlan, out: CodeLines) -> None:
        name, vec = loop.names[pack.key], self._lift.vec
        if pack.loads:
            const = "" if pack.stores else "const "
            out.add(f"{const}{vec} {name} = {self.load}({self._address(pack, loop)});")
        else:
            out.add(f"{vec} {name};")

    def _address(self, pack: Pack, loop: LoopPlan) -> str:
        return f"&{print_expr(self._place(pack, loop), LANGUAGE)}"

    def _statements(self, stmts: Sequence[Stmt], out: CodeLines) -> None:
        out.statements(unrolled(stmts, self._plan), LANGUAGE)
