"""The page of a run: report.html, one file that needs nothing else, neither a network nor a script.

Whatever is foreign goes through `element`, which escapes it; a policy inside forbids all else.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from hashlib import sha256
from importlib import resources
from itertools import zip_longest
from typing import Literal

from tunesmith.base.codec import encode_json
from tunesmith.base.text import (
    Inside,
    Markup,
    escape_html,
    escape_markdown,
    format_count,
    html_element,
    join_markup,
    markdown_table,
    redact_secrets,
    strip_controls,
    truncate_text,
)
from tunesmith.deliver.pages.parts import (
    BEST,
    Diff,
    Grid,
    Items,
    Part,
    Picture,
    ReportSection,
    config_text,
    effect_text,
    effects_file,
    general_text,
    report_facts,
    report_sections,
    report_title,
    verified_grid,
)
from tunesmith.deliver.pages.plots import best_so_far_svg, effects_svg, speedups_svg
from tunesmith.problem.dispatch import Dispatch
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Exchange
from tunesmith.run.figures import Figure
from tunesmith.run.report import BoundReport, Report, WorkloadReport
from tunesmith.run.rounds import BY_SEARCH
from tunesmith.run.state import State
from tunesmith.source.text import CPP

# What the page of a run shows beside its report: the kernels' texts, and what was said with models.
MAX_KERNELS = 4
MAX_LINES, MAX_TEXT = 2500, 200_000  # of a kernel: beyond it a comparison takes too long
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
            about, steps = config_text(entry.config), _writing_steps(templates, state, entry.config)
            found[entry.file] = PageKernel(f"tuned/{entry.file}", about, text, entry.config, steps)
    original = PageKernel(problem.kernel.path, "the original", problem.kernel.text)
    return PageTexts(original, tuple(found.values()), state.dialogue)


def _writing_steps(templates: Templates, state: State, config: dict[str, int]) -> tuple[WritingStep, ...]:
    """The rounds that the template of a configuration goes back to."""
    known = {c.id: c for c in state.candidates}
    won = (v.outcome.trial.config for v in state.verified)
    at = next((known.get(c.candidate) for c in won if c is not None and c.as_dict() == config), None)
    found: list[WritingStep] = []
    while at is not None and at.drafted is not None and len(found) < len(known):
        decision = state.decided[at.round].branch(at.branch)
        number = sum(d.decision == "refactor" for d in state.decided[: at.round + 1])
        found.append(WritingStep(number, templates.text(at)))
        at = known.get(decision.candidate) if decision.candidate else None
    return tuple(reversed(found))


def kernels_markup(texts: PageTexts, reasons: Callable[[PageKernel], KernelReasons]) -> Iterator[Markup]:
    """The original beside each kernel that is delivered, with the changed lines linked to their reasons."""
    if texts.original is None:
        return
    room = KERNEL_ROOM
    for place, own in enumerate(texts.tuned[:MAX_KERNELS], 1):
        made = _kernels_side_by_side(texts.original, own, _Reasons(own, reasons(own), place), room)
        room -= len(made.text)
        yield made
    if left := [own.name for own in texts.tuned[MAX_KERNELS:]]:
        yield html_element("p", f"Not shown here: {truncate_text(', '.join(left), 600)}.")


class _Reasons:
    """Of the lines of one kernel. A line belongs to the first round whose template has it, or has it no more;
    one that names a parameter to that parameter."""

    def __init__(self, kernel: PageKernel, known: KernelReasons, place: int) -> None:
        self._known, self.place = known, place
        self._steps = [
            (s.round, frozenset(map(_without_spaces, strip_controls(s.text).split("\n"))))
            for s in kernel.steps
        ]
        own = (*known.rounds.values(), *known.params.values())
        self._ids = {reason.called: f"why{place}_{number}" for number, reason in enumerate(own, 1)}
        self.used: dict[str, LineReason] = {}

    def link(self, before: str | None, after: str | None) -> Markup:
        """For a row that changed."""
        reason = self._of_new(after) if after is not None and _without_spaces(after) else None
        if reason is None and (gone := _without_spaces(before or "")):
            reason = self._of_round(lambda lines: gone not in lines)
        if reason is None:
            return html_element("td", class_="why")
        self.used[reason.called] = reason
        link = html_element("a", truncate_text(reason.called, 24), href=f"#{self._ids[reason.called]}")
        return html_element("td", link, class_="why")

    def _of_new(self, line: str) -> LineReason | None:
        code = line.partition("//")[0]
        named = (self._known.params.get(name) for name in _NAMES.findall(code))
        own = next((reason for reason in named if reason is not None), None)
        return own or self._of_round(lambda lines: _without_spaces(line) in lines)

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
            words = f": {truncate_text(reason.words, LONGEST_REASON)} "
            more: list[Inside] = []
            if reason.section:
                more = [
                    html_element("a", f"More of {truncate_text(called, 24)}", href=f"#{reason.section}"),
                    ".",
                ]
            found.append(
                html_element("li", html_element("strong", truncate_text(called, 120)), words, *more, id=own)
            )
        return [html_element("h4", "Why lines were changed"), html_element("ul", *found)] if found else []


def _without_spaces(line: str) -> str:
    return "".join(line.split())


def _kernels_side_by_side(before: PageKernel, after: PageKernel, reasons: _Reasons, room: int) -> Markup:
    head = html_element("h3", f"{truncate_text(after.name, 200)}: {truncate_text(after.about, 300)}")
    longest = max((before.text, after.text), key=len)
    if len(longest) > MAX_TEXT or longest.count("\n") > MAX_LINES or room <= 0:
        return join_markup([head, html_element("p", "It is too long to be compared here; read the file.")])
    left, right = (coloured_lines(strip_controls(kernel.text)) for kernel in (before, after))
    rows, changed = _comparison_rows(left, right, reasons, room)
    names = [f"before: {truncate_text(before.name, 200)}", f"after: {truncate_text(after.name, 200)}"]
    heads = (("line", "no"), (names[0], ""), ("line", "no"), (names[1], ""), ("why", "why"))
    columns = [html_element("th", text, scope="col", class_=kind) for text, kind in heads]
    caption = html_element("caption", f"Side by side: {format_count(changed, 'line')} changed (− and +)")
    top = html_element("thead", html_element("tr", *columns))
    table = html_element("table", caption, top, rows, class_="code")
    region = _scrolled_region(table, f"Kernel {reasons.place}, before and after")
    return join_markup([head, *reasons.listed(), region])


def _scrolled_region(table: Markup, name: str) -> Markup:
    return html_element("div", table, class_="scroll", role="region", aria_label=name, tabindex="0")


def _comparison_rows(
    left: Sequence[Sequence[Piece]], right: Sequence[Sequence[Piece]], reasons: _Reasons, room: int
) -> tuple[Markup, int]:
    before, after = (["".join(piece for _, piece in line) for line in side] for side in (left, right))
    found = SequenceMatcher(None, before, after).get_opcodes()
    changed = sum(max(b - a, d - c) for kind, a, b, c, d in found if kind != "equal")
    shown: list[Markup] = []
    for row in _all_rows(left, right, found, reasons):
        room -= len(row.text)
        if room < 0:
            shown.append(_gap_row("there is no room for more: read the files"))
            break
        shown.append(row)
    return html_element("tbody", *shown), changed


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
                yield html_element("tr", _source_cell(left, old, "del"), _source_cell(right, new, "add"), why)
            continue
        hidden = b - a - 2 * CONTEXT if b - a > LONGEST_RUN else 0
        for place, (old, new) in enumerate(zip(range(a, b), range(c, d), strict=True)):
            if hidden and place == CONTEXT:
                yield _gap_row(f"{format_count(hidden, 'line')} alike")
            if not hidden or not CONTEXT <= place < CONTEXT + hidden:
                cells = _source_cell(left, old), _source_cell(right, new), html_element("td")
                yield html_element("tr", *cells)


def _text_at(lines: Sequence[Sequence[Piece]], place: int | None) -> str | None:
    return None if place is None else "".join(text for _, text in lines[place])


def _gap_row(text: str) -> Markup:
    return html_element("tr", html_element("td", f"… {text} …", colspan="5", class_="gap"))


def _source_cell(lines: Sequence[Sequence[Piece]], place: int | None, mark: str = "") -> Markup:
    """Of one side: the line's number, and its text behind a sign, so that no colour is needed to see it."""
    if place is None:
        return join_markup([html_element("td", class_="no"), html_element("td")])
    sign = {"add": "+ ", "del": "− "}.get(mark, "  ")
    code = html_element("td", sign, *_coloured_spans(lines[place]), class_=mark)
    return join_markup([html_element("td", str(place + 1), class_="no"), code])


def _coloured_spans(line: Sequence[Piece]) -> list[Inside]:
    found: list[Inside] = []
    left = LONGEST_LINE
    for colour, text in line:
        if left <= 0:
            return [*found, "…"]
        piece = text[:left]
        left -= len(text)
        found.append(html_element("span", piece, class_=_CLASSES[colour]) if colour else piece)
    return [*found, "…"] if left < 0 else found


def talk_markup(dialogue: Sequence[Exchange]) -> Iterator[Markup]:
    """Each question folded over its reply; what is long is cut, and whole in the journal."""
    return map(_exchange_markup, dialogue)


def _exchange_markup(one: Exchange) -> Markup:
    request, reply = one.request, one.reply
    asked = next((m.text for m in reversed(request.messages) if m.speaker == "user"), "")
    inside = [html_element("h3", "Asked"), _redacted_block(asked, LONGEST_QUESTION)]
    if reply is not None:
        inside += [html_element("h3", "Replied"), _redacted_block(reply.text, LONGEST_REPLY)]
    if one.failed:
        inside += [html_element("h3", "No reply"), _redacted_block(one.failed, LONGEST_QUESTION)]
    came = "replied" if reply is not None else "no reply"
    name = html_element("summary", f"Request {request.number}, the {request.role}: {came}", class_="small")
    return html_element("details", name, *inside)


def _redacted_block(text: str, most: int) -> Markup:
    # No secret is cut in two: what is looked at goes on behind what is shown.
    shown = truncate_text(redact_secrets(text[: most + LONGEST_SECRET]), most)
    return html_element("pre", shown or "(nothing)")


def coloured_lines(text: str) -> list[list[Piece]]:
    """What stands next to each other in the same colour is one piece."""
    lines: list[list[Piece]] = [[]]
    for colour, piece in _tokenize_source(text):
        first, *others = piece.split("\n")
        _append_piece(lines[-1], colour, first)
        for other in others:
            lines.append([])
            _append_piece(lines[-1], colour, other)
    if not lines[-1]:
        lines.pop()  # behind the last newline
    return lines


def _append_piece(line: list[Piece], colour: Colour, text: str) -> None:
    if not text:
        return
    if line and line[-1][0] == colour:
        line[-1] = colour, line[-1][1] + text
    else:
        line.append((colour, text))


def _tokenize_source(text: str) -> Iterator[Piece]:
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
            yield from _tokenize_code(own)


def _tokenize_code(text: str) -> Iterator[Piece]:
    for match in _WORDS.finditer(text):
        own = match.group()
        if match.lastgroup == "number":
            yield "number", own
        else:
            yield "keyword" if own in KEYWORDS else "", own


# The report as the user keeps it: JSON for programs, Markdown for people, HTML for notebooks.
PLOTS = "plots"  # the folder beside the report


def report_json(report: Report) -> bytes:
    return encode_json(report) + b"\n"


def plot_files(report: Report) -> dict[str, bytes]:
    """What the report shows, by its name in the folder of plots."""
    files = {BEST: best_so_far_svg(report.history, report.problem, _round_starts(report))}
    for explanation in report.explanations:
        files[effects_file(explanation)] = effects_svg(explanation, report.problem)
    return files


def _round_starts(report: Report) -> list[tuple[int, int]]:
    """The evaluation that each round begins with, and its number."""
    found: dict[int, int] = {}
    for first, own in report.history.starts:
        number = next((r.number for r in report.rounds if r.has(own)), None)
        if number is not None:
            found.setdefault(number, first)
    return sorted((first, number) for number, first in found.items())


def report_markdown(report: Report) -> str:
    """What was verified, and the rest folded away behind it."""
    facts = Items([f"{name}: {text}" for name, text in report_facts(report, "", "")])
    first: list[Part | None] = [f"{report_title(report)}.", verified_grid(report), facts]
    lines = [f"# {escape_markdown(report.problem)}"]
    lines += [line for part in first if part is not None for line in _markdown_part(part)]
    for section in report_sections(report):
        lines += ["", f"<details><summary>{escape_html(section.title)}</summary>"]
        lines += [line for part in section.parts for line in _markdown_part(part)]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _markdown_part(part: Part) -> list[str]:
    match part:
        case Grid(head, rows):
            shown = ([escape_markdown(str(value)) for value in row] for row in rows)
            return ["", *markdown_table(head, shown)]
        case Items(items):
            return ["", *(f"- {escape_markdown(line)}" for line in items)]
        case Diff(changes):
            longest = max((len(run) for line in changes for run in re.findall("`+", line)), default=0)
            fence = "`" * max(3, longest + 1)
            summary = f"<details><summary>What changed, {format_count(len(changes), 'line')}</summary>"
            return ["", summary, "", f"{fence}diff", *map(strip_controls, changes), fence, "", "</details>"]
        case Picture(alt, file):
            return ["", f"![{alt}]({PLOTS}/{file})"]
    return ["", escape_markdown(part)]


def report_html(report: Report, folder: str, go_on: str) -> str:
    """For a notebook. Names and texts are not ours, so all are escaped. Plots are images: whatever a text in
    one says, no script and no style of it acts on the page."""
    parts = [f"<p><b>{escape_html(report_title(report))}</b></p>"]
    if report.survey is None and (grid := verified_grid(report)):
        head = [*(name.rstrip(":") for name in grid.head.split(" | ")), "configuration"]
        configs = [config_text(w.config, w.template) for w in report.workloads]
        rows = [[*map(str, row), config] for row, config in zip(grid.rows, configs, strict=True)]
        parts.append(f"<table><thead>{_html_row(head, 'th')}</thead>")
        parts.append(f"<tbody>{''.join(_html_row(row, 'td') for row in rows)}</tbody></table>")
        parts.append(f"<p>{escape_html(f'General configuration: {general_text(report)}.')}</p>")
    told = report_facts(report, folder, go_on, note=4000)
    parts += [f"<p>{escape_html(f'{name[:1].upper()}{name[1:]}: {text}')}</p>" for name, text in told]
    parts.append(f"<p>Plots: {escape_html(BY_SEARCH)}.</p>")
    for name, data in plot_files(report).items():
        parts.append(image_html(data, name))
    return f"<div>{''.join(parts)}</div>"


def image_html(data: bytes, alt: str) -> str:
    return f'<p><img src="{_image_source(data)}" alt="{escape_html(alt)}" style="max-width: 100%"></p>'


def _html_row(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape_html(cell)}</{tag}>' for cell in cells)}</tr>"


MAX = 980_000  # bytes of a page, whatever a run has to tell
MAX_FACTS, MAX_WORKLOADS, LONGEST_FIRST = 40, 100, 120  # on the first screen
MAX_ROWS = 250
LONGEST_CELL, LONGEST_NAME = 400, 160
ELSEWHERE = "The rest has no room on this page: it is in report.md and report.json."
_KEYS = ("ratio:", "speed-up:")  # the first of these that a table has is what it is read for
# Columns that need no width.
_SHORT = (
    *("workload", "sizes", "95 % interval", "round", "status", "parameter", "from", "rule", "run", "device"),
    *("driver", "compiler", "version", "strategy", "search", "problem", "author", "report"),
)
FoldedSection = tuple[str, Iterable[Markup]]  # what stands beside its title, and what is inside
# The order on the page, what each is called there, and the bytes it may take beside what others leave.
_SECTIONS = {
    "bounds": ("Roofline, before and after", 50_000),
    "best": ("Best so far", 250_000),
    "effects": ("What each parameter is worth", 90_000),
    "spills": ("What spills registers", 30_000),
    "kernels": ("The kernel, before and after", 180_000),
    "rounds": ("Round by round", 110_000),
    "failures": ("What failed, and why", 125_000),
    "talk": ("The conversation", 60_000),
    "run": ("The run", 30_000),
    "digests": ("Versions and digests", 25_000),
}
_ASIDE = {"effects": BY_SEARCH, "rounds": BY_SEARCH}


@dataclass(frozen=True)
class LivePart:
    """What stands on the page of a run that is watched, before everything else."""

    above: Markup  # where one is
    section: Markup
    style: str
    script: str


def report_page(report: Report, texts: PageTexts = NO_TEXTS, live: LivePart | None = None) -> str:
    """What was verified, and the rest folded away below it."""
    folded = _folded_sections(report, texts)
    name = truncate_text(report.problem, LONGEST_NAME)
    first = [*([live.section] if live is not None else []), *_first_screen(report)]
    links = [html_element("li", html_element("a", _SECTIONS[key][0], href=f"#{key}")) for key in folded]
    style = page_style() if live is None else f"{live.style}{live.script}"
    main = [
        *first,
        html_element("nav", html_element("ul", *links), aria_label="Sections"),
        *_fit_sections(folded, MAX - len(style.encode()) - len(join_markup(first).text.encode())),
    ]
    return whole_page(name, f"{_run_subtitle(report)}.", main, _footer_text(report), live)


def whole_page(
    name: str, about: str, main: Iterable[Markup], written: str, live: LivePart | None = None
) -> str:
    """Of any page of ours; something in `main` has the id `verified`."""
    style, script = (live.style, live.script) if live is not None else (page_style(), "")
    head = page_head(f"{name}: Tunesmith's report", style, script)
    above = [live.above] if live is not None else []
    body = html_element(
        "body",
        html_element("a", "To what was verified", href="#verified", class_="skip"),
        html_element("header", *above, html_element("h1", name), html_element("p", about, class_="about")),
        html_element("main", *main),
        html_element("footer", html_element("p", written)),
        *([html_element("script", Markup(script))] if script else []),
    )
    return f"<!DOCTYPE html>\n{html_element('html', head, body, lang='en').text}\n"


def page_head(title: str, style: str, script: str = "") -> Markup:
    """Of a page that has this style and, where it is served, this script, and nothing else."""
    policy = content_security_policy(style, script)
    return html_element(
        "head",
        html_element("meta", charset="utf-8"),
        html_element("meta", http_equiv="Content-Security-Policy", content=policy),
        html_element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        html_element("meta", name="color-scheme", content="light dark"),
        # Where there are forms, it is told that they come from here.
        html_element("meta", name="referrer", content="same-origin" if script else "no-referrer"),
        *([html_element("link", rel="icon", href="data:,")] if script else []),  # a server is asked for none
        html_element("title", title),
        html_element("style", Markup(style)),
    )


def content_security_policy(style: str, script: str = "") -> str:
    """Nothing is loaded and nothing runs; of styles this one alone is taken. Where there is a script it alone
    runs, and may ask the server that the page comes from."""
    own = f"default-src 'none'; style-src {_csp_digest(style)}; img-src data:; base-uri 'none'"
    if not script:
        return f"{own}; form-action 'none'"
    return f"{own}; script-src {_csp_digest(script)}; connect-src 'self'; form-action 'self'"


def _csp_digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def page_style() -> str:
    return resources.files("tunesmith.deliver.pages").joinpath("page.css").read_text("utf-8")


def _run_subtitle(report: Report) -> str:
    words = truncate_text(report_title(report).removeprefix(report.problem).strip(), 400)
    return f"{words[:1].upper()}{words[1:]}"


def _footer_text(report: Report) -> str:
    version = report.versions.get("tunesmith", "")
    written = f"Written by Tunesmith{f' {truncate_text(version, 40)}' if version else ''}."
    return f"{written} Speed-ups in the sections that are folded are {BY_SEARCH}."


def _first_screen(report: Report) -> list[Markup]:
    proven = bool(report.workloads) and not report.unproven
    title = "What was verified" if proven else "What is known, not verified"
    inside: list[Markup] = [html_element("h2", title)]
    if report.figure is not None:
        inside.append(figures_markup(_key_figures(report, report.figure)))
    grid = verified_grid(report)
    if grid is not None and report.survey is None:
        grid = _with_floors(report, grid)
    if grid is not None:
        words = "What compilers say" if report.survey is not None else "Each workload, timed in alternation"
        inside.append(table_markup(grid, words, MAX_WORKLOADS, LONGEST_FIRST))
    rows: list[Markup] = []
    for name, text in report_facts(report, "", "", note=600)[:MAX_FACTS]:
        rows += [html_element("dt", name), html_element("dd", truncate_text(text, 1200))]
    inside.append(html_element("dl", *rows))
    if proven and report.survey is None and any(w.config is not None for w in report.workloads):
        inside.append(picture_markup(_plot_alt_text(report.workloads), speedups_svg(report.workloads)))
    return [html_element("section", *inside, id="verified")]


def _key_figures(report: Report, mean: Figure) -> list[tuple[str, str, bool]]:
    about = "geometric mean"
    if report.verified_cases:
        about += f", verified on {format_count(report.verified_cases, 'fresh case')}"
    elif report.unproven:
        about += ", not verified"
    about += f", {mean.span}" if mean.low < mean.high else ""
    found = [(mean.words, about, bool(report.verified_cases and mean.shown > 1))]
    if report.finished and report.workloads:
        kept = sum(w.config is not None for w in report.workloads)
        found.append((f"{kept} of {len(report.workloads)}", "workloads with a faster kernel", False))
        if report.winners:
            there = report.winners - len(report.left_out)
            found.append((f"{there} of {report.winners}", "tuned kernels that won are delivered", False))
    return found


def _with_floors(report: Report, grid: Grid) -> Grid:
    """What was verified, beside what the device allows and what is delivered."""
    bounds = {b.workload: b for b in report.bounds}
    known = any(b.distance is not None for b in report.bounds)
    rows = []
    for row, w in zip(grid.rows, report.workloads, strict=True):
        floors = _floor_cells(w, bounds.get(w.name)) if known else ()
        rows.append((*row, *floors, config_text(w.config, w.template)))
    what = "winner" if report.left_out else "delivered"  # not every winner could be
    head = f"{grid.head}{' | floor: | × floor:' if known else ''} | {what}"
    return Grid(head, rows)


def _floor_cells(w: WorkloadReport, bound: BoundReport | None) -> tuple[str, str]:
    """The floor, and how many times that it takes, before and after."""
    if bound is None or not bound.distance:
        return "not known", ""
    if not bound.tuned_distance:
        return f"{w.baseline_us / bound.distance:.1f} µs", f"{bound.distance:.2f} before"
    floor = f"{w.tuned_us / bound.tuned_distance:.1f} µs"
    return floor, f"{bound.distance:.2f} → {bound.tuned_distance:.2f}"


def _plot_alt_text(workloads: Sequence[WorkloadReport]) -> str:
    won = [w.figure.shown for w in workloads if w.config is not None]
    return f"Speed-ups with their intervals: {min(won):.2f}× to {max(won):.2f}×; figures in the table"


def _folded_sections(report: Report, texts: PageTexts) -> dict[str, FoldedSection]:
    """By key, in the order of the page."""
    plots = plot_files(report)
    found: dict[str, FoldedSection] = {}
    for section in report_sections(report):
        found[section.key] = _ASIDE.get(section.key, ""), _section_markup(section, plots)
    if any(b.distance for b in report.bounds):
        found["bounds"] = "", [_roofline_picture(report), *found["bounds"][1]]
    if report.history.speedups:
        count = format_count(len(report.history.speedups), "evaluation")
        words = f"Best speed-up so far over {count}, {BY_SEARCH}"
        found["best"] = f"{count}, {BY_SEARCH}", [picture_markup(words, plots[BEST])]
    if texts.original is not None and texts.tuned:
        made = kernels_markup(texts, lambda kernel: _kernel_reasons(report, kernel))
        found["kernels"] = format_count(len(texts.tuned), "kernel"), made
    if texts.dialogue:
        found["talk"] = format_count(len(texts.dialogue), "request"), talk_markup(texts.dialogue)
    return {key: found[key] for key in _SECTIONS if key in found}


def _roofline_picture(report: Report) -> Markup:
    from tunesmith.deliver.pages.plots import floors_svg, run_roofline_svg  # a run without profiles has none

    drawn = run_roofline_svg(report.bounds, report.problem)
    if drawn is not None:
        return picture_markup("Each workload below its roof, before and after, as in the table below", drawn)
    words = "Time over the floor of the roofline, before and after, as in the table below"
    return picture_markup(words, floors_svg(report.bounds))


def _kernel_reasons(report: Report, kernel: PageKernel) -> KernelReasons:
    """Of the rounds that a kernel goes back to, and of its parameters."""
    rounds = {0: LineReason("template", "it was given, and says itself why.")} if not kernel.steps else {}
    for number in (step.round for step in kernel.steps):
        told = next((r for r in report.rounds if r.number == number), None)
        words = f"{', '.join(told.moves) or told.author or 'a template'}. {told.reason}" if told else ""
        rounds[number] = LineReason(f"round {number}", words, "rounds" if told is not None else "")
    explained = next((e for e in report.explanations if e.config == kernel.config), None)
    effects = explained.params if explained is not None else ()
    known = {p.name: LineReason(p.name, effect_text(explained, p), "effects") for p in effects if explained}
    others = [name for name in kernel.config or () if name not in known]
    given = {name: LineReason(name, "a parameter; its value was searched.") for name in others}
    return KernelReasons(rounds, known | given)


def _fit_sections(folded: dict[str, FoldedSection], left: int) -> list[Markup]:
    """Every section with as much of it as there is room for: so many bytes for all."""
    room, found = 0, []
    for key, (aside, parts) in folded.items():
        name, own = _SECTIONS[key]
        room, kept = min(room + own, left), []
        for part in parts:
            size = len(part.text.encode())
            if size > room:
                kept.append(html_element("p", ELSEWHERE))
                break
            room, left = room - size, left - size
            kept.append(part)
        beside = [html_element("span", aside, class_="aside")] if aside else []
        summary = html_element("summary", html_element("h2", name), *beside)
        found.append(html_element("details", summary, html_element("div", *kept, id=key, class_="inside")))
    return found


def _section_markup(section: ReportSection, plots: dict[str, bytes]) -> Iterator[Markup]:
    """One by one: what finds no room is not made."""
    return (made for part in section.parts for made in _html_part(part, plots, section.title))


def _html_part(part: Part, plots: dict[str, bytes], name: str) -> list[Markup]:
    match part:
        case Grid():
            return [table_markup(part, name)]
        case Items(lines):
            shown = [html_element("li", truncate_text(line, 4000)) for line in lines[:MAX_ROWS]]
            return [html_element("ul", *shown), *_more_rows_note(len(lines) - len(shown))]
        case Diff(lines):
            inside = html_element("pre", *_mark_diff_lines(lines))
            title = f"What changed, {format_count(len(lines), 'line')}"
            return [html_element("details", html_element("summary", title, class_="small"), inside)]
        case Picture(_, file) if file == BEST:
            return []  # it has a section of its own
        case Picture(alt, file):
            return [picture_markup(f"{alt}, as in the table above", plots[file])]
    return [html_element("p", part)]


def _mark_diff_lines(lines: Iterable[str]) -> Iterable[Inside]:
    for line in lines:
        kind, shown = {"+": "add", "-": "del"}.get(line[:1]), truncate_text(line, LONGEST_CELL)
        yield html_element("span", shown, class_=kind) if kind else shown
        yield "\n"


def table_markup(grid: Grid, name: str, most: int = MAX_ROWS, longest: int = LONGEST_CELL) -> Markup:
    heads = [head.strip() for head in grid.head.split("|")]
    key = next((head for head in _KEYS if head in heads), None)
    classes = [_column_class(head, key) for head in heads]
    top = [
        html_element("th", head.rstrip(":"), scope="col", class_="n" if head.endswith(":") else "")
        for head in heads
    ]
    rows = [html_element("tr", *_row_cells(row, classes, longest)) for row in grid.rows[:most]]
    left = len(grid.rows) - len(rows)
    first = f"; the first {len(rows)} of {len(grid.rows):,}" if left else ""
    inside = html_element("thead", html_element("tr", *top)), html_element("tbody", *rows)
    table = html_element("table", html_element("caption", f"{name}{first}"), *inside)
    return join_markup([_scrolled_region(table, name), *_more_rows_note(left)])


def _column_class(head: str, key: str | None) -> str:
    if head.endswith(":"):
        return "n key" if head == key else "n"
    return "" if head in _SHORT else "wide"


def _row_cells(row: Sequence[object], classes: Sequence[str], longest: int) -> Iterable[Markup]:
    for place, (value, own) in enumerate(zip(row, classes, strict=True)):
        text = value if isinstance(value, Markup) else truncate_text(str(value), longest)
        named = {"class_": own}
        yield html_element("td", text, **named) if place else html_element("th", text, scope="row", **named)


def _more_rows_note(count: int) -> list[Markup]:
    return [html_element("p", f"{count:,} more in report.json.")] if count > 0 else []


def figures_markup(figures: Iterable[tuple[str, str, bool]]) -> Markup:
    """Large ones, each with words below it and whether it is good news."""
    shown = []
    for figure, words, is_good in figures:
        large = html_element("strong", figure, class_="good" if is_good else "")
        shown.append(html_element("li", large, html_element("span", words)))
    return html_element("ul", *shown, class_="figures")


def picture_markup(alt: str, data: bytes) -> Markup:
    """As an image: whatever a text in it says, nothing of it acts on the page."""
    return html_element("figure", html_element("img", src=_image_source(data), alt=alt), class_="plot")


def _image_source(data: bytes) -> str:
    return f"data:image/svg+xml;base64,{b64encode(data).decode()}"
