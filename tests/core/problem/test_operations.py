"""`operations`: what a problem says must be computed."""

from __future__ import annotations

import pytest

from tests.core.lab.labs import scale_problem
from tunesmith.base.errors import BadInput
from tunesmith.lab.profile import necessary_work
from tunesmith.problem.problem import Workload

NAME = 'name = "scale"'


def test_they_are_expressions_in_the_sizes() -> None:
    problem = scale_problem((NAME, 'operations = { fp32 = "8 * rows * d", fp16 = 3 }\n' + NAME))
    work = necessary_work(problem, Workload("w", (("rows", 4), ("d", 16))))
    assert work.operations.fp32 == 512
    assert work.operations.fp16 == 3
    assert work.operations.tensor is None
    assert (work.read, work.written) == (256, 256)


def test_none_are_needed() -> None:
    assert scale_problem().operations == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{ fp32 = "8 * e" }', "unknown name 'e'"),
        ('{ int8 = "8" }', "int8"),
        ('"8 * d"', "operations must be a table"),
        ("{ }", "operations is empty"),
        ("{ fp32 = 1.5 }", "an integer or an expression in quotes"),
        ('{ fp32 = "d - 9999" }', "operations: fp32 'd - 9999' is -9967, allowed is at least 0"),
    ],
)
def test_faults_are_reported_with_their_line(text: str, said: str) -> None:
    with pytest.raises(BadInput) as error:
        scale_problem((NAME, f"operations = {text}\n{NAME}"))
    assert said in str(error.value)
    assert "problem.toml:2" in str(error.value)
