"""What the page of a run shows beside its report: the kernels' texts, and what was said with models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from tunesmith.csource.lex import CPP
from tunesmith.deliver.report_parts import config_text
from tunesmith.problem.dispatch import Dispatch
from tunesmith.run.candidates import Templates
from tunesmith.run.dialogue import Exchange
from tunesmith.run.state import State
from tunesmith.text import Inside, Markup, counted, cut, element, joined, plain, redacted

MOST_KERNELS = 4
MOST_LINES, MOST_TEXT = 2500, 200_000  # of a kernel: beyond it a comparison takes too long
KERNEL_ROOM = 160_000  # characters of markup, for all comparisons together
LONGEST_LINE, LONGEST_REASON = 400, 700
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
_NAMES = re.compile(r"[^\W\d]\w*")
_WORDS = re.compile(r"(?P<word>[^\W\d]\w*)|(?P<number>\.?\d[\w.]*)|[^\w.]+|.", re.DOTALL)


@dataclass(frozen=True)
class WritingStep:
    """A round on the way to a kernel, and the template it came to."""

    round: int
    text: str


@dataclass(frozen=True)
class PageKernel:
    name: str  # its file
    about: str
    text: str
    config: dict[str, int] | None = None
    steps: tuple[WritingStep, ...] = ()  # the first round first; none: its template was given


@dataclass(frozen=True)
class LineReason:
    """Why lines of a kernel are as they are."""

    called: str  # what stands beside such a line
    words: str
    section: str = ""  # of the page, that has more


@dataclass(frozen=True)
class KernelReasons:
    rounds: Mapping[int, LineReason]  # by number; 0: the template that was given
    params: Mapping[str, LineReason]


@dataclass(frozen=True)
class PageTexts:
    original: PageKernel | None = None
    tuned: tuple[PageKernel, ...] = ()
    dialogue: tuple[Exchange, ...] = ()


NO_TEXTS = PageTexts()


def page_texts(
    templates: Templates, state: State, dispatch: Dispatch | None, tuned: Mapping[str, bytes]
) -> PageTexts:
    """`tuned`: the files delivered, by name."""
    problem = templates.problem
    found: dict[str, PageKernel] = {}
    for entry in dispatch.entries if dispatch is not None else ():
        if entry.config is not None and entry.file in tuned and entry.file not in found:
            text = tuned[entry.file].decode("utf-8", "replace")
            about, steps = config_text(entry.config), _steps(templates, state, entry.config)
            found[entry.file] = PageKernel(f"tuned/{entry.file}", about, text, entry.config, steps)
    original = PageKernel(problem.kernel.path, "the original", problem.kernel.text)
    return PageTexts(original, tuple(found.values()), state.dialogue)


def _steps(templates: Templates, state: State, config: dict[str, int]) -> tuple[WritingStep, ...]:
    """The rounds that the template of a configuration goes back to."""
    known = {c.id: c for c in state.candidates}
    won = (v.outcome.trial.config for v in state.verified)
    own = next((known.get(c.candidate) for c in won if c is not None and c.as_dict() == config), None)
    found: list[WritingStep] = []
    while own is not None and own.drafted is not None and len(found) < len(known):
        decision = state.decided[own.round].branch(own.branch)
        number = sum(d.decision == "refactor" for d in state.decided[: own.round + 1])
        found.append(WritingStep(number, templates.text(own)))
        own = known.get(decision.candidate) if decision.candidate else None
    return tuple(reversed(found))


# -- kernels ------------------------------------------------------------------------------------------------


def kernels_markup(texts: PageTexts, reasons: Callable[[PageKernel], KernelReasons]) -> Iterator[Markup]:
    """The original beside each kernel that is delivered, with the changed lines linked to their reasons."""
    if texts.original is None:
        return
    room = KERNEL_ROOM
    for place, own in enumerate(texts.tuned[:MOST_KERNELS], 1):
        made = _beside(texts.original, own, _Reasons(own, reasons(own), place), room)
        room -= len(made.text)
        yield made
    if left := [own.name for own in texts.tuned[MOST_KERNELS:]]:
        yield element("p", f"Not shown here: {cut(', '.join(left), 600)}.")


class _Reasons:
    """Of the lines of one kernel. A line belongs to the first round whose template has it, or has it no more;
    one that names a parameter to that parameter."""

    def __init__(self, kernel: PageKernel, known: KernelReasons, place: int) -> None:
        self._known, self.place = known, place
        self._steps = [(s.round, frozenset(map(_bare, plain(s.text).split("\n")))) for s in kernel.steps]
        own = (*known.rounds.values(), *known.params.values())
        self._ids = {reason.called: f"why{place}_{number}" for number, reason in enumerate(own, 1)}
        self.used: dict[str, LineReason] = {}

    def link(self, before: str | None, after: str | None) -> Markup:
        """For a row that changed."""
        reason = self._of_new(after) if after is not None and _bare(after) else None
        if reason is None and (gone := _bare(before or "")):
            reason = self._of_round(lambda lines: gone not in lines)
        if reason is None:
            return element("td", class_="why")
        self.used[reason.called] = reason
        link = element("a", cut(reason.called, 24), href=f"#{self._ids[reason.called]}")
        return element("td", link, class_="why")

    def _of_new(self, line: str) -> LineReason | None:
        code = line.partition("//")[0]
        named = (self._known.params.get(name) for name in _NAMES.findall(code))
        own = next((reason for reason in named if reason is not None), None)
        return own or self._of_round(lambda lines: _bare(line) in lines)

    def _of_round(self, is_it: Callable[[frozenset[str]], bool]) -> LineReason | None:
        last = self._steps[-1][0] if self._steps else 0
        number = next((number for number, lines in self._steps if is_it(lines)), last)
        return self._known.rounds.get(number)

    def listed(self) -> list[Markup]:
        """Those that lines refer to, in order."""
        found = []
        for called, own in self._ids.items():
            if (reason := self.used.get(called)) is None:
                continue
            words = f": {cut(reason.words, LONGEST_REASON)} "
            more: list[Inside] = []
            if reason.section:
                more = [element("a", f"More of {cut(called, 24)}", href=f"#{reason.section}"), "."]
            found.append(element("li", element("strong", cut(called, 120)), words, *more, id=own))
        return [element("h4", "Why lines were changed"), element("ul", *found)] if found else []


def _bare(line: str) -> str:
    return "".join(line.split())


def _beside(before: PageKernel, after: PageKernel, reasons: _Reasons, room: int) -> Markup:
    head = element("h3", f"{cut(after.name, 200)}: {cut(after.about, 300)}")
    longest = max((before.text, after.text), key=len)
    if len(longest) > MOST_TEXT or longest.count("\n") > MOST_LINES or room <= 0:
        return joined([head, element("p", "It is too long to be compared here; read the file.")])
    rows, changed = _rows(_lines(before.text), _lines(after.text), reasons, room)
    names = (("before: ", before.name), ("after: ", after.name))
    columns = [
        element("th", text, scope="col", class_=own)
        for word, name in names
        for text, own in (("line", "no"), (f"{word}{cut(name, 200)}", ""))
    ]
    columns.append(element("th", "why", scope="col", class_="why"))
    caption = element("caption", f"Side by side: {counted(changed, 'line')} changed (− and +)")
    table = element("table", caption, element("thead", element("tr", *columns)), rows, class_="code")
    own = {"role": "region", "aria_label": f"Kernel {reasons.place}, before and after", "tabindex": "0"}
    return joined([head, *reasons.listed(), element("div", table, class_="scroll", **own)])


def _lines(text: str) -> list[list[Piece]]:
    return coloured_lines(plain(text))


def _rows(
    left: Sequence[Sequence[Piece]], right: Sequence[Sequence[Piece]], reasons: _Reasons, room: int
) -> tuple[Markup, int]:
    before, after = (["".join(piece for _, piece in line) for line in side] for side in (left, right))
    found = SequenceMatcher(None, before, after).get_opcodes()
    changed = sum(max(b - a, d - c) for kind, a, b, c, d in found if kind != "equal")
    shown: list[Markup] = []
    for row in _all_rows(left, right, found, reasons):
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
    reasons: _Reasons,
) -> Iterator[Markup]:
    for kind, a, b, c, d in found:
        if kind != "equal":
            for old, new in zip_longest(range(a, b), range(c, d)):
                why = reasons.link(_text_at(left, old), _text_at(right, new))
                yield element("tr", _cell(left, old, "del"), _cell(right, new, "add"), why)
            continue
        hidden = b - a - 2 * CONTEXT if b - a > LONGEST_RUN else 0
        for place, (old, new) in enumerate(zip(range(a, b), range(c, d), strict=True)):
            if hidden and place == CONTEXT:
                yield _gap(f"{counted(hidden, 'line')} alike")
            if not hidden or not CONTEXT <= place < CONTEXT + hidden:
                yield element("tr", _cell(left, old), _cell(right, new), element("td"))


def _text_at(lines: Sequence[Sequence[Piece]], place: int | None) -> str | None:
    return None if place is None else "".join(text for _, text in lines[place])


def _gap(text: str) -> Markup:
    return element("tr", element("td", f"… {text} …", colspan="5", class_="gap"))


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
