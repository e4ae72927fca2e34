"""One memory by two names: what is stored by one is read by the other, whatever is kept or moved in packs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.expert.read.kernels import lifted
from tests.core.expert.write.comparing import SMALL_ROWS, compare
from tests.core.expert.write.emulator import needs_emulator
from tests.golden.made_problems import made_problem
from tunesmith.expert.read.model import KernelModel
from tunesmith.problem.problem import Problem

_EACH = "for (int i = threadIdx.x; i < d; i += 64) "
KERNELS = {
    "in two loops": f"{_EACH} y[r + i] = x[r + i] + 1.0f;\n{_EACH} out[r + i] = x[r + i] * 2.0f;",
    "in one loop": _EACH + "{ y[r + i] = x[r + i] + 1.0f; out[r + i] = x[r + i] * 2.0f; }",
}


def _problem(body: str) -> Problem:
    head = 'extern "C" __global__ void k(float *x, float *y, float *out, int rows, int d)'
    text = f"{head} {{\nconst int r = blockIdx.x * d;\n{body} }}\n"
    return made_problem(text, "two_names")


@needs_emulator
@pytest.mark.parametrize("case", KERNELS)
@pytest.mark.few(1)
def test_what_is_stored_by_one_name_is_read_by_the_other(case: str, emulated: Path) -> None:
    problem = _problem(KERNELS[case])

    def model() -> tuple[KernelModel, Problem]:
        return lifted(problem), problem

    compare(model, SMALL_ROWS, {"rows": 3, "d": 256}, emulated, LANES=32, VEC=4, KEEP=2)
