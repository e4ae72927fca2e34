"""Long texts of a conversation are kept beside the journal, by digest: its lines stay short.

Only on the way to the disk and back: what the run works with has its texts, and is the same either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from tunesmith.core.dialogue import Message, Reply
from tunesmith.core.events import Event, Replied, Requested

T = TypeVar("T", Message, Reply)


class _Change(Protocol):
    def __call__(self, said: T) -> T: ...


LONG = 4096  # characters; shorter texts stand in the journal itself


def set_aside(event: Event, put: Callable[[str], str]) -> Event:
    """The event as a journal holds it. `put` has the text on disk when it returns its digest."""

    def without(said: T) -> T:
        return said if len(said.text) <= LONG else replace(said, text="", kept=put(said.text))

    return _each_text(event, without)


def taken_in(event: Event, get: Callable[[str], str]) -> Event:
    """The event with its texts; one that has them, as in journals of earlier versions, as it is."""

    def with_text(said: T) -> T:
        return replace(said, text=get(said.kept), kept="") if said.kept else said

    return _each_text(event, with_text)


def _each_text(event: Event, change: _Change) -> Event:
    match event:
        case Requested(request):
            return Requested(replace(request, messages=tuple(map(change, request.messages))))
        case Replied(number, reply):
            return Replied(number, change(reply))
    return event
