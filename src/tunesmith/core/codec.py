"""Core values to JSON and back, checked on the way in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tunesmith.core.errors import TunesmithError

if TYPE_CHECKING:
    from tunesmith.core.events import Recorded

T = TypeVar("T")


class Malformed(TunesmithError):
    """Bytes that are not what they should be: a damaged journal or a worker that speaks nonsense."""


def encode(value: object) -> bytes:
    return msgspec.json.encode(value)


def decode(data: bytes, kind: type[T], called: str = "") -> T:
    """Events and messages alone: they hold plans and texts, never an expression, which has no way back.
    `called` is what people call it, where its type says nothing to them."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"not a {called or kind.__name__}: {error}") from error


def encode_tagged(value: object) -> bytes:
    """A value of a union, with its type's name beside it."""
    return encode({"type": type(value).__name__, "value": value})


class _Tagged(msgspec.Struct):
    type: str
    value: msgspec.Raw


def decode_tagged(data: bytes, types: Mapping[str, type[T]]) -> T:
    tagged = decode(data, _Tagged, "message")
    if tagged.type not in types:
        raise Malformed(f"unknown message {tagged.type!r}")
    return decode(bytes(tagged.value), types[tagged.type])


class _Line(msgspec.Struct):
    number: int
    at: float
    type: str
    event: msgspec.Raw


def encode_record(record: Recorded) -> bytes:
    line: dict[str, Any] = {
        "number": record.number,
        "at": round(record.at, 3),
        "type": type(record.event).__name__,
        "event": record.event,
    }
    return encode(line)


def decode_record(data: bytes) -> Recorded:
    from tunesmith.core.events import EVENT_TYPES, Recorded  # a worker has no use for them, and starts often

    line = decode(data, _Line, "line of a journal")
    kind = EVENT_TYPES.get(line.type)
    if kind is None:
        raise Malformed(f"unknown event {line.type!r}")
    return Recorded(line.number, line.at, decode(bytes(line.event), kind))
