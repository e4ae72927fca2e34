"""The expression tree: what an expression is made of, and how it is written as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

# The largest magnitude of a value. Two of them add up to 64 bits at most, so that NumPy can check afterwards.
LIMIT = 2**62

ArithmeticOp = Literal["+", "-", "*", "//", "%"]
CompareOp = Literal["==", "!=", "<", "<=", ">", ">="]
BoolOp = Literal["and", "or"]
Function = Literal["min", "max", "ceildiv", "round_up", "next_pow2", "is_pow2"]


@dataclass(frozen=True, slots=True)
class Num:
    value: int


@dataclass(frozen=True, slots=True)
class Variable:
    id: str  # "d", or dotted: "device.sms"


@dataclass(frozen=True, slots=True)
class Neg:
    """Minus something. Minus a plain number is `Num(-3)`, so that a text has one tree and a tree one text."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node


@dataclass(frozen=True, slots=True)
class Arithmetic:
    op: ArithmeticOp
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right op right ...`, chained as in Python."""

    left: Node
    links: tuple[tuple[CompareOp, Node], ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    item: Node
    options: tuple[int, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Logic:
    op: BoolOp
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    test: Node
    then: Node
    other: Node


@dataclass(frozen=True, slots=True)
class FunctionCall:
    function: Function
    args: tuple[Node, ...]


Node = Num | Variable | Neg | Not | Arithmetic | Compare | OneOf | Logic | Conditional | FunctionCall


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Num() | Variable():
            return ()
        case Neg(operand) | Not(operand):
            return (operand,)
        case Arithmetic(_, left, right):
            return (left, right)
        case Compare(left, links):
            return (left, *(right for _, right in links))
        case OneOf(item):
            return (item,)
        case Logic(_, operands):
            return operands
        case Conditional(test, then, other):
            return (test, then, other)
        case FunctionCall(_, args):
            return args
    assert_never(node)


def names(node: Node) -> Iterator[str]:
    """Every name in the tree, in reading order, repeats included."""
    if isinstance(node, Variable):
        yield node.id
    for child in children(node):
        yield from names(child)


# Binding strength, weakest first, as in Python's grammar.
_IF, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _UNARY, _ATOM = range(9)


def unparse(node: Node) -> str:
    """The text of a tree, with the fewest parentheses; reading it again gives the same tree."""
    return _render(node, _IF)


def _render(node: Node, at_least: int) -> str:
    text, strength = _text(node)
    return text if strength >= at_least else f"({text})"


def _text(node: Node) -> tuple[str, int]:
    match node:
        case Num(value):
            return str(value), _ATOM if value >= 0 else _UNARY
        case Variable(id):
            return id, _ATOM
        case Neg(operand):
            return f"-{_render(operand, _UNARY)}", _UNARY
        case Not(operand):
            return f"not {_render(operand, _NOT)}", _NOT
        case Arithmetic(op, left, right):
            strength = _SUM if op in ("+", "-") else _PRODUCT
            return f"{_render(left, strength)} {op} {_render(right, strength + 1)}", strength
        case Compare(left, links):
            tail = "".join(f" {op} {_render(right, _SUM)}" for op, right in links)
            return f"{_render(left, _SUM)}{tail}", _COMPARE
        case OneOf(item, options, negated):
            listed = ", ".join(map(str, options)) + ("," if len(options) == 1 else "")
            return f"{_render(item, _SUM)} {'not in' if negated else 'in'} ({listed})", _COMPARE
        case Logic(op, operands):
            strength = _OR if op == "or" else _AND
            return f" {op} ".join(_render(operand, strength + 1) for operand in operands), strength
        case Conditional(test, then, other):
            return f"{_render(then, _OR)} if {_render(test, _OR)} else {_render(other, _IF)}", _IF
        case FunctionCall(function, args):
            return f"{function}({', '.join(_render(arg, _IF) for arg in args)})", _ATOM
    assert_never(node)
