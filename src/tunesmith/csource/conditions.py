"""The arithmetic of `#if`: what a condition is worth, in the 64 bits of intmax_t and uintmax_t."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.csource.arithmetic import COMPARISONS, LEVELS, binary, unary
from tunesmith.csource.lex import Token, read_number
from tunesmith.csource.nodes import Unreadable

_MAX_DEPTH = 100
_BITS = 64


@dataclass(frozen=True)
class _Intmax:
    value: int
    unsigned: bool = False

    @classmethod
    def wrapped(cls, value: int, unsigned: bool) -> _Intmax:
        """As compilers do where a number has no room."""
        value &= (1 << _BITS) - 1
        return cls(value if unsigned or value >> (_BITS - 1) == 0 else value - (1 << _BITS), unsigned)


class ConditionReader:
    """The value of a condition, its macros expanded; names that are left count as 0."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def value(self) -> int:
        found = self._ternary(0, True)
        if self._at < len(self._tokens):
            raise Unreadable(f"`{self._peek()}` was not expected there")
        return found.value

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            raise Unreadable("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _ternary(self, depth: int, counts: bool) -> _Intmax:
        """`counts`: what is not evaluated may divide by zero."""
        if depth > _MAX_DEPTH:
            raise Unreadable("it is nested too deep")
        test = self._binary(1, depth, counts)
        if self._peek() != "?":
            return test
        self._next()
        yes = self._ternary(depth + 1, counts and test.value != 0)
        if self._next().text != ":":
            raise Unreadable("a `?` has no `:`")
        no = self._ternary(depth + 1, counts and test.value == 0)
        return _Intmax.wrapped((yes if test.value else no).value, yes.unsigned or no.unsigned)

    def _binary(self, least: int, depth: int, counts: bool) -> _Intmax:
        left = self._unary(depth + 1, counts)
        while LEVELS.get(self._peek(), 0) >= least:
            op = self._next().text
            is_settled = (op == "&&" and not left.value) or (op == "||" and left.value != 0)
            right = self._binary(LEVELS[op] + 1, depth + 1, counts and not is_settled)
            left = _applied(op, left, right, counts)
        return left

    def _unary(self, depth: int, counts: bool) -> _Intmax:
        if depth > _MAX_DEPTH:
            raise Unreadable("it is nested too deep")
        token = self._next()
        if token.text in ("!", "-", "+", "~"):
            inner = self._unary(depth + 1, counts)
            return _Intmax.wrapped(unary(token.text, inner.value), inner.unsigned and token.text != "!")
        if token.text == "(":
            value = self._ternary(depth + 1, counts)
            if self._next().text != ")":
                raise Unreadable("a `(` has no `)`")
            return value
        if token.kind == "number":
            return _literal(token.text)
        if token.kind == "word":
            if self._peek() == "(":  # __has_include(<x>) and its like: a call of what is no macro
                raise Unreadable(f"{token.text}(...) has no meaning here")
            return _Intmax(int(token.text == "true"))
        raise Unreadable(f"`{token.text}` is no integer")


def _literal(text: str) -> _Intmax:
    number = read_number(text)
    if not isinstance(number, int):
        raise Unreadable(f"`{text}` is no integer")
    is_decimal = text[:1] != "0"
    unsigned = "u" in text.lower() or (number >> (_BITS - 1) != 0 and not is_decimal)
    if number >> (_BITS if unsigned else _BITS - 1):
        raise Unreadable(f"`{text}` has no room in {_BITS} bits")
    return _Intmax(number, unsigned)


def _applied(op: str, left: _Intmax, right: _Intmax, counts: bool) -> _Intmax:
    shifts = op in ("<<", ">>")
    unsigned = left.unsigned or (right.unsigned and not shifts)
    a = _Intmax.wrapped(left.value, unsigned).value
    b = right.value if shifts else _Intmax.wrapped(right.value, unsigned).value
    value = binary(op, a, b)
    has_no_room = op == "/" and value == 1 << (_BITS - 1) and not unsigned  # the least number by -1
    if counts and (value is None or has_no_room):
        raise Unreadable(
            f"it shifts by {b}" if shifts else f"it divides {a} by {b}" if b else "it divides by zero"
        )
    return _Intmax.wrapped(value or 0, unsigned and op not in COMPARISONS)
