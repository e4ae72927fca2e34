"""What a lab and a host of workers say to each other over a stream of bytes: packets, checked as they come,
greetings that must agree, and how much of a channel may be under way."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, TypeVar

from tunesmith.problem.codec import Malformed, decode, encode, make_ready

PROTOCOL = 4
MAX_BODY = 1 << 18  # bytes of one packet, so that no channel holds up the others for long
WINDOW = 1 << 22  # bytes of a channel that may be under way, each way
MAX_CHANNEL = 1 << 31
MAX_WORDS = 1 << 16  # bytes of a greeting, and of anything else that is no data
_HEAD = struct.Struct(">4sBII")  # magic, kind, channel, length of the body
_CREDIT = struct.Struct(">I")
_MAGIC = b"TSW1"


class PacketKind(IntEnum):
    HELLO = 1  # first, both ways
    OPEN = 2  # lab: start a worker, or here comes a file
    DATA = 3  # of a channel: what a worker reads, or says; or of a file
    END = 4  # there is no more of it
    CREDIT = 5  # so many bytes have been handed on: as many more may come
    KILL = 6  # lab: end the worker and all that it started
    ENDED = 7  # host: how the worker ended; nothing follows on its channel
    NEED = 8  # host: the file that a worker is to be started with, by its digest
    BEAT = 9  # I am still here


@dataclass(frozen=True)
class Packet:
    kind: PacketKind
    channel: int = 0
    body: bytes = b""


def packed(packet: Packet) -> bytes:
    return _HEAD.pack(_MAGIC, packet.kind, packet.channel, len(packet.body)) + packet.body


class PacketReader:
    """Bytes in, as they come; whole packets out. Malformed at the first byte that cannot be right."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Packet]:
        self._held += data
        while len(self._held) >= _HEAD.size:
            magic, kind, channel, size = _HEAD.unpack_from(self._held)
            if magic != _MAGIC:
                raise Malformed(f"not a packet: {bytes(self._held[:64])!r}")
            if kind not in PacketKind.__members__.values():
                raise Malformed(f"a packet of kind {kind}, which there is not")
            most = MAX_BODY if kind == PacketKind.DATA else MAX_WORDS
            if size > most or channel > MAX_CHANNEL:
                raise Malformed(f"a packet of {size} bytes on channel {channel}; allowed are {most}")
            if len(self._held) < _HEAD.size + size:
                return
            body = bytes(self._held[_HEAD.size : _HEAD.size + size])
            del self._held[: _HEAD.size + size]
            yield Packet(PacketKind(kind), channel, body)
        if not _MAGIC.startswith(bytes(self._held[:4])):
            raise Malformed(f"not a packet: {bytes(self._held[:64])!r}")

    @property
    def is_inside(self) -> bool:
        """Part of a packet is there, and the rest is not."""
        return bool(self._held)


# -- messages in packets ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hello:
    role: Literal["lab", "host"]
    tunesmith: str  # its version
    host: str = ""  # what the machine calls itself
    machine: str = ""  # a digest that another machine does not have
    protocol: int = PROTOCOL
    cores: int = 0  # of the machine, that may be used


@dataclass(frozen=True)
class OpenWorker:
    """A worker of a backend, or (with `digest` alone) a file that was asked for."""

    backend: str = ""  # its name; `name:absent` too
    purpose: str = ""
    sandbox: str = ""
    digest: str = ""  # of the file that the backend is made from
    nbytes: int = 0


@dataclass(frozen=True)
class EndedWorker:
    code: int  # the exit status, negative where a signal ended it
    printed: str = ""  # its last words


make_ready([Hello, OpenWorker, EndedWorker])
Said = TypeVar("Said", Hello, OpenWorker, EndedWorker)


def said(kind: PacketKind, value: Hello | OpenWorker | EndedWorker, channel: int = 0) -> Packet:
    return Packet(kind, channel, encode(value))


def heard(packet: Packet, kind: type[Said]) -> Said:
    return decode(packet.body, kind)


def credit(channel: int, count: int) -> Packet:
    return Packet(PacketKind.CREDIT, channel, _CREDIT.pack(count))


def credited(packet: Packet) -> int:
    if len(packet.body) != _CREDIT.size:
        raise Malformed(f"a credit of {len(packet.body)} bytes")
    found: int = _CREDIT.unpack(packet.body)[0]
    return found


def greeting(packet: Packet) -> Hello:
    """The other side's; a protocol of another number is read as far as its number."""
    if packet.kind is not PacketKind.HELLO:
        raise Malformed(f"{packet.kind.name} before a greeting")
    return heard(packet, Hello)


def disagreement(ours: Hello, theirs: Hello) -> str:
    """Why the two cannot work together, in a sentence; empty: they can."""
    if theirs.role == ours.role:
        return f"it greets as a {theirs.role}, as we do: the command sends back what it is sent"
    if (theirs.protocol, theirs.tunesmith) == (ours.protocol, ours.tunesmith):
        return ""
    own = f"Tunesmith {ours.tunesmith} (protocol {ours.protocol})"
    return f"it is Tunesmith {theirs.tunesmith} (protocol {theirs.protocol}), and this is {own}"


# -- backpressure ---------------------------------------------------------------------------------------


@dataclass
class Outflow:
    """What may still be sent on a channel before the other side has handed on what it has."""

    room: int = WINDOW

    def sent(self, count: int) -> None:
        self.room -= count

    def credited(self, count: int) -> None:
        if count <= 0 or self.room + count > WINDOW:
            raise Malformed(f"a credit of {count} bytes, where {WINDOW - self.room} are under way")
        self.room += count


@dataclass
class Inflow:
    """What has come on a channel and is not handed on yet: never more than a window."""

    waiting: deque[bytes] = field(default_factory=deque)
    held: int = 0

    def came(self, body: bytes) -> None:
        if self.held + len(body) > WINDOW:
            raise Malformed(f"more than {WINDOW} bytes on one channel before there was room for them")
        if body:
            self.waiting.append(body)
            self.held += len(body)

    def handed_on(self, count: int) -> None:
        """So many bytes of the first."""
        first = self.waiting.popleft()
        if count < len(first):
            self.waiting.appendleft(first[count:])
        self.held -= count

    def dropped(self) -> int:
        """All of it: nobody takes it any more."""
        count, self.held = self.held, 0
        self.waiting.clear()
        return count
