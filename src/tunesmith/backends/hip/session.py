"""An open AMD GPU: memory, launches, and chains of launches recorded as graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.backends import port
from tunesmith.backends.hip.code_object import CodeObject, unpack
from tunesmith.backends.hip.devices import check_hip, load_runtime
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import HERE, Slots, argument_bits, at_slots, check_arguments
from tunesmith.problem.device import Device

SPARE = 256 << 20  # of the device's memory, left to the runtime
_NON_BLOCKING = 1  # hipStreamNonBlocking
_THREAD_LOCAL = 1  # hipStreamCaptureModeThreadLocal


@dataclass(frozen=True)
class HipMemory:
    handle: Any  # as the runtime gave it
    address: int
    nbytes: int


@dataclass(frozen=True)
class HipExecutable:
    module: Any
    functions: Mapping[str, object]
    parameters: dict[str, tuple[int, ...]]


class _HipArguments:
    """A call's arguments as words, and the addresses of the words: what a launch is pointed to."""

    def __init__(self, call: port.LaunchCall) -> None:
        self.values: NDArray[np.uint64] = np.array(
            [argument_bits(arg, _hip_address, "HIP") for arg in call.args], dtype=np.uint64
        )
        places = self.values.ctypes.data + 8 * np.arange(max(self.values.size, 1), dtype=np.uint64)
        self.addresses: NDArray[np.uint64] = places

    @property
    def pointer(self) -> int:
        return int(self.addresses.ctypes.data)


class _HipGraph:
    """A chain recorded once and replayed: what the host does between two launches is not in the time."""

    def __init__(self, session: HipSession, calls: Sequence[port.LaunchCall]) -> None:
        hip = load_runtime()
        self._session, self._graph, self._executable = session, None, None
        check_hip(hip.hipStreamBeginCapture(session.stream, hip.hipStreamCaptureMode(_THREAD_LOCAL)))
        try:
            self._kept = session.launch_all(calls)
        except BaseException:
            hip.hipStreamEndCapture(session.stream)
            raise
        self._graph = check_hip(hip.hipStreamEndCapture(session.stream))
        self._executable = check_hip(hip.hipGraphInstantiateWithFlags(self._graph, 0))

    def start(self) -> Callable[[], float]:
        return self._session.timed(
            lambda: check_hip(load_runtime().hipGraphLaunch(self._executable, self._session.stream))
        )

    def __del__(self) -> None:
        if self._executable is not None:
            load_runtime().hipGraphExecDestroy(self._executable)
        if self._graph is not None:
            load_runtime().hipGraphDestroy(self._graph)


@dataclass(frozen=True)
class _HipQueue:
    """A chain launched anew each time, one launch after the other."""

    session: HipSession
    calls: tuple[port.LaunchCall, ...]

    def start(self) -> Callable[[], float]:
        kept: list[_HipArguments] = []
        seconds = self.session.timed(lambda: kept.extend(self.session.launch_all(self.calls)))

        def wait() -> float:
            found = seconds()
            kept.clear()
            return found

        return wait


class HipSession(port.QuietSession):
    def __init__(self, device: Device) -> None:
        hip = load_runtime()
        self._device, self._allocated = device, 0
        check_hip(hip.hipSetDevice(int(device.id)))
        self.stream = check_hip(hip.hipStreamCreateWithFlags(_NON_BLOCKING))
        self._events: list[tuple[Any, Any]] = []  # pairs that nobody uses at the moment

    def timed(self, queue: Callable[[], object]) -> Callable[[], float]:
        """Queue it between two events. The answer waits for the second, and gives the seconds between."""
        hip = load_runtime()
        if not self._events:
            self._events.append((check_hip(hip.hipEventCreate()), check_hip(hip.hipEventCreate())))
        begin, end = self._events.pop()
        check_hip(hip.hipEventRecord(begin, self.stream))
        queue()
        check_hip(hip.hipEventRecord(end, self.stream))

        def seconds() -> float:
            check_hip(hip.hipEventSynchronize(end))
            elapsed = float(check_hip(hip.hipEventElapsedTime(begin, end)))
            self._events.append((begin, end))
            return elapsed * 1e-3

        return seconds

    def load(self, unit: Unit, binary: bytes) -> port.Executable:
        hip = load_runtime()
        symbols, data = unpack(binary)
        code = CodeObject(data)
        module = check_hip(hip.hipModuleLoadData(data))
        functions = {
            e: check_hip(hip.hipModuleGetFunction(module, symbols[e].encode())) for e in unit.entries
        }
        return HipExecutable(
            module, functions, {e: code.kernels[symbols[e]].parameters for e in unit.entries}
        )

    def allocate(self, nbytes: int) -> port.Memory:
        limit = self._device.limits.memory
        if self._allocated + nbytes + SPARE > limit:
            raise port.OutOfMemory(f"{nbytes} bytes wanted with {self._allocated} of {limit} in use")
        handle = check_hip(load_runtime().hipMalloc(max(nbytes, 1)))
        self._allocated += nbytes
        return HipMemory(handle, int(handle), nbytes)

    def release(self, memory: port.Memory) -> None:
        assert isinstance(memory, HipMemory)
        check_hip(load_runtime().hipFree(memory.handle))
        self._allocated -= memory.nbytes

    def write(self, memory: port.Memory, offset: int, data: bytes | memoryview) -> None:
        assert isinstance(memory, HipMemory)
        if len(data):
            source = np.frombuffer(data, dtype=np.uint8)
            to = memory.address + offset
            check_hip(load_runtime().hipMemcpyHtoDAsync(to, source.ctypes.data, source.nbytes, self.stream))
            self._finish()

    def read(self, memory: port.Memory, offset: int, nbytes: int) -> bytes:
        assert isinstance(memory, HipMemory)
        target = np.empty(nbytes, dtype=np.uint8)
        if nbytes:
            source = memory.address + offset
            check_hip(load_runtime().hipMemcpyDtoHAsync(target.ctypes.data, source, nbytes, self.stream))
            self._finish()
        return target.tobytes()

    def copy(self, to: port.Pointer, source: port.Pointer) -> None:
        if to.nbytes:
            pair = (_hip_address(to), _hip_address(source))
            check_hip(load_runtime().hipMemcpyDtoDAsync(*pair, to.nbytes, self.stream))

    def run(self, calls: Sequence[port.LaunchCall]) -> None:
        kept = self.launch_all(calls)
        self._finish()
        del kept

    def record(self, calls: Sequence[port.LaunchCall], slots: Sequence[Slots] = HERE) -> port.Recording:
        return _HipGraph(self, [at_slots(call, at) for at in slots for call in calls])

    def queue(self, calls: Sequence[port.LaunchCall], slots: Sequence[Slots] = HERE) -> port.Recording:
        return _HipQueue(self, tuple(at_slots(call, at) for at in slots for call in calls))

    def launch_all(self, calls: Sequence[port.LaunchCall]) -> list[_HipArguments]:
        """Queue the calls. The answer holds their arguments' values, which must outlive that."""
        kept = [_HipArguments(call) for call in calls]
        for call, given in zip(calls, kept, strict=True):
            for place, element in call.fills:
                self._fill_array(place, element)
            self._launch_call(call, given.pointer)
        return kept

    def _launch_call(self, call: port.LaunchCall, pointer: int) -> None:
        assert isinstance(call.executable, HipExecutable)
        if call.cluster or call.pdl:
            raise port.LaunchFailed(
                "AMD's GPUs know neither clusters nor launches that overlap by themselves"
            )
        check_arguments(call, call.executable.parameters[call.entry])
        shape = (*call.grid, *call.block, call.shared)
        function = call.executable.functions[call.entry]
        if call.cooperative:
            check_hip(load_runtime().hipModuleLaunchCooperativeKernel(function, *shape, self.stream, pointer))
        else:
            check_hip(load_runtime().hipModuleLaunchKernel(function, *shape, self.stream, pointer, None))

    def _fill_array(self, to: port.Pointer, element: bytes) -> None:
        hip, width = load_runtime(), 1 if element == element[:1] * len(element) else len(element)
        memsets = {1: hip.hipMemsetD8Async, 2: hip.hipMemsetD16Async, 4: hip.hipMemsetD32Async}
        if width not in memsets:
            raise port.Unsupported("AMD's runtime fills no array with a number of 8 bytes but 0")
        word = int.from_bytes(element[:width], "little")
        check_hip(memsets[width](_hip_address(to), word, to.nbytes // width, self.stream))

    def _finish(self) -> None:
        check_hip(load_runtime().hipStreamSynchronize(self.stream))


def _hip_address(pointer: port.Pointer) -> int:
    assert isinstance(pointer.memory, HipMemory)
    return pointer.memory.address + pointer.offset
