"""Drawings as SVG text: shapes, scales with ticks, axes. The same calls give the same bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

from tunesmith.text import plain

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, MUTED, RULE, GRID, PAPER = "#1a1a1a", "#5f6368", "#9aa0a6", "#e8eaed", "#ffffff"
# Okabe and Ito's colours, which people who see no red or no green tell apart too; the dark ones first.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6000", "#5c4b8a")
LEFT = 24.0  # where a heading begins
Attributes = dict[str, str | float]
_NOT_XML = re.compile("[\ufffe\uffff]")


# -- text ---------------------------------------------------------------------------------------------------


def safe(text: str) -> str:
    """Names are not ours: one line, and nothing that XML acts upon or forbids."""
    return escape(_line(text), quote=False).replace('"', "&quot;")


def width_of(text: str, size: float) -> float:
    """About how wide it is; fonts differ, so it is on the large side."""
    return sum(_share(letter) for letter in text) * size


def _share(letter: str) -> float:
    if east_asian_width(letter) in "WF":
        return 1.0
    return 0.78 if letter.isupper() or letter in "mw_…" else 0.6


def cut(text: str, width: float, size: float) -> str:
    """As much of it as fits, with an ellipsis where something is missing."""
    text = _line(text)
    if width_of(text, size) <= width:
        return text
    kept = text[: max(1, int(width / (0.5 * size)))]
    while len(kept) > 1 and width_of(kept + "…", size) > width:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def _line(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", " ".join(plain(text).split()))


def times(value: float) -> str:
    """A ratio: three digits, and no exponent where people do not use one."""
    if value >= 9.995e5 or 0 < value < 0.001:
        return f"{value:.1e}×"
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{max(digits, 3 if value < 0.0995 else 0)}f}×"


def number(value: float) -> str:
    """A coordinate or a tick: short, and never in exponents."""
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return "0" if text in ("", "-0") else text


# -- scales -------------------------------------------------------------------------------------------------


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


# -- drawing ------------------------------------------------------------------------------------------------


class Drawing:
    """A picture with its heading; on white paper, so that it is the same where the page around it is dark."""

    def __init__(self, width: float, height: float, title: str, description: str = "") -> None:
        self.width, self.height = width, height
        size = f"{number(width)} {number(height)}"
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{number(width)}" '
            f'height="{number(height)}" role="img" font-family="{FONT}">',
            f"<title>{safe(title)}</title>",
            *([f"<desc>{safe(description)}</desc>"] if description else []),
        ]
        self.rect(0, 0, width, height, PAPER)
        self.text(LEFT, 28, cut(title, width - 2 * LEFT, 16), 16, bold=True)
        if description:
            self.text(LEFT, 47, cut(description, width - 2 * LEFT, 12), 12, MUTED)

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
        own: Attributes = {"points": _points(points), "fill": "none", "stroke": stroke, "stroke-width": width}
        self._add("polyline", own | {"stroke-linejoin": "round"})

    def area(self, points: Sequence[tuple[float, float]], fill: str, tip: str = "") -> None:
        self._add("polygon", {"points": _points(points), "fill": fill}, tip)

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
            own["transform"] = f"rotate(-90 {_place(x)} {_place(y)})"
        self._parts.append(f"<text{_written(own)}>{safe(text)}</text>")

    def render(self) -> bytes:
        return "\n".join([*self._parts, "</svg>", ""]).encode()

    def _add(self, tag: str, attributes: Attributes, tip: str = "") -> None:
        start = f"<{tag}{_written(attributes)}"
        self._parts.append(f"{start}><title>{safe(tip)}</title></{tag}>" if tip else f"{start}/>")


def x_axis(drawing: Drawing, x: Scale, y: Scale, label: str, unit: str = "", count: int = 8) -> None:
    """Below the plot, with a light grid through it; thousands are set apart."""
    for tick in x.ticks(count):
        place = x.at(tick)
        drawing.line(place, y.start, place, y.end, GRID)
        drawing.text(place, y.start + 18, _tick(tick) + unit, 11, MUTED, "middle")
    drawing.line(x.start, y.start, x.end, y.start, RULE)
    drawing.text((x.start + x.end) / 2, y.start + 38, label, 12, MUTED, "middle")


def y_axis(drawing: Drawing, x: Scale, y: Scale, label: str, unit: str = "", count: int = 6) -> None:
    for tick in y.ticks(count):
        place = y.at(tick)
        drawing.line(x.start, place, x.end, place, GRID)
        drawing.text(x.start - 8, place + 4, _tick(tick) + unit, 11, MUTED, "end")
    middle = (y.start + y.end) / 2
    drawing.text(x.start - 52, middle, label, 12, MUTED, "middle", turned=True)


def end_labels(
    drawing: Drawing, ends: Sequence[tuple[float, str, str]], x: float, y: Scale, size: float, bold: str = ""
) -> None:
    """Beside the ends of lines, none upon another: where each is, its text and its colour. Which colours are
    bold: `bold`; "all" for every one."""
    for (_, text, colour), at in zip(ends, spread_out([e[0] for e in ends], 15, y.end, y.start), strict=True):
        drawing.text(x, at + 4, cut(text, 164, size), size, colour, bold=bold in ("all", colour))


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


def _tick(value: float) -> str:
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.0e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else number(float(f"{value:.6g}"))


def _place(value: float) -> str:
    return number(round(value, 2))


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_place(x)},{_place(y)}" for x, y in points)


def _written(attributes: Attributes) -> str:
    items = attributes.items()
    return "".join(f' {name}="{v if isinstance(v, str) else _place(v)}"' for name, v in items)
