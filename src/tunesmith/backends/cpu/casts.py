"""Casts to integers as a GPU makes them: what an integer cannot hold is clamped, what is no number is zero.

Only casts whose operand and type can be read from the text become calls; the compiler knows the operand's
type, and leaves all but floats as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

CAST = "__tunesmith_cast"
_TYPE = (
    r"(?:std::)?(?:"
    r"unsigned\s+long\s+long(?:\s+int)?|long\s+long(?:\s+int)?|unsigned\s+long|unsigned\s+short|unsigned\s+char"
    r"|unsigned\s+int|signed\s+char|signed\s+int|unsigned|signed|int|short|char|long"
    r"|u?int(?:8|16|32|64)_t|size_t|ptrdiff_t|uint|uchar|ushort|ulong)"
)
_STATIC = re.compile(
    rf"\bstatic_cast(?=\s*<\s*(?:const\s+)?(?:{_TYPE}|(?!void\b|bool\b|auto\b)[A-Za-z_]\w*)\s*>\s*\()"
)
_PLAIN = re.compile(rf"\(\s*(?:const\s+)?({_TYPE})\s*\)")
_CALLED = re.compile(r"(?<![\w:.>])(int|unsigned|short|char|long|size_t|u?int(?:8|16|32|64)_t|uint)(?=\()")
# Other types, so that one cast before another is seen to be one.
_ALSO = re.compile(rf"\(\s*(?:const\s+)?(?:{_TYPE}|float|double|half|__half|__nv_bfloat16|bool)\s*\)")
_BEFORE = ("return", "case", "else")
_NAME = re.compile(r"(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
_NUMBER = re.compile(r"\.?\d(?:[eEpP][+-]|[\w.'])*")
_ARGUMENTS = re.compile(r"<[^<>;(){}]*(?:<[^<>;(){}]*>[^<>;(){}]*)*>\s*(?=\(|::)")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?!\w|\()", re.MULTILINE)
_CLOSING = {"(": ")", "[": "]"}


def clamping(plain: str) -> Iterator[tuple[int, int, str]]:
    """Changes of a source, whose comments and strings are blank in `plain`."""
    macros = frozenset(_DEFINED.findall(plain))
    directives = [found.span() for found in _DIRECTIVE.finditer(plain)]
    for found in _STATIC.finditer(plain):
        yield found.start(), found.end(), CAST
    for found in _CALLED.finditer(plain):
        if _may_be_called(plain, found.start(), found.end()):
            yield found.start(), found.end(), f"{CAST}<{found[1]}>"
    for found in _PLAIN.finditer(plain):
        if not _may_be_cast(plain, found.start()):
            continue
        start = _skip(plain, found.end())
        end = _operand_end(plain, start)
        # A macro or its parameter may stand for more than a cast would take.
        word = _NAME.fullmatch(plain, start, end) if end else None
        is_directive = any(a <= found.start() < b for a, b in directives)
        if not end or (word is not None and (is_directive or word[0] in macros)):
            continue
        if _NUMBER.fullmatch(plain, start, end):
            continue
        yield found.start(), found.end(), f"{CAST}<{found[1]}>("
        yield end, end, ")"


def _skip(plain: str, at: int) -> int:
    while at < len(plain) and plain[at].isspace():
        at += 1
    return at


def _may_be_cast(plain: str, start: int) -> bool:
    """Whether no name or bracket stands before it that makes it something else."""
    before = plain[:start].rstrip()[-60:]
    if not before:
        return False
    if word := re.search(r"\w+$", before):
        return word[0] in _BEFORE
    if before.endswith(")"):
        last = list(_ALSO.finditer(before))
        return bool(last) and last[-1].end() == len(before) and _may_be_cast(before, last[-1].start())
    return before[-1] not in "]>" or before[-2:] in (">=", ">>")


def _may_be_called(plain: str, start: int, bracket: int) -> bool:
    before, inside = plain[:start].rstrip()[-20:], plain[_skip(plain, bracket + 1) :][:1]
    after_word = re.search(r"\w+$", before)
    if after_word:
        return after_word[0] in _BEFORE
    return before[-1:] in (
        "=",
        "+",
        "-",
        "*",
        "/",
        "%",
        "?",
        ":",
        "[",
        "(",
        ",",
        "&",
        "|",
    ) and inside not in (
        "*",
        "&",
        ")",
        "",
    )


def _matching(plain: str, at: int) -> int:
    """Behind the bracket that closes the one there; 0 where none does."""
    depth = 0
    for place in range(at, len(plain)):
        if plain[place] in "([{":
            depth += 1
        elif plain[place] in ")]}":
            depth -= 1
            if depth == 0:
                return place + 1
        elif plain[place] == ";":
            return 0
    return 0


def _operand_end(plain: str, at: int) -> int:
    """Behind what a cast there takes; 0 where that cannot be read."""
    while at < len(plain):  # what stands before an operand
        at = _skip(plain, at)
        cast = _ALSO.match(plain, at)
        if cast is not None:
            at = cast.end()
        elif plain[at : at + 1] in tuple("-+!~*&"):
            at += 1
        else:
            break
    if plain[at : at + 1] == "(":
        at = _matching(plain, at)
        if at and re.match(
            r"\s*[A-Za-z_0-9({]", plain[at : at + 40]
        ):  # it was a type, or what we cannot read
            return 0
    elif number := _NUMBER.match(plain, at):
        return number.end()
    elif name := _NAME.match(plain, at):
        at = name.end()
    else:
        return 0
    while at:
        after = _skip(plain, at)
        sign = plain[after : after + 1]
        if sign in _CLOSING and sign:
            at = _matching(plain, after)
        elif arguments := _ARGUMENTS.match(plain, after):
            at = arguments.end()
        elif member := re.compile(r"(?:\.|->|::)\s*(?:template\s+)?[A-Za-z_]\w*").match(plain, after):
            at = member.end()
        elif plain[after : after + 2] in ("++", "--"):
            at = after + 2
        elif sign == "{" or sign == "":
            return 0
        else:
            return at
    return 0
