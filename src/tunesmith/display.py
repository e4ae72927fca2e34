"""What people see: a progress line while work goes on, tables when it is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table

from tunesmith.core.device import Device
from tunesmith.core.events import Asked, Baseline, Decided, Measured, Recorded, Verified
from tunesmith.core.problem import Problem
from tunesmith.core.report import Report, best_so_far, config_text, interval_text
from tunesmith.core.state import State

PLAIN_EVERY = 2.0  # seconds between two progress lines where there is no terminal


class Progress:
    """Listens to a run and shows it on stderr: one live line on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._problem: Problem | None = None
        self._status: Status | None = None
        self._last = 0.0
        self._best: float | None = None
        self._start = time.monotonic()

    @contextmanager
    def live(self) -> Iterator[Progress]:
        if self._quiet or not self._console.is_terminal:
            yield self
            return
        with self._console.status("starting") as status:
            self._status = status
            try:
                yield self
            finally:
                self._status = None

    def note(self, text: str) -> None:
        self._show(text)

    def event(self, record: Recorded, state: State) -> None:
        match record.event:
            case Baseline(outcome):
                times = ", ".join(
                    f"{r.workload} {r.timing.seconds * 1e6:.0f} µs" for r in outcome.results if r.timing
                )
                self._say(f"the original is right; it takes {times}")
            case Decided("finish", reason):
                self._say(f"search ended: {reason}")
            case Measured(outcome):
                self._show(self._searching(state), always=outcome.trial.purpose == "finalist")
            case Verified(outcome):
                bad = [r for r in outcome.results if not r.ok]
                verdict = f"failed: {bad[0].status} {bad[0].detail}" if bad else "holds"
                self._say(f"verification of {outcome.trial.config}: {verdict}")
            case Asked():
                pass
            case _:
                self._show(type(record.event).__name__.lower())

    def _searching(self, state: State) -> str:
        done, failed = len(state.searched()), sum(not o.results or o.status != "ok" for o in state.searched())
        limit = state.started.settings.evals if state.started else None
        feasible = state.admitted.feasible if state.admitted else 0
        total = feasible if limit is None else min(limit, feasible)
        leader = best_so_far(state)
        best = f", best {leader:.2f}× so far" if leader is not None else ""
        trouble = f", {failed} failed" if failed else ""
        stage = "racing finalists" if state.finalists() else f"searching {done} of {total}"
        return f"{stage}{best}{trouble}"

    def _say(self, text: str) -> None:
        """Something worth keeping on the screen."""
        if not self._quiet:
            self._console.print(f"[dim]{self._clock()}[/dim] {escape(text)}", highlight=False)

    def _show(self, text: str, always: bool = False) -> None:
        """Something true only for now."""
        if self._status is not None:
            self._status.update(f"{escape(text)} [dim]{self._clock()}[/dim]")
            return
        now = time.monotonic()
        if not self._quiet and (always or now - self._last >= PLAIN_EVERY):
            self._last = now
            self._say(text)

    def _clock(self) -> str:
        seconds = int(time.monotonic() - self._start)
        return f"{seconds // 60:02d}:{seconds % 60:02d}"


def report_table(report: Report) -> Table:
    table = Table(title=escape(f"{report.problem} on {report.device}"), title_justify="left")
    for name, justify in (
        ("workload", "left"),
        ("before", "right"),
        ("after", "right"),
        ("speed-up", "right"),
    ):
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("95 % interval", no_wrap=True)
    table.add_column("configuration")
    for w in report.workloads:
        table.add_row(
            escape(w.name),
            f"{w.baseline_us:.1f} µs",
            f"{w.tuned_us:.1f} µs",
            f"{w.speedup:.2f}×",
            interval_text(w),
            config_text(w.config),
        )
    return table


def report_summary(report: Report, folder: str) -> list[str]:
    counts = ", ".join(f"{n} {status}" for status, n in report.evaluations.items()) or "none"
    lines = []
    if report.geometric_mean is not None:
        lines.append(f"geometric mean   {report.geometric_mean:.2f}×, {report.judged_by}")
    lines.append(f"general config   {config_text(report.general)}")
    lines.append(f"evaluations      {sum(report.evaluations.values())} ({counts}); {report.reason}")
    if report.tuned:
        lines.append(f"tuned kernel     {folder}/tuned/  (start with dispatch.json)")
    lines.append(
        f"report           {folder}/report.md"
        if report.finished
        else f"resume it with   tunesmith resume {folder}"
    )
    return lines


def devices_table(devices: list[Device]) -> Table:
    table = Table()
    for name in ("backend", "id", "device", "platform", "driver", "kind", "units", "memory", "cache"):
        table.add_column(name)
    for d in devices:
        table.add_row(
            d.backend,
            d.id,
            escape(d.name),
            escape(d.platform),
            escape(d.driver),
            d.kind,
            str(d.limits.sms),
            size_text(d.limits.memory),
            size_text(d.limits.llc),
        )
    return table


def size_text(nbytes: int) -> str:
    return f"{nbytes / (1 << 30):.1f} GiB" if nbytes >= 1 << 30 else f"{nbytes / (1 << 20):.0f} MiB"
