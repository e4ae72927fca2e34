"""The small expression language of shapes, launches and constraints: integers in, one integer out.

Arithmetic is Python's (`//` and `%` round down); comparisons, `and`, `or` and `not` yield 0 or 1, and what
`and`, `or`, `if` and a chain do not need is not looked at: `BLOCK > 0 and d % BLOCK == 0` is safe.
An expression with no value (a division by zero, a name without a value, a number beyond 2**62) raises
`Undefined`; as a constraint it does not hold.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, assert_never

from tunesmith.space import grammar as n
from tunesmith.space.grammar import (
    LIMIT,
    ArithmeticOp,
    CompareOp,
    ExprError,
    Function,
    Node,
    is_name,
    read,
    shorten,
    unparse,
)

__all__ = ["LIMIT", "Expr", "ExprError", "Node", "Undefined", "is_name", "parse", "unparse"]


class Undefined(Exception):
    """An expression has no value for these values of its names."""


@dataclass(frozen=True)
class Expr:
    """A checked expression. `text` is what the user wrote, or what is left of it after `bind`."""

    text: str
    tree: Node

    def __str__(self) -> str:
        return self.text

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(n.names(self.tree))

    def evaluate(self, values: Mapping[str, int]) -> int:
        return _evaluate(self.tree, values)

    def holds(self, values: Mapping[str, int]) -> bool:
        try:
            return _evaluate(self.tree, values) != 0
        except Undefined:
            return False

    def bind(self, values: Mapping[str, int]) -> Expr:
        """The same expression with these names replaced by their values and what is now constant folded."""
        if self.names.isdisjoint(values):
            return self
        tree = _bind(self.tree, values)
        return Expr(unparse(tree), tree)


def parse(text: str | int, *, names: Collection[str] | None = None) -> Expr:
    """Read an expression; with `names`, refuse any name that is not among them."""
    if isinstance(text, str):
        return Expr(text.strip(), read(text, names))
    if type(text) is not int:
        kind = type(text).__name__
        message = f"an expression is an integer or a text, got the {kind} {shorten(repr(text))}"
        raise ExprError(message, hint='write 1 or 0 for true or false, "..." around anything longer')
    if abs(text) > LIMIT:
        raise ExprError(f"an integer is at most 2**62, got {text:.3e}", hint="no size or limit is that large")
    return Expr(str(text), n.Num(text))


def _evaluate(node: Node, values: Mapping[str, int]) -> int:
    match node:
        case n.Num(value):
            return value
        case n.Variable(id):
            if id not in values:
                raise Undefined(f"'{id}' has no value")
            return _bounded(operator.index(values[id]))
        case n.Arithmetic(op, left, right):
            return _bounded(_ARITHMETIC[op](_evaluate(left, values), _evaluate(right, values)))
        case n.Compare(left, links):
            value = _evaluate(left, values)
            for relation, right in links:
                previous, value = value, _evaluate(right, values)
                if not COMPARE[relation](previous, value):
                    return 0
            return 1
        case n.Logic("and", operands):
            return int(all(_evaluate(operand, values) for operand in operands))
        case n.Logic(_, operands):
            return int(any(_evaluate(operand, values) for operand in operands))
        case n.Conditional(test, then, other):
            return _evaluate(then if _evaluate(test, values) else other, values)
        case n.FunctionCall(function, args):
            return _bounded(_FUNCTIONS[function](*(_evaluate(arg, values) for arg in args)))
        case n.Not(operand):
            return int(not _evaluate(operand, values))
        case n.Neg(operand):
            return -_evaluate(operand, values)
        case n.OneOf(item, options, negated):
            return int((_evaluate(item, values) in options) != negated)
    assert_never(node)


def _bounded(value: int) -> int:
    if -LIMIT <= value <= LIMIT:
        return value
    raise Undefined("a value is larger than 2**62")


def _nonzero(divisor: int) -> int:
    if divisor == 0:
        raise Undefined("division by zero")
    return divisor


def _ceildiv(a: int, b: int) -> int:
    return -(-a // _nonzero(b))


def _next_pow2(a: int) -> int:
    if a <= 0:
        raise Undefined(f"next_pow2 needs a positive number, got {a}")
    return 1 << (a - 1).bit_length()


_ARITHMETIC: dict[ArithmeticOp, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "//": lambda a, b: a // _nonzero(b), "%": lambda a, b: a % _nonzero(b),
}  # fmt: skip
COMPARE: dict[CompareOp, Callable[[Any, Any], Any]] = {  # of numbers, and of columns of them
    "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_FUNCTIONS: dict[Function, Callable[..., int]] = {
    "min": min, "max": max, "ceildiv": _ceildiv, "round_up": lambda a, b: _ceildiv(a, b) * b,
    "next_pow2": _next_pow2, "is_pow2": lambda a: int(a > 0 and a & (a - 1) == 0),
}  # fmt: skip


def _bind(node: Node, values: Mapping[str, int]) -> Node:
    match node:
        case n.Num():
            return node
        case n.Variable(id):
            # A value out of range stays a name: without a value it is undefined, which is what it was.
            value = operator.index(values[id]) if id in values else LIMIT + 1
            return n.Num(value) if -LIMIT <= value <= LIMIT else node
        case n.Logic(op, operands):
            return _bind_logic(op == "and", operands, values)
        case n.Conditional(test, then, other):
            test = _bind(test, values)
            if isinstance(test, n.Num):
                return _bind(then if test.value else other, values)
            return n.Conditional(test, _bind(then, values), _bind(other, values))
        case n.Compare(left, links):
            return _bind_chain(_bind(left, values), links, values)
        case n.Arithmetic(op, left, right):
            return _fold(n.Arithmetic(op, _bind(left, values), _bind(right, values)))
        case n.FunctionCall(function, args):
            return _fold(n.FunctionCall(function, tuple(_bind(arg, values) for arg in args)))
        case n.Not(operand):
            return _fold(n.Not(_bind(operand, values)))
        case n.Neg(operand):
            return _fold(n.Neg(_bind(operand, values)))
        case n.OneOf(item, options, negated):
            return _fold(n.OneOf(_bind(item, values), options, negated))
    assert_never(node)


def _fold(node: Node) -> Node:
    """The number a node over numbers stands for; a node with no value stays, to be undefined later."""
    if all(isinstance(child, n.Num) for child in n.children(node)):
        try:
            return n.Num(_evaluate(node, {}))
        except Undefined:
            pass
    return node


def _bind_chain(left: Node, links: tuple[tuple[CompareOp, Node], ...], values: Mapping[str, int]) -> Node:
    bound = [(op, _bind(right, values)) for op, right in links]
    while bound and isinstance(left, n.Num) and isinstance(right := bound[0][1], n.Num):
        op, _ = bound.pop(0)
        if not COMPARE[op](left.value, right.value):
            return n.Num(0)
        left = right
    return n.Compare(left, tuple(bound)) if bound else n.Num(1)


def _bind_logic(conjunction: bool, operands: tuple[Node, ...], values: Mapping[str, int]) -> Node:
    """Drop operands that change nothing; stop at one that settles it, since nothing after it is looked at.

    What stands before the settling operand stays: it may have no value, and then the whole has none.
    """
    remaining: list[Node] = []
    for operand in operands:
        operand = _bind(operand, values)
        if not isinstance(operand, n.Num):
            remaining.append(operand)
        elif bool(operand.value) != conjunction:
            remaining.append(n.Num(int(not conjunction)))
            break
    if not remaining:
        return n.Num(int(conjunction))
    if len(remaining) > 1:
        return n.Logic("and" if conjunction else "or", tuple(remaining))
    alone = remaining[0]
    if isinstance(alone, n.Compare | n.OneOf | n.Not | n.Logic) or alone in (n.Num(0), n.Num(1)):
        return alone
    return n.Compare(alone, (("!=", n.Num(0)),))  # `1 and x` is 0 or 1, not x
