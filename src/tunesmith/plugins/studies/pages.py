"""A comparison as the user keeps it: JSON for programs, Markdown and pictures for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from itertools import groupby

from tunesmith.base.codec import encode_json
from tunesmith.base.text import (
    Inside,
    Markup,
    escape_markdown,
    format_count,
    html_element,
    markdown_table,
    one_line,
    ratio_text,
    strip_controls,
)
from tunesmith.deliver.pages import page
from tunesmith.deliver.pages import plots as svg
from tunesmith.plugins.studies import experiment as experiment_page
from tunesmith.plugins.studies.experiment import (
    LEAST_PROBLEMS,
    TOKENS,
    ExperimentFigures,
    ExperimentRun,
    experiment_figures,
)
from tunesmith.plugins.studies.plan import ARMS, ComparisonPlan, RunResult
from tunesmith.plugins.studies.result import (
    ENOUGH,
    FREEDOM,
    ComparisonCell,
    ComparisonResult,
    MeanCosts,
    caveat_sentences,
    describe_devices,
    format_chance,
    interval_text,
    join_names,
    spread_text,
)
from tunesmith.run.rounds import BY_SEARCH

UNKNOWN = "unknown"
MARKDOWN, DATA, PLOTS, RUNS = "compare.md", "compare-data.json", "plots", "runs"
_SPEEDUPS, _ROUNDS = "speed-ups.svg", "gain-per-round.svg"


def comparison_json(found: ComparisonResult) -> bytes:
    told = {"comparison": found, "limits": caveat_sentences(found), "figures": comparison_figures(found)}
    return encode_json(told) + b"\n"


def comparison_figures(found: ComparisonResult) -> ExperimentFigures:
    return experiment_figures([ExperimentRun(r.planned.arm, r.planned.problem, r) for r in found.runs])


def comparison_plots(found: ComparisonResult) -> dict[str, bytes]:
    return {_SPEEDUPS: speedups_svg(found), _ROUNDS: rounds_svg(found)}


def comparison_markdown(found: ComparisonResult) -> str:
    lines = [f"# Comparison: {join_names(found.plan.arms)}", "", *what_was_compared(found)]
    for title, part in comparison_sections(found).items():
        lines += ["", f"## {title}", "", *part]
    return "\n".join(lines) + "\n"


def comparison_sections(found: ComparisonResult, plots: str = f"{PLOTS}/") -> dict[str, list[str]]:
    """Title -> lines. `plots`: what is before their names, seen from the page."""
    versions = [f"- problem {p.folder}: `{p.digest}`" for p in found.plan.problems]
    versions += [f"- {name}: `{value}`" for name, value in found.plan.versions]
    terms = resources.files("tunesmith.plugins.studies").joinpath("comparison_terms.md")
    speedups = ["", f"![Speed-ups of all runs]({plots}{_SPEEDUPS})"]
    evidence = comparison_figures(found)
    together = len(evidence.problems) >= LEAST_PROBLEMS
    return {
        "Result": [*_result_lines(found), *_contrast_lines(found), *speedups],
        **({"Over problems and repeats": experiment_page.together_section(evidence)} if together else {}),
        # Our own sentences, with names in them that are not ours: nothing of them is cut off.
        "What this does and does not show": [f"- {escape_markdown(s)}" for s in caveat_sentences(found)],
        "What it cost": _expense_lines(found),
        "What each arm spent": experiment_page.spent_section(evidence, [found.plan.budget]),
        "Gain per round": [*_round_lines(found), "", f"![Gain per round]({plots}{_ROUNDS})"],
        f"Gain per {TOKENS} tokens": experiment_page.tokens_section(evidence),
        "Where the gain comes from": _attribution_lines(found),
        "What the search adds to a template": experiment_page.searches_section(evidence),
        "What was stopped": experiment_page.stopped_section(evidence),
        "Every run": _run_table_lines(found),
        "What the words mean": terms.read_text("utf-8").format(freedom=FREEDOM, enough=ENOUGH).splitlines(),
        "Digests and versions": versions,
    }


def what_was_compared(found: ComparisonResult) -> list[str]:
    plan = found.plan
    arms = ((a, ARMS[a].says, ARMS[a].unused) for a in plan.arms)
    lines = markdown_table("arm | what it is | of the budget it does not use", arms)
    count, names = len(plan.problems), join_names(p.folder for p in plan.problems)
    done = sum(run.counts for run in found.runs)
    where = "; ".join(escape_markdown(device) for device in describe_devices(found)) or "no device so far"
    lines += ["", f"At {format_count(count, 'problem')}: {names}. On {where}."]
    if any(ARMS[a].talks for a in plan.arms):
        unknown = "; who answers a mailbox is not recorded" if "mailbox" in plan.model else ""
        lines.append(f"The model: {escape_markdown(plan.model)}{unknown}.")
    lines += [
        "Against the original kernel of each problem, built and launched as its problem file says.",
        f"Every run of every arm may spend the same: {experiment_page.budget_text(plan.budget)}.",
        *_told_alike(plan),
        f"{_repeats_text(plan)}. No run knows of another: there is no cache of timings, and earlier runs are "
        f"ignored. {done} of {len(found.runs)} runs count.",
        "",
        *_problem_lines(found),
    ]
    return lines


def _told_alike(plan: ComparisonPlan) -> list[str]:
    """What is not as usual, and for which arms."""
    lines = []
    if plan.drafts > 1:
        lines.append(f"A round of models has up to {plan.drafts} drafts side by side.")
    if plan.moves != "usual":
        to = "every model that plans" if plan.moves == "all" else "no model"
        lines.append(f"The expert's moves are told to {to}.")
    return lines


def _repeats_text(plan: ComparisonPlan) -> str:
    if plan.repeats == 1:
        return f"One run of each arm at each problem, with the seed {plan.seed}"
    turns = ", with another arm first each time" if len(plan.arms) > 1 else ""
    last = plan.seed + plan.repeats - 1
    return f"{plan.repeats} repeats, with the seeds {plan.seed} to {last}, one after the other{turns}"


def _problem_lines(found: ComparisonResult) -> list[str]:
    """Where kernels must be fast, and what the originals take there."""
    rows = []
    for problem in found.plan.problems:
        facts = [r.facts for r in found.runs if r.facts is not None and r.planned.problem == problem.folder]
        facts = [f for f in facts if f.originals]
        every = [original for f in facts for original in f.originals]
        for original in facts[0].originals if facts else ():
            took = [o.seconds * 1e6 for o in every if o.workload == original.workload]
            least, most = f"{min(took):.1f}", f"{max(took):.1f}"
            reach = f"{least} µs" if least == most else f"{least} to {most} µs"
            rows.append((problem.folder, facts[0].judged_by, original.workload, original.sizes, reach))
    return markdown_table("problem | judged | workload | sizes | the original takes:", rows)


def _cell_problem(found: ComparisonResult, cell: ComparisonCell) -> str:
    if cell.problem:
        return cell.problem
    return f"**all {len(found.common)}**" if len(found.common) > 1 else "**all**"


def _shown_cells(found: ComparisonResult) -> tuple[ComparisonCell, ...]:
    """Over all problems only where there are several."""
    return (*found.cells, *(found.overall if len(found.plan.problems) > 1 and found.common else ()))


def _result_lines(found: ComparisonResult) -> list[str]:
    rows = []
    for cell in _shown_cells(found):
        runs = f"{cell.counted}" if cell.counted == cell.planned else f"{cell.counted} of {cell.planned}"
        means = ratio_text(cell.mean), spread_text(cell), interval_text(cell), ratio_text(cell.least)
        rows.append(
            (_cell_problem(found, cell), cell.arm, runs, *means, f"{cell.successes} of {cell.counted}")
        )
    head = "problem | arm | runs: | mean: | spread | 95 % interval of the mean | worst: | success:"
    lines = markdown_table(head, rows)
    left_out = [p.folder for p in found.plan.problems if p.folder not in found.common]
    if left_out and len(found.plan.problems) > 1:
        why = "some arm has no run that counts there"
        lines += ["", f"Not in the rows over all problems, because {why}: {', '.join(left_out)}."]
    return lines


def _contrast_lines(found: ComparisonResult) -> list[str]:
    """Arm against arm; of single runs nothing can be said."""
    if not found.contrasts or found.plan.repeats == 1:
        return []
    where = "" if len(found.common) == len(found.plan.problems) else f", at {join_names(found.common)}"
    rows = ((c.first, c.second, ratio_text(c.ratio), format_chance(c.chance)) for c in found.contrasts)
    head = "arm | over | ratio of their means: | by chance:"
    return ["", f"Arm against arm{where}:", "", *markdown_table(head, rows)]


def _expense_lines(found: ComparisonResult) -> list[str]:
    shown = _shown_cells(found)
    told = any(c.costs is not None and c.costs.searched_seconds is not None for c in shown)
    costs = (
        (_cell_problem(found, c), c.arm, *_cost_cells(c.costs, told)) for c in shown if c.costs is not None
    )
    head = "evaluations: | of the budget: | requests: | repairs: | tokens: | cost: | device-seconds:"
    before = " before races: |" if told else ""
    lines = markdown_table(f"problem | arm | {head} |{before} in kernels: | seconds:", costs)
    return ["For one run, in the mean over those that count.", "", *lines]


def _cost_cells(costs: MeanCosts, told: bool) -> tuple[str, ...]:
    """`told`: with the seconds that a budget counts."""
    kernels = UNKNOWN if costs.kernel_seconds is None else f"{costs.kernel_seconds:.3g}"
    tried, asked = (costs.evaluations, costs.of_budget), (costs.requests, costs.repairs)
    counts = (*(f"{count:.0f}" for count in tried), *(f"{count:.1f}" for count in asked))
    searched = UNKNOWN if costs.searched_seconds is None else f"{costs.searched_seconds:.1f}"
    device = (f"{costs.device_seconds:.1f}", searched)[: 1 + told]
    seconds = (*device, kernels, f"{costs.seconds:.1f}")
    if not costs.requests:
        return (*counts, "none", "none", *seconds)
    by_length = f", about {costs.tokens_by_length:.0f} by length" if costs.tokens_by_length else ""
    tokens = f"{UNKNOWN}{by_length}" if costs.tokens is None else f"{costs.tokens:.0f}"
    dollars = UNKNOWN if costs.dollars is None else f"${costs.dollars:.4f}"
    return (*counts, tokens, dollars, *seconds)


def _round_lines(found: ComparisonResult) -> list[str]:
    most = max((len(cell.rounds) for cell in _shown_cells(found)), default=0)
    if not most:
        return ["No run has had a round yet."]
    rows = []
    for cell in _shown_cells(found):
        if cell.counted:
            last = cell.rounds[-1] if cell.rounds else 1.0
            every = [*cell.rounds, *[last] * (most - len(cell.rounds))]
            rows.append((_cell_problem(found, cell), cell.arm, *map(ratio_text, every)))
    return [
        f"The best so far after each round, {BY_SEARCH} (geometric mean over runs; one that has ended "
        "keeps what it had). Verified figures are those above.",
        "",
        *markdown_table(
            " | ".join(["problem", "arm", *(f"{number}:" for number in range(1, most + 1))]), rows
        ),
    ]


def _attribution_lines(found: ComparisonResult) -> list[str]:
    rows = (
        (_cell_problem(found, c), c.arm, c.attributed, ratio_text(c.refactoring), ratio_text(c.search))
        for c in _shown_cells(found)
    )
    return [
        "Of the runs that won: what of the verified speed-up the winner's template gave as it was written, "
        "and what the search gave on top of that; divided as short measurements say, geometric means. A "
        "kernel without parameters is refactoring alone. Below 1 for refactoring: as it was written the "
        "template was slower than the original.",
        "",
        *markdown_table("problem | arm | runs: | refactoring: | search:", rows),
    ]


def _run_table_lines(found: ComparisonResult) -> list[str]:
    places = [(p.folder, arm) for p in found.plan.problems for arm in found.plan.arms]

    def order(run: RunResult) -> tuple[int, int]:
        return places.index((run.planned.problem, run.planned.arm)), run.planned.repeat

    head = "run | status | speed-up: | evaluations: | rounds: | requests: | seconds: | why it ended"
    return markdown_table(head, map(_run_table_row, sorted(found.runs, key=order)))


def _run_table_row(run: RunResult) -> list[str]:
    place, facts = run.planned.place, run.facts
    name = f"[{place}]({RUNS}/{place}/report.md)" if run.status == "finished" else place
    cells = [name, run.status, ratio_text(run.speedup)]
    if facts is None:
        return [*cells, "", "", "", "", escape_markdown(one_line(run.reason))]
    cells += [str(facts.evaluations), str(len(facts.rounds)), str(facts.requests), f"{facts.seconds:.1f}"]
    return [*cells, escape_markdown(one_line(run.reason or facts.reason))]


# -- pictures: every run as a dot beside its arm's mean, and the gain per round -----------------------------


WIDTH, LEFT, RIGHT, TOP = 940.0, 320.0, 800.0, 88.0
ROW, BETWEEN = 24.0, 14.0  # an arm, and the gap between problems
DOT = 8.0  # two that are closer lie one above the other
LEAST_ROOM = 0.05  # beside the outermost: where all is alike nothing is blown up
NARROW = 4.0  # ratios further apart than this are drawn by their logarithms


def speedups_svg(found: ComparisonResult) -> bytes:
    """A strip for each arm at each problem: its runs as dots, their mean as a bar across."""
    problems = [p.folder for p in found.plan.problems]
    strip = ROW * len(found.plan.arms) + BETWEEN
    bottom = TOP + strip * len(problems)
    title = "Verified speed-up over the original, run by run"
    count = found.plan.repeats
    often = "one run each" if count == 1 else f"{count} repeats"
    bar = "" if count == 1 else "a bar is the geometric mean, "
    below = f"{often}; {bar}a hollow dot a run that failed{_devices_text(found)}"
    drawing = svg.Drawing(WIDTH, bottom + 56, title, below)
    speedups = [run.speedup for run in found.runs if run.counts and run.speedup is not None]
    x, y = _choose_scale([1.0, *speedups], LEFT, RIGHT, 0.06), svg.Linear(0, 1, bottom, TOP)
    svg.x_axis(drawing, x, y, "speed-up over the original", "×", 7)
    drawing.line(x.at(1), TOP, x.at(1), bottom, svg.MUTED, 1, "5 4")
    drawing.text(RIGHT + 10, TOP - 8, "mean, successes", 11, svg.MUTED)
    for place, problem in enumerate(problems):
        top = TOP + strip * place
        if place:
            drawing.line(24, top, RIGHT, top, svg.GRID)
        middle = top + strip / 2
        drawing.text(24, middle + 4, svg.fit_label(problem, 172, 12), 12, bold=True)
        for row, cell in enumerate(c for c in found.cells if c.problem == problem):
            y_of_row = top + BETWEEN / 2 + ROW * (row + 0.5)
            _draw_strip(drawing, cell, found.of(cell.arm, problem), x, y_of_row, _arm_colour(found, cell.arm))
    if not speedups:
        svg.in_the_middle(drawing, x, y, "no run counts yet")
    return drawing.render()


def _draw_strip(
    drawing: svg.Drawing, cell: ComparisonCell, runs: Sequence[RunResult], x: svg.Scale, y: float, colour: str
) -> None:
    drawing.text(LEFT - 10, y + 4, svg.fit_label(cell.arm, 108, 12), 12, colour, "end")
    if cell.least is not None and cell.most is not None and cell.least < cell.most:
        drawing.line(x.at(cell.least), y, x.at(cell.most), y, svg.RULE, 1.2)
    known = [(run, run.speedup) for run in runs if run.speedup is not None]
    for (run, speedup), off in zip(known, _spread_dots([x.at(s) for _, s in known]), strict=True):
        tip = f"{run.planned.place}: {svg.format_ratio(speedup)}, {run.status}"
        failed = run.status == "failed"
        fill, stroke = (svg.PAPER, colour) if failed else (colour, "")
        drawing.circle(x.at(speedup), y + off, 3.5, fill, stroke, tip, 1 if failed else 0.7)
    if cell.mean is not None:
        if cell.counted > 1:  # else it would hide the one dot
            drawing.line(x.at(cell.mean), y - 8, x.at(cell.mean), y + 8, svg.INK, 2)
        words = f"{svg.format_ratio(cell.mean)}, {cell.successes}/{cell.counted}"
        drawing.text(RIGHT + 10, y + 4, words, 11, svg.MUTED)


def _spread_dots(places: Sequence[float]) -> list[float]:
    """How far above or below its line each dot lies, so that none hides another."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    heaps: list[list[int]] = []
    for i in order:
        if heaps and places[i] - places[heaps[-1][-1]] < DOT:
            heaps[-1].append(i)
        else:
            heaps.append([i])
    found = [0.0] * len(places)
    for heap in heaps:
        step = min(DOT - 1, (ROW - DOT) / max(len(heap) - 1, 1))
        for place, i in enumerate(heap):
            found[i] = step * (place - (len(heap) - 1) / 2)
    return found


def rounds_svg(found: ComparisonResult) -> bytes:
    """A line for each arm over all problems, thin ones for each problem."""
    several = len(found.common) > 1
    title = "Best speed-up so far after each round"
    whole = len(found.common) == len(found.plan.problems)
    where = f" at {join_names(found.common)}" if not (several and whole) else ""
    thin = ", thin lines: one problem" if several else ""
    below = f"{BY_SEARCH}; geometric mean over runs{where}{thin}{_devices_text(found)}"
    drawing = svg.Drawing(WIDTH, 440, title, below)
    common = [cell for cell in found.cells if cell.problem in found.common]
    shown = [*common, *(found.overall if several else ())]
    most = max((len(cell.rounds) for cell in shown), default=0)
    x = svg.Linear(0, max(most, 1), 76, RIGHT - 40)
    y = _choose_scale([1.0, *(value for cell in shown for value in cell.rounds)], 376, 68, 0.08)
    svg.x_axis(drawing, x, y, "rounds", count=max(most, 1))
    svg.y_axis(drawing, x, y, "speed-up over the original", "×")
    drawing.line(x.start, y.at(1), x.end, y.at(1), svg.MUTED, 1, "5 4")
    ends: list[tuple[float, str, str]] = []
    for cell in shown:
        colour = _arm_colour(found, cell.arm)
        last = cell.rounds[-1] if cell.rounds else 1.0
        values = [1.0, *cell.rounds, *[last] * (most - len(cell.rounds))]
        points = [(x.at(number), y.at(value)) for number, value in enumerate(values)]
        if cell.problem and several:
            drawing.path(points, colour, 0.7)
            continue
        drawing.path(points, colour, 2.6)
        for number, value in enumerate(values):
            tip = f"{cell.arm}, after {format_count(number, 'round')}: {svg.format_ratio(value)}"
            drawing.circle(x.at(number), y.at(value), 3.2, colour, tip=tip)
        ends.append((y.at(last), f"{svg.format_ratio(last)} {cell.arm}", colour))
    svg.end_labels(drawing, ends, x.end + 10, y, 12, "all")
    if not shown:
        svg.in_the_middle(drawing, x, y, "no problem has a run of every arm that counts")
    return drawing.render()


def _devices_text(found: ComparisonResult) -> str:
    names = dict.fromkeys(run.facts.device for run in found.runs if run.facts is not None)
    return f"; on {join_names(names)}" if names else ""


def _arm_colour(found: ComparisonResult, arm: str) -> str:
    return svg.PALETTE[found.plan.arms.index(arm) % len(svg.PALETTE)]


def _choose_scale(values: Sequence[float], start: float, end: float, edge: float) -> svg.Scale:
    low, high = min(values), max(values)
    if high / low >= NARROW:
        return svg.Log(low * (1 - edge), high * (1 + edge), start, end)
    room = max((high - low) * edge, LEAST_ROOM)
    return svg.Linear(low - room, high + room, start, end)


# What the runs of a comparison say together, as parts of a page: its `compare.md`, read again. The file lies
# where others may have had a hand in it: whatever it holds becomes text, and of its pictures only those that
# are handed over stand in the page, as images, in which nothing acts.
MAX_ROWS = 2000  # of a table
_PICTURE = re.compile(r"!\[([^\]]*)\]\((?:[\w.-]+/)*([\w.-]+)\)")
# No part of it reads past where it may begin anew: a hostile text takes as long as any of its length.
_INLINE = re.compile(r"`([^`]*)`|\\([!-/:-@\[-`{-~])|\[([^\[\]]{0,500})\]\(([^()]{0,500})\)|\*\*([^*]+)\*\*")
_RULE = re.compile(r":?-{3,}:?")
_BETWEEN = re.compile(r"(?<!\\)\|")


def comparison_parts(text: str, pictures: Mapping[str, bytes]) -> tuple[str, list[Markup]]:
    """The title, and a section for each of its headings. `pictures`: by the names of their files."""
    title, sections = "Comparison", list[tuple[str, list[str]]]()
    lines: list[str] = []
    for line in strip_controls(text).split("\n"):
        if line.startswith("# ") and not sections and not any(lines):
            title = _strip_inline_marks(line[2:].strip())
        elif line.startswith("## "):
            sections.append((line[3:].strip(), []))
        else:
            (sections[-1][1] if sections else lines).append(line)
    first = [html_element("section", *_blocks_markup(lines, pictures), id="verified")]
    return title, first + [_page_section_markup(name, part, pictures) for name, part in sections]


def _page_section_markup(name: str, lines: Sequence[str], pictures: Mapping[str, bytes]) -> Markup:
    heading = html_element("h2", *_inline_markup(name))
    return html_element("section", heading, *_blocks_markup(lines, pictures, name))


def _blocks_markup(lines: Sequence[str], pictures: Mapping[str, bytes], name: str = "") -> Iterator[Markup]:
    for kind, group in groupby((line.strip() for line in lines), _line_kind):
        if kind == "table":
            yield _table_markup(list(group), name or "What was compared")
        elif kind == "list":
            yield html_element("ul", *(html_element("li", *_inline_markup(line[2:])) for line in group))
        elif kind == "heading":
            yield from (html_element("h3", *_inline_markup(line.lstrip("# "))) for line in group)
        elif kind == "picture":
            found = filter(None, map(_PICTURE.fullmatch, group))
            yield from (page.picture_markup(m[1], pictures[m[2]]) for m in found if m[2] in pictures)
        elif kind == "text":
            yield html_element("p", *_inline_markup(" ".join(group)))


def _line_kind(line: str) -> str:
    if not line:
        return ""
    starts = {"|": "table", "- ": "list", "###": "heading"}
    kind = next((kind for start, kind in starts.items() if line.startswith(start)), "text")
    return "picture" if kind == "text" and _PICTURE.fullmatch(line) else kind


def _table_markup(lines: Sequence[str], name: str) -> Markup:
    rows = [[cell.strip() for cell in _BETWEEN.split(line.strip("|"))] for line in lines[: MAX_ROWS + 2]]
    rules = rows[1] if len(rows) > 1 and all(map(_RULE.fullmatch, rows[1])) else []
    classes = ["n" if rule.endswith(":") else "" for rule in rules] + [""] * max(map(len, rows))
    cells = [
        html_element("tr", *(_cell_markup(cell, classes[place], place) for place, cell in enumerate(row)))
        for row in rows[2 if rules else 1 :]
    ]
    heads = [
        html_element("th", *_inline_markup(cell), scope="col", class_=class_)
        for cell, class_ in zip(rows[0], classes, strict=False)
    ]
    head = html_element("thead", html_element("tr", *heads))
    table = html_element("table", head, html_element("tbody", *cells))
    label = _strip_inline_marks(name)
    return html_element("div", table, class_="scroll", role="region", aria_label=label, tabindex="0")


def _cell_markup(text: str, class_: str, place: int) -> Markup:
    if place:
        return html_element("td", *_inline_markup(text), class_=class_)
    return html_element("th", *_inline_markup(text), scope="row", class_=class_)


def _strip_inline_marks(text: str) -> str:
    """Without what marks them, for where nothing else can stand."""
    return _INLINE.sub(lambda m: next((g for g in (m[1], m[2], m[3], m[5]) if g is not None), ""), text)


def _inline_markup(text: str) -> Iterator[Inside]:
    """Code and what stands out; of a link its words alone: nothing leads out of the page."""
    end = 0
    for found in _INLINE.finditer(text):
        yield text[end : found.start()]
        end = found.end()
        code, literal, words, _, strong = found.groups()
        if code is not None:
            yield html_element("code", code)
        elif strong is not None:
            yield html_element("strong", strong)
        else:
            yield literal if literal is not None else words
    yield text[end:]
