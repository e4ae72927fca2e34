"""What every backend must do. Inherit `BackendSuite` and provide `backend` and the sources."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from tunesmith.backends.messages import Unit
from tunesmith.backends.port import (
    Backend,
    BuildFailed,
    LaunchCall,
    LaunchFailed,
    Memory,
    OutOfMemory,
    Pointer,
    Scalar,
    Session,
    Slots,
    Unsupported,
)
from tunesmith.base.codec import decode_json, encode_json
from tunesmith.problem.device import Device


class BackendSuite(ABC):
    """Sources compute out[i] = factor * x[i] over rows * d floats, with arguments (out, x, rows, d)."""

    @abstractmethod
    def make_backend(self) -> Backend: ...

    @abstractmethod
    def unit(self, factor: int = 2, comment: str = "") -> Unit: ...

    @abstractmethod
    def broken_unit(self) -> Unit: ...

    block = 16
    widest_fill = 8  # bytes of an element that is not all one byte
    plays_every_call = True  # a simulated device may run the first of a chain and reckon the rest

    @pytest.fixture
    def backend(self) -> Backend:
        return self.make_backend()

    @pytest.fixture
    def device(self, backend: Backend) -> Device:
        return backend.devices()[0]

    @pytest.fixture
    def session(self, backend: Backend, device: Device) -> Session:
        return backend.open(device)

    def call(
        self, session: Session, backend: Backend, device: Device, rows: int, d: int, unit: Unit | None = None
    ):
        unit = unit or self.unit()
        executable = session.load(unit, backend.build(unit, device).data)
        align = max(device.limits.alignment, 4)
        nbytes = rows * d * 4
        offset = 3 * align
        out, x = session.allocate(offset + nbytes + 64), session.allocate(offset + nbytes)
        data = np.arange(rows * d, dtype=np.float32) / 7
        session.write(x, offset, data.tobytes())
        session.write(out, 0, b"\xaa" * (offset + nbytes + 64))
        grid = (-(-rows * d // self.block), 1, 1)
        args = (
            Pointer(out, offset, nbytes),
            Pointer(x, offset, nbytes),
            Scalar("int32", rows),
            Scalar("int32", d),
        )
        return LaunchCall(executable, unit.entries[0], grid, (self.block, 1, 1), 0, args), data, out, offset

    def test_devices_are_described_and_travel(self, backend: Backend) -> None:
        devices = backend.devices()
        assert devices
        for device in devices:
            assert device.backend == backend.name
            assert decode_json(encode_json(device), Device) == device
            limits = device.limits
            assert limits.max_threads >= 1
            assert limits.memory >= limits.max_allocation > 0
            assert limits.alignment & (limits.alignment - 1) == 0
            assert limits.names()["device.sms"] == limits.sms >= 1
        assert len({d.id for d in devices}) == len(devices)

    def test_equal_code_has_equal_digest(self, backend: Backend, device: Device) -> None:
        first = backend.build(self.unit(), device)
        assert backend.build(self.unit(), device).code_digest == first.code_digest
        assert backend.build(self.unit(comment="only a comment"), device).code_digest == first.code_digest
        assert backend.build(self.unit(factor=1), device).code_digest != first.code_digest

    def test_a_build_says_what_it_uses(self, backend: Backend, device: Device) -> None:
        resources = backend.build(self.unit(), device).resources
        assert resources.max_threads is None or resources.max_threads >= self.block
        assert all(value >= 0 for value in resources.names().values())

    def test_a_source_that_does_not_compile(self, backend: Backend, device: Device) -> None:
        with pytest.raises(BuildFailed) as failure:
            backend.build(self.broken_unit(), device)
        assert self.broken_unit().path in str(failure.value)

    def test_runs_and_writes_nothing_else(self, session: Session, backend: Backend, device: Device) -> None:
        call, data, out, offset = self.call(session, backend, device, rows=5, d=24)
        session.run([call])
        got = np.frombuffer(session.read(out, offset, data.nbytes), dtype=np.float32)
        np.testing.assert_array_equal(got, data * np.float32(2))
        assert session.read(out, 0, offset) == b"\xaa" * offset
        assert session.read(out, offset + data.nbytes, 64) == b"\xaa" * 64

    def test_a_chain_computes_and_takes_time(
        self, session: Session, backend: Backend, device: Device
    ) -> None:
        call, data, out, offset = self.call(session, backend, device, rows=64, d=512)
        session.record([call]).start()()  # a driver may finish compiling at the first launch
        once = min(session.record([call]).start()() for _ in range(5))
        many = min(session.record([call] * 40).start()() for _ in range(5))
        assert 0 < once < many
        got = np.frombuffer(session.read(out, offset, data.nbytes), dtype=np.float32)
        np.testing.assert_array_equal(got, data * np.float32(2))

    def test_a_recording_has_its_effect_each_time_it_is_played(
        self, session: Session, backend: Backend, device: Device
    ) -> None:
        call, data, out, offset = self.call(session, backend, device, rows=3, d=24)
        _, x, *sizes = call.args
        in_place = session.record([replace(call, args=(x, x, *sizes))])
        got = partial(self.floats, session, x.memory, x.offset, data.size)
        np.testing.assert_array_equal(got(), data)
        for number in (1, 2, 3):
            assert in_place.start()() > 0
            np.testing.assert_array_equal(got(), data * np.float32(2**number))
        session.write(x.memory, x.offset, data.tobytes())  # it reads what is there when it is played
        in_place.start()()
        np.testing.assert_array_equal(got(), data * np.float32(2))
        np.testing.assert_array_equal(
            np.frombuffer(session.read(out, offset, data.nbytes), np.uint8), 0xAA, "it was told of x alone"
        )

    def test_a_queue_does_what_a_recording_does(
        self, session: Session, backend: Backend, device: Device
    ) -> None:
        call, data, *_ = self.call(session, backend, device, rows=3, d=24)
        _, x, *sizes = call.args
        assert isinstance(x, Pointer)
        queue = session.queue([replace(call, args=(x, x, *sizes))])
        for number in (1, 2, 3):
            assert queue.start()() > 0
            got = self.floats(session, x.memory, x.offset, data.size)
            np.testing.assert_array_equal(got, data * np.float32(2**number))

    def test_calls_of_a_recording_follow_one_another(
        self, session: Session, backend: Backend, device: Device
    ) -> None:
        if not self.plays_every_call:
            pytest.skip("this device runs the first call alone")
        call, data, out, offset = self.call(session, backend, device, rows=64, d=512)
        there = call.args
        back = (there[1], there[0], *there[2:])
        chain = session.record([replace(call, args=args) for args in (there, back, there, back)])
        for number in (1, 2):
            chain.start()()
            got = self.floats(session, out, offset, data.size)
            np.testing.assert_array_equal(got, data * np.float32(16**number / 2))

    @pytest.mark.parametrize("slots", [((2, 1),), ((0, 2), (2, 0)), ((3, 1), (1, 1), (0, 3))])
    def test_a_recording_moves_on_from_slot_to_slot(
        self, session: Session, backend: Backend, device: Device, slots: tuple[Slots, ...]
    ) -> None:
        """Each pointer by its own stride: the output takes four places, the input two."""
        call, _, *_ = self.call(session, backend, device, rows=4, d=16)
        nbytes, align = 4 * 4 * 16, max(device.limits.alignment, 4)
        stride = -(-nbytes // align) * align
        out, x = session.allocate(8 * stride), session.allocate(8 * stride)
        data = np.arange(2 * stride, dtype=np.float32)
        session.write(x, 0, data.tobytes())
        session.write(out, 0, bytes(8 * stride))
        pointers = (Pointer(out, 0, nbytes, 2 * stride, turns=True), Pointer(x, 0, nbytes, stride))
        session.record([replace(call, args=(*pointers, *call.args[2:]))], slots).start()()
        wanted = np.zeros_like(data)
        for read, wrote in slots:
            source = data[read * stride // 4 :][: nbytes // 4]
            wanted[wrote * stride // 2 :][: nbytes // 4] = 2 * source
        np.testing.assert_array_equal(self.floats(session, out, 0, data.size), wanted)

    @pytest.mark.parametrize("element", [b"\0", b"\1\2", struct.pack("f", 3.0), struct.pack("ff", 3.0, 4.0)])
    def test_what_is_filled_before_a_launch_is_filled_each_time(
        self, session: Session, backend: Backend, device: Device, element: bytes
    ) -> None:
        call, data, out, offset = self.call(session, backend, device, rows=4, d=24)
        x = call.args[1]
        if len(element) > self.widest_fill:
            with pytest.raises(Unsupported, match="8 bytes"):
                session.run([replace(call, fills=((x, element),))])
            return
        assert isinstance(x, Pointer)
        call = replace(call, fills=((x, element),))
        expected = np.resize(
            np.frombuffer(np.resize(np.frombuffer(element, np.uint8), 8), np.float32), data.size
        )
        recording = session.record([call])
        for play in (lambda: session.run([call]), lambda: recording.start()(), lambda: recording.start()()):
            session.write(x.memory, x.offset, data.tobytes())
            play()
            got = np.frombuffer(session.read(out, offset, data.nbytes), dtype=np.float32)
            np.testing.assert_array_equal(got, expected * np.float32(2))

    def test_a_recording_outlives_others(self, session: Session, backend: Backend, device: Device) -> None:
        call, data, out, offset = self.call(session, backend, device, rows=5, d=24)
        kept, other = session.record([call]), session.record([call] * 3)
        other.start()()
        del other
        session.write(out, offset, bytes(data.nbytes))
        kept.start()()
        np.testing.assert_array_equal(self.floats(session, out, offset, data.size), data * np.float32(2))

    def floats(self, session: Session, memory: Memory, offset: int, count: int) -> NDArray[np.float32]:
        return np.frombuffer(session.read(memory, offset, 4 * count), dtype=np.float32)

    def test_copies_from_any_offset_to_any_other(self, session: Session) -> None:
        source, to = session.allocate(1000), session.allocate(900)
        data = bytes(i % 251 for i in range(1000))
        session.write(source, 0, data)
        session.write(to, 0, bytes(900))
        session.copy(Pointer(to, 13, 500), Pointer(source, 7, 500))
        assert session.read(to, 0, 900) == bytes(13) + data[7:507] + bytes(387)
        session.copy(Pointer(to, 5, 0), Pointer(source, 3, 0))
        assert session.read(to, 0, 13) == bytes(13)
        session.copy(Pointer(to, 899, 1), Pointer(to, 13, 1))  # within one memory
        assert session.read(to, 899, 1) == data[7:8]
        assert session.read(source, 0, 1000) == data

    def test_copies_take_turns_with_launches(
        self, session: Session, backend: Backend, device: Device
    ) -> None:
        call, data, out, offset = self.call(session, backend, device, rows=64, d=512)
        x = call.args[1]
        assert isinstance(x, Pointer)
        for number in (1, 2, 3):
            session.run([call])
            session.copy(x, Pointer(out, offset, data.nbytes))
            got = self.floats(session, x.memory, x.offset, data.size)
            np.testing.assert_array_equal(got, data * np.float32(2**number))

    def test_memory_is_counted_and_given_back(self, session: Session, device: Device) -> None:
        limits = device.limits
        with pytest.raises(OutOfMemory):
            session.allocate(limits.max_allocation + 1)
        piece = min(limits.max_allocation, limits.memory // 4)
        blocks: list[Memory] = []
        with pytest.raises(OutOfMemory):
            blocks.extend(session.allocate(piece) for _ in range(limits.memory // piece + 1))
        assert blocks
        for memory in blocks:
            session.release(memory)
        for memory in [session.allocate(piece) for _ in blocks]:
            session.release(memory)

    def test_reads_back_what_was_written_at_any_offset(self, session: Session) -> None:
        memory = session.allocate(1000)
        session.write(memory, 0, bytes(1000))
        session.write(memory, 7, b"hello")
        session.write(memory, 500, memoryview(b"xyz"))
        assert session.read(memory, 5, 9) == b"\0\0hello\0\0"
        assert session.read(memory, 499, 5) == b"\0xyz\0"
        assert session.read(memory, 3, 0) == b""

    def test_too_few_arguments_are_refused(self, session: Session, backend: Backend, device: Device) -> None:
        call, *_ = self.call(session, backend, device, rows=1, d=16)
        with pytest.raises(LaunchFailed):
            session.run([replace(call, args=call.args[:3])])

    def test_throttling_is_known_or_not(self, session: Session) -> None:
        assert session.throttled() in (True, False, None)

    def test_clocks_are_known_or_not(self, session: Session) -> None:
        for clock in session.clocks():
            assert clock.part
            assert 0 < clock.mhz < 100_000
            assert clock.limit_mhz is None or 0 < clock.limit_mhz < 100_000
