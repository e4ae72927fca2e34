"""Launches with a thread to each element and no argument that says how many there are."""

from __future__ import annotations

from tests.expert.model.kernels import lifted, row_problem, summary
from tests.running import FIXTURES
from tunesmith.session.problems import load_problem

PUT = "const int i = blockIdx.x * blockDim.x + threadIdx.x;\n{}out[i] = x[i] * 2;"


def test_each_block_is_a_task_with_as_many_elements_as_it_has_threads() -> None:
    problem, *_ = load_problem(FIXTURES / "published" / "copied_packs")
    assert summary(lifted(problem)) == "block<n // 2048 | each 0..256"


def test_with_an_argument_it_is_one_range() -> None:
    assert summary(lifted(row_problem(PUT.format(""), grid=("rows",)))) == "| each 0..rows * 256"
    guarded = row_problem(PUT.format("if (i < rows) "), grid=("ceildiv(rows, 256)",))
    assert summary(lifted(guarded)) == "| each 0..rows"
