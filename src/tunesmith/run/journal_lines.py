"""Events as lines of a journal."""

from __future__ import annotations

import msgspec

from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.run.events import EVENT_TYPES, Recorded


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
