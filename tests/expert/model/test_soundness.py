"""What must not be read as independent, and what is read only as far as it goes."""

from __future__ import annotations

import pytest

from tests.expert.model.kernels import lifted, refusal, row_problem, summary
from tunesmith.csource.printing import print_expr, print_statements
from tunesmith.expert.model.kernel import Each, Let, Once

_FLAT = "const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
_ALL = ("ceildiv(rows * d, 256)",)

REFUSED = {
    "neighbours in place": (
        _FLAT + "if (i < rows * d - 1) out[i] = out[i + 1] + x[i];", _ALL, "depend on each other"),
    "a row turned round in place": (
        "const int r = blockIdx.x * d;\n"
        "for (int i = threadIdx.x; i < d; i += 256) out[r + i] = out[r + d - 1 - i];",
        ("rows",), "depend on each other"),
    "global memory between threads": (
        "const int r = blockIdx.x * d;\n"
        "for (int i = threadIdx.x; i < d; i += 256) out[r + i] = x[r + i];\n__syncthreads();\n"
        "float s = 0; for (int i = threadIdx.x; i < d; i += 256) s += out[r + d - 1 - i];\n"
        "for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);",
        ("rows",), "passes values between threads"),
    "a carried value that is no total": (
        "float a = 0; for (int i = threadIdx.x; i < d; i += 256) { a = a * 0.5f + x[i]; out[i] = a; }",
        ("rows",), "carried from one element to the next"),
    "a guard that does not guard everything": (
        "const int row = blockIdx.x;\n"
        "if (row < rows / 2) for (int i = threadIdx.x; i < d; i += 256) out[row * d + i] = x[row * d + i];\n"
        "if (threadIdx.x == 0) out[row * d] = 1.0f;", ("rows",), "whether or not 'row' is within"),
    "a launch that does not reach the bound": (
        "const int row = blockIdx.x;\nif (row >= rows) return;\n"
        "for (int i = threadIdx.x; i < d; i += 256) out[row * d + i] = x[row * d + i];",
        ("min(rows, 64)",), "own test allows"),
    "totals over all blocks": (
        "float s = 0; for (int i = threadIdx.x; i < d; i += 256) s += x[blockIdx.x * d + i];\n"
        "atomicAdd(out, s);", ("rows",), "atomicAdd on global memory"),
    "a thread number in the body": (
        "for (int i = threadIdx.x; i < d; i += 256) out[blockIdx.x * d + i] = x[i] * threadIdx.x;",
        ("rows",), "the loop reads 'threadIdx.x'"),
    "a branch by thread and size": (
        "float s = 0; for (int i = threadIdx.x; i < d; i += 256) s += x[i];\n"
        "if (threadIdx.x < d / 2) s = 0; __syncthreads(); if (threadIdx.x == 0) out[blockIdx.x] = s;",
        ("rows",), "the thread and on a size"),
    "a branch by thread and size, through a variable": (
        "const int left = d - (int)threadIdx.x; float s = 0;\n"
        "for (int i = threadIdx.x; i < d; i += 256) s += x[i];\n"
        "if (left > 8) s = 0; __syncthreads(); if (threadIdx.x == 0) out[blockIdx.x] = s;",
        ("rows",), "the thread and on a size"),
    "a pointer that moves": (
        "const float *p = x; for (int i = threadIdx.x; i < d; i += 256) { out[i] = *p; p += 256; }",
        ("rows",), "the pointer 'p' moves"),
    "a pointer that moves inside an expression": (
        "const float *p = x; for (int i = threadIdx.x; i < d; i += 256) out[i] = *p++;",
        ("rows",), "the pointer 'p' moves"),
    "an unsigned thread number below zero": (
        "for (int i = threadIdx.x; i < d; i += 256) out[blockIdx.x * d + i] = x[i];\n"
        "if (threadIdx.x - 1 > 300u) out[blockIdx.x * d] = 1;",
        ("rows",), "an unsigned number below zero"),
    "inline assembly": (
        _FLAT + "if (i < rows * d) { float v;\n"
        'asm("ld.volatile.global.f32 %0, [%1];" : "=f"(v) : "l"(x + i)); out[i] = v; }',
        _ALL, "not understood"),
    "a number in assembly": (
        _FLAT + 'unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); if (i < rows * d) out[i] = x[i] * l;',
        _ALL, "line 4: 'asm"),
    "a lambda that asks for its thread": (
        _FLAT + "auto f = [&](float a) { return a * clock(); }; if (i < rows * d) out[i] = f(x[i]);",
        _ALL, "clock is called, which depends on the time"),
    "a lambda": (
        _FLAT + "auto f = [k = 2.0f](float a) { return a * k; }; if (i < rows * d) out[i] = f(x[i]);",
        _ALL, "f, a variable, is called"),
    "a lambda that keeps an earlier value": (
        _FLAT + "float s = 1; auto f = [=](float a) { return a * s; };\n"
        "s = 2; if (i < rows * d) out[i] = f(x[i]);",
        _ALL, "a lambda keeps an earlier value of s"),
    "a variable of the file": (
        _FLAT + "if (i < rows * d) { seen = i; out[i] = x[i]; }", _ALL, "'seen', a variable of the file"),
    "a value carried over the whole grid": (
        "float p = 0; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * d;\n"
        "    i += gridDim.x * blockDim.x) { out[i] = x[i] + p; p = x[i]; }",
        ("64",), "'p' is carried from one element to the next"),
    "a function of another file": (
        _FLAT + "if (i < rows * d) out[i] = warp_sum(x[i]);", _ALL, "warp_sum is called, whose text is not"),
}  # fmt: skip

# What is called -> (text before the kernel, what is stored, what must be said).
OUT_OF_SIGHT = {
    "an operator": (
        "struct R { __device__ float operator()(float a) const { return a + __shfl_xor_sync(~0u, a, 1); } };",
        "R{}(x[i])", "is not understood"),
    "a method": (
        "struct R { __device__ float go(float a) const { return a + __shfl_xor_sync(~0u, a, 1); } };\n"
        "__device__ R made() { return R(); }",
        "made().go(x[i])", "a branch depends on the thread"),
    "a function that could not be read": (
        "template <typename T, typename... Rest> __device__ T joined(T a, Rest... rest) {\n"
        "    return a + __shfl_xor_sync(~0u, a, 1); }",
        "joined(x[i], 1)", "a function could not be read"),
    "an object that is made and called at once": (
        "template <typename T> struct Add { __device__ T operator()(T a, T b) const { return a + b; } };\n"
        "template <typename T, template <typename> class Op> __device__ T joined(T a) {\n"
        "    return Op<T>()(a, __shfl_xor_sync(~0u, a, 1)); }",
        "joined<float, Add>(x[i])", "it uses __shfl_xor_sync"),
    "an object that is called": (
        "template <typename T> struct Add { __device__ T operator()(T a, T b) const { return a + b; } };\n"
        "template <typename T, template <typename> class Op> __device__ T joined(T a) {\n"
        "    Op<T> op; return op(a, __shfl_xor_sync(~0u, a, 1)); }",
        "joined<float, Add>(x[i])", ""),
    "a function given as a template argument": (
        "__device__ float pair(float a) { return a + __shfl_xor_sync(~0u, a, 1); }\n"
        "template <float (*F)(float)> __device__ float by(float a) { return F(a); }",
        "by<pair>(x[i])", "calls __shfl_xor_sync"),
    "an operator by its sign": (
        "struct V { float a; __device__ float operator+(V b) const { return a + threadIdx.x; } };\n"
        "__device__ float sum(float a) { V v; v.a = a; return v + v; }",
        "sum(x[i])", "a structure of the file uses threadIdx"),
    "a free operator": (
        "struct V { float a; };\n__device__ float operator+(V a, V b) { return a.a + clock(); }\n"
        "__device__ float sum(float a) { V v; v.a = a; return v + v; }",
        "sum(x[i])", "an operator of the file uses clock"),
    "a conversion": (
        "struct V { float a; __device__ operator float() const { return a * clock(); } };",
        "(float)V{x[i]}", "clock is called, which depends on the time"),
    "a parameter's default": (
        "__device__ float scaled(float a, int k = threadIdx.x) { return a * k; }",
        "scaled(x[i])", "its head uses threadIdx"),
    "assembly in a function": (
        '__device__ unsigned lane() { unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); return l; }',
        "x[i] * lane()", "'asm"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    body, grid, reason = REFUSED[case]
    assert reason in refusal(row_problem(body, grid=grid, before="__device__ int seen;"))


@pytest.mark.parametrize("case", OUT_OF_SIGHT)
def test_what_is_called_may_hide_no_cooperation(case: str) -> None:
    before, value, reason = OUT_OF_SIGHT[case]
    body = _FLAT + f"if (i < rows * d) out[i] = {value};"
    assert reason in refusal(row_problem(body, grid=_ALL, before=before))


def test_assembly_that_only_computes_is_a_helper_like_any() -> None:
    before = (
        "__device__ int rounded(float v) { unsigned r;\n"
        'asm volatile("{.reg .f32 t;\\n\\tadd.f32 t, %1, %1;\\n"'
        '" cvt.rni.sat.s8.f32 %0, t;}" : "=r"(r) : "f"(v));\n'
        "return (int)(signed char)r; }"
    )
    body = _FLAT + "if (i < rows * d) out[i] = rounded(x[i]);"
    assert summary(lifted(row_problem(body, grid=_ALL, before=before))) == "| each 0..rows * d"


def test_an_index_that_only_looks_flat_stays_as_it_is() -> None:
    body = _FLAT + "const int j = i < d ? i : i - d; if (i < rows * d) out[i] = x[j];"
    kernel = lifted(row_problem(body, grid=_ALL))
    step = kernel.steps[0]
    assert isinstance(step, Each)
    assert "x[i < d ? i : i - d]" in print_statements(step.body)


def test_a_bound_on_what_is_no_index_of_its_own_stays_a_test() -> None:
    body = (
        "const int i = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;\n"
        "if (i < rows * d) out[i] = x[i];"
    )
    step = lifted(row_problem(body, grid=("ceildiv(rows * d, 512)", "2"))).steps[0]
    assert isinstance(step, Each)
    assert "< rows * d" in print_statements(step.body)


def test_a_second_bound_stays_a_test() -> None:
    body = _FLAT + "if (i >= rows * d) return;\nconst int j = i * 2; if (j < d) out[i] = x[i];"
    step = lifted(row_problem(body, grid=_ALL)).steps[0]
    assert isinstance(step, Each)
    assert "if ((int)(i * 2) < d)" in print_statements(step.body)


def test_an_axis_of_one_block_counts_nothing() -> None:
    body = (
        "const int i = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;\n"
        "if (i < rows * d) out[i] = x[i];"
    )
    assert summary(lifted(row_problem(body, grid=_ALL))) == "| each 0..rows * d"


_ROW = "const int r = blockIdx.x * d;\n"
_SHIFTED = {
    "by the block, with a break": (
        _ROW + "float s = 0; for (int b = 0; b < d; b += blockDim.x) {\n"
        "    const int i = b + threadIdx.x; if (i >= d) break; s += x[r + i]; }\n"
        "for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);\n"
        "for (int b = 0; b < d; b += blockDim.x) {\n"
        "    const int i = b + threadIdx.x; if (i >= d) return; out[r + i] = x[r + i] * s; }",
        ("rows",), ("32",), "block<rows | each 0..d +s; each 0..d"),
    "by the block, no name for the element": (
        _ROW + "for (int b = 0; b < d; b += 256)\n"
        "    if (b + threadIdx.x < d) out[r + b + threadIdx.x] = x[r + b + threadIdx.x];",
        ("rows",), ("256",), "block<rows | each 0..d"),
    "by rounds": (
        _ROW + "const int rounds = (d + 255) / 256; for (int k = 0; k < rounds; k++) {\n"
        "    const int i = k * 256 + threadIdx.x; if (i < d && x[r + i] > 0) out[r + i] = x[r + i]; }",
        ("rows",), ("256",), "block<rows | each 0..d"),
    "four to a thread, a block apart": (
        "const int first = blockIdx.x * (blockDim.x * 4) + threadIdx.x;\n"
        "for (int k = 0; k < 4; k++) { const int i = first + k * blockDim.x;\n"
        "    if (i < rows * d) out[i] = x[i]; }",
        ("ceildiv(rows * d, 1024)",), ("256",), "| each 0..rows * d"),
    "four to a thread, side by side": (
        "const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;\n"
        "for (int k = 0; k < 4; k++) { if (first + k >= rows * d) break; out[first + k] = x[first + k]; }",
        ("ceildiv(rows * d, 1024)",), ("256",), "| each 0..rows * d"),
}  # fmt: skip


@pytest.mark.parametrize("case", _SHIFTED)
def test_loops_that_count_the_same_for_all_threads(case: str) -> None:
    body, grid, block, expected = _SHIFTED[case]
    assert summary(lifted(row_problem(body, grid=grid, block=block))) == expected


def test_several_to_a_thread_need_a_launch_that_comes_to_all() -> None:
    body = _SHIFTED["four to a thread, a block apart"][0]
    assert "own test allows" in refusal(row_problem(body, grid=("ceildiv(rows * d, 2048)",)))


def test_several_to_a_thread_that_use_the_thread_as_well_stay_as_they_are() -> None:
    body = (
        "const int first = blockIdx.x * (blockDim.x * 4) + threadIdx.x;\n"
        "for (int k = 0; k < 4; k++) { const int i = first + k * blockDim.x;\n"
        "    if (i < rows * d) out[i] = x[threadIdx.x]; }"
    )
    kernel = lifted(row_problem(body, grid=("ceildiv(rows * d, 1024)",)))
    assert summary(kernel) == "block<ceildiv(rows * d, 1024) | each 0..256"


def test_several_to_a_thread_that_hand_on_a_value_stay_as_they_are() -> None:
    body = (
        "float p = 0; const int first = blockIdx.x * (blockDim.x * 4) + threadIdx.x;\n"
        "for (int k = 0; k < 4; k++) { const int i = first + k * blockDim.x;\n"
        "    if (i < rows * d) { out[i] = x[i] + p; p = x[i]; } }"
    )
    kernel = lifted(row_problem(body, grid=("ceildiv(rows * d, 1024)",)))
    assert summary(kernel) == "block<ceildiv(rows * d, 1024) | each 0..256"


def test_rounds_that_are_too_few_stay_as_they_are() -> None:
    body = _ROW + (
        "for (int k = 0; k < d / 256; k++) {\n"
        "    const int i = k * 256 + threadIdx.x; if (i < d) out[r + i] = x[r + i]; }"
    )
    assert summary(lifted(row_problem(body))) == "block<rows | each 0..256"


def test_both_sides_of_a_branch_by_size_remain() -> None:
    body = (
        "const int r = blockIdx.x * d;\n"
        "if (d % 4 == 0) { for (int i = threadIdx.x; i < d / 4; i += 256)\n"
        "    ((float4 *)(out + r))[i] = ((const float4 *)(x + r))[i]; }\n"
        "else { for (int i = threadIdx.x; i < d; i += 256) out[r + i] = x[r + i]; }"
    )
    assert (
        summary(lifted(row_problem(body))) == "block<rows | when d % 4 == 0 {each 0..d / 4} else {each 0..d}"
    )


def test_wide_steps_become_units() -> None:
    body = (
        "for (int i = (blockIdx.x * 256 + threadIdx.x) * 4; i < rows * d; i += gridDim.x * 1024)\n"
        "    *(float4 *)(out + i) = *(const float4 *)(x + i);"
    )
    kernel = lifted(row_problem(body, grid=("64",)))
    assert summary(kernel) == "| each 0..(rows * d + 3) / 4"
    assert [a.stride for a in kernel.accesses] == [1, 1]


def test_integers_keep_their_width() -> None:
    body = (
        "const long long at = (long long)blockIdx.x * d;\n"
        "for (int i = threadIdx.x; i < d; i += 256) out[at + i] = x[at + i];"
    )
    step = lifted(row_problem(body)).steps[0]
    assert isinstance(step, Each)
    assert "out[(long long)block * d + i]" in print_statements(step.body)


def test_a_loop_with_cooperation_inside_runs_in_turn() -> None:
    body = (
        "for (int h = 0; h < rows; h++) { float s = 0;\n"
        "for (int i = threadIdx.x; i < d; i += 32) s += x[(blockIdx.x * rows + h) * d + i];\n"
        "for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);\n"
        "if (threadIdx.x == 0) out[blockIdx.x * rows + h] = s; }"
    )
    kernel = lifted(row_problem(body, grid=("4",), block=("32",)))
    assert summary(kernel) == "block<4 | again h {each 0..d +s; once 1}"


def test_an_online_softmax_of_one_thread_is_two_loops() -> None:
    body = (
        "const int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;\n"
        "float m = -INFINITY, l = 0.0f;\n"
        "for (int i = 0; i < d; i++) { float v = x[row * d + i]; float n = fmaxf(m, v);\n"
        "    l = l * expf(m - n) + expf(v - n); m = n; }\n"
        "for (int i = 0; i < d; i++) out[row * d + i] = expf(x[row * d + i] - m) / l;"
    )
    kernel = lifted(row_problem(body, grid=("ceildiv(rows, 64)",), block=("64",)))
    assert summary(kernel) == "row<rows | each 0..d maxm; each 0..d +l_sum; let l; each 0..d"


def test_what_only_resembles_an_online_softmax_is_left_alone() -> None:
    body = (
        "const int row = blockIdx.x * blockDim.x + threadIdx.x; if (row >= rows) return;\n"
        "float m = -INFINITY, l = 0.0f;\n"
        "for (int i = 0; i < d; i++) { float v = x[row * d + i]; float n = fmaxf(m, v);\n"
        "    l = l * expf(n - m) + expf(v - n); m = n; }\n"
        "out[row] = l;"
    )
    kernel = lifted(row_problem(body, grid=("ceildiv(rows, 64)",), block=("64",)))
    assert (kernel.team, summary(kernel)) == ("grid", "| each 0..rows")


def test_shared_memory_declared_as_bytes() -> None:
    body = (
        "extern __shared__ char raw[]; float *b = (float *)raw; const int r = blockIdx.x * d;\n"
        "float *row = b + blockDim.x; float s = 0.0f;\n"
        "for (int i = threadIdx.x; i < d; i += blockDim.x) { row[i] = x[r + i]; s += row[i]; }\n"
        "b[threadIdx.x] = s; __syncthreads();\n"
        "for (int k = 128; k > 0; k /= 2) {\n"
        "    if (threadIdx.x < k) b[threadIdx.x] += b[threadIdx.x + k]; __syncthreads(); }\n"
        "for (int i = threadIdx.x; i < d; i += blockDim.x) out[r + i] = row[i] / b[0];"
    )
    kernel = lifted(row_problem(body))
    assert summary(kernel) == "block<rows | each 0..d +s; each 0..d"
    assert [(row.type.base, row.width) for row in kernel.staged] == [("float", 1)]


def test_a_load_under_a_condition_stays_under_it() -> None:
    body = (
        "const int row = blockIdx.x; const int at = (int)x[row]; float base = 0.0f;\n"
        "if (at >= 0) base = x[at];\n"
        "for (int i = threadIdx.x; i < d; i += 256) out[row * d + i] = x[row * d + i] - base;"
    )
    kernel = lifted(row_problem(body))
    let = kernel.steps[0]
    assert isinstance(let, Let)
    assert "const float base = at >= 0 ? (float)x[at] : 0.0f;" in print_statements(let.body)


def test_a_turn_must_not_live_on_what_the_last_left_in_shared_memory() -> None:
    body = (
        "__shared__ float last; if (threadIdx.x == 0) last = 0.0f; __syncthreads();\n"
        "for (int h = 0; h < rows; h++) { float s = 0;\n"
        "for (int i = threadIdx.x; i < d; i += 32) s += x[h * d + i] * last;\n"
        "for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);\n"
        "__syncthreads(); if (threadIdx.x == 0) { last = s; out[h] = s; } __syncthreads(); }"
    )
    assert "an earlier turn" in refusal(row_problem(body, grid=("1",), block=("32",)))


def test_atomics_that_every_thread_repeats() -> None:
    body = (
        "for (int i = threadIdx.x; i < d; i += 32) out[i] = x[i]; float n = 0;\n"
        "for (int j = 0; j < d; j++) atomicAdd(&out[j], x[j]);"
    )
    assert "updates the same elements" in refusal(row_problem(body, grid=("1",), block=("32",)))


def test_an_integer_constant_in_a_float_variable_divides_as_a_float() -> None:
    body = (
        "float half = 1; half = half / d;\n"
        "for (int i = threadIdx.x; i < d; i += 256) out[blockIdx.x * d + i] = half;"
    )
    let = lifted(row_problem(body)).steps[0]
    assert isinstance(let, Let)
    assert print_statements(let.body) == "const float half = 1.0f / d;\n"


def test_a_constant_that_a_float_must_round_keeps_its_variable() -> None:
    body = (
        "float tenth = 0; tenth = 0.1;\n"
        "for (int i = threadIdx.x; i < d; i += 256) out[blockIdx.x * d + i] = x[i] * tenth;"
    )
    let = lifted(row_problem(body)).steps[0]
    assert isinstance(let, Let)
    assert print_statements(let.body) == "const float tenth = 0.1;\n"


def test_several_elements_of_a_thread_without_a_test_of_their_own() -> None:
    body = (
        "const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;\n"
        "for (int k = 0; k < 4; k++) out[first + k] = x[first + k];"
    )
    kernel = lifted(row_problem(body, grid=("rows",), block=("8",), d="{ one_of = [32] }"))
    assert summary(kernel) == "| each 0..rows * 8"


def test_vectors_and_what_is_left_of_them_over_the_whole_grid() -> None:
    body = _FLAT + (
        "const int n = rows * d, step = blockDim.x * gridDim.x;\n"
        "for (int k = i; k < n / 4; k += step) ((float4 *)out)[k] = ((const float4 *)x)[k];\n"
        "for (int k = n / 4 * 4 + i; k < n; k += step) out[k] = x[k];"
    )
    kernel = lifted(row_problem(body, grid=("min(rows, 1024)",)))
    assert summary(kernel) == "| each 0..rows * d / 4; each 0..rows * d - rows * d / 4 * 4"
    assert [a.stride for a in kernel.accesses] == [1, 1, 1, 1]


@pytest.mark.parametrize("flat", [True, False])
def test_elements_that_one_thread_stores_twice_in_order(flat: bool) -> None:
    """Loops over other ranges are shared out otherwise: the order would be lost."""
    start, by, end = ("threadIdx.x", "256", "d") if not flat else (
        "blockIdx.x * blockDim.x + threadIdx.x", "gridDim.x * blockDim.x", "rows * d")  # fmt: skip
    body = ("float *row = out;\n" if flat else "float *row = out + blockIdx.x * d;\n") + (
        f"for (int i = {start}; i < {end}; i += {by}) row[i] = 0.0f;\n"
        f"for (int i = {start}; i < {end} / 3; i += {by}) row[i] = x[i];"
    )
    grid = ("min(rows, 64)",) if flat else ("rows",)
    assert "passes values between threads" in refusal(row_problem(body, grid=grid))


_EACH_ROW = "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= rows) return;\n"
_IN_MEMORY = {
    "set before": (
        "out[i * d] = 0; int j; for (j = 0; j < d; j++) out[i * d] += x[i * d + j];",
        "i<rows | each 0..d +out_here; once 1"),
    "added to": (
        "for (int j = 0; j < d; j++) out[i * d] += x[i * d + j];", "i<rows | each 0..d +out_here; once 1"),
    "the largest": (
        "out[i * d] = -INFINITY; for (int j = 0; j < d; j++) out[i * d] = fmaxf(out[i * d], x[i * d + j]);",
        "i<rows | each 0..d maxout_here; once 1"),
    "read as well": (
        "for (int j = 0; j < d; j++) if (out[i * d] < 9) out[i * d] += x[i * d + j];", "| each 0..rows"),
    "the element moves": (
        "for (int j = 0; j < d; j++) out[i * d + j % 2] += x[i * d + j];", "| each 0..rows"),
}  # fmt: skip


@pytest.mark.parametrize("case", _IN_MEMORY)
def test_totals_in_memory(case: str) -> None:
    body, expected = _IN_MEMORY[case]
    kernel = lifted(row_problem(_EACH_ROW + body, grid=("ceildiv(rows, 64)",), block=("64",)))
    assert summary(kernel) == expected


def test_totals_in_a_structure() -> None:
    body = _ROW + (
        "float2 s = make_float2(0.0f, 0.0f);\n"
        "for (int i = threadIdx.x; i < d; i += 256) { float v = x[r + i]; s.x += v; s.y += v * v; }\n"
        "for (int o = 16; o > 0; o /= 2) {\n"
        "    s.x += __shfl_xor_sync(~0u, s.x, o); s.y += __shfl_xor_sync(~0u, s.y, o); }\n"
        "__shared__ float2 all[8]; if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = s; __syncthreads();\n"
        "s = threadIdx.x % 32 < 8 ? all[threadIdx.x % 32] : make_float2(0.0f, 0.0f);\n"
        "for (int o = 16; o > 0; o /= 2) {\n"
        "    s.x += __shfl_xor_sync(~0u, s.x, o); s.y += __shfl_xor_sync(~0u, s.y, o); }\n"
        "for (int i = threadIdx.x; i < d; i += 256) out[r + i] = (x[r + i] - s.x) * s.y;"
    )
    assert summary(lifted(row_problem(body))) == "block<rows | each 0..d +s_x +s_y; each 0..d"


def test_fields_that_are_set_from_each_other() -> None:
    body = _FLAT + (
        "if (i >= rows * d) return;\n"
        "float2 s = make_float2(x[i], 2.0f); s = make_float2(s.y, s.x); out[i] = s.x - s.y;"
    )
    step = lifted(row_problem(body, grid=_ALL)).steps[0]
    assert isinstance(step, Each)
    text = print_statements(step.body)
    assert text.index("= s_y;") < text.index("= s_x;") < text.index("\ns_x = ")


def test_structures_that_are_loaded_whole_stay_whole() -> None:
    body = _FLAT + "if (i < rows * d / 2) { float2 v = ((const float2 *)x)[i]; ((float2 *)out)[i] = v; }"
    kernel = lifted(row_problem(body, grid=("ceildiv(rows * d, 512)",)))
    assert [(a.array, a.stride) for a in kernel.accesses] == [("x", 1), ("out", 1)]


def test_a_narrow_total_that_starts_somewhere_wraps() -> None:
    body = _EACH_ROW + (
        "signed char s = 100; for (int j = 0; j < d; j++) s += (signed char)x[i * d + j];\nout[i * d] = s;"
    )
    kernel = lifted(row_problem(body, grid=("ceildiv(rows, 64)",), block=("64",)))
    once = kernel.steps[-1]
    assert isinstance(once, Once)
    assert "(signed char)(100 + s)" in print_statements(once.body)


def test_a_sum_that_starts_at_zero_is_still_cut_at_zero() -> None:
    body = _EACH_ROW + (
        "float s = 0.0f; for (int j = 0; j < d; j++) s += x[i * d + j];\nout[i * d] = fmaxf(s, 0.0f);"
    )
    once = lifted(row_problem(body, grid=("ceildiv(rows, 64)",), block=("64",))).steps[-1]
    assert isinstance(once, Once)
    assert "fmaxf(s, 0.0f)" in print_statements(once.body)


def test_a_thread_beside_the_elements_it_takes_is_counted_once() -> None:
    body = (
        "const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;\n"
        "for (int n = 0; n < 4; n++) if (first + n < rows * d) out[first + n] = x[first + n] + threadIdx.x;"
    )
    kernel = lifted(row_problem(body, grid=("ceildiv(rows * d, 1024)",)))
    assert not kernel.tasks
    plane = (
        "const int i = blockIdx.x * 256 + threadIdx.y * 16 + threadIdx.x;\n"
        "if (i < rows * d) out[i] = x[i] + threadIdx.x;"
    )
    assert "both say which of the same threads" in refusal(row_problem(plane, grid=_ALL, block=("16", "16")))


def test_a_pointer_keeps_the_index_that_it_was_made_from() -> None:
    body = "int k = i;\nconst float *p = x + k;\nk = 0;\nif (i < rows * d) out[i] = *p + x[k];"
    kernel = lifted(row_problem(_FLAT + body, grid=_ALL))
    places = {print_expr(access.index) for access in kernel.accesses if access.array == "x"}
    assert places == {"k_then", "k"}


def test_pointers_and_indices_that_a_loop_moves_are_sums_over_its_index() -> None:
    body = (
        "const int row = blockIdx.x * blockDim.x + threadIdx.x;\nif (row >= rows) return;\n"
        "const float *p = x + row * d;\nint at = row * d;\n"
        "for (int i = 0; i < d; ++i, ++p) { out[at] = *p; at += 1; }"
    )
    kernel = lifted(row_problem(body, grid=("ceildiv(rows, 256)",)))
    (each,) = (step for step in kernel.steps if isinstance(step, Each))
    assert {(access.array, access.stride) for access in kernel.accesses} == {("x", 1), ("out", 1)}
    assert kernel.team == "thread"
    assert each.index == "i"


_STRETCH = (
    "for (int n = 0; n < 4; n++) {\n"
    "  const int i = blockIdx.x * 256 + n * 64 + threadIdx.x;\n"
    "  if (i >= rows * (d / 4)) continue;\n"
    "  out[i * 4] = out[i * 4] * 0.5f + 1.0f;\n}"
)


def test_turns_that_come_to_all_elements_of_the_sizes_tried_need_not_at_others() -> None:
    """A block ends at its own stretch, though small sizes have no more than that."""
    sizes = "{ one_of = [32, 64, 96, 256] }"
    grid = ("ceildiv(rows * d, 256)",)
    problem = row_problem(_STRETCH, grid=grid, block=("64",), d=sizes, many=(3, 64))
    assert summary(lifted(problem)) == "| each 0..rows * (d / 4)"
