"""Curves as an SVG, written by hand: no plotting library is needed to read or to make it."""

from __future__ import annotations

from math import log

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 190, 20, 44
FIRST, LAST = 10, 200  # evaluations
LOW, HIGH = 0.65, 1.0
COLOURS = ("#c2410c", "#1d4ed8", "#047857", "#7c3aed", "#b45309", "#64748b", "#db2777", "#0f766e")


def plot(curves: dict[str, list[float]]) -> str:
    """By label, optimum ÷ best so far after 1, 2, … evaluations; the horizontal axis is logarithmic."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for tick in (0.7, 0.8, 0.9, 1.0):
        y = _y(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:.1f}</text>')
    for tick in (10, 25, 50, 100, 200):
        x = _x(tick)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
        "evaluations; optimum ÷ best so far, mean over the spaces</text>"
    )
    order = sorted(curves, key=lambda label: -curves[label][LAST - 1])
    for place, label in enumerate(order):
        colour = COLOURS[place % len(COLOURS)]
        points = " ".join(
            f"{_x(count):.1f},{_y(curves[label][count - 1]):.1f}" for count in range(FIRST, LAST + 1)
        )
        width = 2.5 if label.startswith("Tunesmith") else 1.5
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        x, y = WIDTH - RIGHT + 12, TOP + 16 + 20 * place
        parts.append(f'<line x1="{x}" x2="{x + 18}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 24}" y="{y + 4}">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _x(count: int) -> float:
    return LEFT + (WIDTH - RIGHT - LEFT) * (log(count) - log(FIRST)) / (log(LAST) - log(FIRST))


def _y(value: float) -> float:
    share = (min(max(value, LOW), HIGH) - LOW) / (HIGH - LOW)
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share
