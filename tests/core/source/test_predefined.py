"""What a compiler defines of its own accord decides conditions, and every decision is told."""

from __future__ import annotations

from tunesmith.source.preprocess import (
    Predefined,
    asked_names,
    assume_predefined,
    opencl_predefined,
    preprocess,
    sorted_out,
)

TEXT = """
#if __CUDA_ARCH__ >= 900
hopper
#elif __CUDA_ARCH__ >= 800
ampere
#endif
#ifdef __CUDACC_RTC__
rtc
#endif
"""


def words(text: str, state: Predefined | None) -> list[str]:
    return [str(token) for token in preprocess(text, "cuda", predefined=state).tokens]


def test_the_state_decides_and_not_a_table() -> None:
    assert words(TEXT, None) == ["hopper", "rtc"]
    assert words(TEXT, assume_predefined("cuda", 80)) == ["ampere", "rtc"]
    assert words(TEXT, Predefined((("__CUDA_ARCH__", "800"),), "nvcc")) == ["ampere"]
    assert words("__CUDA_ARCH__", Predefined((("__CUDA_ARCH__", "750"),), "nvcc")) == ["750"]


def test_macros_that_are_no_numbers_are_only_defined() -> None:
    state = sorted_out((("__forceinline__", "__inline__ x"), ("M_PI", "3.14"), ("F(a)", "a")), "nvcc")
    assert state == Predefined((("M_PI", "3.14"),), "nvcc", ("__forceinline__", "F"))
    text = "#ifndef __forceinline__\n#define __forceinline__ inline\n#endif\n__forceinline__ M_PI F(1)"
    assert words(text, state) == ["__forceinline__", "3.14", "F", "(", "1", ")"]


def test_names_that_a_compiler_may_have_defined() -> None:
    guard = "#ifndef MY_H\n#define MY_H\nint __CUDA_ARCH__x = __CUDA_ARCH__;\n#if OWN > 2\n#endif\n#endif\n"
    assert asked_names((guard,)) == ("OWN", "__CUDA_ARCH__", "__CUDA_ARCH__x")
    assert asked_names(("#define TILE 4\n__global__ void k() {}\n",)) == ()


def test_opencl_by_its_version() -> None:
    macros = dict(opencl_predefined(300, ("cl_khr_fp16",), "PoCL").macros)
    assert macros["CL_VERSION_3_0"] == "300"
    assert macros["__OPENCL_C_VERSION__"] == "120"
    assert macros["cl_khr_fp16"] == "1"
    assert "CL_VERSION_3_0" not in dict(opencl_predefined(120, (), "old").macros)
