"""Namespaces of a file, on its words: aliases written out, constants of one name told apart, then none left.

Functions are read without the file's own namespaces. Two constants of one name in different namespaces,
`rows::kWidth` and `tiles::kWidth`, get names of their own first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tunesmith.csource.lex import Token

_STARTS = frozenset({"constexpr", "const", "static", "inline", "__constant__"})


def with_aliases_written_out(tokens: tuple[Token, ...], language: str) -> tuple[Token, ...]:
    """`namespace cg = cooperative_groups;` goes, and `cg::` is written as what it stands for."""
    if language == "opencl" or not any(token.text == "namespace" for token in tokens):
        return tokens
    aliases: dict[str, list[Token]] = {}
    kept: list[Token] = []
    at = 0
    while at < len(tokens):
        words = [token.text for token in tokens[at : at + 3]]
        following = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if words[:1] == ["namespace"] and words[2:] == ["="]:
            end = next((i for i in range(at, len(tokens)) if tokens[i].text == ";"), len(tokens) - 1)
            aliases[words[1]] = [token for token in tokens[at + 3 : end] if token.text]
            at = end + 1
        elif words[0] in aliases and following == "::" and (not at or tokens[at - 1].text != "::"):
            here = tokens[at]
            written = [replace(token, line=here.line, comments=(), space="") for token in aliases[words[0]]]
            kept += [replace(written[0], space=here.space, comments=here.comments), *written[1:]]
            at += 1
        else:
            kept.append(tokens[at])
            at += 1
    return tuple(kept)


def without_own_namespaces(tokens: tuple[Token, ...], names: frozenset[str]) -> tuple[Token, ...]:
    """Functions are read without the file's own namespaces, so `ns::`, `using namespace ns` and `using ns::f`
    go."""
    if not names:
        return tokens
    kept: list[Token] = []
    at = 0
    while at < len(tokens):
        words = [token.text for token in tokens[at : at + 4]]
        before = tokens[at - 1].text if at else ""
        if words[:2] == ["using", "namespace"] and words[2] in names and words[3:] == [";"]:
            at += 4
        elif words[0] == "using" and words[1] in names and words[2:3] == ["::"]:
            at = next((i for i in range(at, len(tokens)) if tokens[i].text == ";"), len(tokens) - 1) + 1
        elif words[0] in names and words[1:2] == ["::"] and before not in ("namespace", "::"):
            space, comments = tokens[at].space, tokens[at].comments
            kept += [
                replace(follower, space=space, comments=(*comments, *follower.comments))
                for follower in tokens[at + 2 : at + 3]
            ]
            at += 3
        else:
            kept.append(tokens[at])
            at += 1
    return tuple(kept)


def with_constants_apart(tokens: tuple[Token, ...], names: frozenset[str]) -> tuple[Token, ...]:
    """`ns::name`, and `name` inside of `ns`, as `ns_name`, where several namespaces have such a constant."""
    if len(names) < 2:
        return tokens
    places = list(_places(tokens))
    homes: dict[str, set[tuple[str, ...]]] = {}
    for at, name in _constants(tokens):
        homes.setdefault(name, set()).add(places[at])
    homes = {name: found for name, found in homes.items() if len(found) > 1}
    if not homes:
        return tokens
    words = {token.text for token in tokens}
    done = list(tokens)
    for at, token in enumerate(tokens):
        if token.text not in homes or (at and tokens[at - 1].text in (".", "->")):
            continue
        home = _home(tokens, at, places[at], homes[token.text])
        whole = "_".join((*home, token.text)) if home else token.text
        if home and whole not in words:
            done[at] = replace(token, text=whole)
    return tuple(done)


def _places(tokens: Sequence[Token]) -> Iterator[tuple[str, ...]]:
    """Of each token, the named namespaces around it."""
    stack: list[str | None] = []  # None: braces of something else
    for at, token in enumerate(tokens):
        yield tuple(name for name in stack if name)
        if token.text == "{":
            before = [t.text for t in tokens[max(at - 2, 0) : at]]
            named = len(before) == 2 and before[0] == "namespace"
            stack.append(before[1] if named else "" if before[-1:] == ["namespace"] else None)
        elif token.text == "}" and stack:
            stack.pop()


def _constants(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Where constants of namespaces, or of the file, get their values: the place of the name, and it."""
    depth = opened = 0
    start = True
    for at, token in enumerate(tokens):
        if token.text == "{":
            opened += at > 0 and "namespace" in (tokens[at - 1].text, tokens[max(at - 2, 0)].text)
            depth += 1
        elif token.text == "}":
            opened -= depth == opened
            depth -= 1
        elif start and depth == opened and token.text in _STARTS:
            end = next((i for i in range(at, len(tokens)) if tokens[i].text in ("=", ";", "(", "{")), at)
            if tokens[end].text == "=" and tokens[end - 1].kind == "word":
                yield end - 1, tokens[end - 1].text
        start = token.text in (";", "{", "}") or token.kind == "directive"


def _home(
    tokens: Sequence[Token], at: int, place: tuple[str, ...], homes: set[tuple[str, ...]]
) -> tuple[str, ...]:
    """The namespace that a name is looked up in: the one before it, or the innermost around it."""
    before: list[str] = []
    while at >= 2 and tokens[at - 1].text == "::" and tokens[at - 2].kind == "word":
        before.insert(0, tokens[at - 2].text)
        at -= 2
    if before:
        found = [home for home in homes if home[-len(before) :] == tuple(before)]
        return found[0] if len(found) == 1 else ()
    for length in range(len(place), -1, -1):
        if place[:length] in homes:
            return place[:length]
    return ()
