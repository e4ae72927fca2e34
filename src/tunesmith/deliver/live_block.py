"""The block that a terminal shows while a run is at work: phase, done of how many, best so far, time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tunesmith.run.rounds import BY_SEARCH
from tunesmith.run.standing import Standing, budget_text, clock_text, done_text, left_text
from tunesmith.text import counted, flat, one_line

BAR = 24  # columns
REFRESHES = 8  # a second


def block(now: Standing | None, note: str, clock: str, since: float = 0.0) -> list[RenderableType]:
    """Lines, the first without the sign that something moves. `since`: seconds since the standing was so."""
    if now is None:
        return [Text.assemble(flat(note), " ", (clock, "dim"))]
    lines: list[RenderableType] = [Text.assemble((flat(now.phase), "bold"), " ", (clock, "dim"))]
    if now.done or now.of:
        lines.append(_with_bar(now))
    if now.best is not None:
        config = f": {one_line(now.best_config, 120)}" if now.best_config else ""
        lines.append(Text.assemble("best so far ", (f"{now.best:.2f}×", "bold"), f" {BY_SEARCH}{config}"))
    left = [f"{left_text(max(0.0, now.left - since))} of searching left"] if now.left is not None else []
    limited = [budget_text(use) for use in now.budgets if use.limit is not None]
    gone = f", {now.left_out} left out" if now.left_out else ""
    several = [f"{counted(now.devices, 'device')}{gone}"] if now.devices else []
    if several or left or limited:
        lines.append(Text("; ".join([*several, *left, *limited])))
    doing = note or now.doing
    if doing:
        lines.append(Text(one_line(doing, 200), style="dim"))
    return lines


def _with_bar(now: Standing) -> RenderableType:
    words = Text(done_text(now))
    if not now.of:
        return words
    row = Table.grid(padding=(0, 1))
    row.add_row(ProgressBar(total=now.of, completed=min(now.done, now.of), width=BAR), words)
    return row


class LiveBlock:
    """What is shown last, drawn again and again by a thread of its own: what it draws never changes."""

    def __init__(self, console: Console) -> None:
        self._shown: tuple[Standing | None, str, float] = (None, "starting", time.monotonic())
        self._start = time.monotonic()
        self._spinner = Spinner("dots")
        self._live = Live(
            console=console, get_renderable=self._drawn, refresh_per_second=REFRESHES, transient=True
        )

    def open(self) -> AbstractContextManager[object]:
        return self._live

    @property
    def print(self) -> Callable[[Text], None]:
        """Above the block."""
        return self._live.console.print

    def show(self, now: Standing) -> None:
        self._shown = now, "", time.monotonic()

    def note(self, text: str) -> None:
        now, _, at = self._shown
        self._shown = now, text, at

    def _drawn(self) -> RenderableType:
        now, note, at = self._shown
        moment = time.monotonic()
        first, *others = block(now, note, clock_text(moment - self._start), moment - at)
        head = Table.grid(padding=(0, 1))
        head.add_row(self._spinner, first)
        return Group(head, *others)
