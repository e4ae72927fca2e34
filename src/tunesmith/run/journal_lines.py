"""Events as lines of a journal. What models are told and say, where it is long, stands beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.run.events import EVENT_TYPES, Event, Recorded, Replied, Requested

# Characters of a model's text; a longer one stands in a file of its own, the journal has its digest.
LONG = 4096


class _JournalLine(msgspec.Struct):
    number: int
    at: float
    type: str
    event: msgspec.Raw
    before: str = ""


def encode_record(record: Recorded, before: str = "") -> bytes:
    """`before`: the digest of the line before it (run/chain); empty in journals of earlier versions."""
    head = {"number": record.number, "at": round(record.at, 3), "type": type(record.event).__name__}
    return encode({**head, "before": before, "event": record.event})


def decode_record(data: bytes) -> Recorded:
    return decode_line(data)[0]


def decode_line(data: bytes) -> tuple[Recorded, str]:
    """The record, and the digest of the line before it."""
    line = decode(data, _JournalLine, "line of a journal")
    kind = EVENT_TYPES.get(line.type)
    if kind is None:
        raise Malformed(f"unknown event {line.type!r}")
    # Earlier versions wrote `kept` for the digest of a long text; within a string its quotes are escaped.
    event = bytes(line.event)
    if b'"kept":' in event:
        event = event.replace(b'"kept":', b'"digest":')
    return Recorded(line.number, line.at, decode(event, kind)), line.before


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
    return event


def with_long_texts(event: Event, get: Callable[[str], str]) -> Event:
    """The event with its texts; one that has them, as in journals of earlier versions, as it is."""
    match event:
        case Requested(request):
            said = (replace(m, text=get(m.digest), digest="") if m.digest else m for m in request.messages)
            return Requested(replace(request, messages=tuple(said)))
        case Replied(number, reply) if reply.digest:
            return Replied(number, replace(reply, text=get(reply.digest), digest=""))
    return event
