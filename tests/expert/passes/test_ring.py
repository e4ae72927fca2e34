"""Copies ahead of their turn: where they apply, and what refuses them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.expert.passes.kernels import (
    CPU,
    FLAT,
    FLAT_PROBLEM,
    GPU,
    MAP,
    NORM,
    ROWS,
    SIGNATURE,
    SUM,
    applied,
    body,
    each,
    kernel,
    problem,
    refused,
    searched,
)
from tests.samples import HOPPER
from tunesmith.expert.model.kernel import KernelModel, Let
from tunesmith.expert.passes import REMEDIES
from tunesmith.expert.writing import write
from tunesmith.expert.writing.rules import structural_rules
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Remedy

AMPERE = replace(GPU, limits=replace(HOPPER, capability=80))
TURING = replace(GPU, limits=replace(HOPPER, capability=75))
SHARED = ("lanes", "tasks", "vector", "items")


@pytest.mark.parametrize("device", [GPU, AMPERE])
@pytest.mark.parametrize("given", [MAP, NORM])
def test_rows_that_are_only_read_are_copied_ahead(given: KernelModel, device: Device) -> None:
    draft = applied(given, *SHARED, "hints", "ring", device=device)
    assert draft.schedule["ring"].values == (0, 2, 3, 4)
    prefer = dict(searched(draft).prefer)
    assert prefer["chunks_ahead"] == "STAGES == 0 or 2 * LANES * VEC * ITEMS < d"
    assert prefer["copied_or_hinted"] == "STAGES == 0 or LOAD == 0"
    assert dict(searched(draft).answers)["stage_in_shared"] == "STAGES > 0"


def test_bulk_copies_are_a_choice_on_hopper() -> None:
    assert "bulk" not in applied(NORM, *SHARED, "ring", device=AMPERE).schedule
    draft = applied(NORM, *SHARED, "ring", device=GPU)
    assert draft.schedule["bulk"].values == (0, 1)
    assert dict(searched(draft).prefer)["long_runs"] == "BULK == 0 or LANES * VEC * ITEMS * 2 >= 512"
    rules = dict(structural_rules(draft, problem(SIGNATURE)))
    assert rules["bulk_copies"] == "BULK == 0 or STAGES > 0 and device.capability >= 90"
    assert rules["bulk_by_warps"] == "BULK == 0 or LANES % 32 == 0"
    assert rules["bulk_pieces"] == "BULK == 0 or VEC * 2 % 16 == 0"


def test_bulk_copies_need_chunks_in_one_piece_and_16_bytes() -> None:
    """Rows of 64 with gaps: neighbours within a vector, not within a chunk."""
    gaps = kernel(ROWS, each("out[row * d + i] = x[row * d + i % 64];"))
    draft = applied(gaps, *SHARED, "ring")
    assert "ring" in draft.moves
    assert "bulk" not in draft.schedule
    assert "bulk" not in applied(MAP, *SHARED, "ring", problem=problem(SIGNATURE, align=8)).schedule


def test_it_answers_what_tiles_alone_answer_too() -> None:
    staged = [move for move, remedies in REMEDIES.items() if Remedy.STAGE_IN_SHARED in remedies]
    assert staged == ["tile", "ring"]


def test_what_it_requires() -> None:
    at = problem(SIGNATURE)
    draft = applied(NORM, *SHARED, "keep", "ring")
    rules = dict(structural_rules(draft, at))
    assert rules["copies_ahead"] == "STAGES == 0 or device.capability >= 80"
    assert rules["whole_copies"] == "STAGES == 0 or VEC * 2 % 4 == 0"  # halves, two at least
    assert rules["ring_or_keep"] == "STAGES == 0 or KEEP == 0"
    ring = "round_up(STAGES * ITEMS * LANES * TASKS * VEC * 2, 16)"
    assert rules["memory_fits"] == f"{ring} + 4096 <= device.shared"


def test_loops_beside_each_other_and_split_rows_have_none() -> None:
    draft = applied(MAP, *SHARED, "split", "ring")
    rules = dict(structural_rules(draft, problem(SIGNATURE)))
    assert rules["ring_or_split"] == "STAGES == 0 or SPLIT == 0"


IN_PLACE = kernel("__half *x, int rows, int d", each("x[row * d + i] = x[row * d + i] + x[row * d + i];"))
FAR = kernel(ROWS, each("out[row * d + i] = x[row * d + i * 40];"))
BYTES = "out: uint8*[rows, d]; x: uint8*[rows, d]; rows: int32 = rows; d: int32 = d"


@pytest.mark.parametrize(
    ("given", "moves", "at", "device", "why"),
    [
        (MAP, SHARED, problem(SIGNATURE), TURING, "need sm_80, and this is sm_75"),
        (MAP, ("lanes",), problem(SIGNATURE), CPU, "only CUDA's GPUs"),
        (MAP, ("lanes",), problem(SIGNATURE), GPU, "without vectors pieces are single elements"),
        (FAR, ("lanes", "items"), problem(SIGNATURE), GPU, "no loop reads neighbours"),
        (
            IN_PLACE, SHARED, problem("x: float16*[rows, d]; rows: int32 = rows; d: int32 = d"), GPU,
            "an array that is only read",
        ),
        (MAP, ("lanes", "items"), problem(SIGNATURE, align=2), GPU, "in pieces of 4 bytes"),
        (FLAT, ("lanes", "vector"), FLAT_PROBLEM, GPU, "every block takes one chunk"),
        (MAP, SHARED, problem(SIGNATURE, sizes="rows = 64, d = 2"), GPU, "two turns at most"),
    ],
)  # fmt: skip
def test_it_is_refused_with_a_sentence(
    given: KernelModel, moves: tuple[str, ...], at: Problem, device: Device, why: str
) -> None:
    assert why in refused(given, *moves, "ring", problem=at, device=device)


def _order(stop: str) -> bool:
    """Whether the second loop's first chunks are under way before the totals of the first are joined."""
    given = kernel(
        "float *out, const float *x, int rows, int d",
        each("sum += x[row * d + i];", totals=(SUM,)),
        Let(body("const int count = sum > 1.0f ? d : 0;")),
        each("out[row * d + i] = x[row * d + i] + count;", stop=stop),
    )
    at = problem("out: float32*[rows, d]; x: float32*[rows, d]; rows: int32 = rows; d: int32 = d")
    text = write(applied(given, "lanes", "ring", problem=at), at)
    assert text.count("// the first chunks") == 2
    return text.rindex("// the first chunks") < text.index("__shfl_xor_sync")


def test_the_next_loop_is_under_way_before_totals_that_it_does_not_wait_for() -> None:
    assert _order("d")
    assert not _order("count")


def test_tasks_that_share_registers_may_have_one_in_their_stead() -> None:
    weighted = kernel(
        "float *out, const float *x, const float *w, int rows, int d",
        each("out[row * d + i] = x[row * d + i] * w[i];"),
    )
    at = problem(
        "out: float32*[rows, d]; x: float32*[rows, d]; w: float32*[d]; rows: int32 = rows; d: int32 = d"
    )
    assert "ring" in applied(weighted, *SHARED, "ring", problem=at).moves
    both = applied(weighted, *SHARED, "blocking", "ring", problem=at)
    assert both.moves[-2:] == ("blocking", "ring")


def test_a_flat_range_needs_blocks_that_go_on() -> None:
    draft = applied(FLAT, "lanes", "vector", "persistent", "ring", problem=FLAT_PROBLEM)
    want = "STAGES == 0 or 2 * LANES * VEC * PERSIST * device.sms < n"
    assert dict(searched(draft, FLAT_PROBLEM).prefer)["chunks_ahead"] == want
    rules = dict(structural_rules(draft, FLAT_PROBLEM))
    assert rules["ring_goes_on"] == "STAGES == 0 or PERSIST > 0"
