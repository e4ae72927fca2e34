"""Reductions in every style come to the same reading; those that miss a thread are refused."""

from __future__ import annotations

import pytest

from tests.expert.model.kernels import lifted, refusal, row_problem, summary
from tunesmith.problem.problem import Problem

_SUM = "float s = 0.0f;\n for (int i = threadIdx.x; i < d; i += blockDim.x) s += x[blockIdx.x * d + i];\n"
_USE = (
    "for (int i = threadIdx.x; i < d; i += blockDim.x) out[blockIdx.x * d + i] = x[blockIdx.x * d + i] / {};"
)
_WARP = "for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);\n"
_IDS = "const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x / 32;\n"
_READ = "block<rows | each 0..d +s; each 0..d"

STYLES = {
    "tree in shared memory": (
        "__shared__ float b[256]; const int t = threadIdx.x;\n" + _SUM + "b[t] = s; __syncthreads();\n"
        "for (int k = blockDim.x / 2; k > 0; k /= 2) { if (t < k) b[t] += b[t + k]; __syncthreads(); }\n"
        + _USE.format("b[0]")),
    "interleaved tree": (
        "__shared__ float b[256]; const int t = threadIdx.x;\n" + _SUM + "b[t] = s; __syncthreads();\n"
        "for (int k = 1; k < blockDim.x; k *= 2) {\n"
        "if (t % (2 * k) == 0) b[t] += b[t + k]; __syncthreads(); }\n"
        + _USE.format("b[0]")),
    "last warp unrolled, volatile": (
        "__shared__ volatile float b[256]; const int t = threadIdx.x;\n" + _SUM
        + "b[t] = s; __syncthreads();\n"
        "if (t < 128) b[t] += b[t + 128]; __syncthreads(); if (t < 64) b[t] += b[t + 64]; __syncthreads();\n"
        "if (t < 32) { b[t] += b[t + 32]; b[t] += b[t + 16]; b[t] += b[t + 8]; b[t] += b[t + 4];\n"
        "b[t] += b[t + 2]; b[t] += b[t + 1]; } __syncthreads();\n" + _USE.format("b[0]")),
    "warps, then the first warp": (
        "__shared__ float b[32];\n" + _IDS + _SUM + _WARP + "if (lane == 0) b[warp] = s; __syncthreads();\n"
        "if (warp == 0) { s = lane < warps ? b[lane] : 0.0f;\n" + _WARP + "if (lane == 0) b[0] = s; }\n"
        "__syncthreads();\n" + _USE.format("b[0]")),
    "warps, then every thread": (
        "__shared__ float b[8];\n" + _IDS + _SUM + _WARP + "if (lane == 0) b[warp] = s; __syncthreads();\n"
        "float t = 0.0f; for (int w = 0; w < warps; w++) t += b[w];\n" + _USE.format("t")),
    "shuffles down, one thread adds the rest": (
        "__shared__ float b[8]; __shared__ float all;\n" + _IDS + _SUM
        + "for (int o = 16; o; o /= 2) s += __shfl_down_sync(~0u, s, o);\n"
        "if (lane == 0) b[warp] = s; __syncthreads();\n"
        "if (threadIdx.x == 0) { for (int w = 1; w < warps; w++) s += b[w]; all = s; } __syncthreads();\n"
        + _USE.format("all")),
    "warps counted in floating point": (
        "__shared__ float b[32]; __shared__ float all;\n" + _IDS + _SUM + _WARP
        + "if (lane == 0) b[warp] = s; __syncthreads();\n"
        "s = threadIdx.x < blockDim.x / 32.f ? b[lane] : 0.0f;\n" + _WARP
        + "if (threadIdx.x == 0) all = s; __syncthreads();\n" + _USE.format("all")),
    "atomics on shared memory": (
        "__shared__ float all; if (threadIdx.x == 0) all = 0.0f; __syncthreads();\n" + _SUM
        + "atomicAdd(&all, s); __syncthreads();\n" + _USE.format("all")),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_style(style: str) -> None:
    assert summary(lifted(row_problem(STYLES[style]))) == _READ


def test_maximum_by_comparison() -> None:
    body = (
        "__shared__ float b[256]; const int t = threadIdx.x; float m = -1e30f;\n"
        "for (int i = t; i < d; i += 256) { float v = x[blockIdx.x * d + i]; if (v > m) m = v; }\n"
        "b[t] = m; __syncthreads();\n"
        "for (int k = 128; k > 0; k /= 2) {\n"
        "if (t < k && b[t + k] > b[t]) b[t] = b[t + k]; __syncthreads(); }\n"
        "if (t == 0) out[blockIdx.x] = b[0];"
    )
    assert summary(lifted(row_problem(body))) == "block<rows | each 0..d maxm; once 1"


def test_two_loops_into_one_sum() -> None:
    body = (
        "float s = 0.0f; const float *r = x + blockIdx.x * d;\n"
        "for (int i = threadIdx.x; i < d / 4; i += 32) {\n"
        "float4 v = ((const float4 *)r)[i]; s += v.x + v.y; }\n"
        "for (int i = d / 4 * 4 + threadIdx.x; i < d; i += 32) s += r[i];\n"
        + _WARP
        + "if (threadIdx.x == 0) out[blockIdx.x] = s;"
    )
    reading = summary(lifted(row_problem(body, block=("32",))))
    assert reading == "block<rows | each 0..d / 4 +s; each d / 4 * 4..d +s_2; let s_3; once 1"


def test_totals_in_an_array_of_each_thread() -> None:
    body = (
        "float a = 0.0f, b = 0.0f;\n"
        "for (int i = threadIdx.x; i < d; i += 32) { a += x[i]; b += x[i] * x[i]; }\n"
        "float v[2] = {a, b}; for (int k = 0; k < 2; k++)\n"
        "for (int o = 16; o > 0; o /= 2) v[k] += __shfl_xor_sync(~0u, v[k], o);\n"
        "if (threadIdx.x == 0) out[blockIdx.x] = v[0] / v[1];"
    )
    assert summary(lifted(row_problem(body, block=("32",)))) == "block<rows | each 0..d +a +b; once 1"


@pytest.mark.parametrize("mask", ["0xffffffffu", "0xffffu"])
def test_a_total_by_the_hardware(mask: str) -> None:
    body = (
        "int s = 0; for (int i = threadIdx.x; i < d; i += 32) s += (int)x[i];\n"
        f"s = __reduce_add_sync({mask}, s); if (threadIdx.x == 0) out[blockIdx.x] = s;"
    )
    problem = row_problem(body, block=("32",))
    if mask == "0xffffu":
        assert "a mask that is not just the threads of the warp" in refusal(problem)
    else:
        assert summary(lifted(problem)) == "block<rows | each 0..d +s; once 1"


@pytest.mark.parametrize("update", [
    "s = x[i] + (s + 1.0f);", "s = (s + x[i]) - 1.0f;", "s = fmaf(x[i], x[i], s) + 1.0f;", "s -= x[i];",
    "s = __fadd_rn(1.0f, s + x[i]);",
])  # fmt: skip
def test_a_sum_whatever_the_order_of_its_operands(update: str) -> None:
    body = f"float s = 0.0f; for (int i = threadIdx.x; i < d; i += 32) {{ {update} }}\n" + _WARP
    reading = summary(lifted(row_problem(body + "if (threadIdx.x == 0) out[blockIdx.x] = s;", block=("32",))))
    assert reading == "block<rows | each 0..d +s; once 1"


@pytest.mark.parametrize("update", [
    "s = x[i] - s;", "s = s * x[i] + 1.0f;", "s = fmaf(s, x[i], 1.0f);", "s = (s + x[i]) + s;",
    "s = fmaxf(s + x[i], 0.0f);",
])  # fmt: skip
def test_what_looks_like_a_sum_and_is_none(update: str) -> None:
    body = f"float s = 0.0f; for (int i = threadIdx.x; i < d; i += 32) {{ {update} }}\n" + _WARP
    reason = refusal(row_problem(body + "if (threadIdx.x == 0) out[blockIdx.x] = s;", block=("32",)))
    assert "in a way that is no sum" in reason


def test_one_element_to_a_thread() -> None:
    body = (
        "__shared__ float b[1024]; const int t = threadIdx.x; const int row = blockIdx.x;\n"
        "float v = t < d ? x[row * d + t] : 0.0f; b[t] = v * v; __syncthreads();\n"
        "for (int k = blockDim.x / 2; k > 0; k /= 2) { if (t < k) b[t] += b[t + k]; __syncthreads(); }\n"
        "if (t < d) out[row * d + t] = v * rsqrtf(b[0] / d);"
    )
    problem = row_problem(body, block=("next_pow2(d)",), d="{ min = 1, max = 1024 }")
    assert summary(lifted(problem)) == "row<rows | each 0..d +total; each 0..d"


def test_one_element_to_a_thread_needs_a_thread_for_each() -> None:
    body = (
        "float v = threadIdx.x < d ? x[blockIdx.x * d + threadIdx.x] : 0.0f; float s = v;\n"
        + _WARP
        + "if (threadIdx.x < d) out[blockIdx.x * d + threadIdx.x] = v / s;"
    )
    assert "own test allows" in refusal(row_problem(body, block=("32",)))


def test_threads_beyond_the_last_element_hold_what_they_held_before_the_branch() -> None:
    sum_of = (
        "const int t = threadIdx.x; const int row = blockIdx.x; float s = {};\n"
        "if (t < d) {{ s = 0.0f; s += x[row * d + t]; }}\n"
    )
    body = sum_of + _WARP + "if (t < d) out[row * d + t] = s;"

    def problem(held: str) -> Problem:
        return row_problem(body.format(held), block=("32",), d="{ min = 1, max = 32 }")

    assert summary(lifted(problem("0.0f"))) == "row<rows | each 0..d +total; each 0..d"
    assert "beyond the last element add '1.0f'" in refusal(problem("1.0f"))


PLANTED = {
    "the offset starts too low": (
        "32", _SUM + _WARP.replace("o = 16", "o = 8") + _USE.format("s"), "not every thread's share"),
    "the mask leaves out half the warp": (
        "32", _SUM + _WARP.replace("0xffffffffu", "0xffffu") + _USE.format("s"), "mask leaves out a thread"),
    "only one warp is added up": ("256", _SUM + _WARP + _USE.format("s"), "not every thread's share"),
    "shuffles down, but everyone reads": (
        "32", _SUM + "for (int o = 16; o > 0; o /= 2) s += __shfl_down_sync(~0u, s, o);\n" + _USE.format("s"),
        "twice"),
    "the tree misses its first step": (
        "256",
        "__shared__ float b[256]; const int t = threadIdx.x;\n" + _SUM + "b[t] = s; __syncthreads();\n"
        "for (int k = 64; k > 0; k /= 2) { if (t < k) b[t] += b[t + k]; __syncthreads(); }\n"
        + _USE.format("b[0]"),
        "not every thread's share"),
    "a barrier is missing": (
        "256",
        "__shared__ float b[256]; const int t = threadIdx.x;\n" + _SUM + "b[t] = s;\n"
        "for (int k = 128; k > 0; k /= 2) { if (t < k) b[t] += b[t + k]; __syncthreads(); }\n"
        + _USE.format("b[0]"),
        "no barrier since another warp wrote it"),
    "a barrier in a branch": (
        "256", _SUM + "if (threadIdx.x < 128) __syncthreads();\n" + _USE.format("s"),
        "a barrier where not all"),
    "shared memory is read before it is written": (
        "256", "__shared__ float b[8];\n" + _SUM + _USE.format("b[3]"), "before anything is there"),
}  # fmt: skip


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bug(bug: str) -> None:
    block, body, reason = PLANTED[bug]
    assert reason in refusal(row_problem(body, block=(block,)))
