"""One end of a connection: packets between a stream and the descriptors of its channels, by one thread that
never waits for any one of them."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from tunesmith.lab.wire import (
    MAX_BODY,
    Inflow,
    Outflow,
    Packet,
    PacketKind,
    PacketReader,
    credit,
    credited,
    packed,
)
from tunesmith.problem.codec import Malformed

BEAT = 0.5  # seconds
SILENCE = 120.0  # seconds after which nobody is there any more: a network may stall for a minute
LONGEST = 3 * BEAT  # what one pause counts as time that passed at the other end
AHEAD = 4 * MAX_BODY  # bytes in front of the stream, beyond which no channel is read


@dataclass
class ChannelEnds:
    """What a channel is joined to here: `source` is read and sent, `sink` gets what comes."""

    source: int | None = None
    sink: int | None = None
    outflow: Outflow = field(default_factory=Outflow)
    inflow: Inflow = field(default_factory=Inflow)
    complete: bool = False  # nothing more will come
    opening: bool = False  # its descriptors are still to come


class PacketExchange:
    """`run` belongs to one thread, as does all else but `post`, `clock` and `silent`."""

    def __init__(self, reads: int, writes: int, silence: float = SILENCE) -> None:
        self._reads, self._writes = reads, writes
        for descriptor in (reads, writes):
            os.set_blocking(descriptor, False)
        self._woken, self._wakes = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wakes, False)
        self._reader = PacketReader()
        self._outbox: deque[memoryview] = deque()
        self._in_front = 0  # bytes in the outbox
        self._steps: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._over: str | None = None
        self._most_silence = silence
        self._heard = time.monotonic()
        self._beat = 0.0
        self.channels: dict[int, ChannelEnds] = {}
        self.silent = 0.0  # seconds, of those in which we were awake
        self.clock = 0.0  # seconds that passed at the other end, as far as anything was heard from it
        self.on_packet: Callable[[Packet], None] = lambda _packet: None  # those that are no channel's flow
        self.on_tick: Callable[[], None] = lambda: None
        self.on_drained: Callable[[int], None] = lambda _channel: None  # its sink has all there is
        self.on_source_end: Callable[[int], None] = lambda _channel: None

    def post(self, step: Callable[[], None]) -> bool:
        """Have it done by the thread of the exchange; false where that has ended."""
        with self._lock:
            if self._over is not None:
                return False
            self._steps.append(step)
            with contextlib.suppress(BlockingIOError):
                os.write(self._wakes, b"!")
        return True

    def stop(self, why: str) -> NoReturn:
        raise Stopping(why)

    def send(self, packet: Packet) -> None:
        data = packed(packet)
        self._outbox.append(memoryview(data))
        self._in_front += len(data)

    def attach(self, channel: int, source: int | None, sink: int | None) -> ChannelEnds:
        for descriptor in (source, sink):
            if descriptor is not None:
                os.set_blocking(descriptor, False)
        self.channels[channel] = ends = ChannelEnds(source, sink)
        return ends

    def expect(self, channel: int) -> None:
        """Attached by `join` later."""
        self.channels[channel] = ChannelEnds(opening=True)

    def join(self, channel: int, source: int, sink: int) -> None:
        """Attach; what has come on one that was expected is handed on."""
        came = self.channels.get(channel, ChannelEnds())
        ends = self.attach(channel, source, sink)
        ends.inflow, ends.complete = came.inflow, came.complete

    def detach(self, channel: int) -> None:
        ends = self.channels.pop(channel, None)
        if ends is not None:
            self._close_source(ends)
            self._close_sink(ends)

    def finish(self, channel: int) -> None:
        """The other side has ended it: what came is still handed on, and nothing more is sent."""
        if (ends := self.channels.get(channel)) is not None:
            ends.complete = True
            self._close_source(ends)

    @property
    def is_over(self) -> bool:
        return self._over is not None

    def run(self) -> str:
        """Until the other side is gone; why."""
        why = "it was interrupted"
        try:
            while True:
                self._turn()
        except Stopping as stop:
            why = str(stop)
        except Malformed as error:
            why = f"it spoke nonsense: {error}"
        finally:
            self._end(why)
        return why

    def _end(self, why: str) -> None:
        with self._lock:
            self._over = why
        while self._steps:
            self._steps.popleft()()  # what they open is closed below
        for channel in list(self.channels):
            self.detach(channel)
        for descriptor in (self._woken, self._wakes):
            os.close(descriptor)

    def _turn(self) -> None:
        now = time.monotonic()
        if now - self._beat >= BEAT:
            if not self._outbox:
                self.send(Packet(PacketKind.BEAT))
            self.silent += min(now - self._beat, LONGEST) if self._beat else 0.0
            self._beat = now
            self.on_tick()
            if self.silent > self._most_silence:
                self.stop(f"nothing was heard from it for {self.silent:.0f} s")
        ready = self._wait(max(0.0, self._beat + BEAT - now))
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 1 << 12)
        while self._steps:
            self._steps.popleft()()
        if self._reads in ready:
            self._take_in()
        for channel, ends in list(self.channels.items()):
            if ends.sink is not None and ends.sink in ready:
                self._hand_on(channel, ends)
            if ends.source is not None and ends.source in ready and channel in self.channels:
                self._pick_up(channel, ends)
        if self._outbox:
            self._write_out()

    def _wait(self, seconds: float) -> set[int]:
        poll = select.poll()
        poll.register(self._reads, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        if self._outbox:
            poll.register(self._writes, select.POLLOUT)
        for ends in self.channels.values():
            if ends.source is not None and ends.outflow.room > 0 and self._in_front < AHEAD:
                poll.register(ends.source, select.POLLIN)
            if ends.sink is not None and (ends.inflow.waiting or ends.complete):
                poll.register(ends.sink, select.POLLOUT)
        return {descriptor for descriptor, _ in poll.poll(seconds * 1000)}

    def _take_in(self) -> None:
        try:
            data = os.read(self._reads, 1 << 20)
        except BlockingIOError:
            return
        except OSError as error:
            self.stop(f"the connection broke: {error.strerror}")
        if not data:
            self.stop("the connection ended inside a packet" if self._reader.is_inside else "it has ended")
        now = time.monotonic()
        self.clock += min(now - self._heard, LONGEST)
        self._heard, self.silent = now, 0.0
        for packet in self._reader.feed(data):
            self._take(packet)

    def _take(self, packet: Packet) -> None:
        ends = self.channels.get(packet.channel)
        match packet.kind:
            case PacketKind.BEAT:
                pass
            case PacketKind.DATA | PacketKind.END | PacketKind.CREDIT if ends is None:
                pass  # of one that has ended here: what was under way
            case PacketKind.DATA if ends is not None:
                ends.inflow.came(packet.body)
                self._hand_on(packet.channel, ends)
            case PacketKind.END if ends is not None:
                ends.complete = True
                self._hand_on(packet.channel, ends)
            case PacketKind.CREDIT if ends is not None:
                ends.outflow.credited(credited(packet))
            case _:
                self.on_packet(packet)

    def _hand_on(self, channel: int, ends: ChannelEnds) -> None:
        passed = 0
        if ends.opening:
            return
        try:
            while ends.inflow.waiting and ends.sink is not None:
                count = os.write(ends.sink, ends.inflow.waiting[0])
                ends.inflow.handed_on(count)
                passed += count
        except BlockingIOError:
            pass
        except OSError:  # nobody reads it any more, or a disk is full, which a digest then tells
            self._close_sink(ends)
        if ends.sink is None:
            passed += ends.inflow.dropped()
        if passed and not ends.complete:
            self.send(credit(channel, passed))
        if ends.complete and not ends.inflow.waiting:
            self._close_sink(ends)
            self.on_drained(channel)

    def _pick_up(self, channel: int, ends: ChannelEnds) -> None:
        assert ends.source is not None
        if ends.outflow.room <= 0:
            return
        try:
            data = os.read(ends.source, min(MAX_BODY, ends.outflow.room))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            ends.outflow.sent(len(data))
            self.send(Packet(PacketKind.DATA, channel, data))
            return
        self._close_source(ends)
        self.send(Packet(PacketKind.END, channel))
        self.on_source_end(channel)

    def _write_out(self) -> None:
        try:
            while self._outbox:
                part = self._outbox[0]
                count = os.write(self._writes, part)
                self._in_front -= count
                if count < len(part):
                    self._outbox[0] = part[count:]
                    return
                self._outbox.popleft()
        except BlockingIOError:
            return
        except OSError as error:
            self._take_last_words()
            self.stop(f"the connection broke: {error.strerror}")

    def _take_last_words(self) -> None:
        """What it said before it went."""
        with contextlib.suppress(OSError):
            while data := os.read(self._reads, 1 << 20):
                for packet in self._reader.feed(data):
                    self._take(packet)

    def _close_source(self, ends: ChannelEnds) -> None:
        if ends.source is not None:
            os.close(ends.source)
            ends.source = None

    def _close_sink(self, ends: ChannelEnds) -> None:
        if ends.sink is not None:
            os.close(ends.sink)
            ends.sink = None


class Stopping(Exception):
    """The exchange is over; why."""
