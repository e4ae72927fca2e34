"""Listeners that callers of the Python interface pass: objects, or plain functions."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tunesmith.base.errors import BadInput
from tunesmith.base.text import escape_html, format_count, one_line
from tunesmith.deliver.pages.page import image_html
from tunesmith.deliver.pages.plots import best_so_far_svg
from tunesmith.deliver.pages.terminal import event_line
from tunesmith.run.events import Event, Recorded, Stopped
from tunesmith.run.figures import best_so_far
from tunesmith.run.ports import Listener
from tunesmith.run.rounds import BY_SEARCH, Best, History
from tunesmith.run.scores import ranked_tried
from tunesmith.run.state import State


@dataclass(frozen=True)
class ProgressUpdate:
    """One thing that happened in a run, as a listener is told of it."""

    text: str  # for people; empty: nothing worth a line
    passing: bool  # true only for now: a newer one takes its place
    event: Event | None = None  # of the run's journal; None: only words
    seconds: float = 0.0  # since the run began, where there is an event
    evaluations: int = 0
    best: float | None = None  # the best speed-up so far, by short measurements; nothing is verified yet


ListenerLike = Listener | Callable[[ProgressUpdate], object]


@dataclass(frozen=True)
class _Callback:
    """A listener that is a function."""

    call: Callable[[ProgressUpdate], object]

    def event(self, record: Recorded, state: State) -> None:
        line = event_line(record.event, state)
        text, passing = (line.text, line.passing) if line else ("", False)
        tried, best = state.statuses().total(), best_so_far(state)
        speedup = best.speedup if best is not None else None
        self.call(ProgressUpdate(text, passing, record.event, record.at, tried, speedup))

    def note(self, text: str) -> None:
        self.call(ProgressUpdate(text, passing=True))

    def say(self, text: str) -> None:
        self.call(ProgressUpdate(text, passing=False))


def listener_of(given: ListenerLike | None) -> Listener:
    if given is None:
        area = notebook_area()
        return NotebookListener(area) if area is not None else _Callback(lambda _update: None)
    if isinstance(given, Listener):
        return given
    if callable(given):
        return _Callback(given)
    raise BadInput(
        f"a listener is a function of one ProgressUpdate, or has event, note and say; got {given!r}",
        hint="pass e.g. listener=print",
    )


OFTEN = 1.0  # seconds between two drawings


class NotebookArea:
    """HTML below a cell: the first call shows it, the others replace it."""

    def __init__(self, display: Callable[..., Any], html: Callable[[str], object]) -> None:
        self._display, self._html = display, html
        self._place: Any = None

    def show(self, text: str) -> None:
        if self._place is None:
            self._place = self._display(self._html(text), display_id=True)
        else:
            self._place.update(self._html(text))


def notebook_area() -> NotebookArea | None:
    """None: this is no notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import HTML, display

    return NotebookArea(display, HTML)


class NotebookListener:
    """The best so far as a picture, and what is done now below it; what is worth a line stays."""

    def __init__(self, where: NotebookArea, clock: Callable[[], float] = time.monotonic) -> None:
        self._where, self._clock = where, clock
        self._drawn = float("-inf")
        self._lines: list[str] = []
        self._now = ""
        self._state: State | None = None

    def event(self, record: Recorded, state: State) -> None:
        self._state = state
        line = event_line(record.event, state)
        if line is not None and line.text:
            self._now = line.text
        self._draw(at_once=isinstance(record.event, Stopped))

    def note(self, text: str) -> None:
        self._now = text
        self._draw()

    def say(self, text: str) -> None:
        self._lines = [*self._lines, text][-6:]
        self._draw(at_once=True)

    def _draw(self, at_once: bool = False) -> None:
        """As seldom as the eye needs it: a run is not to wait for a browser."""
        now = self._clock()
        if at_once or now - self._drawn >= OFTEN:
            self._where.show(progress_html(self._state, self._now, self._lines))
            self._drawn = now


def progress_html(state: State | None, now: str, lines: list[str]) -> str:
    """Foreign text is escaped, and a plot is an image."""
    parts = [f"<p>{escape_html(one_line(line))}</p>" for line in lines]
    if state is not None and state.started is not None:
        means = [one.speedup or None for one in ranked_tried(state)]
        found = History(tuple(means), (Best("", _best_mean_steps(means)),))
        name = one_line(f"{state.started.problem} on {state.device.name}")
        tried = f"{format_count(len(means), 'evaluation')}, {found.failed} failed; {BY_SEARCH}"
        parts.append(f"<p><b>{escape_html(name)}</b>: {escape_html(tried)}</p>")
        if means:
            parts.append(image_html(best_so_far_svg(found, state.started.problem), "Best speed-up so far"))
    return f"<div>{''.join(parts)}<p>{escape_html(one_line(now))}</p></div>"


def _best_mean_steps(means: list[float | None]) -> tuple[tuple[int, float], ...]:
    best, found = 0.0, []
    for number, mean in enumerate(means, 1):
        if mean is not None and mean > best:
            best = mean
            found.append((number, mean))
    return tuple(found)


def follow_display(
    look: Callable[[], tuple[str, bool]], where: NotebookArea | None, seconds: float = 2.0
) -> None:
    """Show what `look` gives until it says that nothing more comes."""
    while True:
        html, goes_on = look()
        if where is not None:
            where.show(html)
        if not goes_on:
            return
        time.sleep(seconds)
