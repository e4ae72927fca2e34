"""Readings in words."""

from __future__ import annotations

from tests.expert.model.kernels import problem_in
from tunesmith.expert.model.lift import lift
from tunesmith.expert.offers import explain_lines


def test_a_reading_in_words() -> None:
    lines = explain_lines(lift(problem_in("examples/cuda/rmsnorm")))
    assert lines[0] == (
        "rmsnorm: independent tasks, one for each token below tokens. "
        "A block of d < 1024 ? d : 1024 threads works on each."
    )
    assert "  line 19: for each i from 0 to d, shared by the team; adds up sum (from 0.0f)" in lines
    assert "  line 38: the whole team knows scale = rsqrtf(sum / d + eps)" in lines
    assert "weight: read as __nv_bfloat16 at [i_2], neighbours side by side" in lines
    assert "Line 42 reads again what line 19 has read: input." in lines
    assert "It calls __bfloat162float, __float2bfloat16, __hmul, rsqrtf." in lines


def test_branches_and_kept_rows_in_words() -> None:
    gathered = explain_lines(lift(problem_in("tests/fixtures/zoo/gather_rows")))
    assert "  line 11: if id < 0, the whole team:" in gathered
    assert "  otherwise:" in gathered
    fused = explain_lines(lift(problem_in("examples/cuda/fused_add_rmsnorm")))
    assert "Shared memory 'shared' keeps 2 float4 of every element for a later loop." in fused
