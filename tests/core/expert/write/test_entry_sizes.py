"""Template arguments that follow a size: a constant of the build, and a size like any other to the moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.expert.write.building import DEVICE, build_all, configurations, read, variant
from tests.core.expert.write.models import choice
from tests.cuda_here import needs_nvrtc
from tests.running import FIXTURES
from tunesmith.expert.author import ExpertAuthor
from tunesmith.expert.author import try_read_kernel as reading
from tunesmith.expert.read.model import Schedule
from tunesmith.problem.problem import Problem
from tunesmith.run.ports import Refactoring, Written
from tunesmith.session.problems import load_problem

ROWS = Schedule.of(lanes=choice("LANES", 4, 64), tasks=choice("TASKS", 1, 4), vector=choice("VEC", 1, 8))
KEPT = ROWS.having(keep=choice("KEEP", 0, 4))


def head_norm(entry: str = "head_norm<{head_dim}>", text: tuple[str, str] = ("", "")) -> Problem:
    problem = load_problem(FIXTURES / "zoo" / "head_norm")[0]
    kernel = replace(problem.kernel, entry=entry, text=problem.kernel.text.replace(*text))
    return replace(problem, kernel=kernel, launches=(replace(problem.launches[0], entry=entry),))


def test_no_launch_passes_it_and_each_value_is_a_build_of_its_own() -> None:
    problem = head_norm()
    written = ExpertAuthor().write(Refactoring(("lanes", "tasks", "vector", "keep", "bake")), problem, DEVICE)
    assert isinstance(written, Written)
    assert dict(written.refused)["bake"].startswith("no length or stride of a row is an argument")
    template = read(written.text, problem)
    assert [(name, e.text) for name, e in template.defines] == [("HEAD_DIM_CONST", "head_dim")]
    assert template.launches[0].args == ("q", "weight", "heads", "eps")
    assert "int heads, float eps)" in written.text
    made = template.render(problem, template.default, {"heads": 8, "head_dim": 96})
    assert "#define HEAD_DIM_CONST 96" in made.source
    assert not made.allows({"heads": 8, "head_dim": 64})
    assert "#define HEAD_DIM_CONST 128" in written.text  # of the first workload, for whoever reads it


@needs_nvrtc
@pytest.mark.slow
@pytest.mark.long
def test_it_compiles() -> None:
    problem = head_norm()
    written = ExpertAuthor().write(
        Refactoring(("lanes", "tasks", "vector", "items", "keep")), problem, DEVICE
    )
    assert isinstance(written, Written)
    template = read(written.text, problem)
    made = [variant(template, problem, config) for config in configurations(template, problem)[:4]]
    assert [one for one in build_all(made) if isinstance(one, Exception)] == []


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (head_norm("head_norm<{head_dim} / 2>"), "computes with a size"),
        (head_norm(text=("<int HEAD_DIM>", "<typename HEAD_DIM>")), "computes with a size"),
        (head_norm(text=("<int HEAD_DIM>", "<int HEAD_DIM, int HALF = HEAD_DIM / 2>")), "HEAD_DIM / 2"),
    ],
)
def test_what_no_constant_could_stand_for_is_left_as_it_is(problem: Problem, why: str) -> None:
    found = reading(problem)
    assert isinstance(found, str)
    assert why in found
