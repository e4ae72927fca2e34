"""The host as a device: kernels are functions of a library that this process loads."""

from __future__ import annotations

import ctypes
import math
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tunesmith.backends import messages, port
from tunesmith.backends.host_pages import HostPages, shield_spans
from tunesmith.problem.device import Device
from tunesmith.problem.problem import element_type

MESSAGE = 1000  # characters


class _NativeEntry(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("count", ctypes.c_int),
        ("sizes", ctypes.POINTER(ctypes.c_uint)),
        ("call", ctypes.c_void_p),
    )


class _NativeArray(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("writes", ctypes.c_int))


@dataclass(frozen=True)
class HostEntry:
    """A kernel: where it is, and how many bytes each of its arguments has."""

    call: int
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class HostExecutable:
    library: Any
    entries: dict[str, HostEntry]
    unit: messages.Unit
    data: bytes


class CpuSession(port.PlainSession):
    """Runs kernels one after the other, each time in another order of threads and blocks."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._allocated = 0
        self.seed = 0  # of the next launch; 0: one thread after the other

    def load(self, unit: messages.Unit, binary: bytes) -> port.Executable:
        with tempfile.NamedTemporaryFile(suffix=".so", delete=False) as file:
            file.write(binary)
        try:
            ctypes.CDLL("libm.so.6", ctypes.RTLD_GLOBAL)
            library = ctypes.CDLL(file.name, os.RTLD_NOW)
            table = (_NativeEntry * (len(unit.entries) + 1)).in_dll(library, "__tunesmith_entries")
        except (OSError, ValueError) as error:
            raise port.LaunchFailed(f"the library cannot be loaded: {error}") from error
        finally:
            os.unlink(file.name)
        entries = {
            one.name.decode(): HostEntry(one.call, tuple(one.sizes[: one.count])) for one in table if one.name
        }
        return HostExecutable(library, entries, unit, binary)

    def allocate(self, nbytes: int) -> port.Memory:
        limits = self._device.limits
        if nbytes > limits.max_allocation or self._allocated + nbytes > limits.memory:
            raise port.OutOfMemory(
                f"{nbytes} bytes wanted with {self._allocated} of {limits.memory} in use; "
                f"the largest single array may have {limits.max_allocation}"
            )
        memory = HostPages(nbytes)
        self._allocated += nbytes
        return memory

    def release(self, memory: port.Memory) -> None:
        assert isinstance(memory, HostPages)
        self._allocated -= memory.nbytes
        memory.close()

    def shielded(self, spans: Sequence[port.Pointer]) -> AbstractContextManager[None]:
        own = [(p.memory, p.offset, p.nbytes) for p in spans if isinstance(p.memory, HostPages)]
        return shield_spans(own)

    def write(self, memory: port.Memory, offset: int, data: bytes | memoryview) -> None:
        assert isinstance(memory, HostPages)
        memory.pages[offset : offset + len(data)] = bytes(data)

    def read(self, memory: port.Memory, offset: int, nbytes: int) -> bytes:
        assert isinstance(memory, HostPages)
        return memory.pages[offset : offset + nbytes]

    def copy(self, to: port.Pointer, source: port.Pointer) -> None:
        self.write(to.memory, to.offset, self.read(source.memory, source.offset, to.nbytes))

    def run(self, calls: Sequence[port.LaunchCall]) -> None:
        for call in calls:
            for place, element in call.fills:
                self.write(place.memory, place.offset, element * (place.nbytes // len(element)))
            self._launch(call)
        self.seed = (self.seed * 6364136223846793005 + 1442695040888963407) % (1 << 64)

    def seconds_of(self, calls: Sequence[port.LaunchCall]) -> float:
        start = time.perf_counter()
        self.run(calls)
        return time.perf_counter() - start

    def _launch(self, call: port.LaunchCall) -> None:
        executable = call.executable
        assert isinstance(executable, HostExecutable)
        entry, limits = executable.entries[call.entry], self._device.limits
        threads = math.prod(call.block)
        if not 1 <= threads <= limits.max_threads:
            raise port.LaunchFailed(f"a block of {threads} threads; it may have 1 to {limits.max_threads}")
        values = [_argument_bytes(arg) for arg in call.args]
        if len(values) != len(entry.sizes):
            takes = f"{call.entry} takes {len(entry.sizes)} arguments"
            raise port.LaunchFailed(f"{takes}, {len(values)} are given")
        for number, (value, size) in enumerate(zip(values, entry.sizes, strict=True)):
            if len(value) != size:
                words = f"argument {number + 1} of {call.entry} has {size} bytes, {len(value)} are given"
                raise port.LaunchFailed(words)
        slots = [ctypes.create_string_buffer(value, max(16, len(value))) for value in values]
        given = (ctypes.c_void_p * max(1, len(slots)))(*(ctypes.addressof(slot) for slot in slots))
        arrays = _launch_arrays(call.args)
        three, message = ctypes.c_uint * 3, ctypes.create_string_buffer(MESSAGE)
        launch = executable.library["__tunesmith_launch"]
        what = (
            ctypes.c_void_p(entry.call),
            three(*call.grid),
            three(*call.block),
            ctypes.c_size_t(call.shared),
        )
        touched = (_NativeArray * max(1, len(arrays)))(*arrays), len(arrays)
        told = ctypes.c_ulonglong(self.seed), message, ctypes.c_size_t(MESSAGE)
        failed = launch(*what, given, *touched, *told)
        self.after_launch(executable, call)
        if failed:
            raise port.LaunchFailed(f"{call.entry}: {message.value.decode(errors='replace')}")

    def after_launch(self, executable: HostExecutable, call: port.LaunchCall) -> None:
        """For those who watch."""


def _argument_bytes(arg: port.Pointer | port.Scalar | port.LocalBytes) -> bytes:
    if isinstance(arg, port.Pointer):
        assert isinstance(arg.memory, HostPages)
        return (arg.memory.address + arg.offset).to_bytes(8, "little")
    if isinstance(arg, port.Scalar):
        return np.array([arg.value], element_type(arg.type).numpy).tobytes()
    raise port.Unsupported("CUDA and HIP have no arguments of role 'local': use the launch's `shared`")


def _launch_arrays(args: Sequence[object]) -> list[_NativeArray]:
    """What a launch may touch."""
    found: dict[tuple[int, int], _NativeArray] = {}
    for arg in args:
        if isinstance(arg, port.Pointer):
            assert isinstance(arg.memory, HostPages)
            start = arg.memory.address + arg.offset
            found[start, arg.nbytes] = _NativeArray(start, arg.nbytes, 1)
    return list(found.values())
