"""Rooflines: kernels below what bounds them, of a profile and of a run; how far each is from its floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.deliver import svg
from tunesmith.deliver.plots import (
    MOST_ROWS,
    ORIGINAL,
    ROWS_HIGH,
    ROWS_RIGHT,
    ROWS_TOP,
    TUNED,
    ratio_scale,
    row_name,
)
from tunesmith.deliver.svg import INK, MUTED, PALETTE, PAPER, RULE, Drawing, Linear, Log
from tunesmith.profiles.facts import Point, ProfilePage
from tunesmith.profiles.roofline import OF_OPERATIONS, Ceiling, roofline
from tunesmith.run.report import BoundReport

# -- of a profile -------------------------------------------------------------------------------------------

MIB, GB = float(1 << 20), 1e9
MOST_LABELS = 12
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
    curves = [("copy", _curve(page.ceilings.copy)), ("read", _curve(page.ceilings.read))]
    launch = page.ceilings.graph_launch or page.ceilings.launch
    points = [point for _, curve in curves for point in curve] + [(roof[2], roof[3]) for roof in roofs]
    x, y = _scales(dots, points)
    svg.x_axis(drawing, x, y, "MiB that must move")
    svg.y_axis(drawing, x, y, "GB/s")
    if launch:
        _launch_line(drawing, launch, x, y)
    labels: list[tuple[float, str, str]] = []
    for (name, curve), colour in zip(curves, (INK, MUTED), strict=True):
        if curve:
            drawing.path([(x.at(a), _within(y, b)) for a, b in curve], colour, 1.8 if name == "copy" else 1)
            labels.append((_within(y, curve[-1][1]), f"{name}, measured", colour))
    for workload, ceiling, moved, rate in roofs:
        left, at = x.at(moved), _within(y, rate)
        drawing.line(left - TICK, at, left + TICK, at, COMPUTE, 2)
        drawing.text(left - TICK, at - 4, svg.cut(f"{ceiling}, {workload}", 120, 10), 10, COMPUTE)
    if page.ceilings.copy:
        _moves(drawing, page, dots, x, y)
    for workload, kernel, moved, rate, is_original in dots:
        colour = ORIGINAL if is_original else TUNED
        tip = f"{workload}, {kernel}: {rate:.4g} GB/s"
        place = x.at(moved), _within(y, rate)
        drawing.circle(*place, 5, PAPER if is_original else colour, colour, tip=tip)
    _names(drawing, dots, x, y)
    _kernel_legend(drawing, dots, x.end + 16)
    svg.end_labels(drawing, labels, x.end + 10, y, 11)
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
            for floor in roofline(profile).floors
            if floor.ceiling in OF_OPERATIONS.values() and floor.seconds > 0
        ]
    return found


def _curve(points: Sequence[Point]) -> list[tuple[float, float]]:
    known = sorted((p for p in points if p.bytes > 0 and p.seconds > 0), key=lambda p: p.bytes)
    return [(p.bytes / MIB, p.bytes / p.seconds / GB) for p in known]


def _scales(dots: Sequence[Dot], curve: Sequence[tuple[float, float]]) -> tuple[Log, Log]:
    across = [d[2] for d in dots] + [a for a, _ in curve] or [1.0]
    up = [d[3] for d in dots] + [b for _, b in curve] or [1.0]
    low, high = min(across) / 1.6, max(across) * 1.6
    return Log(low, high, 76, 750), Log(min(up) / 1.6, max(up) * 1.6, 410, 72)


def _within(y: Log, rate: float) -> float:
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


def _moves(drawing: Drawing, page: ProfilePage, dots: Sequence[Dot], x: Log, y: Log) -> None:
    """From each original up to what became of it; a third kernel is none of that."""
    for workload in page.workloads:
        own = [d for d in dots if d[0] == workload.name]
        if len(own) >= 2 and own[0][4]:
            place = x.at(own[0][2])
            drawing.line(place, _within(y, own[0][3]), place, _within(y, own[1][3]), TUNED, 1)


def _names(drawing: Drawing, dots: Sequence[Dot], x: Log, y: Log) -> None:
    """Beside the higher of a workload's dots."""
    best: dict[str, Dot] = {}
    for dot in dots:
        if dot[0] not in best or best[dot[0]][3] < dot[3]:
            best[dot[0]] = dot
    shown = list(best.values())[:MOST_LABELS]
    places = svg.spread_out([_within(y, dot[3]) for dot in shown], 13, y.end, y.start)
    for dot, at in zip(shown, places, strict=True):
        drawing.text(x.at(dot[2]) + 9, at + 4, svg.cut(dot[0], 120, 11), 11, ORIGINAL if dot[4] else TUNED)


def _kernel_legend(drawing: Drawing, dots: Sequence[Dot], left: float) -> None:
    kinds = [(ORIGINAL, PAPER, "original", True), (TUNED, TUNED, "tuned", False)]
    for number, (colour, fill, text, is_original) in enumerate(kinds):
        if any(dot[4] is is_original for dot in dots):
            drawing.circle(left, 380 + 20 * number, 5, fill, colour)
            drawing.text(left + 12, 384 + 20 * number, text, 11, colour)


# -- of a run -----------------------------------------------------------------------------------------------

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
    rows = [_below(b, bool(stated)) for b in (stated or known)[:MOST_ROWS]]
    if not rows:
        return None
    about = "ring: the original; dot: what is delivered; bar: the least time the device needs for it"
    drawing = Drawing(900, 480, f"Roofline before and after: {name}", about)
    dots = _run_dots(rows)
    slope = _slope(rows, bool(stated))
    x, y = _scales(dots, [*slope, *((r.across, r.roof) for r in rows)])
    svg.x_axis(drawing, x, y, "operations for each byte that must move" if stated else "MiB that must move")
    svg.y_axis(drawing, x, y, "10⁹ operations/s" if stated else "GB/s")
    drawing.path([(x.at(a), _within(y, b)) for a, b in slope], INK, 1.4)
    for row in rows:
        left, at = x.at(row.across), _within(y, row.roof)
        drawing.line(left - TICK, at, left + TICK, at, INK, 2.4)
        if row.after is not None:
            drawing.line(left, _within(y, row.before), left, _within(y, row.after), TUNED, 1)
    for workload, kernel, across, rate, is_original in dots:
        colour = ORIGINAL if is_original else TUNED
        drawing.circle(
            x.at(across), _within(y, rate), 5, PAPER if is_original else colour, colour,
            tip=f"{workload}, {kernel}: {rate:.4g}",
        )  # fmt: skip
    _names(drawing, dots, x, y)
    _kernel_legend(drawing, dots, x.end + 16)
    _ceilings_named(drawing, rows, x.end + 10, y)
    return drawing.render()


def _below(bound: BoundReport, by_operations: bool) -> _Below:
    roof, distance = bound.roof, bound.distance
    assert roof is not None and distance
    work = roof.operations if by_operations else float(roof.moved)
    (ceiling, floor), memory = roof.floors[0], dict(roof.floors)
    only = next((memory[kind] for kind in _OF_MEMORY if kind in memory), None)
    after = work / (floor * bound.tuned_distance) / GB if bound.tuned_distance else None
    return _Below(
        bound.workload,
        work / roof.moved if by_operations else roof.moved / MIB,
        work / (floor * distance) / GB,
        after,
        work / floor / GB,
        ceiling,
        work / only / GB if only else None,
    )


def _run_dots(rows: Sequence[_Below]) -> list[Dot]:
    found: list[Dot] = []
    for row in rows:
        found.append((row.workload, "original", row.across, row.before, True))
        if row.after is not None:
            found.append((row.workload, "tuned", row.across, row.after, False))
    return found


def _slope(rows: Sequence[_Below], by_operations: bool) -> list[tuple[float, float]]:
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
    svg.end_labels(drawing, [(_within(y, rate), own, INK) for own, rate in ends.items()], left, y, 11)


# -- distances ----------------------------------------------------------------------------------------------


def floors_svg(bounds: Sequence[BoundReport]) -> bytes:
    """A row for each workload: its time over the floor of the roofline, before and after."""
    rows = [b for b in bounds if b.distance is not None and b.distance > 0][:MOST_ROWS]
    bottom = ROWS_TOP + ROWS_HIGH * len(rows)
    about = "ring: the original; dot: what is delivered; 1× is what the device allows at best"
    drawing = Drawing(780, bottom + 48, "Time over the floor of the roofline", about)
    x = ratio_scale(
        [1.0, *(d for b in rows for d in (b.distance, b.tuned_distance) if d is not None and d > 0)]
    )
    svg.x_axis(drawing, x, Linear(0, 1, bottom, ROWS_TOP), "times the floor (log scale)", "×", 7)
    drawing.line(x.at(1), ROWS_TOP, x.at(1), bottom, INK, 1.2)
    for place, b in enumerate(rows):
        y = row_name(drawing, b.workload, place)
        before, after = b.distance or 1.0, b.tuned_distance
        if after is not None and after > 0:
            drawing.line(x.at(before), y, x.at(after), y, RULE, 2)
            drawing.circle(x.at(after), y, 4.5, TUNED)
        drawing.circle(x.at(before), y, 4.5, PAPER, ORIGINAL)
        words = svg.times(before) if after is None else f"{svg.times(before)} → {svg.times(after)}"
        drawing.text(ROWS_RIGHT + 14, y + 4, words, 12, INK)
    return drawing.render()
