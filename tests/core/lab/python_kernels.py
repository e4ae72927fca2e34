"""A simulated device whose kernels are Python functions, and whose memory is not touched once given back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.core.lab.numpy_inspector import InspectingBackend, NumpyInspector, memory_at
from tunesmith.backends.fake import FakeSession
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import (
    HERE,
    Executable,
    KernelBinary,
    LaunchCall,
    Memory,
    OutOfMemory,
    PlainSession,
    Pointer,
    Recording,
    Session,
    Slots,
)
from tunesmith.base.text import digest_of
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.problem import element_type

Array = NDArray[Any]


@dataclass(frozen=True)
class Argument:
    """An array a kernel is handed, and the memory around it, which it had better leave alone."""

    pointer: Pointer

    def of(self, type: str) -> Array:
        """Its elements, to be read and written."""
        return memory_at(self.pointer).view(element_type(type).memory)

    def around(self, start: int, nbytes: int) -> NDArray[np.uint8]:
        """Bytes of the same memory, counted from where the array starts."""
        return memory_at(replace(self.pointer, offset=self.pointer.offset + start, nbytes=nbytes))

    @property
    def nbytes(self) -> int:
        return self.pointer.nbytes


Kernel = Callable[..., None]  # takes Arguments for arrays and numbers for scalars


@dataclass(frozen=True)
class PythonExecutable:
    kernel: Kernel


class PythonSession(FakeSession):
    def __init__(self, device: Device, kernels: Mapping[str, Kernel]) -> None:
        super().__init__(device)
        self.inspector = NumpyInspector()
        self._kernels = kernels
        self._live: dict[int, Memory] = {}
        self.bytes_read = 0
        self.refused = 0  # allocations there was no room for

    @property
    def allocated(self) -> int:
        return self._allocated

    def load(self, unit: Unit, binary: bytes) -> Executable:
        return PythonExecutable(self._kernels[unit.source])

    def allocate(self, nbytes: int) -> Memory:
        try:
            memory = super().allocate(nbytes)
        except OutOfMemory:
            self.refused += 1
            raise
        self._live[id(memory)] = memory
        return memory

    def release(self, memory: Memory) -> None:
        assert self._live.pop(id(memory), None) is memory, "memory is given back twice"
        super().release(memory)
        memory.data = bytearray()  # type: ignore[attr-defined]  # whoever still uses it will notice

    def write(self, memory: Memory, offset: int, data: bytes | memoryview) -> None:
        assert offset + len(data) <= len(memory.data), "a write beyond its memory"  # type: ignore[attr-defined]
        super().write(memory, offset, data)

    def read(self, memory: Memory, offset: int, nbytes: int) -> bytes:
        self.bytes_read += nbytes
        return super().read(memory, offset, nbytes)

    def copy(self, to: Pointer, source: Pointer) -> None:
        memory_at(to)[:] = memory_at(source)

    def run(self, calls: Sequence[LaunchCall]) -> None:
        for call in calls:
            call.executable.kernel(*map(_argument, call.args))

    def record(self, calls: Sequence[LaunchCall], slots: Sequence[Slots] = HERE) -> Recording:
        return PlainSession.record(self, calls, slots)

    def seconds_of(self, calls: Sequence[LaunchCall]) -> float:
        self.run(calls[:1])
        return 1e-5 * len(calls)


class PythonBackend(InspectingBackend):
    """A source is the name of a kernel."""

    def __init__(self, kernels: Mapping[str, Kernel]) -> None:
        self._kernels = kernels

    def build(self, unit: Unit, device: Device) -> KernelBinary:
        return KernelBinary(b"", digest_of(unit.source), Resources())

    def open(self, device: Device) -> Session:
        return PythonSession(device, self._kernels)


def _argument(arg: object) -> Any:
    if isinstance(arg, Pointer):
        return Argument(arg)
    return arg.value


def elementwise(function: Callable[[Array], Array], x: str = "float32", out: str = "float32") -> Kernel:
    """A kernel (out, x, ...) that computes in float64 and rounds."""

    def kernel(target: Argument, source: Argument, *_: object) -> None:
        with np.errstate(all="ignore"):
            values = function(source.of(x).astype(np.float64))
            target.of(out)[...] = values.astype(element_type(out).numpy)

    return kernel


def then(kernel: Kernel, change: Callable[[Argument, Argument], None]) -> Kernel:
    """The kernel, and what goes wrong with (out, x) afterwards."""

    def both(out: Argument, x: Argument, *rest: object) -> None:
        kernel(out, x, *rest)
        change(out, x)

    return both
