"""Kernels that a file only includes, and those that it instantiates without a launch."""

from __future__ import annotations

import pytest

from tunesmith.errors import BadInput
from tunesmith.expert.reading.draft import bare_kernels
from tunesmith.expert.reading.explained import explain_text

HEADER = """#pragma once
#include "types.cuh"
namespace own {
template <typename T, int N> __global__ void twice(T *y, const T *x, size_int n)
{
    const size_int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * N;
}
}
"""
MAIN = """#include "impl.cuh"
#include "types.cuh"

void run(float *y, const float *x, int n) { own::twice<float, 2><<<(n + 127) / 128, 128>>>(y, x, n); }
"""
HEADERS = (("impl.cuh", HEADER), ("types.cuh", "#pragma once\ntypedef int size_int;\n"))
TEMPLATE = """template <typename T> __global__ void add(T *y, const T *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
"""
FLOAT = "template __global__ void add<float>(float *, const float *, int);\n"


def test_a_kernel_of_a_header_is_found_with_the_launch_of_the_file() -> None:
    (bare,) = bare_kernels(MAIN, "main.cu", "cuda", None, (), HEADERS)
    assert (bare.entry, bare.kernel.line) == ("own::twice<float, 2>", 1)
    assert bare.launch.block == ("128",)
    found = explain_text(bare)
    assert found.is_read, found.obstacles
    assert "launch: grid [ceildiv(n, 128)], block [128]" in found.filled


def test_a_file_with_kernels_of_its_own_is_asked_for_these() -> None:
    text = MAIN + 'extern "C" __global__ void mine(float *y) { y[threadIdx.x] = 0.0f; }\n'
    assert [bare.entry for bare in bare_kernels(text, "main.cu", "cuda", None, (), HEADERS)] == ["mine"]


def test_without_any_kernel_the_fault_is_the_files() -> None:
    with pytest.raises(BadInput, match="must define a function marked __global__"):
        bare_kernels(MAIN, "main.cu", "cuda", None, (), HEADERS[1:])


@pytest.mark.parametrize(
    "way",
    [
        FLOAT,
        "template void add<float>(float *, const float *, int);\n",
        "template __global__ void __launch_bounds__(256) add< float >(float *);\n",
    ],
)
def test_an_instantiation_is_the_entry(way: str) -> None:
    (bare,) = bare_kernels(TEMPLATE + way, "k.cu", "cuda", None)
    assert bare.entry == "add<float>"
    assert explain_text(bare).is_read


def test_several_instantiations_are_told_and_not_chosen_from() -> None:
    (bare,) = bare_kernels(TEMPLATE + FLOAT + FLOAT.replace("float", "double"), "k.cu", "cuda", None)
    (obstacle, *_) = explain_text(bare).obstacles
    assert obstacle.endswith("say them, as in --entry 'add<float>'; line 6 instantiates it so")


def test_what_is_in_a_comment_instantiates_nothing() -> None:
    (bare,) = bare_kernels(f"{TEMPLATE}// {FLOAT}", "k.cu", "cuda", None)
    assert bare.entry == "add<FILL>"


def test_a_header_that_is_not_found_is_named() -> None:
    with pytest.raises(BadInput, match=r"it has none; impl.cuh, which it includes, is not found") as told:
        bare_kernels(MAIN, "main.cu", "cuda", None, (), HEADERS[1:])
    assert "impl.cuh" in (told.value.hint or "")
