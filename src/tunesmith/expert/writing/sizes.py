"""What the contract says of a kernel's integer expressions: their text in the template file, and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from tunesmith.csource import nodes as c
from tunesmith.csource.substitution import substitute
from tunesmith.csource.walk import assigned_in, names_in, statements_in
from tunesmith.expert.model.kernel import Each, KernelModel, Let, Once, all_steps
from tunesmith.expert.model.translate import bounds, divisor, parameter_values, to_sizes
from tunesmith.problem.problem import Problem
from tunesmith.space.expr import Node, parse, unparse
from tunesmith.space.grammar import Arithmetic, Num, Variable

INT_MAX = 2**31 - 1
_MOST_ROUNDS = 20


@dataclass(frozen=True)
class Sizes:
    """`arguments`: an integer parameter -> what callers pass; `known`: a name -> its one definition."""

    arguments: Mapping[str, Node]
    known: Mapping[str, c.Expr]
    ranges: Mapping[str, tuple[int, int]]  # of the sizes
    steps: Mapping[str, int]  # what divides each size

    @classmethod
    def of(cls, kernel: KernelModel, problem: Problem) -> Sizes:
        arguments = parameter_values(problem, tuple(p.name for p in kernel.function.parameters))
        known = dict(kernel.source.constants) | _definitions(kernel)
        rules = problem.contract.sizes
        ranges = {r.name: r.span for r in rules}
        steps = {r.name: gcd(*r.one_of) if r.one_of else r.multiple_of for r in rules}
        return cls(arguments, known, ranges, steps)

    def node(self, expr: c.Expr) -> Node | None:
        """The expression over sizes; None where it depends on anything else."""
        for _ in range(_MOST_ROUNDS):  # a definition may name others
            known = {name: self.known[name] for name in names_in(expr) if name in self.known}
            if not known:
                break
            expr = substitute(expr, known)
        text = to_sizes(expr, self.arguments)
        return None if text is None else parse(text).tree

    def text(self, expr: c.Expr) -> str | None:
        found = self.node(expr)
        return None if found is None else unparse(found)

    def divisor(self, expr: c.Expr) -> int:
        """A number that divides every value it has under the contract; 0 where the value is 0."""
        found = self.node(expr)
        return 1 if found is None else divisor(found, self.steps)

    def is_plain(self, expr: c.Expr) -> bool:
        """Whether a condition on it would be one that sizes meet: no remainders, no cases."""
        found = self.node(expr)
        return found is not None and _is_plain(found)

    def most(self, expr: c.Expr) -> int | None:
        """The largest value under the contract; None where it is not known."""
        found = self.node(expr)
        known = None if found is None else bounds(found, self.ranges)
        return None if known is None else known[1]

    def fits_int(self, *factors: c.Expr) -> bool:
        """Whether the product of these stays well inside 32 bits."""
        product = 1
        for factor in factors:
            most = self.most(factor)
            if most is None:
                return False
            product *= max(most, 1)
        return product <= INT_MAX - 2**20  # a last step beyond the end must not overflow either


def _is_plain(node: Node) -> bool:
    match node:
        case Num() | Variable():
            return True
        case Arithmetic("+" | "-" | "*" | "//", left, right):
            return _is_plain(left) and _is_plain(right)
        case _:
            return False


def factors(node: Node) -> list[Node]:
    if isinstance(node, Arithmetic) and node.op == "*":
        return [*factors(node.left), *factors(node.right)]
    return [node]


def _definitions(kernel: KernelModel) -> dict[str, c.Expr]:
    """Names that uniform steps define once, and never change."""
    found: dict[str, c.Expr] = {}
    twice: set[str] = set()
    changed: set[str] = set()
    for step in all_steps(kernel.steps):
        if not isinstance(step, Each | Let | Once):
            continue
        changed.update(assigned_in(step.body))
        for stmt in statements_in(step.body):
            if isinstance(stmt, c.Declare):
                twice.update({stmt.name} & found.keys())
                if isinstance(step, Let | Once) and stmt.init is not None and not stmt.is_array:
                    found[stmt.name] = stmt.init
    return {name: value for name, value in found.items() if name not in twice | changed}
