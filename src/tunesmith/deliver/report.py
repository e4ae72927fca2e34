"""The report as the user keeps it: JSON for programs, Markdown for people, HTML for notebooks."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable

from tunesmith.deliver.plots import best_so_far_svg, effects_svg
from tunesmith.deliver.report_parts import (
    Diff,
    Grid,
    Items,
    Part,
    Picture,
    config_text,
    facts,
    general_text,
    title,
    verified_grid,
)
from tunesmith.deliver.report_sections import BEST, effects_file, sections
from tunesmith.problem.codec import encode
from tunesmith.run.report import Report
from tunesmith.run.rounds import BY_SEARCH
from tunesmith.text import counted, markdown, plain, shown, table

PLOTS = "plots"  # the folder beside the report


def report_json(report: Report) -> bytes:
    return encode(report) + b"\n"


def plot_files(report: Report) -> dict[str, bytes]:
    """What the report shows, by its name in the folder of plots."""
    files = {BEST: best_so_far_svg(report.history, report.problem, _round_starts(report))}
    for explanation in report.explanations:
        files[effects_file(explanation)] = effects_svg(explanation, report.problem)
    return files


def _round_starts(report: Report) -> list[tuple[int, int]]:
    """The evaluation that each round begins with, and its number."""
    found: dict[int, int] = {}
    for first, own in report.history.starts:
        number = next((r.number for r in report.rounds if r.has(own)), None)
        if number is not None:
            found.setdefault(number, first)
    return sorted((first, number) for number, first in found.items())


def report_markdown(report: Report) -> str:
    """What was verified, and the rest folded away behind it."""
    grid = verified_grid(report)
    lines = [f"# {markdown(report.problem)}", *_part(f"{title(report)}."), *(_part(grid) if grid else [])]
    lines += _part(Items([f"{name}: {text}" for name, text in facts(report, "", "")]))
    for section in sections(report):
        lines += ["", f"<details><summary>{shown(section.title)}</summary>"]
        lines += [line for part in section.parts for line in _part(part)]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _part(part: Part) -> list[str]:
    match part:
        case Grid(head, rows):
            return ["", *table(head, ([markdown(str(value)) for value in row] for row in rows))]
        case Items(items):
            return ["", *(f"- {markdown(line)}" for line in items)]
        case Diff(changes):
            longest = max((len(run) for line in changes for run in re.findall("`+", line)), default=0)
            fence = "`" * max(3, longest + 1)
            summary = f"<details><summary>What changed, {counted(len(changes), 'line')}</summary>"
            return ["", summary, "", f"{fence}diff", *map(plain, changes), fence, "", "</details>"]
        case Picture(alt, file):
            return ["", f"![{alt}]({PLOTS}/{file})"]
    return ["", markdown(part)]


# -- HTML ---------------------------------------------------------------------------------------------------


def report_html(report: Report, folder: str, go_on: str) -> str:
    """For a notebook. Names and texts are not ours, so all are escaped. Plots are images: whatever a text in
    one says, no script and no style of it acts on the page."""
    parts = [f"<p><b>{shown(title(report))}</b></p>"]
    if report.survey is None and (grid := verified_grid(report)):
        head = [*(name.rstrip(":") for name in grid.head.split(" | ")), "configuration"]
        configs = [config_text(w.config, w.template) for w in report.workloads]
        rows = [[*map(str, row), config] for row, config in zip(grid.rows, configs, strict=True)]
        parts.append(f"<table><thead>{_html_row(head, 'th')}</thead>")
        parts.append(f"<tbody>{''.join(_html_row(row, 'td') for row in rows)}</tbody></table>")
        parts.append(f"<p>{shown(f'General configuration: {general_text(report)}.')}</p>")
    told = facts(report, folder, go_on, note=4000)
    parts += [f"<p>{shown(f'{name[:1].upper()}{name[1:]}: {text}')}</p>" for name, text in told]
    parts.append(f"<p>Plots: {shown(BY_SEARCH)}.</p>")
    for name, data in plot_files(report).items():
        parts.append(image_html(data, name))
    return f"<div>{''.join(parts)}</div>"


def image_html(data: bytes, alt: str) -> str:
    source = f"data:image/svg+xml;base64,{b64encode(data).decode()}"
    return f'<p><img src="{source}" alt="{shown(alt)}" style="max-width: 100%"></p>'


def _html_row(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{shown(cell)}</{tag}>' for cell in cells)}</tr>"
