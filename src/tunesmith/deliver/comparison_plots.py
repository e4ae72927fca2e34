"""The pictures of a comparison: every run as a dot beside its arm's mean, and the gain per round."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.deliver import svg
from tunesmith.deliver.compared import ComparisonCell, ComparisonResult
from tunesmith.deliver.comparing import RunResult
from tunesmith.deliver.comparison_words import listed
from tunesmith.deliver.svg import GRID, INK, MUTED, PALETTE, PAPER, RULE, Drawing, Linear, Log, Scale
from tunesmith.text import counted

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
    below = f"{often}; {bar}a hollow dot a run that failed{_on(found)}"
    drawing = Drawing(WIDTH, bottom + 56, title, below)
    drawing.heading(24, title, below)
    speedups = [run.speedup for run in found.runs if run.counts and run.speedup is not None]
    x, y = _scale([1.0, *speedups], LEFT, RIGHT, 0.06), Linear(0, 1, bottom, TOP)
    svg.x_axis(drawing, x, y, "speed-up over the original", "×", 7)
    drawing.line(x.at(1), TOP, x.at(1), bottom, MUTED, 1, "5 4")
    drawing.text(RIGHT + 10, TOP - 8, "mean, successes", 11, MUTED)
    for place, problem in enumerate(problems):
        top = TOP + strip * place
        if place:
            drawing.line(24, top, RIGHT, top, GRID)
        middle = top + strip / 2
        drawing.text(24, middle + 4, svg.cut(problem, 172, 12), 12, bold=True)
        for row, cell in enumerate(c for c in found.cells if c.problem == problem):
            own = top + BETWEEN / 2 + ROW * (row + 0.5)
            _strip(drawing, cell, found.of(cell.arm, problem), x, own, _colour(found, cell.arm))
    if not speedups:
        svg.in_the_middle(drawing, x, y, "no run counts yet")
    return drawing.render()


def _strip(
    drawing: Drawing, cell: ComparisonCell, runs: Sequence[RunResult], x: Scale, y: float, colour: str
) -> None:
    drawing.text(LEFT - 10, y + 4, svg.cut(cell.arm, 108, 12), 12, colour, "end")
    if cell.least is not None and cell.most is not None and cell.least < cell.most:
        drawing.line(x.at(cell.least), y, x.at(cell.most), y, RULE, 1.2)
    known = [(run, run.speedup) for run in runs if run.speedup is not None]
    for (run, speedup), off in zip(known, _beside([x.at(s) for _, s in known]), strict=True):
        tip = f"{run.planned.place}: {svg.times(speedup)}, {run.status}"
        failed = run.status == "failed"
        fill, stroke = (PAPER, colour) if failed else (colour, "")
        drawing.circle(x.at(speedup), y + off, 3.5, fill, stroke, tip, 1 if failed else 0.7)
    if cell.mean is not None:
        if cell.counted > 1:  # else it would hide the one dot
            drawing.line(x.at(cell.mean), y - 8, x.at(cell.mean), y + 8, INK, 2)
        drawing.text(RIGHT + 10, y + 4, f"{svg.times(cell.mean)}, {cell.successes}/{cell.counted}", 11, MUTED)


def _beside(places: Sequence[float]) -> list[float]:
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
    where = f" at {listed(found.common)}" if not (several and whole) else ""
    thin = ", thin lines: one problem" if several else ""
    below = f"short measurements of the search; geometric mean over runs{where}{thin}{_on(found)}"
    drawing = Drawing(WIDTH, 440, title, below)
    drawing.heading(24, title, below)
    common = [cell for cell in found.cells if cell.problem in found.common]
    shown = [*common, *(found.overall if several else ())]
    most = max((len(cell.rounds) for cell in shown), default=0)
    x = Linear(0, max(most, 1), 76, RIGHT - 40)
    y = _scale([1.0, *(value for cell in shown for value in cell.rounds)], 376, 68, 0.08)
    svg.x_axis(drawing, x, y, "rounds", count=max(most, 1))
    svg.y_axis(drawing, x, y, "speed-up over the original", "×")
    drawing.line(x.start, y.at(1), x.end, y.at(1), MUTED, 1, "5 4")
    ends: list[tuple[float, str, str]] = []
    for cell in shown:
        colour = _colour(found, cell.arm)
        last = cell.rounds[-1] if cell.rounds else 1.0
        values = [1.0, *cell.rounds, *[last] * (most - len(cell.rounds))]
        points = [(x.at(number), y.at(value)) for number, value in enumerate(values)]
        if cell.problem and several:
            drawing.path(points, colour, 0.7)
            continue
        drawing.path(points, colour, 2.6)
        for number, value in enumerate(values):
            tip = f"{cell.arm}, after {counted(number, 'round')}: {svg.times(value)}"
            drawing.circle(x.at(number), y.at(value), 3.2, colour, tip=tip)
        ends.append((y.at(last), f"{svg.times(last)} {cell.arm}", colour))
    svg.end_labels(drawing, ends, x.end + 10, y, 12, "all")
    if not shown:
        svg.in_the_middle(drawing, x, y, "no problem has a run of every arm that counts")
    return drawing.render()


def _on(found: ComparisonResult) -> str:
    names = dict.fromkeys(run.facts.device for run in found.runs if run.facts is not None)
    return f"; on {listed(names)}" if names else ""


def _colour(found: ComparisonResult, arm: str) -> str:
    return PALETTE[found.plan.arms.index(arm) % len(PALETTE)]


def _scale(values: Sequence[float], start: float, end: float, edge: float) -> Scale:
    low, high = min(values), max(values)
    if high / low >= NARROW:
        return Log(low * (1 - edge), high * (1 + edge), start, end)
    room = max((high - low) * edge, LEAST_ROOM)
    return Linear(low - room, high + room, start, end)
