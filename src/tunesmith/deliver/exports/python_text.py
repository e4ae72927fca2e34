"""Expressions as Python text, over a dictionary of values: what holds here holds there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from tunesmith.errors import BadInput
from tunesmith.space import grammar as n
from tunesmith.space.expr import LIMIT, Expr

# The functions of the language that Python lacks; names without a value there raise as they do here.
HELPERS = """\
def ceildiv(a, b):
    return -(-a // b)


def round_up(a, b):
    return ceildiv(a, b) * b


def next_pow2(a):
    if a <= 0:
        raise ValueError(f"next_pow2 needs a positive number, got {a}")
    return 1 << (a - 1).bit_length()


def is_pow2(a):
    return int(a > 0 and a & (a - 1) == 0)
"""


def python_text(expr: Expr, largest: Mapping[str, int]) -> str:
    """The expression over `v`, where each name has its value; its own value is an integer, or a truth value
    that counts as one. `largest` has the greatest magnitude of each name: the language gives no value beyond
    2**62, Python does, so where one may lie there the two would differ."""
    _magnitude(expr, expr.tree, largest)
    return _text(expr.tree, as_number=True)


def _text(node: n.Node, as_number: bool) -> str:
    """In parentheses wherever it has parts. A truth value need not be a number where it is only tested."""
    match node:
        case n.Num(value):
            return str(value) if value >= 0 else f"({value})"
        case n.Variable(id):
            return f"v[{id!r}]"
        case n.Neg(operand):
            return f"(-{_text(operand, True)})"
        case n.Not(operand):
            return f"(not {_text(operand, False)})"
        case n.Arithmetic(op, left, right):
            return f"({_text(left, True)} {op} {_text(right, True)})"
        case n.Compare(left, links):
            chain = "".join(f" {op} {_text(right, True)}" for op, right in links)
            return f"({_text(left, True)}{chain})"
        case n.OneOf(item, options, negated):
            listed = "".join(f"{option}, " for option in options)
            return f"({_text(item, True)} {'not in' if negated else 'in'} ({listed}))"
        case n.Logic(op, operands):
            joined = f" {op} ".join(_text(operand, False) for operand in operands)
            return f"bool({joined})" if as_number else f"({joined})"
        case n.Conditional(test, then, other):
            return f"({_text(then, True)} if {_text(test, False)} else {_text(other, True)})"
        case n.FunctionCall(function, args):
            return f"{function}({', '.join(_text(arg, True) for arg in args)})"
    assert_never(node)


def _magnitude(expr: Expr, node: n.Node, largest: Mapping[str, int]) -> int:
    """A bound on how large a value may become; refused where that is beyond what an expression can be."""
    parts = [_magnitude(expr, child, largest) for child in n.children(node)]
    match node:
        case n.Num(value):
            most = abs(value)
        case n.Variable(id):
            most = largest[id]
        case n.Arithmetic("*", _, _):
            most = parts[0] * parts[1]
        case n.Arithmetic("+" | "-", _, _) | n.FunctionCall("round_up", _):
            most = sum(parts)
        case n.FunctionCall("next_pow2", _):
            most = 2 * parts[0]
        case n.Compare() | n.OneOf() | n.Not() | n.Logic() | n.FunctionCall("is_pow2", _):
            most = 1
        case _:
            most = max(parts)
    if most > LIMIT:
        fault = f'values of "{expr.text}" may exceed 2**62, where it has none'
        raise BadInput(fault, hint="give its parameters or sizes smaller values")
    return most
