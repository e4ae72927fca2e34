"""One loop over a task's elements, printed for CUDA and HIP: packs first, then the body lane by lane."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from tunesmith.csource.fold import integer
from tunesmith.csource.nodes import Assign, Binary, Evaluate, Index, Name, Number, Stmt
from tunesmith.csource.printing import print_expr
from tunesmith.csource.snippets import code
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import byte_size
from tunesmith.csource.walk import map_nodes, map_statements, names_in
from tunesmith.expert.model.kernel import Each
from tunesmith.expert.writing.fast_math import FastMath, Inverses
from tunesmith.expert.writing.loops import ElementLoops, unrolled
from tunesmith.expert.writing.naming import CodeLines
from tunesmith.expert.writing.packs import Pack, converted, replacements
from tunesmith.expert.writing.plan import Group, LoopPlan, WritingPlan
from tunesmith.expert.writing.team_totals import TeamTotals, joined


@dataclass(frozen=True)
class Body:
    """A loop's body made ready for printing: fast forms behind macros, packs for accesses, partial totals."""

    plain: tuple[Stmt, ...]  # for one index, as in the source
    packed: tuple[Stmt, ...]  # for one lane of a pack
    inverses: Inverses  # reciprocals to compute before the loop


class GpuLoops(ElementLoops):
    """`pack`: the name of the type for packs."""

    def __init__(self, plan: WritingPlan, fast: FastMath, totals: TeamTotals, inside: str, pack: str) -> None:
        super().__init__(plan, fast, inside)
        fresh = plan.names.fresh
        self._totals, self._pack = totals, pack
        self.chains, self.count, self._of_pack = fresh("CHAINS"), fresh("COUNT"), fresh("v")
        self._declared: set[int] = set()  # groups whose packs are there already

    def defines(self) -> list[str]:
        knobs, lines = self._plan.knobs, super().defines()
        if any(loop.each.totals and loop.is_packed for loop in self._plan.all_loops):
            wide = f"{knobs.vector.name} > 1"
            lines.append(f"#define {self.chains} ({wide} ? 2 : 1)  // totals that do not wait for each other")
        if self._plan.keeps:
            keep, items = knobs.keep.name, knobs.items.name
            lines.append(f"#define {self.count} ({keep} ? {keep} : {items})  // packs a thread has under way")
        return lines

    # -- the loop -----------------------------------------------------------------------------------

    def write(self, loop: LoopPlan, out: CodeLines, scope: set[str]) -> None:
        each = loop.each
        if each.line:
            out.blank()
        out.say(out.comments.of_loop(each))
        end = self._end(loop, out)
        packed = loop.is_packed
        parts: dict[str, str] = {}
        for total in each.totals:
            start, declared = print_expr(total.start), "" if total.name in scope else f"{total.type.base} "
            if packed:
                parts[total.name] = array = self._plan.names.fresh(f"{total.name}_parts")
                out.add(f"{total.type.base} {array}[2] = {{{start}, {start}}};")
                out.add(*([f"{declared}{total.name};"] if declared else []))
            else:
                out.add(f"{declared}{total.name} = {start};")
            scope.add(total.name)
        if not packed:
            loop = LoopPlan(each, ())
        body = self._prepared(loop, parts)
        self._inverses(body, out)
        if packed:
            self._packed(loop, body, end, out)
        else:
            self._plain(loop, body, end, out)
        for total in each.totals:
            if packed:
                first, second = (Index(Name(parts[total.name]), integer(at)) for at in range(2))
                both = joined(total, first, second)
                text = "own = chains > 1 ? both : first;"
                stmts = code(text, own=total.name, chains=self.chains, both=both, first=first)
                out.statements(stmts, self._plan.language)
        out.statements(self._totals.reduce(each.totals), self._plan.language)

    def _prepared(self, loop: LoopPlan, parts: Mapping[str, str] | None = None) -> Body:
        """`parts`: a total -> the array of its partial values, of which a lane takes one."""
        body, inverses = self._fast_body(loop)
        body = unrolled(body, self._plan)
        packs = {pack.key: Index(Name(loop.names[pack.key]), Name(self._item)) for pack in loop.packs}
        elements = replacements(loop.packs, packs, Name(self._of_pack))
        packed = map_nodes(body, lambda node: elements.get(node, node))
        if parts:
            mine = Binary("%", Name(self._of_pack), Name(self.chains))
            body = substitute(body, {name: Index(Name(a), Number("0", 0)) for name, a in parts.items()})
            packed = substitute(packed, {name: Index(Name(a), mine) for name, a in parts.items()})
        return Body(body, packed, inverses)

    def _inverses(self, body: Body, out: CodeLines) -> None:
        for name, divisor in body.inverses:
            out.add(f"const float {name} = {self._fast.near}({print_expr(divisor)});")

    def _plain(self, loop: LoopPlan, body: Body, end: str, out: CodeLines) -> None:
        each, type_ = loop.each, self._plan.index_type(loop)
        knobs = self._plan.knobs
        lanes, items = knobs.lanes.name, knobs.items.name
        index = each.index
        if knobs.items.most == 1:
            first, step = self._first(loop, "1", lanes, type_), self._step(lanes, type_)
            variable = index if type_ == each.type else self._base
            with out.block(self._head(type_, first, end, step, variable)):
                if variable != index:
                    out.add(f"const {each.type} {index} = ({each.type}){variable};")
                self._statements(each, body.plain, out)
            return
        per_block = f"{lanes} * {items}"
        head = self._head(type_, self._first(loop, "1", per_block, type_), end, self._step(per_block, type_))
        with out.block(head), out.repeated(self._item, items):
            out.add(f"const {each.type} {index} = ({each.type})({self._base} + {self._item} * {lanes});")
            with out.block(f"if ({index} < {end})"):
                self._statements(each, body.plain, out)

    def _open(self, loop: LoopPlan, type_: str, end: str, out: CodeLines, group: Group | None = None) -> None:
        """The head of a loop over chunks, with the group's packs.

        There is no loop where a split task has a block for every chunk, or a thread keeps its whole row.
        """
        knobs = self._plan.knobs
        first = self._first(loop, knobs.vector.name, self.chunk, type_)
        once = knobs.split.name if knobs.split.most > 0 and not self._plan.is_flat else ""
        if group is not None:
            once = f"{knobs.keep.name}  // the whole row at once"
        if once:
            out.add(f"#if {once}")
            if group is not None and id(group) not in self._declared:
                self._declared.add(id(group))
                missing = set(group.shared)
                for other in group.loops:
                    self._declare([p for p in other.packs if p.key in missing], knobs.keep.name, other, out)
                    missing -= other.names.keys()
            out.open()
            out.add(f"const {type_} {self._base} = {first};", "#else")
            out.indent -= 1
        out.open(self._head(type_, first, end, self._step(self.chunk, type_)))
        if group is not None:
            shared = [pack for pack in loop.packs if pack.key in group.shared]
            self._declare(shared, knobs.items.name, loop, out)
        if once:
            out.add("#endif")

    def _packed(self, loop: LoopPlan, body: Body, end: str, out: CodeLines) -> None:
        group = loop.group if self._plan.keeps and loop.group in self._plan.keeps else None
        shared = [pack for pack in loop.packs if group is not None and pack.key in group.shared]
        own = [pack for pack in loop.packs if pack not in shared]
        self._open(loop, self._plan.index_type(loop), end, out, group)
        self._declare(own, self._plan.knobs.items.name if group is None else self.count, loop, out)
        self._loads(loop, [*shared, *own], end, group, out)
        self._lanes(loop, body, end, group, out)
        if group is not None and self.settles:
            self._settle(loop, group, out)
        out.close()
        if loop.tail:
            self._tail(loop, body, end, out)

    def _declare(self, packs: Sequence[Pack], count: str, loop: LoopPlan, out: CodeLines) -> None:
        out.add(*(f"{self._pack_type(pack)} {loop.names[pack.key]}[{count}];" for pack in packs))

    def _guard(self, loop: LoopPlan, end: str) -> str:
        vec = self._plan.knobs.vector.name
        return f"{self._here} + ({vec} - 1) < {end}" if loop.tail else f"{self._here} < {end}"

    @contextmanager
    def _over_items(self, type_: str, count: str, out: CodeLines) -> Iterator[None]:
        """A loop over a thread's packs."""
        knobs, item = self._plan.knobs, self._item
        step = f"{knobs.lanes.name} * {knobs.vector.name}"
        with out.repeated(item, count):
            out.add(f"const {type_} {self._here} = {self._base} + {item} * ({step});")
            yield

    def _loads(
        self, loop: LoopPlan, packs: Sequence[Pack], end: str, group: Group | None, out: CodeLines
    ) -> None:
        # A load that waits for another one's result would hold up those behind it.
        loads = sorted((pack for pack in packs if pack.loads), key=self._waits)
        if not loads:
            return
        if group is None:
            for part in self._in_turn(loads, out):
                over = self._over_items(self._plan.index_type(loop), self._plan.knobs.items.name, out)
                with over, out.block(f"if ({self._guard(loop, end)})"):
                    for pack in part:
                        self._load(pack, loop, out)
            return
        again = [pack for pack in loads if pack.key in loop.reused]
        fresh = [pack for pack in loads if pack not in again]
        anew, inside = f"!{self._plan.knobs.keep.name}", f"if ({self._guard(loop, end)})"
        over = self._over_items(self._plan.index_type(loop), self.count, out)
        with out.only_if("" if fresh else anew), over, out.block(inside):
            for pack in fresh:
                self._load(pack, loop, out)
            with out.only_if(anew if again and fresh else ""):
                for pack in again:
                    self._load(pack, loop, out)

    def _lanes(self, loop: LoopPlan, body: Body, end: str, group: Group | None, out: CodeLines) -> None:
        type_ = self._plan.index_type(loop)
        over = self._over_items(type_, self._plan.knobs.items.name if group is None else self.count, out)
        with over, out.block(f"if ({self._guard(loop, end)})"):
            self._turns(loop.each, body, self._here, type_, out)
            for pack in loop.packs:
                if not pack.stores:
                    continue
                unkept = pack.key in loop.dead or pack.array not in self._plan.arrays
                address = self._address(pack, loop)
                with out.only_if(f"!{self._plan.knobs.keep.name}" if group is not None and unkept else ""):
                    out.add(f"{loop.names[pack.key]}[{self._item}].{self._way_out(pack)}({address});")

    def _turns(self, each: Each, body: Body, here: str, type_: str, out: CodeLines) -> None:
        """The body for every element of a pack; `here` is the index of the first."""
        found = None
        convert = self._plan.draft.schedule.convert
        stored = [pack.array for loop in self._plan.all_loops for pack in loop.packs if pack.stores]
        in_words = all(self._plan.element_align.get(array, 16) >= 2 for array in stored)
        if convert is not None and self._plan.knobs.vector.most > 1 and in_words:
            found = converted(body.packed, self._of_pack, dict(self._plan.draft.in_pairs))
        if found is None or convert is None:
            self._turn(each, body.packed, here, type_, out)
            return
        vec, of_pack, values = self._plan.knobs.vector.name, self._of_pack, self._values
        out.add(f"#if {convert.name} && {vec} > 1  // two at a time")
        out.add(f"float {values}[{vec}];")
        kept = Evaluate(Assign("=", Index(Name(values), Name(of_pack)), found.value))
        self._turn(each, (*found.before, kept), here, type_, out)
        out.add("#pragma unroll")
        with out.block(f"for (int {of_pack} = 0; {of_pack} < {vec}; {of_pack} += 2)"):
            both = found.form.format(a=f"{values}[{of_pack}]", b=f"{values}[{of_pack} + 1]")
            into = f"reinterpret_cast<unsigned short *>({print_expr(found.into)})[{of_pack} / 2]"
            out.add(f"{into} = {both};")
        out.add("#else")
        self._turn(each, body.packed, here, type_, out)
        out.add("#endif")

    def _turn(self, each: Each, body: tuple[Stmt, ...], here: str, type_: str, out: CodeLines) -> None:
        vec = self._plan.knobs.vector.name
        with out.repeated(self._of_pack, vec):
            index = f"{here} + {self._of_pack}"
            if each.index in names_in(body):
                value = index if type_ == each.type else f"({each.type})({index})"
                out.add(f"const {each.type} {each.index} = {value};")
            self._statements(each, body, out)

    @cached_property
    def _values(self) -> str:
        return self._plan.names.fresh("values")

    @property
    def settles(self) -> bool:
        return self._plan.language == "cuda" and bool(self._plan.keeps)

    def _settle(self, loop: LoopPlan, group: Group, out: CodeLines) -> None:
        """What a later loop reads again stays as it came."""
        later = group.loops[group.loops.index(loop) + 1 :]
        again = {key for other in later for key in other.reused}
        packs = [p for p in loop.packs if p.key in again and p.array in self._plan.arrays]
        if not packs:
            return
        item, keep = self._item, self._plan.knobs.keep.name
        with out.only_if(keep), out.repeated(item, keep):
            for pack in packs:
                out.add(f"{loop.names[pack.key]}[{item}].settle();")

    def _tail(self, loop: LoopPlan, body: Body, end: str, out: CodeLines) -> None:
        each, type_, knobs = loop.each, self._plan.index_type(loop), self._plan.knobs
        head = self._head(type_, self._rest(loop, end, type_), end, self._step(knobs.lanes.name, type_))
        with out.only_if(f"{knobs.vector.name} > 1  // what is left of the range"), out.block(head):
            out.add(f"const {each.type} {each.index} = ({each.type}){self._base};")
            self._statements(each, body.plain, out)

    def _statements(self, each: Each, body: tuple[Stmt, ...], out: CodeLines) -> None:
        stmts = map_statements(body, lambda expr: self.division.in_expr(expr, Name(each.index)))
        out.statements(stmts, self._plan.language)

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

    def _in_turn(self, loads: Sequence[Pack], out: CodeLines) -> Iterator[list[Pack]]:
        """Loads that wait for nothing, then the others, with a branch in between where there is no loop."""
        plan = self._plan
        at_once = [pack for pack in loads if not self._waits(pack)]
        later = [pack for pack in loads if self._waits(pack)]
        once = plan.language == "cuda" and plan.knobs.split.most > 0 and not plan.is_flat
        if not (at_once and later and once and later[0].array in plan.arrays):
            yield [*at_once, *later]
            return
        yield at_once
        out.add(f"#if {plan.knobs.split.name}")
        out.add(f"if (!{later[0].array})  // never so; but the compiler puts no load off beyond a branch")
        out.add("    __trap();", "#endif")
        yield later

    def _waits(self, pack: Pack) -> bool:
        """Whether its place depends on more than parameters, the task and the index."""
        plan = self._plan
        known = {p.name for p in plan.kernel.function.parameters if not p.type.is_pointer}
        known |= {task.name for task in plan.kernel.tasks} | {loop.each.index for loop in plan.all_loops}
        return not pack.names <= known

    def _load(self, pack: Pack, loop: LoopPlan, out: CodeLines) -> None:
        address = self._address(pack, loop)
        out.add(f"{loop.names[pack.key]}[{self._item}].{self._way_in(pack)}({address});")

    def _way_in(self, pack: Pack) -> str:
        plan = self._plan
        # Elements that belong to one task nobody else wants in a cache.
        once = plan.is_flat or not pack.names.isdisjoint(task.name for task in plan.kernel.tasks)
        if plan.draft.schedule.load_hint is None or not (pack.width and pack.array in plan.arrays and once):
            return "load"
        return "load_shared" if pack.array in plan.written else "load_once"

    def _way_out(self, pack: Pack) -> str:
        hinted = self._plan.draft.schedule.store_hint is not None and pack.array in self._plan.arrays
        return "store_once" if hinted else "store"
