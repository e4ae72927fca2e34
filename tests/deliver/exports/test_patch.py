"""A patch of the user's file: it applies, it builds, and the kernels in it are those that were delivered."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.deliver.exports.opencl_results import ALPHA, DISPATCH, FILES, GENERAL, KERNEL, a_result
from tests.opencl_here import needs_opencl, show_unpacked_pocl
from tunesmith.backends.cuda.cubin import Cubin
from tunesmith.deliver.exports.artefact import Artefact, DeviceResult
from tunesmith.deliver.exports.patch import TARGET, patch_of, patched_file
from tunesmith.deliver.exports.patch_cuda import with_dispatch
from tunesmith.errors import BadInput
from tunesmith.problem.dispatch import Dispatch, DispatchArgument, DispatchEntry, DispatchLaunch
from tunesmith.problem.problem import SizeRule

needs_patch = pytest.mark.skipif(shutil.which("patch") is None, reason="needs the program patch")


def applied(folder: Path, text: str, path: str, before: str, tool: str = "patch") -> str:
    """What `patch -p1`, or `git apply`, makes of the file."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(before.encode())
    command = ["patch", "-p1", "--no-backup-if-mismatch"] if tool == "patch" else ["git", "apply"]
    got = subprocess.run(
        command, input=text.encode(), cwd=folder, capture_output=True, timeout=20, check=False
    )
    assert got.returncode == 0, got.stdout
    assert b"fuzz" not in got.stdout
    return file.read_bytes().decode()


# -- OpenCL -----------------------------------------------------------------------------------------------


@needs_patch
@needs_opencl
@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_an_opencl_file_keeps_its_kernels_and_gets_the_tuned_ones(tmp_path: Path, end: str) -> None:
    before = KERNEL.rstrip("\n") + end
    text = patch_of(Artefact((a_result(),)), "src/kernel.cl", before)
    assert "# delivered: 2 of 2 tuned kernels" in text
    after = applied(tmp_path, text, "src/kernel.cl", before)
    assert after.startswith(before)
    assert "// It serves where rows == 16 and d == 256\n" in after
    assert (
        "//   scale_tuned_1: (ceildiv(rows * d // 4, 128)) work-groups of (128) work-items; arguments out"
        in after
    )
    show_unpacked_pocl()
    import pyopencl as cl

    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, after).build(options=["-cl-std=CL1.2"])
    names = set(program.get_info(cl.program_info.KERNEL_NAMES).split(";"))
    assert names >= {"scale", "scale_12", "scale_tuned_0", "part_tuned_0", "scale_tuned_1"}
    x = np.arange(16 * 256, dtype=np.float32)

    def buffer(array: np.ndarray[Any, Any]) -> Any:
        return cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=array)

    def right(out: Any) -> bool:
        got = np.empty_like(x)
        cl.enqueue_copy(queue, got, out, is_blocking=True)
        return np.array_equal(got, x * np.float32(ALPHA))

    alpha, rows, d = np.float32(ALPHA), np.int32(16), np.int32(256)
    for kernel in (program.scale, program.scale_tuned_1):
        out = buffer(np.zeros_like(x))
        kernel(queue, (4096,), (64,), out, buffer(x), alpha, rows, d)
        assert right(out)
    out, work = buffer(np.zeros_like(x)), buffer(np.ones_like(x))
    program.part_tuned_0(queue, (4096,), (64,), work, buffer(x), alpha)
    program.scale_tuned_0(queue, (4096,), (64,), out, work, cl.LocalMemory(256))
    assert right(out)


def test_a_kernel_with_flags_of_its_own_is_left_out_and_named() -> None:
    small, general, original = DISPATCH.entries
    other = replace(small, flags=(*small.flags, "-cl-fast-relaxed-math"))
    text = patch_of(
        Artefact((a_result(replace(DISPATCH, entries=(other, general, original))),)), "k.cl", KERNEL
    )
    assert "# delivered: 1 of 2 tuned kernels" in text
    assert "# left out: scale-small.cl, which is built with -cl-fast-relaxed-math\n" in text
    alone = Artefact((a_result(replace(DISPATCH, entries=(other, original))),))
    with pytest.raises(
        BadInput, match=r"no tuned kernel can be added to the file: left out: scale-small\.cl"
    ):
        patch_of(alone, "k.cl", KERNEL)
    with pytest.raises(BadInput, match="the run has no tuned kernel"):
        patch_of(Artefact((a_result(replace(DISPATCH, entries=(original,))),)), "k.cl", KERNEL)


def test_what_a_vector_has_a_part_called_keeps_its_name_or_is_left_out() -> None:
    plain = "float lo(float x) { return x; }\n" + GENERAL
    result = replace(a_result(), files={**FILES, "scale-general.cl": plain.encode()})
    text = patched_file(Artefact((result,)), KERNEL).text
    assert "#define lo " not in text
    assert "#define item item_tuned_1\n" in text
    both = KERNEL + "float lo(float x) { return 2 * x; }\n"
    assert "#define lo lo_tuned_1\n" in patched_file(Artefact((result,)), both).text
    used = plain.replace("TIMES(it.value)", "TIMES(it.value.lo.xyxy)")
    result = replace(a_result(), files={**FILES, "scale-general.cl": used.encode()})
    assert patched_file(Artefact((result,)), KERNEL).delivered == 2
    made = patched_file(Artefact((result,)), both)
    assert (made.delivered, made.left_out) == (
        1,
        ("scale-general.cl, in which lo is a function and a part of a vector",),
    )


def test_the_target_needs_the_users_file_and_names_no_folder_above() -> None:
    with pytest.raises(BadInput, match="the user's own kernel file is not known"):
        TARGET.write(Artefact((a_result(),)))
    result = replace(a_result(), kernel_path="/home/me/kernel.cl", kernel_text=KERNEL)
    files = TARGET.export(Artefact((result,))).files
    assert b"\n--- a/kernel.cl\n+++ b/kernel.cl\n" in files["scale.patch"]


@needs_patch
@pytest.mark.parametrize("language", ["opencl", "cuda"])
@pytest.mark.parametrize("last", ["\n", ""])
@pytest.mark.parametrize("tool", ["patch", "git"])
def test_a_patch_applies_whatever_the_line_ends_and_the_name(
    tmp_path: Path, language: str, last: str, tool: str
) -> None:
    """A run keeps the text with plain line ends; the user's file may have those of Windows."""
    kernel, made = (KERNEL, a_result()) if language == "opencl" else (USERS, cuda_result())
    path, kernel = "my kernels/the kernel.cu", kernel.rstrip("\n") + last
    windows = kernel.replace("\n", "\r\n")
    files = TARGET.export(Artefact((replace(made, kernel_path=path, kernel_text=kernel),))).files
    for name, before in (("scale.patch", kernel), ("scale.crlf.patch", windows)):
        after = applied(tmp_path, files[name].decode(), path, before, tool)
        assert "tuned" in after
        assert ("\r\n" in after) == ("\r\n" in before)
        assert after.count("\n") == after.count("\r\n") or "\r" not in after
    own = Artefact((replace(made, kernel_path=path, kernel_text=windows),))
    files = TARGET.export(own).files
    assert "scale.crlf.patch" not in files  # it is known which ones the file has
    assert applied(tmp_path, files["scale.patch"].decode(), path, windows, tool) == after
    mixed = kernel.replace("\n", "\r\n", 3)
    after = applied(tmp_path, patch_of(own, path, mixed), path, mixed, tool)
    assert [line in after for line in mixed.split("\n")[:3]] == [True] * 3
    assert after.count("\r\n") == 3


# -- CUDA -------------------------------------------------------------------------------------------------

USERS = """\
#include <cuda_fp16.h>
#define BLOCK 77
namespace mine {
template <typename T, int UNUSED>
__global__ void scale(T* out, const T* x, float alpha, int rows, long long twice) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * (twice / 2); i += gridDim.x * blockDim.x)
        out[i] = T(alpha * float(x[i]));
}
// each element times alpha
template <typename T>
void run(T* out, T* x, int rows, int d, cudaStream_t stream) {
    if (rows > 0)
        scale<T, 3><<<rows, BLOCK - 13, 0, stream>>>(out, x, 2.0f, rows, 2 * d);
    else
        scale<T, 4><<<1, 64>>>(out, x, 2.0f, rows, 2 * d);
}
}  // namespace mine
void both(float* a, __half* b, int rows, int d) {
    mine::run(a, a + rows * d, rows, d, 0);
    mine::run(b, b + rows * d, rows, d, 0);
}
"""
TUNED = """\
#define BLOCK 128
#define VEC 4
#line 1 "template.cu"
#include <cuda_fp16.h>
struct Part { float value; };
static __device__ Part times(float x, float alpha) { return {alpha * x}; }
extern "C" __global__ void scale(float* out, const float* x, float alpha, int rows, long long twice) {
    long long i = ((long long)blockIdx.x * BLOCK + threadIdx.x) * VEC;
    for (int k = 0; k < VEC && i + k < rows * (twice / 2); ++k) out[i + k] = times(x[i + k], alpha).value;
}
"""
NVCC = shutil.which("nvcc")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="needs nvcc")


def cuda_result(flags: tuple[str, ...] = (), path: str = "", text: str = "", **change: Any) -> DeviceResult:
    args = ("out", "x", "alpha", "rows", "twice")
    original = DispatchEntry(
        "1",
        "original.cu",
        "o",
        None,
        (),
        (DispatchLaunch("mine::scale<float, 3>", ("rows",), ("64",), None, args, None, False, False),),
    )
    tuned = DispatchEntry(
        "1 <= rows <= 4096 and d % 4 == 0", "scale-general.cu", "t", {"BLOCK": 128}, flags,
        (DispatchLaunch("scale", ("ceildiv(rows * d, 512)",), ("128",), None, args, None, False, False),),
    )  # fmt: skip
    arguments = (
        DispatchArgument("out", "float32", "output", ("rows", "d"), align=16),
        DispatchArgument("x", "float32", "input", ("rows", "d"), align=16),
        DispatchArgument("alpha", "float32", "scalar", value=2.0),
        DispatchArgument("rows", "int32", "scalar", value="rows"),
        DispatchArgument("twice", "int64", "scalar", value="2 * d"),
    )
    sizes = (SizeRule("rows", 1, 4096), SizeRule("d", 1, 4096))
    dispatch = Dispatch(
        "scale", "cuda", "a GPU", (tuned, original), "sm_90", arguments=arguments, sizes=sizes
    )
    files = {"original.cu": USERS.encode(), "scale-general.cu": TUNED.encode()}
    return DeviceResult("run", replace(dispatch, **change), files, path, text)


def cubin_of(folder: Path, name: str, text: str, *flags: str) -> Cubin:
    (folder / name).write_text(text)
    built(folder, name, "-cubin", "-o", f"{name}.cubin", *flags)
    return Cubin((folder / f"{name}.cubin").read_bytes())


def built(folder: Path, name: str, *flags: str) -> None:
    command = [str(NVCC), "-arch=sm_90", "-Werror", "all-warnings", *flags, name]
    # Our tests put empty libraries there for PoCL, and a linker would take libc from among them.
    environment = {name: value for name, value in os.environ.items() if name != "LIBRARY_PATH"}
    more: dict[str, Any] = {"cwd": folder, "env": environment, "timeout": 110}
    got = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    assert got.returncode == 0, got.stdout + got.stderr


def code_of(cubin: Cubin, part: str) -> str:
    (symbol,) = (symbol for symbol in cubin.kernels if part in symbol)
    return cubin.kernel_digest(symbol)


@needs_patch
@needs_nvcc
@pytest.mark.slow
@pytest.mark.long
def test_launches_in_a_cuda_file_ask_first_and_the_kernels_are_those_delivered(tmp_path: Path) -> None:
    text = patch_of(Artefact((cuda_result(),)), "scale.cu", USERS)
    assert "# delivered: 1 of 1 tuned kernels" in text
    after = applied(tmp_path, text, "scale.cu", USERS)
    asks = "::scale_tuned::launch((const void*)&::mine::scale<float, 3>, "
    assert f"        {asks}scale<T, 3>, rows, BLOCK - 13, 0, stream, out, x, 2.0f, rows, 2 * d);" in after
    assert after.index("SCALE_TUNED") < after.index("namespace mine")
    built(tmp_path, "scale.cu", "-c", "-o", "scale.o")
    patched = cubin_of(tmp_path, "scale.cu", after)
    assert code_of(patched, "scale_tuned2v0") == code_of(cubin_of(tmp_path, "alone.cu", TUNED), "scale")


def in_parts() -> DeviceResult:
    """Two launches, each left out at some sizes, of the original and of what is tuned."""
    made = cuda_result()
    tuned, original = made.dispatch.entries
    entries = []
    for entry in (tuned, original):
        (launch,) = entry.launches
        parts = (replace(launch, when="rows > 64"), replace(launch, when="rows <= 64 or d == 8"))
        entries.append(replace(entry, launches=parts))
    return cuda_result(entries=tuple(entries))


def test_a_launch_is_left_out_where_its_condition_does_not_hold() -> None:
    kernels = USERS[: USERS.index("// each")] + "}\n"
    text = patch_of(Artefact((in_parts(),)), "scale.cuh", kernels).replace("\n+", "\n")
    for k in range(2):
        started = f"start(kernel_{k}, shape_{k}, args_{k}, device, stream)"
        assert (
            f"    if (launched_{k} && {started} != cudaSuccess) {{\n        if (has_begun) return true;"
            in text
        )
        assert f"error_{k} = launched_{k} ? start(kernel_{k}, shape_{k}, args_{k}, -1, stream)" in text
    assert "    return has_begun;\n" in text, "where nothing is launched the original serves"


@needs_patch
@needs_nvcc
@pytest.mark.slow
@pytest.mark.long
def test_launches_that_sizes_decide_on_compile(tmp_path: Path) -> None:
    kernels = USERS[: USERS.index("// each")] + "}\n"
    applied(tmp_path, patch_of(Artefact((in_parts(),)), "scale.cuh", kernels), "scale.cuh", kernels)
    use = '#include "scale.cuh"\nint main() { return scale_tuned_launch(0, 0, 2, 1, 8, 0); }\n'
    (tmp_path / "use.cu").write_text(use)
    built(tmp_path, "use.cu", "-c", "-o", "use.o")


@needs_patch
@needs_nvcc
@pytest.mark.slow
@pytest.mark.long
def test_a_file_without_launches_gets_a_function(tmp_path: Path) -> None:
    kernels = USERS[: USERS.index("// each")] + "}\n"
    text = patch_of(Artefact((cuda_result(),)), "scale.cuh", kernels)
    assert "# the file launches nothing: call scale_tuned_launch, which is at its end\n" in text
    applied(tmp_path, text, "scale.cuh", kernels)
    use = '#include "scale.cuh"\nint main() { return scale_tuned_launch(0, 0, 2, 1, 8, 0); }\n'
    (tmp_path / "use.cu").write_text(use)
    built(tmp_path, "use.cu", "-c", "-o", "use.o")


def test_what_a_launch_does_not_tell_leaves_it_as_it_is() -> None:
    result = cuda_result()
    sizes = (*result.dispatch.sizes, SizeRule("more", 1, 8))
    made = patched_file(Artefact((cuda_result(sizes=sizes),)), USERS)
    assert made.notes[0].endswith("stays as it is: nothing that it passes tells the size more")
    assert "inline cudaError_t scale_tuned_launch(" in made.text


def test_each_argument_of_a_launch_is_evaluated_once() -> None:
    """Also where it is a call, a macro, or changes something; comments stay where they stand."""
    launch = """scale<T, 3><<<rows++, BLOCK - 13,
                0, pool.next() /* stream */ >>>(out,  // result
                arena.take(rows), 2.0f, rows, 2 * d  // both
                );"""
    users = USERS.replace("scale<T, 3><<<rows, BLOCK - 13, 0, stream>>>(out, x, 2.0f, rows, 2 * d);", launch)
    made = patched_file(Artefact((cuda_result(),)), users)
    assert made.notes == ()
    asks = "::scale_tuned::launch((const void*)&::mine::scale<float, 3>"
    wanted = f"""        {asks}, scale<T, 3>, rows++, BLOCK - 13,
                0, pool.next() /* stream */, out,  // result
                arena.take(rows), 2.0f, rows, 2 * d  // both
                );
    else
        {asks}, scale<T, 4>, 1, 64, 0, 0, out, x, 2.0f,"""
    assert wanted in made.text
    assert made.text.count("pool.next()") == made.text.count("arena.take(") == 1


def test_a_register_cap_goes_into_the_text_only_where_a_build_shows_the_same_code() -> None:
    artefact = Artefact((cuda_result(("-maxrregcount=32",)),))
    asked: list[str] = []

    def says(answer: bool) -> Any:
        return lambda one, other, capability: bool(asked.append(other.source)) or answer

    made = with_dispatch(artefact, USERS, says(True))
    assert made.delivered == 1
    assert "__global__ __maxnreg__(32) void scale(float* out" in made.text
    refused = with_dispatch(artefact, USERS, says(False))
    assert (refused.delivered, refused.text) == (0, USERS)
    assert (
        "no build here shows that __maxnreg__(32) gives the same code as -maxrregcount=32" in refused.notes[0]
    )
    fast = with_dispatch(Artefact((cuda_result(("-use_fast_math",)),)), USERS, says(True))
    assert fast.notes == ("left out: scale-general.cu, it is built with flags of its own, -use_fast_math",)


@needs_nvcc
@pytest.mark.slow
@pytest.mark.long
def test_nvcc_says_whether_the_cap_gives_the_same_code() -> None:
    made = patched_file(Artefact((cuda_result(("-maxrregcount=32",)),)), USERS)
    assert made.delivered == 1


# In place of CUDA's runtime: who is launched, on the first device, which is of capability 9.0, or on another.
RUNTIME = """\
#include <cstdio>
#include <cuda_runtime.h>
int device_here = 0;
extern "C" {
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = device_here, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int device) {
    return *value = what == cudaDevAttrComputeCapabilityMajor ? 9 - device : 0, cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void*, void** args) {
    printf("tuned %u %u %d\\n", how->gridDim.x, how->blockDim.x, *(int*)args[3]);
    return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void*, dim3 grid, dim3 block, void** args, size_t, cudaStream_t) {
    printf("original %u %u %d\\n", grid.x, block.x, *(int*)args[3]);
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3 grid, dim3 block, void** args, size_t, cudaStream_t) {
    return cudaLaunchKernel(0, grid, block, args, 0, 0);
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void*) { return *kernel = 0, cudaSuccess; }
static dim3 kept_grid, kept_block;
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t, void*) {
    return kept_grid = grid, kept_block = block, 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t*, void*) {
    return *grid = kept_grid, *block = kept_block, cudaSuccess;
}
void** __cudaRegisterFatBinary(void*) { return 0; }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {}
char __cudaInitModule(void**) { return 0; }
}
"""
MAIN = """\
extern int device_here;
int main() {
    char* at = (char*)4096;
    float *a = (float*)at, *b = a + 4096;
    mine::run(a, b, 16, 256, 0);                     // tuned
    mine::run((__half*)a, (__half*)b, 16, 256, 0);   // other types
    mine::run(a, a, 16, 256, 0);                     // in place
    mine::run(a, b - 4, 16, 256, 0);                 // the last elements of one are the first of the other
    mine::run(a, b + 1, 16, 256, 0);                 // not aligned
    mine::run(a, b, 2, 6, 0);                        // no entry for this size
    mine::run(a, (float*)0x40000000, 5000, 8, 0);    // outside the contract
    mine::run(a, b, -1, 8, 0);                       // another instance of the kernel
    mine::scale<float, 3><<<1, 64>>>(a, b, 2.0f, 16, 512);
    launch(a, b, 15, 64, 16, 512, 2.0f);             // fewer blocks
    launch(a, b, 16, 32, 16, 512, 2.0f);             // fewer threads
    launch(a, b, 16, 64, 16, 511, 2.0f);             // a size that is no integer
    launch(a, b, 16, 64, 16, 512, 3.0f);             // a value that was not tuned with
    launch(a, b, 16, 64, 16, 512, 2.0f);             // tuned
    device_here = 1;
    mine::run(a, b, 16, 256, 0);                     // another device
    device_here = 0;
    taken = 0;
    once(a, b, 16, 256);                             // tuned: what it passes is counted
    once(a, a, 16, 256);                             // in place
    printf("taken %d\\n", taken);
}
"""
MORE_LAUNCHES = """\
void launch(float* out, float* x, int grid, int block, int rows, long long twice, float alpha) {
    mine::scale<float, 3><<<grid, block>>>(out, x, alpha, rows, twice);
}
extern "C" int printf(const char*, ...);
static int taken;
static float* take(float* at) { return ++taken, at; }
static cudaStream_t next_stream() { return ++taken, nullptr; }
#define NEXT_STREAM next_stream()
void once(float* out, float* x, int rows, int d) {
    mine::scale<float, 3><<<dim3(rows), 64 /* threads */, 0, NEXT_STREAM>>>(take(out), take(x),
        2.0f, rows, (taken++, 2 * d)  // of each
    );
}
"""


@needs_patch
@needs_nvcc
@pytest.mark.slow
@pytest.mark.long
def test_a_launch_that_is_not_as_tuned_stays_what_it_was(tmp_path: Path) -> None:
    before = USERS + MORE_LAUNCHES
    after = applied(tmp_path, patch_of(Artefact((cuda_result(),)), "scale.cu", before), "scale.cu", before)
    (tmp_path / "scale.cu").write_text(after + MAIN)
    (tmp_path / "runtime.cpp").write_text(RUNTIME)
    built(tmp_path, "scale.cu", "-cudart=none", "-o", "scale", "runtime.cpp")
    got = subprocess.run([tmp_path / "scale"], capture_output=True, text=True, timeout=20, check=True)
    lines = got.stdout.splitlines()
    tuned = "tuned 8 128 16"
    assert lines[0] == lines[13] == tuned
    assert lines[1:13] == [
        *["original 16 64 16"] * 4, "original 2 64 2", "original 5000 64 5000", "original 1 64 -1",
        "original 1 64 16", "original 15 64 16", "original 16 32 16", *["original 16 64 16"] * 2,
    ]  # fmt: skip
    assert lines[14:] == ["original 16 64 16", tuned, "original 16 64 16", "taken 8"]
