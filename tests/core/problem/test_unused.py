"""Kernels that nobody launches are taken out of a text, with what they alone used."""

from __future__ import annotations

from tunesmith.problem.reduced import without_kernels

TEXT = """// Of the whole file.
#include <cuda_fp16.h>
#define LENGTH 4
#define WIDTH 8

namespace rows {
__device__ float one(float x) { return x * WIDTH; }
__device__ float both(float x) { return x; }
__device__ float nobody(float x) { return x; }

// Of the first alone.
template <typename T>
__global__ void first(T *x) { x[0] = one(both(x[1])); }

// Of the second.
__global__ void second(float *x) { x[0] = both(x[LENGTH]); }
}  // namespace rows
"""


def test_a_kernel_goes_with_what_it_alone_used() -> None:
    assert (
        without_kernels(TEXT, {"first"})
        == """// Of the whole file.
#include <cuda_fp16.h>
#define LENGTH 4

namespace rows {
__device__ float both(float x) { return x; }
__device__ float nobody(float x) { return x; }

// Of the second.
__global__ void second(float *x) { x[0] = both(x[LENGTH]); }
}  // namespace rows
"""
    )


def test_a_kernel_that_something_else_names_stays() -> None:
    launcher = "void run(float *x) { first<float><<<1, 1>>>(x); }\n"
    assert without_kernels(TEXT + launcher, {"first"}) == TEXT + launcher
    assert without_kernels(TEXT, {"third"}) == TEXT


def test_names_made_of_pieces_may_be_any() -> None:
    text = TEXT + "#define CALL(name) name ## st\n"
    assert without_kernels(text, {"first"}) == text


def test_what_speaks_of_the_whole_file_stays_above_a_kernel_that_goes() -> None:
    text = "// Licence.\n// More of it.\n__global__ void a(int *x) { x[0] = 1; }\n\n__global__ void b() {}\n"
    assert without_kernels(text, {"a"}) == "// Licence.\n// More of it.\n\n__global__ void b() {}\n"
