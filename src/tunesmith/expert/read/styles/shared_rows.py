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

from tunesmith.expert.read.geometry import THREAD, LaunchedKernel, Layout, check_lanes, form_of
from tunesmith.expert.read.integers import (
    BUILTINS,
    Head,
    head_of,
    number_node,
    simplify_expr,
    split_affine,
    value_bounds,
)
from tunesmith.expert.read.model import OutOfReach
from tunesmith.expert.read.styles import tiles as b
from tunesmith.expert.read.styles.tiles import SurroundedReading, Surroundings, is_barrier
from tunesmith.source import tree as c
from tunesmith.source import walk
from tunesmith.source.effects import Effects, Program, effects_of
from tunesmith.source.fold import int_value
from tunesmith.source.substitution import substitute
from tunesmith.source.types import type_of


@dataclass(frozen=True)
class WholeRow:
    """`value` at place `index + first`, for every index below `stop`."""

    array: str
    index: str
    first: c.Expr
    stop: c.Expr
    value: c.Expr


def with_rows_read_again(
    kernel: LaunchedKernel, source: c.Source, ranges: Mapping[str, tuple[int, int]]
) -> LaunchedKernel | None:
    """The kernel with such rows as the loads that filled them; None where it has none, or not these alone.

    `ranges`: of the sizes, by the contract."""
    normal, body = kernel.normal, kernel.normal.body
    leaving = [stmt for stmt in body if any(isinstance(n, c.Return) for n in walk.nodes_in(stmt))]
    if not all(_is_uniform(stmt, kernel) for stmt in leaving):
        return None
    found: dict[str, WholeRow] = {}
    ready: dict[str, WholeRow] = {}  # behind a barrier
    reading = _RowReading(kernel, ready)
    done: list[c.Stmt] = []
    try:
        b.check_signs(substitute(body, normal.definitions), normal.types)
        for stmt in body:
            loop = _as_loop(stmt, kernel, ranges)
            row = None if loop is None else _match_row_fill(loop, kernel, source)
            if is_barrier(stmt):
                ready.update(found)
            elif row is not None and row.array not in found:
                found[row.array] = row
                continue
            else:
                stmt = reading.block((stmt,), Surroundings())[0]
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


def _as_loop(stmt: c.Stmt, kernel: LaunchedKernel, ranges: Mapping[str, tuple[int, int]]) -> c.For | None:
    """`if (threadIdx.x < n) ...` is a loop of one turn in a block that never has fewer than n threads."""
    match stmt:
        case c.For():
            return stmt
        case c.If(condition=c.Binary("<", left, stop), then=then, otherwise=()):
            sizes, launch = kernel.launch.parameters, kernel.launch
            index = left.name if isinstance(left, c.Name) else ""
            meaning = kernel.normal.definitions.get(index, c.Name(index))
            flat = all(launch.values.get(f"blockDim.{axis}") == number_node(1) for axis in "yz")
            if meaning != c.Name("threadIdx.x") or not flat:
                return None
            block, most = sizes.get("blockDim.x"), launch.bounds_of(stop, ranges)
            least = None if block is None else value_bounds(block, ranges)
            if least is None or most is None or most[1] > least[0]:
                return None
            turn = c.Name(walk.numbered_name(f"{index}_turn".replace(".", "_"), kernel.normal.names))
            declare = c.Declare(c.Type("int"), turn.name, c.Name("threadIdx.x"), line=stmt.line)
            step = c.Assign("+=", turn, c.Name("blockDim.x"))
            body = substitute(then, {index: turn})
            return c.For((declare,), c.Binary("<", turn, stop), (step,), body, line=stmt.line)
    return None


def _match_row_fill(loop: c.For, kernel: LaunchedKernel, source: c.Source) -> WholeRow | None:
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
    if head is None or declare is None or len(declare.dims) > 1 or not _is_block_stride_loop(head, kernel):
        return None
    moves = split_affine(place, head.index)
    if moves is None or moves[0] != number_node(1):
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


def _is_block_stride_loop(head: Head, kernel: LaunchedKernel) -> bool:
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


class _RowReading(SurroundedReading):
    def __init__(self, kernel: LaunchedKernel, ready: Mapping[str, WholeRow]) -> None:
        super().__init__(kernel, kernel.normal.body, kernel.normal.types)
        self._ready = ready

    def read(self, expr: c.Expr, around: Surroundings) -> c.Expr | None:
        match expr:
            case c.Index(base=c.Name(name=array), index=index) if array in self._ready:
                row = self._ready[array]
                place = simplify_expr(c.Binary("-", self.rewritten(index, around), row.first))
                last = c.Binary("-", row.stop, number_node(1))
                facts = around.facts
                if not self._is_below(number_node(0), place, facts) or not self._is_below(place, last, facts):
                    raise OutOfReach(f"shared memory '{array}' may be read beyond its row")
                return substitute(row.value, {row.index: place})
        return None

    def _is_below(self, low: c.Expr, high: c.Expr, facts: Sequence[c.Expr]) -> bool:
        """low <= high; of the smaller of two each must be at least, of the larger one of them."""
        for expr in (low, high):
            if isinstance(expr, c.Call) and expr.function in ("min", "max"):
                every = (expr.function == "min") == (expr is high)
                sides = [self._is_below(*((a, high) if expr is low else (low, a)), facts) for a in expr.args]
                return all(sides) if every else any(sides)
        match low, high:  # of numbers that are none below zero
            case c.Number(value=0), c.Binary("/", whole, by):
                return self._is_below(low, whole, facts) and self._is_below(low, by, facts)
            case c.Binary("/", whole, by), _:
                if not (
                    self._is_below(number_node(0), whole, facts) and self._is_below(number_node(0), by, facts)
                ):
                    return False
                above = c.Binary("*", c.Binary("+", high, number_node(1)), by)
                return self._is_below(whole, simplify_expr(c.Binary("-", above, number_node(1))), facts)
        one, *known = (
            self._sums.at(substitute(sum_, self._definitions), {})
            for sum_ in (c.Binary("-", high, low), *facts)
        )
        both = [
            {key: left.get(key, 0) + right.get(key, 0) for key in {*left, *right}}
            for left, right in combinations(known, 2)
        ]
        return b.is_at_least_zero(one, (*known, *both), self._natural)
