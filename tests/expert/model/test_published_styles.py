"""What published kernels are made of, and what only looks like it: traps that must not be read so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.expert.model.kernels import lifted, refusal, row_problem, summary

_ROW = "const float *r = x + blockIdx.x * d; float *o = out + blockIdx.x * d;\n"
_SUM = "float s = 0; for (int i = threadIdx.x; i < d; i += blockDim.x) s += r[i];\n"
_PUT = "for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] / total;\n"
_CUB = "typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage temp;\n"
_TILE = "auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());\n"
_SHARED = "__shared__ float total;\n"
_FIRST = "if (threadIdx.x == 0) total = s; __syncthreads();\n"
_ROUNDS = (
    "for (int k = 0; k < (d + blockDim.x - 1) / blockDim.x; k++) { int i = k * blockDim.x + threadIdx.x;\n"
)

_HELPERS = """
template <typename T> __device__ T join(T a, T b) { return a + b; }
template <> __device__ __half join(__half a, __half b) { return __hadd(a, b); }
template <typename T> __device__ T lanes_sum(T v) {
    for (int o = 16; o > 0; o >>= 1) v = join(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
template <typename T> __device__ T block_sum(T v) {
    static __shared__ T part[32];
    v = lanes_sum<T>(v);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32.f ? part[threadIdx.x & 31] : (T)(0.0f);
    return lanes_sum<T>(v);
}
__device__ float apart(float a, float b) { return a - b; }
__device__ float lanes_worst(float v) {
    for (int o = 16; o > 0; o >>= 1) v = apart(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
"""
_LANES = (
    "for (int o = {}; o > 0; o >>= 1) {{ s.x += __shfl_xor_sync(~0u, s.x, o);"
    " s.y += __shfl_xor_sync(~0u, s.y, o); }}\n"
)
_PAIRS = (
    _ROW + "float2 s = make_float2(0.0f, 0.0f); for (int i = threadIdx.x; i < d; i += blockDim.x) {\n"
    "const float v = r[i]; s.x += v; s.y += v * v; }\n" + _LANES.format(16)
    + "extern __shared__ float2 part[]; if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;\n"
    "__syncthreads(); s = part[threadIdx.x % 8];\n" + _LANES.format(4)
    + "for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] * s.x + s.y;"
)  # fmt: skip
READ = {
    "a block reduction": _SHARED + _ROW + _SUM + _CUB + "s = Reduce(temp).Sum(s);\n" + _FIRST + _PUT,
    "its operator and how many have a value": (
        _SHARED + _ROW + _SUM + _CUB + "s = Reduce(temp).Reduce(s, cub::Sum(), blockDim.x);\n" + _FIRST
        + _PUT),
    "a reducer with a name": (
        _SHARED + _ROW + _SUM + _CUB + "Reduce all(temp); s = all.Sum(s);\n" + _FIRST + _PUT),
    "turns that are guarded piece by piece": (
        _ROW + _ROUNDS + "float v = 0; if (i < d) v = r[i]; v *= 2.0f; if (i < d) o[i] = v; }"),
    "zeros field by field": (
        "const float4 *r = (const float4 *)(x + blockIdx.x * d); float *o = out + blockIdx.x * d;\n"
        "float s = 0;"
        "for (int k = 0; k < (d / 4 + blockDim.x - 1) / blockDim.x; k++) {\n"
        "int i = k * blockDim.x + threadIdx.x; float4 v;\n"
        "v.x = 0.0f; v.y = 0.0f; v.z = 0.0f; v.w = 0.0f; if (i < d / 4) v = r[i]; float t = v.x;\n"
        "t += v.w; s += t * t; }\n" + _SHARED + _CUB + "s = Reduce(temp).Sum(s);\n" + _FIRST
        + "for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = total;"),
    "places that are declared first and said later": (
        _ROW + "for (int i = threadIdx.x; i < d / 2; i += blockDim.x) { int low, high; low = i;\n"
        "high = i + d / 2; float a, b; a = r[low]; b = r[high]; o[low] = a - b; o[high] = a + b; }"),
    "totals joined by a helper, in the way that suits the block": (
        _ROW + _SUM + "const float all = blockDim.x <= 32 ? lanes_sum(s) : block_sum(s);\n"
        + _SHARED + "if (threadIdx.x == 0) total = all; __syncthreads();\n" + _PUT),
    "a pointer that moves in the branch that uses it": (
        "const float *r = x; float *o = out; if (d > 4) { r += blockIdx.x * d; o = o + blockIdx.x * d;\n"
        "for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i]; }"),
    "a test that every block passes, around some of its work": (
        _ROW + "for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = 1.0f;\n"
        "if (blockIdx.x < rows) { for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] += r[i]; }"),
    "pairs of totals in dynamic shared memory": _PAIRS,
    "one dynamic array by two names": (
        _ROW + "extern __shared__ float a[]; extern __shared__ float b[];\n"
        "if (threadIdx.x == 0) a[0] = r[0]; __syncthreads();\n"
        "for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i] * b[0];"),
    "a lambda that takes part": (
        _ROW + "auto twice = [&](int i) { o[i] = 2.0f * r[i]; };\n"
        "for (int i = threadIdx.x; i < d; i += blockDim.x) twice(i);"),
}  # fmt: skip
TRAPS = {
    "one dynamic array by two names of different types": (
        _PAIRS.replace("if (threadIdx.x % 32", "extern __shared__ float other[]; other[threadIdx.x] = 1.0f;\n"
                       "if (threadIdx.x % 32"), "is the same shared memory as 'part'"),
    "a dynamic array that is written by another name": (
        _ROW + "extern __shared__ float a[]; extern __shared__ float b[];\n"
        "if (threadIdx.x == 0) a[0] = r[0]; __syncthreads(); b[0] = r[1]; __syncthreads();\n"
        "for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = threadIdx.x * a[0];", ""),
    "a total that only the first thread has": (
        _ROW + _SUM + _CUB + "const float total = Reduce(temp).Sum(s);\n" + _PUT,
        "only the first thread has"),
    "a block larger than the reduction was told": (
        _SHARED + _ROW + _SUM + _CUB.replace("256", "128") + "s = Reduce(temp).Sum(s);\n" + _FIRST + _PUT,
        "in a block of 128"),
    "a reduction over some of the threads": (
        _SHARED + _ROW + _SUM + _CUB + "s = Reduce(temp).Sum(s, 100);\n" + _FIRST + _PUT, "over 100 of 256"),
    "a reduction in a branch": (
        _SHARED + _ROW + _SUM + _CUB + "if (threadIdx.x < 128) s = Reduce(temp).Sum(s);\n" + _FIRST + _PUT,
        "not called by all threads"),
    "an operator of the file": (
        _SHARED + _ROW + _SUM + _CUB + "s = Reduce(temp).Reduce(s, Mine());\n" + _FIRST + _PUT, "Reduce"),
    "a tile's total taken for the block's": (
        _ROW + _SUM + _TILE + "const float total = cooperative_groups::reduce(tile, s, "
        "cooperative_groups::plus<float>());\n" + _PUT, ""),
    "a helper that joins something else": (
        _ROW + _SUM + "const float all = lanes_worst(s);\n" + _SHARED
        + "if (threadIdx.x == 0) total = all; __syncthreads();\n" + _PUT, ""),
    "a pointer that moved in a branch before": (
        _ROW + "if (threadIdx.x % 2 == 0) r += 1;\n"
        "for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i];", "the pointer 'r' moves"),
    "a pointer that moves from turn to turn": (
        _ROW + "for (int i = threadIdx.x; i < d; i += blockDim.x) { if (i > 3) r += 1; o[i] = r[0]; }",
        "the pointer 'r' moves"),
    "a test that not every block passes, around some of its work": (
        _ROW + "for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = 1.0f;\n"
        "if (blockIdx.x < d) { for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i]; }",
        "is within its bound, which is tested elsewhere"),
    "a test of a number that is cut off": (
        _ROW + "for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = 1.0f;\n"
        "if (blockIdx.x < (unsigned char)rows) {\n"
        "for (int i = threadIdx.x; i < d; i += blockDim.x) o[i] = r[i]; }", ""),
    "places that are said again for the next turn": (
        _ROW + "int low; low = threadIdx.x; for (int i = threadIdx.x; i < d; i += blockDim.x) {\n"
        "int next; next = low + 1; o[low] = r[i] + o[next]; low = next; }", ""),
    "a field that is no zero": (
        READ["zeros field by field"].replace("v.w = 0.0f;", "v.w = 1.0f;"), ""),
    "a field that is not set": (READ["zeros field by field"].replace("v.w = 0.0f;", ""), ""),
    "a turn that adds what was not loaded": (
        _SHARED + _ROW + "float s = 0;\n" + _ROUNDS + "float v = 1; if (i < d) v = r[i]; s += v; }\n" + _CUB
        + "s = Reduce(temp).Sum(s);\n" + _FIRST + _PUT, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_read(case: str) -> None:
    assert summary(lifted(row_problem(READ[case], before=_HELPERS))).count("each 0..d") >= 1


@pytest.mark.parametrize("case", TRAPS)
def test_traps(case: str) -> None:
    body, reason = TRAPS[case]
    assert reason in refusal(row_problem(body, before=_HELPERS + "struct Mine { float a; };"))


_ON = "#if CUDART_VERSION >= 12000\n#define WAY 1\n#else\n#define WAY 2\n#endif\n"
_MAP = "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < rows * d) out[i] = "
_HINT = "__device__ void hint() {\n#if WAY == 1\ncudaTriggerProgrammaticLaunchCompletion();\n#endif\n}\n"


def test_a_version_that_changes_nothing_of_the_kernel() -> None:
    problem = row_problem(f"hint(); {_MAP} x[i];", grid=["ceildiv(rows * d, 256)"], before=_ON + _HINT)
    assert summary(lifted(problem)) == "| each 0..rows * d"


def test_a_version_that_changes_the_kernel() -> None:
    problem = row_problem(f"{_MAP} x[i] * WAY;", grid=["ceildiv(rows * d, 256)"], before=_ON)
    assert "depends on what a header defines" in refusal(problem)
    by_nvcc = replace(problem, kernel=replace(problem.kernel, compiler="nvcc"))
    assert summary(lifted(by_nvcc)) == "| each 0..rows * d"


def test_a_helper_that_a_version_changes() -> None:
    helper = "__device__ float scaled(float v) { return v * WAY; }\n"
    problem = row_problem(f"{_MAP} scaled(x[i]);", grid=["ceildiv(rows * d, 256)"], before=_ON + helper)
    assert "depends on what a header defines" in refusal(problem)


_GRID = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d; i += gridDim.x * blockDim.x) {\n"
_MOVED = _GRID + "x = x + i / d * d; out[i] = x[i % d]; }"


def test_a_loop_that_no_thread_goes_round_again() -> None:
    problem = row_problem(_MOVED, grid=["ceildiv(rows * d, 256)"])
    assert summary(lifted(problem)) == "| each 0..rows * d"


@pytest.mark.parametrize(
    ("body", "grid"),
    [
        (_MOVED, "min(ceildiv(rows * d, 256), 65535)"),  # some threads go round again
        (_MOVED, "ceildiv(rows * d, 512)"),
        (_MOVED.replace("i += gridDim.x * blockDim.x", "i += blockDim.x"), "ceildiv(rows * d, 256)"),
        (_MOVED.replace("out[i] =", "if (x[0] > 0) break; out[i] ="), "ceildiv(rows * d, 256)"),
    ],
)
def test_loops_that_some_thread_may_go_round_again(body: str, grid: str) -> None:
    assert "the pointer 'x' moves" in refusal(row_problem(body, grid=[grid]))


@pytest.mark.parametrize(
    ("most", "test", "place", "is_read"),
    [
        (256, "threadIdx.x < d", "i / rows", True),
        (257, "threadIdx.x < d", "i / rows", False),  # a block of 256 does not fill it
        (256, "threadIdx.x <= d", "i / rows", False),
        (256, "threadIdx.x < d - 1", "i / rows", False),
        (256, "threadIdx.x < d", "i / rows + 1", False),  # beyond the last
        (256, "threadIdx.x < d", "i / d", False),
        (256, "threadIdx.x < rows", "i / d", False),  # rows may be more than threads
    ],
)
def test_a_table_that_as_many_threads_fill(most: int, test: str, place: str, is_read: bool) -> None:
    body = (
        f"__shared__ float table[1024]; if ({test}) table[threadIdx.x] = x[threadIdx.x] + 1.0f;\n"
        "__syncthreads(); for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d;\n"
        f"i += gridDim.x * blockDim.x) out[i] = x[i] * table[{place}];"
    )
    problem = row_problem(body, d=f"{{ min = 1, max = {most} }}", grid=("min(ceildiv(rows * d, 256), 99)",))
    if is_read:
        assert summary(lifted(problem)) == "| each 0..rows * d"
    else:
        refusal(problem)
