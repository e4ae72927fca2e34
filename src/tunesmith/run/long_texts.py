"""What models are told and say, where it is long: it stands beside the journal, which has its digest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tunesmith.run.events import Event, Replied, Requested, ToolUsed

# Characters of a model's text; a longer one stands in a file of its own, the journal has its digest.
LONG = 4096


def without_long_texts(event: Event, put: Callable[[str], str]) -> Event:
    """The event as a journal holds it. `put` has the text on disk when it returns its digest."""
    match event:
        case Requested(request):
            said = [
                replace(m, text="", digest=put(m.text)) if len(m.text) > LONG else m for m in request.messages
            ]
            return Requested(replace(request, messages=tuple(said)))
        case Replied(number, reply) if len(reply.text) > LONG:
            return Replied(number, replace(reply, text="", digest=put(reply.text)))
        case ToolUsed() if len(event.answer) > LONG:
            return replace(event, answer="", digest=put(event.answer))
    return event


def with_long_texts(event: Event, get: Callable[[str], str]) -> Event:
    """The event with its texts; one that has them, as in journals of earlier versions, as it is."""
    match event:
        case Requested(request):
            said = (replace(m, text=get(m.digest), digest="") if m.digest else m for m in request.messages)
            return Requested(replace(request, messages=tuple(said)))
        case Replied(number, reply) if reply.digest:
            return Replied(number, replace(reply, text=get(reply.digest), digest=""))
        case ToolUsed() if event.digest:
            return replace(event, answer=get(event.digest), digest="")
    return event
