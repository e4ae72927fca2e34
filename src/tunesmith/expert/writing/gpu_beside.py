"""Loops that do not depend on each other, printed as one over all their indices in turn.

Loops that are alike but for where their elements lie (query and key) differ in addresses alone; of others
each thread takes the one its index belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

from tunesmith.csource.nodes import Binary, Cast, Expr, Index, Name, Number, Ternary, Type
from tunesmith.csource.printing import print_expr
from tunesmith.csource.substitution import rename
from tunesmith.csource.walk import declared_in, names_in
from tunesmith.expert.writing.fast_math import known_types
from tunesmith.expert.writing.gpu_loops import Body, GpuLoops
from tunesmith.expert.writing.naming import CodeLines
from tunesmith.expert.writing.packs import Pack
from tunesmith.expert.writing.plan import LoopPlan
from tunesmith.expert.writing.sites import either, length_of_all


@dataclass(frozen=True)
class LoopPart:
    """One of the loops: its indices are those from `first` (nothing: 0) to `end` of them all."""

    loop: LoopPlan
    body: Body
    first: str
    end: str

    def index(self, here: str) -> Expr:
        """Its own index, where all of them together are at `here`."""
        return Binary("-", Name(here), Name(self.first)) if self.first else Name(here)


class SideBySide(GpuLoops):
    """Every loop as it is, and those of a run as one where the schedule says so."""

    @cached_property
    def _own(self) -> str:
        return self._plan.names.fresh("own")

    def write(self, loop: LoopPlan, out: CodeLines, scope: set[str]) -> None:
        beside = self._plan.draft.schedule.beside
        run = next((run for run in self._plan.beside if any(loop is one for one in run)), None)
        if run is None or beside is None:
            super().write(loop, out, scope)
            return
        if loop is run[0]:
            out.blank()
            for each in run:
                out.say(out.comments.of_loop(each.each))
            out.add(f"#if {beside.name}  // loops that do not depend on each other, side by side")
            self._write_all(run, out)
            out.add("#else")
        super().write(loop, out, scope)
        if loop is run[-1]:
            out.add("#endif")

    def _write_all(self, run: Sequence[LoopPlan], out: CodeLines) -> None:
        reach = [length_of_all(loop.each for loop in run), Number("2", 2)]
        type_ = "int" if self._plan.sizes.fits_int(*reach) else "long long"
        if all(loop.packs for loop in run) and run[0].is_packed:
            alike = self._alike(run)
            parts = self._parts(run if alike is None else alike, type_, out)
            self._joint_packs(parts, alike is not None, type_, out)
        else:
            self._joint_plain(self._parts([LoopPlan(loop.each, ()) for loop in run], type_, out), type_, out)

    def _parts(self, run: Sequence[LoopPlan], type_: str, out: CodeLines) -> list[LoopPart]:
        parts: list[LoopPart] = []
        before = ""
        for loop in run:
            stop = print_expr(loop.each.stop)
            if self._inside:
                stop = f"({self._inside} ? {stop} : 0)"
            end = self._plan.names.fresh("end")
            out.add(f"const {type_} {end} = {f'{before} + ' if before else ''}{stop};")
            body = self._prepared(loop)
            self._inverses(body, out)
            parts.append(LoopPart(loop, body, before, end))
            before = end
        return parts

    # -- element by element ---------------------------------------------------------------------------

    def _joint_plain(self, parts: Sequence[LoopPart], type_: str, out: CodeLines) -> None:
        knobs, last = self._plan.knobs, parts[-1].end
        lanes, items = knobs.lanes.name, knobs.items.name
        per_block = lanes if knobs.items.most == 1 else f"{lanes} * {items}"
        first = self._first(parts[0].loop, "1", per_block, type_)
        several = knobs.items.most > 1
        here = self._here if several else self._base
        head = self._head(type_, first, last, self._step(per_block, type_))
        with out.block(head), out.repeated(self._item, items) if several else nullcontext():
            if several:
                out.add(f"const {type_} {here} = {self._base} + {self._item} * {lanes};")
            for number, part in enumerate(parts):
                with out.block(f"{'else ' if number else ''}if ({here} < {part.end})"):
                    each, index = part.loop.each, part.index(here)
                    value = index if each.type == type_ else Cast(Type(each.type), index)
                    out.add(f"const {each.type} {each.index} = {print_expr(value)};")
                    self._statements(each, part.body.plain, out)

    # -- pack by pack ---------------------------------------------------------------------------------

    def _joint_packs(self, parts: Sequence[LoopPart], alike: bool, type_: str, out: CodeLines) -> None:
        knobs = self._plan.knobs
        self._open(parts[0].loop, type_, parts[-1].end, out)
        for part in parts[:1] if alike else parts:
            self._declare(part.loop.packs, knobs.items.name, part.loop, out)
        packs = [pack for part in (parts[:1] if alike else parts) for pack in part.loop.packs if pack.loads]
        for some in self._in_turn(packs, out):
            self._over(parts, alike, type_, some, out)
        self._over(parts, alike, type_, None, out)
        out.close()

    def _over(
        self, parts: Sequence[LoopPart], alike: bool, type_: str, loads: Sequence[Pack] | None, out: CodeLines
    ) -> None:
        """A thread's packs: these are loaded; with none the body is run and results are stored."""
        with self._over_items(type_, self._plan.knobs.items.name, out):
            for number, part in enumerate(parts[-1:] if alike else parts):
                with out.block(f"{'else ' if number else ''}if ({self._here} < {part.end})"):
                    own, here = (parts, self._here) if alike else ([part], print_expr(part.index(self._here)))
                    if alike:
                        self._own_index(parts, type_, out)
                    if loads is None:
                        self._turns(own[0].loop.each, own[0].body, here, type_, out)
                    self._moves(own, type_, out, loads)

    def _own_index(self, parts: Sequence[LoopPart], type_: str, out: CodeLines) -> None:
        """In the loop it belongs to, whichever that is: what they have in common is computed once."""
        value = print_expr(parts[-1].index(self._here))
        for part in reversed(parts[:-1]):
            value = f"{self._here} < {part.end} ? {print_expr(part.index(self._here))} : {value}"
        out.add(f"const {type_} {self._own} = {value};")

    def _moves(
        self, parts: Sequence[LoopPart], type_: str, out: CodeLines, loads: Sequence[Pack] | None
    ) -> None:
        """Packs come or go, each from or to where it lies in the loop that the index belongs to."""
        own = parts[0].loop.packs
        for pack in own:
            if not (pack.stores if loads is None else any(pack is one for one in loads)):
                continue
            place = own.index(pack)
            where = self._joint_address([(part, part.loop.packs[place]) for part in parts], type_)
            way = self._way_out(pack) if loads is None else self._way_in(pack)
            out.add(f"{parts[0].loop.names[pack.key]}[{self._item}].{way}({where});")

    def _joint_address(self, packs: Sequence[tuple[LoopPart, Pack]], type_: str) -> str:
        places: list[Expr] = []
        for part, pack in packs:
            at: Expr = Name(self._own) if len(packs) > 1 else part.index(self._here)
            if part.loop.each.type != type_ and part.loop.each.type == self._plan.index_type(part.loop):
                at = Cast(Type(part.loop.each.type), at)
            places.append(self._place(pack, part.loop, at))
        types = {name: type_ for name, type_ in known_types(self._plan.kernel).items() if type_ is not None}
        place = places[-1]
        for (part, _), other in zip(reversed(packs[:-1]), reversed(places[:-1]), strict=True):
            first = Binary("<", Name(self._here), Name(part.end))
            place = either(first, other, place, types) or Ternary(first, other, place)
        return f"&{print_expr(place)}" if isinstance(place, Index) else f"&({print_expr(place)})"

    # -- loops that are alike -------------------------------------------------------------------------

    def _alike(self, run: Sequence[LoopPlan]) -> list[LoopPlan] | None:
        """The loops with the first one's packs for all; None where more than addresses differs."""
        first = run[0]
        shared = [first]
        for loop in run[1:]:
            if len(loop.packs) != len(first.packs):
                return None
            names = {}
            for own, other in zip(first.packs, loop.packs, strict=True):
                if self._kind(own) != self._kind(other):
                    return None
                names[other.key] = first.names[own.key]
            shared.append(replace(loop, names=names))
        bodies = [self._prepared(loop) for loop in shared]
        own_names = declared_in(bodies[0].packed)
        for loop, body in zip(shared, bodies, strict=True):
            declared = declared_in(body.packed)
            if body.inverses or loop.each.index in names_in(body.packed) or len(declared) != len(own_names):
                return None
            if rename(body.packed, dict(zip(declared, own_names, strict=True))) != bodies[0].packed:
                return None
        return shared

    def _kind(self, pack: Pack) -> tuple[object, ...]:
        """What the code that handles a pack depends on, beside where it lies."""
        ways = (self._way_in(pack), self._way_out(pack), self._waits(pack))
        return self._pack_type(pack), pack.loads, pack.stores, ways
