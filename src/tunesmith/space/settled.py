"""Expressions changed: some of their names known, some of their parts called otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from tunesmith.space.expr import Expr, unparse
from tunesmith.space.grammar import Arithmetic, Compare, Conditional, FunctionCall, Logic, Node, Num, children


def settled(expr: Expr, fixed: Mapping[str, int]) -> Expr:
    """With the known values in it, and nothing multiplied by 1 for their sake."""
    tree = _plain(expr.bind(fixed).tree)
    return Expr(unparse(tree), tree)


def substituted(node: Node, meanings: Mapping[Node, Node]) -> Node:
    """The tree with other trees in place of some of its parts."""
    if node in meanings:
        return meanings[node]
    return replace(node, **{f.name: _substituted(getattr(node, f.name), meanings) for f in fields(node)})


def _substituted(value: Any, meanings: Mapping[Node, Node]) -> Any:
    if isinstance(value, tuple):
        return tuple(_substituted(part, meanings) for part in value)
    return substituted(cast("Node", value), meanings) if is_dataclass(value) else value


def _plain(node: Node) -> Node:
    match node:
        case Arithmetic(op, left, right):
            left, right = _plain(left), _plain(right)
            if (op in ("*", "//") and right == Num(1)) or (op in ("+", "-") and right == Num(0)):
                return left
            if (op == "*" and left == Num(1)) or (op == "+" and left == Num(0)):
                return right
            return Arithmetic(op, left, right)
        case FunctionCall("ceildiv" | "round_up", (value, Num(1))):
            return _plain(value)
        case FunctionCall(function, args):
            return FunctionCall(function, tuple(map(_plain, args)))
        case Compare(left, links):
            return Compare(_plain(left), tuple((op, _plain(right)) for op, right in links))
        case Conditional(test, then, other):
            return Conditional(_plain(test), _plain(then), _plain(other))
        case Logic(op, operands) if isinstance(operands[-1], Num) and not _may_fail(node):
            return Num(int(bool(operands[-1].value)))  # the last settles it, whatever the others say
        case Logic(op, operands):
            return Logic(op, tuple(map(_plain, operands)))
    return node


def _may_fail(node: Node) -> bool:
    """Whether it may have no value: it divides, or calls what does."""
    divides = isinstance(node, FunctionCall) or (isinstance(node, Arithmetic) and node.op in ("//", "%"))
    return divides or any(_may_fail(child) for child in children(node))
