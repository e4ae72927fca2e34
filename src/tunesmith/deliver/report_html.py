"""A run in a notebook: its table and its plots as HTML. Names and texts are not ours, so all are escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from html import escape

from tunesmith.deliver.report import plot_files
from tunesmith.run.report import Report, config_text, general_text, interval_text
from tunesmith.text import named_values, plain

_HEAD = ("workload", "sizes", "before", "after", "speed-up", "95 % interval", "configuration")


def report_html(report: Report, folder: str) -> str:
    """Plots are images: whatever a text in one says, no script and no style of it acts on the page."""
    where = f"on {report.device}" if report.survey is None else f"for {report.device}, which is not here"
    parts = [f"<p><b>{_text(report.problem)}</b> {_text(where)}</p>"]
    if report.workloads:
        rows = [
            (
                w.name,
                named_values(w.sizes),
                f"{w.baseline_us:.1f} µs",
                f"{w.tuned_us:.1f} µs",
                f"{w.speedup:.2f}×",
                interval_text(w),
                config_text(w.config, w.template),
            )
            for w in report.workloads
        ]
        parts.append(f"<table><thead>{_row(_HEAD, 'th')}</thead>")
        parts.append(f"<tbody>{''.join(_row(row, 'td') for row in rows)}</tbody></table>")
    if report.geometric_mean is not None:
        mean = f"Geometric mean {report.geometric_mean:.2f}×, {report.judged_by}."
        parts.append(f"<p>{_text(mean)} {_text(f'General configuration: {general_text(report)}.')}</p>")
    elif not report.finished:
        parts.append(f"<p>Not finished: {_text(report.reason)}</p>")
    parts += [f"<p>Note: {_text(note)}</p>" for note in report.notes]
    for name, data in plot_files(report).items():
        source = f"data:image/svg+xml;base64,{b64encode(data).decode()}"
        parts.append(f'<p><img src="{source}" alt="{_text(name)}" style="max-width: 100%"></p>')
    parts.append(f"<p><code>{_text(folder)}</code></p>")
    return f"<div>{''.join(parts)}</div>"


def _row(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(text: str) -> str:
    return escape(plain(text), quote=True)
