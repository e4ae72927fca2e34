"""The roofline as a picture: bandwidth over bytes, what the device can do, and where the kernels are."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.deliver import svg
from tunesmith.deliver.svg import INK, MUTED, PALETTE, PAPER, RULE, Drawing, Log
from tunesmith.profiles.diagnose import ProfilePage
from tunesmith.profiles.facts import Point
from tunesmith.profiles.roofline import OF_OPERATIONS, Ceiling, roofline

MIB, GB = float(1 << 20), 1e9
MOST_LABELS = 12
ORIGINAL, TUNED, COMPUTE = PALETTE[1], PALETTE[0], PALETTE[3]
TICK = 14.0  # half the width of a workload's own roof

Dot = tuple[str, str, float, float, bool]  # workload, kernel, MiB, GB/s, whether it is the original
Roof = tuple[str, Ceiling, float, float]  # workload, ceiling, MiB, GB/s


def roofline_svg(page: ProfilePage) -> bytes:
    """Every workload with its kernels, the original among them, below what bounds them: the curves, and where
    operations are stated a roof of its own for each kind of them."""
    dots, roofs = _dots(page), roofs_of(page)
    about = f"{page.device}; bytes that must move over the time taken"
    drawing = Drawing(900, 480, f"Roofline: {page.problem}", about)
    drawing.heading(24, f"Roofline: {page.problem}", about)
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
    _legend(drawing, dots, x.end + 16)
    svg.end_labels(drawing, labels, x.end + 10, y, 11)
    return drawing.render()


def _dots(page: ProfilePage) -> list[Dot]:
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


def _legend(drawing: Drawing, dots: Sequence[Dot], left: float) -> None:
    kinds = [(ORIGINAL, PAPER, "original", True), (TUNED, TUNED, "tuned", False)]
    for number, (colour, fill, text, is_original) in enumerate(kinds):
        if any(dot[4] is is_original for dot in dots):
            drawing.circle(left, 380 + 20 * number, 5, fill, colour)
            drawing.text(left + 12, 384 + 20 * number, text, 11, colour)
