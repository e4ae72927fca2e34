"""Copies ahead of their turn, and along which index a team takes several tasks at once."""

from __future__ import annotations

import pytest

from tests.core.expert.moves.kernels import (
    GPU,
    SUM,
    applied,
    body,
    each,
    kernel,
    problem,
)
from tests.core.expert.read.kernels import lifted, problem_in
from tunesmith.expert.moves import REMEDIES
from tunesmith.expert.moves.move import Context, try_plan
from tunesmith.expert.read.model import Let, ParameterChoice, TemplateDraft
from tunesmith.expert.write import render_draft
from tunesmith.problem.template import Remedy


def test_it_answers_what_tiles_alone_answer_too() -> None:
    staged = [move for move, remedies in REMEDIES.items() if Remedy.STAGE_IN_SHARED in remedies]
    assert staged == ["tile", "ring"]


def _order(stop: str) -> bool:
    """Whether the second loop's first chunks are under way before the totals of the first are joined."""
    given = kernel(
        "float *out, const float *x, int rows, int d",
        each("sum += x[row * d + i];", totals=(SUM,)),
        Let(body("const int count = sum > 1.0f ? d : 0;")),
        each("out[row * d + i] = x[row * d + i] + count;", stop=stop),
    )
    at = problem("out: float32*[rows, d]; x: float32*[rows, d]; rows: int32 = rows; d: int32 = d")
    text = render_draft(applied(given, "lanes", "ring", problem=at), at)
    assert text.count("// the first chunks") == 2
    return text.rindex("// the first chunks") < text.index("__shfl_xor_sync")


def test_the_next_loop_is_under_way_before_totals_that_it_does_not_wait_for() -> None:
    assert _order("d")
    assert not _order("count")


BLOCKED = ParameterChoice("BLOCKED", (1, 2), 1)


@pytest.mark.parametrize(
    ("name", "index"), [("stencil2d", "y"), ("causal_conv1d", "b"), ("bias_relu_2d", "row")]
)
def test_it_is_the_index_that_loads_do_not_move_with(name: str, index: str) -> None:
    problem = problem_in(f"tests/fixtures/zoo/{name}")
    plan = try_plan(TemplateDraft(lifted(problem)), Context(problem, GPU), blocking=BLOCKED)
    assert not isinstance(plan, str)
    assert plan.blocking.task is not None
    assert plan.blocking.task.name == index
