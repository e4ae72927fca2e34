"""Statements rewritten with what is around each expression in sight: tests that hold there, and loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource import nodes as c
from tunesmith.csource import walk
from tunesmith.csource.substitution import substitute
from tunesmith.expert.model import block_sums as b
from tunesmith.expert.model.affine import BUILTINS, OPPOSITE, head_of
from tunesmith.expert.model.geometry import LaunchedKernel
from tunesmith.space import grammar as size


@dataclass(frozen=True)
class Surroundings:
    facts: tuple[c.Expr, ...] = ()  # sums that are at least 0
    loops: tuple[c.For, ...] = ()


class SurroundedReading(ABC):
    """`read` says what an expression is; None: its parts are looked at."""

    def __init__(self, kernel: LaunchedKernel, body: Sequence[c.Stmt], types: Mapping[str, c.Type]) -> None:
        self._types, self._definitions, self._sums = types, kernel.normal.definitions, b.ThreadSums()
        heads = {h.index for n in walk.nodes_in(body) if isinstance(n, c.For) and (h := head_of(n))}
        self._changing = walk.assigned_in(body) - heads
        sizes = {n for n, node in kernel.launch.parameters.items() if isinstance(node, size.Variable)}
        self._natural = frozenset(BUILTINS) | sizes  # symbols that are at least 0

    @abstractmethod
    def read(self, expr: c.Expr, around: Surroundings) -> c.Expr | None: ...

    def block(self, stmts: Sequence[c.Stmt], around: Surroundings) -> tuple[c.Stmt, ...]:
        done: list[c.Stmt] = []
        for stmt in stmts:
            outer = walk.map_parts(stmt, lambda expr: self.rewritten(expr, around), lambda body: body)
            match outer, stmt:
                case c.If(), c.If(condition=test, then=then, otherwise=otherwise):
                    then = self.block(then, self.where(around, test))
                    otherwise = self.block(otherwise, self.where(around, test, False))
                    outer = replace(outer, then=then, otherwise=otherwise)
                case c.For(), c.For(condition=condition):
                    inside, head = replace(around, loops=(*around.loops, stmt)), head_of(stmt)
                    if head is not None and condition is not None:
                        inside = self.where(inside, condition)
                        first = self._sums.at(substitute(head.start, self._definitions), {})
                        if b.is_at_least_zero(first, (), self._natural):
                            self._natural |= {head.index}
                    outer = replace(outer, body=self.block(stmt.body, inside))
                case c.While(), c.While(body=body):
                    outer = replace(outer, body=self.block(body, around))
            done.append(outer)
        return tuple(done)

    def rewritten(self, expr: c.Expr, around: Surroundings) -> c.Expr:
        found = self.read(expr, around)
        if found is not None:
            return found
        match expr:
            case c.Ternary(condition=test, yes=yes, no=no):
                yes = self.rewritten(yes, self.where(around, test))
                no = self.rewritten(no, self.where(around, test, False))
                return c.Ternary(self.rewritten(test, around), yes, no)
            case c.Binary(op="&&", left=left, right=right):
                right = self.rewritten(right, self.where(around, left))
                return c.Binary("&&", self.rewritten(left, around), right)
        return b.rebuilt(expr, lambda part: self.rewritten(part, around))

    def where(self, around: Surroundings, test: c.Expr, yes: bool = True) -> Surroundings:
        """With a test that holds, or does not."""
        if b.loads(test) or walk.names_in(test) & self._changing:
            return around
        parts = b.operands(self.straight(test)) if yes else [test]
        found = [one for part in parts for one in b.inequalities(part, self._types, yes) or ()]
        return replace(around, facts=(*around.facts, *found))

    def straight(self, test: c.Expr) -> c.Expr:
        """`!(a || b)` as `!a && !b`, comparisons of integers turned round."""
        match test:
            case c.Unary(op="!", operand=c.Binary(op="||", left=left, right=right)):
                return c.Binary("&&", *(self.straight(c.Unary("!", side)) for side in (left, right)))
            case c.Unary(op="!", operand=c.Binary(op=op, left=left, right=right) as inner) if op in OPPOSITE:
                said = b.inequalities(inner, self._types) or b.inequalities(inner, self._types, False)
                return test if said is None else c.Binary(OPPOSITE[op], left, right)
            case c.Unary(op="!", operand=c.Unary(op="!", operand=operand)):
                return self.straight(operand)
            case c.Binary(op="&&", left=left, right=right):
                return c.Binary("&&", self.straight(left), self.straight(right))
        return test
