"""HIP as it is published: its names for threads, hipCUB, helpers told apart by template arguments."""

from __future__ import annotations

from tunesmith.expert.reading.draft import bare_kernels
from tunesmith.expert.reading.explained import ExplainedText, explain_text

MOMENTS = """
#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>

template <typename T, int X, int Y> __device__ void join(T &one, T &two) {
    using Sums = hipcub::BlockReduce<T, X, hipcub::BLOCK_REDUCE_WARP_REDUCTIONS, Y>;
    __shared__ typename Sums::TempStorage first, second;
    one = Sums(first).Sum(one);
    two = Sums(second).Sum(two);
}

template <typename T> __device__ void join(T &one, T &two) {
    using Sums = hipcub::BlockReduce<T, 256>;
    __shared__ typename Sums::TempStorage first;
    __shared__ typename Sums::TempStorage second;
    one = Sums(first).Sum(one);
    two = Sums(second).Sum(two);
}

__global__ void __launch_bounds__(256)
moments(const float *x, float *sum, float *squares, int channels, int n) {
    float one = 0.0f, two = 0.0f;
    for (int i = hipThreadIdx_x; i < n; i += hipBlockDim_x) {
        float v = x[i * channels + hipBlockIdx_x];
        one += v;
        two += v * v;
    }
    join<float>(one, two);
    if (hipThreadIdx_x == 0) {
        sum[hipBlockIdx_x] = one;
        squares[hipBlockIdx_x] = two;
    }
}
"""


def explained(text: str) -> ExplainedText:
    (bare,) = bare_kernels(text, "kernel.hip", "hip", None)
    return explain_text(bare)


def test_a_helper_is_told_by_template_arguments_that_nothing_else_could_say() -> None:
    found = explained(MOMENTS)
    assert found.is_read, found.obstacles
    assert "adds up one" in " ".join(found.lines)
    assert "adds up two" in " ".join(found.lines)


def test_helpers_that_could_both_be_meant_are_not_chosen_between() -> None:
    both = MOMENTS.replace(
        "template <typename T, int X, int Y>", "template <typename T, int X = 16, int Y = 16>"
    )
    found = explained(both)
    assert not found.is_read
    assert "which join is called cannot be told" in found.obstacles[0]


def test_a_warp_as_wide_as_the_device_says_is_not_taken_for_one_of_32() -> None:
    text = MOMENTS.replace("hipcub::BlockReduce<T, 256>", "hipcub::WarpReduce<T>")
    assert not explained(text).is_read
