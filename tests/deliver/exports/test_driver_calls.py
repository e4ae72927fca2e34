"""What the exported host code asks of the driver, seen by a driver that only writes it down."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.deliver.exports import operators
from tests.deliver.exports.test_tensor_call import CXX, INCLUDE, needs_compiler
from tunesmith.backends.cuda.compile import COMPILERS
from tunesmith.backends.port import Unsupported
from tunesmith.deliver.exports.tensor_call import TensorCall

pytestmark = [needs_compiler, pytest.mark.slow]
_DRIVER = r"""
#include <cuda.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
static int depth = 0;
static bool initialised = false;  // nobody has used the device yet
static long long place(CUdeviceptr data) { return static_cast<long long>(data); }
extern "C" {
CUresult cuInit(unsigned) { initialised = true; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    *device = ordinal;
    return initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}
CUresult cuCtxGetDevice(CUdevice* device) {
    *device = 3;
    return depth > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) { *context = nullptr; return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext) { ++depth; std::puts("push"); return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext*) { --depth; std::puts("pop"); return CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult, const char** text) { *text = "a driver's words"; return CUDA_SUCCESS; }
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream) { return CUDA_ERROR_UNKNOWN; }
CUresult cuMemsetD16Async(CUdeviceptr, unsigned short, size_t, CUstream) { return CUDA_ERROR_UNKNOWN; }
CUresult cuMemsetD32Async(CUdeviceptr data, unsigned value, size_t count, CUstream) {
    std::printf("fill %lld with %#x, %zu times\n", place(data), value, count);
    return CUDA_SUCCESS;
}
CUresult cuMemsetD2D32Async(CUdeviceptr data, size_t pitch, unsigned value, size_t, size_t count, CUstream) {
    std::printf("fill %lld with %#x every %zu, %zu times\n", place(data), value, pitch, count);
    return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    static CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_GLOBAL;
    const CUstreamCaptureMode before = own;
    own = *mode;
    *mode = before;
    std::puts(own == CU_STREAM_CAPTURE_MODE_RELAXED ? "relaxed" : "as before");
    return CUDA_SUCCESS;
}
CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
    const char* const target = std::strstr(static_cast<const char*>(code), "\n.target ");
    if (std::memcmp(code, "\x7f" "ELF", 4) == 0) std::puts("load");
    else if (target != nullptr) std::printf("load PTX of %.5s\n", target + 9);
    else std::puts("load what is no code");
    *library = reinterpret_cast<CUlibrary>(const_cast<void*>(code));
    return std::getenv("NO_CODE") == nullptr ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    std::printf("kernel %s\n", name);
    *kernel = reinterpret_cast<CUkernel>(library);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
    const int own = std::getenv("CAPABILITY") == nullptr ? 90 : std::atoi(std::getenv("CAPABILITY"));
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? own / 10 : own % 10;
    return CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice) { return CUDA_SUCCESS; }
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction, void** args, void**) {
    std::printf("launch %u on stream %lld, by %g, d %d\n", config->gridDimX,
                reinterpret_cast<long long>(config->hStream), *static_cast<float*>(args[4]),
                *static_cast<int*>(args[6]));
    return CUDA_SUCCESS;
}
}
"""
_PROGRAM = r"""
#include "sum_tensors.h"
#include <cstdio>
using namespace sum_tensors;
static void* at(long long place) { return reinterpret_cast<void*>(place); }
static void call(bool original, int64_t rows, double by) {
    const int64_t lengths[] = {rows, 5}, one[] = {1, 1}, dense[] = {5, 1};
    const View out = {"class", "", at(1 << 20), lengths, one, 1};
    const View x = {"x", "", at(2 << 20), lengths, dense, 2}, seen = {"seen", "", at(3 << 20), one, one, 1};
    try {
        const CurrentDevice current(3);
        const CurrentDevice again(3);
        const Sizes sizes = sizes_of_all(out, x, seen, 5);
        check_all(out, x, seen, sizes);
        std::printf("scratch of %lld and %lld bytes\n", bytes_arg_work(sizes), bytes_work_more(sizes));
        void* more = bytes_work_more(sizes) > 0 ? at(5 << 20) : nullptr;
        run(original, out, x, seen, by, 0, sizes, at(4 << 20), more, static_cast<CUstream>(at(77)));
    } catch (const Refused& refused) {
        std::puts(refused.what());
    }
}
int main() {
    call(false, 4, 2.0);
    call(false, 4, 3.0);
    call(true, 4, 2.0);
    call(false, 100, 2.0);
    const CurrentDevice current(3);
    std::puts(sum_tuned::prepare() ? "prepared" : "not prepared");
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    written_with(TensorCall(operators.artefact()), folder)
    return folder


def written_with(call, folder):
    files = {"sum.h": call.host.header, "sum.cpp": call.host.source, "sum_tensors.h": call.header}
    files |= {"driver.cpp": _DRIVER.encode(), "main.cpp": _PROGRAM.encode()}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    plain = {"PATH": os.environ["PATH"]}
    for arguments in (
        ["-shared", "-fPIC", "driver.cpp", "-o", "libcuda.so.1"],
        ["main.cpp", "sum.cpp", "-o", "program"],
    ):
        command = [str(CXX), "-std=c++17", f"-I{INCLUDE}", *arguments]
        got = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, check=False)
        assert got.returncode == 0, got.stderr


def told(folder, **environment):
    """What the driver was asked, and what was said on stderr."""
    own = {"LD_LIBRARY_PATH": str(folder), **environment}
    done = subprocess.run(
        [folder / "program"], env=own, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines(), done.stderr


FILLED = "fill 4194304 with 0x7 every 8, {0} times", "fill 4194308 with 0 every 8, {0} times"
LOADED = "relaxed", "load", "kernel sum", "as before"
NOTE = (
    "sum was tuned on sm_90; on sm_{0} {1}. To tune it there run: tunesmith retune RUN; then export both "
    "runs together: tunesmith export RUN NEW_RUN --to ...\n"
)


def test_the_tuned_kernel_the_original_and_what_each_needs(program):
    lines, said = told(program)
    assert said == ""
    out, more = "fill 1048576 with 0x3f000000, {0} times", "fill 5242880 with 0x3e800000, 8 times"
    filled = [out.format(4), *(line.format(4) for line in FILLED), more]
    launched = "launch 4 on stream 77, by {0}, d 10"
    assert lines == [
        "push", "scratch of 32 and 32 bytes", *filled, *LOADED, launched.format(2), "pop",
        "push", "scratch of 32 and 32 bytes", *filled, *LOADED, launched.format(3), "pop",
        "push", "scratch of 32 and 32 bytes", *filled, launched.format(2), "pop",
        "push", "scratch of 800 and 0 bytes", out.format(100), *(line.format(100) for line in FILLED),
        "launch 100 on stream 77, by 2, d 10", "pop",
        "push", "prepared", "pop",
    ]  # fmt: skip


@pytest.mark.parametrize("capability", [75, 86, 100])
def test_on_another_device_the_original_is_compiled_from_ptx_once_with_a_note(program, capability):
    lines, said = told(program, CAPABILITY=str(capability))
    of_kernels = [line for line in lines if line.startswith(("load", "kernel", "launch", "not", "prepared"))]
    launched = "launch {0} on stream 77, by {1}, d 10"
    assert of_kernels == [
        "load PTX of sm_75", "kernel sum", launched.format(4, 2), launched.format(4, 3),
        launched.format(4, 2), launched.format(100, 2), "prepared",
    ]  # fmt: skip
    assert said == NOTE.format(capability, "its original serves")


def test_code_that_cannot_be_loaded_is_an_error_in_words(program):
    elsewhere = (
        "On another device the original serves, as PTX that the driver there compiles: sm_75 and newer, with "
        "a driver for CUDA 12.8 or newer."
    )
    for capability in ("90", "100"):
        lines, _ = told(program, NO_CODE="1", CAPABILITY=capability)
        refused = (
            f"sum: a driver's words (Its machine code is for sm_90. {elsewhere} Tune it on this device, and "
            "export both runs)"
        )
        assert lines.count(refused) == 4
        assert not [line for line in lines if line.startswith("launch")]
        assert lines.count("push") == lines.count("pop") == 5
        assert lines[-2] == "not prepared"


def test_without_a_compiler_other_devices_get_an_error_that_says_so(tmp_path, monkeypatch):
    made = operators.artefact()

    def nothing_here(*_):
        raise Unsupported("NVRTC cannot be loaded: not here")

    monkeypatch.setitem(COMPILERS, "nvrtc", nothing_here)
    call = TensorCall(made)
    assert b"there is no PTX of the original (NVRTC cannot be loaded: not here)" in call.host.header
    written_with(call, tmp_path)
    assert told(tmp_path)[1] == ""
    lines, said = told(tmp_path, CAPABILITY="80", NO_CODE="1")
    assert said == NOTE.format(80, "there is no original here")
    assert len([line for line in lines if "On another device nothing serves: there is no PTX" in line]) == 4
