"""Conversions of floats to integers that a text does not spell: the compiler tells where they are, and each
becomes a call that converts as a GPU does.

All of it is about a preprocessed text, in which macros are gone. In a template, where one conversion may be
to several types, the call finds out its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tunesmith.csource.lex import blank

WARNING = "-Wfloat-conversion"
TOLD = f"[{WARNING}]"
# How a compiler is asked for the whole range of each.
GNU_RANGES, CLANG_RANGES = ("-fdiagnostics-format=json",), ("-fdiagnostics-print-source-range-info",)
CALL, OPEN, LIKE = "__tunesmith_implied", "__tunesmith_implied_to", "__tunesmith::Like"
_MARKER = re.compile(r'^# \d+ "((?:[^"\\]|\\.)*)".*$', re.MULTILINE)
_FROM = ("float", "double")
_TO = frozenset(("const", "volatile", "unsigned", "signed", "char", "short", "int", "long"))
_AKA = r"'([^']*)'(?: [({]aka '([^']*)'[)}])?"
_TYPES = re.compile(rf"{_AKA} to {_AKA}")
_CLANG = re.compile(
    r"^[^\n:]*:(\d+):(\d+):\{(\d+):(\d+)-(\d+):(\d+)\}[^ ]*: warning: (implicit conversion turns [^\n]*)",
    re.MULTILINE,
)
_COMPOUND = re.compile(r"(?<![+\-*/%&|^<>=!])([+\-*/])=(?!=)")
_DEPTH = {")": 1, "]": 1, "(": -1, "[": -1}  # read from behind
_FAR = 2000  # characters
# What may stand before a statement without a `;` between them; the group is followed by a condition.
_HEAD = re.compile(r"\s*(?:#[^\n]*\n|(?:else|do|return)\b|(if|for|while)\b\s*(?:constexpr\b\s*)?(?=\())\s*")
_WORD = re.compile(r"[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.'])*")


@dataclass(frozen=True)
class Conversion:
    """Of what stands in [start, end) of a text; `caret` is where the compiler points."""

    start: int
    end: int
    caret: int
    source: str
    target: str
    is_generic: bool  # in a template


def users_lines(text: str) -> list[bool]:
    """Of a preprocessed text, by line: whether it is the kernel's own, and not of a header of ours."""
    found, own = [], False
    for line in text.split("\n"):
        if marker := _MARKER.match(line):
            file = marker[1]
            own = not file.startswith(("/", "<", "headers/")) and "tunesmith_" not in file
            found.append(False)
        else:
            found.append(own)
    return found


def unmarked(text: str) -> str:
    """With places that compilers count as we do: nothing is said of other files, a character is a column."""
    plain = re.sub(r"[^\x00-\x7f]", "_", text.replace("\t", " "))
    return _MARKER.sub("", plain)


def conversions(text: str, log: str) -> tuple[Conversion, ...]:
    """What a compiler told of a text that was `unmarked`."""
    lines, starts = users_lines(text), [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    generic = _templates(_plain(text))
    found = dict[tuple[int, int], Conversion]()
    for caret, start, finish, words in (*_gnu(log), *_clang(log)):
        types, places = _TYPES.search(words), (caret, start, finish)
        if types is None or not all(0 < place[0] <= len(lines) for place in places):
            continue
        source, target = (types[2] or types[1]).removeprefix("const "), types[4] or types[3]
        if source not in _FROM or not set(target.split()) <= _TO or not lines[start[0] - 1]:
            continue
        at, first, last = (starts[line - 1] + column - 1 for line, column in places)
        word = _WORD.match(text, last) if last == at else None  # the caret alone: it points to a whole word
        is_generic = any(begin < first < end for begin, end in generic)
        one = Conversion(first, word.end() if word else last + 1, at, source, target, is_generic)
        found[one.start, one.end] = one
    return tuple(found.values())


_Place = tuple[int, int]


def _gnu(log: str) -> Iterator[tuple[_Place, _Place, _Place, str]]:
    """A line of JSON; what is none is somebody else's."""
    for line in log.splitlines():
        try:
            told = json.loads(line) if line.startswith("[") else []
            wanted = [one for one in told if one.get("option") == WARNING]
            for message, where in ((one["message"], where) for one in wanted for where in one["locations"]):
                ends = (where.get(name, where["caret"]) for name in ("caret", "start", "finish"))
                caret, start, finish = ((int(end["line"]), int(end["byte-column"])) for end in ends)
                yield caret, start, finish, str(message)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


def _clang(log: str) -> Iterator[tuple[_Place, _Place, _Place, str]]:
    for found in _CLANG.finditer(log):
        at = [int(found[number]) for number in range(1, 7)]
        yield (at[0], at[1]), (at[2], at[3]), (at[4], at[5] - 1), found[7]


def mended(text: str, told: Sequence[Conversion]) -> str:
    """The text with a call at each; those that cannot be read stay as they are."""
    plain = _plain(text)
    changes = [change for one in told for change in _changes(plain, one)]
    for place, _, end, new in sorted(changes, reverse=True):
        text = text[:place] + new + text[end:]
    return text


def _plain(text: str) -> str:
    """The code alone; every place stays what it is."""
    return _MARKER.sub(lambda found: " " * len(found[0]), blank(text, ("comment", "string")))


_Change = tuple[int, int, int, str]  # where, which comes first there, up to where, what
_CLOSES = -(1 << 40)  # what closes stands before what opens at the same place


def _changes(plain: str, one: Conversion) -> Iterator[_Change]:
    """Of those that begin at one place the longest comes first, and of those that end at one the shortest."""
    sign = _sign_of(plain, one)
    is_bare = one.caret == one.start == one.end - 1 and not _WORD.match(plain, one.start)
    left = _left_of(plain, sign.start() if sign else _assigned(plain, one.start))
    if (is_bare and sign is None) or (sign is not None and not left):
        return
    if one.is_generic and not left:
        call, closed = f"{OPEN}(", ")"
    elif one.is_generic or sign is not None:
        call, closed = f"{CALL}<{LIKE}<decltype({left})>>(", ")"
    else:
        call, closed = f"{CALL}<{one.target}>(({one.source})(", "))"
    if sign is None:
        yield one.start, -one.end, one.start, call
        yield one.end, _CLOSES - one.start, one.end, closed
    else:
        yield sign.start(), -one.end, sign.end(), f"= {call}{left} {sign[1]} ("
        yield one.end, _CLOSES - sign.end(), one.end, f"){closed}"


def _sign_of(plain: str, one: Conversion) -> re.Match[str] | None:
    """The `+=` or its like, where its result is converted. Some compilers point to what stands last in it."""
    if (at := _COMPOUND.match(plain, one.caret)) or one.caret != one.start:
        return at
    depth = 0
    for place in range(one.end - 1, max(-1, one.end - _FAR), -1):
        depth += _DEPTH.get(plain[place], 0)
        if depth < 0 or (depth == 0 and plain[place] in ";{}?:,"):
            return None
        if depth == 0 and plain[place] == "=":
            return _COMPOUND.match(plain, place - 1)
    return None


def _assigned(plain: str, start: int) -> int:
    """Where the sign of the assignment stands whose right side begins there; -1: it is none."""
    before = plain[max(0, start - _FAR) : start].rstrip()
    is_sign = before.endswith("=") and before[-2:-1] not in tuple("=!<>+-*/%&|^")
    return start - len(plain[max(0, start - _FAR) : start]) + len(before) - 1 if is_sign else -1


def _left_of(plain: str, sign: int) -> str:
    """What is assigned to, where naming it twice does no harm; empty where it is declared there."""
    depth = 0
    place = sign
    while place > max(0, sign - _FAR):
        depth += _DEPTH.get(plain[place - 1], 0)
        if depth < 0 or (depth == 0 and plain[place - 1] in ";{},?:=&|!"):
            break
        place -= 1
    left = _without_heads(plain[place:sign]) if sign >= 0 else ""
    inside = left
    while inside != (inside := re.sub(r"\[[^\[\]]*\]", "", inside)):
        pass
    is_plain = re.fullmatch(r"\**[A-Za-z_]\w*(?:\s*(?:\.|->)\s*\w+)*\s*", inside) is not None
    return left if is_plain and not re.search(r"\+\+|--|=|\w\s*\(|[{};]", left) else ""


def _without_heads(text: str) -> str:
    """What stands behind `if (…)`, `for (…)`, `while (…)`, `else`, `do`, `return` and a pragma."""
    while head := _HEAD.match(text):
        text = text[head.end() :]
        depth = end = 0
        while head[1] and end < len(text) and (depth or not end):
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        text = text[end:]
    return text.strip()


def _templates(plain: str) -> list[tuple[int, int]]:
    """Where types may be those of a template, or of a lambda that takes anything."""
    found, open_ones, last = list[tuple[int, int]](), list[tuple[int, bool]](), 0
    for sign in re.finditer(r"[{};]", plain):
        if sign[0] == "{":
            head = plain[last : sign.start()]
            is_one = "template" in head or "auto" in head
            is_one = is_one and re.search(r"\btemplate\b|\bauto\b(?=[^()]*[,)&])", head) is not None
            open_ones.append((sign.start(), is_one))
        elif sign[0] == "}" and open_ones:
            start, is_one = open_ones.pop()
            if is_one:
                found.append((start, sign.end()))
        last = sign.end()
    return found
