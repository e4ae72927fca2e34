"""Kernels without a constant to open: the block that rows cut short, grids that show the block in a factor or
in a number of their own, kernels whose name a macro makes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cuda_here import needs_nvrtc
from tests.expert.knobs.problems import H200, asked, made, opened
from tests.expert.writing.emulator import needs_emulator, run
from tunesmith.backends.cuda.compile import build
from tunesmith.backends.messages import Draw
from tunesmith.expert.knobs.caps import cap_of, cap_values, without_cap
from tunesmith.expert.knobs.domains import Bounds
from tunesmith.lab.builders import unit_of
from tunesmith.lab.references import draw_inputs
from tunesmith.problem.plan import Plan, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import Template, configs_of, original
from tunesmith.run.ports import Declined
from tunesmith.space.expr import parse
from tunesmith.space.grammar import Variable

WORK = """\
{head}
__global__ void work(float *out, const float *x, int n)
{{
    {body}
}}
"""
STEPS = "for (int i = threadIdx.x; i < n; i += blockDim.x)\n        out[i] = 2.0f * x[i];"
EACH = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        out[i] = 2.0f * x[i];"


def problem_of(body: str, grid: str, block: str, more: str = "", head: str = "") -> Problem:
    return made(WORK.format(head=head, body=body), f'["{grid}"]', f'["{block}"]', more)


def launch_of(problem: Problem) -> tuple[str, str, str]:
    """Grid, block and shared memory."""
    (launch,) = opened(problem)[1].launches
    shared = launch.shared.text if launch.shared is not None else ""
    return ", ".join(e.text for e in launch.grid), ", ".join(e.text for e in launch.block), shared


def domains(template: Template) -> dict[str, tuple[int, ...]]:
    return {param.name: tuple(param.values) for param in template.space.params}  # type: ignore[arg-type]


def declined(problem: Problem) -> str:
    found = asked(problem)
    assert isinstance(found, Declined), found
    return found.reason


# -- blocks that are as long as a row, up to a number --------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cap"),
    [
        ("min(n, 1024)", 1024),
        ("min(512, n // 8)", 512),
        ("min(n, 1024) // 2", 1024),
        ("round_up(min(n, 256), 32)", 256),
        ("max(min(n, 256), 32)", 256),
        ("n", 0),
        ("round_up(n, 32)", 0),
        ("min(n, m)", 0),
        ("256", 0),
    ],
)
def test_the_number_that_cuts_a_block_short_is_found(text: str, cap: int) -> None:
    found = cap_of(parse(text).tree)
    assert (found[1] if found is not None else 0) == cap


def test_a_block_that_rows_cut_short_has_its_cap_opened() -> None:
    problem = problem_of(STEPS, "1", "min(n, 1024)")
    assert launch_of(problem) == ("1", "min(n, KNOB_BLOCK_X)", "")
    written, template = opened(problem)
    assert domains(template) == {"KNOB_BLOCK_X": (256, 512, 768, 1024)}
    assert "at most" in written.text


@pytest.mark.parametrize(
    "body",
    [
        "const int step = blockDim.x * 4;\n"
        "    for (int i = 4 * threadIdx.x; i < n; i += step) out[i] = x[i];",
        "int i = threadIdx.x;\n    while (i < n) { out[i] = x[i]; i = i + blockDim.x; }",
        "copy_row(out, x, n, threadIdx.x, blockDim.x);",
        "int turns = (n + blockDim.x - 1) / blockDim.x;\n"
        "    for (int k = 0; k < turns; k++) out[0] += x[turns];",
    ],
)
def test_threads_go_on_by_the_blocks_extent_in_several_ways(body: str) -> None:
    assert launch_of(problem_of(body, "n", "min(n, 512)"))[1] == "min(n, KNOB_BLOCK_X)"


@pytest.mark.parametrize(
    ("body", "block"),
    [
        ("if (threadIdx.x < n) out[threadIdx.x] = x[threadIdx.x];", "min(n, 1024)"),  # one turn for all
        ("int warps = blockDim.x / 32;\n    if (threadIdx.x < n) out[threadIdx.x] = warps;", "min(n, 1024)"),
        ("if (threadIdx.x < n) out[threadIdx.x] += x[blockDim.x - 1];", "min(n, 1024)"),
        ("if (threadIdx.x < n) out[threadIdx.x] += blockDim.x / 32;", "min(n, 1024)"),
        (STEPS, "n"),
        (STEPS, "round_up(n, 32)"),
    ],
)
def test_a_block_that_is_the_row_stays(body: str, block: str) -> None:
    assert "no number" in declined(problem_of(body, "1", block))


def test_grid_and_shared_memory_follow_a_cap() -> None:
    both = EACH.replace("int i", "__shared__ float none[1];\n    int i")
    problem = problem_of(both, "ceildiv(n, 1024)", "min(n, 1024)", 'shared = "min(n, 1024) * 4"')
    assert launch_of(problem) == (
        "ceildiv(n, KNOB_BLOCK_X)", "min(n, KNOB_BLOCK_X)", "min(n, KNOB_BLOCK_X) * 4",
    )  # fmt: skip
    onward = EACH.replace("    if (i < n)", "    for (; i < n; i += blockDim.x * gridDim.x)")
    problem = problem_of(onward, "min(n // min(n, 1024), 4096)", "min(n, 1024)")
    assert launch_of(problem)[0] == "min(n // min(n, KNOB_BLOCK_X), 4096)"
    # A number that blocks have nothing to do with is another one.
    problem = problem_of(STEPS, "min(n, 1024) // 1024 + 1", "min(n // 8, 1024)")
    assert launch_of(problem)[0] == "min(n, 1024) // 1024 + 1"


def test_a_grid_that_does_not_show_the_cap_keeps_it() -> None:
    assert "counted by the launch's block" in declined(problem_of(EACH, "ceildiv(n, 512)", "min(n, 1024)"))


def test_a_grid_that_is_cut_short_keeps_the_block_unless_blocks_go_on() -> None:
    assert "counted by the launch's block" in declined(problem_of(EACH, "min(ceildiv(n, 256), 512)", "256"))
    onward = EACH.replace("    if (i < n)", "    for (; i < n; i += blockDim.x * gridDim.x)")
    problem = problem_of(onward, "min(ceildiv(n, 256), 512)", "256")
    assert launch_of(problem)[:2] == ("min(ceildiv(n, KNOB_BLOCK_X), 512)", "KNOB_BLOCK_X")


def test_a_cap_has_the_values_that_workloads_come_to() -> None:
    key, nodes = Variable("K"), [parse("min(d, K)").tree]
    assert cap_values(key, 1024, nodes, [{"d": 4096}], Bounds(1024, 32, warp=32)) == (256, 512, 768, 1024)
    # Rows of 256: caps of 256 and more are all the same.
    assert cap_values(key, 1024, nodes, [{"d": 256}], Bounds(1024, 32, warp=32)) == (64, 128, 192, 1024)
    assert cap_values(key, 1024, nodes, [{"d": 96}], Bounds(1024, 32, warp=32)) == (1024,)
    assert cap_values(key, 256, nodes, [{"d": 64}, {"d": 320}], Bounds(1024, 32, warp=32)) == (
        64, 128, 192, 256, 384,
    )  # fmt: skip
    assert without_cap(parse("2 * min(d, K)").tree, key) == parse("2 * K").tree


def test_what_no_workload_comes_to_stays() -> None:
    short = problem_of(STEPS, "1", "min(n // 2048, 1024)")  # 32 threads at its one workload
    assert "BLOCK_X of the launch stays as it is: what blocks come to at the workloads" in declined(short)


def test_more_threads_than_memory_was_asked_for_are_not_tried() -> None:
    problem = problem_of(STEPS, "1", "min(n, 256)", 'shared = "1024"')
    assert max(domains(opened(problem)[1])["KNOB_BLOCK_X"]) == 256
    free = problem_of(STEPS, "1", "min(n, 256)")
    assert max(domains(opened(free)[1])["KNOB_BLOCK_X"]) == 1024


def test_launch_bounds_follow_a_cap() -> None:
    kernel = WORK.format(head="", body=STEPS).replace(
        "__global__ void", "__global__ __launch_bounds__(512) void"
    )
    written, _ = opened(made(kernel, '["1"]', '["min(n, 512)"]'))
    assert "__launch_bounds__(KNOB_BLOCK_X) void work" in written.text
    larger = kernel.replace("(512)", "(640)")
    _, template = opened(made(larger, '["1"]', '["min(n, 512)"]'))
    assert "KNOB_BLOCK_X <= 640" in [c.expr.text for c in template.space.constraints]


def test_a_constant_that_speaks_for_the_block_is_its_cap() -> None:
    text = "struct Sums { template <int N> float all(float); };\n#define BLOCK_THREADS 512"
    body = f"{STEPS}\n    out[0] = Sums().all<BLOCK_THREADS>(out[0]);"
    written, template = opened(problem_of(body, "1", "min(n, 512)", head=text))
    assert launch_of(problem_of(body, "1", "min(n, 512)", head=text))[1] == "min(n, KNOB_BLOCK_THREADS)"
    assert "#define BLOCK_THREADS KNOB_BLOCK_THREADS\n" in written.text
    assert domains(template)["KNOB_BLOCK_THREADS"] == (128, 256, 384, 512, 768, 1024)


# -- grids that show the block in a factor, or in a number of their own ---------------------------------


def test_a_grid_that_counts_elements_of_vectors_follows_the_block() -> None:
    body = EACH.replace("i < n", "8 * i < n").replace("out[i] = 2.0f * x[i]", "out[8 * i] = x[8 * i]")
    assert launch_of(problem_of(body, "ceildiv(n, 2048)", "256"))[:2] == (
        "ceildiv(n, KNOB_BLOCK_X * 8)", "KNOB_BLOCK_X",
    )  # fmt: skip
    assert launch_of(problem_of(body, "(n + 2047) // 2048", "256"))[0] == (
        "(n + (KNOB_BLOCK_X * 8 - 1)) // (KNOB_BLOCK_X * 8)"
    )
    # Only what divides last: the other says how elements are packed.
    assert launch_of(problem_of(body, "ceildiv(n // 512, 1024)", "128"))[0] == (
        "ceildiv(n // 512, KNOB_BLOCK_X * 8)"
    )
    assert "counted by the launch's block" in declined(problem_of(body, "ceildiv(n, 2000)", "256"))


def test_what_a_threads_number_is_multiplied_with_is_in_the_grid_too() -> None:
    head = "constexpr int ITEMS = 4;"
    body = """int first = (blockIdx.x * blockDim.x + threadIdx.x) * ITEMS;
    for (int k = 0; k < ITEMS; k++)
        if (first + k < n)
            out[first + k] = x[first + k];"""
    problem = problem_of(body, "ceildiv(n, 1024)", "256", head=head)
    assert launch_of(problem)[0] == "ceildiv(n, KNOB_BLOCK_X * KNOB_ITEMS)"
    # By its value it could be the block, by what is done with it, it is not.
    problem = problem_of(body, "ceildiv(n, 4096)", "64", head="constexpr int ITEMS = 64;")
    assert launch_of(problem)[:2] == ("ceildiv(n, KNOB_BLOCK_X * KNOB_ITEMS)", "KNOB_BLOCK_X")


def test_a_number_of_blocks_is_a_size_of_the_text_by_what_a_block_takes() -> None:
    head = "#define LENGTH 5000\n#define THREADS 128"
    body = """int i = blockIdx.x * THREADS + threadIdx.x;
    for (int k = i; k < LENGTH; k += LENGTH)
        out[k] = x[k];"""
    written, _ = opened(problem_of(body, "40", "128", head=head))
    assert launch_of(problem_of(body, "40", "128", head=head))[:2] == (
        "ceildiv(5000, KNOB_THREADS)", "KNOB_THREADS",
    )  # fmt: skip
    assert any("by the grid, 40 blocks along x, it is a size" in note for note in written.notes)
    other, template = opened(problem_of(body, "41", "128", head=head))
    assert "KNOB_THREADS" not in template.default.as_dict()
    assert any("counted by THREADS" in note for note in other.notes)


def test_blocks_that_step_by_all_of_a_constant_grid_take_any_extent() -> None:
    head = "#define BLOCKS 64\n#define THREADS 128"
    body = """for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += BLOCKS * THREADS)
        out[i] = x[i];"""
    assert launch_of(problem_of(body, "64", "128", head=head))[1] == "KNOB_THREADS"
    alone = body.replace("BLOCKS * THREADS", "n")
    assert "counted by THREADS" in declined(problem_of(alone, "64", "128", head=head))


# -- names ----------------------------------------------------------------------------------------------

OPENCL = """\
name = "work"
[kernel]
source = "kernel.cl"
entry = "{entry}"
defines = {{ {defines} }}
[[argument]]
name = "out"
type = "float32*"
shape = ["n"]
role = "output"
[[argument]]
name = "x"
type = "float32*"
shape = ["n"]
role = "input"
[[argument]]
name = "n"
type = "int32"
value = "n"
[launch]
grid = ["ceildiv(n, 64)"]
block = ["64"]
[contract]
n = {{ min = 1, max = 1000000 }}
[workloads]
one = {{ n = 65536 }}
[accuracy]
rtol = 1e-3
atol = 1e-3
"""
TWICE = """(__global float *out, __global const float *x, int n)
{ int i = get_global_id(0); if (i < n) out[i] = x[i]; }"""


def of_opencl(kernel: str, entry: str, defines: str) -> Problem:
    text = OPENCL.format(entry=entry, defines=defines)
    return parse_problem(text, path="problem.toml", read=lambda name: kernel)


def test_a_kernel_whose_name_is_put_together_has_its_launch_opened() -> None:
    head = "#define OTHER 16\n#define JOIN(A, B) A##_##B\n#define NAME(A, B) JOIN(A, B)\n"
    limit = "__attribute__((reqd_work_group_size(64, 1, 1)))"
    kernel = f"__kernel {limit} void NAME(twice, TYPE){TWICE}\n"
    other = (
        "__kernel void NAME(thrice, TYPE)(__global float *p)\n"
        "{ int k[OTHER]; p[get_global_id(0) * OTHER] = 0; }\n"
    )
    written, template = opened(of_opencl(head + kernel + other, "twice_float", 'TYPE = "float"'))
    assert template.default.as_dict() == {"KNOB_BLOCK_X": 64}
    assert template.launches[0].grid[0].text == "ceildiv(n, KNOB_BLOCK_X)"
    assert "reqd_work_group_size(KNOB_BLOCK_X, 1, 1)" in written.text


def test_a_macro_that_chooses_the_kernels_name_stays() -> None:
    kernel = f"""\
#if WIDTH == 4
#define TWICE twice4
#elif WIDTH == 1
#define TWICE twice1
#endif
__kernel void TWICE{TWICE.replace("{ int i", "{ float unused[WIDTH]; int i")}
"""
    written, template = opened(of_opencl(kernel, "twice4", 'WIDTH = "4"'))
    assert template.default.as_dict() == {"KNOB_BLOCK_X": 64}
    assert any(
        "WIDTH stays as it is: an #if chooses the kernel's name by it" in note for note in written.notes
    )


def test_methods_of_a_block_are_its_places() -> None:
    body = "auto tb = cooperative_groups::this_thread_block();\n    " + STEPS.replace(
        "threadIdx.x", "tb.thread_index().x"
    ).replace("blockDim.x", "tb.group_dim().x")
    assert launch_of(problem_of(body, "1", "min(n, 512)"))[1] == "min(n, KNOB_BLOCK_X)"


# -- builds and results ---------------------------------------------------------------------------------

SCALED = made(
    """\
__global__ void work(float *out, const float *x, int n)
{
    __shared__ float part[1024];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += x[i] * x[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int i = 0; i < blockDim.x; i++)
        sum += part[i];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = x[i] / sqrtf(sum);
}
""",
    '["1"]',
    '["min(n, 1024)"]',
)


@needs_nvrtc
@pytest.mark.long
def test_a_kernel_with_another_cap_builds() -> None:
    _, template = opened(SCALED)
    legal = configs_of(SCALED, template, H200)
    assert [config.as_dict()["KNOB_BLOCK_X"] for config in legal] == [256, 512, 768, 1024]
    sizes = SCALED.workloads[0].as_dict()
    assert build(unit_of(template.render(SCALED, legal[0], sizes)), H200).data


@needs_nvrtc
@pytest.mark.long
def test_with_its_own_cap_it_is_the_original() -> None:
    _, template = opened(SCALED)
    sizes = SCALED.workloads[0].as_dict()
    variants = original(SCALED, sizes), template.render(SCALED, template.default, sizes)
    first, second = (build(unit_of(variant), H200).data for variant in variants)
    assert first == second


@needs_emulator
@pytest.mark.long
def test_another_cap_gives_the_same(emulated: Path) -> None:
    _, template = opened(SCALED)
    sizes, found = {"n": 700}, []
    for variant in (
        original(SCALED, sizes),
        template.render(SCALED, template.default.replace("KNOB_BLOCK_X", 256), sizes),
    ):
        plan = plan_launch(SCALED, variant, sizes, H200, None)
        assert isinstance(plan, Plan), plan
        inputs = draw_inputs(plan, Draw("normal", 7, None))
        found.append((plan.launches[0].block, run(variant, plan, inputs, emulated)["out"]))
    (wide, want), (narrow, got) = found
    assert (wide[0], narrow[0]) == (700, 256)
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5)
    assert np.isfinite(np.asarray(want)).all()
