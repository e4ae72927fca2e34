"""The preprocessor's work on a file and the user's own headers: macros expanded, conditions decided, line
numbers kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tunesmith.csource.conditions import ConditionReader
from tunesmith.csource.lex import Token, first_word, lex
from tunesmith.csource.macros import MOST_NESTING, MOST_TOKENS, Expansion, Macro, read_macro
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.predefined import BY_HEADER, NOTHING, OF_HEADERS, TELL_VERSION, Predefined, assumed

# Any of these may compile what is read here: a condition must mean the same to all of them.
_VERSIONS = ((12, 0), (12, 4), (12, 8), (12, 9), (13, 0), (13, 1), (13, 4), (14, 0))


Toolkit = Literal["unknown", "absent", "there"]


class HeaderAsked(Unreadable):
    """A condition that only the toolkit's headers can answer."""


@dataclass(frozen=True)
class Preprocessed:
    """`#pragma` directives are still among the tokens, nothing else of the preprocessor is."""

    tokens: tuple[Token, ...]
    includes: tuple[str, ...]
    problems: tuple[str, ...]  # what could not be followed, in words with line numbers
    decided: tuple[str, ...] = ()  # conditions on what the compiler defines, and how each came out, in words


def preprocess(
    text: str,
    language: str,
    defines: Iterable[tuple[str, str]] = (),
    headers: Iterable[tuple[str, str]] = (),
    toolkit: Toolkit = "unknown",
    predefined: Predefined | None = None,
) -> Preprocessed:
    """Unknown identifiers in an #if count as 0, as the language says. `headers`: the user's own, as included
    -> text; they are put in place, on the line that includes them. `toolkit`: whether its headers are there
    to tell their version; where nobody knows, a condition on it is refused. `predefined`: what the compiler
    defines; None: what is assumed of the language."""
    own = predefined if predefined is not None else assumed(language)
    work = Preprocessor(language != "opencl", dict(headers), toolkit, own)  # OpenCL includes nothing of it
    for name, value in defines:
        work.define(f"{name} {value}", 0)
    for token in lex(text):
        work.take(token)
    work.flush()
    if work.open_conditions:
        work.problems.append(f"line {work.open_conditions[-1].line}: this #if has no #endif")
    found = (tuple(work.done), tuple(dict.fromkeys(work.includes)), tuple(work.problems))
    return Preprocessed(*found, tuple(dict.fromkeys(work.decided)))


@dataclass
class _ConditionalPart:
    line: int
    on: bool
    taken: bool  # some branch was on already, or the whole of it is inside text that is off


class Preprocessor:
    def __init__(
        self,
        knows_headers: bool,
        headers: Mapping[str, str] | None = None,
        toolkit: Toolkit = "unknown",
        predefined: Predefined = NOTHING,
    ) -> None:
        self._knows_headers, self._toolkit = knows_headers, toolkit
        self._headers = headers or {}
        self._inside: list[str] = []  # headers that are being read, the innermost last
        self._once: set[str] = set()
        self.done: list[Token] = []
        self.includes: list[str] = []
        self.problems: list[str] = []
        self.open_conditions: list[_ConditionalPart] = []
        self._macros: dict[str, Macro] = {}
        self._waiting: list[Token] = []  # not yet expanded: a macro's arguments may go over lines
        self.decided: list[str] = []
        self._predefined = predefined
        for name, value in predefined.macros:
            self.define(f"{name} {value}", 0)
        self._others = set(predefined.others)  # macros of the compiler's whose text is not known
        self._given = dict(self._macros)  # as the compiler defines them
        self._own_versions = {  # macros that tell the compiler's version
            name: macro for name, macro in self._macros.items() if name in TELL_VERSION
        }

    def take(self, token: Token) -> None:
        if token.kind != "directive":
            if not self.open_conditions or self.open_conditions[-1].on:
                self._waiting.append(token)
            return
        word, rest = first_word(token.text)
        if word in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
            self.flush()
            self._condition(word, rest, token.line)
        elif not self.open_conditions or self.open_conditions[-1].on:
            self.flush()
            self._directive(word, rest, token)

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if any(token.kind == "word" and token.text in self._macros for token in waiting):
            waiting = Expansion(self._macros, MOST_TOKENS - len(self.done)).expand(waiting, frozenset(), 0)
        self.done.extend(_pragmas(waiting))

    def _directive(self, word: str, rest: str, token: Token) -> None:
        if word == "define":
            self.define(rest, token.line)
        elif word == "undef":
            self._macros.pop(rest, None)
            self._others.discard(rest)
        elif word == "include":
            if (own := rest.strip('<>" \t')) in self._headers:
                self._include(own, token.line)
                return
            self.includes.append(rest)
            for name, value in BY_HEADER.get(rest.strip('<>" \t'), {}).items():
                if self._knows_headers and name.partition("(")[0] not in self._macros:
                    self.define(f"{name} {value}", token.line)
        elif word == "pragma":
            if rest != "once":
                self.done.append(token)
            elif self._inside:
                self._once.add(self._inside[-1])
        elif word == "error":
            self.problems.append(f"line {token.line}: the file says #error {rest}")

    def _include(self, name: str, line: int) -> None:
        if name in self._once:
            return
        if len(self._inside) > MOST_NESTING:
            raise Unreadable(f'"{name}" is included by what it includes', line)
        self._inside.append(name)
        outside = [*map(id, self.open_conditions)]
        for token in lex(self._headers[name]):
            self.take(replace(token, line=line))
        self.flush()
        self._inside.pop()
        if [*map(id, self.open_conditions)] != outside:
            raise Unreadable(f'an #if in "{name}" does not end there', line)

    def define(self, rest: str, line: int) -> None:
        macro = read_macro(rest, line)
        if isinstance(macro, str):
            self.problems.append(f"line {line}: {macro}")
        else:
            self._macros[macro.name] = macro

    def _condition(self, word: str, rest: str, line: int) -> None:
        if word in ("if", "ifdef", "ifndef"):
            outer = not self.open_conditions or self.open_conditions[-1].on  # inside what is off all is off
            on = outer and self._holds(word, rest, line)
            self.open_conditions.append(_ConditionalPart(line, on, on or not outer))
            return
        if not self.open_conditions:
            self.problems.append(f"line {line}: this #{word} has no #if")
            return
        condition = self.open_conditions[-1]
        if word == "endif":
            self.open_conditions.pop()
        elif condition.taken:
            condition.on = False
        else:
            condition.on = condition.taken = word == "else" or self._holds("if", rest, line)

    def _holds(self, word: str, rest: str, line: int) -> bool:
        holds = self._decision(word, rest, line)
        if said := self._on_compiler(rest):
            where = f"line {line}, in {self._inside[-1]}" if self._inside else f"line {line}"
            came = "holds" if holds else "does not hold"
            self.decided.append(f"{where}: #{word} {' '.join(rest.split())[:80]} {came}: {', '.join(said)}")
        return holds

    def _on_compiler(self, rest: str) -> list[str]:
        """What a condition asks of the compiler, by itself or by macros in it, with the answers."""
        return [
            f"{name} is {' '.join(map(str, self._given[name].body)) or 'defined'}"
            if name in self._given
            else f"{name} is {'defined' if name in self._others else 'not defined'}"
            for name in self._asked_for(lex(rest))
            if self._predefined.knows(name) and self._macros.get(name) is self._given.get(name)
        ]

    def _asked_for(self, tokens: Iterable[Token]) -> dict[str, None]:
        """The names in a condition, and in the macros in it."""
        pending, known = [t.text for t in tokens if t.kind == "word"], dict[str, None]()
        while pending:
            name = pending.pop(0)
            macro = self._macros.get(name)
            if name in known:
                continue
            known[name] = None
            if macro is not None and self._given.get(name) is not macro:
                pending += [t.text for t in macro.body if t.kind == "word"]
        return known

    def _decision(self, word: str, rest: str, line: int) -> bool:
        if self._own_versions and self._toolkit == "unknown":
            for token in lex(rest, line):
                if token.text in OF_HEADERS and token.text not in self._macros:
                    raise HeaderAsked(f"#{word} {rest[:60]} depends on what a header defines", line)
        there = OF_HEADERS if self._own_versions and self._toolkit == "there" else frozenset[str]()
        there |= self._others
        if word != "if":
            return (first_word(rest)[0] in {*self._macros, *there}) == (word == "ifdef")
        tokens = decided_defined(lex(rest, line), {*self._macros, *there})
        for token in tokens:
            if token.kind == "word" and token.text in self._others and token.text not in self._macros:
                raise Unreadable(f"#if {rest[:60]} asks for {token.text}, which a header defines", line)
        tells = any(name in TELL_VERSION or name in OF_HEADERS for name in self._asked_for(tokens))
        try:
            found = {
                self._value(tokens, macros) for macros in (self._versions() if tells else (self._macros,))
            }
        except Unreadable as trouble:
            return self._undecided(rest, line, trouble.reason)
        if len(found) > 1:
            raise Unreadable(f"#if {rest[:60]} depends on which version of the compiler it is", line)
        return found.pop()

    def _undecided(self, rest: str, line: int, reason: str) -> bool:
        self.problems.append(f"line {line}: #if {rest[:60]} was taken as false: {reason}")
        return False

    def _value(self, tokens: list[Token], macros: Mapping[str, Macro]) -> bool:
        return ConditionReader(Expansion(macros, MOST_TOKENS).expand(tokens, frozenset(), 0)).value() != 0

    def _versions(self) -> Iterator[Mapping[str, Macro]]:
        """The macros as each version of the compiler has them, unless the text defines these itself."""
        if not self._own_versions or any(self._macros.get(n) is not m for n, m in self._own_versions.items()):
            yield self._macros
            return
        for major, minor in dict.fromkeys((*_VERSIONS, *self._asked_version())):
            numbers = dict(zip(TELL_VERSION, (major, minor, 0), strict=True))
            found = {name: read_macro(f"{name} {numbers[name]}") for name in self._own_versions}
            if self._toolkit == "there":
                version = {name: read_macro(f"{name} {major * 1000 + minor * 10}") for name in OF_HEADERS}
                found = {**version, **found}
            known = {name: m for name, m in found.items() if isinstance(m, Macro)}
            yield {
                **{name: m for name, m in known.items() if name in OF_HEADERS},
                **self._macros,
                **{name: m for name, m in known.items() if name not in OF_HEADERS},
            }

    def _asked_version(self) -> Iterator[tuple[int, int]]:
        found = [self._own_versions.get(name) for name in TELL_VERSION[:2]]
        texts = ["".join(map(str, macro.body)) if macro else "0" for macro in found]
        if all(text.isdigit() for text in texts):
            yield int(texts[0]), int(texts[1])


def _pragmas(tokens: list[Token]) -> list[Token]:
    """`_Pragma("unroll")`, as macros write it, as the directive it stands for."""
    if not any(token.text == "_Pragma" for token in tokens):
        return tokens
    done: list[Token] = []
    at = 0
    while at < len(tokens):
        group = [token.text for token in tokens[at : at + 4]]
        if group[0] == "_Pragma" and len(group) == 4 and group[1] == "(" and group[3] == ")":
            done.append(replace(tokens[at], kind="directive", text=f"pragma {group[2].strip(chr(34))}"))
            at += 4
        else:
            done.append(tokens[at])
            at += 1
    return done


def decided_defined(
    tokens: list[Token], macros: Collection[str], asks: Callable[[str], bool] = lambda _name: False
) -> list[Token]:
    """`defined X` and `defined(X)` as 1 or 0, before anything is expanded; left where `asks` says so."""
    done: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.text == "defined":
            start, group = at, [t.text for t in tokens[at + 1 : at + 4]]
            if len(group) == 3 and group[0] == "(" and group[2] == ")":
                name, at = group[1], at + 4
            else:
                name, at = (group[0] if group else ""), at + 2
            if asks(name):
                done += tokens[start:at]
                continue
            done.append(replace(token, kind="number", text="1" if name in macros else "0"))
        else:
            done.append(token)
            at += 1
    return done
