"""What the words before a declaration's body say: its kind, and what it is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from tunesmith.csource.lex import Token, split_at

ItemKind = Literal["macro", "function", "record", "alias", "variable", "using"]
RECORDS = frozenset({"struct", "class", "union", "enum"})
OPENS, CLOSES = frozenset("([{"), frozenset(")]}")
_BEFORE = frozenset({"__align__", "__attribute__", "alignas"})
# A word with parentheses behind it that is no function's name.
_ATTRIBUTES = frozenset({
    "__launch_bounds__", "__attribute__", "alignas", "__align__", "decltype", "noexcept", "__declspec",
    "explicit", "__cluster_dims__", "__maxnreg__", "requires", "__builtin_align__", "sizeof",
    "__block_size__",
})  # fmt: skip
LOUD = re.compile(r"[A-Z][A-Z0-9_]{3,}")


def closing(tokens: Sequence[Token], at: int) -> int:
    """Where what follows the bracket at `at` and all inside it begins."""
    depth = 0
    for end in range(at, len(tokens)):
        text = tokens[end].text
        depth += (text in OPENS) - (text in CLOSES)
        if depth == 0:
            return end + 1
    return len(tokens)


def after_template(tokens: Sequence[Token], at: int) -> int:
    """Past `template <...>`, all of them."""
    while at + 1 < len(tokens) and tokens[at].text == "template" and tokens[at + 1].text == "<":
        at = _after_angles(tokens, at + 1)
    return at


def _after_angles(tokens: Sequence[Token], at: int) -> int:
    depth = round_ = 0
    for end in range(at, len(tokens)):
        text = tokens[end].text
        round_ += (text in OPENS) - (text in CLOSES)
        if round_ == 0:
            depth += {"<": 1, ">": -1, ">>": -2}.get(text, 0)
            if depth <= 0:
                return end + 1
    return len(tokens)


def shape_of(head: Sequence[Token]) -> tuple[ItemKind, tuple[str, ...], bool] | None:
    """Kind and names; None: nothing that others could need."""
    at = after_template(head, 0)
    words = [t for t in head[at:] if t.kind != "directive"]
    texts = [t.text for t in words]
    if not texts or texts[0] in ("template", "static_assert", "friend", "asm"):
        return None
    if texts[0] == "extern" and texts[1:2] == ["template"]:
        return None
    if texts[0] in ("using", "namespace"):
        return _used(texts)
    if texts[0] == "typedef":
        pointer = next((texts[i + 2] for i in range(len(texts) - 2) if texts[i : i + 2] == ["(", "*"]), None)
        return "alias", (pointer or next(t for t in reversed(texts) if t.isidentifier()),), True
    aligned = texts[after_attributes(words, 0) :]
    plain = [t for t in aligned if t not in ("inline", "static", "constexpr", "const", "__device__")]
    if plain and plain[0] in RECORDS:
        return "record", _record_names(words), False
    return _function_or_variable(words)


def after_attributes(tokens: Sequence[Token], at: int) -> int:
    """`__align__(8) struct Pair { ... };` is a struct."""
    while at + 1 < len(tokens) and tokens[at].text in _BEFORE and tokens[at + 1].text == "(":
        at = closing(tokens, at + 1)
    return at


def _used(texts: Sequence[str]) -> tuple[ItemKind, tuple[str, ...], bool]:
    if texts[0] == "using" and texts[1:2] == ["namespace"]:
        return "using", (), True
    if "=" in texts:
        return "alias", (texts[1],), True
    return "alias", (next((t for t in reversed(texts) if t.isidentifier()), ""),), True


def _record_names(words: Sequence[Token]) -> tuple[str, ...]:
    texts = [t.text for t in words]
    at = next(i for i, text in enumerate(texts) if text in RECORDS) + 1
    name = ""
    while at < len(texts):
        text = texts[at]
        if text == "(":
            at, name = closing(words, at), ""
            continue
        if text == "[":
            at = closing(words, at)
            continue
        if text in (":", "<", "final"):
            break
        if text.isidentifier() and text not in ("class", "struct"):
            name = text
        at += 1
    return (name,)


def enumerators(tokens: Sequence[Token]) -> tuple[str, ...]:
    at = next((i for i, t in enumerate(tokens) if t.text == "{"), None)
    if at is None:
        return ()
    listed = split_at(",", tokens[at + 1 : closing(tokens, at) - 1])
    return tuple(part[0].text for part in listed if part and part[0].kind == "word")


def typedef_names(tokens: Sequence[Token]) -> tuple[str, ...]:
    at = next(i for i, t in enumerate(tokens) if t.text == "{")
    return tuple(t.text for t in tokens[closing(tokens, at) :] if t.kind == "word")


def _function_or_variable(words: Sequence[Token]) -> tuple[ItemKind, tuple[str, ...], bool] | None:
    texts = [t.text for t in words]
    at, depth = 0, 0
    while at < len(texts):
        text = texts[at]
        if text == "operator":
            end = next((i for i in range(at + 2, len(texts)) if texts[i] == "("), len(texts))
            return "function", ("operator" + "".join(texts[at + 1 : end]),), False
        if text in _ATTRIBUTES and texts[at + 1 : at + 2] == ["("]:
            at = closing(words, at + 1)
            continue
        if text == "<" and at and words[at - 1].kind == "word":
            at = _after_angles(words, at)
            continue
        if text == "[" and texts[at + 1 : at + 2] == ["["]:
            at = closing(words, at)
            continue
        if text == "(" and depth == 0:
            before = _callee(words, at)
            if before is None:
                return None
            if LOUD.fullmatch(before) and _more_follows(words, at):  # an attribute that is a macro
                at = closing(words, at)
                continue
            return "function", (before,), False
        if text in ("=", "[", "{"):
            break
        at += 1
    names = [t for t in texts[:at] if t.isidentifier()]
    return ("variable", (names[-1],), True) if len(names) > 1 else None


def _more_follows(words: Sequence[Token], at: int) -> bool:
    end = closing(words, at)
    return end < len(words) and words[end].kind == "word" and words[end].text not in ("const", "noexcept")


def _callee(words: Sequence[Token], at: int) -> str | None:
    """The name before "(", of a member that is defined outside its class the class."""
    end = at - 1
    if end >= 0 and words[end].text == ">":  # name<...>( of a specialisation
        depth = 0
        while end >= 0:
            depth += {">": 1, "<": -1, ">>": 2}.get(words[end].text, 0)
            end -= 1
            if depth <= 0:
                break
    if end < 0 or words[end].kind != "word":
        return None
    first = end
    while first >= 2 and words[first - 1].text == "::":
        first -= 2
        if words[first].text == ">":
            depth = 0
            while first >= 0:
                depth += {">": 1, "<": -1}.get(words[first].text, 0)
                first -= 1
                if depth == 0:
                    break
    return words[first].text if words[first].kind == "word" else words[end].text
