"""Runs of one problem side by side: as parts that a terminal shows, as Markdown, and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.deliver import page, svg
from tunesmith.deliver.difference import ComparedRun, RunDifference, WorkloadDifference
from tunesmith.deliver.plots import MOST_ROWS, ROWS_RIGHT, ratio_scale
from tunesmith.deliver.report_parts import Grid, config_text
from tunesmith.text import Markup, counted, cut, element, markdown, table

LONGEST_NAME = 80
MOST_RUNS = 8  # in a picture


def workload_grid(found: RunDifference) -> Grid:
    """Of two runs a row for each workload, else one for each workload and run, the first run's first."""
    if not found.others:
        figures = "before: | after: | ratio: | speed-up before: | speed-up after:"
        return Grid(
            f"workload | {figures} | intervals of the speed-ups", list(map(_pair_row, found.workloads))
        )
    head = "workload | run | time: | ratio: | speed-up: | 95 % interval | against the first"
    return Grid(head, [row for name in _workloads(found) for row in _rows_of(found, name)])


def _pair_row(w: WorkloadDifference) -> tuple[str, ...]:
    spans = f"{_span(w.before_interval)}, {_span(w.after_interval)}: {_apart(w)}, ratio {_ratio_span(w)}"
    times = (f"{t:.1f} µs" for t in (w.before_us, w.after_us))
    return w.name, *times, f"{w.ratio:.3f}×", f"{w.before_speedup:.2f}×", f"{w.after_speedup:.2f}×", spans


def _workloads(found: RunDifference) -> list[str]:
    return list(dict.fromkeys(w.name for pair in found.pairs for w in pair.workloads))


def _rows_of(found: RunDifference, name: str) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for pair in found.pairs:
        w = next((one for one in pair.workloads if one.name == name), None)
        if w is None:
            rows.append((name, pair.after, "", "", "", "", "it has no such workload"))
            continue
        if not any(row[1] == pair.before for row in rows):
            own = f"{w.before_us:.1f} µs", "1.000×", f"{w.before_speedup:.2f}×", _span(w.before_interval)
            rows.insert(0, (name, pair.before, *own, ""))
        own = f"{w.after_us:.1f} µs", f"{w.ratio:.3f}×", f"{w.after_speedup:.2f}×", _span(w.after_interval)
        rows.append(
            (name, pair.after, *own, f"by {pair.judged_by}, intervals {_apart(w)}, ratio {_ratio_span(w)}")
        )
    return rows


def runs_grid(found: RunDifference) -> Grid:
    rows = [
        (
            r.name, r.device, r.driver, r.compiler or "not told", f"Tunesmith {r.tunesmith}".strip(),
            f"{r.strategy}, {r.authors}", f"{r.search}, seed {r.seed}", r.evaluations, _mean(r),
        )
        for r in found.runs
    ]  # fmt: skip
    head = "run | device | driver | compiler | version | strategy | search | tried: | mean speed-up:"
    return Grid(head, rows)


def mean_lines(found: RunDifference) -> list[tuple[str, str]]:
    """What each run comes to against the first, with its name where there are several."""
    if not found.others:
        return [("geometric mean", _mean_text(found))]
    return [("geometric mean", f"{_mean_text(pair)}, {pair.after}") for pair in found.pairs]


def _mean_text(pair: RunDifference) -> str:
    return f"{pair.ratio:.3f}× ({pair.interval[0]:.3f} to {pair.interval[1]:.3f}) by {pair.judged_by}"


def config_lines(found: RunDifference) -> list[tuple[str, str]]:
    """Where the winners are not the same."""
    lines = []
    for pair in found.pairs:
        whose = f" in {pair.after}" if found.others else ""
        for w in pair.workloads:
            if w.before_config != w.after_config:
                was, now = config_text(w.before_config), config_text(w.after_config)
                lines.append((w.name, f"{was} before, {now} after{whose}"))
    return lines


def note_lines(found: RunDifference) -> list[tuple[str, str]]:
    several = bool(found.others)
    return [
        ("note", f"{pair.after}: {note}" if several else note)
        for pair in found.pairs
        for note in (*(f"{w.name}: {w.moved}" for w in pair.workloads if w.moved), *pair.notes)
    ]


def slower_text(found: RunDifference, threshold: float) -> str:
    """The workloads below the threshold, with their runs where there are several; empty: there is none."""
    return _listed(found, [pair.below(threshold) for pair in found.pairs])


def unclear_text(found: RunDifference, threshold: float) -> str:
    """Those of which it cannot be told."""
    return _listed(found, [pair.unclear(threshold) for pair in found.pairs])


def _listed(found: RunDifference, chosen: Sequence[Sequence[WorkloadDifference]]) -> str:
    several = bool(found.others)
    return ", ".join(
        f"{w.name} {w.ratio:.3f}× ({_ratio_span(w)}){f' in {pair.after}' if several else ''}"
        for pair, workloads in zip(found.pairs, chosen, strict=True)
        for w in workloads
    )


def _span(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.2f} to {interval[1]:.2f}"


def _ratio_span(w: WorkloadDifference) -> str:
    return f"{w.interval[0]:.3f} to {w.interval[1]:.3f}"


def _apart(w: WorkloadDifference) -> str:
    return "apart" if w.is_clear else "overlap"


def _mean(run: ComparedRun) -> str:
    return run.headline


# -- as a whole ---------------------------------------------------------------------------------------------


def difference_markdown(found: RunDifference, threshold: float | None = None) -> str:
    """For the summary of a job in CI."""
    lines = [f"# {markdown(found.problem)}: {len(found.pairs) + 1} runs", ""]
    if threshold is not None:
        lines += [markdown(_verdict(found, threshold)), ""]
    for grid in (workload_grid(found), runs_grid(found)):
        lines += [*table(grid.head, ([markdown(str(v)) for v in row] for row in grid.rows)), ""]
    told = [*mean_lines(found), *config_lines(found), *note_lines(found)]
    return "\n".join([*lines, *(f"- {markdown(f'{name}: {text}')}" for name, text in told)]) + "\n"


def difference_page(found: RunDifference, threshold: float | None = None) -> str:
    """In the form of a run's own page."""
    name = f"{cut(found.problem, LONGEST_NAME)}: {counted(len(found.pairs) + 1, 'run')} compared"
    inside: list[Markup] = [element("h2", "What each delivers, verified")]
    figures = [
        (f"{pair.ratio:.3f}×", f"{cut(pair.after, 200)}, by {pair.judged_by}, geometric mean", pair.ratio > 1)
        for pair in found.pairs[:MOST_RUNS]
    ]
    inside.append(page.figures_markup(figures))
    if threshold is not None:
        inside.append(element("p", _verdict(found, threshold)))
    inside.append(page.table_markup(workload_grid(found), "Ratios to the first run; below 1 it is slower"))
    words = "Verified speed-ups of each run with their intervals, as in the table above"
    inside.append(page.picture_markup(words, runs_svg(found)))
    parts = [element("section", *inside, id="verified")]
    parts.append(
        element("section", element("h2", "The runs"), page.table_markup(runs_grid(found), "Made with"))
    )
    told = [*config_lines(found), *note_lines(found)]
    if told:
        rows = [part for name, text in told for part in (element("dt", name), element("dd", cut(text, 1200)))]
        parts.append(element("section", element("h2", "What else differs"), element("dl", *rows)))
    about = f"Each against {cut(found.before, 200)}."
    return page.whole_page(
        name, about, parts, "Written by Tunesmith. All speed-ups are those of the verifications."
    )


def _verdict(found: RunDifference, threshold: float) -> str:
    slower, unclear = slower_text(found, threshold), unclear_text(found, threshold)
    below = f"Below {threshold}×: {slower}." if slower else f"No workload is below {threshold}×."
    return f"{below} Cannot tell: {unclear}." if unclear else below


LEFT, TOP, HIGH, BETWEEN = 240.0, 66.0, 22.0, 12.0


def runs_svg(found: RunDifference) -> bytes:
    """A block of rows for each workload: every run's verified speed-up with its interval."""
    blocks = [(name, _marks(found, name)) for name in _workloads(found)[:MOST_ROWS]]
    bottom = TOP + sum(HIGH * len(marks) + BETWEEN for _, marks in blocks)
    drawing = svg.Drawing(
        820, bottom + 48, f"Verified speed-ups: {found.problem}", "dot: median; line: 95 % interval"
    )
    ends = [e for _, marks in blocks for _, _, at, span in marks for e in (at, *span) if 0 < e < float("inf")]
    x = ratio_scale([1.0, *ends])
    svg.x_axis(drawing, x, svg.Linear(0, 1, bottom, TOP), "speed-up over the original", "×", 7)
    drawing.line(x.at(1), TOP, x.at(1), bottom, svg.MUTED, 1, "5 4")
    y = TOP + BETWEEN / 2
    for name, marks in blocks:
        drawing.text(12, y + HIGH / 2 + 4, svg.cut(name, 90, 12), 12, bold=True)
        for place, (number, run, at, span) in enumerate(marks):
            middle, colour = y + HIGH * (place + 0.5), svg.PALETTE[number % len(svg.PALETTE)]
            drawing.text(LEFT - 34, middle + 4, svg.cut(run, 110, 11), 11, colour, "end")
            low, high = (x.at(min(max(end, x.low), x.high)) for end in span)
            drawing.line(low, middle, high, middle, colour, 2)
            drawing.circle(x.at(at), middle, 4.5, colour)
            drawing.text(ROWS_RIGHT + 14, middle + 4, svg.times(at), 12, svg.INK)
        y += HIGH * len(marks) + BETWEEN
    return drawing.render()


def _marks(found: RunDifference, name: str) -> list[tuple[int, str, float, tuple[float, float]]]:
    """Of each run that has the workload: its number, its name's end, its speed-up and the interval."""
    marks: list[tuple[int, str, float, tuple[float, float]]] = []
    for number, pair in enumerate(found.pairs[: MOST_RUNS - 1], 1):
        for w in (one for one in pair.workloads if one.name == name):
            if not marks:
                marks.append((0, _short(pair.before), w.before_speedup, w.before_interval))
            marks.append((number, _short(pair.after), w.after_speedup, w.after_interval))
    return marks


def _short(name: str) -> str:
    """The part of a path that tells runs apart."""
    parts: Sequence[str] = [part for part in name.split("/") if part and part != "report.json"]
    return parts[-1] if parts else name
