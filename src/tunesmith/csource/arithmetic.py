"""C's operators: how they bind, and what they are on numbers without a width."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

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


def binary(op: str, a: int, b: int) -> int | None:
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


def unary(op: str, value: int) -> int:
    return {"-": -value, "+": value, "!": int(not value), "~": ~value}[op]
