"""What a written template asks for by itself, and what it refuses to write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.expert.moves.kernels import CPU
from tests.core.expert.write import models
from tests.core.expert.write.building import read
from tests.core.expert.write.models import MAP, ROWS, choice
from tunesmith.expert.moves.move import Context
from tunesmith.expert.moves.sharing import unflatten_rows as by_rows
from tunesmith.expert.read.model import Task, TemplateDraft
from tunesmith.expert.write import Unwritable, render_draft, structural_rules
from tunesmith.source.tree import Name


def test_rules_of_rows() -> None:
    kernel, problem = models.rmsnorm()
    odd = ROWS.having(lanes=choice("LANES", 12, 48, 64))
    assert structural_rules(TemplateDraft(kernel, odd), problem) == [
        ("block_fits", "LANES * TASKS <= device.max_threads"),
        ("whole_warps", "LANES <= 32 or LANES % 32 == 0"),
        ("even_teams", "LANES >= 32 or is_pow2(LANES)"),
        ("whole_vectors", "d % VEC == 0"),
        ("row_fits", "KEEP == 0 or LANES * VEC * KEEP >= d"),
    ]


def test_what_the_contract_grants_is_not_asked() -> None:
    kernel, problem = models.group_quant()  # groups of 128
    assert "whole_vectors" not in [name for name, _ in structural_rules(TemplateDraft(kernel, ROWS), problem)]


def test_a_count_that_the_kernel_is_not_given_makes_the_grid_exact() -> None:
    kernel, problem = models.silu_and_mul()
    uncounted = replace(kernel, tasks=(Task("token", Name("gridDim.x"), "long long", "tokens"),))
    schedule = MAP.having(tasks=choice("TASKS", 1, 4))
    template = read(render_draft(TemplateDraft(uncounted, schedule), problem), problem)
    rules = {c.name: c.expr.text for c in template.space.constraints}
    assert rules["whole_blocks"] == "tokens % TASKS == 0"
    assert "gridDim.x * TASKS" in template.source.replace("(int)TASK_BLOCKS", "gridDim.x")
    with pytest.raises(Unwritable, match="not told how many tasks"):
        render_draft(TemplateDraft(uncounted, schedule.having(persistent=choice("PERSIST", 0, 1))), problem)


def test_choices_that_change_nothing_are_left_out() -> None:
    kernel, problem = models.rmsnorm()
    draft = TemplateDraft(kernel, ROWS, prefer=(("exact", "RECIPROCAL == 0 or VEC == 8"),))
    template = read(render_draft(draft, problem), problem)
    assert "RECIPROCAL" not in [p.name for p in template.space.params]
    assert "exact" not in [c.name for c in template.space.constraints]


def test_steps_that_ask_for_todays_launch_are_refused() -> None:
    kernel, problem = models.silu_and_mul()
    loop = models.each("d", "out[token * out_stride + i] = input[blockDim.x + i];")
    with pytest.raises(Unwritable, match=r"blockDim\.x"):
        render_draft(TemplateDraft(replace(kernel, steps=(loop,)), MAP), problem)


def test_helpers_come_along_and_names_do_not_clash() -> None:
    kernel, problem = models.silu_and_mul()
    loop = models.each(
        "d",
        "const float lane = silu(input[token * input_stride + i]); const float k = lane * 2.0f;"
        "out[token * out_stride + i] = (__half)(k + lane);",
    )
    text = render_draft(TemplateDraft(replace(kernel, steps=(loop,)), MAP), problem)
    assert "__device__ float silu(T value)" in text
    assert "const int lane_2 = threadIdx.x;" in text
    assert "for (int k_2 = 0;" in text


def test_a_flat_index_that_is_taken_apart_becomes_rows() -> None:
    kernel, problem = models.cl_silu_and_mul()
    rows = by_rows.apply(TemplateDraft(kernel), Context(problem, CPU))
    assert isinstance(rows, TemplateDraft)
    assert [(t.extent, t.type) for t in rows.kernel.tasks] == [(Name("tokens"), "size_t")]
    kernel, problem = models.rmsnorm()
    assert isinstance(by_rows.apply(TemplateDraft(kernel), Context(problem, CPU)), str)
