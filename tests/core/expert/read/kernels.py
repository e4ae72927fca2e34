"""Problems made of a kernel's text, and readings that must succeed, for tests of the expert."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.golden.made_problems import made_problem
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import KernelModel
from tunesmith.problem.problem import Problem
from tunesmith.session.problems import load_problem

ROOT = Path(__file__).parents[4]


def problem_in(folder: str) -> Problem:
    return load_problem(ROOT / folder)[0]


def row_problem(
    body: str,
    *,
    grid: Sequence[str] = ("rows",),
    block: Sequence[str] = ("256",),
    most: int = 65536,
    before: str = "",
    many: tuple[int, int] = (512, 32),
) -> Problem:
    """A kernel `k(x, out, rows, d)` on rows of floats."""
    head = 'extern "C" __global__ void k(const float *x, float *out, int rows, int d)'
    return made_problem(
        f"{before}\n{head} {{\n{body}\n}}\n",
        launch={"grid": list(grid), "block": list(block)},
        contract={"d": {"max": most}},
        workloads={"many": {"rows": many[0], "d": many[1]}},
    )


def lifted(problem: Problem) -> KernelModel:
    kernel = lift_kernel(problem)
    assert isinstance(kernel, KernelModel), kernel.reason
    return kernel
