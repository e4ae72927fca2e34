"""Long lines of C as several: broken where the fewest parentheses are open, and set below what these hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

WIDTH = 118
_DEEP = 72  # a column from which a line is too short to go on in
_STEP = 4
# Before these a line is broken, the weakest first; behind commas and semicolons sooner than before any.
_OPERATORS = ("? :", "||", "&&", "| ^ &", "+ -", "* / %")
_RANK = {word: rank for rank, words in enumerate(_OPERATORS, 1) for word in words.split()}
_EQUALS = len(_OPERATORS) + 1  # behind these last of all
_ASSIGNED = re.compile(r" (?:[-+*/%&|^]|<<|>>)?= $")
_BRACKETS = re.compile(r"[(\[{]|[)\]}]|(?<=\w)<(?=\w)|(?<=[\w*>])>(?=[:(>*]|$| \w)")


@dataclass(frozen=True)
class _Break:
    depth: int
    rank: int
    at: int
    opened: tuple[int, ...]  # columns behind the brackets that are open there


def wrapped(line: str, width: int = WIDTH) -> list[str]:
    """The line, or what it is broken into; directives, comments and lines with strings stay as they are."""
    if len(line) <= width or '"' in line or line.lstrip().startswith(("#", "//")):
        return [line]
    indent = len(line) - len(line.lstrip())
    code, mark, said = line.partition("  // ")
    if mark:
        return [f"{' ' * indent}// {said}", *wrapped(code, width)]
    further = indent + (2 * _STEP if code.endswith(("{", ")")) else _STEP)  # below a head is a step in
    found: list[str] = []
    opened: tuple[int, ...] = ()
    while len(code) > width:
        places = [place for place in _breaks(code, opened) if place.at <= width + 1]
        if not places:
            break
        best = min(places, key=lambda place: (place.depth, place.rank, -place.at))
        found.append(code[: best.at].rstrip())
        opened = best.opened
        column = max((at for at in opened if at <= _DEEP), default=further)
        code = " " * column + code[best.at :]
    return [*found, code]


def _breaks(code: str, opened: tuple[int, ...]) -> Iterator[_Break]:
    start = len(code) - len(code.lstrip())
    brackets = {found.start(): found[0] for found in _BRACKETS.finditer(code)}
    for at in range(start, len(code)):
        if at > start and code[at - 1] == " ":
            rank = _rank(code, at)
            if rank is not None:
                yield _Break(len(opened), rank, at, opened)
        if (bracket := brackets.get(at)) is not None:
            opened = (*opened, at + 1) if bracket in "([{<" else opened[:-1]


def _rank(code: str, at: int) -> int | None:
    """How firmly what stands around the place holds together; None: no place to break a line at."""
    if code[at - 2] in ",;":
        return 0
    if _ASSIGNED.search(code, 0, at):
        return _EQUALS
    return _RANK.get(code[at:].partition(" ")[0])
