"""An open CUDA device: memory, launches, and chains of launches recorded as graphs."""

from __future__ import annotations

import ctypes
import math
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import resources
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.backends import port
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.cubin import unpack
from tunesmith.backends.cuda.devices import check_cuda, clocks_of, driver, is_throttled, neighbours_of
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import (
    HERE,
    Comparison,
    Difference,
    NumberRule,
    Pointer,
    Slots,
    argument_bits,
    check_arguments,
)
from tunesmith.problem.device import Clock, Device
from tunesmith.problem.problem import ElementType, element_type

OVERSEER_THREADS, OVERSEER_BLOCKS = 256, 4  # so few that another kernel has room beside them
MAX_PAIRS = 32
NANOSECONDS = 2_000_000  # and then it ends: a launch that needs all of the device waits no longer
BEGIN_SECONDS = 0.002  # for it to begin


class LaunchWords:
    """The arguments of a kernel, each 8 bytes wide, and their addresses. A launch copies them."""

    def __init__(self, words: Sequence[int | float]) -> None:
        self._format = struct.Struct("<" + "".join("d" if isinstance(word, float) else "q" for word in words))
        self._values = np.zeros(len(words), dtype=np.uint64)
        self._addresses = self._values.ctypes.data + 8 * np.arange(len(words), dtype=np.uint64)
        self._pointers = int(self._addresses.ctypes.data)

    def hold(self, words: Sequence[int | float]) -> int:
        self._format.pack_into(self._values.data, 0, *words)
        return self._pointers


class Overseer:
    def __init__(self, function: Any) -> None:
        cu = driver()
        self._function = function
        self._stream = check_cuda(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING.value))
        # What the host says last, what the kernel says, and the number of the launch.
        host = check_cuda(cu.cuMemHostAlloc(64, cu.CU_MEMHOSTALLOC_DEVICEMAP))
        self._words = (ctypes.c_uint32 * 3).from_address(int(host))
        ctypes.memset(self._words, 0, ctypes.sizeof(self._words))
        self._address = int(check_cuda(cu.cuMemHostGetDevicePointer(host, 0)))
        self._memory = int(check_cuda(cu.cuMemAlloc(8 + 24 * MAX_PAIRS)))
        self._arguments = LaunchWords([0] * 5)

    def begin(self, pairs: Sequence[tuple[int, int, int]]) -> None:
        """Two addresses and a number of bytes of each; the launch that is overseen comes after."""
        cu, shown = driver(), pairs[:MAX_PAIRS]
        table = np.array([0, *(word for pair in shown for word in pair)], dtype=np.uint64)
        # On its stream: a plain copy returns before it has arrived, and this stream does not wait for it.
        check_cuda(cu.cuMemcpyHtoDAsync(self._memory, table.ctypes.data, table.nbytes, self._stream))
        number = self._words[2] = self._words[2] % 0x7FFFFFFF + 1
        words = (self._memory + 8, len(shown), self._address, NANOSECONDS, self._memory)
        shape = (OVERSEER_BLOCKS, 1, 1, OVERSEER_THREADS, 1, 1, 0)
        check_cuda(cu.cuLaunchKernel(self._function, *shape, self._stream, self._arguments.hold(words), 0))
        end = time.perf_counter() + BEGIN_SECONDS
        while self._words[1] != number and time.perf_counter() < end:
            pass

    def end(self) -> int | None:
        """The number of a pair that was seen to differ."""
        cu, found = driver(), np.zeros(1, dtype=np.uint64)
        self._words[0] = self._words[2]
        check_cuda(cu.cuStreamSynchronize(self._stream))
        check_cuda(cu.cuMemcpyDtoH(found.ctypes.data, self._memory, found.nbytes))
        return int(found[0]) - 1 if found[0] else None


INSPECTOR_THREADS = 256
BLOCKS_PER_SM = 8
LATE_THREADS, LATE_NANOSECONDS = (
    8 * INSPECTOR_THREADS,
    50_000,
)  # so few that another kernel has room beside them
ENTRIES = ("fill", "scramble", "oversee", "disturb", "copy_late", "spread", "differences", "compare")
# Rounding of a double is not the same on host and device where the compiler fuses; here it may not.
FLAGS = ("--fmad=false",)
NOTHING = (1 << 64) - 1
KINDS = {"float": 0, "int": 1, "uint": 2}
EXPECTED = {"float64": 0, "int64": 2, "uint64": 3}  # 1: of the array's own type
WITHOUT_INFINITY = ("float8_e4m3",)
FOUND = np.dtype(
    [("wrong", "u8"), ("max_error", "f8"), ("squared_error", "f8"), ("squared_ulp", "f8"), ("count", "u8")]
)


class CudaMemory:
    def __init__(self, address: int, nbytes: int) -> None:
        self.address = address
        self.nbytes = nbytes


def cuda_address(pointer: Pointer) -> int:
    assert isinstance(pointer.memory, CudaMemory)
    return pointer.memory.address + pointer.offset


class CudaInspector:
    def __init__(self, stream: Any, device: Device) -> None:
        self._stream = stream
        self._device = device
        self._blocks = BLOCKS_PER_SM * device.limits.sms
        self._arguments: dict[str, LaunchWords] = {}
        self._scrambled = 0

    def fill(self, to: Pointer, pattern: bytes) -> None:
        word = int.from_bytes(pattern, "little")
        if to.nbytes:
            self._launch_entry("fill", to.nbytes // 16, cuda_address(to), to.nbytes, word)

    def disturb(self, first: Pointer, stride: int, slots: int, places: int, seed: int) -> None:
        if first.nbytes:
            words = (cuda_address(first), first.nbytes, stride, slots, places, seed)
            self._launch_entry("disturb", slots, *words)

    def scramble(self, is_local: bool) -> None:
        """All shared memory of all multiprocessors, or as many bytes of other memory."""
        shared = self._device.limits.shared
        blocks = 2 * self._device.limits.sms
        self._scrambled += 1
        words = (self._scrambler, shared // 4, self._scrambled, int(is_local))
        pointers = self._arguments.setdefault("scramble", LaunchWords(words)).hold(words)
        shape = (blocks, 1, 1, 4 * INSPECTOR_THREADS, 1, 1, shared)
        check_cuda(driver().cuLaunchKernel(self._functions["scramble"], *shape, self._stream, pointers, 0))

    @cached_property
    def _scrambler(self) -> int:
        cu, limits = driver(), self._device.limits
        shared = limits.shared
        attribute = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check_cuda(cu.cuFuncSetAttribute(self._functions["scramble"], attribute, shared))
        return int(check_cuda(cu.cuMemAlloc(2 * limits.sms * shared)))

    def spread(self, to: Pointer, block: Pointer, itemsize: int, roll: int, negate: bool) -> None:
        count = to.nbytes // itemsize
        if count:
            size = block.nbytes // itemsize
            words = (cuda_address(to), cuda_address(block), count, size, roll, int(negate), itemsize, 0)
            self._launch_entry("spread", count, *words)

    def copy_late(self, to: Pointer, source: Pointer) -> None:
        if to.nbytes:
            self._launch_entry(
                "copy_late", LATE_THREADS, cuda_address(to), cuda_address(source), to.nbytes, LATE_NANOSECONDS
            )

    def are_like(self, pairs: Sequence[tuple[Pointer, Pointer | bytes]]) -> bool:
        return not self._count_differences(pairs).count

    def differing(self, a: Pointer, b: Pointer) -> Difference:
        return self._count_differences([(a, b)])

    def unlike(self, a: Pointer, pattern: bytes) -> Difference:
        return self._count_differences([(a, pattern)])

    def compare(
        self, got: Pointer, type: str, expected: Pointer, expected_type: str, rule: NumberRule
    ) -> Comparison:
        element = element_type(type)
        count = got.nbytes // element.bytes
        kind = EXPECTED.get(expected_type, 1)
        if kind == 1 and expected_type != type:
            raise ValueError(f"{type} cannot be compared with {expected_type}")
        if not count:
            return Comparison(0, 0.0, 0.0, 0.0, 0)
        words = (
            *(cuda_address(got), cuda_address(expected), count, kind, KINDS[element.kind], element.bytes),
            *(element.mantissa, element.min_exponent, int(element.name in WITHOUT_INFINITY)),
            *(*map(float, _rounding_range(element)), float(rule.rtol), float(rule.atol), float(rule.ulps)),
            *(-1.0 if rule.cap is None else float(rule.cap), int(rule.add_ulps), self._result_buffer),
        )
        blocks = self._launch_entry("compare", count, *words)
        found = np.empty(blocks, dtype=FOUND)
        check_cuda(
            driver().cuMemcpyDtoHAsync(found.ctypes.data, self._result_buffer, found.nbytes, self._stream)
        )
        check_cuda(driver().cuStreamSynchronize(self._stream))
        error, ulp = float(found["squared_error"].sum()), float(found["squared_ulp"].sum())
        wrong, count = int(found["wrong"].sum()), int(found["count"].sum())
        return Comparison(wrong, float(found["max_error"].max()), error, ulp, count)

    def _count_differences(self, pairs: Sequence[tuple[Pointer, Pointer | bytes]]) -> Difference:
        """Of all of them, added up; where the first and the last are is said of one pair only."""
        if not any(a.nbytes for a, _ in pairs):
            return Difference(0)
        cu = driver()
        found = np.array([0, NOTHING, 0], dtype=np.uint64)
        place = self._result_buffer
        check_cuda(cu.cuMemcpyHtoDAsync(place, found.ctypes.data, found.nbytes, self._stream))
        for a, other in pairs:
            if a.nbytes:
                by = (
                    (0, int.from_bytes(other, "little"))
                    if isinstance(other, bytes)
                    else (cuda_address(other), 0)
                )
                self._launch_entry(
                    "differences", a.nbytes // 16, cuda_address(a), by[0], a.nbytes, by[1], place
                )
        check_cuda(cu.cuMemcpyDtoHAsync(found.ctypes.data, place, found.nbytes, self._stream))
        check_cuda(cu.cuStreamSynchronize(self._stream))
        count, first, last = map(int, found)
        return Difference(count, first, last) if count else Difference(0)

    def _launch_entry(self, entry: str, work: int, *words: int | float) -> int:
        blocks = max(1, min(self._blocks, -(-work // INSPECTOR_THREADS)))
        if entry not in self._arguments:
            self._arguments[entry] = LaunchWords(words)
        shape = (blocks, 1, 1, INSPECTOR_THREADS, 1, 1, 0)
        pointers = self._arguments[entry].hold(words)
        check_cuda(driver().cuLaunchKernel(self._functions[entry], *shape, self._stream, pointers, 0))
        return blocks

    @cached_property
    def _result_buffer(self) -> int:
        return int(check_cuda(driver().cuMemAlloc(max(64, self._blocks * FOUND.itemsize))))

    @cached_property
    def overseer(self) -> Overseer:
        return Overseer(self._functions["oversee"])

    @cached_property
    def _functions(self) -> dict[str, object]:
        cu = driver()
        source = resources.files("tunesmith.backends.cuda").joinpath("inspector.cu").read_text()
        unit = Unit("inspector.cu", source, "cuda", FLAGS, ENTRIES)
        symbols, cubin = unpack(build_cubin(unit, self._device).data)
        self._module = check_cuda(cu.cuModuleLoadData(cubin))
        return {e: check_cuda(cu.cuModuleGetFunction(self._module, symbols[e].encode())) for e in ENTRIES}


def _rounding_range(element: ElementType) -> tuple[float, float, float, float]:
    """Below the first, numbers round to one of the type; above the second to infinity, or to NaN. Then the
    least and the largest number of the type."""
    if element.kind != "float":
        return math.inf, math.inf, float(element.bounds[0]), float(element.bounds[1])
    ends = (-element.largest, element.largest)
    if element.bytes == 8:
        return math.inf, element.largest, *ends
    halfway = element.largest + float(element.ulp(np.array([element.largest]))[0]) / 2
    # The host rounds to types that NumPy lacks through float32, and so twice.
    doubt = 2.0**-20 if element.extension else 0.0
    return halfway * (1 - doubt), halfway * (1 + doubt), *ends


SPARE = 256 << 20  # of the device's memory, left to the driver
PARTS = 4  # of a recorded chain, that are timed apart: one that met another's slice of time is longer
WAITING_BYTES = 1 << 16  # of the host's memory: for what is larger the device is waited for


class CudaExecutable:
    def __init__(self, module: Any, functions: Mapping[str, object]) -> None:
        self.module = module
        self.functions = functions
        self.parameters = {entry: _parameter_sizes(function) for entry, function in functions.items()}
        self.shared: dict[str, int] = dict.fromkeys(functions, 0)

    def allow_shared(self, entry: str, nbytes: int) -> None:
        """The driver wants to be told before the launch where this and static shared memory exceed 48 KiB."""
        if nbytes > self.shared[entry]:
            cu = driver()
            attribute = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            check_cuda(cu.cuFuncSetAttribute(self.functions[entry], attribute, nbytes))
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
        self._marks = [check_cuda(cu.cuEventCreate(0)) for _ in range(parts - 1)]
        # The graph's launches point to these values.
        self._graph, self._values = session.capture(calls, slots, self._marks)
        self._executable = check_cuda(cu.cuGraphInstantiate(self._graph, 0))
        check_cuda(cu.cuGraphUpload(self._executable, session.stream))

    def start(self) -> Callable[[], float]:
        cu, session = driver(), self._session
        return session.timed(
            lambda: check_cuda(cu.cuGraphLaunch(self._executable, session.stream)), self._marks
        )

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
        host = check_cuda(cu.cuMemHostAlloc(64, cu.CU_MEMHOSTALLOC_DEVICEMAP))
        self._word = ctypes.c_uint32.from_address(int(host))
        self._address = check_cuda(cu.cuMemHostGetDevicePointer(host, 0))
        self._round = 0
        self._word.value = 0

    def __enter__(self) -> None:
        cu = driver()
        self._round += 1
        check_cuda(cu.cuStreamWaitValue32(self._stream, self._address, self._round, 0))  # 0: until ≥

    def __exit__(self, *_: object) -> None:
        self._word.value = self._round


class CudaSession:
    def __init__(self, device: Device) -> None:
        cu = driver()
        self._device = device
        handle = check_cuda(cu.cuDeviceGet(int(device.id)))
        self._context = check_cuda(cu.cuDevicePrimaryCtxRetain(handle))
        check_cuda(cu.cuCtxSetCurrent(self._context))
        self.stream = check_cuda(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING.value))
        self.events: list[tuple[Any, Any]] = []  # pairs that nobody uses at the moment
        self._passed: tuple[Any, ...] = ()  # by what was waited for last
        self.gate = _Gate(self.stream)
        self.inspector: port.Inspector | None = CudaInspector(self.stream, device)
        self._allocated = 0
        self._written: list[Any] = []  # what the device may still have to read from the host

    def take_events(self) -> tuple[Any, Any]:
        cu = driver()
        if not self.events:
            self.events.append((check_cuda(cu.cuEventCreate(0)), check_cuda(cu.cuEventCreate(0))))
        return self.events.pop()

    def timed(self, queue: Callable[[], object], marks: Sequence[Any] = ()) -> Callable[[], float]:
        """Queue it between two events. The answer waits for the second, and gives the seconds between.
        `marks` are events on the way."""
        cu = driver()
        begin, end = self.take_events()
        # Everything waits behind a gate, so that what the host does to launch is not in the time either.
        with self.gate:
            check_cuda(cu.cuEventRecord(begin, self.stream))
            queue()
            check_cuda(cu.cuEventRecord(end, self.stream))

        def seconds() -> float:
            check_cuda(cu.cuEventSynchronize(end))
            elapsed = float(check_cuda(cu.cuEventElapsedTime(begin, end)))
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
        module = check_cuda(cu.cuModuleLoadData(cubin))
        functions = {
            entry: check_cuda(cu.cuModuleGetFunction(module, symbols[entry].encode()))
            for entry in unit.entries
        }
        return CudaExecutable(module, functions)

    def allocate(self, nbytes: int) -> port.Memory:
        cu = driver()
        limit = self._device.limits.memory
        if self._allocated + nbytes + SPARE > limit:
            raise port.OutOfMemory(f"{nbytes} bytes wanted with {self._allocated} of {limit} in use")
        address = int(check_cuda(cu.cuMemAlloc(nbytes)))
        self._allocated += nbytes
        return CudaMemory(address, nbytes)

    def release(self, memory: port.Memory) -> None:
        assert isinstance(memory, CudaMemory)
        check_cuda(driver().cuMemFree(memory.address))
        self._allocated -= memory.nbytes

    def write(self, memory: port.Memory, offset: int, data: bytes | memoryview) -> None:
        assert isinstance(memory, CudaMemory)
        if len(data):
            source = np.frombuffer(data, dtype=np.uint8)
            to = memory.address + offset
            check_cuda(driver().cuMemcpyHtoDAsync(to, source.ctypes.data, source.nbytes, self.stream))
            if source.nbytes > WAITING_BYTES:
                self._finish()
            else:
                self._written.append(source)

    def read(self, memory: port.Memory, offset: int, nbytes: int) -> bytes:
        assert isinstance(memory, CudaMemory)
        target = np.empty(nbytes, dtype=np.uint8)
        if nbytes:
            source = memory.address + offset
            check_cuda(driver().cuMemcpyDtoHAsync(target.ctypes.data, source, nbytes, self.stream))
            self._finish()
        return target.tobytes()

    def run_overseen(self, calls: Sequence[port.LaunchCall], pairs: Sequence[port.PointerPair]) -> int | None:
        assert isinstance(self.inspector, CudaInspector)
        overseer = self.inspector.overseer
        self._finish()  # what was copied is there
        overseer.begin([(cuda_address(a), cuda_address(b), a.nbytes) for a, b in pairs])
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
            check_cuda(
                driver().cuMemcpyDtoDAsync(cuda_address(to), cuda_address(source), to.nbytes, self.stream)
            )

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
        check_cuda(cu.cuProfilerStart())
        try:
            yield
        finally:
            check_cuda(cu.cuProfilerStop())

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
            _cuda_executable(call).allow_shared(call.entry, call.shared)
        mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        check_cuda(cu.cuStreamBeginCapture(self.stream, mode))
        try:
            values = self.launch_all(calls, slots, marks)
        except BaseException:
            cu.cuStreamEndCapture(self.stream)
            raise
        return check_cuda(cu.cuStreamEndCapture(self.stream)), values

    def launch_all(
        self, calls: Sequence[port.LaunchCall], slots: Sequence[Slots], marks: Sequence[Any] = ()
    ) -> list[Any]:
        """Queue the calls for every slot. The answer holds the argument values, which must outlive that."""
        cu = driver()
        external = cu.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL.value
        due = {(n + 1) * len(slots) // (len(marks) + 1): mark for n, mark in enumerate(marks)}
        launchers = [self._make_launcher(call) for call in calls]
        tables = [CudaTable(call, slots) for call in calls]
        for number in range(len(slots)):
            if number in due:  # as a node of the graph, not as a place to wait for
                check_cuda(cu.cuEventRecordWithFlags(due[number], self.stream, external))
            for call, launch, table in zip(calls, launchers, tables, strict=True):
                for place, element in call.fills:
                    fill_array(place.at(slots[number]), element, self.stream)
                (status,) = launch(table.pointers + number * table.row)
                if status:
                    check_cuda((status,))
        return tables

    def _make_launcher(self, call: port.LaunchCall) -> Callable[[int], tuple[Any, ...]]:
        """Queues that call, given where the addresses of its arguments lie."""
        cu, stream = driver(), self.stream
        executable = _cuda_executable(call)
        check_arguments(call, executable.parameters[call.entry])
        executable.allow_shared(call.entry, call.shared)
        function = executable.functions[call.entry]
        if call.cluster or call.cooperative or call.pdl:
            config = _launch_config(call, stream)
            return lambda pointers: cu.cuLaunchKernelEx(config, function, pointers, 0)
        shape = (*call.grid, *call.block, call.shared)
        return lambda pointers: cu.cuLaunchKernel(function, *shape, stream, pointers, 0)

    def active_clusters(self, call: port.LaunchCall) -> int | None:
        """That the device holds at once, as the driver counts them; None where it does not say."""
        executable = _cuda_executable(call)
        executable.allow_shared(call.entry, call.shared)
        config = _launch_config(call, self.stream)
        status, *found = driver().cuOccupancyMaxActiveClusters(executable.functions[call.entry], config)
        return int(found[0]) if int(status) == 0 and found else None

    def _finish(self) -> None:
        check_cuda(driver().cuStreamSynchronize(self.stream))
        self._written.clear()


def fill_array(to: port.Pointer, element: bytes, stream: Any) -> None:
    """Queue the writing of one element over all of an array, as programs do it."""
    cu, first, word = driver(), cuda_address(to), int.from_bytes(element, "little")
    if element == element[:1] * len(element):
        check_cuda(cu.cuMemsetD8Async(first, element[0], to.nbytes, stream))
    elif len(element) < 8:
        memset = cu.cuMemsetD16Async if len(element) == 2 else cu.cuMemsetD32Async
        check_cuda(memset(first, word, to.nbytes // len(element), stream))
    else:  # both halves in turn, each as a column of a table of 32-bit words
        for half in (0, 1):
            value = word >> 32 * half & 0xFFFFFFFF
            check_cuda(cu.cuMemsetD2D32Async(first + 4 * half, 8, value, 1, to.nbytes // 8, stream))


def _parameter_sizes(function: Any) -> list[int]:
    """Bytes of every parameter, in the kernel's order."""
    sizes: list[int] = []
    while True:
        status, *found = driver().cuFuncGetParamInfo(function, len(sizes))
        if int(status) != 0:
            return sizes
        sizes.append(int(found[1]))


def _cuda_executable(call: port.LaunchCall) -> CudaExecutable:
    assert isinstance(call.executable, CudaExecutable)
    return call.executable


class CudaTable:
    """A call's arguments for every slot, as the driver reads them: words, and the addresses of the words."""

    def __init__(self, call: port.LaunchCall, slots: Sequence[Slots]) -> None:
        base = np.array([argument_bits(arg, cuda_address, "CUDA") for arg in call.args], dtype=np.uint64)
        self.values = base if slots is HERE else _rotate_addresses(base, call, slots)
        self.addresses = self.values.ctypes.data + 8 * np.arange(max(self.values.size, 1), dtype=np.uint64)
        self.pointers = int(self.addresses.ctypes.data)
        self.row = 8 * len(call.args)


def _rotate_addresses(
    base: NDArray[np.uint64], call: port.LaunchCall, slots: Sequence[Slots]
) -> NDArray[np.uint64]:
    steps = np.array([a.stride if isinstance(a, port.Pointer) else 0 for a in call.args], dtype=np.uint64)
    sides = [int(a.turns) if isinstance(a, port.Pointer) else 0 for a in call.args]
    moved = np.array(slots, dtype=np.uint64).reshape(-1, 2)[:, sides] * steps
    return np.ascontiguousarray(base + moved)  # row by row, whatever NumPy made of the columns


def _launch_config(call: port.LaunchCall, stream: Any) -> Any:
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
