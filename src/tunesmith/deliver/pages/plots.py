"""Pictures: how a search went, what other values of each parameter would cost, and what was verified."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from unicodedata import east_asian_width

from tunesmith.base.text import strip_controls
from tunesmith.profiles.facts import Point, ProfilePage
from tunesmith.profiles.roofline import OF_OPERATIONS, Ceiling, compute_roofline
from tunesmith.run.explain import Explanation, ParamEffect, ValueEffect
from tunesmith.run.report import BoundReport, WorkloadReport
from tunesmith.run.rounds import BY_SEARCH, Best, History

# Drawings as SVG text: shapes, scales with ticks, axes. The same calls give the same bytes.
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, MUTED, RULE, GRID, PAPER = "#1a1a1a", "#5f6368", "#9aa0a6", "#e8eaed", "#ffffff"
# Okabe and Ito's colours, which people who see no red or no green tell apart too; the dark ones first.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6000", "#5c4b8a")
HEADING_LEFT = 24.0  # where a heading begins
Attributes = dict[str, str | float]
_NOT_XML = re.compile("[\ufffe\uffff]")


def escape_svg(text: str) -> str:
    """Names are not ours: one line, and nothing that XML acts upon or forbids."""
    return escape(_single_svg_line(text), quote=False).replace('"', "&quot;")


def width_of(text: str, size: float) -> float:
    """About how wide it is; fonts differ, so it is on the large side."""
    return sum(_letter_width(letter) for letter in text) * size


def _letter_width(letter: str) -> float:
    if east_asian_width(letter) in "WF":
        return 1.0
    return 0.78 if letter.isupper() or letter in "mw_…" else 0.6


def fit_label(text: str, width: float, size: float) -> str:
    """As much of it as fits, with an ellipsis where something is missing."""
    text = _single_svg_line(text)
    if width_of(text, size) <= width:
        return text
    kept = text[: max(1, int(width / (0.5 * size)))]
    while len(kept) > 1 and width_of(kept + "…", size) > width:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def _single_svg_line(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", " ".join(strip_controls(text).split()))


def format_ratio(value: float) -> str:
    """A ratio: three digits, and no exponent where people do not use one."""
    if value >= 9.995e5 or 0 < value < 0.001:
        return f"{value:.1e}×"
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{max(digits, 3 if value < 0.0995 else 0)}f}×"


def format_coordinate(value: float) -> str:
    """A coordinate or a tick: short, and never in exponents."""
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return "0" if text in ("", "-0") else text


@dataclass(frozen=True)
class Linear:
    """From values to positions: `low` is at `start` and `high` at `end`, which may be the smaller one."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)

    def ticks(self, count: int = 6) -> list[float]:
        """Multiples of 1, 2 or 5 and a power of ten; at most `count` + 1."""
        least = (self.high - self.low) / count
        power = 10.0 ** math.floor(math.log10(least))
        step = next((digit * power for digit in (1, 2, 5) if digit * power >= least * (1 - 1e-9)), 10 * power)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [place * step for place in range(first, last + 1)]


@dataclass(frozen=True)
class Log(Linear):
    """The same, where equal ratios are equally far apart."""

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + (self.end - self.start) * share

    def ticks(self, count: int = 6) -> list[float]:
        """Powers of ten with 2 and 5 between them as far as there is room; in short ranges even steps."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for between in ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
            decades = [float(f"{digit}e{power}") for power in powers for digit in between]
            found = [tick for tick in decades if self.low <= tick <= self.high]
            if len(found) <= count + 1:
                break
        if len(found) < 3:
            even = [tick for tick in Linear(self.low, self.high, 0, 1).ticks(count) if tick > 0]
            return even if len(even) > len(found) else found
        return found[:: math.ceil(len(found) / (count + 1))]


Scale = Linear | Log


class Drawing:
    """A picture with its heading; on white paper, so that it is the same where the page around it is dark."""

    def __init__(self, width: float, height: float, title: str, description: str = "") -> None:
        self.width, self.height = width, height
        size = f"{format_coordinate(width)} {format_coordinate(height)}"
        width_text, height_text = size.split()
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
            f'width="{width_text}" height="{height_text}" role="img" font-family="{FONT}">',
            f"<title>{escape_svg(title)}</title>",
            *([f"<desc>{escape_svg(description)}</desc>"] if description else []),
        ]
        self.rect(0, 0, width, height, PAPER)
        self.text(HEADING_LEFT, 28, fit_label(title, width - 2 * HEADING_LEFT, 16), 16, bold=True)
        if description:
            self.text(HEADING_LEFT, 47, fit_label(description, width - 2 * HEADING_LEFT, 12), 12, MUTED)

    def rect(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        self._add("rect", {"x": x, "y": y, "width": width, "height": height, "fill": fill})

    def line(
        self, x1: float, y1: float, x2: float, y2: float, stroke: str, width: float = 1, dash: str = ""
    ) -> None:
        own: Attributes = {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "stroke": stroke, "stroke-width": width}
        self._add("line", own | ({"stroke-dasharray": dash} if dash else {}))

    def circle(
        self,
        x: float,
        y: float,
        radius: float,
        fill: str,
        stroke: str = "",
        tip: str = "",
        opacity: float = 1,
    ) -> None:
        own: Attributes = {"cx": x, "cy": y, "r": radius, "fill": fill}
        if stroke:
            own |= {"stroke": stroke, "stroke-width": 1.6}
        if opacity != 1:
            own["opacity"] = opacity
        self._add("circle", own, tip)

    def path(self, points: Sequence[tuple[float, float]], stroke: str, width: float = 1) -> None:
        """Straight from point to point."""
        drawn: Attributes = {"fill": "none", "stroke": stroke, "stroke-width": width}
        points_text: Attributes = {"points": _points_attribute(points)}
        self._add("polyline", points_text | drawn | {"stroke-linejoin": "round"})

    def area(self, points: Sequence[tuple[float, float]], fill: str, tip: str = "") -> None:
        self._add("polygon", {"points": _points_attribute(points), "fill": fill}, tip)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 12,
        fill: str = INK,
        anchor: str = "start",
        bold: bool = False,
        turned: bool = False,
    ) -> None:
        own: Attributes = {"x": x, "y": y, "font-size": size, "fill": fill}
        if anchor != "start":
            own["text-anchor"] = anchor
        if bold:
            own["font-weight"] = 600
        if turned:
            own["transform"] = f"rotate(-90 {_place_text(x)} {_place_text(y)})"
        self._parts.append(f"<text{_svg_attributes(own)}>{escape_svg(text)}</text>")

    def render(self) -> bytes:
        return "\n".join([*self._parts, "</svg>", ""]).encode()

    def _add(self, tag: str, attributes: Attributes, tip: str = "") -> None:
        start = f"<{tag}{_svg_attributes(attributes)}"
        self._parts.append(f"{start}><title>{escape_svg(tip)}</title></{tag}>" if tip else f"{start}/>")


def x_axis(drawing: Drawing, x: Scale, y: Scale, label: str, unit: str = "", count: int = 8) -> None:
    """Below the plot, with a light grid through it; thousands are set apart."""
    for tick in x.ticks(count):
        place = x.at(tick)
        drawing.line(place, y.start, place, y.end, GRID)
        drawing.text(place, y.start + 18, _tick_label(tick) + unit, 11, MUTED, "middle")
    drawing.line(x.start, y.start, x.end, y.start, RULE)
    drawing.text((x.start + x.end) / 2, y.start + 38, label, 12, MUTED, "middle")


def y_axis(drawing: Drawing, x: Scale, y: Scale, label: str, unit: str = "", count: int = 6) -> None:
    for tick in y.ticks(count):
        place = y.at(tick)
        drawing.line(x.start, place, x.end, place, GRID)
        drawing.text(x.start - 8, place + 4, _tick_label(tick) + unit, 11, MUTED, "end")
    middle = (y.start + y.end) / 2
    drawing.text(x.start - 52, middle, label, 12, MUTED, "middle", turned=True)


def end_labels(
    drawing: Drawing, ends: Sequence[tuple[float, str, str]], x: float, y: Scale, size: float, bold: str = ""
) -> None:
    """Beside the ends of lines, none upon another: where each is, its text and its colour. Which colours are
    bold: `bold`; "all" for every one."""
    for (_, text, colour), at in zip(ends, spread_out([e[0] for e in ends], 15, y.end, y.start), strict=True):
        drawing.text(x, at + 4, fit_label(text, 164, size), size, colour, bold=bold in ("all", colour))


def in_the_middle(drawing: Drawing, x: Scale, y: Scale, text: str) -> None:
    drawing.text((x.start + x.end) / 2, (y.start + y.end) / 2, text, 14, MUTED, "middle")


def spread_out(wanted: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Places near those wanted, in their order, at least `apart` from each other where there is room."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    apart = min(apart, (high - low) / max(len(wanted) - 1, 1))
    found = [0.0] * len(wanted)
    floor = low
    for i in order:
        found[i] = max(wanted[i], floor)
        floor = found[i] + apart
    ceiling = high
    for i in reversed(order):
        found[i] = min(found[i], ceiling)
        ceiling = found[i] - apart
    return found


def _tick_label(value: float) -> str:
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.0e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else format_coordinate(float(f"{value:.6g}"))


def _place_text(value: float) -> str:
    return format_coordinate(round(value, 2))


def _points_attribute(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_place_text(x)},{_place_text(y)}" for x, y in points)


def _svg_attributes(attributes: Attributes) -> str:
    items = attributes.items()
    return "".join(f' {name}="{v if isinstance(v, str) else _place_text(v)}"' for name, v in items)


MAX_DOTS = 1500
MAX_STEPS = 400
MAX_ROUNDS = 60
MAX_FAILURES = 300
MAX_LINES = 7  # workloads that are drawn; more would be a tangle
MAX_ROWS = 40  # parameters, those that matter most
SHOWN = 24.0  # what is slower than the best by more than this factor is not drawn

BLUE, ORANGE = PALETTE[0], PALETTE[1]
ORIGINAL, TUNED = ORANGE, BLUE


def best_so_far_svg(history: History, name: str, rounds: Sequence[tuple[int, int]] = ()) -> bytes:
    """Every evaluation as a dot, the best so far as a line, over all and at each workload. `rounds`: the
    evaluation that each begins with, and its number."""
    count = len(history.speedups)
    drawing = Drawing(840, 440, f"Best speed-up so far: {name}", _history_caption(history))
    drawn, left_out = history.best[: MAX_LINES + 1], history.best[MAX_LINES + 1 :]
    x = Linear(0, max(count, 2), 76, 660)
    y = _speedup_scale([s for s in history.speedups if s is not None], drawn)
    x_axis(drawing, x, y, "evaluations", count=min(8, max(count, 2)))
    y_axis(drawing, x, y, "speed-up over the original", "×")
    if y.low <= 1 <= y.high:
        drawing.line(x.start, y.at(1), x.end, y.at(1), MUTED, 1, "5 4")
        drawing.text(x.end - 4, y.at(1) - 5, "original", 11, MUTED, "end")
    _round_marks(drawing, rounds, x, y)
    _draw_evaluations(drawing, history, x, y)
    ends: list[tuple[float, str, str]] = []
    for place, best in reversed(list(enumerate(drawn))):
        colour, width = PALETTE[place % len(PALETTE)], 1.5 if place else 2.8
        if best.steps:
            _draw_staircase(drawing, best, count, x, y, colour, width)
            label = f"{format_ratio(best.steps[-1][1])} {best.workload or 'geometric mean'}"
            ends.append((y.at(best.steps[-1][1]), label if len(drawn) > 1 else label.split(" ")[0], colour))
    end_labels(drawing, ends, x.end + 8, y, 12, BLUE)
    if left_out:
        drawing.text(x.end + 8, y.start + 38, f"and {len(left_out)} more in report.json", 10, MUTED)
    if not ends:
        in_the_middle(drawing, x, y, "nothing ran right" if count else "nothing was tried")
    return drawing.render()


def _history_caption(history: History) -> str:
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
    for first, number in rounds[:MAX_ROUNDS]:
        place = x.at(first - 0.5)
        drawing.line(place, y.start, place, y.end, RULE, 1, "2 3")
        text = f"round {number}"
        if place >= free:
            drawing.text(place + 3, y.end + 2, text, 10, MUTED)
            free = place + width_of(text, 10) + 6


def _draw_evaluations(drawing: Drawing, history: History, x: Linear, y: Scale) -> None:
    speedups, gated = history.speedups, frozenset(history.gated)
    good = [(n, s) for n, s in enumerate(speedups, 1) if s is not None and y.low <= s <= y.high]
    for n, speedup in _thin_points(good, MAX_DOTS):
        if n in gated:
            drawing.circle(x.at(n), y.at(speedup), 3, PAPER, MUTED)
        else:
            drawing.circle(x.at(n), y.at(speedup), 2.2, RULE, opacity=0.55)
    bad = [(n, 0.0) for n, s in enumerate(speedups, 1) if s is None]
    for n, _ in _thin_points(bad, MAX_FAILURES):
        drawing.line(x.at(n), y.start - 7, x.at(n), y.start, ORANGE, 1.2)


def _draw_staircase(
    drawing: Drawing, best: Best, count: int, x: Linear, y: Scale, colour: str, width: float
) -> None:
    steps = [(n, max(value, y.low)) for n, value in _thin_points(best.steps, MAX_STEPS)]
    points = [(x.at(steps[0][0]), y.at(steps[0][1]))]
    for (_, before), (n, after) in pairwise(steps):
        points += [(x.at(n), y.at(before)), (x.at(n), y.at(after))]
    drawing.path([*points, (x.at(max(count, steps[-1][0])), y.at(steps[-1][1]))], colour, width)
    for n, value in steps if len(steps) <= 60 and width > 2 else steps[:1]:
        tip = f"evaluation {n}: {format_ratio(value)}"
        drawing.circle(x.at(n), y.at(value), 1.2 * width, colour, tip=tip)


def _thin_points(points: Sequence[tuple[int, float]], most: int) -> list[tuple[int, float]]:
    """Every so many, and the last one."""
    step = math.ceil(len(points) / most)
    return [*points[:-1:step], points[-1]] if len(points) > most else list(points)


LABELS, LEFT, RIGHT, NOTES = 24.0, 200.0, 620.0, 634.0
TOP, ROW = 96.0, 46.0


def effects_svg(explanation: Explanation, name: str) -> bytes:
    """A row for each parameter: where the winner's time would be with every other value."""
    rows, left_out = explanation.params[:MAX_ROWS], explanation.params[MAX_ROWS:]
    where = f" at {explanation.workload}" if explanation.workload else ""
    title = f"Effect of each parameter: {name}{where}"
    below = "time of the winner with one value changed; 1× is the winner, right of it is slower"
    bottom = TOP + ROW * max(len(rows), 1)
    drawing = Drawing(880, bottom + (76 if left_out else 56), title, below)
    _draw_legend(drawing, LABELS, 70)
    x, y = _time_scale(rows), Linear(0, 1, bottom, TOP)
    x_axis(drawing, x, y, "time, in units of the winner's (log scale)", "×", 7)
    drawing.line(x.at(1), TOP, x.at(1), bottom, INK, 1.2)
    for place, param in enumerate(rows):
        middle = TOP + ROW * (place + 0.5)
        if place:
            drawing.line(LABELS, middle - ROW / 2, RIGHT, middle - ROW / 2, GRID)
        _draw_effect_row(drawing, param, x, middle)
    if not rows:
        drawing.text((LEFT + RIGHT) / 2, TOP + ROW / 2, "there are no parameters", 14, MUTED, "middle")
    if left_out:
        drawing.text(LABELS, bottom + 62, f"{len(left_out)} more parameters in report.json", 11, MUTED)
    return drawing.render()


def _time_scale(rows: Sequence[ParamEffect]) -> Log:
    values = [v for param in rows for v in param.values]
    ends = [end for v in values for end in (_plotted_time(v), *(v.interval or ())) if end is not None]
    low, high = min([1.0, *ends]), max([1.0, *ends])
    high = max(high, low * 1.1)
    edge = (high / low) ** 0.06
    return Log(low / edge, high * edge, LEFT, RIGHT)


def _draw_legend(drawing: Drawing, x: float, y: float) -> None:
    _draw_diamond(drawing, x + 5, y - 4)
    drawing.text(x + 16, y, "winner's value", 11, MUTED)
    drawing.circle(x + 118, y - 4, 4.5, BLUE)
    drawing.text(x + 128, y, "measured", 11, MUTED)
    drawing.line(x + 196, y - 4, x + 220, y - 4, ORANGE, 1.4)
    drawing.circle(x + 208, y - 4, 4.5, PAPER, ORANGE)
    drawing.text(x + 226, y, "by a model of all measured, ± 2 deviations", 11, MUTED)
    _draw_square(drawing, x + 482, y - 4)
    drawing.text(x + 492, y, "best tried with it, other values changed too", 11, MUTED)


def _draw_effect_row(drawing: Drawing, param: ParamEffect, x: Log, y: float) -> None:
    own = f" = {param.value}"
    size = 13
    shown = fit_label(param.name, LEFT - LABELS - 16 - width_of(own, size), size)
    drawing.text(LEFT - 14, y + 4, shown + own, size, anchor="end", bold=True)
    others = [v for v in param.others if _plotted_time(v) is not None]
    reach = [x.at(v.slower) for v in others if v.slower is not None]
    if reach:
        drawing.line(min([*reach, x.at(1)]), y, max([*reach, x.at(1)]), y, RULE, 1.5)
    estimates = [v for v in others if v.source == "model"]
    for place, value in enumerate(estimates):
        _draw_estimate(drawing, param.name, value, x, y + (place % 3 - 1) * 5 * (len(estimates) > 1))
    for value in others:
        if value.source == "measured" and value.slower is not None:
            tip = f"{param.name}={value.value}: {format_ratio(value.slower)}, measured"
            drawing.circle(x.at(value.slower), y, 4.5, BLUE, tip=tip)
        elif value.slower is None and value.best is not None:
            tip = f"{param.name}={value.value}: {format_ratio(value.best)}, other values changed too"
            _draw_square(drawing, x.at(value.best), y, tip)
    _draw_diamond(drawing, x.at(1), y, f"{param.name}={param.value}: the winner's")
    _value_labels(drawing, param, others, x, y)
    notes = "; ".join(f"{why}: {', '.join(values)}" for why, values in _values_without_time(param).items())
    drawing.text(NOTES, y + 4, fit_label(notes, drawing.width - NOTES - 12, 11), 11, MUTED)


def _plotted_time(value: ValueEffect) -> float | None:
    """Where it is drawn: with this value alone changed, else the best that anyone found with it."""
    return value.slower if value.slower is not None else value.best


def _values_without_time(param: ParamEffect) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value in param.others:
        if value.slower is None:
            words = {"failed": value.why or "failed", "excluded": "excluded"}.get(value.source, "not tried")
            if words != "not tried" or value.best is None:
                found.setdefault(words, []).append(str(value.value))
    return found


def _draw_estimate(drawing: Drawing, name: str, value: ValueEffect, x: Log, y: float) -> None:
    assert value.slower is not None
    assert value.interval is not None
    low, high = (x.at(end) for end in value.interval)
    drawing.line(low, y, high, y, ORANGE, 1.4)
    for end in (low, high):
        drawing.line(end, y - 3, end, y + 3, ORANGE, 1.4)
    reach = " to ".join(map(format_ratio, value.interval))
    tip = f"{name}={value.value}: {format_ratio(value.slower)} by a model, {reach}"
    drawing.circle(x.at(value.slower), y, 4.5, PAPER, ORANGE, tip)


def _draw_square(drawing: Drawing, x: float, y: float, tip: str = "") -> None:
    drawing.area([(x - 4, y - 4), (x + 4, y - 4), (x + 4, y + 4), (x - 4, y + 4)], RULE, tip)


def _draw_diamond(drawing: Drawing, x: float, y: float, tip: str = "") -> None:
    drawing.area([(x - 6, y), (x, y - 6), (x + 6, y), (x, y + 6)], INK, tip)


def _value_labels(
    drawing: Drawing, param: ParamEffect, others: Sequence[ValueEffect], x: Log, y: float
) -> None:
    """Above the row, else below it, else not at all: what matters most is labelled first."""
    lanes: dict[float, list[tuple[float, float]]] = {y - 12: [], y + 20: []}

    def rank(value: ValueEffect) -> tuple[bool, float]:
        return value.value != param.with_value, -abs(math.log(_plotted_time(value) or 1))

    for value in sorted(others, key=rank):
        time, most = _plotted_time(value) or 1.0, value.value == param.with_value
        text = f"{value.value}: {format_ratio(time)}" if most else f"{value.value}"
        half = width_of(text, 11) / 2
        beside = x.at(1) + half + 3 if time >= 1 else x.at(1) - half - 3  # clear of the winner's line
        at = max(x.at(time), beside) if time >= 1 else min(x.at(time), beside)
        at = min(max(at, LEFT + half), RIGHT - half)
        for lane, taken in lanes.items():
            if all(at + half + 3 <= low or at - half - 3 >= high for low, high in taken):
                taken.append((at - half, at + half))
                drawing.text(at, lane, text, 11, anchor="middle", bold=most)
                break


ROWS_TOP, ROWS_HIGH, ROWS_LEFT, ROWS_RIGHT = 66.0, 30.0, 220.0, 640.0


def speedups_svg(workloads: Sequence[WorkloadReport]) -> bytes:
    """A row for each workload: its verified speed-up with the interval, beside the original at 1×."""
    rows = workloads[:MAX_ROWS]
    bottom = ROWS_TOP + ROWS_HIGH * len(rows)
    drawing = Drawing(780, bottom + 48, "Verified speed-up", "dot: median; line: 95 % interval")
    ends = [end for w in rows for end in (w.speedup, *w.interval) if 0 < end < float("inf")]
    x = ratio_scale([1.0, *ends])
    x_axis(drawing, x, Linear(0, 1, bottom, ROWS_TOP), "speed-up over the original", "×", 7)
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
        drawing.text(ROWS_RIGHT + 14, y + 4, format_ratio(w.speedup), 12, INK, bold=True)
    return drawing.render()


def row_name(drawing: Drawing, name: str, place: int) -> float:
    y = ROWS_TOP + ROWS_HIGH * (place + 0.5)
    drawing.text(ROWS_LEFT - 14, y + 4, fit_label(name, ROWS_LEFT - 38, 12), 12, anchor="end")
    return y


def ratio_scale(values: Sequence[float]) -> Scale:
    low, high = min(values), max(values)
    high = max(high, low * 1.1)
    edge = (high / low) ** 0.05
    return Log(low / edge, high * edge, ROWS_LEFT, ROWS_RIGHT)


# Rooflines: kernels below what bounds them, of a profile and of a run; how far each is from its floor.
MIB, GB = float(1 << 20), 1e9
MAX_LABELS = 12
COMPUTE = PALETTE[3]
TICK = 14.0  # half the width of a workload's own roof

Dot = tuple[str, str, float, float, bool]  # workload, kernel, MiB, GB/s, whether it is the original
Roof = tuple[str, Ceiling, float, float]  # workload, ceiling, MiB, GB/s


def roofline_svg(page: ProfilePage) -> bytes:
    """Every workload with its kernels, the original among them, below what bounds them: the curves, and where
    operations are stated a roof of its own for each kind of them."""
    dots, roofs = _kernel_dots(page), roofs_of(page)
    about = f"{page.device}; bytes that must move over the time taken"
    drawing = Drawing(900, 480, f"Roofline: {page.problem}", about)
    curves = [("copy", _bandwidth_curve(page.ceilings.copy)), ("read", _bandwidth_curve(page.ceilings.read))]
    launch = page.ceilings.graph_launch or page.ceilings.launch
    points = [point for _, curve in curves for point in curve] + [(roof[2], roof[3]) for roof in roofs]
    x, y = _roofline_scales(dots, points)
    x_axis(drawing, x, y, "MiB that must move")
    y_axis(drawing, x, y, "GB/s")
    if launch:
        _launch_line(drawing, launch, x, y)
    labels: list[tuple[float, str, str]] = []
    for (name, curve), colour in zip(curves, (INK, MUTED), strict=True):
        if curve:
            points = [(x.at(a), _clamp_to_axis(y, b)) for a, b in curve]
            drawing.path(points, colour, 1.8 if name == "copy" else 1)
            labels.append((_clamp_to_axis(y, curve[-1][1]), f"{name}, measured", colour))
    for workload, ceiling, moved, rate in roofs:
        left, at = x.at(moved), _clamp_to_axis(y, rate)
        drawing.line(left - TICK, at, left + TICK, at, COMPUTE, 2)
        drawing.text(left - TICK, at - 4, fit_label(f"{ceiling}, {workload}", 120, 10), 10, COMPUTE)
    if page.ceilings.copy:
        _draw_improvements(drawing, page, dots, x, y)
    _draw_dots(drawing, dots, x, y, " GB/s")
    end_labels(drawing, labels, x.end + 10, y, 11)
    return drawing.render()


def _kernel_dots(page: ProfilePage) -> list[Dot]:
    found: list[Dot] = []
    for workload in page.workloads:
        for number, view in enumerate(workload.views):
            profile = view.profile
            if profile.seconds and profile.work is not None and profile.work.bytes > 0:
                moved, rate = profile.work.bytes / MIB, profile.work.bytes / profile.seconds / GB
                found.append((workload.name, profile.kernel, moved, rate, number == 0))
    return found


def roofs_of(page: ProfilePage) -> list[Roof]:
    """How fast a workload's bytes could be moved if nothing but its operations took time."""
    found: list[Roof] = []
    for workload in page.workloads:
        profile = workload.views[0].profile if workload.views else None
        if profile is None or profile.work is None or profile.work.bytes <= 0:
            continue
        moved = profile.work.bytes
        found += [
            (workload.name, floor.ceiling, moved / MIB, moved / floor.seconds / GB)
            for floor in compute_roofline(profile).floors
            if floor.ceiling in OF_OPERATIONS.values() and floor.seconds > 0
        ]
    return found


def _bandwidth_curve(points: Sequence[Point]) -> list[tuple[float, float]]:
    known = sorted((p for p in points if p.bytes > 0 and p.seconds > 0), key=lambda p: p.bytes)
    return [(p.bytes / MIB, p.bytes / p.seconds / GB) for p in known]


def _roofline_scales(dots: Sequence[Dot], curve: Sequence[tuple[float, float]]) -> tuple[Log, Log]:
    across = [d[2] for d in dots] + [a for a, _ in curve] or [1.0]
    up = [d[3] for d in dots] + [b for _, b in curve] or [1.0]
    low, high = min(across) / 1.6, max(across) * 1.6
    return Log(low, high, 76, 750), Log(min(up) / 1.6, max(up) * 1.6, 410, 72)


def _clamp_to_axis(y: Log, rate: float) -> float:
    return y.at(min(max(rate, y.low), y.high))


def _launch_line(drawing: Drawing, launch: float, x: Log, y: Log) -> None:
    """Bytes over the time of an empty launch: nothing small gets above it."""

    def rate(moved: float) -> float:
        return moved * MIB / launch / GB

    left, right = x.low, min(x.high, y.high * GB * launch / MIB)
    if right <= left or rate(right) <= y.low:
        return
    left = max(left, y.low * GB * launch / MIB)
    drawing.line(x.at(left), y.at(rate(left)), x.at(right), y.at(rate(right)), RULE, 1.2, "5 4")
    drawing.text(x.at(right) + 4, y.at(rate(right)) + 12, "launch floor", 11, MUTED)


def _draw_improvements(drawing: Drawing, page: ProfilePage, dots: Sequence[Dot], x: Log, y: Log) -> None:
    """From each original up to what became of it; a third kernel is none of that."""
    for workload in page.workloads:
        own = [d for d in dots if d[0] == workload.name]
        if len(own) >= 2 and own[0][4]:
            place = x.at(own[0][2])
            drawing.line(place, _clamp_to_axis(y, own[0][3]), place, _clamp_to_axis(y, own[1][3]), TUNED, 1)


def _draw_dots(drawing: Drawing, dots: Sequence[Dot], x: Log, y: Log, unit: str = "") -> None:
    for workload, kernel, across, rate, is_original in dots:
        colour = ORIGINAL if is_original else TUNED
        tip, fill = f"{workload}, {kernel}: {rate:.4g}{unit}", PAPER if is_original else colour
        drawing.circle(x.at(across), _clamp_to_axis(y, rate), 5, fill, colour, tip=tip)
    _draw_dot_labels(drawing, dots, x, y)
    _kernel_legend(drawing, dots, x.end + 16)


def _draw_dot_labels(drawing: Drawing, dots: Sequence[Dot], x: Log, y: Log) -> None:
    """Beside the higher of a workload's dots."""
    best: dict[str, Dot] = {}
    for dot in dots:
        if dot[0] not in best or best[dot[0]][3] < dot[3]:
            best[dot[0]] = dot
    shown = list(best.values())[:MAX_LABELS]
    places = spread_out([_clamp_to_axis(y, dot[3]) for dot in shown], 13, y.end, y.start)
    for dot, at in zip(shown, places, strict=True):
        drawing.text(x.at(dot[2]) + 9, at + 4, fit_label(dot[0], 120, 11), 11, ORIGINAL if dot[4] else TUNED)


def _kernel_legend(drawing: Drawing, dots: Sequence[Dot], left: float) -> None:
    kinds = [(ORIGINAL, PAPER, "original", True), (TUNED, TUNED, "tuned", False)]
    for number, (colour, fill, text, is_original) in enumerate(kinds):
        if any(dot[4] is is_original for dot in dots):
            drawing.circle(left, 380 + 20 * number, 5, fill, colour)
            drawing.text(left + 12, 384 + 20 * number, text, 11, colour)


_OF_MEMORY = (Ceiling.MEMORY, Ceiling.CACHE)


@dataclass(frozen=True)
class _Below:
    """A workload below its roof: by operations a byte where they are stated, else by bytes."""

    workload: str
    across: float  # operations a byte, or MiB
    before: float  # billions of operations a second, or GB/s
    after: float | None
    roof: float  # the same, were it at its floor
    ceiling: str  # what that floor is made of
    memory: float | None  # the same, were memory all that takes time


def run_roofline_svg(bounds: Sequence[BoundReport], name: str) -> bytes | None:
    """Each workload before and after below its own roof; None where nobody knows what must move, or no
    ceiling."""
    known = [b for b in bounds if b.roof is not None and b.roof.moved > 0 and b.roof.floors and b.distance]
    stated = [b for b in known if b.roof is not None and b.roof.operations > 0]
    rows = [_roof_position(b, bool(stated)) for b in (stated or known)[:MAX_ROWS]]
    if not rows:
        return None
    about = "ring: the original; dot: what is delivered; bar: the least time the device needs for it"
    drawing = Drawing(900, 480, f"Roofline before and after: {name}", about)
    dots = _run_dots(rows)
    slope = _memory_roof(rows, bool(stated))
    x, y = _roofline_scales(dots, [*slope, *((r.across, r.roof) for r in rows)])
    x_axis(drawing, x, y, "operations for each byte that must move" if stated else "MiB that must move")
    y_axis(drawing, x, y, "10⁹ operations/s" if stated else "GB/s")
    drawing.path([(x.at(a), _clamp_to_axis(y, b)) for a, b in slope], INK, 1.4)
    for row in rows:
        left, at = x.at(row.across), _clamp_to_axis(y, row.roof)
        drawing.line(left - TICK, at, left + TICK, at, INK, 2.4)
        if row.after is not None:
            drawing.line(left, _clamp_to_axis(y, row.before), left, _clamp_to_axis(y, row.after), TUNED, 1)
    _draw_dots(drawing, dots, x, y)
    _ceilings_named(drawing, rows, x.end + 10, y)
    return drawing.render()


def _roof_position(bound: BoundReport, by_operations: bool) -> _Below:
    roof, distance = bound.roof, bound.distance
    assert roof is not None and distance
    work = roof.operations if by_operations else float(roof.moved)
    (ceiling, floor), memory = roof.floors[0], dict(roof.floors)
    only = next((memory[kind] for kind in _OF_MEMORY if kind in memory), None)
    after = work / (floor * bound.tuned_distance) / GB if bound.tuned_distance else None
    across = work / roof.moved if by_operations else roof.moved / MIB
    below = work / floor / GB, ceiling, work / only / GB if only else None
    return _Below(bound.workload, across, work / (floor * distance) / GB, after, *below)


def _run_dots(rows: Sequence[_Below]) -> list[Dot]:
    found: list[Dot] = []
    for row in rows:
        found.append((row.workload, "original", row.across, row.before, True))
        if row.after is not None:
            found.append((row.workload, "tuned", row.across, row.after, False))
    return found


def _memory_roof(rows: Sequence[_Below], by_operations: bool) -> list[tuple[float, float]]:
    """What memory allows: at every size that was looked at, or by the best of them for every intensity as far
    as operations allow."""
    known = sorted((row.across, row.memory) for row in rows if row.memory is not None)
    if not by_operations or not known:
        return known
    steep = max(rate / across for across, rate in known)
    flat = max((r.roof for r in rows if r.ceiling in OF_OPERATIONS.values()), default=None)
    low, high = min(r.across for r in rows) / 1.4, max(r.across for r in rows) * 1.4
    if flat is None or flat / steep >= high:
        return [(low, low * steep), (high, high * steep)]
    ridge = max(flat / steep, low)
    return [(low, min(low * steep, flat)), (ridge, min(ridge * steep, flat)), (high, flat)]


def _ceilings_named(drawing: Drawing, rows: Sequence[_Below], left: float, y: Log) -> None:
    """What the bars are made of, each once."""
    ends: dict[str, float] = {}
    for row in rows:
        ends[row.ceiling] = max(ends.get(row.ceiling, 0.0), row.roof)
    end_labels(drawing, [(_clamp_to_axis(y, rate), own, INK) for own, rate in ends.items()], left, y, 11)


def floors_svg(bounds: Sequence[BoundReport]) -> bytes:
    """A row for each workload: its time over the floor of the roofline, before and after."""
    rows = [b for b in bounds if b.distance is not None and b.distance > 0][:MAX_ROWS]
    bottom = ROWS_TOP + ROWS_HIGH * len(rows)
    about = "ring: the original; dot: what is delivered; 1× is what the device allows at best"
    drawing = Drawing(780, bottom + 48, "Time over the floor of the roofline", about)
    distances = [distance for b in rows for distance in (b.distance, b.tuned_distance)]
    x = ratio_scale([1.0, *(d for d in distances if d is not None and d > 0)])
    x_axis(drawing, x, Linear(0, 1, bottom, ROWS_TOP), "times the floor (log scale)", "×", 7)
    drawing.line(x.at(1), ROWS_TOP, x.at(1), bottom, INK, 1.2)
    for place, b in enumerate(rows):
        y = row_name(drawing, b.workload, place)
        before, after = b.distance or 1.0, b.tuned_distance
        if after is not None and after > 0:
            drawing.line(x.at(before), y, x.at(after), y, RULE, 2)
            drawing.circle(x.at(after), y, 4.5, TUNED)
        drawing.circle(x.at(before), y, 4.5, PAPER, ORIGINAL)
        words = format_ratio(before) if after is None else f"{format_ratio(before)} → {format_ratio(after)}"
        drawing.text(ROWS_RIGHT + 14, y + 4, words, 12, INK)
    return drawing.render()
