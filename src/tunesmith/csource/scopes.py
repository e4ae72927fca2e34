"""What the words of a file declare, and where: namespaces, records and blocks, before anything is parsed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tunesmith.csource.grammar import DROPPED_GROUPS
from tunesmith.csource.lex import Token, closing_angle

Path = tuple[str, ...]  # named namespaces from the outside in; (): the file
_RECORDS = frozenset({"struct", "class", "union"})
_GROUPS = DROPPED_GROUPS | {"__align__", "alignas", "decltype", "noexcept", "asm", "__asm__"}
_DEVICE = frozenset({"__global__", "__device__", "constexpr"})
_BEHIND_MEMBER = frozenset({";", "=", "(", "[", ",", "{"})
_CLOSERS = {"(": ")", "[": "]", "{": "}"}


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
    places: dict[int, Path] = field(
        default_factory=dict
    )  # words that declare, and the namespace they do it for
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
            inner = _opened(found, tokens[start:at], here, start, tokens)
            goes_on = inner is None or inner.kind == "record" or inner.kind == "enum"
            around.append((here, start if goes_on else -1))
            here, start = inner or FileScope("block", here.path, here, device=here.device), at + 1
        elif token.text == "}" and around:
            here, start = around.pop()
            start = at + 1 if start < 0 else start
        elif token.text == ";":
            _item(found, tokens[start:at], here, start)
            start = at + 1
    return found


def _opened(
    found: FileScopes, head: Sequence[Token], here: FileScope, start: int, tokens: Sequence[Token]
) -> FileScope | None:
    """The scope that a brace behind these words opens; None: a list of values."""
    words = [token.text for token in head]
    if words[:1] == ["namespace"] or words[:2] == ["inline", "namespace"]:
        return _space(found, [w for w in words if w.isidentifier()], here)
    if len(words) == 2 and words[0] == "extern":
        return FileScope("namespace", here.path, here)
    at = _behind_template(head)
    marks = _outside_groups(head[at:])
    kind = next((word for word in words[at:] if word in _RECORDS or word == "enum"), "")
    if kind and "(" not in marks and "=" not in marks:
        name = _record_name(found, head, at, here, start)
        if kind == "enum":
            _enumerators(found, head, tokens, here, start + len(head))
            return FileScope("enum", here.path, here)
        members = found.members[name] = _members(tokens, start + len(head))
        return FileScope("record", here.path, here, name, here.device, members)
    if here.kind == "block":
        return FileScope("block", here.path, here, device=here.device)
    if "=" in marks or "(" not in marks:
        return None
    qualifier = _function(found, head, at, here, start)
    device = bool(_DEVICE & set(words)) if here.kind == "namespace" else here.device
    scope = FileScope("block", here.path, here, device=device)
    if qualifier:  # what is defined outside of its namespace, or of its record, sees what is in there
        for length in (len(qualifier), len(qualifier) - 1):
            own = found.space(qualifier[:length], here, start)
            if own is not None and (own in found.spaces or not own):
                scope.path = own
                break
        scope.members = found.members.get(qualifier[-1], scope.members)
    return scope


def _space(found: FileScopes, words: list[str], here: FileScope) -> FileScope:
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
            at = _group_end(head, at + 1)
        elif text == "<" and at and head[at - 1].kind == "word" and (end := closing_angle(head, at)):
            at = end
        elif text in _CLOSERS:
            marks.setdefault(text, at)
            at = _group_end(head, at)
        else:
            marks.setdefault(text, at)
        at += 1
    return marks


def _group_end(tokens: Sequence[Token], at: int) -> int:
    opener, depth = tokens[at].text, 0
    for end in range(at, len(tokens)):
        depth += {opener: 1, _CLOSERS[opener]: -1}.get(tokens[end].text, 0)
        if depth == 0:
            return end
    return len(tokens) - 1


def _record_name(found: FileScopes, head: Sequence[Token], at: int, here: FileScope, start: int) -> str:
    while at < len(head) and head[at].text not in _RECORDS | {"enum"}:
        at += 1
    at += 1
    while at < len(head) and (head[at].text in _RECORDS or head[at].text in _GROUPS):
        at = _group_end(head, at + 1) + 1 if head[at].text in _GROUPS else at + 1
    if at >= len(head) or head[at].kind != "word":
        return ""
    if here.kind == "namespace":
        found.declare(head[at].text, here.path, start + at)
        found.records.setdefault(head[at].text, set()).add(here.path)
    return head[at].text


def _members(tokens: Sequence[Token], at: int) -> set[str]:
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


def _enumerators(
    found: FileScopes, head: Sequence[Token], tokens: Sequence[Token], here: FileScope, brace: int
) -> None:
    words = [token.text for token in head]
    if here.kind != "namespace" or words[words.index("enum") + 1 :][:1] in (["class"], ["struct"]):
        return
    for place in range(brace + 1, _group_end(tokens, brace)):
        if tokens[place].kind == "word" and tokens[place - 1].text in ("{", ","):
            found.declare(tokens[place].text, here.path, place)


def _function(found: FileScopes, head: Sequence[Token], at: int, here: FileScope, start: int) -> list[str]:
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
    words = _qualifier(head, place)
    if here.kind != "namespace" or place == at:
        return words
    path: Path | None = here.path
    if words:
        path = found.space(words, here, start + place)
    if path is not None and (path in found.spaces or not path):
        takes = {t.text for t in head[end : _group_end(head, end) + 1]} if end < len(head) else set[str]()
        generic = {t.text for t in head[:at] if t.kind == "word"} - {"template", "int", "bool"}
        found.declare(head[place].text, path, start + place, frozenset(takes), bool(takes & generic))
    return words


def _qualifier(tokens: Sequence[Token], at: int) -> list[str]:
    """The words before `::name`, "" for the file."""
    words: list[str] = []
    while at >= 1 and tokens[at - 1].text == "::":
        if at < 2 or tokens[at - 2].kind != "word":
            return ["", *words]
        words.insert(0, tokens[at - 2].text)
        at -= 2
    return words


def _item(found: FileScopes, head: Sequence[Token], here: FileScope, start: int) -> None:
    words = [token.text for token in head]
    match words[:2]:
        case ["using", "namespace"]:
            path = found.space(_names(words[2:]), here, start)
            if path is not None and path in found.spaces:
                here.directives.append((start, path))
                found.gone.append((start, start + len(head)))
        case ["namespace", name] if words[2:3] == ["="]:
            target = _names(words[3:])
            path = found.space(target, here, start) or tuple(word for word in target if word)
            here.aliases.setdefault(name, []).append((start, path))
            found.gone.append((start, start + len(head)))
        case ["using", _] if "=" not in words:
            if here.kind == "record":
                return
            path = found.space(_names(words[1:-2]), here, start)
            if path is not None and path in found.spaces:
                here.brought.setdefault(words[-1], []).append((start, path))
                found.gone.append((start, start + len(head)))
            else:
                here.brought.setdefault(words[-1], []).append((start, ()))
        case ["using", name] if here.kind == "namespace":
            found.declare(name, here.path, start + 1)
        case _ if here.kind == "namespace" and len(head) > 1:
            _declaration(found, head, here, start)


def _names(words: Sequence[str]) -> list[str]:
    """`::a::b` as "", a, b."""
    return ([""] if words[:1] == ["::"] else []) + [word for word in words if word.isidentifier()]


def _declaration(found: FileScopes, head: Sequence[Token], here: FileScope, start: int) -> None:
    at = _behind_template(head)
    marks = _outside_groups(head[at:])
    if head[at].text == "typedef":
        if head[-1].kind == "word":
            found.declare(head[-1].text, here.path, start + len(head) - 1)
        return
    if "(" in marks and marks["("] < marks.get("=", len(head)):
        _function(found, head, at, here, start)
        return
    if head[at].text in _RECORDS | {"enum"} and "{" not in marks and "=" not in marks and len(head) - at <= 3:
        _record_name(found, head, at, here, start)
        return
    for place in _variables(head, at):
        if not _qualifier(head, place):
            found.declare(head[place].text, here.path, start + place)


def _variables(head: Sequence[Token], at: int) -> Iterator[int]:
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
