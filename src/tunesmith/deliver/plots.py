"""Pictures: how a search went, what other values of each parameter would cost, and what was verified."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tunesmith.deliver import svg
from tunesmith.deliver.svg import GRID, INK, MUTED, PALETTE, PAPER, RULE, Drawing, Linear, Log, Scale
from tunesmith.run.explain import Explanation, ParamEffect, ValueEffect
from tunesmith.run.report import WorkloadReport
from tunesmith.run.rounds import BY_SEARCH, Best, History

MOST_DOTS = 1500
MOST_STEPS = 400
MOST_ROUNDS = 60
MOST_FAILURES = 300
MOST_LINES = 7  # workloads that are drawn; more would be a tangle
MOST_ROWS = 40  # parameters, those that matter most
SHOWN = 24.0  # what is slower than the best by more than this factor is not drawn

BLUE, ORANGE = PALETTE[0], PALETTE[1]
ORIGINAL, TUNED = ORANGE, BLUE


# -- best so far --------------------------------------------------------------------------------------------


def best_so_far_svg(history: History, name: str, rounds: Sequence[tuple[int, int]] = ()) -> bytes:
    """Every evaluation as a dot, the best so far as a line, over all and at each workload. `rounds`: the
    evaluation that each begins with, and its number."""
    count = len(history.speedups)
    drawing = Drawing(840, 440, f"Best speed-up so far: {name}", _words(history))
    drawn, left_out = history.best[: MOST_LINES + 1], history.best[MOST_LINES + 1 :]
    x = Linear(0, max(count, 2), 76, 660)
    y = _speedup_scale([s for s in history.speedups if s is not None], drawn)
    svg.x_axis(drawing, x, y, "evaluations", count=min(8, max(count, 2)))
    svg.y_axis(drawing, x, y, "speed-up over the original", "×")
    if y.low <= 1 <= y.high:
        drawing.line(x.start, y.at(1), x.end, y.at(1), MUTED, 1, "5 4")
        drawing.text(x.end - 4, y.at(1) - 5, "original", 11, MUTED, "end")
    _round_marks(drawing, rounds, x, y)
    _dots(drawing, history, x, y)
    ends: list[tuple[float, str, str]] = []
    for place, best in reversed(list(enumerate(drawn))):
        colour, width = PALETTE[place % len(PALETTE)], 1.5 if place else 2.8
        if best.steps:
            _staircase(drawing, best, count, x, y, colour, width)
            label = f"{svg.times(best.steps[-1][1])} {best.workload or 'geometric mean'}"
            ends.append((y.at(best.steps[-1][1]), label if len(drawn) > 1 else label.split(" ")[0], colour))
    svg.end_labels(drawing, ends, x.end + 8, y, 12, BLUE)
    if left_out:
        drawing.text(x.end + 8, y.start + 38, f"and {len(left_out)} more in report.json", 10, MUTED)
    if not ends:
        svg.in_the_middle(drawing, x, y, "nothing ran right" if count else "nothing was tried")
    return drawing.render()


def _words(history: History) -> str:
    count = len(history.speedups)
    failed = f", {history.failed:,} failed (marks below)" if history.failed else ""
    gated = f", {len(history.gated):,} of the gate (rings)" if history.gated else ""
    return f"{count:,} evaluation{'' if count == 1 else 's'}{failed}{gated}; {BY_SEARCH}"


def _speedup_scale(speedups: Sequence[float], lines: Sequence[Best]) -> Scale:
    """From zero where all is close together, else by ratios; the far too slow are left below it."""
    ends = [value for best in lines for _, value in (best.steps[:1] + best.steps[-1:])]
    top = max([1.0, *ends, *speedups])
    low = min([1.0, *ends, *(s for s in speedups if s >= top / SHOWN)])
    if top / low < 4:
        return Linear(0, top * 1.08, 376, 68)
    return Log(low * 0.9, top * 1.12, 376, 68)


def _round_marks(drawing: Drawing, rounds: Sequence[tuple[int, int]], x: Linear, y: Scale) -> None:
    """A line where each begins; its number where there is room for it."""
    free = x.start
    for first, number in rounds[:MOST_ROUNDS]:
        place = x.at(first - 0.5)
        drawing.line(place, y.start, place, y.end, RULE, 1, "2 3")
        text = f"round {number}"
        if place >= free:
            drawing.text(place + 3, y.end + 2, text, 10, MUTED)
            free = place + svg.width_of(text, 10) + 6


def _dots(drawing: Drawing, history: History, x: Linear, y: Scale) -> None:
    speedups, gated = history.speedups, frozenset(history.gated)
    good = [(n, s) for n, s in enumerate(speedups, 1) if s is not None and y.low <= s <= y.high]
    for n, speedup in _thinned(good, MOST_DOTS):
        if n in gated:
            drawing.circle(x.at(n), y.at(speedup), 3, PAPER, MUTED)
        else:
            drawing.circle(x.at(n), y.at(speedup), 2.2, RULE, opacity=0.55)
    bad = [(n, 0.0) for n, s in enumerate(speedups, 1) if s is None]
    for n, _ in _thinned(bad, MOST_FAILURES):
        drawing.line(x.at(n), y.start - 7, x.at(n), y.start, ORANGE, 1.2)


def _staircase(
    drawing: Drawing, best: Best, count: int, x: Linear, y: Scale, colour: str, width: float
) -> None:
    steps = [(n, max(value, y.low)) for n, value in _thinned(best.steps, MOST_STEPS)]
    points = [(x.at(steps[0][0]), y.at(steps[0][1]))]
    for (_, before), (n, after) in pairwise(steps):
        points += [(x.at(n), y.at(before)), (x.at(n), y.at(after))]
    drawing.path([*points, (x.at(max(count, steps[-1][0])), y.at(steps[-1][1]))], colour, width)
    for n, value in steps if len(steps) <= 60 and width > 2 else steps[:1]:
        drawing.circle(x.at(n), y.at(value), 1.2 * width, colour, tip=f"evaluation {n}: {svg.times(value)}")


def _thinned(points: Sequence[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """Every so many, and the last one."""
    step = math.ceil(len(points) / most)
    return [*points[:-1:step], points[-1]] if len(points) > most else list(points)


# -- effects ------------------------------------------------------------------------------------------------

LABELS, LEFT, RIGHT, NOTES = 24.0, 200.0, 620.0, 634.0
TOP, ROW = 96.0, 46.0


def effects_svg(explanation: Explanation, name: str) -> bytes:
    """A row for each parameter: where the winner's time would be with every other value."""
    rows, left_out = explanation.params[:MOST_ROWS], explanation.params[MOST_ROWS:]
    where = f" at {explanation.workload}" if explanation.workload else ""
    title = f"Effect of each parameter: {name}{where}"
    below = "time of the winner with one value changed; 1× is the winner, right of it is slower"
    bottom = TOP + ROW * max(len(rows), 1)
    drawing = Drawing(880, bottom + (76 if left_out else 56), title, below)
    _legend(drawing, LABELS, 70)
    x, y = _time_scale(rows), Linear(0, 1, bottom, TOP)
    svg.x_axis(drawing, x, y, "time, in units of the winner's (log scale)", "×", 7)
    drawing.line(x.at(1), TOP, x.at(1), bottom, INK, 1.2)
    for place, param in enumerate(rows):
        middle = TOP + ROW * (place + 0.5)
        if place:
            drawing.line(LABELS, middle - ROW / 2, RIGHT, middle - ROW / 2, GRID)
        _row(drawing, param, x, middle)
    if not rows:
        drawing.text((LEFT + RIGHT) / 2, TOP + ROW / 2, "there are no parameters", 14, MUTED, "middle")
    if left_out:
        drawing.text(LABELS, bottom + 62, f"{len(left_out)} more parameters in report.json", 11, MUTED)
    return drawing.render()


def _time_scale(rows: Sequence[ParamEffect]) -> Log:
    values = [v for param in rows for v in param.values]
    ends = [end for v in values for end in (_time(v), *(v.interval or ())) if end is not None]
    low, high = min([1.0, *ends]), max([1.0, *ends])
    high = max(high, low * 1.1)
    edge = (high / low) ** 0.06
    return Log(low / edge, high * edge, LEFT, RIGHT)


def _legend(drawing: Drawing, x: float, y: float) -> None:
    _diamond(drawing, x + 5, y - 4)
    drawing.text(x + 16, y, "winner's value", 11, MUTED)
    drawing.circle(x + 118, y - 4, 4.5, BLUE)
    drawing.text(x + 128, y, "measured", 11, MUTED)
    drawing.line(x + 196, y - 4, x + 220, y - 4, ORANGE, 1.4)
    drawing.circle(x + 208, y - 4, 4.5, PAPER, ORANGE)
    drawing.text(x + 226, y, "by a model of all measured, ± 2 deviations", 11, MUTED)
    _square(drawing, x + 482, y - 4)
    drawing.text(x + 492, y, "best tried with it, other values changed too", 11, MUTED)


def _row(drawing: Drawing, param: ParamEffect, x: Log, y: float) -> None:
    own = f" = {param.value}"
    size = 13
    shown = svg.cut(param.name, LEFT - LABELS - 16 - svg.width_of(own, size), size)
    drawing.text(LEFT - 14, y + 4, shown + own, size, anchor="end", bold=True)
    others = [v for v in param.others if _time(v) is not None]
    reach = [x.at(v.slower) for v in others if v.slower is not None]
    if reach:
        drawing.line(min([*reach, x.at(1)]), y, max([*reach, x.at(1)]), y, RULE, 1.5)
    estimates = [v for v in others if v.source == "model"]
    for place, value in enumerate(estimates):
        _estimate(drawing, param.name, value, x, y + (place % 3 - 1) * 5 * (len(estimates) > 1))
    for value in others:
        if value.source == "measured" and value.slower is not None:
            tip = f"{param.name}={value.value}: {svg.times(value.slower)}, measured"
            drawing.circle(x.at(value.slower), y, 4.5, BLUE, tip=tip)
        elif value.slower is None and value.best is not None:
            tip = f"{param.name}={value.value}: {svg.times(value.best)}, other values changed too"
            _square(drawing, x.at(value.best), y, tip)
    _diamond(drawing, x.at(1), y, f"{param.name}={param.value}: the winner's")
    _value_labels(drawing, param, others, x, y)
    notes = "; ".join(f"{why}: {', '.join(values)}" for why, values in _unknown(param).items())
    drawing.text(NOTES, y + 4, svg.cut(notes, drawing.width - NOTES - 12, 11), 11, MUTED)


def _time(value: ValueEffect) -> float | None:
    """Where it is drawn: with this value alone changed, else the best that anyone found with it."""
    return value.slower if value.slower is not None else value.best


def _unknown(param: ParamEffect) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value in param.others:
        if value.slower is None:
            words = {"failed": value.why or "failed", "excluded": "excluded"}.get(value.source, "not tried")
            if words != "not tried" or value.best is None:
                found.setdefault(words, []).append(str(value.value))
    return found


def _estimate(drawing: Drawing, name: str, value: ValueEffect, x: Log, y: float) -> None:
    assert value.slower is not None
    assert value.interval is not None
    low, high = (x.at(end) for end in value.interval)
    drawing.line(low, y, high, y, ORANGE, 1.4)
    for end in (low, high):
        drawing.line(end, y - 3, end, y + 3, ORANGE, 1.4)
    reach = " to ".join(map(svg.times, value.interval))
    tip = f"{name}={value.value}: {svg.times(value.slower)} by a model, {reach}"
    drawing.circle(x.at(value.slower), y, 4.5, PAPER, ORANGE, tip)


def _square(drawing: Drawing, x: float, y: float, tip: str = "") -> None:
    drawing.area([(x - 4, y - 4), (x + 4, y - 4), (x + 4, y + 4), (x - 4, y + 4)], RULE, tip)


def _diamond(drawing: Drawing, x: float, y: float, tip: str = "") -> None:
    drawing.area([(x - 6, y), (x, y - 6), (x + 6, y), (x, y + 6)], INK, tip)


def _value_labels(
    drawing: Drawing, param: ParamEffect, others: Sequence[ValueEffect], x: Log, y: float
) -> None:
    """Above the row, else below it, else not at all: what matters most is labelled first."""
    lanes: dict[float, list[tuple[float, float]]] = {y - 12: [], y + 20: []}
    ranked = sorted(others, key=lambda v: (v.value != param.with_value, -abs(math.log(_time(v) or 1))))
    for value in ranked:
        time, most = _time(value) or 1.0, value.value == param.with_value
        text = f"{value.value}: {svg.times(time)}" if most else f"{value.value}"
        half = svg.width_of(text, 11) / 2
        beside = x.at(1) + half + 3 if time >= 1 else x.at(1) - half - 3  # clear of the winner's line
        at = max(x.at(time), beside) if time >= 1 else min(x.at(time), beside)
        at = min(max(at, LEFT + half), RIGHT - half)
        for lane, taken in lanes.items():
            if all(at + half + 3 <= low or at - half - 3 >= high for low, high in taken):
                taken.append((at - half, at + half))
                drawing.text(at, lane, text, 11, anchor="middle", bold=most)
                break


# -- workload by workload -----------------------------------------------------------------------------------

ROWS_TOP, ROWS_HIGH, ROWS_LEFT, ROWS_RIGHT = 66.0, 30.0, 220.0, 640.0


def speedups_svg(workloads: Sequence[WorkloadReport]) -> bytes:
    """A row for each workload: its verified speed-up with the interval, beside the original at 1×."""
    rows = workloads[:MOST_ROWS]
    bottom = ROWS_TOP + ROWS_HIGH * len(rows)
    drawing = Drawing(780, bottom + 48, "Verified speed-up", "dot: median; line: 95 % interval")
    ends = [end for w in rows for end in (w.speedup, *w.interval) if 0 < end < float("inf")]
    x = ratio_scale([1.0, *ends])
    svg.x_axis(drawing, x, Linear(0, 1, bottom, ROWS_TOP), "speed-up over the original", "×", 7)
    drawing.line(x.at(1), ROWS_TOP, x.at(1), bottom, MUTED, 1, "5 4")
    for place, w in enumerate(rows):
        y = row_name(drawing, w.name, place)
        if w.config is None:
            drawing.text(ROWS_RIGHT + 14, y + 4, "the original stays", 12, MUTED)
            continue
        low, high = (x.at(min(max(end, x.low), x.high)) for end in w.interval)
        drawing.line(low, y, high, y, TUNED, 2)
        for end in (low, high):
            drawing.line(end, y - 4, end, y + 4, TUNED, 2)
        drawing.circle(x.at(w.speedup), y, 4.5, TUNED)
        drawing.text(ROWS_RIGHT + 14, y + 4, svg.times(w.speedup), 12, INK, bold=True)
    return drawing.render()


def row_name(drawing: Drawing, name: str, place: int) -> float:
    y = ROWS_TOP + ROWS_HIGH * (place + 0.5)
    drawing.text(ROWS_LEFT - 14, y + 4, svg.cut(name, ROWS_LEFT - 38, 12), 12, anchor="end")
    return y


def ratio_scale(values: Sequence[float]) -> Scale:
    low, high = min(values), max(values)
    high = max(high, low * 1.1)
    edge = (high / low) ** 0.05
    return Log(low / edge, high * edge, ROWS_LEFT, ROWS_RIGHT)
