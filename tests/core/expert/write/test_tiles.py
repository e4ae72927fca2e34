"""Kernels with tiles, written anew: each element by itself gives what the block gave together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.expert.read.kernels import row_problem
from tests.core.expert.write import models
from tests.core.expert.write.comparing import SMALL_MAP, compare, of_the_zoo
from tests.core.expert.write.emulator import needs_emulator
from tests.core.expert.write.test_builds import instructions
from tests.cuda_here import needs_nvrtc
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import KernelModel, TemplateDraft
from tunesmith.expert.write import Unwritable, render_draft
from tunesmith.problem.problem import Problem

TILED = SMALL_MAP.without("items", "split", "tasks").having(
    lanes=models.choice("LANES", 64, 128, default=64),
    tile=models.choice("TILE_", 16, 32, 64, default=32),
    across=models.choice("ACROSS", 16, 32, 64, default=32),
    pad=models.choice("PAD", 0, 1, 2, default=1),
)
NCHW = "nchw_to_nhwc"


SMOOTHED = """__shared__ float row[512]; const int r = blockIdx.x; if (r >= rows) return;
for (int i = threadIdx.x; i < d; i += blockDim.x) row[i] = x[r * d + i];
__syncthreads();
for (int i = threadIdx.x; i < d; i += blockDim.x)
    out[r * d + i] = (i > 0 ? row[i - 1] : 0.0f) + (i + 1 < d ? row[i + 1] : 0.0f);"""


def _smoothed() -> tuple[KernelModel, Problem]:
    """A row in shared memory, of which each thread reads the neighbours of its element."""
    problem = row_problem(SMOOTHED, most=512)
    kernel = lift_kernel(problem)
    assert isinstance(kernel, KernelModel)
    return kernel, problem


@needs_emulator
@pytest.mark.few(1)
@pytest.mark.long
def test_a_row_that_all_threads_read(emulated: Path) -> None:
    compare(_smoothed, SMALL_MAP, {"rows": 3, "d": 37}, emulated, LANES=16, ITEMS=2)


def test_tiles_are_for_loads_along_another_axis_than_the_stores() -> None:
    kernel, problem = of_the_zoo("heat_tile")()
    with pytest.raises(Unwritable, match="along another axis"):
        render_draft(TemplateDraft(kernel, TILED), problem)


@needs_nvrtc
@pytest.mark.few(1)
def test_tiles_are_filled_and_emptied_in_wide_accesses() -> None:
    found = instructions(of_the_zoo(NCHW), TILED, VEC=8)
    assert {a.width for a in found.accesses if a.space == "global"} == {16}
