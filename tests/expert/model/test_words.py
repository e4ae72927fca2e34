"""Readings in words."""

from __future__ import annotations

import pytest

from tests.expert.model.kernels import problem_in, row_problem
from tests.wording import says
from tunesmith.expert.model.lift import lift
from tunesmith.expert.model.words import explain_lines


def test_a_reading_in_words() -> None:
    lines = explain_lines(lift(problem_in("examples/cuda/rmsnorm")))
    says(lines[0], "rmsnorm:", "independent tasks", "token below tokens", "d < 1024 ? d : 1024 threads")
    says(lines, "line 19:", "each i from 0 to d", "shared by the team", "adds up sum", "0.0f")
    says(lines, "line 38:", "whole team", "scale = rsqrtf(sum / d + eps)")
    says(lines, "weight:", "read as __nv_bfloat16", "[i_2]", "side by side")
    says(lines, "Line 42", "again", "line 19", "input")
    assert "It calls __bfloat162float, __float2bfloat16, __hmul, rsqrtf." in lines


def test_branches_and_stored_rows_in_words() -> None:
    gathered = explain_lines(lift(problem_in("tests/fixtures/zoo/gather_rows")))
    assert "  line 11: if id < 0, the whole team:" in gathered
    assert "  otherwise:" in gathered
    fused = explain_lines(lift(problem_in("examples/cuda/fused_add_rmsnorm")))
    says(fused, "Shared memory 'shared'", "2 float4", "every element")


@pytest.mark.parametrize(
    ("head", "near"),
    [
        ("int k = 0; k < d; ++k", "the same for neighbours"),
        ("int k = 0; k < i; ++k", "the same for neighbours"),
        ("int k = i; k < d; ++k", "no constant distance"),
        ("int k = 2 * i - 1; k < d; ++k", "no constant distance"),
        ("int k = 0; k < d; k += i + 1", "no constant distance"),
    ],
)
def test_a_loop_in_the_body_counts_alike_for_neighbours_or_not(head: str, near: str) -> None:
    body = (
        "for (int i = threadIdx.x; i < d; i += 256) { float s = 0.0f; "
        f"for ({head}) s += x[k]; out[blockIdx.x * d + i] = s; }}"
    )
    says(explain_lines(lift(row_problem(body))), "x:", "[k]", near)
