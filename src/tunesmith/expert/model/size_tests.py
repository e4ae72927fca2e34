"""Work by a thread's number and a size, and loops with two ends, in the form in which they are read.

    if (threadIdx.x < d % 4) s += x[d / 4 * 4 + threadIdx.x];
        ->  for (t = threadIdx.x; t < d % 4; t += blockDim.x) s += x[d / 4 * 4 + t];

    const int i = d / 4 * 4 + threadIdx.x;  if (i < d) s += x[i];
        ->  for (t = threadIdx.x; t < d % 4; t += blockDim.x) s += x[d / 4 * 4 + t];

    for (i = threadIdx.x; i < d && i < most; i += blockDim.x) ...
        ->  for (i = threadIdx.x; i < min(d, most); i += blockDim.x) ...

A test is such a loop, of one turn at most, in blocks that never have fewer threads than it lets through, by
the ranges of the contract. What it compares with must depend on a size: tests of the thread alone are about
how threads cooperate.
"""

from __future__ import annotations

from dataclasses import replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import integer_type
from tunesmith.expert.model import affine
from tunesmith.expert.model.facts import Fact
from tunesmith.expert.model.geometry import THREAD, LaunchedKernel, OtherForm
from tunesmith.expert.model.shifted_loops import BoundsOf

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
                head = affine.head_of(stmt)
                loop = None if head is None else self._kernel.loops.get(head.index)
                if loop is not None and loop.role == "task":
                    return replace(stmt, body=self.block(stmt.body))
        return stmt

    def _as_loop(self, test: c.If) -> c.For | None:
        condition = substitute(test.condition, self._definitions)
        bounds = affine.bounds_in(condition, lambda expr: bool(walk.names_in(expr) & THREAD))
        if bounds is None or len(bounds) != 1 or walk.names_in(bounds[0][1]) & THREAD:
            return None
        moves = affine.affine(bounds[0][0], _LANE.name)
        if moves is None or moves[0] != affine.number(1) or walk.names_in(moves[1]) & THREAD:
            return None
        stop = _remainder(affine.simplified(c.Binary("-", bounds[0][1], moves[1])))
        allowed, block = self._bounds_of(stop), self._bounds_of(_LANES)
        sizes = set(self._kernel.normal.types) - set(affine.BUILTINS)
        if not walk.names_in(stop) & sizes or allowed is None or block is None:
            return None
        if allowed[0] < 0 or allowed[1] > block[0] or self._changes(test, stop):
            return None
        name = walk.fresh_name("lane_own", self._taken)
        self.types[name] = c.Type("int")
        self.lines.append(test.line)
        own = {n: e for n, e in self._definitions.items() if walk.names_in(e) & THREAD}
        body = substitute(substitute(test.then, own), {_LANE.name: c.Name(name)})
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
                bounds = affine.bounds_in(condition, lambda e: e == c.Name(name))
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


def _remainder(expr: c.Expr) -> c.Expr:
    """`d - 4 * (d / 4)` as `d % 4`."""
    found = affine.terms(expr)
    for key, count in found.items():
        match key:
            case (c.Binary("/", whole, c.Number(value=int(by))),) if count == -by and by > 0:
                if found == {**affine.terms(whole), key: count} and len(found) > 1:
                    return c.Binary("%", whole, affine.number(by))
    return expr
