"""Enough of a CUDA driver to run inspector.cu on the host, built by a C++ compiler: one thread to a block.

What a GPU adds, blocks of many threads that sum up together, only a GPU can test.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tunesmith.backends.cuda import session as inspector
from tunesmith.backends.cuda.session import CudaMemory
from tunesmith.backends.fake import FakeBackend, FakeMemory, FakeSession
from tunesmith.problem.device import Device

COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
# Fused operations round once where the host's NumPy rounds twice.
# But for those that only a GPU can run.
ON_HOST = [entry for entry in inspector.ENTRIES if entry not in ("scramble", "oversee")]
FLAGS = ("-O1", "-std=c++17", "-ffp-contract=off", "-shared", "-fPIC")

PRELUDE = r"""
#include <algorithm>
#include <cmath>
#include <cstring>
using std::isinf; using std::max;
#define __device__
#define __global__
#define __shared__ static
struct { unsigned x; } blockIdx, blockDim = {1}, gridDim, threadIdx = {0};
struct alignas(16) uint4 { unsigned x, y, z, w; };
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
template <typename To, typename From> static To as(From from)
{
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static double __longlong_as_double(long long bits) { return as<double>(bits); }
static float __uint_as_float(unsigned bits) { return as<float>(bits); }
static double __dadd_rn(double a, double b) { return a + b; }
static double __dmul_rn(double a, double b) { return a * b; }
static void __syncthreads() {}
typedef unsigned long long word;
static void atomicAdd(word *at, word value) { *at += value; }
static void atomicMin(word *at, word value) { *at = std::min(*at, value); }
static void atomicMax(word *at, word value) { *at = std::max(*at, value); }
"""


def launcher(name: str, parameters: str) -> str:
    """A function that unpacks the pointers a driver is given, and runs the blocks one after the other."""
    kinds = [p.strip().rpartition(" ")[0] + "*" * p.count("*") for p in parameters.split(",")]
    values = ", ".join(f"*({kind} *)args[{i}]" for i, kind in enumerate(kinds))
    loop = f"for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {name}({values});"
    return f'extern "C" void run_{name}(unsigned blocks, void **args) {{ gridDim.x = blocks; {loop} }}\n'


def source() -> str:
    text = resources.files("tunesmith.backends.cuda").joinpath("inspector.cu").read_text()
    launchers = []
    for entry in ON_HOST:
        _, _, rest = text.partition(f'extern "C" __global__ void {entry}(')
        launchers.append(launcher(entry, rest.partition(")")[0]))
    return PRELUDE + text + "".join(launchers)


class HostDriver:
    """Answers like the bindings: a status, and then what was asked for."""

    CUresult = SimpleNamespace(CUDA_ERROR_OUT_OF_MEMORY=2)

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._allocated: list[Any] = []

    def cuMemAlloc(self, nbytes: int) -> tuple[int, int]:
        self._allocated.append(np.empty(nbytes, dtype=np.uint8))
        return 0, int(self._allocated[-1].ctypes.data)

    def cuMemcpyHtoDAsync(self, to: int, source: int, nbytes: int, stream: None) -> tuple[int]:
        ctypes.memmove(to, source, nbytes)
        return (0,)

    def cuMemcpyDtoHAsync(self, to: int, source: int, nbytes: int, stream: None) -> tuple[int]:
        return self.cuMemcpyHtoDAsync(to, source, nbytes, stream)

    def cuStreamSynchronize(self, stream: None) -> tuple[int]:
        return (0,)

    def cuLaunchKernel(self, function: str, blocks: int, *rest: Any) -> tuple[int]:
        arguments = rest[-2]
        getattr(self._library, f"run_{function}")(ctypes.c_uint(blocks), ctypes.c_void_p(arguments))
        return (0,)


class HostMemory(FakeMemory, CudaMemory):
    """Aligned like a driver's, so that vectors are used."""

    def __init__(self, nbytes: int) -> None:
        self._kept = np.zeros(nbytes + 256, dtype=np.uint8)
        start = -int(self._kept.ctypes.data) % 256
        self.address = int(self._kept.ctypes.data) + start
        self.data = memoryview(self._kept)[start : start + nbytes]  # type: ignore[assignment]
        self.nbytes = nbytes


class HostSession(FakeSession):
    def allocate(self, nbytes: int) -> HostMemory:
        super().allocate(nbytes)
        return HostMemory(nbytes)


def compiled(folder: Path) -> ctypes.CDLL:
    assert COMPILER is not None
    (folder / "inspector.cpp").write_text(source())
    library = folder / "inspector.so"
    command = [COMPILER, *FLAGS, "-o", str(library), str(folder / "inspector.cpp")]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return ctypes.CDLL(str(library))


def session_on_host(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> HostSession:
    device: Device = FakeBackend().devices()[0]
    driver = HostDriver(library)
    monkeypatch.setattr(inspector, "driver", lambda: driver)
    session = HostSession(device)
    session.inspector = own = inspector.CudaInspector(None, device)
    own.__dict__["_functions"] = {entry: entry for entry in ON_HOST}
    return session
