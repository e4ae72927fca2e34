"""Loops over the whole grid that are read as others: shifted ones, and several beside each other.

Loops that count the same for all threads, while each thread takes an element of its own in every turn.

    for (b = 0; b < n; b += blockDim.x) { i = b + threadIdx.x; if (i >= n) break; ... }
    for (k = 0; k < (n + 255) / 256; k++) { i = k * 256 + threadIdx.x; if (i < n) ... }
        ->  for (i = threadIdx.x; i < n; i += blockDim.x) ...

    for (k = 0; k < 4; k++) { i = blockIdx.x * 1024 + k * 256 + threadIdx.x; if (i < n) ... }
        ->  for (i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) ...

The last takes the same elements only if the launch comes to all of them, which is told as a `Reach`.

Kernels of several loops over the whole grid: one of vectors and one of what is left, say.

Each is read by itself. What is computed before the loops belongs to each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.fold import int_value
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import integer_type
from tunesmith.expert.model import affine
from tunesmith.expert.model.geometry import BLOCK, THREAD, Strided, chooses_by_size, form_of
from tunesmith.expert.model.kernel import Reach
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.scenarios import Scenario
from tunesmith.expert.model.translate import product


@dataclass(frozen=True)
class _GuardedBody:
    """What a turn does for elements below `stop`; `element` is over the loop's index and the thread."""

    element: c.Expr
    stop: c.Expr
    body: tuple[c.Stmt, ...]


BoundsOf = Callable[[c.Expr], tuple[int, int] | None]  # the least and the largest value, by the contract


def with_element_loops(
    normal: Normal, tried: Sequence[Scenario], bounds_of: BoundsOf
) -> tuple[Normal, tuple[Reach, ...]]:
    work = _Shifting(normal, tried, bounds_of)
    body = work.block(normal.body, True)
    return replace(normal, body=body, types={**normal.types, **work.types}), tuple(work.reach)


def counted_by_element(
    normal: Normal, loop: c.For, index: str, element: c.Expr, stop: c.Expr, first: c.Expr, each: c.Expr
) -> tuple[c.For, str, c.Type] | None:
    """`for (i = first; i < stop; i += each)` in place of a loop over `index`, whose turn is for `element`.

    With the new index and its type; None where its body asks for the turn's own number."""
    work = _Shifting(normal, (), lambda _: None)
    head = affine.Head(index, "int", affine.number(0), stop, affine.number(1))
    made = work.made(loop, head, _GuardedBody(element, stop, loop.body), first, each)
    return None if made is None else (made, *next(iter(work.types.items())))


class _Shifting:
    def __init__(self, normal: Normal, tried: Sequence[Scenario], bounds_of: BoundsOf) -> None:
        self._normal = normal
        self._tried = tried
        self._bounds_of = bounds_of
        self._definitions = normal.definitions
        self._taken = normal.names
        self.types: dict[str, c.Type] = {}
        self.reach: list[Reach] = []

    def block(self, stmts: tuple[c.Stmt, ...], top: bool) -> tuple[c.Stmt, ...]:
        """`top`: nothing of the kernel follows the last of these statements."""
        done: list[c.Stmt] = []
        for at, stmt in enumerate(stmts):
            last = top and at == len(stmts) - 1
            if isinstance(stmt, c.For):
                stmt = self._loop(stmt, last, done)
                stmt = replace(stmt, body=self.block(stmt.body, False))
            elif isinstance(stmt, c.If):
                stmt = walk.map_blocks(stmt, lambda body: self.block(body, False))
            done.append(stmt)
        return tuple(done)

    def _loop(self, loop: c.For, last: bool, before: Sequence[c.Stmt]) -> c.For:
        """`last`: nothing follows it, and `before` is all that comes before it."""
        head = affine.head_of(loop)
        guarded = None if head is None else _guarded(loop.body, head.index, last)
        if head is None or guarded is None or head.index in walk.assigned_in(loop.body):
            return loop
        found = affine.affine(guarded.element, head.index)
        if found is None or not self._is_of_thread(found[1]):
            return loop
        each, rest = found
        if each == affine.number(1) and affine.same_value(guarded.stop, head.stop):
            start = affine.plus(head.start, rest)
            if all(self._is_natural(rest, s) for s in self._tried):
                return self.made(loop, head, guarded, start, head.step) or loop
        if head.start != affine.number(0) or head.step != affine.number(1):
            return loop
        if all(
            self._is_natural(rest, s) and self._reaches(head, guarded, each, rest, s) for s in self._tried
        ):
            return self.made(loop, head, guarded, rest, each) or loop
        outside = {name for stmt in before for name in walk.declared_in((stmt,))}
        if outside & (walk.assigned_in(loop.body) | walk.stored_in(loop.body)):
            return loop  # a turn leaves something for the next
        if last and not any(self._is_of_thread(part) for part in before):
            return self._spread(loop, head, guarded) or loop
        return loop

    def _is_of_thread(self, part: c.Expr | c.Stmt) -> bool:
        names = walk.names_in(part)
        for name in tuple(names):
            names |= walk.names_in(self._definitions[name]) if name in self._definitions else frozenset()
        return bool(names & THREAD)

    def _is_natural(self, rest: c.Expr, scenario: Scenario) -> bool:
        form = form_of(substitute(rest, self._definitions), scenario)
        return form is not None and min(form.base) >= 0 and min(form.per_block) >= 0

    def _reaches(
        self, head: affine.Head, guarded: _GuardedBody, each: c.Expr, rest: c.Expr, scenario: Scenario
    ) -> bool:
        """Whether all turns together come to every element of a thread, in every block."""
        turns_, stop_, each_ = (
            substitute(part, self._definitions) for part in (head.stop, guarded.stop, each)
        )
        if _is_quotient(turns_, stop_, each_):
            return True
        if any(chooses_by_size(substitute(part, self._definitions)) for part in (head.stop, each, rest)):
            return False
        form = form_of(substitute(rest, self._definitions), scenario)
        parts = [int_value(part, scenario.numbers) for part in (head.stop, each, guarded.stop)]
        known = [part for part in parts if part is not None]
        if form is None or len(known) < 3:
            return False
        turns, step, stop = known
        if step <= 0 or min(form.base) + turns * step < stop:
            return False
        whole, most = self._bounds_of(c.Binary("*", turns_, each_)), self._bounds_of(stop_)
        if whole is None or whole[0] != whole[1]:
            return True
        # As many elements at all sizes: then no size may have more of them, also none that was not tried.
        return most is not None and most[1] <= whole[0]

    def _spread(self, loop: c.For, head: affine.Head, guarded: _GuardedBody) -> c.For | None:
        """Blocks that take a stretch each, of several elements to a thread, as a grid-stride loop."""
        for scenario in self._tried:
            turns = int_value(head.stop, scenario.numbers)
            if turns is None or not 0 < turns <= 64 or scenario.threads != scenario.block[0]:
                return None
            whole = turns * scenario.threads
            values: list[int] = []
            for turn in range(turns):
                own = {**self._definitions, head.index: affine.number(turn)}
                form = form_of(substitute(guarded.element, own), scenario)
                if form is None or form.per_block != (whole, 0, 0):
                    return None
                values += form.base
            if sorted(values) != list(range(whole)):
                return None
        block, threads, grid = c.Name("blockIdx.x"), c.Name("blockDim.x"), c.Name("gridDim.x")
        start = c.Binary("+", c.Binary("*", block, threads), c.Name("threadIdx.x"))
        made = self.made(loop, head, guarded, start, c.Binary("*", grid, threads))
        if made is None or any(self._is_of_thread(stmt) for stmt in made.body):
            return None
        if walk.names_in(made.body) & BLOCK & {"blockIdx.x"}:
            return None
        index = made.init[0]
        assert isinstance(index, c.Declare)
        count = product(product(grid, threads), head.stop)
        self.reach.append(Reach(index.name, guarded.stop, count))
        return made

    def made(
        self, loop: c.For, head: affine.Head, guarded: _GuardedBody, start: c.Expr, step: c.Expr
    ) -> c.For | None:
        name = walk.fresh_name(f"{head.index}_own", set(self._taken))
        body = walk.map_statements(guarded.body, lambda e: self._said(e, guarded.element, head.index, name))
        if head.index in walk.names_in(body):
            return None
        type_ = integer_type(guarded.element, self._normal.types)
        if type_ is None:
            return None
        self._taken.add(name)
        self.types[name] = c.Type(type_.base)
        return c.For(
            (
                c.Declare(
                    c.Type(type_.base),
                    name,
                    affine.as_integer(type_, start, self._normal.types),
                    line=loop.line,
                ),
            ),
            c.Binary("<", c.Name(name), guarded.stop),
            (c.Assign("+=", c.Name(name), step),),
            body,
            line=loop.line,
        )

    def _said(self, expr: c.Expr, element: c.Expr, index: str, name: str) -> c.Expr:
        """The expression over the element in place of the loop's index."""
        plain = affine.without_casts(element)

        def node(part: c.Expr) -> c.Expr:
            if index not in walk.names_in(part):
                return part
            if affine.without_casts(part) == plain:
                return c.Name(name)
            # `(row + b) + thread` has no such part, but the same sum.
            if isinstance(part, c.Binary) and part.op in ("+", "-") and affine.without_casts(part) == part:
                left = affine.from_terms(affine.terms(c.Binary("-", part, element)))
                if index not in walk.names_in(left) and not self._is_of_thread(left):
                    return c.Binary("+", left, c.Name(name))
            return part

        return walk.map_expr(expr, node)


def _is_quotient(turns: c.Expr, stop: c.Expr, each: c.Expr) -> bool:
    """`(stop + each - 1) / each`: as many turns as it takes."""
    turns = affine.without_casts(turns)
    if not isinstance(turns, c.Binary) or turns.op != "/" or not affine.same_value(turns.right, each):
        return False
    up = c.Binary("-", c.Binary("+", stop, each), affine.number(1))
    return affine.same_value(turns.left, up)


def _guarded(body: tuple[c.Stmt, ...], index: str, last: bool) -> _GuardedBody | None:
    """`if (element >= stop) break; ...` and `if (element < stop) { ... }`."""
    first = body[0] if body else None
    if not isinstance(first, c.If) or first.otherwise:
        return None
    exits = (c.Jump, c.Return) if last else c.Jump
    leaves = len(first.then) == 1 and isinstance(first.then[0], exits)
    if not leaves and len(body) != 1:
        return None
    test, *more = [first.condition] if leaves else _operands(first.condition, "&&")
    bounds = affine.bounds_in(test, lambda expr: index in walk.names_in(expr), not leaves)
    if bounds is None or len(bounds) != 1 or index in walk.names_in(bounds[0][1]):
        return None
    rest = body[1:] if leaves else first.then
    for condition in reversed(more):
        rest = (c.If(condition, rest, line=first.line),)
    return _GuardedBody(*bounds[0], rest)


def _operands(expr: c.Expr, op: str) -> list[c.Expr]:
    """`a && b && c` -> a, b, c"""
    if isinstance(expr, c.Binary) and expr.op == op:
        return [*_operands(expr.left, op), *_operands(expr.right, op)]
    return [expr]


def loops_apart(normal: Normal, loops: Mapping[str, Strided]) -> tuple[Normal, ...]:
    """The kernel in parts of one loop; empty for any other kernel."""
    before = [stmt for stmt in normal.body if isinstance(stmt, c.Declare)]
    rest = normal.body[len(before) :]
    if len(rest) < 2 or normal.body[: len(before)] != tuple(before):
        return ()
    parts: list[Normal] = []
    for stmt in rest:
        head = affine.head_of(stmt) if isinstance(stmt, c.For) else None
        if head is None or not isinstance(stmt, c.For) or head.index not in loops:
            return ()
        if loops[head.index].role not in ("grid", "task"):
            return ()
        parts.append(replace(normal, body=(*_needed(before, stmt), _from_zero(stmt, head, normal))))
    return () if walk.assigned_in(rest) & {stmt.name for stmt in before} else tuple(parts)


def _needed(before: Sequence[c.Declare], stmt: c.Stmt) -> list[c.Declare]:
    used, found = walk.names_in(stmt), list[c.Declare]()
    for declare in reversed(before):
        if declare.name in used:
            used |= walk.names_in(declare)
            found.insert(0, declare)
    return found


def _from_zero(loop: c.For, head: affine.Head, normal: Normal) -> c.For:
    """`i = first + thread; i < n` counts from `first`: the same turns with `i - first` from 0."""
    parts = _operands(head.start, "+")
    own = [part for part in parts if walk.names_in(part) & (set(normal.ids) | THREAD | BLOCK)]
    first = [part for part in parts if part not in own]
    if not own or not first or head.index in walk.assigned_in(loop.body):
        return loop
    offset, start = (reduce(affine.plus, parts) for parts in (first, own))
    body = substitute(loop.body, {head.index: c.Binary("+", c.Name(head.index), offset)})
    return replace(
        loop,
        init=(c.Declare(c.Type(head.type), head.index, start, line=loop.line),),
        condition=c.Binary("<", c.Name(head.index), c.Binary("-", head.stop, offset)),
        step=(c.Assign("+=", c.Name(head.index), head.step),),
        body=body,
    )
