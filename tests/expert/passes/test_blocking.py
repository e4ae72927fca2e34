"""Which tasks a team takes at once, along which index, and what refuses it."""

from __future__ import annotations

from functools import cache

import pytest

from tests.expert.passes.kernels import CPU, FLAT, FLAT_PROBLEM, GPU, MAP, NORM, refused, searched
from tests.running import FIXTURES
from tests.wording import says
from tunesmith.expert.model.kernel import KernelModel, ParameterChoice, TemplateDraft
from tunesmith.expert.model.lift import lift
from tunesmith.expert.passes import MOVES, Context
from tunesmith.expert.passes.access import planned
from tunesmith.problem.problem import Problem
from tunesmith.session.problems import load_problem

BLOCKED = ParameterChoice("BLOCKED", (1, 2), 1)
SHARED = ("lanes", "tasks", "vector", "items", "keep", "blocking")


@cache
def lifted(name: str) -> tuple[KernelModel, Problem]:
    problem, _ = load_problem(FIXTURES / "zoo" / name)
    kernel = lift(problem)
    assert isinstance(kernel, KernelModel)
    return kernel, problem


def of_the_zoo(name: str, *moves: str) -> TemplateDraft | str:
    """With these moves; or why one does not apply."""
    kernel, problem = lifted(name)
    draft: TemplateDraft | str = TemplateDraft(kernel)
    for move in (move for move in MOVES if move.name in moves):
        assert not isinstance(draft, str), draft
        draft = move.apply(draft, Context(problem, GPU))
    return draft


class TestBlocking:
    def test_its_values_and_the_registers_they_take(self) -> None:
        draft = of_the_zoo("bias_relu_2d", "lanes", "tasks", "vector", "items", "blocking")
        assert isinstance(draft, TemplateDraft)
        assert draft.schedule["blocking"].values == (1, 2, 4, 8)
        assert draft.schedule["blocking"].default == 1
        prefer = dict(searched(draft, lifted("bias_relu_2d")[1]).prefer)
        # Of each row its own four bytes, of the bias four for all.
        assert prefer["tile_in_registers"] == "BLOCKED == 1 or VEC * ITEMS * (BLOCKED * 4 + 4) <= 256"
        assert prefer["teams_for_all"] == "BLOCKED == 1 or rows >= BLOCKED * TASKS * device.sms"

    @pytest.mark.parametrize(
        ("name", "index"), [("stencil2d", "y"), ("causal_conv1d", "b"), ("bias_relu_2d", "row")]
    )
    def test_it_goes_along_the_index_that_loads_do_not_move_with(self, name: str, index: str) -> None:
        kernel, problem = lifted(name)
        plan = planned(TemplateDraft(kernel), Context(problem, GPU), blocking=BLOCKED)
        assert not isinstance(plan, str)
        assert plan.blocking.task is not None
        assert plan.blocking.task.name == index

    def test_rows_that_share_nothing_and_are_long(self) -> None:
        says(refused(MAP, "lanes", "vector", "blocking"), "nothing alike")

    def test_flat_loops_have_no_neighbours(self) -> None:
        says(refused(FLAT, "lanes", "blocking", problem=FLAT_PROBLEM), "no neighbours")

    def test_a_cpu_has_too_few_registers(self) -> None:
        says(refused(NORM, "lanes", "blocking", device=CPU), "too few registers")

    def test_a_row_for_each_of_several_tasks_is_kept(self) -> None:
        draft = of_the_zoo("layernorm", *SHARED)
        assert isinstance(draft, TemplateDraft)
        assert "BLOCKED *" in dict(searched(draft, lifted("layernorm")[1]).prefer)["registers"]
