"""Tests by thread and size as loops, loops with two ends, atomics of one thread; what only looks like it."""

from __future__ import annotations

import pytest

from tests.expert.model.kernels import lifted, refusal, row_problem, summary

_ROW = "const float *r = x + (long long)blockIdx.x * d; float *o = out + (long long)blockIdx.x * d;\n"
_SUM = "float s = 0.0f; for (int i = threadIdx.x; i < d / 4 * 4; i += blockDim.x) s += r[i];\n"
_TREE = (
    "__shared__ float part[256]; part[threadIdx.x] = s; __syncthreads();\n"
    "for (int b = 128; b > 0; b >>= 1) { if (threadIdx.x < b) part[threadIdx.x] += part[threadIdx.x + b];\n"
    "__syncthreads(); }\n"
)
_PUT = "for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] - part[0];"
_TAIL = " s += r[d / 4 * 4 + threadIdx.x];\n"


@pytest.mark.parametrize(
    "test", ["threadIdx.x < d % 4", "threadIdx.x < d - d / 4 * 4", "d % 4 > threadIdx.x"]
)
def test_a_tail_by_a_test_is_a_loop_of_the_team(test: str) -> None:
    model = lifted(row_problem(_ROW + _SUM + f"if ({test})" + _TAIL + _TREE + _PUT))
    assert summary(model) == "block<rows | each 0..d / 4 * 4 +s; each 0..d % 4 +s_2; let part; each 0..d"
    assert any("fewer threads" in fact.what for fact in model.facts)


@pytest.mark.parametrize("test", ["threadIdx.x < d % 300", "threadIdx.x < d", "threadIdx.x + 5 < d % 4"])
def test_one_that_lets_more_through_than_there_are_threads_is_none(test: str) -> None:
    assert refusal(row_problem(_ROW + _SUM + f"if ({test})" + _TAIL + _TREE + _PUT))


def test_of_two_ends_the_nearer_one_holds() -> None:
    loop = _SUM.replace("i < d / 4 * 4;", "i < d && i < rows;")
    model = lifted(row_problem(_ROW + loop + _TREE + _PUT))
    assert summary(model) == "block<rows | each 0..min(d, rows) +s; each 0..d"


def test_what_one_thread_of_a_team_adds_is_done_once() -> None:
    add = "if (threadIdx.x == 0) atomicAdd(&out[0], part[0]);"
    model = lifted(row_problem(_ROW + _SUM + _TREE + add))
    assert summary(model) == "block<rows | each 0..d / 4 * 4 +s; once 1"
    assert [access.kind for access in model.accesses if access.array == "out"] == ["atomic"]


@pytest.mark.parametrize(
    "add",
    [
        "atomicAdd(&out[0], part[0]);",
        "if (threadIdx.x % 32 == 0) atomicAdd(&out[0], part[0]);",
        "if (threadIdx.x == 0) atomicAdd(&out[0], s);",
        "if (threadIdx.x == 0) atomicExch(&out[0], part[0]);",
        "if (threadIdx.x == 0) out[1] = atomicAdd(&out[0], part[0]);",
    ],
)
def test_what_several_add_or_what_comes_back_is_refused(add: str) -> None:
    assert refusal(row_problem(_ROW + _SUM + _TREE + add))


def test_a_running_mean_is_refused_and_called_so() -> None:
    mean = (
        "float mean = 0.0f, squares = 0.0f; int count = 0;\n"
        "for (int i = threadIdx.x; i < d; i += blockDim.x) { count++; const float e = r[i] - mean;\n"
        "mean += e / count; squares += e * (r[i] - mean); }\n"
    )
    words = refusal(row_problem(_ROW + mean + "float s = mean;\n" + _TREE + _PUT))
    assert "carried from one element to the next" in words
    assert "a running mean (Welford's)" in words
