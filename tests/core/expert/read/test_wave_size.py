"""A kernel that asks for its wave is read alike at either width, and one that does not stays as it is."""

from __future__ import annotations

import pytest

from tests.core.expert.read.kernels import lifted, problem_in, row_problem
from tunesmith.backends.binaries import as_compiled
from tunesmith.backends.hip.devices import absent_device as amd


def test_a_kernel_of_cuda_stays_as_it_is() -> None:
    plain = row_problem("out[blockIdx.x * d + threadIdx.x] = warpSize;")
    assert as_compiled(plain, amd("gfx942")) == plain


@pytest.mark.parametrize("name", ["gfx942", "gfx1100"])
def test_the_softmax_is_one_kernel_at_either_width(name: str) -> None:
    problem = problem_in("examples/hip/softmax")
    wide, narrow = lifted(problem), lifted(as_compiled(problem, amd(name)))
    assert narrow.steps == wide.steps
