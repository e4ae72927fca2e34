"""How launches follow knobs: which number stands for which constant, and what is required of other values."""

from __future__ import annotations

import pytest

from tests.expert.knobs.problems import H200, asked, made, opened
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, configs_of
from tunesmith.run.ports import Declined

PLAIN = """\
__global__ void work(float *out, const float *x, int n)
{{
    {body}
}}
"""


def template_of(problem: Problem) -> Template:
    return opened(problem)[1]


def launch_of(problem: Problem) -> tuple[list[str], list[str], str]:
    (launch,) = template_of(problem).launches
    shared = launch.shared.text if launch.shared is not None else ""
    return [e.text for e in launch.grid], [e.text for e in launch.block], shared


def required(problem: Problem) -> list[str]:
    return [c.expr.text for c in template_of(problem).space.constraints if c.kind == "require"]


def test_a_block_that_the_text_asks_for_is_a_knob_of_the_launch() -> None:
    body = """extern __shared__ float part[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = part[blockDim.x - 1 - threadIdx.x];"""
    problem = made(PLAIN.format(body=body), '["ceildiv(n, 128)"]', '["128"]', 'shared = "128 * 4"')
    assert launch_of(problem) == (["ceildiv(n, KNOB_BLOCK_X)"], ["KNOB_BLOCK_X"], "KNOB_BLOCK_X * 4")
    whole = made(PLAIN.format(body=body), '["(n + 127) // 128"]', '["128"]', 'shared = "512"')
    assert launch_of(whole) == (
        ["(n + (KNOB_BLOCK_X - 1)) // KNOB_BLOCK_X"], ["KNOB_BLOCK_X"], "KNOB_BLOCK_X * 4",
    )  # fmt: skip
    # A number in the text that is the block's: fewer threads are safe, more are not.
    fixed = body.replace("extern __shared__ float part[]", "__shared__ float part[128]")
    template = template_of(made(PLAIN.format(body=fixed), '["ceildiv(n, 128)"]', '["128"]'))
    assert max(template.space.params[0].values) == 128


@pytest.mark.timeout(60)
def test_an_axis_that_the_block_does_not_say_is_one_thread_wide() -> None:
    body = """int i = blockIdx.x * blockDim.x + threadIdx.x;
    int plane = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && plane < 1)
        out[i] = x[i];"""
    problem = made(PLAIN.format(body=body), '["ceildiv(n, 128)", "1"]', '["128"]')
    assert launch_of(problem) == (["ceildiv(n, KNOB_BLOCK_X)", "1"], ["KNOB_BLOCK_X"], "")


def test_a_block_goes_with_a_constant_that_is_named_like_it() -> None:
    """The text goes along with any block, and a class of a library wants to know it."""
    text = """\
#define BLOCK_THREADS 128
#define DEPTH 128
template <typename T, int N> struct Sums { float all(float value); };
__global__ void work(float *out, const float *x, int n)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        for (int k = 0; k < DEPTH; k++)
            sum += x[i] * k;
    sum = Sums<float, BLOCK_THREADS>().all(sum);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}
"""
    problem = made(text, '["n"]', '["128"]')
    assert launch_of(problem)[1] == ["KNOB_BLOCK_THREADS"]
    assert template_of(problem).default.as_dict() == {"KNOB_BLOCK_THREADS": 128, "KNOB_DEPTH": 128}


def test_a_grid_that_does_not_show_the_block_keeps_it() -> None:
    body = (
        "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    __syncthreads();\n    if (i < n) out[i] = x[i];"
    )
    found = asked(made(PLAIN.format(body=body), '["n"]', '["128"]'))
    assert isinstance(found, Declined)
    assert (
        "blocks along x are counted by the launch's block, and the grid, 'n', does not show" in found.reason
    )


TWO = """\
constexpr int ROWS = 16;
constexpr int COLS = 16;
__global__ void work(float *out, const float *x, int n)
{{
    __shared__ float tile[ROWS][COLS];
    int i = {} + threadIdx.x;
    tile[threadIdx.y][threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = tile[threadIdx.y][threadIdx.x];
}}
"""


def test_axes_tell_constants_of_one_value_apart() -> None:
    text = TWO.format("(blockIdx.y * ROWS + threadIdx.y) * 256 + blockIdx.x * COLS")
    problem = made(text, '["16", "ceildiv(n, 16)"]'.replace('"16"', '"256 // 16"'), '["16", "16"]')
    assert launch_of(problem)[:2] == (
        ["256 // KNOB_COLS", "ceildiv(n, KNOB_ROWS)"], ["KNOB_COLS", "KNOB_ROWS"],
    )  # fmt: skip


def test_constants_between_which_nothing_decides_move_together() -> None:
    text = """\
constexpr int FIRST = 64;
constexpr int SECOND = 64;
__device__ int place(int block, int thread);
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float a[FIRST], b[SECOND];
    int i = place(blockIdx.x, threadIdx.x);
    a[FIRST - 1 - threadIdx.x] = b[SECOND - 1 - threadIdx.x] = x[i];
    __syncthreads();
    out[i] = a[threadIdx.x % FIRST] + b[threadIdx.x % SECOND];
}
"""
    problem = made(text, '["ceildiv(n, 64)"]', '["64"]')
    written, template = opened(problem)
    assert template.default.as_dict() == {"KNOB_FIRST": 64}
    assert "constexpr int FIRST = KNOB_FIRST;\nconstexpr int SECOND = KNOB_FIRST;\n" in written.text
    entry = "KNOB_FIRST = [32, 64, 96, 128, 256]"
    assert f"{entry}  # threads of a block along an axis, line 1, 2" in written.text


def test_one_row_to_a_block_may_become_several() -> None:
    text = """\
template <int ROWS>
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float first[32];
    for (int r = 0; r < ROWS; r++) {
        int row = blockIdx.x * ROWS + r;
        first[threadIdx.x] = row < n ? x[row] : 0.0f;
        __syncthreads();
        if (row < n)
            out[row] = first[31 - threadIdx.x];
    }
}
"""
    problem = made(text, '["n"]', '["32"]', entry="work<1>")
    template = template_of(problem)
    assert template.launches[0].entry == "work<{KNOB_ROWS}>"
    assert template.launches[0].grid[0].text == "ceildiv(n, KNOB_ROWS)"
    assert template.space.params[0].values == (1, 2, 4)


BOUNDED = """\
#define NT 256
__global__ void {} work(float *out, const float *x, int n)
{{
    __shared__ float s[NT];
    int i = blockIdx.x * NT + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}}
"""


def bounded(words: str, block: str = '["256"]') -> Problem:
    return made(BOUNDED.format(words), '["ceildiv(n, 256)"]', block)


def test_launch_bounds_follow_the_block_or_hold_it() -> None:
    assert "__launch_bounds__(KNOB_NT) work(" in opened(bounded("__launch_bounds__(256)"))[0].text
    written, template = opened(bounded("__launch_bounds__(256, 2)"))
    assert "__launch_bounds__(KNOB_NT, KNOB_MIN_BLOCKS) work(" in written.text
    assert dict(template.default.items)["KNOB_MIN_BLOCKS"] == 2
    assert ("launch_bounds", "KNOB_MIN_BLOCKS != 2") in [(str(r), e.text) for r, e in template.answers]
    assert "KNOB_NT <= 512" in required(bounded("__launch_bounds__(512)"))
    assert "__launch_bounds__(NT) work(" in opened(bounded("__launch_bounds__(NT)"))[0].text


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("#if NT > 512\n#error too many\n#endif", 512),
        ('static_assert(NT <= 512 && NT % 32 == 0, "a few whole warps");', 512),
        ("static_assert((NT & (NT - 1)) == 0);", 1024),
        ("constexpr int TURNS = 512 / NT;", 512),
    ],
)
def test_what_the_text_asks_of_one_knob_is_its_domain(text: str, most: int) -> None:
    source = BOUNDED.format("").replace("__global__", f"{text}\n__global__", 1)
    source = source.replace("int i = b", "n -= 0 * TURNS;\n    int i = b") if "TURNS" in text else source
    problem = made(source, '["ceildiv(n, 256)"]', '["256"]')
    assert required(problem) == []
    assert max(template_of(problem).space.params[0].values) == most


def test_what_the_text_asks_of_two_is_required() -> None:
    own = 'constexpr int M = 4;\nstatic_assert(NT % (32 * M) == 0, "whole");'
    source = BOUNDED.format("").replace("__global__", f"{own}\n__global__", 1)
    source = source.replace("int i = b", "for (int k = 0; k < M; k++) n -= 0;\n    int i = b")
    problem = made(source, '["ceildiv(n, 256)"]', '["256"]')
    assert required(problem) == ["KNOB_NT % (32 * KNOB_M) == 0"]
    template = template_of(problem)
    legal = configs_of(problem, template, H200)
    assert template.default in legal
    assert template.default.replace("KNOB_M", 16) not in legal


def test_threads_that_count_on_their_warp_stay_whole_warps() -> None:
    text = BOUNDED.format("").replace("s[threadIdx.x ^ 1]", "__shfl_down_sync(~0u, s[threadIdx.x], 1)")
    text = text.replace("#define NT 256", "#define NX 8\n#define NY 32\n#define NT (NX * NY)").replace(
        "threadIdx.x", "(threadIdx.y * NX + threadIdx.x)"
    )
    problem = made(text, '["ceildiv(n, 256)"]', '["8", "32"]')
    assert launch_of(problem)[:2] == (["ceildiv(n, KNOB_NX * KNOB_NY)"], ["KNOB_NX", "KNOB_NY"])
    assert "KNOB_NX * KNOB_NY % 32 == 0" in required(problem)


def test_shared_memory_must_fit() -> None:
    text = BOUNDED.format("").replace("s[NT]", "s[NT * 16]")
    assert required(made(text, '["ceildiv(n, 256)"]', '["256"]')) == []  # one knob: its domain says it
    template = template_of(made(text, '["ceildiv(n, 256)"]', '["256"]'))
    assert max(template.space.params[0].values) == 512


def test_unroll_counts_of_one_value_are_one_knob() -> None:
    loops = "\n".join(
        f"#pragma unroll {count}\n    for (int k = 0; k < n; k++) n -= 0;" for count in (4, 4, "(8)", "")
    )
    text = BOUNDED.format("").replace("    int i = b", f"{loops}\n    int i = b")
    written, template = opened(made(text, '["ceildiv(n, 256)"]', '["256"]'))
    assert template.default.as_dict() == {"KNOB_NT": 256, "KNOB_UNROLL": 4, "KNOB_UNROLL_2": 8}
    assert written.text.count("#pragma unroll KNOB_UNROLL\n") == 2
    assert "#pragma unroll (KNOB_UNROLL_2)\n" in written.text
    assert "#pragma unroll \n" in written.text


def test_blocks_that_go_on_may_be_any_number() -> None:
    body = """__shared__ float s[64];
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 64 * gridDim.x) {
        s[threadIdx.x] = x[i];
        __syncwarp();
        out[i] = s[threadIdx.x ^ 1];
    }"""
    problem = made(PLAIN.format(body=body), '["132"]', '["64"]')
    assert launch_of(problem)[0] == ["KNOB_GRID_X"]
    assert template_of(problem).space.params[0].values == (33, 66, 132, 264, 528)


def test_an_axis_that_the_launch_does_not_have_is_one() -> None:
    body = """const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y, k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < n && j < n && k < n)
        out[(k * n + j) * n + i] = x[(k * n + j) * n + i];"""
    axes = '["ceildiv(n, 16)", "ceildiv(n, 16)", "n"]'
    grid, block, _ = launch_of(made(PLAIN.format(body=body), axes, '["16", "16"]'))
    assert block == ["KNOB_BLOCK_X", "KNOB_BLOCK_Y"]
    assert grid[2] == "n"
