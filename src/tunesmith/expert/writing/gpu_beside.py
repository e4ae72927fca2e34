"""Loops that do not depend on each other as one over all their indices in turn.

Loops that are alike but for where their elements lie (query and key) differ in addresses alone; of others
each thread takes the one its index belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tunesmith.csource.nodes import (
    BLANK,
    Alternative,
    Binary,
    Cast,
    Comment,
    Declare,
    Expr,
    If,
    Name,
    Number,
    Stmt,
    Ternary,
    Type,
    Unary,
)  # fmt: skip
from tunesmith.csource.substitution import rename
from tunesmith.csource.walk import declared_in, names_in
from tunesmith.expert.writing.blocking import Blocking
from tunesmith.expert.writing.bulk import BulkLoops
from tunesmith.expert.writing.fast_math import known_types
from tunesmith.expert.writing.gpu_loops import Body
from tunesmith.expert.writing.loops import repeated
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

    def index(self, here: Expr) -> Expr:
        """Its own index, where all of them together are at `here`."""
        return Binary("-", here, Name(self.first)) if self.first else here


class SideBySide(BulkLoops):
    """Every loop as it is, and those of a run as one where the schedule says so."""

    @cached_property
    def _own(self) -> str:
        return self._plan.names.fresh("own")

    def write(self, loop: LoopPlan, scope: set[str]) -> tuple[Stmt, ...]:
        beside = self._plan.draft.schedule.get("beside")
        run = next((run for run in self._plan.beside if any(loop is one for one in run)), None)
        if run is None or beside is None:
            return super().write(loop, scope)
        if loop is not run[0]:
            return ()  # the loops of a run stand one after the other: they came with the first
        said = Comment("loops that do not depend on each other, side by side", behind=True)
        blocking, self._blocking = self._blocking, Blocking()
        joint = blocking.over(self._write_all(run), guarded=False)  # of one task
        self._blocking = blocking
        apart = tuple(stmt for one in run for stmt in super(SideBySide, self).write(one, scope))
        return (Alternative(Name(beside.name), joint, apart, comments=(BLANK, said)),)

    def _write_all(self, run: Sequence[LoopPlan]) -> tuple[Stmt, ...]:
        reach = [length_of_all(loop.each for loop in run), Number("2", 2)]
        type_ = "int" if self._plan.sizes.fits_int(*reach) else "long long"
        if all(loop.packs for loop in run) and run[0].is_packed:
            alike = self._alike(run)
            before, parts = self._parts(run if alike is None else alike, type_)
            return (*before, *self._joint_packs(parts, alike is not None, type_))
        before, parts = self._parts([LoopPlan(loop.each, ()) for loop in run], type_)
        return (*before, self._joint_plain(parts, type_))

    def _parts(self, run: Sequence[LoopPlan], type_: str) -> tuple[list[Stmt], list[LoopPart]]:
        done, parts = list[Stmt](), list[LoopPart]()
        before = ""
        for loop in run:
            stop = loop.each.stop
            if self._inside:
                stop = Ternary(Name(self._inside), stop, Number("0", 0))
            end = self._plan.names.fresh("end")
            value = Binary("+", Name(before), stop) if before else stop
            done.append(Declare(Type(type_, const=True), end, value))
            body = self._prepared(loop)
            done += self._inverses(body)
            parts.append(LoopPart(loop, body, before, end))
            before = end
        return done, parts

    def _chosen(
        self, parts: Sequence[LoopPart], here: Expr, body: Callable[[LoopPart], Sequence[Stmt]]
    ) -> tuple[Stmt, ...]:
        """The body of the loop that an index belongs to."""
        done: tuple[Stmt, ...] = ()
        for part in reversed(parts):
            within = Binary("<", here, Name(part.end))
            done = (If(within, tuple(body(part)), done, line=part.loop.each.line),)
        return done

    # -- element by element ---------------------------------------------------------------------------

    def _joint_plain(self, parts: Sequence[LoopPart], type_: str) -> Stmt:
        several, w = self._plan.knobs.items.most > 1, self.words
        per_block = w.expr("LANES * ITEMS" if several else "LANES")
        first = self._first(parts[0].loop, Name(self.lane), per_block, type_)
        here = self._here if several else Name(self._base)

        def own(part: LoopPart) -> list[Stmt]:
            each, index = part.loop.each, part.index(here)
            value = index if each.type == type_ else Cast(Type(each.type), index)
            declared = Declare(Type(each.type, const=True), each.index, value)
            return [declared, *self._statements(each, part.body.plain)]

        body = self._chosen(parts, here, own)
        if several:
            inner = w.code("const T here = base + k * LANES; body;", T=type_, body=body)
            body = repeated(self._item, w.expr("ITEMS"), inner)
        return self._over(type_, first, Name(parts[-1].end), per_block, body)

    # -- pack by pack ---------------------------------------------------------------------------------

    def _joint_packs(self, parts: Sequence[LoopPart], alike: bool, type_: str) -> tuple[Stmt, ...]:
        apart = parts[:1] if alike else parts
        loads = [pack for part in apart for pack in part.loop.packs if pack.loads]
        body = (
            *(stmt for part in apart for stmt in self._declare(part.loop.packs, "ITEMS", part.loop)),
            *self._in_turn(loads, lambda some: self._over_parts(parts, alike, type_, some)),
            *self._over_parts(parts, alike, type_, None),
        )
        return self._chunks(parts[0].loop, type_, Name(parts[-1].end), body)

    def _over_parts(
        self, parts: Sequence[LoopPart], alike: bool, type_: str, loads: Sequence[Pack] | None
    ) -> tuple[Stmt, ...]:
        """A thread's packs: these are loaded; with none the body is run and results are stored."""

        def one(part: LoopPart) -> list[Stmt]:
            own, here = (parts, self._here) if alike else ([part], part.index(self._here))
            done = [self._own_index(parts, type_)] if alike else []
            if loads is None:
                done += self._turns(own[0].loop.each, own[0].body, here, type_)
            return [*done, *self._moves(own, type_, loads)]

        chosen = self._chosen(parts[-1:] if alike else parts, self._here, one)
        return self._over_items(type_, "ITEMS", chosen)

    def _own_index(self, parts: Sequence[LoopPart], type_: str) -> Stmt:
        """In the loop it belongs to, whichever that is: what they have in common is computed once."""
        value = parts[-1].index(self._here)
        for part in reversed(parts[:-1]):
            value = Ternary(Binary("<", self._here, Name(part.end)), part.index(self._here), value)
        return Declare(Type(type_, const=True), self._own, value)

    def _moves(self, parts: Sequence[LoopPart], type_: str, loads: Sequence[Pack] | None) -> Iterator[Stmt]:
        """Packs come or go, each from or to where it lies in the loop that the index belongs to."""
        own = parts[0].loop.packs
        for pack in own:
            if not (pack.stores if loads is None else any(pack is one for one in loads)):
                continue
            place = own.index(pack)
            where = self._joint_address([(part, part.loop.packs[place]) for part in parts], type_)
            way = self._way_out(pack) if loads is None else self._way_in(pack)
            yield self._method(parts[0].loop, pack, way, where)

    def _joint_address(self, packs: Sequence[tuple[LoopPart, Pack]], type_: str) -> Expr:
        places: list[Expr] = []
        for part, pack in packs:
            at: Expr = Name(self._own) if len(packs) > 1 else part.index(self._here)
            if part.loop.each.type != type_ and part.loop.each.type == self._plan.index_type(part.loop):
                at = Cast(Type(part.loop.each.type), at)
            places.append(self._place(pack, part.loop, at))
        types = {name: type_ for name, type_ in known_types(self._plan.kernel).items() if type_ is not None}
        place = places[-1]
        for (part, _), other in zip(reversed(packs[:-1]), reversed(places[:-1]), strict=True):
            first = Binary("<", self._here, Name(part.end))
            place = either(first, other, place, types) or Ternary(first, other, place)
        return Unary("&", place)

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
