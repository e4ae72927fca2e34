"""Whether CUDA kernels can be built here, by which compiler; and whether they could run."""

from __future__ import annotations

import ctypes

import pytest

from tunesmith.backends.cuda.compile import cuda_compilers

BUILDS = dict(cuda_compilers())


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


needs_nvrtc = pytest.mark.skipif("nvrtc" not in BUILDS, reason="there is no NVRTC here")
needs_nvcc = pytest.mark.skipif("nvcc" not in BUILDS, reason="there is no nvcc here")
needs_no_driver = pytest.mark.skipif(_has_driver(), reason="there is an NVIDIA driver here")
