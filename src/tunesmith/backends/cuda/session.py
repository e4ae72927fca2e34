"""An open CUDA device: memory, launches, and chains of launches recorded as graphs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.backends import port
from tunesmith.backends.cuda.devices import checked, clocks_of, driver, is_throttled, neighbours_of
from tunesmith.backends.cuda.entries import unpack
from tunesmith.backends.cuda.inspector import CudaInspector, CudaMemory, address
from tunesmith.backends.launch_arguments import argument_bits, check_arguments
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import HERE, Slots
from tunesmith.problem.device import Clock, Device

SPARE = 256 << 20  # of the device's memory, left to the driver
PARTS = 4  # of a recorded chain, that are timed apart: one that met another's slice of time is longer
WAITING_BYTES = 1 << 16  # of the host's memory: for what is larger the device is waited for


class CudaExecutable:
    def __init__(self, module: Any, functions: dict[str, Any]) -> None:
        self.module = module
        self.functions = functions
        self.parameters = {entry: _parameter_sizes(function) for entry, function in functions.items()}
        self.shared: dict[str, int] = dict.fromkeys(functions, 0)

    def allow_shared(self, entry: str, nbytes: int) -> None:
        """The driver wants to be told before the launch where this and static shared memory exceed 48 KiB."""
        if nbytes > self.shared[entry]:
            cu = driver()
            attribute = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            checked(cu.cuFuncSetAttribute(self.functions[entry], attribute, nbytes))
            self.shared[entry] = nbytes


class _Graph:
    """A chain recorded once and replayed: what the host does between two launches is not in the time."""

    def __init__(
        self, session: CudaSession, calls: Sequence[port.LaunchCall], slots: Sequence[Slots]
    ) -> None:
        cu = driver()
        self._session = session
        self._marks: list[Any] = []
        self._graph: Any = None
        self._executable: Any = None
        # An event between two launches would keep the second from beginning early.
        parts = 1 if any(call.pdl for call in calls) else min(PARTS, len(slots))
        self._marks = [checked(cu.cuEventCreate(0)) for _ in range(parts - 1)]
        # The graph's launches point to these values.
        self._graph, self._values = session.capture(calls, slots, self._marks)
        self._executable = checked(cu.cuGraphInstantiate(self._graph, 0))
        checked(cu.cuGraphUpload(self._executable, session.stream))

    def start(self) -> Callable[[], float]:
        cu, session = driver(), self._session
        return session.timed(lambda: checked(cu.cuGraphLaunch(self._executable, session.stream)), self._marks)

    def __del__(self) -> None:
        cu = driver()
        if self._executable is not None:
            cu.cuGraphExecDestroy(self._executable)
        if self._graph is not None:
            cu.cuGraphDestroy(self._graph)
        for mark in self._marks:
            cu.cuEventDestroy(mark)


class _Queued:
    """A chain launched anew each time, one launch after the other, from behind the gate."""

    def __init__(
        self, session: CudaSession, calls: Sequence[port.LaunchCall], slots: Sequence[Slots]
    ) -> None:
        self._session, self._calls, self._slots = session, calls, slots

    def start(self) -> Callable[[], float]:
        return self._session.timed(lambda: self._session.launch_all(self._calls, self._slots))


class _Gate:
    """Holds back a stream until it is opened, by a word in host memory that the device reads."""

    def __init__(self, stream: Any) -> None:
        cu = driver()
        self._stream = stream
        host = checked(cu.cuMemHostAlloc(64, cu.CU_MEMHOSTALLOC_DEVICEMAP))
        self._word = ctypes.c_uint32.from_address(int(host))
        self._address = checked(cu.cuMemHostGetDevicePointer(host, 0))
        self._round = 0
        self._word.value = 0

    def __enter__(self) -> None:
        cu = driver()
        self._round += 1
        checked(cu.cuStreamWaitValue32(self._stream, self._address, self._round, 0))  # 0: until ≥

    def __exit__(self, *_: object) -> None:
        self._word.value = self._round


class CudaSession:
    def __init__(self, device: Device) -> None:
        cu = driver()
        self._device = device
        handle = checked(cu.cuDeviceGet(int(device.id)))
        self._context = checked(cu.cuDevicePrimaryCtxRetain(handle))
        checked(cu.cuCtxSetCurrent(self._context))
        self.stream = checked(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING.value))
        self.events: list[tuple[Any, Any]] = []  # pairs that nobody uses at the moment
        self._passed: tuple[Any, ...] = ()  # by what was waited for last
        self.gate = _Gate(self.stream)
        self.inspector: port.Inspector | None = CudaInspector(self.stream, device)
        self._allocated = 0
        self._written: list[Any] = []  # what the device may still have to read from the host

    def take_events(self) -> tuple[Any, Any]:
        cu = driver()
        if not self.events:
            self.events.append((checked(cu.cuEventCreate(0)), checked(cu.cuEventCreate(0))))
        return self.events.pop()

    def timed(self, queue: Callable[[], object], marks: Sequence[Any] = ()) -> Callable[[], float]:
        """Queue it between two events. The answer waits for the second, and gives the seconds between.
        `marks` are events on the way."""
        cu = driver()
        begin, end = self.take_events()
        # Everything waits behind a gate, so that what the host does to launch is not in the time either.
        with self.gate:
            checked(cu.cuEventRecord(begin, self.stream))
            queue()
            checked(cu.cuEventRecord(end, self.stream))

        def seconds() -> float:
            checked(cu.cuEventSynchronize(end))
            elapsed = float(checked(cu.cuEventElapsedTime(begin, end)))
            self.events.append((begin, end))
            self._passed = (begin, *marks, end)
            return elapsed * 1e-3

        return seconds

    def parts(self) -> tuple[float, ...]:
        cu, found = driver(), []
        for before, after in pairwise(self._passed):
            status, *elapsed = cu.cuEventElapsedTime(before, after)
            if int(status) != 0:  # it has been started again since
                return ()
            found.append(float(elapsed[0]) * 1e-3)
        return tuple(found)

    def neighbours(self) -> str:
        return neighbours_of(int(self._device.id))

    def load(self, unit: Unit, binary: bytes) -> port.Executable:
        cu = driver()
        symbols, cubin = unpack(binary)
        module = checked(cu.cuModuleLoadData(cubin))
        functions = {
            entry: checked(cu.cuModuleGetFunction(module, symbols[entry].encode())) for entry in unit.entries
        }
        return CudaExecutable(module, functions)

    def allocate(self, nbytes: int) -> port.Memory:
        cu = driver()
        limit = self._device.limits.memory
        if self._allocated + nbytes + SPARE > limit:
            raise port.OutOfMemory(f"{nbytes} bytes wanted with {self._allocated} of {limit} in use")
        address = int(checked(cu.cuMemAlloc(nbytes)))
        self._allocated += nbytes
        return CudaMemory(address, nbytes)

    def release(self, memory: port.Memory) -> None:
        assert isinstance(memory, CudaMemory)
        checked(driver().cuMemFree(memory.address))
        self._allocated -= memory.nbytes

    def write(self, memory: port.Memory, offset: int, data: bytes | memoryview) -> None:
        assert isinstance(memory, CudaMemory)
        if len(data):
            source = np.frombuffer(data, dtype=np.uint8)
            to = memory.address + offset
            checked(driver().cuMemcpyHtoDAsync(to, source.ctypes.data, source.nbytes, self.stream))
            if source.nbytes > WAITING_BYTES:
                self._finish()
            else:
                self._written.append(source)

    def read(self, memory: port.Memory, offset: int, nbytes: int) -> bytes:
        assert isinstance(memory, CudaMemory)
        target = np.empty(nbytes, dtype=np.uint8)
        if nbytes:
            source = memory.address + offset
            checked(driver().cuMemcpyDtoHAsync(target.ctypes.data, source, nbytes, self.stream))
            self._finish()
        return target.tobytes()

    def run_overseen(self, calls: Sequence[port.LaunchCall], pairs: Sequence[port.PointerPair]) -> int | None:
        assert isinstance(self.inspector, CudaInspector)
        overseer = self.inspector.overseer
        self._finish()  # what was copied is there
        overseer.begin([(address(a), address(b), a.nbytes) for a, b in pairs])
        try:
            self.run(calls)
        finally:
            found = overseer.end()
        return found

    def scramble(self, is_local: bool, is_patient: bool = False) -> None:
        assert isinstance(self.inspector, CudaInspector)
        self.inspector.scramble(is_local)

    def copy(self, to: port.Pointer, source: port.Pointer) -> None:
        if to.nbytes:
            checked(driver().cuMemcpyDtoDAsync(address(to), address(source), to.nbytes, self.stream))

    def run(self, calls: Sequence[port.LaunchCall]) -> None:
        kept = self.launch_all(calls, HERE)
        self._finish()
        del kept

    def record(self, calls: Sequence[port.LaunchCall], slots: Sequence[Slots] = HERE) -> port.Recording:
        return _Graph(self, calls, slots)

    def queue(self, calls: Sequence[port.LaunchCall], slots: Sequence[Slots] = HERE) -> port.Recording:
        return _Queued(self, calls, slots)

    @contextmanager
    def profiled(self) -> Iterator[None]:
        """What a profiler that was told to wait looks at."""
        cu = driver()
        self._finish()
        checked(cu.cuProfilerStart())
        try:
            yield
        finally:
            checked(cu.cuProfilerStop())

    def throttled(self) -> bool | None:
        return is_throttled(int(self._device.id))

    def clocks(self) -> tuple[Clock, ...]:
        return clocks_of(int(self._device.id))

    def capture(
        self, calls: Sequence[port.LaunchCall], slots: Sequence[Slots], marks: Sequence[Any] = ()
    ) -> tuple[Any, list[Any]]:
        """A graph and the argument values its launches point to. It records `marks` on its way, evenly."""
        cu = driver()
        for call in calls:  # setting attributes is not allowed while a stream is being captured
            _executable(call).allow_shared(call.entry, call.shared)
        mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        checked(cu.cuStreamBeginCapture(self.stream, mode))
        try:
            values = self.launch_all(calls, slots, marks)
        except BaseException:
            cu.cuStreamEndCapture(self.stream)
            raise
        return checked(cu.cuStreamEndCapture(self.stream)), values

    def launch_all(
        self, calls: Sequence[port.LaunchCall], slots: Sequence[Slots], marks: Sequence[Any] = ()
    ) -> list[Any]:
        """Queue the calls for every slot. The answer holds the argument values, which must outlive that."""
        cu = driver()
        external = cu.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL.value
        due = {(n + 1) * len(slots) // (len(marks) + 1): mark for n, mark in enumerate(marks)}
        launchers = [self._launcher(call) for call in calls]
        tables = [CudaTable(call, slots) for call in calls]
        for number in range(len(slots)):
            if number in due:  # as a node of the graph, not as a place to wait for
                checked(cu.cuEventRecordWithFlags(due[number], self.stream, external))
            for call, launch, table in zip(calls, launchers, tables, strict=True):
                for place, element in call.fills:
                    fill(place.at(slots[number]), element, self.stream)
                (status,) = launch(table.pointers + number * table.row)
                if status:
                    checked((status,))
        return tables

    def _launcher(self, call: port.LaunchCall) -> Callable[[int], tuple[Any, ...]]:
        """Queues that call, given where the addresses of its arguments lie."""
        cu, stream = driver(), self.stream
        executable = _executable(call)
        check_arguments(call, executable.parameters[call.entry])
        executable.allow_shared(call.entry, call.shared)
        function = executable.functions[call.entry]
        if call.cluster or call.cooperative or call.pdl:
            config = _config(call, stream)
            return lambda pointers: cu.cuLaunchKernelEx(config, function, pointers, 0)
        shape = (*call.grid, *call.block, call.shared)
        return lambda pointers: cu.cuLaunchKernel(function, *shape, stream, pointers, 0)

    def active_clusters(self, call: port.LaunchCall) -> int | None:
        """That the device holds at once, as the driver counts them; None where it does not say."""
        executable = _executable(call)
        executable.allow_shared(call.entry, call.shared)
        config = _config(call, self.stream)
        status, *found = driver().cuOccupancyMaxActiveClusters(executable.functions[call.entry], config)
        return int(found[0]) if int(status) == 0 and found else None

    def _finish(self) -> None:
        checked(driver().cuStreamSynchronize(self.stream))
        self._written.clear()


def fill(to: port.Pointer, element: bytes, stream: Any) -> None:
    """Queue the writing of one element over all of an array, as programs do it."""
    cu, first, word = driver(), address(to), int.from_bytes(element, "little")
    if element == element[:1] * len(element):
        checked(cu.cuMemsetD8Async(first, element[0], to.nbytes, stream))
    elif len(element) < 8:
        memset = cu.cuMemsetD16Async if len(element) == 2 else cu.cuMemsetD32Async
        checked(memset(first, word, to.nbytes // len(element), stream))
    else:  # both halves in turn, each as a column of a table of 32-bit words
        for half in (0, 1):
            value = word >> 32 * half & 0xFFFFFFFF
            checked(cu.cuMemsetD2D32Async(first + 4 * half, 8, value, 1, to.nbytes // 8, stream))


def _parameter_sizes(function: Any) -> list[int]:
    """Bytes of every parameter, in the kernel's order."""
    sizes: list[int] = []
    while True:
        status, *found = driver().cuFuncGetParamInfo(function, len(sizes))
        if int(status) != 0:
            return sizes
        sizes.append(int(found[1]))


def _executable(call: port.LaunchCall) -> CudaExecutable:
    assert isinstance(call.executable, CudaExecutable)
    return call.executable


class CudaTable:
    """A call's arguments for every slot, as the driver reads them: words, and the addresses of the words."""

    def __init__(self, call: port.LaunchCall, slots: Sequence[Slots]) -> None:
        base = np.array([argument_bits(arg, address, "CUDA") for arg in call.args], dtype=np.uint64)
        self.values = base if slots is HERE else _rotated(base, call, slots)
        self.addresses = self.values.ctypes.data + 8 * np.arange(max(self.values.size, 1), dtype=np.uint64)
        self.pointers = int(self.addresses.ctypes.data)
        self.row = 8 * len(call.args)


def _rotated(base: NDArray[np.uint64], call: port.LaunchCall, slots: Sequence[Slots]) -> NDArray[np.uint64]:
    steps = np.array([a.stride if isinstance(a, port.Pointer) else 0 for a in call.args], dtype=np.uint64)
    sides = [int(a.turns) if isinstance(a, port.Pointer) else 0 for a in call.args]
    moved = np.array(slots, dtype=np.uint64).reshape(-1, 2)[:, sides] * steps
    return np.ascontiguousarray(base + moved)  # row by row, whatever NumPy made of the columns


def _config(call: port.LaunchCall, stream: Any) -> Any:
    cu = driver()
    config = cu.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = call.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = call.block
    config.sharedMemBytes, config.hStream = call.shared, stream
    attributes: list[Any] = []

    def added(name: str) -> Any:
        attributes.append(cu.CUlaunchAttribute())
        attributes[-1].id = getattr(cu.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
        return attributes[-1].value

    if call.cluster:
        size = added("CLUSTER_DIMENSION").clusterDim
        size.x, size.y, size.z = call.cluster
    if call.cooperative:
        added("COOPERATIVE").cooperative = 1
    if call.pdl:
        added("PROGRAMMATIC_STREAM_SERIALIZATION").programmaticStreamSerializationAllowed = 1
    config.attrs, config.numAttrs = attributes, len(attributes)
    return config
