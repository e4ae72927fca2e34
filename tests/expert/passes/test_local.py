"""Local moves on sources as they come: what is inserted, what is refused and why, that it builds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cuda_here import needs_nvrtc
from tests.samples import HOPPER
from tunesmith.backends.cuda.compile import build
from tunesmith.backends.cuda.devices import absent_device
from tunesmith.expert.passes import LOCAL_MOVES, Context
from tunesmith.expert.passes.local_draft import LocalDraft, find_site, start, template_text
from tunesmith.lab.builders import unit_of
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem
from tunesmith.problem.template import Template
from tunesmith.problem.template_file import parse_template

GPU = Device("cuda", "0", "a GPU", "cuda", "13", "gpu", HOPPER)

KERNEL = """\
#include <cuda_fp16.h>
#ifdef WITH_MORE
#include "more.h"
#endif
// a comment with __global__ void and for (;;) in it
template <typename T>
__global__ void blur(T *out, const T *__restrict__ in, const float* weights, int n, int taps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < taps; k++) {
        for (int half = 0; half < 2; half++)
            sum += weights[k] * expf((float)in[(i + k) % n]);
    }
#pragma unroll 2
    for (int k = 0; k < 4; k++)
        sum *= 0.5f;
    out[i] = (T)sum;
}
"""
PROBLEM = """\
name = "blur"
[kernel]
source = "kernel.cu"
entry = "blur<__half>"
[[argument]]
name = "result"
type = "float16*"
role = "output"
shape = ["n"]
[[argument]]
name = "in"
type = "float16*"
role = "input"
shape = ["n"]
[[argument]]
name = "weights"
type = "float32*"
role = "input"
shape = ["taps"]
[[argument]]
name = "n"
type = "int32"
value = "n"
[[argument]]
name = "taps"
type = "int32"
value = "taps"
[launch]
grid = ["ceildiv(n, 128)"]
block = ["128"]
[contract]
n = { min = 1, max = 1000000 }
taps = { min = 1, max = 16 }
[workloads]
one = { n = 100000, taps = 5 }
[accuracy]
rtol = 1e-3
atol = 1e-3
"""


def problem(kernel: str = KERNEL, text: str = PROBLEM) -> Problem:
    return parse_problem(text, path="problem.toml", read=lambda name: kernel)


def draft_of(given: Problem, *moves: str) -> tuple[LocalDraft, dict[str, str]]:
    site = find_site(given)
    assert not isinstance(site, str), site
    draft, refused = start(site, given), {}
    for move in LOCAL_MOVES:
        if move.name in moves or not moves:
            found = move.apply(draft, Context(given, GPU))
            if isinstance(found, str):
                refused[move.name] = found
            else:
                draft = found
    return draft, refused


def text_of(given: Problem, *moves: str) -> str:
    draft, refused = draft_of(given, *moves)
    assert not refused, refused
    return template_text(draft, Context(given, GPU))


def refusal(given: Problem, move: str) -> str:
    return draft_of(given, move)[1][move]


def template_of(given: Problem, *moves: str) -> Template:
    return parse_template(text_of(given, *moves), path="template.cu", problem=given)


def test_all_of_them_make_one_template_of_a_plain_kernel() -> None:
    template = template_of(problem())
    names = [param.name for param in template.space.params]
    assert names == ["BLOCK", "KNOB_UNROLL", "RESTRICT", "UNROLL", "FAST", "BOUNDS", "REGS", "LEVEL"]
    assert template.default.as_dict() == {
        "BLOCK": 128, "KNOB_UNROLL": 2, "RESTRICT": 0, "UNROLL": 0, "FAST": 0, "BOUNDS": 0, "REGS": 255,
        "LEVEL": 5,
    }  # fmt: skip
    assert {remedy.value: expr.text for remedy, expr in template.answers} == {
        "block_size": "BLOCK != 128", "hoist_invariants": "RESTRICT == 1",
        "unroll": "KNOB_UNROLL > 1 or UNROLL > 1",
        "items_in_flight": "UNROLL > 1", "fast_intrinsics": "FAST == 1", "launch_bounds": "BOUNDS > 0",
        "register_cap": "REGS < 255", "compiler_flags": "LEVEL != 5",
    }  # fmt: skip
    (launch,) = template.launches
    assert (launch.entry, launch.grid[0].text, launch.block[0].text) == (
        "blur<__half>", "ceildiv(n, BLOCK)", "BLOCK",
    )  # fmt: skip


def test_edits_leave_the_rest_of_the_text_as_it_is() -> None:
    text = text_of(problem())
    assert "__global__ LAUNCH_BOUNDS void blur(T *NO_ALIAS out, const T *__restrict__ in, " in text
    assert "const float* NO_ALIAS weights" in text
    assert (
        "#endif\n#if FAST\n#define expf __expf\n#endif\n// a comment" in text
    )  # behind the conditional include
    assert "\n#if UNROLL\n#pragma unroll UNROLL\n#endif\n        for (int half = 0;" in text
    assert text.count("#pragma unroll UNROLL") == 1  # not the outer loop, not the one with its own pragma
    taken_out = text.replace(" LAUNCH_BOUNDS void", " void").replace("NO_ALIAS ", "")
    taken_out = taken_out.replace("#pragma unroll KNOB_UNROLL", "#pragma unroll 2")
    taken_out = taken_out.replace("#if UNROLL\n#pragma unroll UNROLL\n#endif\n", "")
    assert taken_out.replace("#if FAST\n#define expf __expf\n#endif\n", "").endswith(KERNEL)


@needs_nvrtc
@pytest.mark.parametrize(
    "changed", [{}, {"RESTRICT": 1, "UNROLL": 4, "FAST": 1, "BOUNDS": 2, "LEVEL": 10}, {"REGS": 32}]
)
def test_it_builds_at_the_default_and_elsewhere(changed: dict[str, int]) -> None:
    given = problem()
    template = template_of(given)
    config = template.default
    for name, value in changed.items():
        config = config.replace(name, value)
    device = absent_device(None)
    assert build(unit_of(template.render(given, config, {"n": 100, "taps": 3})), device).data


def test_restrict_respects_what_the_contract_says_of_overlap() -> None:
    aliased = PROBLEM.replace('role = "output"\nshape = ["n"]', 'role = "output"\nalias = "in"').replace(
        'name = "in"\ntype = "float16*"\nrole = "input"', 'name = "in"\ntype = "float16*"\nrole = "inout"'
    )
    assert "const float* NO_ALIAS weights" in text_of(problem(text=aliased), "restrict")
    assert "*NO_ALIAS out" not in text_of(problem(text=aliased), "restrict")
    restricted = KERNEL.replace("T *out", "T *__restrict__ out").replace("float* w", "float* __restrict__ w")
    assert "already" in refusal(problem(restricted), "restrict")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("float sum = 0.0f;", "__shared__ float tile[128]; float sum = 0.0f;", "__shared__ is used"),
        ("float sum = 0.0f;", "float sum = __shfl_xor_sync(~0u, 1.0f, 16);", "__shfl_xor_sync is used"),
        ("float sum = 0.0f;", "float sum = threadIdx.x;", "threadIdx.x is used outside"),
        ("float sum = 0.0f;", "float sum = blockDim.x;", "blockDim.x is used outside"),
        ("float sum = 0.0f;", "float sum = blockIdx.x;", "blockIdx.x is used outside"),
        ("float sum = 0.0f;", "float sum = __lane_id();", "__lane_id is used"),
        ("float sum = 0.0f;", "float sum = __builtin_amdgcn_workitem_id_x();", "_workitem_id_x is used"),
        ("float sum = 0.0f;", "float sum = __clusterIdx().x;", "__clusterIdx is used"),
        ("template <", "#define LANE threadIdx.x\ntemplate <", "threadIdx.x is used outside"),
        ("template <", "__device__ void wait() { __syncthreads(); }\ntemplate <", "__syncthreads is used"),
        ("__global__ void blur", "__global__ void __launch_bounds__(128) blur", "fixed by launch bounds"),
    ],
)  # fmt: skip
def test_the_block_stays_where_the_kernel_may_look_at_it(old: str, new: str, reason: str) -> None:
    assert reason in refusal(problem(KERNEL.replace(old, new)), "block")


def test_the_block_stays_where_the_grid_does_not_follow_from_it() -> None:
    assert "does not say how" in refusal(
        problem(text=PROBLEM.replace("ceildiv(n, 128)", "(n + 127) // 128")), "block"
    )
    capped = PROBLEM.replace("ceildiv(n, 128)", "min(ceildiv(n, 128), 3)")
    assert "does not say how" in refusal(problem(text=capped), "block")
    assert "depends on sizes" in refusal(problem(text=PROBLEM.replace('["128"]', '["min(n, 128)"]')), "block")


def test_rows_by_block_stay_rows_whatever_the_block() -> None:
    by_thread = "const int i = blockIdx.x * blockDim.x + threadIdx.x;"
    rows = KERNEL.replace(by_thread, "const int row = blockIdx.x;")
    loop = "for (int i = threadIdx.x; i < n; i += blockDim.x) {"
    rows = rows.replace("if (i >= n)\n        return;", loop).replace("(T)sum;", "(T)sum; }")
    draft, refused = draft_of(problem(rows, PROBLEM.replace("ceildiv(n, 128)", "taps")), "block")
    assert not refused
    assert draft.launches[0].grid == ("taps",)


def test_bounds_of_a_block_that_depends_on_sizes_allow_the_largest() -> None:
    text = text_of(problem(text=PROBLEM.replace('["128"]', '["min(n, 128)"]')), "bounds")
    assert "__launch_bounds__(1024, BOUNDS)" in text
    assert "has __launch_bounds__ already" in refusal(
        problem(KERNEL.replace("void blur", "void __launch_bounds__(128) blur")), "bounds"
    )


def test_fast_forms_are_refused_where_they_are_there_already_or_a_macro_cannot_reach() -> None:
    flagged = PROBLEM.replace('entry = "blur<__half>"', 'entry = "blur<__half>"\nflags = ["-use_fast_math"]')
    assert "-use_fast_math" in refusal(problem(text=flagged), "fast")
    assert "namespace" in refusal(problem(KERNEL.replace("expf(", "std::expf(")), "fast")
    assert "no function" in refusal(problem(KERNEL.replace("expf(", "fabsf(")), "fast")


def test_a_name_of_the_source_is_never_made_a_parameter() -> None:
    taken = KERNEL.replace("float sum = 0.0f;", "const int UNROLL = 3; float sum = UNROLL;")
    assert "#pragma unroll UNROLL_" in text_of(problem(taken), "unroll")


def test_sizes_in_the_entry_become_defines() -> None:
    entry = PROBLEM.replace("blur<__half>", "blur<__half, {taps}>")
    source = KERNEL.replace("template <typename T>", "template <typename T, int TAPS>")
    template = template_of(problem(source, entry), "unroll")
    assert template.launches[0].entry == "blur<__half, {taps}>"
    assert template.entry_sizes == ("taps",)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (KERNEL + KERNEL.replace("int taps)", "int taps, int more)"), "2 definitions"),
        (
            KERNEL.replace("int n,", "\n#ifdef WIDE\n int n,\n#else\n long n,\n#endif\n"),
            "#if stands inside the header",
        ),
    ],
)
def test_a_text_that_has_no_one_kernel_is_left_alone(source: str, reason: str) -> None:
    site = find_site(replace(problem(), kernel=replace(problem().kernel, text=source)))
    assert isinstance(site, str)
    assert reason in site


def test_loops_without_another_are_found_in_one_pass() -> None:
    body = """
        for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) x[j] = f(i);
        for (int i = 0; i < 4; i++) { if (i) { x[i]++; } }
        for (int i = 0; i < 4; i++) {
            while (i) x[i]--;
            for (int j = 0; j < 4; j++) { x[j]++; }
        }
    """
    source = f"__global__ void blur(float *x) {{{body}{'for (;;) x[0]++; ' * 5000}}}\n"
    site = find_site(replace(problem(), kernel=replace(problem().kernel, text=source)))
    assert not isinstance(site, str), site
    assert [loop.line for loop in site.inner_loops[:3]] == [2, 3, 6]
    assert source[site.inner_loops[0].at :].startswith("for (int j")
    assert len(site.inner_loops) == 5003
    assert {loop.line for loop in site.inner_loops[3:]} == {8}
