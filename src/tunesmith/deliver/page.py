"""The page of a run: report.html, one file that needs nothing else, neither a network nor a script.

Whatever is foreign goes through `element`, which escapes it; a policy inside forbids all else.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources

from tunesmith.deliver.page_texts import (
    NO_TEXTS,
    KernelReasons,
    LineReason,
    PageKernel,
    PageTexts,
    kernels_markup,
    talk_markup,
)
from tunesmith.deliver.plots import speedups_svg
from tunesmith.deliver.report import plot_files
from tunesmith.deliver.report_parts import (
    Diff,
    Grid,
    Items,
    Part,
    Picture,
    ReportSection,
    config_text,
    facts,
    title,
    verified_grid,
)
from tunesmith.deliver.report_sections import BEST, effect_text, sections
from tunesmith.run.figures import Figure
from tunesmith.run.report import BoundReport, Report, WorkloadReport
from tunesmith.run.rounds import BY_SEARCH
from tunesmith.text import Inside, Markup, counted, cut, element, joined

MOST = 980_000  # bytes of a page, whatever a run has to tell
MOST_FACTS, MOST_WORKLOADS, LONGEST_FIRST = 40, 100, 120  # on the first screen
MOST_ROWS = 250
LONGEST_CELL, LONGEST_NAME = 400, 160
ELSEWHERE = "The rest has no room on this page: it is in report.md and report.json."
_KEYS = ("ratio:", "speed-up:")  # the first of these that a table has is what it is read for
_SHORT = (
    "workload",
    "sizes",
    "95 % interval",
    "round",
    "status",
    "parameter",
    "from",
    "rule",
    "run",
    "device",
    "driver",
    "compiler",
    "version",
    "strategy",
    "search",
    "problem",
    "author",
    "report",
)  # columns that need no width
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
    folded = _folded(report, texts)
    name = cut(report.problem, LONGEST_NAME)
    first = [*([live.section] if live is not None else []), *_first_screen(report)]
    links = [element("li", element("a", _SECTIONS[key][0], href=f"#{key}")) for key in folded]
    style = page_style() if live is None else f"{live.style}{live.script}"
    main = [
        *first,
        element("nav", element("ul", *links), aria_label="Sections"),
        *_fitted(folded, MOST - len(style.encode()) - len(joined(first).text.encode())),
    ]
    return whole_page(name, f"{_where(report)}.", main, _written(report), live)


def whole_page(
    name: str, about: str, main: Iterable[Markup], written: str, live: LivePart | None = None
) -> str:
    """Of any page of ours; something in `main` has the id `verified`."""
    style, script = (live.style, live.script) if live is not None else (page_style(), "")
    head = page_head(f"{name}: Tunesmith's report", style, script)
    above = [live.above] if live is not None else []
    body = element(
        "body",
        element("a", "To what was verified", href="#verified", class_="skip"),
        element("header", *above, element("h1", name), element("p", about, class_="about")),
        element("main", *main),
        element("footer", element("p", written)),
        *([element("script", Markup(script))] if script else []),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en').text}\n"


def page_head(title: str, style: str, script: str = "") -> Markup:
    """Of a page that has this style and, where it is served, this script, and nothing else."""
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        # Where there are forms, it is told that they come from here.
        element("meta", name="referrer", content="same-origin" if script else "no-referrer"),
        *([element("link", rel="icon", href="data:,")] if script else []),  # a server is asked for none
        element("title", title),
        element("style", Markup(style)),
    )


def policy(style: str, script: str = "") -> str:
    """Nothing is loaded and nothing runs; of styles this one alone is taken. Where there is a script it alone
    runs, and may ask the server that the page comes from."""
    own = f"default-src 'none'; style-src {_digest(style)}; img-src data:; base-uri 'none'"
    if not script:
        return f"{own}; form-action 'none'"
    return f"{own}; script-src {_digest(script)}; connect-src 'self'; form-action 'self'"


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def page_style() -> str:
    return resources.files("tunesmith.deliver").joinpath("page.css").read_text("utf-8")


def _where(report: Report) -> str:
    words = cut(title(report).removeprefix(report.problem).strip(), 400)
    return f"{words[:1].upper()}{words[1:]}"


def _written(report: Report) -> str:
    version = report.versions.get("tunesmith", "")
    written = f"Written by Tunesmith{f' {cut(version, 40)}' if version else ''}."
    return f"{written} Speed-ups in the sections that are folded are {BY_SEARCH}."


# -- the first screen ---------------------------------------------------------------------------------------


def _first_screen(report: Report) -> list[Markup]:
    proven = bool(report.workloads) and not report.unproven
    inside: list[Markup] = [element("h2", "What was verified" if proven else "What is known, not verified")]
    if report.figure is not None:
        inside.append(figures_markup(_figures(report, report.figure)))
    grid = verified_grid(report)
    if grid is not None and report.survey is None:
        grid = _with_floors(report, grid)
    if grid is not None:
        words = "What compilers say" if report.survey is not None else "Each workload, timed in alternation"
        inside.append(table_markup(grid, words, MOST_WORKLOADS, LONGEST_FIRST))
    told = facts(report, "", "", note=600)[:MOST_FACTS]
    rows = [part for name, text in told for part in (element("dt", name), element("dd", cut(text, 1200)))]
    inside.append(element("dl", *rows))
    if proven and report.survey is None and any(w.config is not None for w in report.workloads):
        inside.append(picture_markup(_spoken(report.workloads), speedups_svg(report.workloads)))
    return [element("section", *inside, id="verified")]


def _figures(report: Report, mean: Figure) -> list[tuple[str, str, bool]]:
    cases = counted(report.verified_cases, "fresh case")
    proven = (
        f", verified on {cases}" if report.verified_cases else ", not verified" if report.unproven else ""
    )
    about = f"geometric mean{proven}, {mean.span}" if mean.low < mean.high else f"geometric mean{proven}"
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
        floors = _floor(w, bounds.get(w.name)) if known else ()
        rows.append((*row, *floors, config_text(w.config, w.template)))
    what = "winner" if report.left_out else "delivered"  # not every winner could be
    head = f"{grid.head}{' | floor: | × floor:' if known else ''} | {what}"
    return Grid(head, rows)


def _floor(w: WorkloadReport, bound: BoundReport | None) -> tuple[str, str]:
    """The floor, and how many times that it takes, before and after."""
    if bound is None or not bound.distance:
        return "not known", ""
    if not bound.tuned_distance:
        return f"{w.baseline_us / bound.distance:.1f} µs", f"{bound.distance:.2f} before"
    floor = f"{w.tuned_us / bound.tuned_distance:.1f} µs"
    return floor, f"{bound.distance:.2f} → {bound.tuned_distance:.2f}"


def _spoken(workloads: Sequence[WorkloadReport]) -> str:
    won = [w.figure.shown for w in workloads if w.config is not None]
    return f"Speed-ups with their intervals: {min(won):.2f}× to {max(won):.2f}×; figures in the table"


# -- what is folded -----------------------------------------------------------------------------------------


def _folded(report: Report, texts: PageTexts) -> dict[str, FoldedSection]:
    """By key, in the order of the page."""
    plots = plot_files(report)
    found: dict[str, FoldedSection] = {}
    for section in sections(report):
        found[section.key] = _ASIDE.get(section.key, ""), _inside(section, plots)
    if any(b.distance for b in report.bounds):
        found["bounds"] = "", [_roofline(report), *found["bounds"][1]]
    if report.history.speedups:
        count = counted(len(report.history.speedups), "evaluation")
        words = f"Best speed-up so far over {count}, {BY_SEARCH}"
        found["best"] = f"{count}, {BY_SEARCH}", [picture_markup(words, plots[BEST])]
    if texts.original is not None and texts.tuned:
        made = kernels_markup(texts, lambda kernel: _reasons(report, kernel))
        found["kernels"] = counted(len(texts.tuned), "kernel"), made
    if texts.dialogue:
        found["talk"] = counted(len(texts.dialogue), "request"), talk_markup(texts.dialogue)
    return {key: found[key] for key in _SECTIONS if key in found}


def _roofline(report: Report) -> Markup:
    from tunesmith.deliver.rooflines import floors_svg, run_roofline_svg  # a run without profiles has none

    drawn = run_roofline_svg(report.bounds, report.problem)
    if drawn is not None:
        return picture_markup("Each workload below its roof, before and after, as in the table below", drawn)
    words = "Time over the floor of the roofline, before and after, as in the table below"
    return picture_markup(words, floors_svg(report.bounds))


def _reasons(report: Report, kernel: PageKernel) -> KernelReasons:
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


def _fitted(folded: dict[str, FoldedSection], left: int) -> list[Markup]:
    """Every section with as much of it as there is room for: so many bytes for all."""
    room, found = 0, []
    for key, (aside, parts) in folded.items():
        name, own = _SECTIONS[key]
        room, kept = min(room + own, left), []
        for part in parts:
            size = len(part.text.encode())
            if size > room:
                kept.append(element("p", ELSEWHERE))
                break
            room, left = room - size, left - size
            kept.append(part)
        beside = [element("span", aside, class_="aside")] if aside else []
        summary = element("summary", element("h2", name), *beside)
        found.append(element("details", summary, element("div", *kept, id=key, class_="inside")))
    return found


def _inside(section: ReportSection, plots: dict[str, bytes]) -> Iterator[Markup]:
    """One by one: what finds no room is not made."""
    return (made for part in section.parts for made in _part(part, plots, section.title))


def _part(part: Part, plots: dict[str, bytes], name: str) -> list[Markup]:
    match part:
        case Grid():
            return [table_markup(part, name)]
        case Items(lines):
            shown = [element("li", cut(line, 4000)) for line in lines[:MOST_ROWS]]
            return [element("ul", *shown), *_more(len(lines) - len(shown))]
        case Diff(lines):
            inside = element("pre", *_marked(lines))
            summary = element("summary", f"What changed, {counted(len(lines), 'line')}", class_="small")
            return [element("details", summary, inside)]
        case Picture(_, file) if file == BEST:
            return []  # it has a section of its own
        case Picture(alt, file):
            return [picture_markup(f"{alt}, as in the table above", plots[file])]
    return [element("p", part)]


def _marked(lines: Iterable[str]) -> Iterable[Inside]:
    for line in lines:
        own = {"+": "add", "-": "del"}.get(line[:1])
        yield element("span", cut(line, LONGEST_CELL), class_=own) if own else cut(line, LONGEST_CELL)
        yield "\n"


def table_markup(grid: Grid, name: str, most: int = MOST_ROWS, longest: int = LONGEST_CELL) -> Markup:
    heads = [head.strip() for head in grid.head.split("|")]
    key = next((head for head in _KEYS if head in heads), None)
    classes = [_class(head, key) for head in heads]
    top = [
        element("th", head.rstrip(":"), scope="col", class_="n" if head.endswith(":") else "")
        for head, own in zip(heads, classes, strict=True)
    ]
    rows = [element("tr", *_cells(row, classes, longest)) for row in grid.rows[:most]]
    left = len(grid.rows) - len(rows)
    caption = element("caption", f"{name}{f'; the first {len(rows)} of {len(grid.rows):,}' if left else ''}")
    table = element("table", caption, element("thead", element("tr", *top)), element("tbody", *rows))
    own = {"role": "region", "aria_label": name, "tabindex": "0"}
    return joined([element("div", table, class_="scroll", **own), *_more(left)])


def _class(head: str, key: str | None) -> str:
    if head.endswith(":"):
        return "n key" if head == key else "n"
    return "" if head in _SHORT else "wide"


def _cells(row: Sequence[object], classes: Sequence[str], longest: int) -> Iterable[Markup]:
    for place, (value, own) in enumerate(zip(row, classes, strict=True)):
        text = value if isinstance(value, Markup) else cut(str(value), longest)
        named = {"class_": own}
        yield element("td", text, **named) if place else element("th", text, scope="row", **named)


def _more(count: int) -> list[Markup]:
    return [element("p", f"{count:,} more in report.json.")] if count > 0 else []


def figures_markup(figures: Iterable[tuple[str, str, bool]]) -> Markup:
    """Large ones, each with words below it and whether it is good news."""
    shown = [
        element("li", element("strong", figure, class_="good" if is_good else ""), element("span", words))
        for figure, words, is_good in figures
    ]
    return element("ul", *shown, class_="figures")


def picture_markup(alt: str, data: bytes) -> Markup:
    """As an image: whatever a text in it says, nothing of it acts on the page."""
    source = f"data:image/svg+xml;base64,{b64encode(data).decode()}"
    return element("figure", element("img", src=source, alt=alt), class_="plot")
