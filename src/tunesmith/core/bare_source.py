"""A source as a compiler sees it when it looks for directives: spliced lines are one, comments are blanks.

What compilers read in more than one way is refused: a reader that goes astray there would take code for a
comment. Newlines that are gone stand as vertical tabs, which are blanks, so that lines can still be counted.
"""

from __future__ import annotations

import re

_SPLICE = re.compile(r"\\[ \t]*\n")
_COMMENT = r"(?P<comment>//[^\n]*|/\*.*?\*/)"
_STRING = r"""(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')"""
_LONE = r"""(?P<lone>/\*|["'])"""  # what was opened and is never closed
# C++ alone: strings in which a line that goes on does not, and numbers with ' between digits.
_RAW = r"""(?P<raw>\b(?:u8|[uUL])?R")"""
_NUMBER = r"(?P<number>(?<![\w.])\.?\d(?:'?\w|[.]|(?<=[eEpP])[+-])*)"
_C = re.compile("|".join((_COMMENT, _STRING, _LONE)), re.DOTALL)
_CPP = re.compile("|".join((_COMMENT, _RAW, _NUMBER, _STRING, _LONE)), re.DOTALL)
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Unreadable(ValueError):
    """Why a source is not read: a sentence that names the line."""


def bare(source: str, is_c: bool) -> str:
    """`is_c`: OpenCL C, else C++."""
    text = source.replace("\r\n", "\n")
    if (found := _CONTROL.search(text) or _TRIGRAPH.search(text)) is not None:
        line = text.count("\n", 0, found.start()) + 1
        shown = found[0] if found[0].isprintable() else f"a control character ({found[0]!a})"
        raise Unreadable(f"line {line}: {shown} is not allowed in a template: compilers disagree on it")
    text = _joined(text)
    kinds, parts, at = _C if is_c else _CPP, [], 0
    for token in kinds.finditer(text):
        if token["lone"] is not None:
            raise Unreadable(f"line {line_at(text, token.start())}: {token['lone']} is opened and not closed")
        if not is_c and token["raw"] is not None:
            line = line_at(text, token.start())
            raise Unreadable(f"line {line}: raw strings are not allowed in a template: write an ordinary one")
        if token["comment"] is not None:
            parts += [text[at : token.start()], " ", "\v" * len(re.findall(r"[\n\v]", token[0]))]
            at = token.end()
    return "".join([*parts, text[at:]])


def _joined(text: str) -> str:
    """Lines that go on as one, with what is left of their ends behind it."""
    parts, at, gone = [], 0, 0
    for splice in _SPLICE.finditer(text):
        if gone and (end := text.find("\n", at, splice.start())) >= 0:
            parts += [text[at:end], "\v" * gone]
            at, gone = end, 0
        parts.append(text[at : splice.start()])
        at, gone = splice.end(), gone + 1
    end = text.find("\n", at) if gone else -1
    end = len(text) if end < 0 else end
    return "".join([*parts, text[at:end], "\v" * gone, text[end:]])


def without_strings(text: str, is_c: bool) -> str:
    """A bare text with blanks in its strings: everything else stays where it is."""

    def blank(token: re.Match[str]) -> str:
        return f'"{" " * (len(token[0]) - 2)}"' if token["string"] is not None else token[0]

    return (_C if is_c else _CPP).sub(blank, text)


def line_at(text: str, place: int) -> int:
    return 1 + text.count("\n", 0, place) + text.count("\v", 0, place)
