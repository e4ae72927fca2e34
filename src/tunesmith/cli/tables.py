"""Tables of what there is: devices, templates in the library, the arms of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from rich.table import Table
from rich.text import Text

from tunesmith.deliver.compared import ComparisonResult
from tunesmith.deliver.comparison_words import interval_text, spread_text
from tunesmith.deliver.difference import RunDifference
from tunesmith.problem.device import Device
from tunesmith.run.library import LibraryEntry
from tunesmith.run.report import config_text
from tunesmith.text import counted, named_values, plain

SHOWN = 4  # workloads, on a line


def comparison_table(found: ComparisonResult) -> Table:
    table = Table()
    for name in ("problem", "arm", "spread", "interval of the mean"):
        table.add_column(name, no_wrap=True)
    for name in ("runs", "mean", "worst", "success", "evaluations"):
        table.add_column(name, justify="right", no_wrap=True)
    overall = found.overall if len(found.common) > 1 else ()
    for cell in (*found.cells, *overall):
        mean, worst = ("" if v is None else f"{v:.2f}×" for v in (cell.mean, cell.least))
        runs = f"{cell.counted} of {cell.planned}"
        tried = f"{cell.costs.evaluations:.0f}" if cell.costs else ""
        success = f"{cell.successes} of {cell.counted}"
        name = cell.problem or f"all {len(found.common)}"
        table.add_row(
            Text(plain(name)),
            cell.arm,
            spread_text(cell),
            interval_text(cell),
            runs,
            mean,
            worst,
            success,
            tried,
        )
    return table


def difference_table(found: RunDifference) -> Table:
    table = Table()
    table.add_column("workload", no_wrap=True)
    for name in ("before", "after", "ratio", "speed-up before", "speed-up after"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("intervals of the speed-ups")
    for w in found.workloads:
        (low, high), (other_low, other_high) = w.before_interval, w.after_interval
        apart = "apart" if w.is_clear else "overlap"
        table.add_row(
            Text(plain(w.name)),
            f"{w.before_us:.1f} µs",
            f"{w.after_us:.1f} µs",
            f"{w.ratio:.3f}×",
            f"{w.before_speedup:.2f}×",
            f"{w.after_speedup:.2f}×",
            f"{low:.2f} to {high:.2f}, {other_low:.2f} to {other_high:.2f}: {apart}",
        )
    return table


def difference_lines(found: RunDifference) -> list[str]:
    """What stands below the table."""
    lines = [f"geometric mean   {found.ratio:.3f}× by {found.judged_by}"]
    for w in found.workloads:
        if w.before_config != w.after_config:
            change = f"{config_text(w.before_config)} before, {config_text(w.after_config)} after"
            lines.append(f"{w.name:<16} {change}")
    return [*lines, *(f"note             {note}" for note in found.notes)]


def devices_table(devices: Sequence[Device]) -> Table:
    table = Table()
    for name in ("backend", "id", "device", "platform", "driver", "kind", "units", "memory", "cache"):
        table.add_column(name)
    for d in devices:
        table.add_row(
            d.backend,
            d.id,
            Text(plain(d.name)),
            Text(plain(d.platform)),
            Text(plain(d.driver)),
            d.kind,
            str(d.limits.sms),
            size_text(d.limits.memory),
            size_text(d.limits.llc),
        )
    return table


def library_table(entries: Sequence[LibraryEntry]) -> Table:
    table = Table()
    for name in ("name", "language", "device", "speed-up", "workloads", "date", "from"):
        table.add_column(name, justify="right" if name == "speed-up" else "left")
    for e in entries:
        sizes = ", ".join(served.workload for served in e.served[:SHOWN])
        more = f", {len(e.served) - SHOWN} more" if len(e.served) > SHOWN else ""
        told = [e.name, e.language, e.device, f"{e.speedup:.2f}×", sizes + more, e.date[:10]]
        table.add_row(*(Text(plain(text)) for text in (*told, PurePath(e.origin).name)))
    return table


def library_lines(entry: LibraryEntry) -> list[str]:
    compiled = f", built with {entry.compiler}" if entry.compiler else ""
    by = f"by {entry.author}" if entry.author else ", ".join(entry.moves) or "given to the run"
    lines = [
        f"{entry.name}: {entry.problem}, {entry.speedup:.2f}× in the geometric mean, verified",
        f"kernel           {entry.signature}",
        f"                 text {entry.kernel[:12]}",
        f"device           {entry.device} ({entry.driver}){compiled}",
        f"template         {entry.path}, {counted(len(entry.template.splitlines()), 'line')}, {by}",
    ]
    for s in entry.served:
        sizes = named_values(s.sizes)
        span = f"{s.interval[0]:.2f} to {s.interval[1]:.2f}"
        lines.append(f"{s.workload:<16} {s.speedup:.2f}× ({span}) at {sizes}: {s.config}")
    lines.append(
        f"known            {counted(len(entry.rows), 'configuration')}, {len(entry.best)} of them tried first"
    )
    lines.append(f"from             {entry.origin}, {entry.date}")
    lines.append(f"again with       tunesmith retune {entry.name} [--device D] [--workloads FILE]")
    return lines


def size_text(nbytes: int) -> str:
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes >= 1 << shift:
            return f"{nbytes / (1 << shift):.3g} {unit}"
    return f"{nbytes} B"
