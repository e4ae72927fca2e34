"""The values of float scalars: numbers and sizes, + - * / and sqrt, in double precision.

No other function: these alone give the same result, to the last bit, in every language that a result is
delivered in.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, assert_never

from tunesmith.space.expr import Undefined
from tunesmith.space.grammar import ExprError, shorten, suggestion

RealOp = Literal["+", "-", "*", "/"]
LONGEST_REAL = 500  # characters
DEEPEST_REAL = 40

_ALLOWED = "it has numbers, sizes, + - * / and sqrt(x), as in 1 / sqrt(head_dim)"
_OPERATORS: dict[type[ast.operator], RealOp] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
}  # fmt: skip
_FOREIGN = re.compile(r"[^A-Za-z0-9_+\-*/(). \t\r\n]")
_ACTIONS: dict[RealOp, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RealNumber:
    value: float


@dataclass(frozen=True, slots=True)
class RealName:
    id: str


@dataclass(frozen=True, slots=True)
class RealNegative:
    operand: RealNode


@dataclass(frozen=True, slots=True)
class RealOperation:
    op: RealOp
    left: RealNode
    right: RealNode


@dataclass(frozen=True, slots=True)
class SquareRoot:
    operand: RealNode


RealNode = RealNumber | RealName | RealNegative | RealOperation | SquareRoot


@dataclass(frozen=True)
class RealExpr:
    text: str
    tree: RealNode

    def __str__(self) -> str:
        return self.text

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(_names(self.tree))

    @cached_property
    def has_root(self) -> bool:
        return "sqrt" in real_code(self, dict.fromkeys(self.names, ""))

    def evaluate(self, values: Mapping[str, int]) -> float:
        """Raises Undefined where there is no finite value."""
        try:
            value = _evaluate(self.tree, values)
        except (ZeroDivisionError, OverflowError, ValueError) as error:
            raise Undefined(str(error)) from error
        if not math.isfinite(value):
            raise Undefined("it is not finite")
        return value


def parse_real(text: str, *, names: Collection[str] | None = None) -> RealExpr:
    """Read an expression; with `names`, refuse any name that is not among them."""
    line = " ".join(text.split())
    if not line or len(line) > LONGEST_REAL:
        raise _refused(text, f"it must have 1 to {LONGEST_REAL} characters, it has {len(line)}")
    if foreign := _FOREIGN.search(line):
        raise _refused(text, f"the character {foreign[0]!a} is not allowed")
    try:
        tree = ast.parse(line, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refused(text, str(getattr(error, "msg", error))) from error
    return RealExpr(line, _read(tree, text, names, 1))


def real_code(expr: RealExpr, names: Mapping[str, str]) -> str:
    """As C and C++ over `double`; each name is written as `names` says."""
    return _code(expr.tree, lambda id: f"(double)({names[id]})", "sqrt")


def real_python(expr: RealExpr, name: Callable[[str], str]) -> str:
    """As Python that has imported math."""
    return _code(expr.tree, lambda id: f"float({name(id)})", "math.sqrt")


def _refused(text: str, reason: str, hint: str = _ALLOWED) -> ExprError:
    return ExprError(f'"{shorten(text)}" is not an expression of a float: {reason}', hint=hint)


def _read(tree: ast.expr, text: str, names: Collection[str] | None, depth: int) -> RealNode:
    if depth > DEEPEST_REAL:
        raise _refused(text, f"it is nested more than {DEEPEST_REAL} deep", "split it up")
    match tree:
        case ast.Constant(int(value) | float(value)) if not isinstance(value, bool) and value < 1e300:
            return RealNumber(float(value))
        case ast.Name(id):
            if names is not None and id not in names:
                listed = ", ".join(sorted(names)) or "none"
                message = f"unknown name '{id}' in \"{shorten(text)}\": known names are {listed}"
                raise ExprError(message, hint=suggestion(id, names) or _ALLOWED)
            return RealName(id)
        case ast.UnaryOp(ast.USub(), operand):
            return RealNegative(_read(operand, text, names, depth + 1))
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            sides = (_read(side, text, names, depth + 1) for side in (left, right))
            return RealOperation(_OPERATORS[type(op)], *sides)
        case ast.Call(ast.Name("sqrt"), [operand], []):
            return SquareRoot(_read(operand, text, names, depth + 1))
    part = shorten(ast.unparse(tree))
    raise _refused(text, f"'{part}' is not allowed")


def _names(node: RealNode) -> Iterator[str]:
    match node:
        case RealNumber():
            pass
        case RealName(id):
            yield id
        case RealNegative(operand) | SquareRoot(operand):
            yield from _names(operand)
        case RealOperation(_, left, right):
            yield from _names(left)
            yield from _names(right)
        case _:
            assert_never(node)


def _evaluate(node: RealNode, values: Mapping[str, int]) -> float:
    match node:
        case RealNumber(value):
            return value
        case RealName(id):
            if id not in values:
                raise Undefined(f"'{id}' has no value")
            return float(values[id])
        case RealNegative(operand):
            return -_evaluate(operand, values)
        case RealOperation(op, left, right):
            return _ACTIONS[op](_evaluate(left, values), _evaluate(right, values))
        case SquareRoot(operand):
            return math.sqrt(_evaluate(operand, values))
    assert_never(node)


def _code(node: RealNode, name: Callable[[str], str], root: str) -> str:
    match node:
        case RealNumber(value):
            return repr(value)
        case RealName(id):
            return name(id)
        case RealNegative(operand):
            return f"(-{_code(operand, name, root)})"
        case RealOperation(op, left, right):
            return f"({_code(left, name, root)} {op} {_code(right, name, root)})"
        case SquareRoot(operand):
            return f"{root}({_code(operand, name, root)})"
    assert_never(node)
