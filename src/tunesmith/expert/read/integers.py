"""Integers in kernels: types of values, index arithmetic, the heads of loops.

Conversions to integers of 32 bits and more are looked through: an index is taken to stay within the type that
the source chose for it. Narrower ones cut off what they do not hold, so they are left alone. Division and
remainder round as for non-negative numbers, which indices are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from math import gcd

from tunesmith.problem.problem import Problem
from tunesmith.source import tree as c
from tunesmith.source.fold import convert_to_type, fold_expr, int_value
from tunesmith.source.printing import print_expr
from tunesmith.source.substitution import substitute
from tunesmith.source.tree import Binary, Call, Cast, Expr, Name, Number, Ternary, Unary
from tunesmith.source.types import INTEGERS, is_integer, is_of_type
from tunesmith.source.walk import assigned_in, map_expr, names_in
from tunesmith.space import expr as size
from tunesmith.space.expr import Node, parse_expr

BUILTINS = tuple(f"{name}.{axis}" for name in c.INDICES for axis in "xyz")


def as_integer(type_: c.Type, expr: c.Expr, types: Mapping[str, c.Type]) -> c.Expr:
    """An integer as a variable of the type holds it."""
    if isinstance(expr, c.Number) and type_ == c.Type("int", const=type_.const) and 0 <= expr.value < 2**31:
        return expr
    return expr if is_of_type(expr, type_, types) else c.Cast(c.Type(type_.base), expr)


def is_narrow(type_: c.Type) -> bool:
    """Whether arithmetic on it is done in a wider type."""
    return not type_.is_pointer and INTEGERS.get(type_.base, (8, True))[0] < 4


def wrap_value(type_: c.Type, value: int) -> int:
    """The number as a variable of the type holds it, if that is narrower than the arithmetic's."""
    held = convert_to_type(value, type_.base) if is_narrow(type_) else None
    return value if held is None else held


# A product of factors, in the order of their text -> how often it is added.
Terms = dict[tuple[c.Expr, ...], int]

_MAX_TERMS = 64


def number_node(value: int) -> c.Number:
    return c.Number(str(value), value)


def make_sum(left: c.Expr, right: c.Expr) -> c.Expr:
    if left == number_node(0):
        return right
    return left if right == number_node(0) else c.Binary("+", left, right)


def without_casts(expr: c.Expr) -> c.Expr:
    """The expression with conversions to integers of 32 bits and more taken away."""
    return map_expr(expr, lambda n: n.value if isinstance(n, c.Cast) and _is_wide(n.type) else n)


def _is_wide(type_: c.Type) -> bool:
    return is_integer(type_) and INTEGERS[type_.base][0] >= 4


def expand_terms(expr: c.Expr) -> Terms:
    """The expression as a sum of products; what is neither sum nor product is a factor of its own."""
    return {key: count for key, count in _collect_terms(without_casts(expr), 0).items() if count}


def _collect_terms(expr: c.Expr, depth: int) -> Terms:
    if depth > 100:
        return {(expr,): 1}
    match expr:
        case c.Number(value=int(value)):
            return {(): value}
        case c.Unary(op="-", operand=operand):
            return {key: -count for key, count in _collect_terms(operand, depth + 1).items()}
        case c.Unary(op="+", operand=operand):
            return _collect_terms(operand, depth + 1)
        case c.Binary(op="+" | "-" as op, left=left, right=right):
            sign = 1 if op == "+" else -1
            found = dict(_collect_terms(left, depth + 1))
            for key, count in _collect_terms(right, depth + 1).items():
                found[key] = found.get(key, 0) + sign * count
            return _rejoin_quotients(found)
        case c.Binary(op="*", left=left, right=right):
            a, b = _collect_terms(left, depth + 1), _collect_terms(right, depth + 1)
            if len(a) * len(b) > _MAX_TERMS:
                return {(expr,): 1}
            found = {}
            for key, count in a.items():
                for other, times in b.items():
                    product = tuple(sorted((*key, *other), key=print_expr))
                    found[product] = found.get(product, 0) + count * times
            return found
        case c.Binary(op="<<", left=left, right=c.Number(value=int(shift))) if 0 <= shift < 32:
            return {key: count << shift for key, count in _collect_terms(left, depth + 1).items()}
    divided = as_division(expr)
    match divided:
        case c.Binary(op="/", left=left, right=c.Number(value=int(by))) if by > 0:
            inner = _collect_terms(left, depth + 1)
            if all(count % by == 0 for count in inner.values()):
                return {key: count // by for key, count in inner.items()}
    return {(divided,): 1}


def _rejoin_quotients(found: Terms) -> Terms:
    """`(q / h) * h + q % h` is q: how flat indices are taken apart and put together again."""
    for key, count in list(found.items()):
        for at, factor in enumerate(key):
            if count and isinstance(factor, c.Binary) and factor.op == "/":
                whole = tuple(key[:at] + key[at + 1 :])
                divisor = expand_terms(factor.right)
                if len(divisor) != 1:
                    continue
                (parts, scale), rest = next(iter(divisor.items())), list(whole)
                if not all(part in rest for part in parts) or count % scale:
                    continue
                for part in parts:
                    rest.remove(part)
                remainder = tuple(sorted((*rest, c.Binary("%", factor.left, factor.right)), key=print_expr))
                if found.get(remainder, 0) != count // scale:
                    continue
                again = dict(found)
                del again[key], again[remainder]
                for factors, times in _collect_terms(factor.left, 0).items():
                    product = tuple(sorted((*rest, *factors), key=print_expr))
                    again[product] = again.get(product, 0) + times * (count // scale)
                return _rejoin_quotients({key: count for key, count in again.items() if count})
    return found


def as_division(expr: c.Expr) -> c.Expr:
    """Shifts and masks by powers of two as the division or remainder they are."""
    match expr:
        case c.Binary(op=">>", left=left, right=c.Number(value=int(shift))) if 0 <= shift < 31:
            return c.Binary("/", left, number_node(1 << shift))
        case (
            c.Binary(op="&", left=whole, right=c.Number(value=int(mask)))
            | c.Binary(op="&", left=c.Number(value=int(mask)), right=whole)
        ) if mask >= 0 and not mask & (mask + 1):
            return c.Binary("%", whole, number_node(mask + 1))
    return expr


def from_terms(found: Terms) -> c.Expr:
    """A sum of products as an expression, in the order the terms were found."""
    total: c.Expr | None = None
    for key, count in ((key, count) for key, count in found.items() if count):
        product = _product_of_factors(key, abs(count))
        if total is None:
            total = product if count > 0 else c.Unary("-", product)
        else:
            total = c.Binary("+" if count > 0 else "-", total, product)
    return number_node(0) if total is None else total


def split_operands(expr: c.Expr, op: str = "&&") -> list[c.Expr]:
    """`a && b && c` -> a, b, c"""
    if isinstance(expr, c.Binary) and expr.op == op:
        return [*split_operands(expr.left, op), *split_operands(expr.right, op)]
    return [expr]


def _product_of_factors(factors: Iterable[c.Expr], count: int) -> c.Expr:
    result: c.Expr | None = None if count == 1 else number_node(count)
    for factor in factors:
        result = factor if result is None else c.Binary("*", result, factor)
    return number_node(1) if result is None else result


def simplify_expr(expr: c.Expr) -> c.Expr:
    return from_terms(expand_terms(expr))


def simplify_exact(expr: c.Expr, multiples: Mapping[str, int]) -> c.Expr:
    """Simplified: `(i / p) * d + i % p * 8` is `8 * i` with p as `d / 8`, 8 among d's `multiples`."""
    wholes: dict[str, c.Expr] = {}

    def divided(node: c.Expr) -> c.Expr:
        match node:
            case c.Binary(op="/", left=c.Name(name=name), right=c.Number(value=int(by))) if by > 0:
                if multiples.get(name, 1) % by == 0:
                    wholes[name] = c.Binary("*", number_node(by), c.Name(f"{name} / {by}"))
                    return c.Name(f"{name} / {by}")
        return node

    return simplify_expr(substitute(map_expr(without_casts(expr), divided), wholes))


def same_value(left: c.Expr, right: c.Expr) -> bool:
    """Whether two integer expressions are the same sum of products."""
    return left == right or expand_terms(c.Binary("-", left, right)) == {}


def split_affine(expr: c.Expr, index: str) -> tuple[c.Expr, c.Expr] | None:
    """coefficient and rest with expr = coefficient * index + rest, both free of the index; else None."""
    coefficient: Terms = {}
    rest: Terms = {}
    for key, count in expand_terms(expr).items():
        inside = [factor for factor in key if index in names_in(factor)]
        if not inside:
            rest[key] = count
        elif inside == [c.Name(index)]:
            others = list(key)
            others.remove(c.Name(index))
            coefficient[tuple(others)] = count
        else:
            return None
    return from_terms(coefficient), from_terms(rest)


def coefficient_of(expr: c.Expr, index: str) -> int | None:
    """The coefficient where it is a plain number; 0 where the index does not occur."""
    found = split_affine(expr, index)
    return None if found is None else int_value(found[0])


@dataclass(frozen=True)
class Stride:
    """How far an index moves from one turn of a loop to the next.

    With `within` it holds inside stretches only: as long as every one of these expressions is a multiple of
    the stretch, and stretches start at multiples of it. That is how `i / d * 2 * d + i % d` moves by 1."""

    step: int
    within: tuple[c.Expr, ...] = ()


def index_stride(expr: c.Expr, index: str) -> Stride | None:
    """None where the index moves by no constant, not even in stretches."""
    step = 0
    within: list[c.Expr] = []
    for key, count in expand_terms(expr).items():
        inside = [factor for factor in key if index in names_in(factor)]
        if not inside:
            continue
        if len(inside) > 1:
            return None
        factor = _factor_stride(inside[0], index, 0)
        if factor is None:
            return None
        within += factor.within
        if factor.step == 0:
            continue
        if len(key) > 1:
            return None
        step += count * factor.step
    return Stride(step, tuple(dict.fromkeys(within)))


def _in_one_division(factor: c.Expr) -> c.Expr:
    """`i / c / d` is `i / (c * d)`."""
    factor = as_division(factor)
    while isinstance(factor, c.Binary) and factor.op == "/":
        inner = as_division(factor.left)
        if not isinstance(inner, c.Binary) or inner.op != "/":
            break
        factor = c.Binary("/", inner.left, fold_expr(c.Binary("*", inner.right, factor.right)))
    return factor


def _factor_stride(factor: c.Expr, index: str, depth: int) -> Stride | None:
    factor = _in_one_division(factor)
    if factor == c.Name(index):
        return Stride(1)
    if depth > 20 or not isinstance(factor, c.Binary) or factor.op not in ("/", "%"):
        return None
    if index in names_in(factor.right):
        return None
    inner = index_stride(factor.left, index)
    if inner is None or inner.step not in (0, 1):
        return None
    if inner.step == 0:
        return inner
    within = (*inner.within, factor.right, *_invariant_addends(factor.left, index, depth))
    return Stride(0 if factor.op == "/" else 1, within)


def _invariant_addends(expr: c.Expr, index: str, depth: int) -> Iterator[c.Expr]:
    """What is added to that which moves with the index, or a factor of it: the same within a stretch."""
    still: Terms = {}
    for key, count in expand_terms(expr).items():
        inside = [factor for factor in key if index in names_in(factor)]
        if not inside:
            still[key] = count
        elif (moved := _factor_stride(inside[0], index, depth + 1)) is not None and moved.step == 0:
            yield from_terms({tuple(factor for factor in key if factor not in inside): count})
    if still:
        yield from_terms(still)


def conditions_for_multiple(expr: c.Expr, fixed: Collection[str]) -> tuple[c.Expr, ...] | None:
    """Expressions over `fixed` names alone that make `expr` a multiple of n when each of them is.

    `token * d + d` -> (d,) where d is fixed; numbers are given back as numbers. None: it cannot be said,
    because a term has no fixed factor: it may be anything."""
    found: dict[c.Expr, None] = {}
    for key, count in expand_terms(expr).items():
        factors = [factor for factor in key if names_in(factor) and names_in(factor) <= set(fixed)]
        if not factors and abs(count) == 1 and key:
            return None
        found[_product_of_factors(factors, abs(count))] = None
    return tuple(found)


MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}


@dataclass(frozen=True)
class Head:
    """for (index = start; index < stop; index += step)"""

    index: str
    type: str
    start: c.Expr
    stop: c.Expr
    step: c.Expr


def head_of(loop: c.For) -> Head | None:
    """None for loops that count otherwise: downwards, by halves, by several indices, or by a body that
    changes the index or where it ends."""
    if len(loop.init) != 1 or len(loop.step) != 1 or loop.condition is None:
        return None
    declare = loop.init[0]
    if not isinstance(declare, c.Declare) or declare.init is None or not is_integer(declare.type):
        return None
    index = c.Name(declare.name)
    bounds = bounds_in(loop.condition, lambda expr: without_casts(expr) == index)
    update = additive_update(loop.step[0])
    if bounds is None or len(bounds) != 1 or update is None or update[0] != declare.name:
        return None
    stop, step = bounds[0][1], update[1]
    if declare.name in names_in(step) | names_in(stop):
        return None
    if {declare.name, *names_in(step), *names_in(stop)} & assigned_in(loop.body):
        return None
    return Head(declare.name, declare.type.base, declare.init, stop, step)


def bounds_in(
    condition: c.Expr, is_index: Callable[[c.Expr], bool], holds: bool = True
) -> list[tuple[c.Expr, c.Expr]] | None:
    """(index, stop) of each `index < stop` that a condition comes to where it holds, or does not; None where
    it tests anything else."""
    match condition:
        case c.Unary(op="!", operand=operand):
            return bounds_in(operand, is_index, not holds)
        case c.Binary(op="&&" | "||" as op, left=left, right=right) if (op == "&&") == holds:
            first, second = bounds_in(left, is_index, holds), bounds_in(right, is_index, holds)
            return None if first is None or second is None else first + second
        case c.Binary(op=op, left=left, right=right) if op in MIRROR:
            op = op if holds else OPPOSITE[op]
            if is_index(right) and not is_index(left):
                op, left, right = MIRROR[op], right, left
            if is_index(left) and op in ("<", "<="):
                return [(left, right if op == "<" else one_more(right))]
    return None


def one_more(expr: c.Expr) -> c.Expr:
    match expr:
        case c.Number(value=int(value)) if value < 2**31 - 1:
            return number_node(value + 1)
    return c.Binary("+", expr, number_node(1))


def additive_update(expr: c.Expr) -> tuple[str, c.Expr] | None:
    """The variable and what is added to it, in `i++`, `i += by` and `i = i + by`."""
    match expr:
        case c.Unary(op="++", operand=c.Name(name=name)):
            return name, number_node(1)
        case c.Assign(op="+=", target=c.Name(name=name), value=by):
            return name, by
        case c.Assign(op="=", target=c.Name(name=name), value=c.Binary(op="+", left=left, right=right)):
            if c.Name(name) in (left, right):
                return name, right if left == c.Name(name) else left
    return None


def trip_count(head: Head) -> int | None:
    """How often the loop turns where that is a constant of the source."""
    match head.start, head.stop, head.step:
        case c.Number(value=int(start)), c.Number(value=int(stop)), c.Number(value=int(step)) if step > 0:
            return max(0, -(-(stop - start) // step))
    return None


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

    Arguments stand in the kernel's order; its parameters may be called otherwise than the problem's."""
    found: dict[str, size.Node] = {}
    arguments = problem.arguments
    if problem.launches and len(problem.launches[0].args) == len(parameters):
        by_name = {argument.name: argument for argument in arguments}
        arguments = tuple(by_name[name] for name in problem.launches[0].args if name in by_name)
    for name, argument in zip(parameters, arguments, strict=False):
        value = argument.value
        if isinstance(value, size.Expr):
            if not any("." in each for each in value.names):  # what a device decides is no size
                found[name] = value.tree
        elif isinstance(value, float) and value.is_integer() and argument.element.kind != "float":
            found[name] = size.Num(int(value))
    return found


def to_sizes(expr: Expr, values: Mapping[str, size.Node]) -> str | None:
    """`d / 8` -> "d // 8", with `values` from `parameter_values`; None where there is no such expression."""
    try:
        return size.unparse(
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
        case Number(value=int(value)) if abs(value) <= size.LIMIT:
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
            return _translate_division(inner(left), inner(right))
        case Binary(op=op, left=left, right=right):
            return _translate_binary(op, inner(left), inner(right))
        case Ternary(condition=condition, yes=yes, no=no):
            asked = inner(condition)
            decided = _constant_value(asked)
            if decided is not None:  # of the other branch nothing need be known
                return inner(yes if decided else no)
            return size.Conditional(asked, inner(yes), inner(no))
        case Call(function="min" | "max" as function, args=(left, right)):
            return size.FunctionCall("min" if function == "min" else "max", (inner(left), inner(right)))
    raise NoTranslation


def _translate_binary(op: str, left: size.Node, right: size.Node) -> size.Node:
    if op in _ARITHMETIC:
        return _fold_arithmetic(size.Arithmetic(_ARITHMETIC[op], left, right))
    if op in _COMPARE:
        return size.Compare(left, ((_COMPARE[op], right),))
    if op in ("&&", "||"):
        return size.Logic("and" if op == "&&" else "or", (left, right))
    match op, right:
        case "<<" | ">>", size.Num(by) if 0 <= by <= 30:
            return _fold_arithmetic(size.Arithmetic("*" if op == "<<" else "//", left, size.Num(1 << by)))
        case "&", size.Num(mask) if mask >= 0 and not mask & (mask + 1):
            return size.Arithmetic("%", left, size.Num(mask + 1))
    raise NoTranslation


def _constant_value(node: size.Node) -> int | None:
    whole = size.Expr("", node)
    try:
        return None if whole.names else whole.evaluate({})
    except size.Undefined:
        return None


def _fold_arithmetic(node: size.Arithmetic) -> size.Node:
    if isinstance(node.left, size.Num) and isinstance(node.right, size.Num):
        try:
            return size.Num(size.Expr("", node).evaluate({}))
        except size.Undefined:
            raise NoTranslation from None
    return node


def _translate_division(left: size.Node, right: size.Node) -> size.Node:
    """`(n + 255) / 256` and `(n + b - 1) / b` say ceildiv; any other division rounds down."""
    parts = _signed_summands(left, 1)
    constant = sum(sign * node.value for sign, node in parts if isinstance(node, size.Num))
    others = [(sign, node) for sign, node in parts if not isinstance(node, size.Num)]
    if isinstance(right, size.Num):
        rounds_up = right.value > 1 and constant == right.value - 1
    else:
        rounds_up = constant == -1 and (1, right) in others
        if rounds_up:
            others.remove((1, right))
    if not rounds_up or not others or others[0][0] < 0:
        return _fold_arithmetic(size.Arithmetic("//", left, right))
    total = others[0][1]
    for sign, node in others[1:]:
        total = size.Arithmetic("+" if sign > 0 else "-", total, node)
    return size.FunctionCall("ceildiv", (total, right))


def _signed_summands(node: size.Node, sign: int) -> list[tuple[int, size.Node]]:
    if isinstance(node, size.Arithmetic) and node.op in ("+", "-"):
        right = sign if node.op == "+" else -sign
        return _signed_summands(node.left, sign) + _signed_summands(node.right, right)
    return [(sign, node)]


def known_divisor(node: size.Node, steps: Mapping[str, int]) -> int:
    """A number that divides every value of it; 0 where the value is 0. `steps`: what divides each size."""
    match node:
        case size.Num(value):
            return abs(value)
        case size.Variable(id):
            return steps.get(id, 1)
        case size.Neg(operand):
            return known_divisor(operand, steps)
        case size.Arithmetic("*", left, right):
            return known_divisor(left, steps) * known_divisor(right, steps)
        case size.Arithmetic("+" | "-", left, right):
            return gcd(known_divisor(left, steps), known_divisor(right, steps))
        case size.Arithmetic("//", left, size.Num(value)) if (
            value > 0 and known_divisor(left, steps) % value == 0
        ):
            return known_divisor(left, steps) // value
        case size.FunctionCall("min" | "max", args):
            return gcd(*(known_divisor(arg, steps) for arg in args))
        case _:
            return 1


def value_bounds(node: size.Node, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    """The least and the largest value that it may have; `ranges`: those of the sizes. None: not known."""
    match node:
        case size.Num(value):
            return value, value
        case size.Variable(id):
            return ranges.get(id)
        case size.Neg(operand):
            inner = value_bounds(operand, ranges)
            return None if inner is None else (-inner[1], -inner[0])
        case size.Arithmetic(op, left, right):
            a, b = value_bounds(left, ranges), value_bounds(right, ranges)
            return None if a is None or b is None else _bounds_of(op, a, b)
        case size.FunctionCall("min" | "max" as function, args):
            found = [value_bounds(arg, ranges) for arg in args]
            known = [f for f in found if f is not None]
            if len(known) < len(found):
                return None
            pick = min if function == "min" else max
            return pick(k[0] for k in known), pick(k[1] for k in known)
        case size.FunctionCall("ceildiv", (left, right)):
            a, b = value_bounds(left, ranges), value_bounds(right, ranges)
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
            return number_node(value)
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
                return Binary("/", Binary("+", a, number_node(b.value - 1)), b)
            return Binary("/", Binary("-", Binary("+", a, b), number_node(1)), b)
        case size.FunctionCall("round_up", (left, right)):
            b = inner(right)
            return Binary("*", inner(size.FunctionCall("ceildiv", (left, right))), b)
    raise NoTranslation


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
                if self.values.get(f"{count}.{letter}") == number_node(1):
                    found |= {f"{index}.{letter}": number_node(0), f"{count}.{letter}": number_node(1)}
        return found

    def replaced(self, expr: Expr) -> Expr:
        """gridDim and blockDim written as what the launch gives them, where parameters can say it."""
        return fold_expr(substitute(expr, self.values))

    def size_text(self, expr: Expr) -> str:
        """The same over the problem's sizes, "" where there is no such expression."""
        return to_sizes(expr, self.parameters) or ""

    def bounds_of(self, expr: Expr, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
        """The least and the largest value that it may have; None where that is not known."""
        text = self.size_text(expr)
        return value_bounds(parse_expr(text).tree, ranges) if text else None


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
                    values[key] = number_node(1)
                    continue
                sizes[key] = exprs[axis].tree
                found = from_sizes(exprs[axis].tree, known)
                if found is not None:
                    values[key] = found
    return LaunchTerms(sizes, values)


def make_product(left: Expr, right: Expr) -> Expr:
    if left == number_node(1):
        return right
    return left if right == number_node(1) else Binary("*", left, right)


def axis_name(builtin: str) -> str:
    """A name for a built-in index that has none in the source: blockIdx.y -> block_y."""
    word = {"blockIdx": "block", "threadIdx": "thread"}[builtin.partition(".")[0]]
    return word + ("" if builtin.endswith(".x") else f"_{builtin[-1]}")


def launch_name(kind: str, axis: int) -> Expr:
    return Name(f"{kind}.{'xyz'[axis]}")


def block_threads() -> Expr:
    x, y, z = (launch_name("blockDim", axis) for axis in range(3))
    return make_product(make_product(x, y), z)
