"""What a fleet has come to, as a page, as Markdown and as a table for a terminal."""

from __future__ import annotations

from urllib.parse import quote

from tunesmith.deliver import page
from tunesmith.deliver.fleet import STATUSES, FleetResult, FleetRow
from tunesmith.deliver.report_parts import Grid
from tunesmith.text import Markup, counted, cut, element, markdown, ratio_text, table

HTML, MARKDOWN, DATA = "fleet.html", "fleet.md", "fleet-data.json"
MAX_ROWS = 1500  # on a page; all are in the data
MAX_REASON = 200
_HEAD = "problem | device | author | status | speed-up: | 95 % interval | × floor: | device hours: | tried:"


def cell_values(row: FleetRow) -> tuple[str, ...]:
    """What was verified; in brackets what only the search says."""
    best = f"({row.best:.2f}×)" if row.evaluations and row.best > 1 else ""
    speedup, span, floor = best, "", ""
    if (found := row.verified) is not None:
        speedup, span = found.figure.words, found.figure.span
        floor = ratio_text(found.floor) if found.floor is not None else ""
    about = (row.problem, row.device, row.author, row.status)
    return (*about, speedup, span, floor, f"{row.device_seconds / 3600:.4f}", str(row.evaluations))


def fleet_grid(found: FleetResult) -> Grid:
    rows = [(*cell_values(row), cut(_why(row), MAX_REASON)) for row in found.rows]
    return Grid(f"{_HEAD} | why", rows)


def _why(row: FleetRow) -> str:
    return "" if row.status == "finished" else row.reason


def total_lines(found: FleetResult) -> list[tuple[str, str]]:
    counts = found.counts
    lines = [("cells", ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status]))]
    lines.append(("device hours", f"{found.used:.3f} of {found.hours:g}, {found.held:.3f} with all else"))
    if found.mean is not None:
        lines.append(("weighted mean", f"{found.mean:.3f}× verified"))
    for name, mean, finished, of in found.by_device():
        lines.append((f"on {name}", f"{'' if mean is None else f'{mean:.3f}×, '}{finished} of {of} finished"))
    return lines + [("note", note) for note in found.notes]


def fleet_markdown(found: FleetResult) -> str:
    grid = fleet_grid(found)
    lines = [f"# {markdown(found.name)}: {counted(len(found.rows), 'cell')}", ""]
    lines += [f"- {markdown(f'{name}: {text}')}" for name, text in total_lines(found)]
    lines += ["", "A speed-up in brackets is by the search, not verified.", ""]
    lines += table(grid.head, ([markdown(str(value)) for value in row] for row in grid.rows))
    return "\n".join(lines) + "\n"


def fleet_html(found: FleetResult) -> str:
    """In the form of a run's own page, with a link to each."""
    shown = found.rows[:MAX_ROWS]
    finished = found.counts["finished"]
    inside: list[Markup] = [element("h2", "What was verified")]
    figures = [(f"{finished} of {len(found.rows)}", "cells are finished", finished == len(found.rows))]
    if found.mean is not None:
        words = "weighted geometric mean of the finished, verified"
        figures.insert(0, (f"{found.mean:.2f}×", words, found.mean > 1))
    hours = f"of {found.hours:g} device hours used; with builds, races and verification {found.held:.3f}"
    figures.append((f"{found.used:.3f}", hours, False))
    inside.append(page.figures_markup(figures))
    rows = [(*cell_values(row), _link(row), cut(_why(row), MAX_REASON)) for row in shown]
    words = "Each problem on each device; a speed-up in brackets is by the search, not verified"
    inside.append(page.table_markup(Grid(f"{_HEAD} | report | why", rows), words, MAX_ROWS))
    if len(found.rows) > len(shown):
        inside.append(element("p", f"{len(found.rows) - len(shown):,} more in {DATA}."))
    told = [
        part for n, text in total_lines(found) for part in (element("dt", n), element("dd", cut(text, 600)))
    ]
    parts = [
        element("section", *inside, id="verified"),
        element("section", element("h2", "Altogether"), element("dl", *told)),
    ]
    about = f"A fleet of {counted(len(found.rows), 'cell')} under one budget of {found.hours:g} device hours."
    return page.whole_page(cut(found.name, 80), about, parts, "Written by Tunesmith.")


def _link(row: FleetRow) -> Markup | str:
    """Runs that have ended have a page."""
    if row.verified is None:
        return ""
    return element("a", "report", href=f"{quote(row.run)}/report.html")
