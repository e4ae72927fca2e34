"""HIP sources built for NVIDIA's GPUs, through headers of ours."""

from __future__ import annotations

import pytest

from tests.core.backends.cuda.builds import needs_nvrtc
from tests.running import FIXTURES
from tunesmith.backends.cuda import CudaBackend
from tunesmith.backends.cuda.compile import PLATFORM, as_cuda
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed
from tunesmith.problem.device import Device

H200: Device = absent_device("H200")
WORDS = """\
#include <hip/hip_fp16.h>
#include "hip/hip_bf16.h"
typedef unsigned int four_words __attribute__((ext_vector_type(4)));
extern "C" __global__ __attribute__((amdgpu_waves_per_eu(4)))
void k(float *out, const four_words *x, __hip_bfloat16 *b) {
    HIP_DYNAMIC_SHARED(float, room)
    const four_words word = __builtin_nontemporal_load(x + hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x);
    float sum = word.x + word.w + __bfloat162float(b[0]) + __half2float(__float2half(1.5f));
    for (int step = warpSize / 2; step > 0; step /= 2) sum += __shfl_xor(sum, step);
    room[__lane_id()] = sum;
    if (__any(sum > 3.0f) && __popcll(__ballot(sum > 1.0f)) > 2)
        unsafeAtomicAdd(out, __shfl(sum, 0) + __shfl_up(sum, 1));
    __builtin_nontemporal_store(room[0] + __shfl_down(sum, 2, 16), out + 1);
}
"""


def unit(text: str, *flags: str, entries: tuple[str, ...] = ("k",)) -> Unit:
    return Unit("k.hip", text, "hip", flags, entries)


@needs_nvrtc
def test_the_words_of_hip_that_kernels_use() -> None:
    binary = CudaBackend().build(unit(WORDS, "-ffast-math", "--offload-arch=gfx942", "-O3"), H200)
    assert binary.resources.spills == 0


@needs_nvrtc
def test_a_kernel_for_waves_of_any_width() -> None:
    text = (FIXTURES / "hip" / "sums.hip").read_text()
    CudaBackend().build(unit(text, entries=("row_sums", "mixed<2>")), H200)


@needs_nvrtc
def test_the_lines_of_faults_are_the_users() -> None:
    with pytest.raises(BuildFailed, match=r"k\.hip\(2\): error: identifier \"nonsense\""):
        CudaBackend().build(
            unit('extern "C" __global__ void k(float *out) {\n  out[0] = nonsense;\n}\n'), H200
        )
    text = 'extern "C" __global__ void k(int *o) { o[0] = __builtin_amdgcn_mov_dpp(1, 2, 3, 4, 0); }'
    with pytest.raises(BuildFailed, match="__builtin_amdgcn_mov_dpp"):
        CudaBackend().build(unit(text), H200)


def test_flags_that_have_no_word_are_refused() -> None:
    with pytest.raises(BuildFailed, match="'-mwavefrontsize64' means nothing to NVIDIA's compilers"):
        as_cuda(unit("", "-mwavefrontsize64"))
    assert as_cuda(unit("", "-ffp-contract=off", "-std=c++20")).flags == ("-fmad=false", "-std=c++20")


def test_cuda_and_a_users_own_header_stay() -> None:
    plain = Unit("k.cu", "text", "cuda", ("-x",), ("k",))
    assert as_cuda(plain) is plain
    own = Unit("k.hip", "#include <hip/hip_runtime.h>\n", "hip", (), ("k",), (("hip/hip_runtime.h", "mine"),))
    assert dict(as_cuda(own).headers)["hip/hip_runtime.h"] == "mine"
    assert as_cuda(own).source == own.source


def test_what_the_header_defines_is_what_is_said_of_it() -> None:
    header = dict(as_cuda(unit("")).headers)["hip/hip_runtime.h"]
    for name, value in PLATFORM:
        assert f"#define {name} {value}\n" in header
