"""Long texts of a conversation are kept beside the journal, by digest: its lines stay short.

Only on the way to the disk and back: what the run works with has its texts, and is the same either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from tunesmith.core.dialogue import Message, Reply
from tunesmith.core.events import Event, Replied, Requested

T = TypeVar("T", Message, Reply)

LONG = 4096  # characters; shorter texts stand in the journal itself


def set_aside(event: Event, put: Callable[[str], str]) -> Event:
    """The event as a journal holds it. `put` has the text on disk when it returns its digest."""
    match event:
        case Requested(request):
            messages = tuple(_without(message, put) for message in request.messages)
            return Requested(replace(request, messages=messages))
        case Replied(number, reply):
            return Replied(number, _without(reply, put))
    return event


def taken_in(event: Event, get: Callable[[str], str]) -> Event:
    """The event with its texts; one that has them, as in journals of earlier versions, as it is."""
    match event:
        case Requested(request):
            messages = tuple(_with(message, get) for message in request.messages)
            return Requested(replace(request, messages=messages))
        case Replied(number, reply):
            return Replied(number, _with(reply, get))
    return event


def _without(said: T, put: Callable[[str], str]) -> T:
    return said if len(said.text) <= LONG else replace(said, text="", kept=put(said.text))


def _with(said: T, get: Callable[[str], str]) -> T:
    return replace(said, text=get(said.kept), kept="") if said.kept else said
