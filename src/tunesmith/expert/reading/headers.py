"""Where kernels begin and end and what their headers say, read from the token stream.

Headers are read from tokens, not from a syntax tree: one construct a grammar does not know, anywhere in the
file, can cost a tree the whole function, while a header always has the same simple shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.csource.nodes import Language
from tunesmith.expert.reading.blanking import ATTRIBUTES, Blanked

_TOKEN = re.compile(r"[^\W\d]\w*|\.?\d(?:'(?=\w)|[eEpP][+-]|[\w.])*|::|->|\.\.\.|\S")
_OPEN, _CLOSE = frozenset("([{<"), frozenset(")]}>")
_MARKERS: Mapping[Language, frozenset[str]] = {
    "opencl": frozenset({"__kernel", "kernel"}),
    "cuda": frozenset({"__global__"}),
    "hip": frozenset({"__global__"}),
}
_DYNAMIC_SHARED = re.compile(r"\bextern\b[^;{}]*\b__shared__\b|\bHIP_DYNAMIC_SHARED\b")
_NOT_A_NAME = ATTRIBUTES | {"noexcept", "requires", "alignas", "void"}


@dataclass(frozen=True)
class Token:
    text: str
    offset: int


@dataclass(frozen=True)
class Header:
    name: str
    namespace: str
    specialised: bool
    template_params: tuple[str, ...]
    parameters: tuple[tuple[str, ...], ...]  # the tokens of each
    launch_bounds: tuple[str, ...] | None
    reqd_work_group_size: tuple[str, ...] | None
    dynamic_shared: bool
    conditional: bool
    offset: int
    body: str | None  # from the code text, braces included; None for a declaration


def read_headers(source: Blanked, language: Language) -> list[Header]:
    tokens = _tokenize(source)
    macros = {name: words(body) for name, body in source.plain_macros().items()}
    markers = _MARKERS[language]
    markers |= {name for name in macros if markers & set(expand((name,), macros))}
    headers = []
    for index, namespace in _marked(tokens, markers):
        header = _read_header(source, tokens, index, namespace, macros)
        if header is not None:
            headers.append(header)
    return headers


def words(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(text))


def expand(tokens: Sequence[str], macros: Mapping[str, Sequence[str]], depth: int = 8) -> tuple[str, ...]:
    """Replace object-like macros, to a limited depth: a macro may name itself."""
    if depth == 0 or not any(token in macros for token in tokens):
        return tuple(tokens)
    replaced = [word for token in tokens for word in macros.get(token, (token,))]
    return expand(replaced[:10_000], macros, depth - 1)


def split(tokens: Sequence[str], separator: str = ",") -> list[tuple[str, ...]]:
    """Split at a separator that stands outside every kind of bracket."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in _OPEN) - (token in _CLOSE)
        if token == separator and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [tuple(part) for part in parts]


def _tokenize(source: Blanked) -> list[Token]:
    tokens = [Token(match.group(), match.start()) for match in _TOKEN.finditer(source.plain)]
    tokens += [Token(mark.kind, mark.offset) for mark in source.marks]
    return sorted(tokens, key=lambda token: token.offset)


def _marked(tokens: Sequence[Token], markers: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Every kernel marker and the namespace it stands in."""
    scopes: list[str] = []
    saved: list[list[str]] = []
    for index, token in enumerate(tokens):
        if token.text in markers:
            yield index, "::".join(scope for scope in scopes if scope)
        elif token.text == "{":
            scopes.append(_namespace_before(tokens, index))
        elif token.text == "}" and scopes:
            scopes.pop()
        elif token.text == "#if":
            saved.append(list(scopes))
        elif token.text == "#else" and saved:  # both branches open the same braces
            scopes = list(saved[-1])
        elif token.text == "#endif" and saved:
            saved.pop()


def _namespace_before(tokens: Sequence[Token], brace: int) -> str:
    start = brace
    while start > 0 and (tokens[start - 1].text == "::" or tokens[start - 1].text.isidentifier()):
        start -= 1
        if tokens[start].text == "namespace":
            return "".join(token.text for token in tokens[start + 1 : brace])
    return ""


def _onwards(tokens: Sequence[Token], start: int) -> Iterator[Token]:
    """The tokens from `start` on, as one choice of conditional branches: always the first of each."""
    depth, skipping = 0, 0
    for token in tokens[start:]:
        if token.text == "#if":
            depth += 1
        elif token.text == "#endif":
            depth = max(depth - 1, 0)
            if skipping and depth < skipping:
                skipping = 0
        elif token.text == "#else":
            # Depth 0 means that the #if stands before `start`: this is the branch that was not taken.
            if depth == 0:
                depth = 1
            skipping = skipping or depth
        elif not skipping:
            yield token


def _read_header(
    source: Blanked, tokens: Sequence[Token], marker: int, namespace: str, macros: Mapping[str, Sequence[str]]
) -> Header | None:
    first = marker
    while first > 0 and tokens[first - 1].text not in (";", "{", "}"):
        first -= 1
    template_params = _template_params([token.text for token in tokens[first:marker]])

    header: list[str] = []
    end: Token | None = None
    depth = 0
    onwards = _onwards(tokens, marker + 1)
    for token in onwards:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text in ("{", ";"):
            end = token
            break
        header.append(token.text)
    groups = list(_groups(header))
    named = [(name, at, group) for name, at, group in groups if name and name not in _NOT_A_NAME]
    if end is None or not named:
        return None
    name, at, group = named[-1]
    template = set(template_params)
    known = {macro: body for macro, body in macros.items() if macro not in template}
    span = slice(end.offset, _body_end(source, onwards) if end.text == "{" else end.offset)
    bounds = [inside for word, _, inside in groups if word == "__launch_bounds__"]
    return Header(
        name=name,
        namespace=namespace,
        specialised=header[at - 1] == ">",
        template_params=template_params,
        parameters=tuple(part for part in split(expand(group, known)) if part and part != ("void",)),
        launch_bounds=tuple(" ".join(part) for part in split(bounds[0])) if bounds else None,
        reqd_work_group_size=_work_group_size(header + [t.text for t in tokens[first:marker]]),
        offset=tokens[marker].offset,
        conditional=any(tokens[marker].offset < mark.offset < end.offset for mark in source.marks),
        dynamic_shared=_DYNAMIC_SHARED.search(source.plain[span]) is not None,
        body=source.code[span] if end.text == "{" else None,
    )


def _template_params(prefix: Sequence[str]) -> tuple[str, ...]:
    if "template" not in prefix:
        return ()
    depth = 0
    inside: list[str] = []
    for token in prefix[prefix.index("template") + 1 :]:
        depth -= token == ">"
        if depth == 0 and token == ">":
            break
        if depth > 0:
            inside.append(token)
        depth += token == "<"
    names = (
        [t for t in split(part, "=")[0] if t.isidentifier() and t not in ("typename", "class")]
        for part in split(inside)
    )
    return tuple(found[-1] for found in names if found)


def _groups(header: Sequence[str]) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Each outer `name(...)`: the name, where its parenthesis opens, what stands inside."""
    depth, start = 0, 0
    for index, token in enumerate(header):
        if token == "(":
            if depth == 0:
                start = index
            depth += 1
        elif token == ")":
            depth -= 1
            if depth == 0:
                yield _name_before(header, start), start, tuple(header[start + 1 : index])


def _name_before(header: Sequence[str], parenthesis: int) -> str:
    index = parenthesis - 1
    if index >= 0 and header[index] == ">":  # a specialisation: name<float>(...)
        depth = 0
        while index >= 0:
            depth += (header[index] == ">") - (header[index] == "<")
            index -= 1
            if depth == 0:
                break
    return header[index] if index >= 0 and header[index].isidentifier() else ""


def _work_group_size(header: Sequence[str]) -> tuple[str, ...] | None:
    for word in ("reqd_work_group_size", "__reqd_work_group_size__"):
        if word in header:
            for name, _, inside in _groups(header[header.index(word) :]):
                if name == word:
                    return tuple(" ".join(part) for part in split(inside))
    return None


def _body_end(source: Blanked, after: Iterator[Token]) -> int:
    depth = 1
    for token in after:
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0:
            return token.offset + 1
    return len(source.code)  # unbalanced: better too much than nothing
