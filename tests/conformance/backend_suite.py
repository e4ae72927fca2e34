"""What every backend must do. Inherit `BackendSuite` and provide `backend` and the sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
import pytest

from tunesmith.core.codec import decode, encode
from tunesmith.core.device import Device
from tunesmith.core.messages import Unit
from tunesmith.core.ports import (
    Backend,
    BuildFailed,
    Call,
    LaunchFailed,
    OutOfMemory,
    Pointer,
    Scalar,
    Session,
)


class BackendSuite(ABC):
    """Sources compute out[i] = factor * x[i] over rows * d floats, with arguments (out, x, rows, d)."""

    @abstractmethod
    def make_backend(self) -> Backend: ...

    @abstractmethod
    def unit(self, factor: int = 2, comment: str = "") -> Unit: ...

    @abstractmethod
    def broken_unit(self) -> Unit: ...

    block = 16

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
        align = device.limits.alignment
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
        return Call(executable, unit.entries[0], grid, (self.block, 1, 1), 0, args), data, out, offset

    def test_devices_are_described_and_travel(self, backend: Backend) -> None:
        devices = backend.devices()
        assert devices
        for device in devices:
            assert device.backend == backend.name
            assert decode(encode(device), Device) == device
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
        session.chain([call])  # a driver may finish compiling at the first launch
        once = min(session.chain([call]) for _ in range(5))
        many = min(session.chain([call] * 40) for _ in range(5))
        assert 0 < once < many
        got = np.frombuffer(session.read(out, offset, data.nbytes), dtype=np.float32)
        np.testing.assert_array_equal(got, data * np.float32(2))

    def test_memory_is_counted_and_given_back(self, session: Session, device: Device) -> None:
        with pytest.raises(OutOfMemory):
            session.allocate(device.limits.max_allocation + 1)
        most = device.limits.max_allocation
        kept = [session.allocate(most) for _ in range(device.limits.memory // most)]
        with pytest.raises(OutOfMemory):
            session.allocate(most)
        for memory in kept:
            session.release(memory)
        session.release(session.allocate(device.limits.max_allocation))

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
