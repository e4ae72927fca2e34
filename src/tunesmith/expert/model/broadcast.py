"""A row that a block brings into shared memory whole, for all its threads to read: what was loaded, again.

    for (i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[r * d + i];
    __syncthreads();                                                        ->   ... x[r * d + i - 1] ...
    ... row[i - 1] ...

The loop comes to every index below d once, so a place below d has its value. That a place that is read lies
there follows from the loops and tests around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.effects import Effects, Program, effects_of
from tunesmith.csource.fold import int_value
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import type_of
from tunesmith.expert.model import block_sums as b
from tunesmith.expert.model.affine import BUILTINS, Head, affine, head_of, number, simplified
from tunesmith.expert.model.geometry import THREAD, LaunchedKernel, Layout, check_lanes, form_of
from tunesmith.expert.model.kernel import OutOfReach
from tunesmith.expert.model.tiles import is_barrier
from tunesmith.space import grammar as size


@dataclass(frozen=True)
class WholeRow:
    """`value` at place `index + first`, for every index below `stop`."""

    array: str
    index: str
    first: c.Expr
    stop: c.Expr
    value: c.Expr


def with_rows_read_again(kernel: LaunchedKernel, source: c.Source) -> LaunchedKernel | None:
    """The kernel with such rows as the loads that filled them; None where it has none, or not these alone."""
    normal, body = kernel.normal, kernel.normal.body
    if not all(
        _is_uniform(stmt, kernel)
        for stmt in body
        if any(isinstance(n, c.Return) for n in walk.nodes_in(stmt))
    ):
        return None
    found: dict[str, WholeRow] = {}
    ready: dict[str, WholeRow] = {}  # behind a barrier
    reading = _Reading(kernel, ready)
    done: list[c.Stmt] = []
    try:
        b.check_signs(substitute(body, normal.definitions), normal.types)
        for stmt in body:
            row = _row(stmt, kernel, source) if isinstance(stmt, c.For) else None
            if is_barrier(stmt):
                ready.update(found)
            elif row is not None and row.array not in found:
                found[row.array] = row
                continue
            else:
                stmt = reading.block((stmt,), ())[0]
            done.append(stmt)
    except OutOfReach:
        return None
    left = walk.names_in(done)
    one_name = kernel.aliases.get
    stored = {one_name(name, name) for name in walk.stored_in(done)}
    loaded = {one_name(name, name) for row in found.values() for name in walk.names_in(row.value)}
    if not found or left & found.keys() or stored & loaded:
        return None
    shared = {name: declare for name, declare in normal.shared.items() if name not in found}
    if not shared.keys() & left:
        done = [stmt for stmt in done if not is_barrier(stmt)]
    return replace(kernel, normal=replace(normal, body=tuple(done), shared=shared))


def _row(loop: c.For, kernel: LaunchedKernel, source: c.Source) -> WholeRow | None:
    """The row that a loop of the whole block fills, each place once."""
    normal, head = kernel.normal, head_of(loop)
    match loop.body:
        case (
            c.Evaluate(
                expr=c.Assign(op="=", target=c.Index(base=c.Name(name=array), index=place), value=value)
            ),
        ):
            declare = normal.shared.get(array)
        case _:
            return None
    if head is None or declare is None or len(declare.dims) > 1 or not _covers(head, kernel):
        return None
    moves = affine(place, head.index)
    if moves is None or moves[0] != number(1):
        return None
    known = set(normal.types) - set(walk.declared_in(normal.body)) - walk.assigned_in(normal.body)
    known |= {head.index, *BUILTINS, *normal.ids} - THREAD
    for part in (value, moves[1], head.stop):
        names = walk.names_in(part)
        effects = effects_of(part, Program.of(source)) & ~(Effects.READS | Effects.THREAD | Effects.SHAPE)
        if effects or not names <= known - normal.shared.keys() or not _is_uniform(part, kernel):
            return None
    kind = type_of(value, normal.types, source.functions)
    if kind is None or kind.is_pointer:
        return None
    value = value if kind.base == declare.type.base else c.Cast(c.Type(declare.type.base), value)
    return WholeRow(array, head.index, moves[1], head.stop, value)


def _is_uniform(part: c.Expr | c.Stmt, kernel: LaunchedKernel) -> bool:
    ids = kernel.normal.definitions
    return not any(walk.names_in(ids.get(name, c.Name(name))) & THREAD for name in walk.names_in(part))


def _covers(head: Head, kernel: LaunchedKernel) -> bool:
    definitions = kernel.normal.definitions
    start, step = substitute(head.start, definitions), substitute(head.step, definitions)
    for scenario in kernel.scenarios:
        form = form_of(start, scenario)
        if form is None or any(form.per_block) or min(form.base) != 0:
            return False
        if not check_lanes(start, 1, Layout(scenario, scenario.threads)):
            return False
        if int_value(step, scenario.numbers) != scenario.threads:
            return False
    return True


class _Reading:
    def __init__(self, kernel: LaunchedKernel, ready: Mapping[str, WholeRow]) -> None:
        self._kernel, self._ready, self._sums = kernel, ready, b.ThreadSums()
        self._types = kernel.normal.types
        heads = {
            h.index for n in walk.nodes_in(kernel.normal.body) if isinstance(n, c.For) and (h := head_of(n))
        }
        self._changing = walk.assigned_in(kernel.normal.body) - heads
        parameters = kernel.launch.parameters.items()
        self._natural = frozenset(BUILTINS) | {n for n, node in parameters if isinstance(node, size.Variable)}

    def block(self, stmts: Sequence[c.Stmt], facts: tuple[c.Expr, ...]) -> tuple[c.Stmt, ...]:
        done: list[c.Stmt] = []
        for stmt in stmts:
            outer = walk.map_parts(stmt, lambda expr: self._read(expr, facts), lambda body: body)
            match outer, stmt:
                case c.If(), c.If(condition=test, then=then, otherwise=otherwise):
                    then, otherwise = (
                        self.block(side, self._with(facts, test, yes))
                        for side, yes in ((then, True), (otherwise, False))
                    )
                    outer = replace(outer, then=then, otherwise=otherwise)
                case c.For(), c.For(condition=test, body=body):
                    head = head_of(stmt)
                    inside = facts
                    if head is not None and test is not None:
                        inside = self._with(facts, test, True)
                        first = self._sums.at(substitute(head.start, self._kernel.normal.definitions), {})
                        if b.is_at_least_zero(first, (), self._natural):
                            self._natural |= {head.index}
                    outer = replace(outer, body=self.block(body, inside))
                case c.While(), c.While(body=body):
                    outer = replace(outer, body=self.block(body, facts))
            done.append(outer)
        return tuple(done)

    def _with(self, facts: tuple[c.Expr, ...], test: c.Expr, yes: bool) -> tuple[c.Expr, ...]:
        if b.loads(test) or walk.names_in(test) & self._changing:
            return facts
        parts = b.operands(test) if yes else [test]
        return (*facts, *(one for part in parts for one in b.inequalities(part, self._types, yes) or ()))

    def _read(self, expr: c.Expr, facts: tuple[c.Expr, ...]) -> c.Expr:
        match expr:
            case c.Index(base=c.Name(name=array), index=index) if array in self._ready:
                row = self._ready[array]
                place = simplified(c.Binary("-", self._read(index, facts), row.first))
                last = c.Binary("-", row.stop, number(1))
                if not self._is_below(number(0), place, facts) or not self._is_below(place, last, facts):
                    raise OutOfReach(f"shared memory '{array}' may be read beyond its row")
                return substitute(row.value, {row.index: place})
            case c.Ternary(condition=test, yes=yes, no=no):
                sides = (
                    self._read(yes, self._with(facts, test, True)),
                    self._read(no, self._with(facts, test, False)),
                )
                return c.Ternary(self._read(test, facts), *sides)
        return b.rebuilt(expr, lambda part: self._read(part, facts))

    def _is_below(self, low: c.Expr, high: c.Expr, facts: Sequence[c.Expr]) -> bool:
        """low <= high; of the smaller of two each must be at least, of the larger one of them."""
        for expr in (low, high):
            if isinstance(expr, c.Call) and expr.function in ("min", "max"):
                every = (expr.function == "min") == (expr is high)
                sides = [self._is_below(*((a, high) if expr is low else (low, a)), facts) for a in expr.args]
                return all(sides) if every else any(sides)
        definitions = self._kernel.normal.definitions
        one = self._sums.at(substitute(c.Binary("-", high, low), definitions), {})
        known = [self._sums.at(substitute(fact, definitions), {}) for fact in facts]
        both = [b.added(left, right) for left, right in combinations(known, 2)]
        return b.is_at_least_zero(one, (*known, *both), self._natural)
