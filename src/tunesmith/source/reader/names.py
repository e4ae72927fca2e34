"""Namespaces of a file, on its words: every name looked up as C++ does, then none left.

Functions, types and constants are read without the file's own namespaces. A name that could mean another
one then (two namespaces have it, the library has it, or somebody calls what is not visible there) gets a
spelling of its own first: `rows::width` is `rows_width`. Where C++ would weigh what several namespaces
have, nothing is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Literal

from tunesmith.source.effects import is_function
from tunesmith.source.lex import Token, closing_angle, closing_bracket
from tunesmith.source.reader.grammar import DROPPED_GROUPS
from tunesmith.source.tree import Unreadable
from tunesmith.source.types import size_of

# -- What the words of a file declare, and where: namespaces, records and blocks, before anything is parsed.


Path = tuple[str, ...]  # named namespaces from the outside in; (): the file
_RECORDS = frozenset({"struct", "class", "union"})
_GROUPS = DROPPED_GROUPS | {"__align__", "alignas", "decltype", "noexcept", "asm", "__asm__"}
_DEVICE = frozenset({"__global__", "__device__", "constexpr"})
_BEHIND_MEMBER = frozenset({";", "=", "(", "[", ",", "{"})
_OPENERS = frozenset("([{")


@dataclass
class FileScope:
    kind: Literal["namespace", "record", "enum", "block"]
    path: Path
    outer: FileScope | None
    name: str = ""  # of a record
    device: bool = True  # False: in a function of the host
    members: set[str] = field(default_factory=set)  # of a record, or of the one whose method this is
    directives: list[tuple[int, Path]] = field(default_factory=list)  # using namespace, from where on
    brought: dict[str, list[tuple[int, Path]]] = field(default_factory=dict)  # using a::f
    aliases: dict[str, list[tuple[int, Path]]] = field(default_factory=dict)  # namespace b = a


@dataclass(frozen=True)
class Declared:
    """A name of a namespace: where it is declared first, and what may lead to it from elsewhere: the types of
    a function's parameters."""

    at: int
    takes: tuple[frozenset[str], ...] = ()  # words of the parameters, of each overload
    is_generic: bool = False


@dataclass
class FileScopes:
    of: list[FileScope] = field(default_factory=list)  # of each word
    spaces: set[Path] = field(default_factory=set)  # namespaces that the file opens itself
    inner: set[Path] = field(default_factory=set)  # inline ones, under the names that they may be given
    declared: dict[str, dict[Path, Declared]] = field(default_factory=dict)
    gone: list[tuple[int, int]] = field(default_factory=list)  # using and aliases that mean the file's own
    places: dict[int, Path] = field(default_factory=dict)  # of words that declare: for which namespace
    records: dict[str, set[Path]] = field(default_factory=dict)  # and enumerations
    members: dict[str, set[str]] = field(default_factory=dict)  # of records
    opened: dict[tuple[int, Path], FileScope] = field(default_factory=dict)

    def space(self, words: Sequence[str], scope: FileScope, at: int) -> Path | None:
        """The namespace that `a::b` names at a place; None: the file neither opens nor renames it."""
        if not words:
            return scope.path
        if words[0] == "":
            return self._plain(tuple(words[1:]))
        here: FileScope | None = scope
        while here is not None:
            targets = [path for since, path in here.aliases.get(words[0], ()) if since < at]
            if targets:
                return self._plain((*targets[-1], *words[1:]))
            here = here.outer
        for length in range(len(scope.path), -1, -1):
            path = (*scope.path[:length], words[0])
            if path in self.spaces or path in self.inner:
                return self._plain((*path, *words[1:]))
        return None

    def _plain(self, path: Path) -> Path:
        """Without the names of inline namespaces."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.inner:
                path = (*path[: length - 1], *path[length:])
        return path

    def declare(
        self, name: str, path: Path, at: int, takes: frozenset[str] = frozenset(), is_generic: bool = False
    ) -> None:
        self.places[at] = path
        found = self.declared.setdefault(name, {})
        before = found.get(path, Declared(at))
        found[path] = Declared(before.at, (*before.takes, takes), before.is_generic or is_generic)

    def is_found_by_argument(self, name: str, path: Path) -> bool:
        """Whether a call with an object of `path` finds the function, wherever it stands."""
        one, here = self.declared[name][path], self._records_in(path)
        return any(takes & here for takes in one.takes) or (one.is_generic and bool(here))

    def is_for_records(self, name: str, path: Path) -> bool:
        """Whether every function of the name takes a record of `path`."""
        one, here = self.declared[name][path], self._records_in(path)
        return all(takes & here for takes in one.takes)

    def _records_in(self, path: Path) -> set[str]:
        return {record for record, homes in self.records.items() if path in homes}


def scopes_of(tokens: Sequence[Token]) -> FileScopes:
    found = FileScopes()
    here = FileScope("namespace", (), None)
    around: list[tuple[FileScope, int]] = []  # with where the declaration goes on from behind the brace
    start = 0  # of the declaration or statement that is being read
    for at, token in enumerate(tokens):
        found.of.append(here)
        if token.kind == "directive":
            start = at + 1
        elif token.text == "{":
            inner = _open_scope(found, tokens[start:at], here, start, tokens)
            goes_on = inner is None or inner.kind == "record" or inner.kind == "enum"
            around.append((here, start if goes_on else -1))
            here, start = inner or FileScope("block", here.path, here, device=here.device), at + 1
        elif token.text == "}" and around:
            here, start = around.pop()
            start = at + 1 if start < 0 else start
        elif token.text == ";":
            _read_scope_item(found, tokens[start:at], here, start)
            start = at + 1
    return found


def _open_scope(
    found: FileScopes, head: Sequence[Token], here: FileScope, start: int, tokens: Sequence[Token]
) -> FileScope | None:
    """The scope that a brace behind these words opens; None: a list of values."""
    words = [token.text for token in head]
    if words[:1] == ["namespace"] or words[:2] == ["inline", "namespace"]:
        return _open_namespace(found, [w for w in words if w.isidentifier()], here)
    if len(words) == 2 and words[0] == "extern":
        return FileScope("namespace", here.path, here)
    at = _behind_template(head)
    marks = _outside_groups(head[at:])
    kind = next((word for word in words[at:] if word in _RECORDS or word == "enum"), "")
    if kind and "(" not in marks and "=" not in marks:
        name = _record_name(found, head, at, here, start)
        if kind == "enum":
            _declare_enumerators(found, head, tokens, here, start + len(head))
            return FileScope("enum", here.path, here)
        members = found.members[name] = _find_member_names(tokens, start + len(head))
        return FileScope("record", here.path, here, name, here.device, members)
    if here.kind == "block":
        return FileScope("block", here.path, here, device=here.device)
    if "=" in marks or "(" not in marks:
        return None
    qualifier = _declare_function(found, head, at, here, start)
    device = bool(_DEVICE & set(words)) if here.kind == "namespace" else here.device
    scope = FileScope("block", here.path, here, device=device)
    if qualifier:  # what is defined outside of its namespace, or of its record, sees what is in there
        for length in (len(qualifier), len(qualifier) - 1):
            space = found.space(qualifier[:length], here, start)
            if space is not None and (space in found.spaces or not space):
                scope.path = space
                break
        scope.members = found.members.get(qualifier[-1], scope.members)
    return scope


def _open_namespace(found: FileScopes, words: list[str], here: FileScope) -> FileScope:
    names = tuple(words[words.index("namespace") + 1 :])
    if not names:
        return FileScope("namespace", here.path, here)
    if words[0] == "inline":
        found.inner.add((*here.path, *names))
        return FileScope("namespace", here.path, here)
    for length in range(len(names)):
        found.spaces.add((*here.path, *names[: length + 1]))
    # A namespace that is opened again knows what was brought into it before.
    path = (*here.path, *names)
    return found.opened.setdefault((id(here), path), FileScope("namespace", path, here))


def _behind_template(head: Sequence[Token]) -> int:
    at = 0
    while at + 1 < len(head) and head[at].text == "template" and head[at + 1].text == "<":
        end = closing_angle(head, at + 1)
        if end is None:
            return at
        at = end + 1
    return at


def _outside_groups(head: Sequence[Token]) -> dict[str, int]:
    """Signs outside of brackets and of `alignas(16)`, with the place of the first of each."""
    marks: dict[str, int] = {}
    at = 0
    while at < len(head):
        text = head[at].text
        if text in _GROUPS and at + 1 < len(head) and head[at + 1].text == "(":
            at = closing_bracket(head, at + 1)
        elif text == "<" and at and head[at - 1].kind == "word" and (end := closing_angle(head, at)):
            at = end
        elif text in _OPENERS:
            marks.setdefault(text, at)
            at = closing_bracket(head, at)
        else:
            marks.setdefault(text, at)
        at += 1
    return marks


def _record_name(found: FileScopes, head: Sequence[Token], at: int, here: FileScope, start: int) -> str:
    while at < len(head) and head[at].text not in _RECORDS | {"enum"}:
        at += 1
    at += 1
    while at < len(head) and (head[at].text in _RECORDS or head[at].text in _GROUPS):
        at = closing_bracket(head, at + 1) + 1 if head[at].text in _GROUPS else at + 1
    if at >= len(head) or head[at].kind != "word":
        return ""
    if here.kind == "namespace":
        found.declare(head[at].text, here.path, start + at)
        found.records.setdefault(head[at].text, set()).add(here.path)
    return head[at].text


def _find_member_names(tokens: Sequence[Token], at: int) -> set[str]:
    """Names that stand right in a record and are followed by what follows a member's name."""
    found: set[str] = set()
    depth = 0
    for place in range(at, len(tokens)):
        text, is_word = tokens[place].text, tokens[place].kind == "word"
        follower = tokens[place + 1].text if place + 1 < len(tokens) else ""
        is_named = tokens[place - 1].text not in ("::", "{", ";") and follower in _BEHIND_MEMBER
        if depth == 1 and is_word and is_named:
            found.add(text)
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(text, 0)
        if depth == 0:
            break
    return found


def _declare_enumerators(
    found: FileScopes, head: Sequence[Token], tokens: Sequence[Token], here: FileScope, brace: int
) -> None:
    words = [token.text for token in head]
    if here.kind != "namespace" or words[words.index("enum") + 1 :][:1] in (["class"], ["struct"]):
        return
    for place in range(brace + 1, closing_bracket(tokens, brace)):
        if tokens[place].kind == "word" and tokens[place - 1].text in ("{", ","):
            found.declare(tokens[place].text, here.path, place)


def _declare_function(
    found: FileScopes, head: Sequence[Token], at: int, here: FileScope, start: int
) -> list[str]:
    """Declares it; the words before its name, `a::f` -> a."""
    marks = _outside_groups(head[at:])
    end = at + marks["("] if "(" in marks else len(head)
    place = end - 1
    if place >= at and head[place].text in (">", ">>"):  # f<float>(
        depth = 0
        while place > at:
            depth += {">": 1, ">>": 2, "<": -1}.get(head[place].text, 0)
            place -= 1
            if depth == 0:
                break
    if place < at or head[place].kind != "word" or "operator" in [t.text for t in head[at:end]]:
        return []
    words = _qualifier_words(head, place)
    if here.kind != "namespace" or place == at:
        return words
    path = found.space(words, here, start + place)
    if path is not None and (path in found.spaces or not path):
        takes = (
            {t.text for t in head[end : closing_bracket(head, end) + 1]} if end < len(head) else set[str]()
        )
        generic = {t.text for t in head[:at] if t.kind == "word"} - {"template", "int", "bool"}
        found.declare(head[place].text, path, start + place, frozenset(takes), bool(takes & generic))
    return words


def _qualifier_words(tokens: Sequence[Token], at: int) -> list[str]:
    """The words before `::name`, "" for the file."""
    words: list[str] = []
    while at >= 1 and tokens[at - 1].text == "::":
        if at < 2 or tokens[at - 2].kind != "word":
            return ["", *words]
        words.insert(0, tokens[at - 2].text)
        at -= 2
    return words


def _read_scope_item(found: FileScopes, head: Sequence[Token], here: FileScope, start: int) -> None:
    words = [token.text for token in head]
    match words[:2]:
        case ["using", "namespace"]:
            path = found.space(_split_qualified_name(words[2:]), here, start)
            if path is not None and path in found.spaces:
                here.directives.append((start, path))
                found.gone.append((start, start + len(head)))
        case ["namespace", name] if words[2:3] == ["="]:
            target = _split_qualified_name(words[3:])
            path = found.space(target, here, start) or tuple(word for word in target if word)
            here.aliases.setdefault(name, []).append((start, path))
            found.gone.append((start, start + len(head)))
        case ["using", _] if "=" not in words:
            if here.kind == "record":
                return
            path = found.space(_split_qualified_name(words[1:-2]), here, start)
            if path is not None and path in found.spaces:
                here.brought.setdefault(words[-1], []).append((start, path))
                found.gone.append((start, start + len(head)))
            else:
                here.brought.setdefault(words[-1], []).append((start, ()))
        case ["using", name] if here.kind == "namespace":
            found.declare(name, here.path, start + 1)
        case _ if here.kind == "namespace" and len(head) > 1:
            _declare_names(found, head, here, start)


def _split_qualified_name(words: Sequence[str]) -> list[str]:
    """`::a::b` as "", a, b."""
    return ([""] if words[:1] == ["::"] else []) + [word for word in words if word.isidentifier()]


def _declare_names(found: FileScopes, head: Sequence[Token], here: FileScope, start: int) -> None:
    at = _behind_template(head)
    marks = _outside_groups(head[at:])
    if head[at].text == "typedef":
        if head[-1].kind == "word":
            found.declare(head[-1].text, here.path, start + len(head) - 1)
        return
    if "(" in marks and marks["("] < marks.get("=", len(head)):
        _declare_function(found, head, at, here, start)
        return
    if head[at].text in _RECORDS | {"enum"} and "{" not in marks and "=" not in marks and len(head) - at <= 3:
        _record_name(found, head, at, here, start)
        return
    for place in _find_variable_places(head, at):
        if not _qualifier_words(head, place):
            found.declare(head[place].text, here.path, start + place)


def _find_variable_places(head: Sequence[Token], at: int) -> Iterator[int]:
    """Places of the names in `const int a = 1, b[2]`."""
    depth, open_ = 0, True
    for place in range(at, len(head) + 1):
        text = head[place].text if place < len(head) else ","
        ends = depth == 0 and text in ("=", "[", ",", "{")
        if ends and open_ and place > at + 1 and head[place - 1].kind == "word":
            yield place - 1
            open_ = False
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text, 0)
        if text == "<" and closing_angle(head, place) is not None and depth == 0 and open_:
            depth += 1
        elif text in (">", ">>") and depth == 1 and open_:
            depth = 0
        if text == "," and depth == 0:
            open_ = True


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


def flatten_namespaces(tokens: tuple[Token, ...], language: str) -> FlatWords:
    """Raises Unreadable where a name may mean what several namespaces have."""
    if language == "opencl" or not any(token.text == "namespace" for token in tokens):
        return FlatWords(tokens)
    lookup = _Lookup(tokens, scopes_of(tokens))
    uses = list(lookup.uses())
    words = {token.text for token in tokens}
    spelled: dict[tuple[Path, str], str] = {}
    for name in sorted(lookup.apart()):
        for path in sorted(path for path in lookup.scopes.declared[name] if path):
            spelled[path, name] = _reserve_unused_name("_".join((*path, name)), words)
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
        done[at] = tuple(_spell_path(tokens[at], path))
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


def _spell_path(here: Token, path: Path) -> Iterator[Token]:
    """`a::b` in place of a word."""
    for at, word in enumerate(path):
        if at:
            yield replace(here, kind="mark", text="::", space="", comments=())
            yield replace(here, text=word, space="", comments=())
        else:
            yield replace(here, text=word)


def _reserve_unused_name(name: str, words: set[str]) -> str:
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
                chain = self._qualified_chain(at)
                use = self._look_up_qualified(at, chain) if len(chain) > 1 else self._plain(at)
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

    def _qualified_chain(self, at: int) -> list[int]:
        """Places of the words in `a::b::f`; the first is that of `::` where it starts there."""
        places = [at]
        if self.tokens[at].text == "::":
            places.append(at + 1)
        while self._inside_chain(places[-1] + 1) and self.tokens[places[-1] + 1].text == "::":
            places.append(places[-1] + 2)
        return places

    def _look_up_qualified(self, at: int, chain: list[int]) -> _Use | None:
        words = ["" if self.tokens[place].text == "::" else self.tokens[place].text for place in chain]
        scope = self.scopes.of[at]
        path = self.scopes.space(words[:1], scope, at)
        if path is None:  # Op::apply, or a library's
            return self._plain(at) if words[0] in self._inside else None
        first, count = path, 1
        while count < len(words) - 1 and self._is_namespace_path((*path, words[count])):
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

    def _is_namespace_path(self, path: Path) -> bool:
        return path in self.scopes.spaces or path in self.scopes.inner

    def _in_space(self, name: str, path: Path, at: int) -> frozenset[Path]:
        """Of `path::name`: what it declares, or has brought in."""
        if path in self.scopes.declared.get(name, ()):
            return frozenset({path})
        spaces = {id(s): s for s in self.scopes.opened.values() if s.path == path}
        brought = {p for s in spaces.values() for since, p in s.brought.get(name, ()) if since < at}
        led = {p for s in spaces.values() for since, p in s.directives if since < at}
        return frozenset(brought or {p for p in led if p in self.scopes.declared.get(name, ())})

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
            used = (path for since, path in here.directives if since < at)
            led |= {(_common_path_prefix(here.path, path), path) for path in used}
            if name in here.members and name != here.name:
                return None
            if brought := {path for since, path in here.brought.get(name, ()) if since < at}:
                return frozenset(brought | (self._beside(name) if here.outer is None else set()))
            for path in _added_namespaces(here):
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


def _added_namespaces(scope: FileScope) -> Iterator[Path]:
    """The namespaces that a scope opens, from the inside out."""
    known = len(_common_path_prefix(scope.path, scope.outer.path)) if scope.outer is not None else -1
    for length in range(len(scope.path), known, -1):
        yield scope.path[:length]


def _common_path_prefix(one: Path, other: Path) -> Path:
    return tuple(
        word for word, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    )
