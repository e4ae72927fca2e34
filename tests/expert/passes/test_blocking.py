"""Along which index a team takes several tasks at once."""

from __future__ import annotations

import pytest

from tests.expert.model.kernels import lifted, problem_in
from tests.expert.passes.kernels import GPU
from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes import Context
from tunesmith.expert.passes.access import planned

BLOCKED = ParameterChoice("BLOCKED", (1, 2), 1)


@pytest.mark.parametrize(
    ("name", "index"), [("stencil2d", "y"), ("causal_conv1d", "b"), ("bias_relu_2d", "row")]
)
def test_it_is_the_index_that_loads_do_not_move_with(name: str, index: str) -> None:
    problem = problem_in(f"tests/fixtures/zoo/{name}")
    plan = planned(TemplateDraft(lifted(problem)), Context(problem, GPU), blocking=BLOCKED)
    assert not isinstance(plan, str)
    assert plan.blocking.task is not None
    assert plan.blocking.task.name == index
