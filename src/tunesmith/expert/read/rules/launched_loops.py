"""Tests that every block of the launch passes, and loops that no thread goes round again.

    if (blockIdx.x < rows)                                    in a grid of `rows` blocks
    for (i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
                                                              in a grid of ceildiv(n, block) blocks

What is proved is an equation of sizes: the bound and the number of blocks, or threads, are one expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tunesmith.expert.read.geometry import (
    BLOCK,
    THREAD,
    LaunchedKernel,
    OtherForm,
    Scenario,
    Strided,
    chooses_by_size,
    form_of,
)
from tunesmith.expert.read.integers import (
    BUILTINS,
    Head,
    LaunchTerms,
    as_integer,
    bounds_in,
    expand_terms,
    from_terms,
    head_of,
    make_product,
    make_sum,
    number_node,
    same_value,
    simplify_expr,
    split_affine,
    split_operands,
    without_casts,
)
from tunesmith.expert.read.model import Fact, Reach
from tunesmith.expert.read.normal import Normal
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.fold import fold_statements, int_value
from tunesmith.source.reader.parse import read_expression
from tunesmith.source.substitution import substitute
from tunesmith.source.types import integer_literal, integer_type
from tunesmith.space import expr as size
from tunesmith.space.expr import unparse

_WIDE = frozenset({"int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long"})
_WIDE |= {"size_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "uint", "ulong"}
_BLOCKS = {f"blockIdx.{axis}": f"gridDim.{axis}" for axis in "xyz"}


def passed_by_all(normal: Normal, launch: LaunchTerms) -> tuple[c.Stmt, ...]:
    """The statements without these tests."""
    changed = walk.assigned_in(normal.body)

    def decided(node: c.Expr) -> c.Expr:
        match node:
            case c.Binary("<" | ">=" as op, left, right) if _is_within(left, right):
                return integer_literal(int(op == "<"))
        return node

    def _is_within(index: c.Expr, bound: c.Expr) -> bool:
        index, bound = _strip_widening_casts(index), _strip_widening_casts(bound)
        if isinstance(index, c.Name) and index.name in normal.ids and index.name not in changed:
            index = _strip_widening_casts(normal.ids[index.name].expr)
        if not isinstance(index, c.Name) or index.name not in _BLOCKS or walk.names_in(bound) & changed:
            return False
        if any(isinstance(part, c.Cast) and part.type.base not in _WIDE for part in walk.nodes_in(bound)):
            return False
        count = launch.parameters.get(_BLOCKS[index.name])
        said = launch.size_text(bound)
        blocks = launch.size_text(c.Name(_BLOCKS[index.name]))
        return count is not None and bool(said) and _is_same_size(said, blocks)

    return fold_statements(walk.map_nodes(normal.body, decided))


def turned_once(body: tuple[c.Stmt, ...], launch: LaunchTerms) -> tuple[c.Stmt, ...]:
    """Loops over the whole grid that no thread comes to the second turn of, as branches.

    Nothing may change what the bound is made of: the grid was made for the arguments as they came."""
    assigned = walk.assigned_in(body)
    declared = {s.name: s.init for s in body if isinstance(s, c.Declare) and s.init is not None}
    changed = {
        name: sum(name in walk.assigned_in(part) for part in body) for name in declared
    }  # by how many statements

    def value(expr: c.Expr) -> c.Expr:
        """A variable that nothing changes, as what it is."""
        known = isinstance(expr, c.Name) and expr.name in declared and not changed[expr.name]
        return _strip_widening_casts(declared[expr.name] if known and isinstance(expr, c.Name) else expr)

    done: list[c.Stmt] = []
    for at, stmt in enumerate(body):
        match stmt:
            case c.For(
                init=init,
                condition=c.Binary("<", c.Name(name=index), bound) as test,
                step=(c.Assign("+=", c.Name(name=moved), by),),
                body=inside,
            ) if moved == index and _initial_index(init, index, declared) == _global_thread_index():
                outside = (*body[:at], *body[at + 1 :])
                is_changed = index in walk.assigned_in(inside) or bool(assigned & walk.names_in(bound))
                others = [s for s in outside if not isinstance(s, c.Declare) or s.name != index]
                used = index in walk.names_in(others)
                jumps = any(isinstance(node, c.Jump) for node in walk.nodes_in(inside))
                steps = value(by) == _grid_thread_count() and _is_wide(stmt, index, body)
                once = steps and _is_bound_covered(bound, launch)
                if once and not is_changed and not used and not jumps:
                    first = [s for s in init if isinstance(s, c.Declare)]
                    done += [*first, c.If(test, inside, line=stmt.line, comments=stmt.comments)]
                    continue
        done.append(stmt)
    return tuple(done)


def _global_thread_index() -> c.Expr:
    block = c.Binary("*", c.Name("blockIdx.x"), c.Name("blockDim.x"))
    return c.Binary("+", block, c.Name("threadIdx.x"))


def _grid_thread_count() -> c.Expr:
    return c.Binary("*", c.Name("gridDim.x"), c.Name("blockDim.x"))


def _is_wide(loop: c.For, index: str, body: tuple[c.Stmt, ...]) -> bool:
    """Whether the index holds every thread's number: a narrow one comes to small numbers again."""
    found = [s for s in (*loop.init, *body) if isinstance(s, c.Declare) and s.name == index]
    return bool(found) and all(s.type.base in _WIDE and not s.type.is_pointer for s in found)


def _initial_index(init: tuple[c.Stmt, ...], index: str, declared: dict[str, c.Expr]) -> c.Expr | None:
    """What the index is before the first turn."""
    match init:
        case (c.Declare(name=name, init=first),) if name == index and first is not None:
            return _strip_widening_casts(first)
        case () | (c.Evaluate(expr=c.Name()),) if index in declared:
            return _strip_widening_casts(declared[index])
    return None


def _is_bound_covered(bound: c.Expr, launch: LaunchTerms) -> bool:
    """Whether the threads of the grid are as many as the bound, or up to a block more."""
    blocks, block = launch.parameters.get("gridDim.x"), launch.parameters.get("blockDim.x")
    said = launch.size_text(_strip_widening_casts(bound))
    match blocks:
        case size.FunctionCall("ceildiv", (count, size.Num() as by)):
            return by == block and bool(said) and _is_same_size(said, unparse(count))
    return False


def _strip_widening_casts(expr: c.Expr) -> c.Expr:
    """Without casts that lose nothing of the number of a block."""
    while isinstance(expr, c.Cast) and expr.type.base in _WIDE and not expr.type.pointers:
        expr = expr.value
    return expr


def _is_same_size(one: str, other: str) -> bool:
    if one == other:
        return True
    if not all(set(text) <= _PLAIN for text in (one, other)):
        return False
    return expand_terms(read_expression(one)) == expand_terms(read_expression(other))


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789+-*() ")


# -- Loops over the whole grid that are read as others: shifted ones, and several beside each other.
#
# Loops that count the same for all threads, while each thread takes an element of its own in every turn.
#
#     for (b = 0; b < n; b += blockDim.x) { i = b + threadIdx.x; if (i >= n) break; ... }
#     for (k = 0; k < (n + 255) / 256; k++) { i = k * 256 + threadIdx.x; if (i < n) ... }
#         ->  for (i = threadIdx.x; i < n; i += blockDim.x) ...
#
#     for (k = 0; k < 4; k++) { i = blockIdx.x * 1024 + k * 256 + threadIdx.x; if (i < n) ... }
#         ->  for (i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) ...
#
# The last takes the same elements only if the launch comes to all of them, which is told as a `Reach`.
#
# Kernels of several loops over the whole grid: one of vectors and one of what is left, say.
#
# Each is read by itself. What is computed before the loops belongs to each of them.


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
    head = Head(index, "int", number_node(0), stop, number_node(1))
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
        head = head_of(loop)
        guarded = None if head is None else _match_guarded_body(loop.body, head.index, last)
        if head is None or guarded is None or head.index in walk.assigned_in(loop.body):
            return loop
        found = split_affine(guarded.element, head.index)
        if found is None or not self._is_of_thread(found[1]):
            return loop
        each, rest = found
        if each == number_node(1) and same_value(guarded.stop, head.stop):
            start = make_sum(head.start, rest)
            if all(self._is_natural(rest, s) for s in self._tried):
                return self.made(loop, head, guarded, start, head.step) or loop
        if head.start != number_node(0) or head.step != number_node(1):
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
        self, head: Head, guarded: _GuardedBody, each: c.Expr, rest: c.Expr, scenario: Scenario
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

    def _spread(self, loop: c.For, head: Head, guarded: _GuardedBody) -> c.For | None:
        """Blocks that take a stretch each, of several elements to a thread, as a grid-stride loop."""
        for scenario in self._tried:
            turns = int_value(head.stop, scenario.numbers)
            if turns is None or not 0 < turns <= 64 or scenario.threads != scenario.block[0]:
                return None
            whole = turns * scenario.threads
            values: list[int] = []
            for turn in range(turns):
                definitions = {**self._definitions, head.index: number_node(turn)}
                form = form_of(substitute(guarded.element, definitions), scenario)
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
        count = make_product(make_product(grid, threads), head.stop)
        self.reach.append(Reach(index.name, guarded.stop, count))
        return made

    def made(
        self, loop: c.For, head: Head, guarded: _GuardedBody, start: c.Expr, step: c.Expr
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
                    as_integer(type_, start, self._normal.types),
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
        plain = without_casts(element)

        def node(part: c.Expr) -> c.Expr:
            if index not in walk.names_in(part):
                return part
            if without_casts(part) == plain:
                return c.Name(name)
            # `(row + b) + thread` has no such part, but the same sum.
            if isinstance(part, c.Binary) and part.op in ("+", "-") and without_casts(part) == part:
                left = from_terms(expand_terms(c.Binary("-", part, element)))
                if index not in walk.names_in(left) and not self._is_of_thread(left):
                    return c.Binary("+", left, c.Name(name))
            return part

        return walk.map_expr(expr, node)


def _is_quotient(turns: c.Expr, stop: c.Expr, each: c.Expr) -> bool:
    """`(stop + each - 1) / each`: as many turns as it takes."""
    turns = without_casts(turns)
    if not isinstance(turns, c.Binary) or turns.op != "/" or not same_value(turns.right, each):
        return False
    up = c.Binary("-", c.Binary("+", stop, each), number_node(1))
    return same_value(turns.left, up)


def _match_guarded_body(body: tuple[c.Stmt, ...], index: str, last: bool) -> _GuardedBody | None:
    """`if (element >= stop) break; ...` and `if (element < stop) { ... }`."""
    first = body[0] if body else None
    if not isinstance(first, c.If) or first.otherwise:
        return None
    exits = (c.Jump, c.Return) if last else c.Jump
    leaves = len(first.then) == 1 and isinstance(first.then[0], exits)
    if not leaves and len(body) != 1:
        return None
    test, *more = [first.condition] if leaves else split_operands(first.condition)
    bounds = bounds_in(test, lambda expr: index in walk.names_in(expr), not leaves)
    if bounds is None or len(bounds) != 1 or index in walk.names_in(bounds[0][1]):
        return None
    rest = body[1:] if leaves else first.then
    for condition in reversed(more):
        rest = (c.If(condition, rest, line=first.line),)
    return _GuardedBody(*bounds[0], rest)


def loops_apart(normal: Normal, loops: Mapping[str, Strided]) -> tuple[Normal, ...]:
    """The kernel in parts of one loop; empty for any other kernel."""
    before = [stmt for stmt in normal.body if isinstance(stmt, c.Declare)]
    rest = normal.body[len(before) :]
    if len(rest) < 2 or normal.body[: len(before)] != tuple(before):
        return ()
    parts: list[Normal] = []
    for stmt in rest:
        head = head_of(stmt) if isinstance(stmt, c.For) else None
        if head is None or not isinstance(stmt, c.For) or head.index not in loops:
            return ()
        if loops[head.index].role not in ("grid", "task"):
            return ()
        parts.append(
            replace(normal, body=(*_select_needed_declares(before, stmt), _from_zero(stmt, head, normal)))
        )
    return () if walk.assigned_in(rest) & {stmt.name for stmt in before} else tuple(parts)


def _select_needed_declares(before: Sequence[c.Declare], stmt: c.Stmt) -> list[c.Declare]:
    used, found = walk.names_in(stmt), list[c.Declare]()
    for declare in reversed(before):
        if declare.name in used:
            used |= walk.names_in(declare)
            found.insert(0, declare)
    return found


def _from_zero(loop: c.For, head: Head, normal: Normal) -> c.For:
    """`i = first + thread; i < n` counts from `first`: the same turns with `i - first` from 0."""
    parts = split_operands(head.start, "+")
    of_thread = [part for part in parts if walk.names_in(part) & (set(normal.ids) | THREAD | BLOCK)]
    first = [part for part in parts if part not in of_thread]
    if not of_thread or not first or head.index in walk.assigned_in(loop.body):
        return loop
    offset, start = (reduce(make_sum, parts) for parts in (first, of_thread))
    body = substitute(loop.body, {head.index: c.Binary("+", c.Name(head.index), offset)})
    return replace(
        loop,
        init=(c.Declare(c.Type(head.type), head.index, start, line=loop.line),),
        condition=c.Binary("<", c.Name(head.index), c.Binary("-", head.stop, offset)),
        step=(c.Assign("+=", c.Name(head.index), head.step),),
        body=body,
    )


# -- Work by a thread's number and a size, and loops with two ends, in the form in which they are read.
#
#     if (threadIdx.x < d % 4) s += x[d / 4 * 4 + threadIdx.x];
#         ->  for (t = threadIdx.x; t < d % 4; t += blockDim.x) s += x[d / 4 * 4 + t];
#
#     const int i = d / 4 * 4 + threadIdx.x;  if (i < d) s += x[i];
#         ->  for (t = threadIdx.x; t < d % 4; t += blockDim.x) s += x[d / 4 * 4 + t];
#
#     for (i = threadIdx.x; i < d && i < most; i += blockDim.x) ...
#         ->  for (i = threadIdx.x; i < min(d, most); i += blockDim.x) ...
#
# A test is such a loop, of one turn at most, in blocks that never have fewer threads than it lets through, by
# the ranges of the contract. What it compares with must depend on a size: tests of the thread alone are about
# how threads cooperate.


_LANE, _LANES = c.Name("threadIdx.x"), c.Name("blockDim.x")


def with_tests_as_loops(kernel: LaunchedKernel, bounds_of: BoundsOf) -> OtherForm | None:
    """The kernel with these as loops; None where it has none."""
    work = _TestsAsLoops(kernel, bounds_of)
    body = work.block(kernel.normal.body)
    if body == kernel.normal.body:
        return None
    normal = replace(kernel.normal, body=body, types={**kernel.normal.types, **work.types})
    said = "blocks never have fewer threads than a test lets through"
    facts = [Fact(said, "the contract's word", f"line {line}") for line in work.lines]
    return OtherForm(replace(kernel, normal=normal), tuple(facts))


class _TestsAsLoops:
    def __init__(self, kernel: LaunchedKernel, bounds_of: BoundsOf) -> None:
        self._kernel, self._bounds_of = kernel, bounds_of
        self._definitions = kernel.normal.definitions
        self._taken = kernel.normal.names
        self.types: dict[str, c.Type] = {}
        self.lines: list[int] = []  # of tests

    def block(self, stmts: tuple[c.Stmt, ...]) -> tuple[c.Stmt, ...]:
        """Of the kernel or of a loop over tasks: what all threads of a block come to."""
        return tuple(self._statement(stmt) for stmt in stmts)

    def _statement(self, stmt: c.Stmt) -> c.Stmt:
        match stmt:
            case c.If(otherwise=()):
                return self._as_loop(stmt) or stmt
            case c.For():
                stmt = self._with_one_end(stmt)
                head = head_of(stmt)
                loop = None if head is None else self._kernel.loops.get(head.index)
                if loop is not None and loop.role == "task":
                    return replace(stmt, body=self.block(stmt.body))
        return stmt

    def _as_loop(self, test: c.If) -> c.For | None:
        condition = substitute(test.condition, self._definitions)
        bounds = bounds_in(condition, lambda expr: bool(walk.names_in(expr) & THREAD))
        if bounds is None or len(bounds) != 1 or walk.names_in(bounds[0][1]) & THREAD:
            return None
        moves = split_affine(bounds[0][0], _LANE.name)
        if moves is None or moves[0] != number_node(1) or walk.names_in(moves[1]) & THREAD:
            return None
        stop = _fold_to_remainder(simplify_expr(c.Binary("-", bounds[0][1], moves[1])))
        allowed, block = self._bounds_of(stop), self._bounds_of(_LANES)
        sizes = set(self._kernel.normal.types) - set(BUILTINS)
        if not walk.names_in(stop) & sizes or allowed is None or block is None:
            return None
        if allowed[0] < 0 or allowed[1] > block[0] or self._changes(test, stop):
            return None
        name = walk.fresh_name("lane_own", self._taken)
        self.types[name] = c.Type("int")
        self.lines.append(test.line)
        of_threads = {n: e for n, e in self._definitions.items() if walk.names_in(e) & THREAD}
        body = substitute(substitute(test.then, of_threads), {_LANE.name: c.Name(name)})
        return c.For(
            (c.Declare(c.Type("int"), name, _LANE, line=test.line),),
            c.Binary("<", c.Name(name), stop),
            (c.Assign("+=", c.Name(name), _LANES),),
            body,
            line=test.line,
        )

    def _changes(self, test: c.If, stop: c.Expr) -> bool:
        return bool(walk.assigned_in(test.then) & (walk.names_in(stop) | walk.names_in(test.condition)))

    def _with_one_end(self, loop: c.For) -> c.For:
        match loop:
            case c.For(init=(c.Declare(name=name, type=type_),), condition=c.Binary("&&") as condition):
                bounds = bounds_in(condition, lambda e: e == c.Name(name))
            case _:
                return loop
        types = self._kernel.normal.types
        kinds = [integer_type(stop, types) for _, stop in bounds or ()]
        if bounds is None or len(bounds) != 2 or any(kind is None or kind.base != "int" for kind in kinds):
            return loop
        least = [self._bounds_of(stop) for _, stop in bounds]
        if type_.base != "int" and any(one is None or one[0] < 0 for one in least):
            return loop  # what is below zero may be the largest number there
        (index, one), (_, other) = bounds
        return replace(loop, condition=c.Binary("<", index, c.Call("min", (one, other))))


def _fold_to_remainder(expr: c.Expr) -> c.Expr:
    """`d - 4 * (d / 4)` as `d % 4`."""
    found = expand_terms(expr)
    for key, count in found.items():
        match key:
            case (c.Binary("/", whole, c.Number(value=int(by))),) if count == -by and by > 0:
                if found == {**expand_terms(whole), key: count} and len(found) > 1:
                    return c.Binary("%", whole, number_node(by))
    return expr
