"""Constants folded as C computes them, and what adds nothing left out.

Integer literals and names of `env` are computed with; a result that does not fit the type it is computed in
is left as it stands. Floating point is never reassociated: `x * 1.0f` and `x + 0.0f` stay.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from tunesmith.source import tree as c
from tunesmith.source.effects import is_pure
from tunesmith.source.types import INTEGERS, byte_size, integer_literal, size_of
from tunesmith.source.walk import map_expr, map_statements, nodes_in

# -- C's operators: how they bind, and what they are on numbers without a width.


# How strongly two-sided operators bind, the strongest last.
LEVELS: Mapping[str, int] = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
COMPARISONS: Mapping[str, Callable[[int | float, int | float], bool]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne, "&&": lambda a, b: bool(a) and bool(b), "||": lambda a, b: bool(a) or bool(b),
}  # fmt: skip
_ALWAYS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip


def evaluate_binary(op: str, a: int, b: int) -> int | None:
    """Of numbers without a width; None where there is no value, or no such operator."""
    if op in COMPARISONS:
        return int(COMPARISONS[op](a, b))
    if op in _ALWAYS:
        return _ALWAYS[op](a, b)
    if op in ("/", "%") and b != 0:
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if op == "/" else a - b * quotient
    if op in ("<<", ">>") and 0 <= b < 64:
        return a << b if op == "<<" else a >> b
    return None


def evaluate_unary(op: str, value: int) -> int:
    return {"-": -value, "+": value, "!": int(not value), "~": ~value}[op]


def fold_expr(expr: c.Expr) -> c.Expr:
    """The expression with constants computed and identities of integer arithmetic removed."""
    return map_expr(expr, _fold_one)


def int_value(expr: c.Expr, names: Mapping[str, int] = {}) -> int | None:
    """The integer an expression comes to where `names` have these values, as C computes it; None: none."""
    match expr:
        case c.Number(value=int(value)):
            return value
        case c.Name(name=name):
            return names.get(name)
        case c.Unary(op="-" | "+" | "~" | "!" as op, operand=operand):
            inside = int_value(operand, names)
            return None if inside is None else evaluate_unary(op, inside)
        case c.Binary(op="&&" | "||" as op, left=left, right=right):
            decided = int_value(left, names)
            if decided is not None and bool(decided) == (op == "&&"):  # it is the right side's to say
                decided = int_value(right, names)
            return None if decided is None else int(bool(decided))
        case c.Binary(op=op, left=left, right=right):
            a, b = int_value(left, names), int_value(right, names)
            if a is None or b is None:
                return None
            result = _integer_result(op, a, b)
            return result if result is not None and abs(result) < 2**64 else None
        case c.Ternary(condition=condition, yes=yes, no=no):
            chosen = int_value(condition, names)
            return None if chosen is None else int_value(yes if chosen else no, names)
        case c.Cast(type=type_, value=inner) if not type_.is_pointer:
            inside = int_value(inner, names)
            return None if inside is None else convert_to_type(inside, type_.base)
        case c.SizeOf(type=type_):
            return 8 if type_.is_pointer else byte_size(type_.base)
        case c.Call(function=function, args=(left, right), of=None) if function in _EXTREMES:
            a, b = int_value(left, names), int_value(right, names)
            return None if a is None or b is None else _EXTREMES[function](a, b)
    return None


def fold_statements(stmts: Iterable[c.Stmt]) -> tuple[c.Stmt, ...]:
    """Every expression folded; branches that are never taken and loops that never turn are left out."""
    return map_statements(stmts, fold_expr, _prune_dead_branch)


def _prune_dead_branch(stmt: c.Stmt) -> c.Stmt | tuple[c.Stmt, ...]:
    match stmt:
        case c.If(condition=c.Number(value=value), then=then, otherwise=otherwise):
            body = then if value else otherwise
            # Declarations keep the scope the branch gave them.
            has_names = any(isinstance(part, c.Declare) for part in body)
            return c.Scope(body, line=stmt.line) if has_names else body
        case c.While(condition=c.Number(value=0), after=False):
            return ()
        case c.For(condition=c.Number(value=0), init=init) if all(is_pure(part) for part in init):
            return ()
    return stmt


def _fold_one(node: c.Expr) -> c.Expr:
    match node:
        case c.Unary(op=op, operand=c.Number() as operand) if not node.postfix:
            return _fold_unary_literal(op, operand) or node
        case c.Binary(op=op, left=c.Number() as left, right=c.Number() as right):
            return _fold_binary_literals(op, left, right) or node
        case c.Binary():
            return _simplify_identity(node)
        case c.Ternary(condition=c.Number(value=value), yes=yes, no=no):
            return yes if value else no
        case c.Cast(type=type_, value=c.Number(value=int(value))) if not type_.is_pointer:
            return _fold_cast(node, value)
        case c.SizeOf(type=type_):
            size = 8 if type_.is_pointer else size_of(type_.base)
            return node if size is None else c.Number(f"{size}", size)
        case c.Call(function=function, args=(c.Number(value=int(a)), c.Number(value=int(b))), of=None) if (
            function in _EXTREMES
        ):
            return integer_literal(_EXTREMES[function](a, b))
    return node


def _fold_cast(node: c.Cast, value: int) -> c.Expr:
    """(int)3 is 3; (long long)3 keeps its cast, which widens what it is multiplied with."""
    held = convert_to_type(value, node.type.base)
    if held is None:
        return node
    if node.type.base in ("int", "int32_t", "bool"):
        return integer_literal(held)
    return replace(node, value=integer_literal(held)) if node.type.base in INTEGERS else node


def convert_to_type(value: int, base: str) -> int | None:
    """The number as a variable of the type holds it; None where that is no integer."""
    if base not in INTEGERS:
        return None
    if base == "bool":
        return int(value != 0)
    size, signed = INTEGERS[base]
    bits = 8 * size
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def _fold_unary_literal(op: str, operand: c.Number) -> c.Expr | None:
    value = operand.value
    if op == "!":
        return integer_literal(int(not value))
    if op == "+":
        return operand
    if isinstance(value, int) and not operand.is_unsigned and op in ("-", "~"):
        return integer_literal(evaluate_unary(op, value))
    if op == "-" and isinstance(value, float) and not operand.text.startswith("-"):
        return c.Number(f"-{operand.text}", -value)
    return None


def _fold_binary_literals(op: str, left: c.Number, right: c.Number) -> c.Expr | None:
    a, b = left.value, right.value
    if op in COMPARISONS:
        if op not in ("&&", "||") and (left.is_unsigned or right.is_unsigned) and min(a, b) < 0:
            return None
        return integer_literal(int(COMPARISONS[op](a, b)))
    if not (isinstance(a, int) and isinstance(b, int)):
        return None  # the precision it would be computed in is not known here
    unsigned = left.is_unsigned or right.is_unsigned
    wide = any(number.text.lower().rstrip("u").endswith("l") for number in (left, right))
    value = _integer_result(op, a, b)
    if value is None:
        return None
    if unsigned:
        if min(a, b) < 0:
            return None
        value %= 1 << (64 if wide else 32)
        return c.Number(f"{value}{'ULL' if wide else 'u'}", value)
    bits = 63 if wide or any(not -(2**31) <= operand < 2**31 for operand in (a, b)) else 31
    if not -(1 << bits) <= value < (1 << bits):
        return None  # it would overflow: undefined, so not for us to decide
    result = integer_literal(value)
    return replace(result, text=f"{value}LL") if wide and "L" not in result.text else result


def _integer_result(op: str, a: int, b: int) -> int | None:
    """A negative number that is shifted up is undefined in C: not for us to decide."""
    return None if op == "<<" and a < 0 else evaluate_binary(op, a, b)


def _simplify_identity(node: c.Binary) -> c.Expr:
    """x * 1, x + 0, x / 1, 0 * x, x & 0, true && x: where nothing else can change."""
    op, left, right = node.op, node.left, node.right
    a = left.value if isinstance(left, c.Number) and _is_int_literal(left) else None
    b = right.value if isinstance(right, c.Number) and _is_int_literal(right) else None
    if (op in ("+", "-", "<<", ">>", "|", "^") and b == 0) or (op in ("*", "/") and b == 1):
        return left
    if (op in ("+", "|", "^") and a == 0) or (op == "*" and a == 1):
        return right
    if op in ("*", "&") and a == 0 and is_pure(right) and not _may_float(right):
        return left
    if op in ("*", "&") and b == 0 and is_pure(left) and not _may_float(left):
        return right
    if op == "%" and b == 1 and is_pure(left):
        return integer_literal(0)
    if op == "&&" and a is not None:
        return right if a else integer_literal(0)
    if op == "||" and a is not None:
        return integer_literal(1) if a else right
    return node


def _is_int_literal(number: c.Number) -> bool:
    """An int literal: one with a suffix widens or changes the sign of what it meets."""
    return isinstance(number.value, int) and number.text.lstrip("-").isdigit()


def _may_float(expr: c.Expr) -> bool:
    """Whether something in it speaks against an integer; 0 * x is not 0 for every float."""
    return any(
        isinstance(n, c.Call | c.Index | c.Member | c.Braces | c.Assign)
        or (isinstance(n, c.Number) and isinstance(n.value, float))
        for n in nodes_in(expr)
    )


_EXTREMES: Mapping[str, Callable[[int, int], int]] = {
    "min": min, "umin": min, "std::min": min, "max": max, "umax": max, "std::max": max,
}  # fmt: skip
