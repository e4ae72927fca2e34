"""Tables of what there is: devices, templates in the library, the arms of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from rich.table import Column, Table
from rich.text import Text

from tunesmith.text import counted, named_values, plain

if TYPE_CHECKING:
    from tunesmith.deliver.compared import ComparisonResult
    from tunesmith.deliver.difference import RunDifference
    from tunesmith.problem.device import Device
    from tunesmith.run.library import LibraryEntry

SHOWN = 4  # workloads, on a line


def _columns(*names: str, right: bool = False) -> list[Column]:
    """That are never wrapped."""
    return [Column(name, justify="right" if right else "left", no_wrap=True) for name in names]


def _filled(table: Table, rows: Iterable[Sequence[str]]) -> Table:
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


def comparison_table(found: ComparisonResult) -> Table:
    from tunesmith.deliver.compared import interval_text, spread_text

    overall = found.overall if len(found.common) > 1 else ()
    rows = []
    for cell in (*found.cells, *overall):
        mean, worst = ("" if v is None else f"{v:.2f}×" for v in (cell.mean, cell.least))
        tried = f"{cell.costs.evaluations:.0f}" if cell.costs else ""
        name = cell.problem or f"all {len(found.common)}"
        runs, success = f"{cell.counted} of {cell.planned}", f"{cell.successes} of {cell.counted}"
        words = (name, cell.arm, spread_text(cell), interval_text(cell))
        rows.append((*words, runs, mean, worst, success, tried))
    columns = _columns("problem", "arm", "spread", "interval of the mean")
    columns += _columns("runs", "mean", "worst", "success", "evaluations", right=True)
    return _filled(Table(*columns), rows)


def difference_table(found: RunDifference) -> Table:
    rows = []
    for w in found.workloads:
        (low, high), (other_low, other_high) = w.before_interval, w.after_interval
        apart = "apart" if w.is_clear else "overlap"
        spans = f"{low:.2f} to {high:.2f}, {other_low:.2f} to {other_high:.2f}: {apart}"
        times, gains = ((w.before_us, w.after_us), (w.before_speedup, w.after_speedup))
        figures = (*(f"{t:.1f} µs" for t in times), f"{w.ratio:.3f}×", *(f"{gain:.2f}×" for gain in gains))
        rows.append((w.name, *figures, spans))
    figures_of = _columns("before", "after", "ratio", "speed-up before", "speed-up after", right=True)
    return _filled(Table(*_columns("workload"), *figures_of, "intervals of the speed-ups"), rows)


def difference_lines(found: RunDifference) -> list[str]:
    """What stands below the table."""
    from tunesmith.run.report import config_text

    lines = [f"geometric mean   {found.ratio:.3f}× by {found.judged_by}"]
    for w in found.workloads:
        if w.before_config != w.after_config:
            change = f"{config_text(w.before_config)} before, {config_text(w.after_config)} after"
            lines.append(f"{w.name:<16} {change}")
    return [*lines, *(f"note             {note}" for note in found.notes)]


def devices_table(devices: Sequence[Device]) -> Table:
    rows = []
    for d in devices:
        sizes = (str(d.limits.sms), size_text(d.limits.memory), size_text(d.limits.llc))
        rows.append((d.backend, d.id, d.name, d.platform, d.driver, d.kind, *sizes))
    names = ("backend", "id", "device", "platform", "driver", "kind", "units", "memory", "cache")
    return _filled(Table(*names), rows)


def library_table(entries: Sequence[LibraryEntry]) -> Table:
    speedup = Column("speed-up", justify="right")
    rows = []
    for e in entries:
        sizes = ", ".join(served.workload for served in e.served[:SHOWN])
        sizes += f", {len(e.served) - SHOWN} more" if len(e.served) > SHOWN else ""
        origin = PurePath(e.origin).name
        rows.append((e.name, e.language, e.device, f"{e.speedup:.2f}×", sizes, e.date[:10], origin))
    return _filled(Table("name", "language", "device", speedup, "workloads", "date", "from"), rows)


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
