"""A template file as an author is shown one: small, whole, and of the kernel's own language."""

from __future__ import annotations

_HEADER = """\
// /// tunesmith
// [params]
// BLOCK = [64, 128, 256, 512]
// ITEMS = [1, 2, 4]
// [default]
// BLOCK = 128
// ITEMS = 1
// [require]
// block_fits = "BLOCK <= device.max_threads"
// [prefer]
// not_too_much = "BLOCK * ITEMS <= 1024"
// [launch]
// grid  = ["ceildiv(n, BLOCK * ITEMS)"]
// block = ["BLOCK"]
// ///
#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef ITEMS
#define ITEMS 1
#endif
"""
_BODIES = {
    "opencl": """\
__kernel void scale(__global float* out, __global const float* x, int n) {
    int first = get_group_id(0) * BLOCK * ITEMS + get_local_id(0);
    for (int k = 0; k < ITEMS; ++k) {
        int i = first + k * BLOCK;
        if (i < n) {
            out[i] = 2.0f * x[i];
        }
    }
}
""",
    "cuda": """\
extern "C" __global__ void scale(float* out, const float* x, int n) {
    int first = blockIdx.x * BLOCK * ITEMS + threadIdx.x;
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        int i = first + k * BLOCK;
        if (i < n) {
            out[i] = 2.0f * x[i];
        }
    }
}
""",
}
_CONCRETE = """\
// /// tunesmith
// [launch]
// grid  = ["ceildiv(n, 512)"]
// block = ["256"]
// ///
#define BLOCK 256
#define ITEMS 2
"""


def example_kernel(language: str) -> str:
    """One without parameters, as a reply."""
    return f"```\n{_CONCRETE}{_BODIES.get(language, _BODIES['cuda'])}```\n"


def example_file(language: str) -> str:
    """As a reply: in a fence."""
    return f"```\n{_HEADER}{_BODIES.get(language, _BODIES['cuda'])}```\n"
