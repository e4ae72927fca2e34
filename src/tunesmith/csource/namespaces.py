"""Namespaces of a file, on its words: every name looked up as C++ does, then none left.

Functions, types and constants are read without the file's own namespaces. A name that could mean another
one then (two namespaces have it, the library has it, or somebody calls what is not visible there) gets a
spelling of its own first: `rows::width` is `rows_width`. Where C++ would weigh what several namespaces
have, nothing is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tunesmith.csource.effect_words import is_function
from tunesmith.csource.lex import Token, closing_angle
from tunesmith.csource.nodes import Unreadable
from tunesmith.csource.scopes import FileScope, FileScopes, Path, scopes_of
from tunesmith.csource.types import size_of

_LIBRARIES = frozenset({
    "cub", "hipcub", "std", "cuda", "cooperative_groups", "thrust", "nvcuda", "rocprim", "hip",
})  # fmt: skip
# Names that `is_function` knows for OpenCL's sake: CUDA and HIP have no such functions.
_OPENCL = frozenset({
    "clamp", "mix", "step", "smoothstep", "sign", "select", "shuffle", "shuffle2", "cross", "dot", "distance",
    "length", "normalize", "degrees", "radians", "rotate", "upsample", "mad", "mad24", "mul24", "mul_hi",
    "hadd", "rhadd", "bitselect", "divide", "recip", "powr", "pown", "rootn", "any", "all", "prefetch",
    "fract", "barrier",
})  # fmt: skip
_BEFORE_NAMES = frozenset({
    "return", "case", "else", "do", "throw", "const", "constexpr", "volatile", "static", "inline", "typename",
    "struct", "class", "enum", "sizeof", "new", "and", "or", "not", "using",
    "__device__", "__host__", "__global__", "__forceinline__", "__shared__", "__constant__",
})  # fmt: skip
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class FlatWords:
    """`spellings`: of each name of a namespace, "a::f" -> what it is called without any."""

    tokens: tuple[Token, ...]
    spellings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Use:
    start: int  # of the words that go: `a::` before a name, or none
    at: int
    homes: frozenset[Path]  # those of the file's that are found; none: not the file's, or not known


def flattened(tokens: tuple[Token, ...], language: str) -> FlatWords:
    """Raises Unreadable where a name may mean what several namespaces have."""
    if language == "opencl" or not any(token.text == "namespace" for token in tokens):
        return FlatWords(tokens)
    lookup = _Lookup(tokens, scopes_of(tokens))
    uses = list(lookup.uses())
    words = {token.text for token in tokens}
    spelled: dict[tuple[Path, str], str] = {}
    for name in sorted(lookup.apart()):
        for path in sorted(path for path in lookup.scopes.declared[name] if path):
            spelled[path, name] = _unused("_".join((*path, name)), words)
    for use in uses:
        if len(use.homes) > 1 and lookup.scopes.of[use.at].device:
            token = tokens[use.at]
            homes = " or ".join("::".join((*path, token.text)) for path in sorted(use.homes))
            raise Unreadable(f"`{token.text}` may be {homes}: name the namespace that is meant", token.line)
    done: list[tuple[Token, ...]] = [(token,) for token in tokens]
    for use in uses:
        token, home = tokens[use.at], next(iter(use.homes), ())
        first = tokens[use.start]
        said = tuple(comment for word in tokens[use.start : use.at + 1] for comment in word.comments)
        text = spelled.get((home, token.text), token.text)
        done[use.start : use.at] = [()] * (use.at - use.start)
        done[use.at] = (replace(token, text=text, space=first.space, comments=said),)
    for at, path in lookup.foreign:
        done[at] = tuple(_written(tokens[at], path))
    for at, token in enumerate(tokens):
        if token.kind == "directive" and spelled:
            done[at] = (replace(token, text=lookup.directive(token.text, at, spelled)),)
    for start, end in lookup.scopes.gone:
        done[start : end + 1] = [()] * (end + 1 - start)
    names = {
        "::".join((*path, name)): spelled.get((path, name), name)
        for name, homes in lookup.scopes.declared.items()
        for path in homes
        if path
    }
    return FlatWords(tuple(token for some in done for token in some), tuple(names.items()))


def _written(here: Token, path: Path) -> Iterator[Token]:
    """`a::b` in place of a word."""
    for at, word in enumerate(path):
        if at:
            yield replace(here, kind="mark", text="::", space="", comments=())
            yield replace(here, text=word, space="", comments=())
        else:
            yield replace(here, text=word)


def _unused(name: str, words: set[str]) -> str:
    while name in words:
        name += "_"
    words.add(name)
    return name


def _is_library(name: str) -> bool:
    return is_function(name) or size_of(name, "cuda") is not None


class _Lookup:
    def __init__(self, tokens: Sequence[Token], scopes: FileScopes) -> None:
        self.tokens, self.scopes = tokens, scopes
        self.foreign: list[tuple[int, Path]] = []  # aliases of what is not the file's
        self._hidden: set[str] = set()  # called where the file's own is not seen
        self._inside = {name for name, homes in scopes.declared.items() if any(homes)}

    def apart(self) -> set[str]:
        """Names that need spellings of their own."""
        declared = self.scopes.declared
        return {
            name
            for name in self._inside
            if len(declared[name]) > 1
            or name in self._hidden
            or (_is_library(name) and not self._extends_library(name))
        }

    def _extends_library(self, name: str) -> bool:
        """An overload for its own records alone, `__ldg(const bf16 *)`: types tell it from the library's."""
        homes = self.scopes.declared[name]
        return len(homes) == 1 and all(self.scopes.is_for_records(name, path) for path in homes)

    def uses(self) -> Iterator[_Use]:
        """Every place at which a name of a namespace of the file is meant."""
        at = 0
        while at < len(self.tokens):
            token = self.tokens[at]
            if token.kind != "word" and not self._starts_global(at):
                at += 1
                continue
            if not self._is_member(at) and self._before(at) != "namespace":
                chain = self._chain(at)
                use = self._qualified(at, chain) if len(chain) > 1 else self._plain(at)
                if use is not None:
                    yield use
                    at = use.at
                elif len(chain) > 1:
                    at = chain[-1]
            at += 1

    def _before(self, at: int) -> str:
        return self.tokens[at - 1].text if at else ""

    def _is_member(self, at: int) -> bool:
        before = self._before(at)
        before = self._before(at - 1) if before == "template" else before
        return before in (".", "->", "::")

    def _starts_global(self, at: int) -> bool:
        """`::` with no name before it."""
        if self.tokens[at].text != "::" or not self._inside_chain(at):
            return False
        before = self.tokens[at - 1] if at else None
        names = before is not None and (before.kind == "word" or before.text in (">", ">>"))
        return not names or (before is not None and before.text in _BEFORE_NAMES)

    def _inside_chain(self, at: int) -> bool:
        return at + 1 < len(self.tokens) and self.tokens[at + 1].kind == "word"

    def _chain(self, at: int) -> list[int]:
        """Places of the words in `a::b::f`; the first is that of `::` where it starts there."""
        places = [at]
        if self.tokens[at].text == "::":
            places.append(at + 1)
        while (
            places[-1] + 2 < len(self.tokens)
            and self.tokens[places[-1] + 1].text == "::"
            and self.tokens[places[-1] + 2].kind == "word"
        ):
            places.append(places[-1] + 2)
        return places

    # -- a::f ---------------------------------------------------------------------------------------------

    def _qualified(self, at: int, chain: list[int]) -> _Use | None:
        words = ["" if self.tokens[place].text == "::" else self.tokens[place].text for place in chain]
        scope = self.scopes.of[at]
        path = self.scopes.space(words[:1], scope, at)
        if path is None:  # Op::apply, or a library's
            return self._plain(at) if words[0] in self._inside else None
        first, count = path, 1
        while count < len(words) - 1 and self._opens((*path, words[count])):
            path = self.scopes.space(["", *path, words[count]], scope, at) or ()
            count += 1
        place, name = chain[count], words[count]
        homes = self._in_space(name, path, at)
        if homes or not path:
            return _Use(at, place, homes)
        known = name in self.scopes.declared or _is_library(name) or path[0] in _LIBRARIES
        if path in self.scopes.spaces and not known:
            return _Use(at, place, frozenset())  # not seen among what is declared, and no other is meant
        if first != (words[0],):
            self.foreign.append((at, first))
        return None

    def _opens(self, path: Path) -> bool:
        return path in self.scopes.spaces or path in self.scopes.inner

    def _in_space(self, name: str, path: Path, at: int) -> frozenset[Path]:
        """Of `path::name`: what it declares, or has brought in."""
        if path in self.scopes.declared.get(name, ()):
            return frozenset({path})
        spaces = {id(s): s for s in self.scopes.opened.values() if s.path == path}
        brought = {p for s in spaces.values() for since, p in s.brought.get(name, ()) if since < at}
        led = {p for s in spaces.values() for since, p in s.directives if since < at}
        return frozenset(brought or {p for p in led if p in self.scopes.declared.get(name, ())})

    # -- f ------------------------------------------------------------------------------------------------

    def _plain(self, at: int) -> _Use | None:
        name = self.tokens[at].text
        if name not in self._inside:
            return None
        if at in self.scopes.places:
            return _Use(at, at, frozenset({self.scopes.places[at]}))
        homes = self._found(name, self.scopes.of[at], at)
        if homes is None:
            return None
        if self._is_call(at) and _is_library(name) and self._extends_library(name):
            homes = frozenset(self.scopes.declared[name])
        elif self._is_call(at):
            others = (path for path in self.scopes.declared[name] if path not in homes)
            homes |= {path for path in others if self.scopes.is_found_by_argument(name, path)}
            if not homes:
                self._hidden.add(name)
        return _Use(at, at, homes)

    def _is_call(self, at: int) -> bool:
        behind = at + 1
        if behind < len(self.tokens) and self.tokens[behind].text == "<":
            behind = (closing_angle(self.tokens, behind) or behind) + 1
        return behind < len(self.tokens) and self.tokens[behind].text == "("

    def _found(self, name: str, scope: FileScope, at: int) -> frozenset[Path] | None:
        """The namespaces in which C++ finds a name at a place: (): the file; None: a member hides them."""
        declared = self.scopes.declared[name]
        led: set[tuple[Path, Path]] = set()  # namespaces whose names are seen, and from where
        here: FileScope | None = scope
        while here is not None:
            led |= {(_common(here.path, path), path) for since, path in here.directives if since < at}
            if name in here.members and name != here.name:
                return None
            if brought := {path for since, path in here.brought.get(name, ()) if since < at}:
                return frozenset(brought | (self._beside(name) if here.outer is None else set()))
            for path in _added(here):
                homes = {path, *(to for seen, to in led if seen == path)}
                if homes := {home for home in homes if home in declared and declared[home].at < at}:
                    is_seen_beside = not path and () not in homes
                    return frozenset(homes | (self._beside(name) if is_seen_beside else set()))
            here = here.outer
        return frozenset({()}) if _is_library(name) else frozenset()

    def _beside(self, name: str) -> set[Path]:
        """The file's scope, where the library has overloads of the name that C++ would weigh as well."""
        weighed = is_function(name) and name not in _OPENCL and not self._extends_library(name)
        return {()} if weighed else set()

    def directive(self, text: str, at: int, spelled: dict[tuple[Path, str], str]) -> str:
        """`#pragma unroll N`, with the spelling of N."""

        def word(match: re.Match[str]) -> str:
            name = match[0]
            homes = self._found(name, self.scopes.of[at], at) if name in self._inside else None
            home = next(iter(homes), ()) if homes else ()
            return spelled.get((home, name), name)

        return _WORD.sub(word, text) if text.lstrip().startswith("pragma") else text


def _added(scope: FileScope) -> Iterator[Path]:
    """The namespaces that a scope opens, from the inside out."""
    known = len(_common(scope.path, scope.outer.path)) if scope.outer is not None else -1
    for length in range(len(scope.path), known, -1):
        yield scope.path[:length]


def _common(one: Path, other: Path) -> Path:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return one[:length]
