"""Between C expressions over a kernel's parameters and the project's expressions over sizes, both ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from math import gcd

from tunesmith.csource.fold import fold
from tunesmith.csource.nodes import Binary, Call, Cast, Expr, Name, Number, Ternary, Unary
from tunesmith.csource.substitution import substitute
from tunesmith.csource.types import is_integer
from tunesmith.expert.model.affine import number
from tunesmith.problem.problem import Problem
from tunesmith.space import expr as sizes_expr
from tunesmith.space import grammar as size
from tunesmith.space.expr import parse
from tunesmith.space.grammar import Node

_DEEPEST = 60
_ARITHMETIC: Mapping[str, size.ArithmeticOp] = {"+": "+", "-": "-", "*": "*", "/": "//", "%": "%"}
_COMPARE: Mapping[str, size.CompareOp] = {
    "==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip


# What a caller knows of a node and how deep it stands, asked before anything else; None: look into it.
NodeLookup = Callable[[Expr, int], size.Node | None]


class NoTranslation(Exception):
    """There is no such expression over sizes."""


def parameter_values(problem: Problem, parameters: tuple[str, ...]) -> dict[str, size.Node]:
    """Kernel parameters with an integer value over sizes, by the kernel's own names for them.

    Arguments stand in the kernel's order; its parameters may be called otherwise than the problem's.
    """
    found: dict[str, size.Node] = {}
    arguments = problem.arguments
    if problem.launches and len(problem.launches[0].args) == len(parameters):
        by_name = {argument.name: argument for argument in arguments}
        arguments = tuple(by_name[name] for name in problem.launches[0].args if name in by_name)
    for name, argument in zip(parameters, arguments, strict=False):
        value = argument.value
        if isinstance(value, sizes_expr.Expr):
            if not any("." in each for each in value.names):  # what a device decides is no size
                found[name] = value.tree
        elif isinstance(value, float) and value.is_integer() and argument.element.kind != "float":
            found[name] = size.Num(int(value))
    return found


def to_sizes(expr: Expr, values: Mapping[str, size.Node]) -> str | None:
    """`d / 8` -> "d // 8", with `values` from `parameter_values`; None where there is no such expression."""
    try:
        return sizes_expr.unparse(
            size_node(expr, lambda node, _: values.get(node.name) if isinstance(node, Name) else None)
        )
    except NoTranslation:
        return None


def size_node(expr: Expr, meaning: NodeLookup, depth: int = 0) -> size.Node:
    """Raises NoTranslation."""
    if depth > _DEEPEST:
        raise NoTranslation
    found = meaning(expr, depth)
    if found is not None:
        return found

    def inner(part: Expr) -> size.Node:
        return size_node(part, meaning, depth + 1)

    match expr:
        case Number(value=int(value)) if abs(value) <= sizes_expr.LIMIT:
            return size.Num(value)
        case Cast(type=type_, value=value) if is_integer(type_):
            return inner(value)
        case Unary(op="-", operand=operand):
            node = inner(operand)
            return size.Num(-node.value) if isinstance(node, size.Num) else size.Neg(node)
        case Unary(op="+", operand=operand):
            return inner(operand)
        case Unary(op="!", operand=operand):
            return size.Not(inner(operand))
        case Binary(op="/", left=left, right=right):
            return _divided(inner(left), inner(right))
        case Binary(op=op, left=left, right=right):
            return _binary(op, inner(left), inner(right))
        case Ternary(condition=condition, yes=yes, no=no):
            asked = inner(condition)
            decided = _constant(asked)
            if decided is not None:  # of the other branch nothing need be known
                return inner(yes if decided else no)
            return size.Conditional(asked, inner(yes), inner(no))
        case Call(function="min" | "max" as function, args=(left, right)):
            return size.FunctionCall("min" if function == "min" else "max", (inner(left), inner(right)))
    raise NoTranslation


def _binary(op: str, left: size.Node, right: size.Node) -> size.Node:
    if op in _ARITHMETIC:
        return _folded(size.Arithmetic(_ARITHMETIC[op], left, right))
    if op in _COMPARE:
        return size.Compare(left, ((_COMPARE[op], right),))
    if op in ("&&", "||"):
        return size.Logic("and" if op == "&&" else "or", (left, right))
    if op in ("<<", ">>") and isinstance(right, size.Num) and 0 <= right.value <= 30:
        return _folded(size.Arithmetic("*" if op == "<<" else "//", left, size.Num(1 << right.value)))
    if op == "&" and isinstance(right, size.Num) and right.value >= 0 and not right.value & (right.value + 1):
        return size.Arithmetic("%", left, size.Num(right.value + 1))
    raise NoTranslation


def _constant(node: size.Node) -> int | None:
    whole = sizes_expr.Expr("", node)
    try:
        return None if whole.names else whole.evaluate({})
    except sizes_expr.Undefined:
        return None


def _folded(node: size.Arithmetic) -> size.Node:
    if isinstance(node.left, size.Num) and isinstance(node.right, size.Num):
        try:
            return size.Num(sizes_expr.Expr("", node).evaluate({}))
        except sizes_expr.Undefined:
            raise NoTranslation from None
    return node


def _divided(left: size.Node, right: size.Node) -> size.Node:
    """`(n + 255) / 256` and `(n + b - 1) / b` say ceildiv; any other division rounds down."""
    parts = _summands(left, 1)
    constant = sum(sign * node.value for sign, node in parts if isinstance(node, size.Num))
    others = [(sign, node) for sign, node in parts if not isinstance(node, size.Num)]
    if isinstance(right, size.Num):
        rounds_up = right.value > 1 and constant == right.value - 1
    else:
        rounds_up = constant == -1 and (1, right) in others
        if rounds_up:
            others.remove((1, right))
    if not rounds_up or not others or others[0][0] < 0:
        return _folded(size.Arithmetic("//", left, right))
    total = others[0][1]
    for sign, node in others[1:]:
        total = size.Arithmetic("+" if sign > 0 else "-", total, node)
    return size.FunctionCall("ceildiv", (total, right))


def _summands(node: size.Node, sign: int) -> list[tuple[int, size.Node]]:
    if isinstance(node, size.Arithmetic) and node.op in ("+", "-"):
        right = sign if node.op == "+" else -sign
        return _summands(node.left, sign) + _summands(node.right, right)
    return [(sign, node)]


def divisor(node: size.Node, steps: Mapping[str, int]) -> int:
    """A number that divides every value of it; 0 where the value is 0. `steps`: what divides each size."""
    match node:
        case size.Num(value):
            return abs(value)
        case size.Variable(id):
            return steps.get(id, 1)
        case size.Neg(operand):
            return divisor(operand, steps)
        case size.Arithmetic("*", left, right):
            return divisor(left, steps) * divisor(right, steps)
        case size.Arithmetic("+" | "-", left, right):
            return gcd(divisor(left, steps), divisor(right, steps))
        case size.Arithmetic("//", left, size.Num(value)) if value > 0 and divisor(left, steps) % value == 0:
            return divisor(left, steps) // value
        case size.FunctionCall("min" | "max", args):
            return gcd(*(divisor(arg, steps) for arg in args))
        case _:
            return 1


def bounds(node: size.Node, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    """The least and the largest value that it may have; `ranges`: those of the sizes. None: not known."""
    match node:
        case size.Num(value):
            return value, value
        case size.Variable(id):
            return ranges.get(id)
        case size.Neg(operand):
            inner = bounds(operand, ranges)
            return None if inner is None else (-inner[1], -inner[0])
        case size.Arithmetic(op, left, right):
            a, b = bounds(left, ranges), bounds(right, ranges)
            return None if a is None or b is None else _bounds_of(op, a, b)
        case size.FunctionCall("min" | "max" as function, args):
            found = [bounds(arg, ranges) for arg in args]
            known = [f for f in found if f is not None]
            if len(known) < len(found):
                return None
            pick = min if function == "min" else max
            return pick(k[0] for k in known), pick(k[1] for k in known)
        case size.FunctionCall("ceildiv", (left, right)):
            a, b = bounds(left, ranges), bounds(right, ranges)
            return None if a is None or b is None or b[0] < 1 else (a[0] // b[1], -(-a[1] // b[0]))
        case _:
            return None


def _bounds_of(op: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int] | None:
    if op == "+":
        return a[0] + b[0], a[1] + b[1]
    if op == "-":
        return a[0] - b[1], a[1] - b[0]
    if op == "*":
        corners = [x * y for x in a for y in b]
        return min(corners), max(corners)
    if b[0] < 1 or a[0] < 0:
        return None
    return (a[0] // b[1], a[1] // b[0]) if op == "//" else (0, min(a[1], b[1] - 1))


# -- back: what a launch says, in terms of the kernel's parameters ------------------------------------


def from_sizes(node: size.Node, values: Mapping[str, size.Node]) -> Expr | None:
    """A size expression over the kernel's own parameters, or None where they do not tell it."""
    plain: dict[size.Node, str] = {}
    for name, value in values.items():
        if not isinstance(value, size.Num):
            plain.setdefault(value, name)
    try:
        return _from_node(node, plain, 0)
    except NoTranslation:
        return None


def _from_node(node: size.Node, names: Mapping[size.Node, str], depth: int) -> Expr:
    if node in names:
        return Name(names[node])
    if depth > _DEEPEST:
        raise NoTranslation

    def inner(part: size.Node) -> Expr:
        return _from_node(part, names, depth + 1)

    match node:
        case size.Num(value):
            return number(value)
        case size.Neg(operand):
            return Unary("-", inner(operand))
        case size.Not(operand):
            return Unary("!", inner(operand))
        case size.Arithmetic(op, left, right):
            return Binary("/" if op == "//" else op, inner(left), inner(right))
        case size.Compare(left, ((op, right),)):
            return Binary(op, inner(left), inner(right))
        case size.Logic(op, operands):
            sign = "&&" if op == "and" else "||"
            return reduce(lambda joined, part: Binary(sign, joined, part), map(inner, operands))
        case size.Conditional(test, then, other):
            return Ternary(inner(test), inner(then), inner(other))
        case size.FunctionCall("min" | "max" as function, args):
            sign = "<" if function == "min" else ">"
            return reduce(lambda best, part: Ternary(Binary(sign, best, part), best, part), map(inner, args))
        case size.FunctionCall("ceildiv", (left, right)):
            a, b = inner(left), inner(right)
            if isinstance(b, Number) and isinstance(b.value, int):
                return Binary("/", Binary("+", a, number(b.value - 1)), b)
            return Binary("/", Binary("-", Binary("+", a, b), number(1)), b)
        case size.FunctionCall("round_up", (left, right)):
            b = inner(right)
            return Binary("*", inner(size.FunctionCall("ceildiv", (left, right))), b)
    raise NoTranslation


# -- what a launch says of a kernel, over the kernel's own parameters: blocks of a grid, threads of a block


@dataclass(frozen=True)
class LaunchTerms:
    """`parameters`: integer parameters over sizes; `values`: gridDim and blockDim over parameters."""

    parameters: Mapping[str, Node]
    values: Mapping[str, Expr]

    @property
    def single(self) -> dict[str, Expr]:
        """Numbers of blocks and threads along axes that have one of them."""
        found: dict[str, Expr] = {}
        for index, count in (("blockIdx", "gridDim"), ("threadIdx", "blockDim")):
            for letter in "xyz":
                if self.values.get(f"{count}.{letter}") == number(1):
                    found |= {f"{index}.{letter}": number(0), f"{count}.{letter}": number(1)}
        return found

    def replaced(self, expr: Expr) -> Expr:
        """gridDim and blockDim written as what the launch gives them, where parameters can say it."""
        return fold(substitute(expr, self.values))

    def size_text(self, expr: Expr) -> str:
        """The same over the problem's sizes, "" where there is no such expression."""
        return to_sizes(expr, self.parameters) or ""

    def bounds_of(self, expr: Expr, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
        """The least and the largest value that it may have; None where that is not known."""
        text = self.size_text(expr)
        return bounds(parse(text).tree, ranges) if text else None


def launch_terms(problem: Problem, parameters: tuple[str, ...]) -> LaunchTerms:
    known = parameter_values(problem, parameters)
    values: dict[str, Expr] = {}
    sizes: dict[str, Node] = dict(known)
    if problem.launches:
        launch = problem.launches[0]
        for name, exprs in (("gridDim", launch.grid), ("blockDim", launch.block)):
            for axis, letter in enumerate("xyz"):
                key = f"{name}.{letter}"
                if axis >= len(exprs):
                    values[key] = number(1)
                    continue
                sizes[key] = exprs[axis].tree
                found = from_sizes(exprs[axis].tree, known)
                if found is not None:
                    values[key] = found
    return LaunchTerms(sizes, values)


def product(left: Expr, right: Expr) -> Expr:
    if left == number(1):
        return right
    return left if right == number(1) else Binary("*", left, right)


def axis_name(builtin: str) -> str:
    """A name for a built-in index that has none in the source: blockIdx.y -> block_y."""
    word = {"blockIdx": "block", "threadIdx": "thread"}[builtin.partition(".")[0]]
    return word + ("" if builtin.endswith(".x") else f"_{builtin[-1]}")


def launch_name(kind: str, axis: int) -> Expr:
    return Name(f"{kind}.{'xyz'[axis]}")


def block_threads() -> Expr:
    x, y, z = (launch_name("blockDim", axis) for axis in range(3))
    return product(product(x, y), z)
