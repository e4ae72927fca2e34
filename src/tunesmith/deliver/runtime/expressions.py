"""The expressions of a dispatch: integers in, one integer out. Nothing of a text is ever evaluated as Python.

Python's parser splits the text; each node that the language knows becomes a function, any other is refused.
`//` and `%` round down; comparisons, `and`, `or` and `not` give 0 or 1, and what is not needed is not looked
at. A division by zero or a number beyond 2**62 is no value.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

LIMIT = 2**62
MAX_LENGTH = 80_000
MAX_DEPTH = 100
MAX_REAL = 500
_UNREAL = re.compile(r"[^A-Za-z0-9_+\-*/(). \t\r\n]")
_REAL: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FOREIGN = re.compile(r"[^A-Za-z0-9_+\-*/%<>=!()\[\],. \t\r\n]")
_DEEP = re.compile(rf"([-(\[]\s*){{{MAX_DEPTH + 1}}}")
_NUMBER = re.compile(r"(?<![\w.])\d[\w.]*|\.\d\w*")
_INTEGER = re.compile(r"\d{1,30}(_\d+)*|0[xX][0-9a-fA-F]{1,30}")

Values = Mapping[str, Any]
Evaluate = Callable[[Values], Any]


class NotAnExpression(ValueError):
    """A text that is not in the language, or that names what is not there."""


class NoValue(ArithmeticError):
    """An expression has no value for these sizes."""


class Expression:
    """`symbolic` evaluates without a look at how large numbers are: for the symbols of a tracing compiler."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        known = frozenset(names)
        tree = _parsed(text)
        self.text = text.strip()
        self.names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)) & known
        self.evaluate: Evaluate = _TreeReader(text, known, _bounded).read(tree, 1)
        self.symbolic: Evaluate = _TreeReader(text, known, _any).read(tree, 1)
        self.tree = tree

    def holds(self, values: Values) -> bool:
        try:
            return bool(self.evaluate(values) != 0)
        except NoValue:
            return False


class RealExpression:
    """The value of a float: numbers and sizes, + - * / and sqrt, in double precision."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        known = frozenset(names)
        if not text.strip() or len(text) > MAX_REAL or _UNREAL.search(text):
            raise NotAnExpression(f"{_short(text)!r} is not an expression of a float")
        try:
            tree = ast.parse(re.sub(r"\s", " ", text).strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise NotAnExpression(f"{_short(text)!r} is not an expression of a float: {error}") from error
        self.text = text.strip()
        self.names = frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)) & known
        self._evaluate = _read_real(tree, text, known, 1)

    def evaluate(self, values: Values) -> float:
        try:
            value = float(self._evaluate(values))
        except (ArithmeticError, ValueError, KeyError) as error:
            raise NoValue(str(error)) from None
        if not math.isfinite(value):
            raise NoValue("it is not finite")
        return value


def _read_real(tree: ast.expr, text: str, known: frozenset[str], depth: int) -> Evaluate:
    refused = NotAnExpression(f"{_short(text)!r} is not an expression of a float: {type(tree).__name__}")
    if depth > MAX_DEPTH:
        raise refused
    if isinstance(tree, ast.Constant) and type(tree.value) in (int, float):
        number = float(tree.value)  # type: ignore[arg-type]
        return lambda values: number
    if isinstance(tree, ast.Name) and tree.id in known:
        name = tree.id
        return lambda values: float(values[name])
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        operand = _read_real(tree.operand, text, known, depth + 1)
        return lambda values: -operand(values)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _REAL:
        act = _REAL[type(tree.op)]
        left, right = (_read_real(side, text, known, depth + 1) for side in (tree.left, tree.right))
        return lambda values: act(left(values), right(values))
    is_root = isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "sqrt"
    if is_root and len(tree.args) == 1 and not tree.keywords:  # type: ignore[attr-defined]
        root = _read_real(tree.args[0], text, known, depth + 1)  # type: ignore[attr-defined]
        return lambda values: math.sqrt(root(values))
    raise refused


def _parsed(text: object) -> ast.expr:
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_LENGTH:
        raise NotAnExpression(
            f"an expression is a text of 1 to {MAX_LENGTH} characters, got {str(text)[:40]!r}"
        )
    if _FOREIGN.search(text) or _DEEP.search(text):
        raise NotAnExpression(f"{_short(text)!r} is not an expression: it has what the language has not")
    if any(len(n) > 40 or not _INTEGER.fullmatch(n) for n in _NUMBER.findall(text)):
        raise NotAnExpression(f"{_short(text)!r} is not an expression: its numbers are integers up to 2**62")
    line = re.sub(r"\s", " ", text).strip()
    try:
        return ast.parse(line, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotAnExpression(f"{_short(text)!r} is not an expression: {error}") from error


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _bounded(value: int) -> int:
    if -LIMIT <= value <= LIMIT:
        return value
    raise NoValue("a value is larger than 2**62")


def _any(value: Any) -> Any:
    return value


def _nonzero(value: Any) -> Any:
    if value == 0:
        raise NoValue("division by zero")
    return value


def _ceildiv(a: Any, b: Any) -> Any:
    return -(-a // _nonzero(b))


def _next_pow2(a: int) -> int:
    if a <= 0:
        raise NoValue(f"next_pow2 needs a positive number, got {a}")
    return 1 << (int(a) - 1).bit_length()


_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: a // _nonzero(b),
    ast.Mod: lambda a, b: a % _nonzero(b),
}
_RELATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, tuple[Callable[..., Any], int | None]] = {  # and how many arguments; None: two or more
    "min": (min, None),
    "max": (max, None),
    "ceildiv": (_ceildiv, 2),
    "round_up": (lambda a, b: _ceildiv(a, b) * b, 2),
    "next_pow2": (_next_pow2, 1),
    "is_pow2": (lambda a: int(a > 0 and int(a) & (int(a) - 1) == 0), 1),
}


class _TreeReader:
    def __init__(self, text: str, names: frozenset[str], bound: Callable[[Any], Any]) -> None:
        self.text, self.names, self.bound = text, names, bound

    def refused(self, reason: str) -> NotAnExpression:
        return NotAnExpression(f"{_short(self.text)!r} is not an expression: {reason}")

    def read(self, node: ast.expr, depth: int) -> Evaluate:
        if depth > MAX_DEPTH:
            raise self.refused(f"it is nested more than {MAX_DEPTH} deep")
        kind = getattr(self, f"_{type(node).__name__.lower()}", None)
        if kind is None:
            raise self.refused(f"{type(node).__name__} is not allowed")
        made: Evaluate = kind(node, depth + 1)
        return made

    def _integer(self, node: ast.expr) -> int:
        sign = 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            sign, node = -1, node.operand
        if not isinstance(node, ast.Constant) or type(node.value) is not int or node.value > LIMIT:
            raise self.refused("its numbers are integers up to 2**62")
        return sign * node.value

    def _constant(self, node: ast.Constant, depth: int) -> Evaluate:
        value = self._integer(node)
        return lambda values: value

    def _name(self, node: ast.Name, depth: int) -> Evaluate:
        name, bound = node.id, self.bound
        if name not in self.names:
            listed = ", ".join(sorted(self.names)) or "none"
            raise self.refused(f"it names {name!r}; known are {listed}")

        def value(values: Values) -> Any:
            try:
                return bound(values[name])
            except KeyError:
                raise NoValue(f"{name!r} has no value") from None

        return value

    def _unaryop(self, node: ast.UnaryOp, depth: int) -> Evaluate:
        if isinstance(node.op, ast.USub):
            if isinstance(node.operand, ast.Constant):
                number = self._integer(node)
                return lambda values: number
            operand = self.read(node.operand, depth)
            return lambda values: -operand(values)
        if isinstance(node.op, ast.Not):
            operand = self.read(node.operand, depth)
            return lambda values: 0 if operand(values) else 1
        raise self.refused(f"{type(node.op).__name__} is not allowed")

    def _binop(self, node: ast.BinOp, depth: int) -> Evaluate:
        if type(node.op) not in _ARITHMETIC:
            raise self.refused(f"{type(node.op).__name__} is not allowed")
        act, bound = _ARITHMETIC[type(node.op)], self.bound
        left, right = self.read(node.left, depth), self.read(node.right, depth)
        return lambda values: bound(act(left(values), right(values)))

    def _boolop(self, node: ast.BoolOp, depth: int) -> Evaluate:
        parts = [self.read(operand, depth) for operand in node.values]
        join = all if isinstance(node.op, ast.And) else any
        return lambda values: int(join(part(values) for part in parts))

    def _ifexp(self, node: ast.IfExp, depth: int) -> Evaluate:
        test, then, other = (self.read(part, depth) for part in (node.test, node.body, node.orelse))
        return lambda values: then(values) if test(values) else other(values)

    def _compare(self, node: ast.Compare, depth: int) -> Evaluate:
        if isinstance(node.ops[0], (ast.In, ast.NotIn)) and len(node.ops) == 1:
            return self._one_of(node, depth)
        if any(type(op) not in _RELATIONS for op in node.ops):
            raise self.refused("it compares with == != < <= > >=, or with 'in' alone")
        left = self.read(node.left, depth)
        links = [
            (_RELATIONS[type(op)], self.read(right, depth)) for op, right in zip(node.ops, node.comparators)
        ]

        def compared(values: Values) -> int:
            value = left(values)
            for relation, right in links:
                previous, value = value, right(values)
                if not relation(previous, value):
                    return 0
            return 1

        return compared

    def _one_of(self, node: ast.Compare, depth: int) -> Evaluate:
        listed = node.comparators[0]
        if not isinstance(listed, (ast.Tuple, ast.List)) or not listed.elts:
            raise self.refused("'in' needs a list of integers on its right")
        item, negated = self.read(node.left, depth), isinstance(node.ops[0], ast.NotIn)
        options = frozenset(self._integer(element) for element in listed.elts)
        return lambda values: int((item(values) in options) != negated)

    def _call(self, node: ast.Call, depth: int) -> Evaluate:
        if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS or node.keywords:
            raise self.refused(f"its functions are {', '.join(_FUNCTIONS)}")
        act, arity = _FUNCTIONS[node.func.id]
        if len(node.args) != arity if arity else len(node.args) < 2:
            raise self.refused(f"{node.func.id} takes {arity or 'two or more'} arguments")
        args, bound = [self.read(arg, depth) for arg in node.args], self.bound
        return lambda values: bound(act(*(arg(values) for arg in args)))


# -- the other way round ------------------------------------------------------------------------------------


def solved(expression: Expression, known: Mapping[str, Any], result: Any) -> tuple[str, Any] | None:
    """The one name in the expression that is not known, and the value that gives this result; None where
    there is not exactly one such name and value, e.g. because the expression divides. What is found is to
    be checked by evaluating the expression."""
    unknown = expression.names - known.keys()
    if len(unknown) != 1:
        return None
    (name,) = unknown
    found = _undone(expression.tree, name, known, result)
    return None if found is None else (name, found)


def _undone(node: ast.expr, name: str, known: Mapping[str, Any], result: Any) -> Any:
    if isinstance(node, ast.Name):
        return result if node.id == name else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _undone(node.operand, name, known, -result)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _value(node.left, name, known), _value(node.right, name, known)
    inner, other = (node.left, right) if left is None else (node.right, left)
    if (left is None) == (right is None):
        return None
    if isinstance(node.op, ast.Add):
        return _undone(inner, name, known, result - other)
    if isinstance(node.op, ast.Sub):
        return _undone(inner, name, known, result + other if inner is node.left else other - result)
    if isinstance(node.op, ast.Mult) and other != 0:
        return _undone(inner, name, known, result // other)
    return None


def _value(node: ast.expr, name: str, known: Mapping[str, Any]) -> Any:
    """The value of a part without the name; None where it has the name, or no value."""
    if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node)):
        return None
    try:
        return _TreeReader("", frozenset(known), _any).read(node, 1)(known)
    except (NotAnExpression, NoValue):
        return None
