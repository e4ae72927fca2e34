"""Structs that a kernel takes by value, as their fields: what each is, and where it lies in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.csource.lex import Token, lex
from tunesmith.expert.reading.headers import elements_of
from tunesmith.problem.problem import TYPES
from tunesmith.session.extract.items import FileItem
from tunesmith.session.extract.naming import after_template, closing

MOST_FIELDS = 96
_POINTER = 8  # bytes
_ACCESSOR = re.compile(r"(?:\w+::)*(?:Generic)?PackedTensorAccessor(32|64)?<(.*)>")
_IDLE = frozenset({"__restrict__", "__restrict", "restrict", "volatile", "mutable", "struct", "typename"})
_DEPTH = 6
# Words that change where fields lie, or hide what they are.
_MOVING = frozenset(
    {"alignas", "_Alignas", "__align__", "__attribute__", "__declspec", "decltype", "virtual"}
)
_PLAIN_TYPES = frozenset(
    {"void", "bool", "char", "short", "int", "long", "float", "double", "half", "signed", "unsigned", "auto"}
)
_OF_FUNCTIONS = frozenset({"explicit", "constexpr", "inline", "const", "friend", "__host__", "__device__"})


@dataclass(frozen=True)
class StructField:
    """A scalar or a pointer inside a struct. `path`: from the struct to it, ".rows" or ".sizes_[1]"."""

    path: str
    type: str  # of a parameter that holds it: "const float*", "int"
    offset: int
    size: int
    enum: str = ""  # the enumeration that it is, whose number is passed

    @property
    def is_pointer(self) -> bool:
        return self.type.endswith("*")


class NoFields(Exception):
    """Why a struct cannot be taken apart, in words."""


@dataclass(frozen=True)
class _StructLayout:
    fields: tuple[StructField, ...]
    size: int
    alignment: int


Find = Callable[[str], FileItem | None]  # a record's or an alias's declaration


def accessor_of(type_: str) -> tuple[str, int, str] | None:
    """A tensor accessor's elements, axes and the type of its indices."""
    match = _ACCESSOR.fullmatch(type_.replace(" ", "").replace("const", "const "))
    if match is None:
        return None
    parts = split_arguments(match[2])
    if len(parts) < 2 or not parts[1].isdecimal():
        return None
    index = "int" if match[1] == "32" or (len(parts) > 3 and parts[3].startswith("int32")) else "long"
    return parts[0], int(parts[1]), index


def size_of(type_: str, find: Find) -> int:
    """In bytes, of a type that is passed by value and whose fields are known."""
    accessor = accessor_of(type_)
    if accessor is None:
        return _layout(type_, find, _DEPTH).size
    last = list(_accessor_fields(*accessor))[-1]
    return -(-(last.offset + last.size) // _POINTER) * _POINTER


def fields_of(type_: str, find: Find) -> tuple[StructField, ...]:
    """Of a type that is passed by value; none where it is a plain one. Raises NoFields."""
    if elements_of(type_, "cuda")[0] is not None:
        return ()
    accessor = accessor_of(type_)
    if accessor is not None:
        return tuple(_accessor_fields(*accessor))
    found = _layout(type_, find, _DEPTH).fields
    if len(found) > MOST_FIELDS:
        raise NoFields(f"{type_} has {len(found)} fields, at most {MOST_FIELDS} are taken apart")
    return found


def _accessor_fields(element: str, axes: int, index: str) -> Iterator[StructField]:
    width = 4 if index == "int" else 8
    yield StructField(".data_", f"{element}*", 0, _POINTER)
    for which, name in enumerate(("sizes_", "strides_")):
        for axis in range(axes):
            offset = _POINTER + width * (which * axes + axis)
            yield StructField(f".{name}[{axis}]", index, offset, width)


def _layout(type_: str, find: Find, depth: int) -> _StructLayout:
    if type_.rstrip().endswith("*"):
        return _StructLayout((StructField("", type_, 0, _POINTER),), _POINTER, _POINTER)
    plain = re.sub(r"\bconst\b", "", type_).strip()
    element, vector = elements_of(plain, "cuda")
    if element is not None and vector == 1:
        size = TYPES[element].bytes
        return _StructLayout((StructField("", plain, 0, size),), size, size)
    name, arguments = plain.partition("<")[0].strip(), plain.partition("<")[2].rpartition(">")[0]
    item = find(name.split("::")[-1])
    if item is None or depth == 0:
        raise NoFields(f"{plain} is not known")
    if item.kind == "record" and item.tokens[0].text == "enum":
        return _enumeration(item, plain)
    if item.kind == "alias":
        meaning = _meaning(item)
        return _layout(meaning, find, depth - 1)
    return _record(item, split_arguments(arguments), find, depth - 1)


def _enumeration(item: FileItem, name: str) -> _StructLayout:
    texts = [token.text for token in item.tokens]
    head = texts[: texts.index("{")] if "{" in texts else texts
    type_ = " ".join(head[head.index(":") + 1 :]) if ":" in head else "int"
    element = elements_of(type_, "cuda")[0]
    if element is None:
        raise NoFields(f"{name} is an enumeration of {type_}")
    size = TYPES[element].bytes
    return _StructLayout((StructField("", type_, 0, size, name),), size, size)


def _meaning(item: FileItem) -> str:
    texts = [token.text for token in item.tokens]
    if texts[0] == "using" and "=" in texts:
        return _text(item.tokens[texts.index("=") + 1 :])
    if texts[0] == "typedef" and "{" not in texts:
        return _text([t for t in item.tokens[1:] if t.text != ";"][:-1])
    raise NoFields(f"{item.name} is defined in a way that is not read")


def _record(item: FileItem, arguments: Sequence[str], find: Find, depth: int) -> _StructLayout:
    tokens = list(item.tokens)
    texts = [token.text for token in tokens]
    start = after_template(tokens, 0)
    if "{" not in texts or texts[start] not in ("struct", "class", "typedef"):
        raise NoFields(f"{item.name} is no struct whose fields can be read")
    opening = texts.index("{", start)
    head = texts[start:opening]
    end = closing(tokens, opening)
    if moving := [text for text in (*head, *texts[end:]) if text in _MOVING]:
        raise NoFields(f"{item.name} is declared with {moving[0]}: where its fields lie is not known")
    meanings = dict(zip(_parameters(texts[:start]), arguments, strict=False))
    fields: list[StructField] = []
    at, widest = 0, 1
    if ":" in head:
        inherited = [t for t in head[head.index(":") + 1 :] if t not in ("public", "private", "protected")]
        if "," in inherited:
            raise NoFields(f"{item.name} has several bases")
        base = _layout("".join(inherited), find, depth)
        fields, at, widest = list(base.fields), base.size, base.alignment
        if not fields:
            at = 0
        elif max(field.offset + field.size for field in fields) < at:
            raise NoFields(f"{item.name} has a base that ends with padding, which fields may lie in")
    has_base = ":" in head
    for type_, name, counts in _members(tokens[opening + 1 : end - 1], meanings, item.name):
        one = _layout(type_, find, depth)
        if has_base and not one.fields:
            raise NoFields(f"{item.name} has a base and a field without contents")
        widest = max(widest, one.alignment)
        at = -(-at // one.alignment) * one.alignment
        for index in _indices(counts):
            fields += [
                StructField(
                    f".{name}{index}{inner.path}", inner.type, at + inner.offset, inner.size, inner.enum
                )
                for inner in one.fields
            ]
            at += one.size
            if len(fields) > MOST_FIELDS:
                raise NoFields(f"{item.name} has more than {MOST_FIELDS} fields")
    return _StructLayout(tuple(fields), max(-(-at // widest) * widest, 1), widest)


def _parameters(head: Sequence[str]) -> list[str]:
    """Of `template <typename T, int N>`."""
    inside = " ".join(head).partition("<")[2].rpartition(">")[0]
    return [part.split("=")[0].split()[-1] for part in inside.split(",") if part.strip()]


def _members(
    tokens: Sequence[Token], meanings: dict[str, str], own: str
) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Type, name and array extents; `meanings` grows by the struct's own aliases and constants. `own`: the
    struct's name, which constructors have."""
    for statement in _statements(tokens, own):
        texts = [token.text for token in statement]
        if texts[0] == "using" and "=" in texts:
            meanings[texts[1]] = _text(_replaced(statement[texts.index("=") + 1 :], meanings))
            continue
        if texts[0] == "typedef":
            meanings[texts[-1]] = _text(_replaced(statement[1:-1], meanings))
            continue
        if "static" in texts:
            if "=" in texts and texts.index("=") > 1:
                meanings[texts[texts.index("=") - 1]] = _text(statement[texts.index("=") + 1 :])
            continue
        if moving := [text for text in texts if text in _MOVING]:
            raise NoFields(f"'{_text(statement)}' has {moving[0]}: where it lies is not known")
        if texts[0] in ("struct", "class", "enum", "union", "friend", "template") and "{" in texts:
            raise NoFields("a struct is defined inside of it")
        yield from _declared(_replaced([t for t in statement if t.text not in _IDLE], meanings))


def _statements(tokens: Sequence[Token], own: str) -> Iterator[list[Token]]:
    """Those that declare fields or names: functions and access words are left out. Raises NoFields: a
    statement with brackets may be a function or not."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        text = tokens[at].text
        if text in ("public", "private", "protected") and at + 1 < len(tokens) and tokens[at + 1].text == ":":
            at, found = at + 2, []
            continue
        if text == ";":
            if found:
                yield found
            found = []
        elif text == "(" and not _has_value(found):
            if not _is_function(tokens, at, found, own):
                raise NoFields(f"'{_text([*found, tokens[at]])}...' may be a field or a function")
            at = _after_function(tokens, at)
            found = []
            continue
        elif text in ("{", "("):
            end = closing(tokens, at)
            found += tokens[at:end]
            at = end
            continue
        elif tokens[at].kind != "directive":
            found.append(tokens[at])
        elif re.search(r"\bpack\b", text):
            raise NoFields("its fields are packed by a pragma")
        at += 1


def _has_value(found: Sequence[Token]) -> bool:
    texts = [token.text for token in found]
    return "operator" not in texts and any(text in ("=", "using", "typedef") for text in texts)


def _is_function(tokens: Sequence[Token], at: int, found: Sequence[Token], own: str) -> bool:
    """Whether the bracket at `at`, behind what was found of a statement, clearly begins parameters."""
    texts = [token.text for token in found]
    if not texts or any(text in _MOVING for text in texts):
        return False
    if "operator" in texts or texts == ["static_assert"]:
        return True
    end = closing(tokens, at)
    inside, behind = tokens[at + 1].text, tokens[end].text if end < len(tokens) else ";"
    if found[-1].kind != "word" or texts[-1] in _PLAIN_TYPES or inside in ("*", "&", "(") or behind == "(":
        return False
    words = [text for text in texts if text not in _OF_FUNCTIONS]
    return len(words) > 1 or words == [own]


def _after_function(tokens: Sequence[Token], at: int) -> int:
    """Behind a method's body, or behind the semicolon of its declaration."""
    at = closing(tokens, at)
    while at < len(tokens):
        if tokens[at].text == ";":
            return at + 1
        if tokens[at].text == "{":
            end = closing(tokens, at)
            # Braces may initialise a member, `: a{1}`, before the body.
            if end >= len(tokens) or tokens[end].text not in (",", "{"):
                return end
            at = end
        else:
            at = closing(tokens, at) if tokens[at].text == "(" else at + 1
    return at


def _replaced(tokens: Sequence[Token], meanings: Mapping[str, str]) -> list[Token]:
    for _ in range(4):
        done: list[Token] = []
        for token in tokens:
            done += lex(meanings[token.text]) if token.text in meanings else [token]
        if len(done) == len(tokens) and all(a is b for a, b in zip(done, tokens, strict=True)):
            break
        tokens = done
    return list(tokens)


def _declared(tokens: Sequence[Token]) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    parts = list(_at_commas(tokens))
    first = _without_value(parts[0])
    names = [at for at, token in enumerate(first) if token.kind == "word"]
    extents = next((at for at, token in enumerate(first) if token.text == "["), len(first))
    named = [at for at in names if at < extents]
    if len(named) < 2:
        raise NoFields(f"'{_text(tokens)}' is not read")
    place = named[-1]
    stars = [token for token in first[:place] if token.text in ("*", "&")]
    type_ = _text([token for token in first[:place] if token.text not in ("*", "&")])
    if any(token.text == "&" for token in stars):
        raise NoFields("one of its fields is a reference")
    yield type_ + "*" * len(stars), first[place].text, _extents(first[place + 1 :])
    for part in parts[1:]:
        later = _without_value(part)
        words = [at for at, token in enumerate(later) if token.kind == "word"]
        if not words:
            raise NoFields(f"'{_text(tokens)}' is not read")
        own = sum(token.text == "*" for token in later[: words[0]])
        yield type_ + "*" * own, later[words[0]].text, _extents(later[words[0] + 1 :])


def _without_value(tokens: Sequence[Token]) -> list[Token]:
    end = next((at for at, token in enumerate(tokens) if token.text in ("=", "{")), len(tokens))
    return list(tokens[:end])


def _extents(tokens: Sequence[Token]) -> tuple[int, ...]:
    text = "".join(token.text for token in tokens)
    counts = re.findall(r"\[([^\]]*)\]", text)
    if not all(count.isdecimal() for count in counts) or re.sub(r"\[[^\]]*\]", "", text):
        raise NoFields(f"the extents {text} are not numbers")
    return tuple(map(int, counts))


def _indices(counts: Sequence[int]) -> list[str]:
    found = [""]
    for count in counts:
        found = [f"{before}[{at}]" for before in found for at in range(count)]
    return found


def _at_commas(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    part: list[Token] = []
    depth = 0
    for token in tokens:
        depth += (token.text in "([{<") - (token.text in ")]}>") - 2 * (token.text == ">>")
        if token.text == "," and depth == 0:
            yield part
            part = []
        else:
            part.append(token)
    yield part


def split_arguments(text: str) -> list[str]:
    return [_text(part) for part in _at_commas(lex(text)) if part]


def _text(tokens: Sequence[Token]) -> str:
    """With blanks between words alone."""
    text = ""
    for token in tokens:
        both_words = bool(text) and (text[-1].isalnum() or text[-1] == "_") and token.kind == "word"
        text += (" " if both_words else "") + token.text
    return text
