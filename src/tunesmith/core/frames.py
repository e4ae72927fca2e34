"""Frames: one message with its blobs, as bytes on a stream. Both ends distrust what they read."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tunesmith.core.codec import Malformed

_HEAD = struct.Struct(">4sdII")  # magic, deadline in seconds, length of the JSON, number of blobs
_SIZE = struct.Struct(">Q")
_MAGIC = b"TSF1"
MAX_JSON = 1 << 26
MAX_BLOB = 1 << 33
MAX_BLOBS = 256
MAX_DEADLINE = 1e8


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
        raise Malformed("the stream ended inside a frame")
    magic, deadline, json_size, count = _HEAD.unpack(head)
    if magic != _MAGIC or json_size > MAX_JSON or count > MAX_BLOBS:
        raise Malformed("not a frame")
    if not 0 <= deadline <= MAX_DEADLINE:  # nor is it if this is not a number
        raise Malformed(f"a frame with a deadline of {deadline} seconds")
    sizes = [_SIZE.unpack(_exactly(read, _SIZE.size))[0] for _ in range(count)]
    if any(size > MAX_BLOB for size in sizes):
        raise Malformed("a blob is larger than any array we send")
    json = _exactly(read, json_size)
    return Frame(json, tuple(_exactly(read, size) for size in sizes), deadline)


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    data = read(size)
    if len(data) != size:
        raise Malformed("the stream ended inside a frame")
    return data
