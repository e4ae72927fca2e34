"""A simulated HIP runtime and hiprtc, called as `hip-python` is: answers are a status and what was found.

Kernels are `out[i] = FACTOR * x[i]`, read out of their text; memory is the host's, addresses are real ones.
"""

# ruff: noqa: N815 (the names are AMD's)

from __future__ import annotations

import ctypes
import re
import struct
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any

import msgspec
import numpy as np

OK, INVALID, OUT_OF_MEMORY, NOT_READY = 0, 1, 2, 600
_KERNEL = re.compile(r"__global__\s+void\s+(\w+)\s*\(([^)]*)\)")
_FACTOR = re.compile(r"out\[i\] = (\d+)\.0f \* x\[i\]")
ARGUMENTS = {"float": 4, "int": 4}


@dataclass
class Properties:
    """As the runtime fills them in."""

    name: bytes = b""
    gcnArchName: bytes = b""
    warpSize: int = 0
    totalGlobalMem: int = 0
    memoryClockRate: int = 0
    memoryBusWidth: int = 0
    maxThreadsPerBlock: int = 0
    maxThreadsDim: tuple[int, ...] = ()
    maxGridSize: tuple[int, ...] = ()
    sharedMemPerBlock: int = 0
    multiProcessorCount: int = 0
    l2CacheSize: int = 0


def code_object(target: str, factor: int, kernels: dict[str, tuple[int, ...]]) -> bytes:
    """A small ELF file: code that is a number, and the note on its kernels."""
    described = [
        {
            ".name": name,
            ".vgpr_count": 10,
            ".sgpr_count": 20,
            ".private_segment_fixed_size": 0,
            ".group_segment_fixed_size": 0,
            ".max_flat_workgroup_size": 1024,
            ".wavefront_size": 64,
            ".args": [{".size": size, ".value_kind": "by_value"} for size in sizes]
            + [{".size": 8, ".value_kind": "hidden_none"}],
        }
        for name, sizes in kernels.items()
    ]
    found = {"amdhsa.target": f"amdgcn-amd-amdhsa--{target}", "amdhsa.kernels": described}
    note = msgspec.msgpack.encode(found)
    note += bytes(-len(note) % 4)
    note = struct.pack("<III", 7, len(note), 32) + b"AMDGPU\0\0" + note
    names = b"\0.text\0.note\0.shstrtab\0"
    parts = [(b"", 0), (struct.pack("<q", factor), 1), (note, 7), (names, 3)]
    body, heads, at = b"", b"", 64
    for (content, kind), name in zip(parts, (b"", b".text", b".note", b".shstrtab"), strict=True):
        offset = at + len(body)
        place = names.index(name + b"\0") if name else 0
        heads += struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, offset, len(content), 0, 0, 4, 0)
        body += content
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head += struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(parts), 3)
    return head + body + heads


@dataclass
class SimulatedCompiler:
    version: tuple[int, int] = (7, 2)
    programs: dict[int, dict[str, Any]] = field(default_factory=dict)

    def hiprtcVersion(self) -> tuple[int, int, int]:
        return OK, *self.version

    def hiprtcCreateProgram(self, source: bytes, name: bytes, count: int, headers: Any, names: Any) -> Any:
        assert count == len(headers) == len(names)
        number = len(self.programs) + 1
        self.programs[number] = {"text": source.decode(), "name": name.decode(), "log": b"", "entries": []}
        return OK, number

    def hiprtcAddNameExpression(self, program: int, name: bytes) -> tuple[int]:
        self.programs[program]["entries"].append(name.decode())
        return (OK,)

    def hiprtcCompileProgram(self, program: int, count: int, options: list[bytes]) -> tuple[int]:
        own = self.programs[program]
        assert count == len(options)
        target = options[0].decode().removeprefix("--offload-arch=")
        factor = _FACTOR.search(own["text"])
        if factor is None:
            own["log"] = f"{own['name']}:2:12: error: use of undeclared identifier 'nonsense'\n\0".encode()
            return (6,)
        kernels = {}
        for name, parameters in _KERNEL.findall(own["text"]):
            sizes = [8 if "*" in p else ARGUMENTS[p.split()[-2]] for p in parameters.split(",")]
            kernels[name] = tuple(sizes)
        own["code"] = code_object(target, int(factor[1]), kernels)
        return (OK,)

    def hiprtcGetProgramLogSize(self, program: int) -> tuple[int, int]:
        return OK, len(self.programs[program]["log"])

    def hiprtcGetProgramLog(self, program: int, into: bytearray) -> tuple[int]:
        into[:] = self.programs[program]["log"]
        return (OK,)

    def hiprtcGetLoweredName(self, program: int, name: bytes) -> tuple[int, bytes]:
        return OK, name

    def hiprtcGetCodeSize(self, program: int) -> tuple[int, int]:
        return OK, len(self.programs[program]["code"])

    def hiprtcGetCode(self, program: int, into: bytearray) -> tuple[int]:
        into[:] = self.programs[program]["code"]
        return (OK,)

    def hiprtcDestroyProgram(self, program: int) -> tuple[int]:
        self.programs[program].clear()
        return (OK,)


@dataclass
class SimulatedRuntime:
    """One GPU, and `others` after it. `calls` are the names of what was asked of it, in turn."""

    architecture: str = "gfx942:sramecc+:xnack-"
    wave: int = 64
    memory: int = 1 << 30
    others: tuple[str, ...] = ()  # their architectures
    clock_khz: int = 1_300_000
    bus: int = 8192
    l2: int = 4 << 20
    calls: list[str] = field(default_factory=list)
    blocks: dict[int, Any] = field(default_factory=dict)
    clock: float = 0.0  # milliseconds
    capturing: list[Any] | None = None
    hipDeviceProp_t = Properties

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("hip") and name[3].isupper() and name != "hipDeviceProp_t":
            object.__getattribute__(self, "calls").append(name)
        return object.__getattribute__(self, name)

    def hipGetDeviceCount(self) -> tuple[int, int]:
        return OK, 1 + len(self.others)

    def hipRuntimeGetVersion(self) -> tuple[int, int]:
        return OK, 70226015

    def hipGetErrorName(self, status: int) -> bytes:
        return {INVALID: b"hipErrorInvalidValue", OUT_OF_MEMORY: b"hipErrorOutOfMemory"}.get(status, b"")

    def hipGetErrorString(self, status: int) -> bytes:
        return {INVALID: b"invalid argument", OUT_OF_MEMORY: b"out of memory"}.get(status, b"")

    def hipGetDeviceProperties(self, into: Properties, number: int) -> tuple[int]:
        architecture = (self.architecture, *self.others)[number]
        into.name, into.gcnArchName = b"A simulated Instinct", architecture.encode()
        into.warpSize, into.totalGlobalMem = self.wave, self.memory
        into.memoryClockRate, into.memoryBusWidth = self.clock_khz, self.bus
        into.maxThreadsPerBlock, into.sharedMemPerBlock = 1024, 64 << 10
        into.maxThreadsDim, into.maxGridSize = (1024, 1024, 1024), ((1 << 31) - 1, 65536, 65536)
        into.multiProcessorCount, into.l2CacheSize = 304, self.l2
        return (OK,)

    def hipSetDevice(self, number: int) -> tuple[int]:
        return (OK if number == 0 else INVALID,)

    def hipStreamCreateWithFlags(self, flags: int) -> tuple[int, str]:
        return OK, f"stream {flags}"

    def hipEventCreate(self) -> tuple[int, dict[str, float]]:
        return OK, {}

    def hipEventRecord(self, event: dict[str, float], stream: str) -> tuple[int]:
        event["at"] = self.clock
        return (OK,)

    def hipEventSynchronize(self, event: dict[str, float]) -> tuple[int]:
        return (OK if "at" in event else NOT_READY,)

    def hipEventElapsedTime(self, begin: dict[str, float], end: dict[str, float]) -> tuple[int, float]:
        return OK, end["at"] - begin["at"]

    def hipMalloc(self, nbytes: int) -> tuple[int, int]:
        block = np.empty(nbytes + 256, dtype=np.uint8)
        address = -(-block.ctypes.data // 256) * 256
        self.blocks[address] = block
        return OK, address

    def hipFree(self, address: int) -> tuple[int]:
        return (OK if self.blocks.pop(address, None) is not None else INVALID,)

    def _copy(self, to: int, source: int, nbytes: int, stream: str) -> tuple[int]:
        assert stream == "stream 1"
        ctypes.memmove(to, source, nbytes)
        return (OK,)

    hipMemcpyHtoDAsync = hipMemcpyDtoHAsync = hipMemcpyDtoDAsync = _copy

    def _set(self, width: int, to: int, word: int, count: int, stream: str) -> tuple[int]:
        assert stream == "stream 1"
        launch = (word.to_bytes(width, "little") * count, to, 0, 0)
        if self.capturing is not None:
            self.capturing.append(launch)
        else:
            self._play(launch)
        return (OK,)

    hipMemsetD8Async = partialmethod(_set, 1)
    hipMemsetD16Async = partialmethod(_set, 2)
    hipMemsetD32Async = partialmethod(_set, 4)

    def hipStreamSynchronize(self, stream: str) -> tuple[int]:
        return (INVALID if self.capturing is not None else OK,)

    def hipModuleLoadData(self, data: bytes) -> tuple[int, bytes]:
        return OK, data

    def hipModuleGetFunction(self, module: bytes, name: bytes) -> Any:
        assert name in module
        return OK, struct.unpack_from("<q", module, 64)[0]  # its code: the factor

    def hipModuleLaunchKernel(self, factor: int, *rest: Any) -> tuple[int]:
        *shape, shared, stream, pointer, extra = rest
        assert (shared, stream, extra) == (0, "stream 1", None)
        words = (ctypes.c_void_p * 4).from_address(pointer)
        out, x = (ctypes.c_uint64.from_address(words[place]).value for place in (0, 1))
        rows, d = (ctypes.c_int32.from_address(words[place]).value for place in (2, 3))
        launch = (factor, out, x, min(rows * d, shape[0] * shape[3]))
        if self.capturing is not None:
            self.capturing.append(launch)
        else:
            self._play(launch)
        return (OK,)

    def _play(self, launch: tuple[int | bytes, int, int, int]) -> None:
        factor, out, x, count = launch
        if isinstance(factor, bytes):
            ctypes.memmove(out, factor, len(factor))
            return
        values = np.frombuffer((ctypes.c_float * count).from_address(x), np.float32) * np.float32(factor)
        ctypes.memmove(out, values.ctypes.data, values.nbytes)
        self.clock += 1e-3 + count * 1e-6

    def hipStreamCaptureMode(self, value: int) -> int:
        return value

    def hipStreamBeginCapture(self, stream: str, mode: int) -> tuple[int]:
        assert mode == 1
        self.capturing = []
        return (OK,)

    def hipStreamEndCapture(self, stream: str) -> tuple[int, Any]:
        found, self.capturing = self.capturing, None
        return OK, found

    def hipGraphInstantiateWithFlags(self, graph: Any, flags: int) -> tuple[int, Any]:
        return OK, list(graph)

    def hipGraphLaunch(self, graph: Any, stream: str) -> tuple[int]:
        for launch in graph:
            self._play(launch)
        return (OK,)

    def hipGraphExecDestroy(self, graph: Any) -> tuple[int]:
        return (OK,)

    hipGraphDestroy = hipGraphExecDestroy
