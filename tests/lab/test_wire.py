"""Packets as a stranger may send them, greetings that differ, and windows that are kept."""

from __future__ import annotations

import random
import struct

import pytest

from tunesmith.lab import wire
from tunesmith.lab.wire import Hello, Inflow, OpenWorker, Outflow, Packet, PacketKind, PacketReader
from tunesmith.problem.codec import Malformed

LAB = Hello("lab", "1.2.3")


def read(data: bytes, step: int = 1 << 20) -> list[Packet]:
    reader = PacketReader()
    return [p for at in range(0, len(data), step) for p in reader.feed(data[at : at + step])]


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_packets_come_back_however_they_were_cut(step: int) -> None:
    sent = [
        wire.said(PacketKind.HELLO, LAB),
        wire.said(PacketKind.OPEN, OpenWorker("fake", "device", "auto"), 3),
        Packet(PacketKind.DATA, 3, bytes(range(256)) * 9),
        Packet(PacketKind.END, 3),
        wire.credit(3, 77),
    ]
    assert read(b"".join(map(wire.packed, sent)), step) == sent


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"bash: tunesmith: command not found\n", "command not found"),
        (b"T", ""),
        (b"TX", "not a packet"),
        (struct.pack(">4sBII", b"TSW1", 77, 0, 0), "kind 77"),
        (struct.pack(">4sBII", b"TSW1", PacketKind.DATA, 1, wire.MAX_BODY + 1), "allowed are"),
        (struct.pack(">4sBII", b"TSW1", PacketKind.HELLO, 0, wire.MAX_WORDS + 1), "allowed are"),
        (struct.pack(">4sBII", b"TSW1", PacketKind.DATA, 0xFFFFFFFF, 1), "allowed are"),
    ],
)
def test_what_is_no_packet_is_refused_before_it_is_held(data: bytes, words: str) -> None:
    if not words:
        assert read(data) == [], "it may still become one"
        return
    with pytest.raises(Malformed, match=words):
        read(data)


def test_a_packet_that_is_cut_off_is_noticed() -> None:
    reader = PacketReader()
    assert list(reader.feed(wire.packed(Packet(PacketKind.DATA, 1, b"abc"))[:-1])) == []
    assert reader.is_inside
    assert [p.body for p in reader.feed(b"c")] == [b"abc"]
    assert not reader.is_inside


def test_no_garbage_is_anything_but_refused() -> None:
    draw = random.Random(26)
    good = wire.packed(wire.said(PacketKind.OPEN, OpenWorker("fake", "device", "auto"), 3))
    refused = 0
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        try:
            for packet in read(bytes(data)):
                wire.heard(packet, OpenWorker)
        except Malformed:
            refused += 1
    assert refused > 1000


def test_greetings_must_agree() -> None:
    assert wire.disagreement(LAB, Hello("host", "1.2.3")) == ""
    assert "Tunesmith 1.2.4 (protocol 4)" in wire.disagreement(LAB, Hello("host", "1.2.4"))
    assert "protocol 9" in wire.disagreement(LAB, Hello("host", "1.2.3", protocol=9))
    assert "sends back" in wire.disagreement(LAB, LAB)
    with pytest.raises(Malformed, match="before a greeting"):
        wire.greeting(Packet(PacketKind.BEAT))
    with pytest.raises(Malformed):
        wire.greeting(Packet(PacketKind.HELLO, 0, b'{"role":"boss","tunesmith":"1"}'))


def test_windows_are_kept() -> None:
    out = Outflow()
    out.sent(100)
    out.credited(60)
    assert out.room == wire.WINDOW - 40
    for count in (41, 0):
        with pytest.raises(Malformed, match="credit"):
            out.credited(count)
    came = Inflow()
    came.came(b"abcdef")
    came.handed_on(2)
    assert list(came.waiting) == [b"cdef"]
    assert came.held == 4
    with pytest.raises(Malformed, match="before there was room"):
        came.came(bytes(wire.WINDOW - 3))
    assert came.dropped() == 4
    assert not came.waiting
    with pytest.raises(Malformed, match="credit of 3 bytes"):
        wire.credited(Packet(PacketKind.CREDIT, 1, b"abc"))
