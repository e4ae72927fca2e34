"""Listeners that callers of the Python interface pass: objects, or plain functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from tunesmith.deliver.display import event_line
from tunesmith.errors import BadInput
from tunesmith.run.events import Event, Recorded
from tunesmith.run.figures import best_so_far
from tunesmith.run.ports import Listener
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


def _in_a_notebook() -> Listener | None:
    if "IPython" not in sys.modules:
        return None
    from tunesmith.session import notebook

    where = notebook.area()
    return notebook.NotebookListener(where) if where is not None else None


def listener_of(given: ListenerLike | None) -> Listener:
    if given is None:
        return _in_a_notebook() or _Callback(lambda _update: None)
    if isinstance(given, Listener):
        return given
    if callable(given):
        return _Callback(given)
    raise BadInput(
        f"a listener is a function of one ProgressUpdate, or has event, note and say; got {given!r}",
        hint="pass e.g. listener=print",
    )
