"""What compilers define is asked of them: by device, by flags, by compiler."""

from __future__ import annotations

import pytest

from tests.cuda_here import needs_nvcc, needs_nvrtc
from tunesmith.backends.cuda.compile import cuda_predefined_macros
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Kernel

NAMES = ("__CUDACC_RTC__", "__CUDA_ARCH__", "__CUDA_ARCH_FEAT_SM90_ALL", "__cplusplus", "OWN")


def device(name: str) -> Device:
    found = absent_device(name)
    assert found is not None
    return found


def asked(compiler: str, on: str, *flags: str) -> dict[str, str]:
    kernel = Kernel("k.cu", "", "k", "cuda", flags=flags, compiler=compiler)
    (found,) = cuda_predefined_macros(kernel, device(on), NAMES)
    assert found.said_by.startswith(compiler)
    return dict(found.macros)


@needs_nvrtc
def test_nvrtc_tells_what_it_defines() -> None:
    found = asked("nvrtc", "sm_90", "-arch=sm_90a")
    assert found["__CUDA_ARCH__"] == "900"
    assert found["__cplusplus"] == "201703L"
    assert found["__CUDACC_RTC__"]
    assert "__CUDA_ARCH_FEAT_SM90_ALL" in found
    assert "OWN" not in found
    other = asked("nvrtc", "sm_80", "-std=c++14")
    assert other["__CUDA_ARCH__"] == "800"
    assert other["__cplusplus"] == "201402L"
    assert "__CUDA_ARCH_FEAT_SM90_ALL" not in other
    assert other["__CUDACC_VER_MAJOR__"].isdigit()


@needs_nvcc
def test_nvcc_tells_what_it_defines() -> None:
    found = asked("nvcc", "sm_80", "-std=c++14")
    assert found["__CUDA_ARCH__"] == "800"
    assert found["__cplusplus"] == "201402L"
    assert "__CUDACC_RTC__" not in found
    assert found["__CUDACC_VER_MAJOR__"].isdigit()


def test_what_cannot_be_asked_is_assumed_for_the_device() -> None:
    kernel = Kernel("k.cu", "", "k", "cuda", compiler="none")
    (found,) = cuda_predefined_macros(kernel, device("sm_80"), NAMES)
    assert found.said_by == "assumed, since there is no none here: NVRTC, C++17, sm_80"
    assert dict(found.macros)["__CUDA_ARCH__"] == "800"


@pytest.mark.parametrize("flags", [("--unknown",), ("-arch=sm_70",)])
def test_flags_that_are_not_understood_are_no_reason_to_fail(flags: tuple[str, ...]) -> None:
    (found,) = cuda_predefined_macros(Kernel("k.cu", "", "k", "cuda", flags=flags), device("sm_80"), NAMES)
    assert found.said_by.startswith("assumed, since the flags are not understood")
