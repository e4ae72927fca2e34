"""Tuned kernels through PyOpenCL: its arrays, buffers, and NumPy's arrays, which are copied in and out."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import pyopencl
import pyopencl.array

from .arguments import passed
from .binding import Array, extent, item_strides
from .element_types import STAND_INS, plain_type
from .manifest import Entry, ManifestArgument
from .operator import KEPT, BoundCall, Decision, Delivered, Operator

_APART = 1 << 64  # between buffers, most of which have no addresses on the host: no two overlap


class OpenclCalls:
    """Call it with every array in the kernel's order, or without the outputs, which are then returned. With
    NumPy's arrays the call waits until the results are there; otherwise it is only queued. `queue` is needed
    where no array has one; without any it is one on the first device with the name that was tuned on. Where
    the operator has an argument or size of that name, ours is `queue_`: `queue_name` tells."""

    def __init__(self, operator: Operator) -> None:
        if operator.results[0].dispatch.language != "opencl":
            language = operator.results[0].dispatch.language
            raise ValueError(f"{operator.name} is in {language}, not OpenCL: export it for that")
        self.operator = operator
        self.signature = operator.signature
        self.queue_name = "queue"
        while self.queue_name in (*self.signature.arguments, *self.signature.sizes):
            self.queue_name += "_"
        self._lock = threading.RLock()
        self._queue: Any = None
        self._programs: dict[Any, Any] = {}
        self._refused: dict[Any, Exception] = {}
        self._kernels: dict[Any, tuple[Decision, list[Any] | None]] = {}

    def __call__(self, /, *arrays: Any, **named: Any) -> Any:
        return self._run(arrays, named, False)

    def original(self, /, *arrays: Any, **named: Any) -> Any:
        return self._run(arrays, named, True)

    def prepare(self, queue: Any = None) -> None:
        """Build every program that may serve on the device."""
        own = queue or self.usual_queue()
        delivered, known = self.operator.result_for("", own.device.name.strip())
        for entry in delivered.dispatch.entries if known else (delivered.dispatch.original,):
            try:
                self._program(own, delivered, entry)
            except _REFUSALS as error:
                if entry.is_original:
                    raise
                self.operator.warn_refused(entry, error)

    def usual_queue(self) -> Any:
        with self._lock:
            if self._queue is None:
                wanted = [result.dispatch.device for result in self.operator.results]
                devices = [device for place in pyopencl.get_platforms() for device in place.get_devices()]
                if not devices:
                    raise RuntimeError(f"{self.operator.name}: no OpenCL device is here: install a driver")
                chosen = next((d for d in devices if d.name.strip() in wanted), devices[0])
                self._queue = pyopencl.CommandQueue(pyopencl.Context([chosen]))
            return self._queue

    # -- a call ---------------------------------------------------------------------------------------------

    def _run(self, positional: Sequence[Any], given: Mapping[str, Any], original: bool) -> Any:
        named = dict(given)
        queue = named.pop(self.queue_name, None)
        if queue is not None and not isinstance(queue, pyopencl.CommandQueue):
            raise TypeError(
                f"{self.operator.name}: {self.queue_name} is a CommandQueue of pyopencl, got "
                f"{type(queue).__name__}: pass one, or leave it out"
            )
        own_queue = queue or _queue_of((*positional, *named.values())) or self.usual_queue()

        def shape_of(argument: ManifestArgument, array: Any) -> tuple[int, ...]:
            return self._described(argument, array, named, own_queue).shape

        def allocate(
            argument: ManifestArgument, shape: tuple[int, ...], strides: tuple[int, ...], like: Any
        ) -> Any:
            dtype = _dtype(argument.type)
            if like is None or isinstance(like, numpy.ndarray):
                memory = numpy.empty(extent(shape, strides), dtype)
                return _strided(memory, shape, strides)
            own = tuple(stride * dtype.itemsize for stride in strides) if argument.strides else None
            return pyopencl.array.Array(own_queue, shape, dtype, strides=own)

        own = passed(self.operator, positional, named, shape_of, allocate)
        kinds = [
            self._described(a, x, own.sizes, own_queue) for a, x in zip(self.signature.arrays, own.arrays)
        ]
        call = self.operator.call(
            (tuple(kinds), tuple(own.sizes.items()), own_queue.device.int_ptr),
            lambda: kinds,
            own.sizes,
            lambda: ("", own_queue.device.name.strip()),
        )
        scalars = self.operator.scalar_bytes(own.scalars)
        memories = [
            self._memory(own_queue, a, x, call.nbytes[n])
            for n, (a, x) in enumerate(zip(self.signature.arrays, own.arrays))
        ]
        addresses = [address for _, address in memories]
        with self._lock:  # a kernel has one set of arguments
            decision = call.decide(addresses, scalars, original)
            kernels = self._made_ready(own_queue, decision)
            if kernels is None:
                decision = call.decide(addresses, scalars, True)
                kernels = self._made_ready(own_queue, decision) or []
            self._launch(own_queue, call, decision, kernels, [memory for memory, _ in memories], scalars)
        for argument, array, (memory, _) in zip(self.signature.arrays, own.arrays, memories):
            if isinstance(array, numpy.ndarray) and argument.is_written and memory is not None:
                pyopencl.enqueue_copy(own_queue, _flat(array), memory, is_blocking=True)
        return own.result

    def _described(
        self, argument: ManifestArgument, array: Any, sizes: Mapping[str, Any], queue: Any
    ) -> Array:
        if isinstance(array, (numpy.ndarray, pyopencl.array.Array)):
            strides = item_strides(self.operator.name, argument.name, array)
            context: Any = queue.context if isinstance(array, numpy.ndarray) else array.context
            there = f"context {context.int_ptr:#x}"
            return Array(plain_type(array.dtype.name), array.shape, strides, there)
        if isinstance(array, pyopencl.Buffer):
            known = {name: sizes[name] for name in self.signature.sizes if name in sizes}
            missing = [name for name in self.signature.sizes if name not in known]
            if missing:
                fault = f"{self.operator.name}: {argument.name} is a buffer, which has no shape"
                raise TypeError(f"{fault}: pass every size by name, {missing[0]}=...")
            shape, strides = self.signature.memory_layout(argument, known)
            needed = extent(shape, strides) * _dtype(argument.type).itemsize
            if array.size < needed:
                fault = (
                    f"{self.operator.name}: {argument.name} has {needed} bytes, got a buffer of {array.size}"
                )
                raise ValueError(f"{fault}: pass a larger one")
            return Array(argument.type, shape, strides, f"context {queue.context.int_ptr:#x}")
        raise TypeError(
            f"{self.operator.name}: {argument.name} is an Array or Buffer of pyopencl, or a NumPy array, "
            f"got {type(array).__name__}: convert it"
        )

    def _memory(self, queue: Any, argument: ManifestArgument, array: Any, nbytes: int) -> tuple[Any, int]:
        """The buffer for a kernel, and an address by which overlaps are seen."""
        flags = pyopencl.mem_flags
        if nbytes == 0:
            return None, 0
        if isinstance(array, numpy.ndarray):
            copy = argument.role != "output"
            how = flags.READ_WRITE | (flags.COPY_HOST_PTR if copy else 0)
            more = {"hostbuf": _flat(array)} if copy else {"size": nbytes}
            made = pyopencl.Buffer(queue.context, how, **more)
            return made, _APART * made.int_ptr
        buffer: Any = array
        offset = 0
        if not isinstance(array, pyopencl.Buffer):
            buffer, offset = array.base_data, array.offset
        start = buffer.get_info(pyopencl.mem_info.OFFSET) + offset
        parent = buffer.get_info(pyopencl.mem_info.ASSOCIATED_MEMOBJECT) or buffer
        address = _host_address(parent)
        address = (_APART * parent.int_ptr if address is None else address) + start
        if offset == 0:
            return buffer, address
        step = max(1, queue.device.mem_base_addr_align // 8)
        if start % step:
            raise ValueError(
                f"{self.operator.name}: {argument.name} begins {start} bytes into its buffer, this device "
                f"takes multiples of {step}: copy it before the call, e.g. with .copy()"
            )
        return parent.get_sub_region(start, nbytes), address

    def _launch(
        self,
        queue: Any,
        call: BoundCall,
        decision: Decision,
        kernels: Sequence[Any],
        memories: Sequence[Any],
        scalars: Sequence[bytes],
    ) -> None:
        for number, element in call.fills:
            if memories[number] is not None:
                _fill(queue, memories[number], element, call.nbytes[number])
        scratch = []
        for part in decision.scratch:
            memory = pyopencl.Buffer(queue.context, pyopencl.mem_flags.READ_WRITE, max(part.nbytes, 1))
            scratch.append(memory)
            if part.fill is not None and part.nbytes:
                _fill(queue, memory, part.fill, part.nbytes)
        sources = {"array": memories, "scratch": scratch, "scalar": scalars}
        for launch, kernel in zip(decision.launches, kernels):
            if 0 in launch.grid:
                continue
            for number, (kind, value) in enumerate(launch.args):
                if kind == "value":
                    kernel.set_arg(number, value)
                elif kind == "local":
                    kernel.set_arg(number, pyopencl.LocalMemory(value))
                else:
                    kernel.set_arg(number, sources[kind][value])
            shape = [(g, b) for g, b in zip(launch.grid, launch.block)]
            while len(shape) > 1 and shape[-1] == (1, 1):
                shape.pop()
            total = tuple(g * b for g, b in shape)
            pyopencl.enqueue_nd_range_kernel(queue, kernel, total, tuple(b for _, b in shape))

    # -- programs -------------------------------------------------------------------------------------------

    def _made_ready(self, queue: Any, decision: Decision) -> list[Any] | None:
        """None: the driver does not take this tuned kernel."""
        key = (id(decision), queue.context.int_ptr, queue.device.int_ptr)
        if key not in self._kernels:
            kernels: list[Any] | None = None
            try:
                kernels = self._fitting(queue, decision)
            except _REFUSALS as error:
                if decision.entry.is_original:
                    raise
                self.operator.warn_refused(decision.entry, error)
            if len(self._kernels) >= KEPT:
                self._kernels.clear()
            # The decision is kept beside it, so that no other gets its number.
            self._kernels[key] = (decision, kernels)
        return self._kernels[key][1]

    def _fitting(self, queue: Any, decision: Decision) -> list[Any]:
        program = self._program(queue, decision.delivered, decision.entry)
        kernels = [pyopencl.Kernel(program, launch.entry) for launch in decision.launches]
        for launch, kernel in zip(decision.launches, kernels):
            info = pyopencl.kernel_work_group_info.WORK_GROUP_SIZE
            most: Any = kernel.get_work_group_info(info, queue.device)
            items = launch.block[0] * launch.block[1] * launch.block[2]
            if items > most and not decision.entry.is_original:
                raise TooLarge(f"its work-groups have {items} items, this device takes {most}")
        return kernels

    def _program(self, queue: Any, delivered: Delivered, entry: Entry) -> Any:
        key = (id(delivered), entry.number, queue.context.int_ptr, queue.device.int_ptr)
        with self._lock:
            if key in self._refused:  # nobody waits for the compiler twice to hear the same
                raise self._refused[key]
            if key not in self._programs:
                source = delivered.read(entry.file).decode(errors="surrogatepass")
                program = pyopencl.Program(queue.context, source)
                try:
                    self._programs[key] = program.build(options=list(entry.flags), devices=[queue.device])
                except _REFUSALS as error:
                    self._refused[key] = error
                    raise
            return self._programs[key]


class TooLarge(Exception):
    """A work-group that the device does not take."""


# What a driver says of a program. Out of memory is no word on it.
_REFUSALS = (pyopencl.RuntimeError, pyopencl.LogicError, TooLarge)


def _host_address(buffer: Any) -> int | None:
    """Of memory of the host's that a buffer was made over: others may be made over the same."""
    if not buffer.get_info(pyopencl.mem_info.FLAGS) & pyopencl.mem_flags.USE_HOST_PTR:
        return None
    return int(buffer.get_host_array((buffer.size,), numpy.uint8).ctypes.data)


def _queue_of(values: Sequence[Any]) -> Any:
    return next(
        (v.queue for v in values if isinstance(v, pyopencl.array.Array) and v.queue is not None), None
    )


def _dtype(type_: str) -> Any:
    """Of a type that NumPy does not have, its bits."""
    try:
        return numpy.dtype(type_)
    except TypeError:
        return numpy.dtype(STAND_INS[type_][0])


def _counted(array: Any) -> tuple[int, ...]:
    return tuple(stride // array.dtype.itemsize for stride in array.strides)


def _strided(memory: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    own = tuple(stride * memory.dtype.itemsize for stride in strides)
    return numpy.lib.stride_tricks.as_strided(memory, shape, own)


def _flat(array: Any) -> Any:
    """The memory from its first element to its last. Its strides were found to be what they should be."""
    items = extent(array.shape, _counted(array))
    return numpy.lib.stride_tricks.as_strided(array, (items,), (array.dtype.itemsize,))


def _fill(queue: Any, memory: Any, element: bytes, nbytes: int) -> None:
    pyopencl.enqueue_fill_buffer(queue, memory, numpy.frombuffer(element, numpy.uint8), 0, nbytes)
