"""What the examples and the zoo of kernels are read as."""

from __future__ import annotations

import time

import pytest

from tests.expert.model.kernels import ROOT, lifted, problem_in, refusal, summary
from tunesmith.csource.printing import print_expr, print_statements
from tunesmith.expert.model.kernel import Each
from tunesmith.expert.model.lift import lift

READINGS = {
    "examples/cuda/fused_add_rmsnorm": (
        "block", "token<tokens | each 0..d / 8 +sum; let scale; each 0..d / 8"),
    "examples/cuda/merge_attn_states_lse": ("grid", "| each 0..tokens * heads * (head_dim / 8u)"),
    "examples/cuda/per_token_group_quant_fp8": (
        "part of a warp",
        "group<tokens * (d // 128) | each 0..group_size maxabsmax; let scale; once 1; each 0..group_size"),
    "examples/cuda/rmsnorm": ("block", "token<tokens | each 0..d +sum; let scale; each 0..d"),
    "examples/cuda/rotary_embedding": (
        "block",
        "token<tokens | let positions_at; each 0..heads * (rot_dim / 2); each 0..kv_heads * (rot_dim / 2)"),
    "examples/cuda/silu_and_mul": ("block", "token<tokens | each 0..d"),
    "examples/cuda/silu_and_mul_vector": (
        "block",
        "token<tokens | each 0..d / 8; each d - (int)(d % (8 * (d / 8 < 1024 ? d / 8 : 1024)))..d"),
    "examples/opencl/rmsnorm": ("thread", "row<rows | each 0..d +sum; let scale; each 0..d"),
    "examples/opencl/silu_and_mul": ("grid", "| each 0..(size_t)tokens * d"),
    "examples/opencl/softmax": ("thread", "row<rows | each 0..d maxlargest; each 0..d +sum; each 0..d"),
    "examples/opencl/transpose": ("grid", "r<rows | each 0..cols"),
    "zoo/attn_score_row": ("warp", "head<kv_heads * group, s<seq | each 0..dim +dot; once 1"),
    "published/add_norm": (
        "block", "bx<rows | each 0..d / 8 +squares; let scale; each 0..d / 8"),
    "published/bf_rope": ("block", "token<tokens | let pos; each 0..heads * (rot_dim / 2)"),
    "zoo/bias_dropout_residual": ("grid", "| each 0..n"),
    "zoo/bias_relu_2d": ("grid", "row<rows | each 0..cols"),
    "published/cg_softmax": ("warp", "row<rows | each 0..d maxmost; each 0..d +sum; each 0..d"),
    "published/cub_norm": (
        "block", "block<tokens | each 0..hidden_size +variance; let s_variance; each 0..hidden_size"),
    "published/fp8_struct": (
        "part of a warp",
        "group<groups | each 0..group_size maxmost; let scale; once 1; each 0..group_size"),
    "published/header_norm": (
        "block", "row<rows | each 0..d / 8 +squares; let scale; each 0..d / 8"),
    "published/block_copies": ("grid", "block<ceildiv(rows * columns, 512) | each 0..128"),
    "published/byte_rows": ("grid", "| each 0..n"),
    "published/mode_norm": (
        "block", "block<rows | each 0..d +sum; let mean; each 0..d +squares; let inverse; each 0..d"),
    "published/policy_gate": ("grid", "block<ceildiv(rows * d, 4096) | each 0..256"),
    "published/union_merge": ("grid", "| each 0..tokens * heads * (head_size / 8)"),
    "published/vec_norm": (
        "block", "row<rows | each 0..d / 8 +squares; let scale; each 0..d / 8"),
    "published/vec_operators": ("grid", "| each 0..n / 4"),
    "published/vec_silu": (
        "block",
        "token<tokens | each 0..d / 8u; each 0..d % ((int64_t)(d / 8 < 1024 ? d / 8 : 1024) * 8u)"),
    "zoo/causal_conv1d": ("grid", "b<batch, c<channels | each 0..length"),
    "zoo/cl_gelu": ("grid", "| each 0..n"),
    "zoo/cl_int8_quant": ("thread", "r<rows | each 0..d maxamax; once 1; let inv; each 0..d"),
    "zoo/cl_layernorm": (
        "block", "row<rows | each 0..d +sum; let mean; each 0..d +sum_4; let rstd; each 0..d"),
    "zoo/cl_row_dot": ("part of a warp", "row<rows | each 0..d +acc; once 1"),
    "zoo/cl_softmax": ("block", "block<rows | each 0..cols maxm; each 0..cols +sum; each 0..cols"),
    "zoo/cumsum_row": ("grid", "| each 0..rows"),
    "zoo/dequant_int4": ("grid", "word_row<k // 8 | each 0..n"),
    "zoo/dequant_int4_packed": ("grid", "| each 0..n"),
    "zoo/gather_rows": (
        "block", "token<tokens | let id; when id < 0 {each 0..dim} else {each 0..dim}"),
    "zoo/gelu_tanh": ("grid", "| each 0..n"),
    "zoo/group_norm": (
        "block",
        "batch<batch, group<groups | each 0..channels / groups * area +s_squares +s_sum; "
        "let mean, shared_2, rstd; once 1; each 0..channels / groups * area"),
    "zoo/hip_row_max": ("block", "block<rows | each 0..d maxlargest; once 1"),
    "zoo/hip_silu": ("grid", "| each 0..n"),
    "zoo/histogram": ("grid", "| each 0..n"),
    "zoo/int8_dynamic_quant": (
        "block", "token<tokens | each 0..hidden maxlocal; once 1; let inverse; each 0..hidden"),
    "zoo/l2_normalize": ("block", "block<rows | each 0..vecs +sum; let factor; each 0..vecs"),
    "zoo/layernorm": (
        "block", "row<rows | each 0..d +acc; let mean; each 0..d +acc_2; let rstd; each 0..d"),
    "zoo/masked_scale": ("grid", "| each 0..n"),
    "zoo/max_pool2d": ("grid", "plane<planes, oy<(h - 1) // 2 + 1 | each 0..ow"),
    "zoo/moe_top2": ("grid", "| each 0..tokens"),
    "zoo/rope_interleaved": ("grid", "head<heads, token<tokens | each 0..head_dim / 2"),
    "zoo/scatter_kv": ("block", "token<tokens | let slot; when !(slot < 0) {each 0..width}"),
    "zoo/softmax": ("block", "block<rows | each 0..cols maxlargest; each 0..cols +total; each 0..cols"),
    "zoo/softmax_thread_per_row": (
        "thread",
        "t<tokens | let m; each 1..experts maxm_2; each 1..experts +l_sum; let l; each 0..experts"),
    "zoo/softmax_warp": ("warp", "row<rows | each 0..d maxm; each 0..d +sum; let inv; each 0..d"),
    "zoo/cl_matvec_in_memory": ("thread", "row<rows | each 0..cols +sums_here; once 1"),
    "zoo/fp8_vectors_and_rest": (
        "grid", "| each 0..count >> 2; each 0..count - (count >> 2) * 4"),
    "zoo/matvec_in_memory": ("thread", "row<rows | each 0..cols +sums_here; once 1"),
    "zoo/norm_by_axes": (
        "block",
        "batch<samples, matrix<channels, row<rows | each 0..length +sums_x +sums_y; "
        "let mean, spread, factor; each 0..length"),
    "zoo/softmax_offset_loops": (
        "block",
        "row<rows | each 0..given maxtop; each 0..given +total; let share; each 0..given"),
    "zoo/stencil2d": ("grid", "y<height | each 0..width"),
    "zoo/stencil5_rows": ("block", "row<rows | each 0..cols"),
    "zoo/jacobi3d": ("grid", "z<nz, y<ny | each 0..nx"),
    "zoo/transpose_tiled": ("grid", "y<cols | each 0..rows"),
    "zoo/heat_tile": ("grid", "y<height | each 0..width"),
    "zoo/conv3x3_tile": ("grid", "at_z<channels, y<height | each 0..width"),
    "zoo/matmul_tile": ("grid", "row<m | each 0..n"),
    "zoo/cl_blur_tile": ("grid", "row<rows | each 0..cols"),
    "bad_cuda/healthy_transpose": ("grid", "to_row<cols // 32 * 32 | each 0..rows / 32 * 32"),
    "zoo/swiglu_interleaved": ("grid", "| each 0..n"),
    "bad_cuda/serial_thread": ("block", "block<rows | let found; each 1..cols maxfound_2; each 0..cols"),
    "bad_cuda/tail_wave": ("block", "block<rows | each 0..cols / 4 maxlargest; each 0..cols / 4"),
    "bad_cuda/uncoalesced": ("grid", "row<rows | each 0..cols"),
}  # fmt: skip
REFUSALS = {
    "zoo/argmax": "line 19: 'at' is carried from one element to the next",
    "bad_cuda/bank_conflicts": "__syncthreads inside a loop over elements",
}


def _folder(name: str) -> str:
    return name if name.startswith("examples") else f"tests/fixtures/{name}"


@pytest.mark.parametrize("name", READINGS)
@pytest.mark.few(3)
def test_reading(name: str) -> None:
    kernel = lifted(problem_in(_folder(name)))
    assert (kernel.team, summary(kernel)) == READINGS[name]


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal(name: str) -> None:
    assert REFUSALS[name] in refusal(problem_in(_folder(name)))


def test_every_kernel_of_the_zoo_is_listed() -> None:
    listed = {name.removeprefix("zoo/") for name in (*READINGS, *REFUSALS) if name.startswith("zoo/")}
    unlisted = {path.name for path in (ROOT / "tests/fixtures/zoo").iterdir() if path.is_dir()} - listed
    for name in sorted(unlisted):  # newcomers: whatever they are, no crash
        lift(problem_in(f"tests/fixtures/zoo/{name}"))


def test_pointers_are_folded_into_indices() -> None:
    kernel = lifted(problem_in("examples/cuda/silu_and_mul_vector"))
    first = kernel.steps[0]
    assert isinstance(first, Each)
    assert "((const uint4 *)(input + (token * 2 * d + d)))[i]" in print_statements(first.body)


def test_a_loop_that_stores_what_was_stored_is_marked() -> None:
    kernel = lifted(problem_in("examples/cuda/silu_and_mul_vector"))
    assert [step.again for step in kernel.steps if isinstance(step, Each)] == [False, True]


def test_a_row_in_shared_memory_is_recognised() -> None:
    kernel = lifted(problem_in("examples/cuda/fused_add_rmsnorm"))
    row = kernel.staged[0]
    assert (row.name, row.type.base, row.width) == ("shared", "float4", 2)
    last = kernel.steps[-1]
    assert isinstance(last, Each)
    text = print_statements(last.body)
    assert f"shared[{last.index}][0]" in text
    assert f"shared[{last.index}][1]" in text


def test_strides_hold_within_stretches() -> None:
    kernel = lifted(problem_in("examples/opencl/silu_and_mul"))
    strides = {(a.array, a.stride, tuple(map(print_expr, a.within))) for a in kernel.accesses}
    assert strides == {("input", 1, ("d",)), ("out", 1, ())}


def test_a_flat_index_taken_apart_is_put_together() -> None:
    kernel = lifted(problem_in("examples/cuda/merge_attn_states_lse"))
    packs = [a for a in kernel.accesses if a.type.base == "uint4"]
    assert {a.array for a in packs} == {"v_a", "v_b", "v_merged"}
    assert all(a.stride == 1 and a.within == () for a in packs)


def test_threads_that_differ_in_the_slow_index_are_noticed() -> None:
    kernel = lifted(problem_in("tests/fixtures/bad_cuda/uncoalesced"))
    assert all(a.stride == 1 for a in kernel.accesses)
    assert any("side by side along 'col'" in note for note in kernel.notes)


def test_packs_by_a_pointer_lie_side_by_side_as_well() -> None:
    kernel = lifted(problem_in("tests/fixtures/published/packs_of_heads"))
    (each,) = (step for step in kernel.steps if isinstance(step, Each))
    assert [task.name for task in kernel.tasks] == ["token", "head"]
    assert print_expr(each.stop) == "dim / 8"
    assert {(a.array, a.stride) for a in kernel.accesses} == {("scale", 0), ("x", 1), ("out", 1)}


def test_extents_that_no_parameter_tells_name_the_launch() -> None:
    task = lifted(problem_in("tests/fixtures/zoo/layernorm")).tasks[0]
    assert (print_expr(task.extent), task.size) == ("gridDim.x", "rows")


def test_reading_is_quick() -> None:
    problem = problem_in("examples/cuda/rmsnorm")
    began = time.process_time()
    lift(problem)
    assert time.process_time() - began < 3.0  # some 0.2 s on an idle machine
