"""The items of a file, cut apart by their braces: each is read by itself where one spoils the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunesmith.expert.c.lex import Token


def top_level_items(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """Functions, declarations and directives in order; namespaces and extern "C" are opened."""
    item: list[Token] = []
    depth, opened = 0, 0
    for token in tokens:
        if depth == 0 and token.kind == "directive":
            yield from _whole(item)
            yield (token,)
            item = []
            continue
        if depth == 0 and token.text == "{" and _opens_names(item):
            opened += 1
            item = []
            continue
        if depth == 0 and token.text == "}" and opened:
            opened -= 1
            yield from _whole(item)
            item = []
            continue
        item.append(token)
        depth = max(depth + {"{": 1, "}": -1}.get(token.text, 0), 0)
        if depth == 0 and (token.text == ";" or (token.text == "}" and not _is_type(item))):
            yield from _whole(item)
            item = []
    yield from _whole(item)


def _whole(item: list[Token]) -> Iterator[tuple[Token, ...]]:
    if item:
        yield tuple(item)


def _opens_names(item: list[Token]) -> bool:
    words = [token.text for token in item]
    return words[:1] == ["namespace"] or words[:2] in (["extern", '"C"'], ["inline", "namespace"])


def _is_type(item: list[Token]) -> bool:
    """`struct S { ... }` goes on to its semicolon; so does a list of values after `=`."""
    head = []
    for token in item:
        if token.text in ("{", "("):
            break
        head.append(token.text)
    return bool({"struct", "class", "union", "enum", "typedef", "="} & set(_after_template(head)))


def _after_template(words: list[str]) -> list[str]:
    """`template <class T>` says nothing about what follows it."""
    if words[:1] != ["template"]:
        return words
    depth = 0
    for at, word in enumerate(words):
        depth += {"<": 1, ">": -1, ">>": -2}.get(word, 0)
        if at and depth <= 0:
            return words[at + 1 :]
    return words
