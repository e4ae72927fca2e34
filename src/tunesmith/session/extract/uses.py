"""Which names of others a declaration uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tunesmith.csource.lex import Token, first_word, lex
from tunesmith.session.extract.items import FileItem

_NO_TYPES = frozenset({
    "return", "else", "case", "goto", "new", "delete", "sizeof", "throw", "operator", "typename", "do",
    "struct", "class", "enum", "union", "using", "namespace", "template", "co_return", "alignof", "if",
    "while",
    "not", "and", "or", "inline", "decltype",
})  # fmt: skip
_BEHIND_NAME = frozenset({"=", ";", ",", ")", "[", "{", ":", "("})


@dataclass(frozen=True)
class NameUse:
    name: str
    qualifiers: tuple[str, ...]  # a::b before it; "" first: from the top
    line: int
    declared_here: bool  # the same word names a parameter or a variable of the declaration


def uses_of(item: FileItem) -> tuple[NameUse, ...]:
    tokens = tuple(_words(item.tokens))
    own = _own_names(item, tokens)
    found: dict[tuple[str, tuple[str, ...]], NameUse] = {}
    for at, token in enumerate(tokens):
        if token.kind != "word" or (at and tokens[at - 1].text in (".", "->")):
            continue
        qualifiers = _qualifiers(tokens, at)
        if qualifiers is None:
            continue
        key = (token.text, qualifiers)
        found.setdefault(key, NameUse(token.text, qualifiers, token.line, token.text in own))
    return tuple(found.values())


def _words(tokens: Sequence[Token]) -> Iterator[Token]:
    """With what stands in conditions and pragmas."""
    for token in tokens:
        if token.kind != "directive":
            yield token
            continue
        word, rest = first_word(token.text)
        if word in ("if", "elif", "ifdef", "ifndef", "pragma"):
            yield from (part for part in lex(rest, token.line) if part.kind == "word")


def _qualifiers(tokens: Sequence[Token], at: int) -> tuple[str, ...] | None:
    """None: a member of what a template makes."""
    found: list[str] = []
    while at >= 1 and tokens[at - 1].text == "::":
        if at < 2 or tokens[at - 2].kind != "word" or tokens[at - 2].text in _NO_TYPES:
            return None if at >= 2 and tokens[at - 2].text == ">" else ("", *reversed(found))
        found.append(tokens[at - 2].text)
        at -= 2
    return tuple(reversed(found))


def _own_names(item: FileItem, tokens: Sequence[Token]) -> frozenset[str]:
    """Parameters and variables: a word behind a type, and before what ends a name."""
    if item.kind == "macro":
        return frozenset()
    own = set(_parameters(item, tokens)) - set(item.names) if item.kind == "function" else set()
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.kind != "word" or after.text not in _BEHIND_NAME or token.text in item.names:
            continue
        typed = before.kind == "word" and before.text not in _NO_TYPES
        if typed or (
            before.text in ("*", "&", ">") and after.text in (",", ")", "=", ";") and _declares(token, tokens)
        ):
            own.add(token.text)
    return frozenset(own)


def _parameters(item: FileItem, tokens: Sequence[Token]) -> Iterator[str]:
    """Names of parameters: the last word of each, before what it is by default."""
    depth, last = 0, ""
    pairs = pairwise(tokens)
    start = next(
        (at for at, (name, mark) in enumerate(pairs) if (name.text, mark.text) == (item.name, "(")), 0
    )
    for token in tokens[start:]:
        if token.text == "{" and depth == 0:
            return
        depth += (token.text == "(") - (token.text == ")")
        if depth == 1 and token.kind == "word":
            last = token.text
        elif (depth == 1 and token.text in (",", "=", "[")) or (depth == 0 and token.text == ")"):
            if last:
                yield last
            last = ""


def _declares(token: Token, tokens: Sequence[Token]) -> bool:
    """Whether the line starts with a type: `const T* x = `, not `y = a * x`."""
    line = [t for t in tokens if t.line == token.line and t.offset <= token.offset]
    return bool(line) and line[0].kind == "word" and not any(t.text in ("=", "(", "return") for t in line)
