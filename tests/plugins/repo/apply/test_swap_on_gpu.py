"""Launches swapped on a real GPU: a program that speaks to the driver, and programs of nvcc's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cuda_here import needs_nvcc
from tests.plugins.repo.apply.repositories import a_run
from tests.plugins.repo.apply.test_swapping import NAME, tuned_result
from tunesmith.backends.cuda import compile as nvrtc
from tunesmith.backends.cuda.devices import describe_all
from tunesmith.backends.cuda.flags import read_flags
from tunesmith.backends.messages import Unit
from tunesmith.deliver.artefact import DeviceResult
from tunesmith.plugins.repo.apply.commands import Applied
from tunesmith.plugins.repo.apply.swap import swap_result
from tunesmith.problem.dispatch import DispatchBinary
from tunesmith.session.progress import listener_of

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(200)]

ORIGINAL = """
__global__ void scale(float* x, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""
# Each block has 512 elements, and room for all of x in shared memory; the number behind x counts launches.
TUNED = """
extern "C" __global__ void scale(float* x, int n, float factor) {
    extern __shared__ float part[];
    for (int i = blockIdx.x * 512 + threadIdx.x; i < n && i < blockIdx.x * 512 + 512; i += blockDim.x) {
        part[i] = x[i];
        x[i] = part[i] * factor;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) x[n] += 1.0f;
}
"""
SPEAKS = r"""
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, (name, code)
P = ctypes.c_void_p
context, module, kernel, x = P(), P(), P(), ctypes.c_uint64()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoad", ctypes.byref(module), sys.argv[1].encode())
call("cuModuleGetFunction", ctypes.byref(kernel), module, sys.argv[2].encode())
call("cuMemAlloc_v2", ctypes.byref(x), ctypes.c_size_t(4 * 4100))
values = (ctypes.c_float * 4100)(*[1.0] * 4096)
call("cuMemcpyHtoD_v2", x, values, ctypes.c_size_t(4 * 4100))
for n, factor in ((4096, 2.0), (4096, 2.0), (4096, 3.0), (100, 2.0)):
    n, factor = ctypes.c_int(n), ctypes.c_float(factor)
    params = (P * 3)(*[ctypes.addressof(v) for v in (x, n, factor)])
    call("cuLaunchKernel", kernel, (n.value + 127) // 128, 1, 1, 128, 1, 1, 0, None, params, None)
call("cuCtxSynchronize")
call("cuMemcpyDtoH_v2", values, x, ctypes.c_size_t(4 * 4100))
assert list(values[:100]) == [24.0] * 100 and list(values[100:4096]) == [12.0] * 3996, values[:4097:64]
print("tuned launches:", values[4096])
"""
# Launches by <<<>>>: in a graph that begins with it, in streams, on another thread, with another value.
BUILT = r"""
#include <cstdio>
#include <thread>
#include <cuda_runtime.h>
KERNEL
#define CHECK(call) \
    if (cudaError_t error = (call)) return printf("%s: %s\n", #call, cudaGetErrorString(error)), 1
static void launch(float* x, float factor, cudaStream_t stream) {
    scale<<<32, 128, 0, stream>>>(x, 4096, factor);
}
int main() {
    static float values[4100];
    for (int i = 0; i < 4096; i++) values[i] = 1.0f;
    float* x = nullptr;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaMalloc(&x, sizeof values));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMemcpy(x, values, sizeof values, cudaMemcpyHostToDevice));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch(x, 2.0f, stream);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaStreamSynchronize(stream));
    launch(x, 2.0f, 0);
    CHECK(cudaDeviceSynchronize());
    std::thread([=] { launch(x, 2.0f, stream); cudaStreamSynchronize(stream); }).join();
    launch(x, 3.0f, stream);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(values, x, sizeof values, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4096; i++)
        if (values[i] != 96.0f) return printf("x[%d] is %g\n", i, values[i]), 1;
    printf("tuned launches: %g\n", values[4096]);
}
"""


def cubin(text: str, capability: int) -> tuple[bytes, str]:
    made = nvrtc.compile_by_nvrtc(Unit("k.cu", text, "cuda", (), ("scale",)), read_flags((), capability))
    return made.cubin, made.symbols["scale"]


def on_this_gpu() -> DeviceResult:
    capability = describe_all()[0].limits.capability
    image, symbol = cubin(TUNED, capability)
    binary = DispatchBinary("scale-0.cubin", "cubin", "c", {"scale": symbol})
    result = tuned_result(image, binary=binary)
    return replace(result, dispatch=replace(result.dispatch, architecture=f"sm_{capability}"))


def swapped(folder: Path, program: list[str]) -> tuple[Applied, list[float]]:
    """And how many launches of the tuned kernel each run of the program saw, in their order."""
    run = a_run(folder / "run")
    done = swap_result(run, on_this_gpu(), listener_of(None), swap=program, rounds=1, timeout=60.0)
    logs = sorted((run.folder / "apply" / "swap").glob("*.log"))
    found = [re.search(r"tuned launches: ([\d.]+)", log.read_text()) for log in logs]
    return done, [float(one[1]) for one in found if one is not None]


def test_a_program_that_speaks_to_the_driver(tmp_path: Path) -> None:
    image, symbol = cubin(ORIGINAL, describe_all()[0].limits.capability)
    assert symbol == NAME
    (tmp_path / "original.cubin").write_bytes(image)
    (tmp_path / "speaks.py").write_text(SPEAKS)
    words = [sys.executable, str(tmp_path / "speaks.py"), str(tmp_path / "original.cubin"), symbol]
    done, seen = swapped(tmp_path, words)
    assert (done.ending, done.fault) == ("swapped", "")
    assert seen == [0.0, 2.0, 0.0, 2.0]
    assert (done.counts.launches, done.counts.swapped, done.counts.unverified) == (4, 2, 2)


@needs_nvcc
@pytest.mark.parametrize("stream", ["legacy", "per-thread"])
def test_a_program_of_nvcc(tmp_path: Path, stream: str) -> None:
    source, program = tmp_path / "program.cu", tmp_path / "program"
    source.write_text(BUILT.replace("KERNEL", ORIGINAL))
    command = ["nvcc", "-O2", "-arch=native", "--default-stream", stream, "-o", str(program), str(source)]
    clean = {name: value for name, value in os.environ.items() if name != "LIBRARY_PATH"}
    subprocess.run(command, check=True, timeout=120, env=clean)
    done, seen = swapped(tmp_path, [str(program)])
    assert (done.ending, done.fault) == ("swapped", "")
    assert seen == [0.0, 5.0, 0.0, 5.0], "three of them by the graph"
    assert (done.counts.ours, done.counts.swapped, done.counts.recorded) == (4, 3, 1)
