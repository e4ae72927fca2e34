"""Builds of CUDA sources, for a device that need not be here."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cuda_here import needs_nvcc, needs_nvrtc
from tunesmith.backends.cuda.compile import build_cubin
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, KernelBinary

BOTH = [pytest.param("nvrtc", marks=needs_nvrtc), pytest.param("nvcc", marks=needs_nvcc)]

HALF = """#include <cuda_fp16.h>
extern "C" __global__ void scale(__half* out, const __half* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __hmul(x[i], __float2half(2.0f));
}
"""


def unit(source: str, *entries: str, path: str = "kernel.cu", compiler: str = "nvrtc", **more: Any) -> Unit:
    flags = tuple(more.pop("flags", ()))
    return Unit(path, source, "cuda", flags, entries, compiler=compiler, **more)


def built(source: str, *entries: str, device: str | None = None, **more: Any) -> KernelBinary:
    return build_cubin(unit(source, *entries, **more), absent_device(device))


def refusal(source: str, *entries: str, **more: Any) -> str:
    with pytest.raises(BuildFailed) as caught:
        built(source, *entries, **more)
    return str(caught.value)
