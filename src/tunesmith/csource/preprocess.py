"""The preprocessor's work on a file and the user's own headers: macros expanded, conditions decided, line
numbers kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.conditions import ConditionReader
from tunesmith.csource.lex import Token, first_word, lex
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.types import BY_HEADER

_MAX_TOKENS = 150_000  # of all expansions together: a few lines of nested macros can ask for billions
_MAX_NESTING = 60

_PREDEFINED: dict[str, tuple[tuple[str, str], ...]] = {
    "cuda": (
        ("__CUDACC__", "1"), ("__CUDACC_RTC__", "1"), ("__CUDA_ARCH__", "900"), ("__cplusplus", "201703L"),
        ("__CUDACC_VER_MAJOR__", "13"), ("__CUDACC_VER_MINOR__", "0"), ("__CUDACC_VER_BUILD__", "0"),
    ),
    "hip": (
        ("__HIPCC__", "1"), ("__HIP__", "1"), ("__HIP_DEVICE_COMPILE__", "1"), ("__HIP_PLATFORM_AMD__", "1"),
        ("__cplusplus", "201703L"),
    ),
    "opencl": (
        ("__OPENCL_VERSION__", "120"), ("__OPENCL_C_VERSION__", "120"), ("__ENDIAN_LITTLE__", "1"),
        ("CL_VERSION_1_0", "100"), ("CL_VERSION_1_1", "110"), ("CL_VERSION_1_2", "120"),
    ),
}  # fmt: skip


# Any of these may compile what is read here: a condition must mean the same to all of them.
_OF_HEADERS = frozenset({"CUDART_VERSION", "CUDA_VERSION"})  # which of the toolkit's headers have, not all
_VERSIONS = ((12, 0), (12, 4), (12, 8), (12, 9), (13, 0), (13, 1), (13, 4), (14, 0))


@dataclass(frozen=True)
class Macro:
    """`parameters` None: an object-like macro."""

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]
    variadic: bool = False


@dataclass(frozen=True)
class Preprocessed:
    """`#pragma` directives are still among the tokens, nothing else of the preprocessor is."""

    tokens: tuple[Token, ...]
    includes: tuple[str, ...]
    problems: tuple[str, ...]  # what could not be followed, in words with line numbers


def preprocess(
    text: str, language: str, defines: Iterable[tuple[str, str]] = (), headers: Iterable[tuple[str, str]] = ()
) -> Preprocessed:
    """Unknown identifiers in an #if count as 0, as the language says. `headers`: the user's own, as included
    -> text; they are put in place, on the line that includes them."""
    work = _Preprocessor(language != "opencl", dict(headers))  # OpenCL includes nothing of the standard
    for name, value in _PREDEFINED.get(language, ()):
        work.define(f"{name} {value}", 0)
    work.note_versions()
    for name, value in defines:
        work.define(f"{name} {value}", 0)
    for token in lex(text):
        work.take(token)
    work.flush()
    if work.open_conditions:
        work.problems.append(f"line {work.open_conditions[-1].line}: this #if has no #endif")
    return Preprocessed(tuple(work.done), tuple(dict.fromkeys(work.includes)), tuple(work.problems))


@dataclass
class _ConditionalPart:
    line: int
    on: bool
    taken: bool  # some branch was on already, or the whole of it is inside text that is off


def read_macro(rest: str, line: int = 1) -> Macro | str:
    """What stands behind `#define`, or what is wrong with it."""
    tokens = lex(rest, line)
    if not tokens or tokens[0].kind != "word":
        return "a #define without a name"
    name, parameters, variadic, start = tokens[0].text, None, False, 1
    if len(tokens) > 1 and tokens[1].text == "(" and not tokens[1].space:
        end = next((at for at, token in enumerate(tokens) if token.text == ")"), None)
        if end is None:
            return f"the parameters of the macro {name} have no end"
        listed = [token.text for token in tokens[2:end] if token.text != ","]
        variadic = listed[-1:] == ["..."]
        parameters = tuple(listed[:-1] if variadic else listed)
        start = end + 1
    return Macro(name, parameters, tuple(tokens[start:]), variadic)


def expanded(tokens: Sequence[Token], macros: Mapping[str, Macro]) -> list[Token]:
    """Raises Unreadable where a macro's call is not one."""
    return _Expansion(macros, _MAX_TOKENS).expand(list(tokens), frozenset(), 0)


class _Preprocessor:
    def __init__(self, knows_headers: bool, headers: Mapping[str, str] | None = None) -> None:
        self._knows_headers = knows_headers
        self._headers = headers or {}
        self._inside: list[str] = []  # headers that are being read, the innermost last
        self._once: set[str] = set()
        self.done: list[Token] = []
        self.includes: list[str] = []
        self.problems: list[str] = []
        self.open_conditions: list[_ConditionalPart] = []
        self._macros: dict[str, Macro] = {}
        self._own_versions: dict[str, Macro] = {}  # macros that tell the compiler's version
        self._waiting: list[Token] = []  # not yet expanded: a macro's arguments may go over lines

    def note_versions(self) -> None:
        self._own_versions = {
            name: macro for name, macro in self._macros.items() if name.startswith("__CUDACC_VER_")
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
            waiting = _Expansion(self._macros, _MAX_TOKENS - len(self.done)).expand(waiting, frozenset(), 0)
        self.done.extend(_pragmas(waiting))

    def _directive(self, word: str, rest: str, token: Token) -> None:
        if word == "define":
            self.define(rest, token.line)
        elif word == "undef":
            self._macros.pop(rest, None)
        elif word == "include":
            if (own := rest.strip('<>" \t')) in self._headers:
                self._include(own, token.line)
                return
            self.includes.append(rest)
            for name, value in BY_HEADER.get(rest.strip('<>" \t'), {}).items():
                if self._knows_headers and name not in self._macros:
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
        if len(self._inside) > _MAX_NESTING:
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
        if self._own_versions:
            for token in lex(rest, line):
                if token.text in _OF_HEADERS and token.text not in self._macros:
                    raise Unreadable(f"#{word} {rest[:60]} depends on what a header defines", line)
        if word != "if":
            return (first_word(rest)[0] in self._macros) == (word == "ifdef")
        tokens = _decided_defined(lex(rest, line), self._macros)
        try:
            found = {self._value(tokens, macros) for macros in self._versions()}
        except Unreadable as trouble:
            self.problems.append(f"line {line}: #if {rest[:60]} was taken as false: {trouble.reason}")
            return False
        if len(found) > 1:
            raise Unreadable(f"#if {rest[:60]} depends on which version of the compiler it is", line)
        return found.pop()

    def _value(self, tokens: list[Token], macros: Mapping[str, Macro]) -> bool:
        return ConditionReader(_Expansion(macros, _MAX_TOKENS).expand(tokens, frozenset(), 0)).value() != 0

    def _versions(self) -> Iterator[Mapping[str, Macro]]:
        """The macros as each version of the compiler has them, unless the text defines these itself."""
        if not self._own_versions or any(self._macros.get(n) is not m for n, m in self._own_versions.items()):
            yield self._macros
            return
        for major, minor in _VERSIONS:
            named = zip(self._own_versions, (major, minor, 0), strict=True)
            found = {name: read_macro(f"{name} {value}") for name, value in named}
            yield {**self._macros, **{name: m for name, m in found.items() if isinstance(m, Macro)}}


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


def _decided_defined(
    tokens: list[Token], macros: Mapping[str, Macro], asks: Callable[[str], bool] = lambda _name: False
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


class _Expansion:
    def __init__(self, macros: Mapping[str, Macro], budget: int) -> None:
        self._macros = macros
        self._budget = budget

    def expand(self, tokens: list[Token], hidden: frozenset[str], depth: int) -> list[Token]:
        done: list[Token] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            macro = self._macros.get(token.text) if token.kind == "word" else None
            if macro is None or macro.name in hidden:
                done.append(token)
                continue
            if depth > _MAX_NESTING:
                raise Unreadable(f"the macro {macro.name} is nested too deep", token.line)
            arguments: list[list[Token]] = []
            if macro.parameters is not None:
                if at >= len(tokens) or tokens[at].text != "(":
                    done.append(token)
                    continue
                arguments, at = _arguments(tokens, at, macro)
            body = self._body(macro, arguments, token, hidden, depth)
            self._budget -= len(body) + 1
            if self._budget < 0:
                raise Unreadable("the macros of the file expand to more text than any kernel has", token.line)
            done.extend(self.expand(body, hidden | {macro.name}, depth + 1))
        return done

    def _body(
        self, macro: Macro, arguments: list[list[Token]], use: Token, hidden: frozenset[str], depth: int
    ) -> list[Token]:
        names = macro.parameters or ()
        given = dict(zip(names, arguments, strict=False))
        if macro.variadic:
            extra: list[Token] = []
            for number, argument in enumerate(arguments[len(names) :]):
                extra += ([Token("mark", ",", use.line)] if number else []) + argument
            given["__VA_ARGS__"] = extra
        done: list[Token] = []
        body = macro.body
        for at, token in enumerate(body):
            pasted = (at and body[at - 1].text == "##") or (at + 1 < len(body) and body[at + 1].text == "##")
            if token.text == "##":
                continue
            if token.text == "#" and macro.parameters is not None:
                continue
            if at and body[at - 1].text == "#" and macro.parameters is not None and token.text in given:
                text = "".join(part.space + part.text for part in given[token.text]).strip()
                new = [
                    Token("string", '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"', use.line, " ")
                ]
            elif token.text in given and token.kind == "word":
                argument = given[token.text]
                new = argument if pasted else self.expand(argument, hidden, depth + 1)
                self._budget -= len(new)
            else:
                new = [token]
            if at and body[at - 1].text == "##" and done and new:
                joined = lex(done[-1].text + new[0].text, use.line)
                if len(joined) != 1:
                    raise Unreadable(f"## in the macro {macro.name} does not make one word", use.line)
                done[-1:] = joined
                new = new[1:]
            for number, part in enumerate(new):
                spaced = part.space if number else token.space
                done.append(replace(part, line=use.line, space=" " if spaced else "", comments=()))
        if done:
            done[0] = replace(done[0], space=use.space, comments=use.comments)
        return done


def _arguments(tokens: list[Token], at: int, macro: Macro) -> tuple[list[list[Token]], int]:
    """The arguments of the call whose "(" is at `at`, and where what follows it begins."""
    line = tokens[at].line
    found: list[list[Token]] = [[]]
    depth = 0
    for end in range(at, len(tokens)):
        token = tokens[end]
        # Only parentheses protect a comma from the preprocessor.
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            if found == [[]] and not macro.parameters:
                found = []
            wanted = len(macro.parameters or ())
            if len(found) < wanted or (len(found) > wanted and not macro.variadic):
                raise Unreadable(
                    f"the macro {macro.name} takes {wanted} arguments and got {len(found)}", line
                )
            return found, end + 1
        if token.text == "," and depth == 1:
            found.append([])
        elif end > at:
            found[-1].append(token)
    raise Unreadable(f"the call of the macro {macro.name} has no end", line)


# -- every way a compiler may read a text ---------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """What a text is where these conditions on the compiler's own names hold, or do not. `#pragma`, `#line`
    and `#error` are still among the tokens, with the macros of `#pragma unroll` expanded."""

    conditions: tuple[tuple[str, bool], ...]
    tokens: tuple[Token, ...]


class _Undecided(Exception):
    """A condition that only the compiler can decide."""


def readings(
    tokens: Sequence[Token],
    is_foreign: Callable[[str], bool],
    defines: Iterable[tuple[str, str]] = (),
    most: int = 32,
) -> tuple[Reading, ...]:
    """`is_foreign`: whether a compiler may define a name of its own accord; every other name is a macro only
    where the text or `defines` says so. Those in which conditions hold come first. Raises Unreadable."""
    given = tuple(defines)
    found: list[Reading] = []
    waiting: list[dict[str, bool]] = [{}]
    while waiting:
        decided = waiting.pop()
        if len(found) + len(waiting) >= most:
            raise Unreadable(f"#if on names that the compiler defines leaves more than {most} readings")
        work = _Strict(is_foreign, decided)
        for name, value in given:
            work.define(f"{name} {value}", 0)
        try:
            for token in tokens:
                work.take(token)
            work.flush()
        except _Undecided as question:
            waiting += [{**decided, str(question): False}, {**decided, str(question): True}]
            continue
        if work.open_conditions:
            raise Unreadable("this #if has no #endif", work.open_conditions[-1].line)
        if work.problems:
            line, _, words = work.problems[0].removeprefix("line ").partition(": ")
            raise Unreadable(words, int(line))
        found.append(Reading(tuple(decided.items()), tuple(work.done)))
    return tuple(found)


class _Strict(_Preprocessor):
    def __init__(self, is_foreign: Callable[[str], bool], decided: Mapping[str, bool]) -> None:
        super().__init__(knows_headers=False)
        self._is_foreign, self._decided = is_foreign, decided

    def _directive(self, word: str, rest: str, token: Token) -> None:
        if word in ("line", "error"):
            self.done.append(token)
        elif word == "pragma" and rest.startswith("unroll"):
            count = _Expansion(self._macros, _MAX_TOKENS).expand(lex(rest[6:], token.line), frozenset(), 0)
            words = " ".join(["pragma unroll", *map(str, count)])
            self.done.append(replace(token, text=words))
        else:
            super()._directive(word, rest, token)

    def _holds(self, word: str, rest: str, line: int) -> bool:
        asked = f"defined({first_word(rest)[0]})" if word != "if" else rest
        tokens = _decided_defined(lex(asked, line), self._macros, self._asks)
        tokens = _Expansion(self._macros, _MAX_TOKENS).expand(tokens, frozenset(), 0)
        if any(token.kind == "word" and self._asks(token.text) for token in tokens):
            question = " ".join(map(str, tokens))
            if question not in self._decided:
                raise _Undecided(question)
            return self._decided[question] == (word != "ifndef")
        return super()._holds(word, rest, line)

    def _asks(self, name: str) -> bool:
        return name not in self._macros and self._is_foreign(name)
