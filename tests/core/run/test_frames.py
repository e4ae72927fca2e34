"""Frames: what is written is read, and everything else is Malformed."""

from __future__ import annotations

import io
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.base.codec import MAX_BLOB, MAX_BLOBS, MAX_JSON, Frame, Malformed, frame_parts, read_frame


def read(data: bytes) -> Frame | None:
    return read_frame(io.BytesIO(data).read)


def written(json: bytes, blobs: tuple[bytes, ...] = (), deadline: float = 0.0) -> bytes:
    return b"".join(frame_parts(json, blobs, deadline))


def head(magic: bytes = b"TSF1", deadline: float = 1.0, json: int = 0, blobs: int = 0) -> bytes:
    return struct.pack(">4sdII", magic, deadline, json, blobs)


frames = st.builds(
    Frame, st.binary(max_size=50), st.lists(st.binary(max_size=50), max_size=3).map(tuple), st.floats(0, 1e8)
)


@given(st.lists(frames, max_size=3))
def test_frames_follow_each_other_on_a_stream(sent: list[Frame]) -> None:
    stream = io.BytesIO(b"".join(written(f.json, f.blobs, f.deadline) for f in sent))
    assert [read_frame(stream.read) for _ in sent] == sent
    assert read_frame(stream.read) is None


@given(frames, st.data())
def test_a_frame_cut_anywhere_is_malformed(frame: Frame, data: st.DataObject) -> None:
    whole = written(frame.json, frame.blobs, frame.deadline)
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(Malformed, match="ended inside a frame"):
        read(whole[:cut])


@given(st.binary(min_size=1, max_size=200))
def test_garbage_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        read(data)


@given(st.binary(max_size=100))
def test_garbage_behind_the_magic_is_a_frame_or_malformed(tail: bytes) -> None:
    try:
        frame = read(b"TSF1" + tail)
    except Malformed:
        return
    assert 0 <= frame.deadline < math.inf


@pytest.mark.parametrize(
    "data",
    [
        head(magic=b"TSF2"),
        head(json=MAX_JSON + 1),
        head(blobs=MAX_BLOBS + 1),
        head(blobs=1) + struct.pack(">Q", MAX_BLOB + 1),
        *(head(deadline=d) for d in (math.nan, math.inf, -math.inf, -1.0, 1e300)),
    ],
)
def test_what_nobody_sends_is_refused_before_it_is_read(data: bytes) -> None:
    asked: list[int] = []
    stream = io.BytesIO(data)

    def take(n: int) -> bytes:
        asked.append(n)
        return stream.read(n)

    with pytest.raises(Malformed):
        read_frame(take)
    assert sum(asked) == len(data)  # nothing beyond the lie


def test_blobs_are_not_copied() -> None:
    blob = bytes(1000)
    assert frame_parts(b"{}", [blob])[1] is blob
