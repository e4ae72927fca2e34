"""An event is written down, counted into the state, and shown, in this order."""

from __future__ import annotations

from tunesmith.core.events import Event
from tunesmith.core.ports import Journal, Listener
from tunesmith.core.state import State, apply


def write_down(event: Event, state: State, journal: Journal, listener: Listener) -> State:
    """The state with it. It is in the journal before anybody acts on it."""
    record = journal.append(event)
    state = apply(state, record)
    listener.event(record, state)
    return state
