"""Core values to JSON and back, checked on the way in, and as frames on a stream."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec

from tunesmith.base.errors import TunesmithError

T = TypeVar("T")
_HEAD = struct.Struct(">4sdII")  # magic, deadline in seconds, length of the JSON, number of blobs
_SIZE = struct.Struct(">Q")
_MAGIC = b"TSF1"
MAX_JSON = 1 << 26
MAX_BLOB = 1 << 33
MAX_BLOBS = 256
MAX_DEADLINE = 1e8


class Malformed(TunesmithError):
    """Bytes that are not what they should be: a damaged journal or a worker that speaks nonsense."""


class Incomplete(Malformed):
    """There should be more of them."""


def encode_json(value: object) -> bytes:
    return msgspec.json.encode(value, enc_hook=_path_text)


def _path_text(value: object) -> str:
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def decode_json(data: bytes, kind: type[T], called: str = "") -> T:
    """Events and messages alone: they hold plans and texts, never an expression, which has no way back.
    `called` is what people call it, where its type says nothing to them."""
    try:
        found: T = _cached_decoder(kind).decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"not a {called or kind.__name__}: {error}") from error
    return found


_DECODERS: dict[type[Any], msgspec.json.Decoder[Any]] = {}  # one for each type: to make one takes longer


def _cached_decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    if kind not in _DECODERS:
        _DECODERS[kind] = msgspec.json.Decoder(kind)
    return _DECODERS[kind]


def make_ready(kinds: Iterable[type]) -> None:
    """Before several threads read them: msgspec crashes where two are the first to use a type."""
    for kind in kinds:
        _cached_decoder(kind)


def encode_tagged(value: object) -> bytes:
    """A value of a union, with its type's name beside it."""
    return encode_json({"type": type(value).__name__, "value": value})


class _Tagged(msgspec.Struct):
    type: str
    value: msgspec.Raw


make_ready([_Tagged])


def tag_of(data: bytes) -> str:
    return decode_json(data, _Tagged, "message").type


def decode_tagged(data: bytes, types: Mapping[str, type[T]]) -> T:
    tagged = decode_json(data, _Tagged, "message")
    if tagged.type not in types:
        raise Malformed(f"unknown message {tagged.type!r}")
    return decode_json(bytes(tagged.value), types[tagged.type])


@dataclass(frozen=True)
class Frame:
    json: bytes
    blobs: tuple[bytes, ...] = ()
    deadline: float = 0.0


def frame_parts(json: bytes, blobs: Sequence[bytes] = (), deadline: float = 0.0) -> list[bytes]:
    """The frame as pieces to be written in order, big blobs uncopied."""
    head = _HEAD.pack(_MAGIC, deadline, len(json), len(blobs))
    sizes = b"".join(_SIZE.pack(len(blob)) for blob in blobs)
    return [head + sizes + json, *blobs]


def read_frame(read: Callable[[int], bytes]) -> Frame | None:
    """The next frame; None when the stream ended cleanly. `read(n)` gives n bytes, or fewer at its end."""
    head = read(_HEAD.size)
    if not head:
        return None
    if len(head) < _HEAD.size:
        raise Incomplete("the stream ended inside a frame")
    magic, deadline, json_size, count = _HEAD.unpack(head)
    if magic != _MAGIC or json_size > MAX_JSON or count > MAX_BLOBS:
        raise Malformed("not a frame")
    if not 0 <= deadline <= MAX_DEADLINE:  # nor is it if this is not a number
        raise Malformed(f"a frame with a deadline of {deadline} seconds")
    sizes = [_SIZE.unpack(_read_exactly(read, _SIZE.size))[0] for _ in range(count)]
    if any(size > MAX_BLOB for size in sizes):
        raise Malformed("a blob is larger than any array we send")
    json = _read_exactly(read, json_size)
    return Frame(json, tuple(_read_exactly(read, size) for size in sizes), deadline)


def _read_exactly(read: Callable[[int], bytes], size: int) -> bytes:
    data = read(size)
    if len(data) != size:
        raise Incomplete("the stream ended inside a frame")
    return data
