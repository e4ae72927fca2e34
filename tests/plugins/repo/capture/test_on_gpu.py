"""The same on a real GPU: a program that speaks to the driver by itself, so that nothing else is needed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tunesmith.plugins.repo.capture.capture import CaptureWish, watch_program
from tunesmith.plugins.repo.capture.ranking import KernelKind, rank_kernels
from tunesmith.plugins.repo.capture.records import read_array, read_image

pytestmark = pytest.mark.gpu

PROGRAM = r'''
import ctypes, sys
PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry triple(.param .u64 x, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .f32 %f<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r2, [n];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r1, %r3, %r4, %r5;
    setp.ge.s32 %p1, %r1, %r2;
    @%p1 bra $end;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.s32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    mul.f32 %f2, %f1, 0f40400000;
    st.global.f32 [%rd4], %f2;
$end:
    ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, (name, code)
call("cuInit", 0)
context, module, kernel, x = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), PTX)
call("cuModuleGetFunction", ctypes.byref(kernel), module, b"triple")
N = 1 << 20
call("cuMemAlloc_v2", ctypes.byref(x), ctypes.c_size_t(4 * N))
ones = (ctypes.c_float * N)(*[1.0] * N)
call("cuMemcpyHtoD_v2", x, ones, ctypes.c_size_t(4 * N))
n = ctypes.c_int(N)
params = (ctypes.c_void_p * 2)(ctypes.addressof(x), ctypes.addressof(n))
for _ in range(5):
    call("cuLaunchKernel", kernel, N // 256, 1, 1, 256, 1, 1, 0, None, params, None)
call("cuCtxSynchronize")
call("cuMemcpyDtoH_v2", ones, x, ctypes.c_size_t(4 * N))
assert list(ones[:3]) == [243.0] * 3, ones[:3]
'''


def test_a_program_is_captured_with_its_arguments_image_and_memory(tmp_path: Path) -> None:
    wish = CaptureWish(keep=("triple",))
    found = watch_program([sys.executable, "-c", PROGRAM], wish, tmp_path / "seen")
    capture = found.capture
    assert capture.program.exit_code == 0, capture.notes
    (kernel,) = capture.kernels
    assert (kernel.name, kernel.count, kernel.timed) == ("triple", 5, 5)
    (launch,) = kernel.launches
    pointer, count = launch.arguments
    assert int.from_bytes(count.value, "little") == 1 << 20
    assert pointer.memory.extent == 4 << 20
    (image,) = capture.images
    assert b"triple" in read_image(found.folder, image)
    assert kernel.code
    (part,) = capture.kept[0].ranges
    before, after = (
        np.frombuffer(read_array(found.folder, d), np.float32) for d in (part.before, part.after)
    )
    assert (after == 3 * before).all()
    assert part.again == part.after
    (ranked,) = rank_kernels(capture)
    assert ranked.kind is KernelKind.CUSTOM
    assert 0 < launch.least < 1e-3
    assert capture.copies.count >= 2
