"""What the page of a run shows beside its report: the kernels' texts, and what was said with models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from tunesmith.csource.lex import CPP
from tunesmith.deliver.report_parts import config_text
from tunesmith.problem.dispatch import Dispatch
from tunesmith.problem.problem import Problem
from tunesmith.run.dialogue import Exchange
from tunesmith.run.state import State
from tunesmith.text import Inside, Markup, counted, cut, element, joined, plain, redacted

MOST_KERNELS = 4
MOST_LINES, MOST_TEXT = 2500, 200_000  # of a kernel: beyond it a comparison takes too long
KERNEL_ROOM = 160_000  # characters of markup, for all comparisons together
LONGEST_LINE = 400
CONTEXT, LONGEST_RUN = 8, 40  # lines alike that stand around a change; so many in a row are still shown
LONGEST_QUESTION, LONGEST_REPLY = 1500, 6000
LONGEST_SECRET = 8000
_CLASSES = {"comment": "c", "string": "s", "number": "m", "keyword": "k", "directive": "d"}

Colour = Literal["", "comment", "string", "number", "keyword", "directive"]
Piece = tuple[Colour, str]

# Of C, C++, CUDA and OpenCL: what a reader looks for, and the types that every kernel has.
_KEYWORDS = """
alignas auto bool break case char class const constexpr continue default do double else enum extern false
float for goto if inline int long namespace nullptr operator register restrict return short signed sizeof
static struct switch template this true typedef typename union unsigned using void volatile while
__constant__ __device__ __forceinline__ __global__ __grid_constant__ __host__ __launch_bounds__
__restrict__ __shared__ __kernel __global __local __private __constant kernel global local
private constant barrier __syncthreads __syncwarp half float2 float4 half2 uint uchar ushort ulong size_t
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
"""
KEYWORDS = frozenset(_KEYWORDS.split())
_WORDS = re.compile(r"(?P<word>[^\W\d]\w*)|(?P<number>\.?\d[\w.]*)|[^\w.]+|.", re.DOTALL)


@dataclass(frozen=True)
class PageKernel:
    name: str  # its file
    about: str
    text: str


@dataclass(frozen=True)
class PageTexts:
    original: PageKernel | None = None
    tuned: tuple[PageKernel, ...] = ()
    dialogue: tuple[Exchange, ...] = ()


NO_TEXTS = PageTexts()


def page_texts(
    problem: Problem, state: State, dispatch: Dispatch | None, tuned: Mapping[str, bytes]
) -> PageTexts:
    """`tuned`: the files delivered, by name."""
    found: dict[str, PageKernel] = {}
    for entry in dispatch.entries if dispatch is not None else ():
        if entry.config is not None and entry.file in tuned and entry.file not in found:
            text = tuned[entry.file].decode("utf-8", "replace")
            found[entry.file] = PageKernel(f"tuned/{entry.file}", config_text(entry.config), text)
    original = PageKernel(problem.kernel.path, "the original", problem.kernel.text)
    return PageTexts(original, tuple(found.values()), state.dialogue)


# -- kernels ------------------------------------------------------------------------------------------------


def kernels_markup(texts: PageTexts, has_rounds: bool) -> list[Markup]:
    """The original beside each kernel that is delivered, with the changed lines marked."""
    why = element("p", "Why it was changed: ", element("a", "the rounds", href="#rounds"), ".")
    if texts.original is None or not texts.tuned:
        return []
    found = [why] if has_rounds else []
    room = KERNEL_ROOM
    for own in texts.tuned[:MOST_KERNELS]:
        made = _beside(texts.original, own, room)
        room -= len(made.text)
        found.append(made)
    left = [own.name for own in texts.tuned[MOST_KERNELS:]]
    return [*found, element("p", f"Not shown here: {cut(', '.join(left), 600)}.")] if left else found


def _beside(before: PageKernel, after: PageKernel, room: int) -> Markup:
    head = element("h3", f"{cut(after.name, 200)}: {cut(after.about, 300)}")
    longest = max((before.text, after.text), key=len)
    if len(longest) > MOST_TEXT or longest.count("\n") > MOST_LINES or room <= 0:
        return joined([head, element("p", "It is too long to be compared here; read the file.")])
    rows, changed = _rows(_lines(before.text), _lines(after.text), room)
    names = (("before: ", before.name), ("after: ", after.name))
    columns = [
        element("th", text, scope="col", class_=own)
        for word, name in names
        for text, own in (("line", "no"), (f"{word}{cut(name, 200)}", ""))
    ]
    caption = element("caption", f"Side by side: {counted(changed, 'line')} changed (− and +)")
    table = element("table", caption, element("thead", element("tr", *columns)), rows, class_="code")
    own = {"role": "region", "aria_label": "The kernel before and after", "tabindex": "0"}
    return joined([head, element("div", table, class_="scroll", **own)])


def _lines(text: str) -> list[list[Piece]]:
    return coloured_lines(plain(text))


def _rows(left: Sequence[Sequence[Piece]], right: Sequence[Sequence[Piece]], room: int) -> tuple[Markup, int]:
    before, after = (["".join(piece for _, piece in line) for line in side] for side in (left, right))
    found = SequenceMatcher(None, before, after).get_opcodes()
    changed = sum(max(b - a, d - c) for kind, a, b, c, d in found if kind != "equal")
    shown: list[Markup] = []
    for row in _all_rows(left, right, found):
        room -= len(row.text)
        if room < 0:
            shown.append(_gap("there is no room for more: read the files"))
            break
        shown.append(row)
    return element("tbody", *shown), changed


def _all_rows(
    left: Sequence[Sequence[Piece]],
    right: Sequence[Sequence[Piece]],
    found: Sequence[tuple[str, int, int, int, int]],
) -> Iterator[Markup]:
    for kind, a, b, c, d in found:
        if kind != "equal":
            for old, new in zip_longest(range(a, b), range(c, d)):
                yield element("tr", _cell(left, old, "del"), _cell(right, new, "add"))
            continue
        hidden = b - a - 2 * CONTEXT if b - a > LONGEST_RUN else 0
        for place, (old, new) in enumerate(zip(range(a, b), range(c, d), strict=True)):
            if hidden and place == CONTEXT:
                yield _gap(f"{counted(hidden, 'line')} alike")
            if not hidden or not CONTEXT <= place < CONTEXT + hidden:
                yield element("tr", _cell(left, old), _cell(right, new))


def _gap(text: str) -> Markup:
    return element("tr", element("td", f"… {text} …", colspan="4", class_="gap"))


def _cell(lines: Sequence[Sequence[Piece]], place: int | None, mark: str = "") -> Markup:
    """Of one side: the line's number, and its text behind a sign, so that no colour is needed to see it."""
    if place is None:
        return joined([element("td", class_="no"), element("td")])
    sign = {"add": "+ ", "del": "− "}.get(mark, "  ")
    code = element("td", sign, *_coloured(lines[place]), class_=mark)
    return joined([element("td", str(place + 1), class_="no"), code])


def _coloured(line: Sequence[Piece]) -> list[Inside]:
    found: list[Inside] = []
    left = LONGEST_LINE
    for colour, text in line:
        if left <= 0:
            return [*found, "…"]
        piece = text[:left]
        left -= len(text)
        found.append(element("span", piece, class_=_CLASSES[colour]) if colour else piece)
    return [*found, "…"] if left < 0 else found


# -- the conversation ---------------------------------------------------------------------------------------


def talk_markup(dialogue: Sequence[Exchange]) -> Iterator[Markup]:
    """Each question folded over its reply; what is long is cut, and whole in the journal."""
    return map(_exchange, dialogue)


def _exchange(one: Exchange) -> Markup:
    request, reply = one.request, one.reply
    asked = next((m.text for m in reversed(request.messages) if m.speaker == "user"), "")
    inside = [element("h3", "Asked"), _said(asked, LONGEST_QUESTION)]
    if reply is not None:
        inside += [element("h3", "Replied"), _said(reply.text, LONGEST_REPLY)]
    if one.failed:
        inside += [element("h3", "No reply"), _said(one.failed, LONGEST_QUESTION)]
    if one.tool is not None:
        inside += [element("h3", "The laboratory answered"), _said(one.tool.answer, LONGEST_QUESTION)]
    came = "replied" if reply is not None else "no reply"
    name = element("summary", f"Request {request.number}, the {request.role}: {came}", class_="small")
    return element("details", name, *inside)


def _said(text: str, most: int) -> Markup:
    # No secret is cut in two: what is looked at goes on behind what is shown.
    return element("pre", cut(redacted(text[: most + LONGEST_SECRET]), most) or "(nothing)")


# -- C text in colours --------------------------------------------------------------------------------------


def coloured_lines(text: str) -> list[list[Piece]]:
    """What stands next to each other in the same colour is one piece."""
    lines: list[list[Piece]] = [[]]
    for colour, piece in _pieces(text):
        first, *others = piece.split("\n")
        _add(lines[-1], colour, first)
        for other in others:
            lines.append([])
            _add(lines[-1], colour, other)
    if not lines[-1]:
        lines.pop()  # behind the last newline
    return lines


def _add(line: list[Piece], colour: Colour, text: str) -> None:
    if not text:
        return
    if line and line[-1][0] == colour:
        line[-1] = colour, line[-1][1] + text
    else:
        line.append((colour, text))


def _pieces(text: str) -> Iterator[Piece]:
    fresh, directive = True, False  # whether only blanks stand on this line so far; whether a # began it
    for match in CPP.finditer(text):
        kind, own = match.lastgroup, match.group()
        if kind == "newline":
            fresh, directive = True, False
            yield "", own
        elif kind == "comment":
            yield "comment", own
        elif kind == "space":
            yield "directive" if directive else "", own
        elif directive or (fresh and own == "#"):
            directive = True
            yield "directive", own
        elif kind == "string":
            fresh = False
            yield "string", own
        else:
            fresh = False
            yield from _code(own)


def _code(text: str) -> Iterator[Piece]:
    for match in _WORDS.finditer(text):
        own = match.group()
        if match.lastgroup == "number":
            yield "number", own
        else:
            yield "keyword" if own in KEYWORDS else "", own
