"""Loops that do not depend on each other as one over all their indices in turn.

Loops that are alike but for where their elements lie (query and key) differ in addresses alone; of others
each thread takes the one its index belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tunesmith.expert.write.buffers import Blocking, Copy, LoopPlan
from tunesmith.expert.write.fast_math import known_types
from tunesmith.expert.write.given import item_axis, nest_loops
from tunesmith.expert.write.loops import Body
from tunesmith.expert.write.packs import Pack
from tunesmith.expert.write.ring import BulkLoops
from tunesmith.expert.write.sites import length_of_all, select_expression
from tunesmith.source import tree as c
from tunesmith.source.substitution import rename_variables
from tunesmith.source.walk import declared_in, names_in


@dataclass(frozen=True)
class LoopPart:
    """One of the loops: its indices are those from `first` (nothing: 0) to `end` of them all."""

    loop: LoopPlan
    body: Body
    first: str
    end: str

    def index(self, here: c.Expr) -> c.Expr:
        """Its own index, where all of them together are at `here`."""
        return c.Binary("-", here, c.Name(self.first)) if self.first else here


class SideBySide(BulkLoops):
    """Every loop as it is, and those of a run as one where the schedule says so."""

    def write(self, loop: LoopPlan, scope: set[str]) -> tuple[c.Stmt, ...]:
        run = next((run for run in self._plan.beside if any(loop is one for one in run)), None)
        if run is None:
            return super().write(loop, scope)
        if loop is not run[0]:
            return ()  # the loops of a run stand one after the other: they came with the first
        said = c.Comment("loops that do not depend on each other, side by side", behind=True)
        blocking, self._blocking = self._blocking, Blocking()
        joint = blocking.over(self._write_all(run), guarded=False)  # of one task
        self._blocking = blocking
        apart = tuple(stmt for one in run for stmt in super(SideBySide, self).write(one, scope))
        return (c.Alternative(self.words.expr("BESIDE"), joint, apart, comments=(c.BLANK, said)),)

    def _write_all(self, run: Sequence[LoopPlan]) -> tuple[c.Stmt, ...]:
        reach = [length_of_all(loop.each for loop in run), c.Number("2", 2)]
        type_ = "int" if self._plan.sizes.fits_int(*reach) else "long long"
        if all(loop.packs for loop in run) and run[0].is_packed:
            alike = self._alike(run)
            before, parts = self._parts(run if alike is None else alike, type_)
            return (*before, *self._joint_packs(parts, alike is not None, type_))
        before, parts = self._parts([LoopPlan(loop.each) for loop in run], type_)
        return (*before, *self._joint_plain(parts, type_))

    def _parts(self, run: Sequence[LoopPlan], type_: str) -> tuple[list[c.Stmt], list[LoopPart]]:
        done, parts = list[c.Stmt](), list[LoopPart]()
        before = ""
        for loop in run:
            stop = loop.each.stop
            if self._plan.guards:
                stop = c.Ternary(self.words.expr("inside"), stop, c.Number("0", 0))
            end = self._plan.names.fresh("end")
            value = c.Binary("+", c.Name(before), stop) if before else stop
            done.append(c.Declare(c.Type(type_, const=True), end, value))
            body = self._prepared(loop)
            done += self._inverses(body)
            parts.append(LoopPart(loop, body, before, end))
            before = end
        return done, parts

    def _chosen(
        self, parts: Sequence[LoopPart], here: c.Expr, body: Callable[[LoopPart], Sequence[c.Stmt]]
    ) -> tuple[c.Stmt, ...]:
        """The body of the loop that an index belongs to."""
        done: tuple[c.Stmt, ...] = ()
        for part in reversed(parts):
            within = c.Binary("<", here, c.Name(part.end))
            done = (c.If(within, tuple(body(part)), done, line=part.loop.each.line),)
        return done

    def _joint_plain(self, parts: Sequence[LoopPart], type_: str) -> tuple[c.Stmt, ...]:
        several, w = self._plan.knobs.items.most > 1, self.words
        here = self._here if several else c.Name(self._base)

        def own(part: LoopPart) -> list[c.Stmt]:
            each, index = part.loop.each, part.index(here)
            value = index if each.type == type_ else c.Cast(c.Type(each.type), index)
            declared = c.Declare(c.Type(each.type, const=True), each.index, value)
            return [declared, *self._statements(each, part.body.plain)]

        turns = self._turns_of_lanes(parts[0].loop, c.Name(parts[-1].end), type_=type_)
        places = w.code("const T here = base + k * LANES;", T=type_)
        axes = (turns, item_axis(self._item, w.expr("ITEMS"), places)) if several else (turns,)
        return nest_loops(axes, self._chosen(parts, here, own))

    def _joint_packs(self, parts: Sequence[LoopPart], alike: bool, type_: str) -> tuple[c.Stmt, ...]:
        apart = parts[:1] if alike else parts
        loads = [copy for part in apart for copy in part.loop.loads]
        body = (
            *(stmt for part in apart for stmt in self._declare(part.loop.packs, "ITEMS", part.loop)),
            *self._in_turn(loads, lambda some: self._over_parts(parts, alike, type_, some)),
            *self._over_parts(parts, alike, type_, None),
        )
        return self._chunks(parts[0].loop, type_, c.Name(parts[-1].end), body)

    def _over_parts(
        self, parts: Sequence[LoopPart], alike: bool, type_: str, loads: Sequence[Copy] | None
    ) -> tuple[c.Stmt, ...]:
        """A thread's packs: these are loaded; with none the body is run and results are stored."""

        def one(part: LoopPart) -> list[c.Stmt]:
            some, here = (parts, self._here) if alike else ([part], part.index(self._here))
            done = [self._own_index(parts, type_)] if alike else []
            if loads is None:
                done += self._elements(some[0].loop.each, some[0].body, here, type_)
            return [*done, *self._moves(some, type_, loads)]

        chosen = self._chosen(parts[-1:] if alike else parts, self._here, one)
        return self._all_items(type_, "ITEMS").over(chosen)

    def _own_index(self, parts: Sequence[LoopPart], type_: str) -> c.Stmt:
        """In the loop it belongs to, whichever that is: what they have in common is computed once."""
        value = parts[-1].index(self._here)
        for part in reversed(parts[:-1]):
            value = c.Ternary(c.Binary("<", self._here, c.Name(part.end)), part.index(self._here), value)
        return c.Declare(c.Type(type_, const=True), self._plan.word("own"), value)

    def _moves(self, parts: Sequence[LoopPart], type_: str, loads: Sequence[Copy] | None) -> Iterator[c.Stmt]:
        """Packs come or go, each from or to where it lies in the loop that the index belongs to."""
        leader = parts[0].loop
        for copy in leader.stores if loads is None else loads:
            if copy in (*leader.loads, *leader.stores):
                place = leader.packs.index(copy.pack)
                where = self._joint_address([(part, part.loop.packs[place]) for part in parts], type_)
                yield self._pack_method(leader, copy.pack, copy.way, where)

    def _joint_address(self, packs: Sequence[tuple[LoopPart, Pack]], type_: str) -> c.Expr:
        places: list[c.Expr] = []
        for part, pack in packs:
            at: c.Expr = c.Name(self._plan.word("own")) if len(packs) > 1 else part.index(self._here)
            if part.loop.each.type != type_ and part.loop.each.type == self._plan.index_type(part.loop):
                at = c.Cast(c.Type(part.loop.each.type), at)
            places.append(self._place(pack, part.loop, at))
        types = {name: type_ for name, type_ in known_types(self._plan.kernel).items() if type_ is not None}
        place = places[-1]
        for (part, _), other in zip(reversed(packs[:-1]), reversed(places[:-1]), strict=True):
            first = c.Binary("<", self._here, c.Name(part.end))
            place = select_expression(first, other, place, types) or c.Ternary(first, other, place)
        return c.Unary("&", place)

    def _alike(self, run: Sequence[LoopPlan]) -> list[LoopPlan] | None:
        """The loops with the first one's packs for all; None where more than addresses differs."""
        first = run[0]
        shared = [first]
        for loop in run[1:]:
            if len(loop.packs) != len(first.packs):
                return None
            buffers = {}
            for pack, other in zip(first.packs, loop.packs, strict=True):
                if self._kind(pack, first) != self._kind(other, loop):
                    return None
                buffers[other.key] = first.buffers[pack.key]
            shared.append(replace(loop, buffers=buffers))
        bodies = [self._prepared(loop) for loop in shared]
        own_names = declared_in(bodies[0].packed)
        for loop, body in zip(shared, bodies, strict=True):
            declared = declared_in(body.packed)
            if body.inverses or loop.each.index in names_in(body.packed) or len(declared) != len(own_names):
                return None
            if rename_variables(body.packed, dict(zip(declared, own_names, strict=True))) != bodies[0].packed:
                return None
        return shared

    def _kind(self, pack: Pack, loop: LoopPlan) -> tuple[object, ...]:
        """What the code that handles a pack depends on, beside where it lies."""
        copies = [(copy.way, copy.waits) for copy in (*loop.loads, *loop.stores) if copy.pack == pack]
        return self._pack_type(pack), copies
