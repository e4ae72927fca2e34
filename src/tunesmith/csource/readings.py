"""How the compiler at hand reads a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

from tunesmith.csource.lex import Token, lex
from tunesmith.csource.macros import MOST_NESTING, MOST_TOKENS, Expansion, Macro, read_macro
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.predefined import Predefined
from tunesmith.csource.preprocess import Preprocessor, decided_defined


class Undecidable(Unreadable):
    """A condition that a compiler may decide otherwise."""


def decide(
    tokens: Iterable[Token],
    target: Predefined,
    may_differ: Callable[[str], bool],
    defines: Iterable[tuple[str, str]] = (),
    headers: Iterable[tuple[str, str]] = (),
    may_stay: Callable[[Macro], bool] = lambda _macro: False,
) -> tuple[Token, ...]:
    """What is left where the compiler defines what `target` says: no macro and no condition. `#include`,
    `#line` and `#pragma` stay. Of `headers`, the user's own as included -> text, the macros are taken; what
    they ask for stays defined where `may_stay` says so. `may_differ`: whether compilers may define a name
    that `target` does not have; no condition may ask for one. Raises Unreadable."""
    work = _Deciding(target, may_differ, dict(headers), may_stay)
    for name, value in defines:
        work.define(f"{name} {value}", 0)
    for token in tokens:
        work.take(token)
    return work.whole()


class _Deciding(Preprocessor):
    def __init__(
        self,
        target: Predefined,
        may_differ: Callable[[str], bool],
        headers: Mapping[str, str],
        may_stay: Callable[[Macro], bool],
    ) -> None:
        super().__init__(True, headers, "there", target)
        self._may_differ, self._may_stay = may_differ, may_stay
        self._header_words = frozenset[str]().union(*map(_words_of, headers.values()))

    def whole(self) -> tuple[Token, ...]:
        """All that was taken."""
        self.flush()
        if self.open_conditions:
            raise Unreadable("this #if has no #endif", self.open_conditions[-1].line)
        if self.problems:
            line, _, words = self.problems[0].removeprefix("line ").partition(": ")
            raise Unreadable(words, int(line))
        return tuple(self.done)

    def take(self, token: Token) -> None:
        if not self._inside or token.kind == "directive":
            super().take(token)

    def _directive(self, word: str, rest: str, token: Token) -> None:
        if not self._inside and (word == "include" or self._is_for_headers(word, rest)):
            self.done.append(token)
        if word == "error" and not self._inside:
            raise Unreadable(f"the file says #error {rest}", token.line)
        if word == "line":
            self.done.append(token)
        elif word == "pragma" and rest.startswith("unroll"):
            count = Expansion(self._macros, MOST_TOKENS).expand(lex(rest[6:], token.line), frozenset(), 0)
            self.done.append(replace(token, text=" ".join(["pragma unroll", *map(str, count)])))
        elif word != "error":
            super()._directive(word, rest, token)

    def _is_for_headers(self, word: str, rest: str) -> bool:
        if word == "undef":
            return rest in self._header_words and rest in self._macros and self._may_stay(self._macros[rest])
        macro = read_macro(rest) if word == "define" else ""
        return isinstance(macro, Macro) and macro.name in self._header_words and self._may_stay(macro)

    def _include(self, name: str, line: int) -> None:
        """Its macros alone. It is the user's own: what cannot be followed there defines none."""
        if name in self._once or len(self._inside) > MOST_NESTING:
            return
        before = len(self.done), len(self.problems), len(self.open_conditions)
        self._inside.append(name)
        with suppress(Unreadable):
            for token in _directives_of(self._headers[name]):
                self.take(replace(token, line=line))
        self._inside.pop()
        for said, count in zip((self.done, self.problems, self.open_conditions), before, strict=True):
            del said[count:]  # type: ignore[attr-defined]

    def _holds(self, word: str, rest: str, line: int) -> bool:
        if not self._inside:
            tokens = lex(rest, line)
            if word == "if":
                tokens = decided_defined(tokens, self._macros, self._is_open)
                tokens = Expansion(self._macros, MOST_TOKENS).expand(tokens, frozenset(), 0)
            if strange := next((t.text for t in tokens if t.kind == "word" and self._is_open(t.text)), None):
                words = f"#{word} {rest[:60]} asks for {strange}, which compilers define as they like"
                raise Undecidable(f"{words}: ask for the template's own parameters and macros", line)
        return self._decision(word, rest, line)

    def _is_open(self, name: str) -> bool:
        return name not in self._macros and self._may_differ(name)

    def _undecided(self, rest: str, line: int, reason: str) -> bool:
        if self._inside:
            return super()._undecided(rest, line, reason)
        raise Undecidable(f"#if {rest[:60]} cannot be decided: {reason}", line)


@lru_cache(maxsize=512)
def _directives_of(header: str) -> tuple[Token, ...]:
    return tuple(token for token in lex(header) if token.kind == "directive")


@lru_cache(maxsize=512)
def _words_of(header: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d]\w*", header))
