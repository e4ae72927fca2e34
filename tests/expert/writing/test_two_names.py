"""One memory by two names: what is stored by one is read by the other, whatever is kept or moved in packs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.expert.model.kernels import lifted
from tests.expert.writing.emulator import needs_emulator
from tests.expert.writing.test_emulated import SMALL_ROWS, compare
from tunesmith.expert.model.kernel import KernelModel
from tunesmith.problem.problem import Problem
from tunesmith.problem.problem_file import parse_problem

PROBLEM = """
name = "two_names"
[kernel]
source = "kernel.cu"
entry = "k"
language = "cuda"
[[argument]]
name = "x"
type = "float32*"
shape = ["rows", "d"]
role = "inout"
align = 16
[[argument]]
name = "y"
type = "float32*"
alias = "x"
[[argument]]
name = "out"
type = "float32*"
shape = ["rows", "d"]
role = "output"
align = 16
[[argument]]
name = "rows"
type = "int32"
value = "rows"
[[argument]]
name = "d"
type = "int32"
value = "d"
[launch]
grid = ["rows"]
block = ["64"]
[contract]
rows = { min = 1, max = 65536 }
d = { min = 64, max = 4096, multiple_of = 16 }
[workloads]
many = { rows = 512, d = 256 }
[accuracy]
rtol = 1e-3
atol = 1e-3
"""
_EACH = "for (int i = threadIdx.x; i < d; i += 64) "
KERNELS = {
    "in two loops": f"{_EACH} y[r + i] = x[r + i] + 1.0f;\n{_EACH} out[r + i] = x[r + i] * 2.0f;",
    "in one loop": _EACH + "{ y[r + i] = x[r + i] + 1.0f; out[r + i] = x[r + i] * 2.0f; }",
}


def _problem(body: str) -> Problem:
    head = 'extern "C" __global__ void k(float *x, float *y, float *out, int rows, int d)'
    text = f"{head} {{\nconst int r = blockIdx.x * d;\n{body} }}\n"
    return parse_problem(PROBLEM, path="problem.toml", read=lambda _: text)


@needs_emulator
@pytest.mark.parametrize("case", KERNELS)
@pytest.mark.few(1)
def test_what_is_stored_by_one_name_is_read_by_the_other(case: str, emulated: Path) -> None:
    problem = _problem(KERNELS[case])

    def model() -> tuple[KernelModel, Problem]:
        return lifted(problem), problem

    compare(model, SMALL_ROWS, {"rows": 3, "d": 256}, emulated, LANES=32, VEC=4, KEEP=2)


def test_a_store_by_another_name_is_a_dependence() -> None:
    problem = _problem(_EACH + "out[r + i] = x[r + i] + (y[r + d - 1 - i] = 1.0f);")
    with pytest.raises(AssertionError, match="depend on each other"):
        lifted(problem)
