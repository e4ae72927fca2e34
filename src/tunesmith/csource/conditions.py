"""The arithmetic of `#if`: what a condition is worth."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.csource.arithmetic import LEVELS, binary, unary
from tunesmith.csource.lex import Token, read_number
from tunesmith.csource.nodes import Unreadable

_MAX_DEPTH = 100


class ConditionReader:
    """The value of a condition, its macros expanded; names that are left count as 0."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def value(self) -> int:
        found = self.ternary(0)
        if self._at < len(self._tokens):
            raise Unreadable(f"`{self._peek()}` was not expected there")
        return found

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            raise Unreadable("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def ternary(self, depth: int) -> int:
        if depth > _MAX_DEPTH:
            raise Unreadable("it is nested too deep")
        value = self._binary(1, depth)
        if self._peek() != "?":
            return value
        self._next()
        yes = self.ternary(depth + 1)
        if self._next().text != ":":
            raise Unreadable("a `?` has no `:`")
        no = self.ternary(depth + 1)
        return yes if value else no

    def _binary(self, least: int, depth: int) -> int:
        left = self._unary(depth + 1)
        while LEVELS.get(self._peek(), 0) >= least:
            op = self._next().text
            right = self._binary(LEVELS[op] + 1, depth + 1)
            value = binary(op, left, right)
            if value is None:
                raise Unreadable("it divides by zero" if op in ("/", "%") else f"it shifts by {right}")
            left = value
        return left

    def _unary(self, depth: int) -> int:
        if depth > _MAX_DEPTH:
            raise Unreadable("it is nested too deep")
        token = self._next()
        if token.text in ("!", "-", "+", "~"):
            return unary(token.text, self._unary(depth + 1))
        if token.text == "(":
            value = self.ternary(depth + 1)
            if self._next().text != ")":
                raise Unreadable("a `(` has no `)`")
            return value
        if token.kind == "number":
            number = read_number(token.text)
            if isinstance(number, int):
                return number
        elif token.kind == "word":
            if self._peek() == "(":  # __has_include(<x>) and its like: a call of what is no macro
                raise Unreadable(f"{token.text}(...) has no meaning here")
            return int(token.text == "true")
        raise Unreadable(f"`{token.text}` is no integer")
