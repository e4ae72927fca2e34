"""Kernels with tiles, written anew: each element by itself gives what the block gave together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cuda_here import needs_nvrtc
from tests.expert.model.kernels import row_problem
from tests.expert.model.test_tiles import ROWS
from tests.expert.writing import models
from tests.expert.writing.emulator import needs_emulator
from tests.expert.writing.test_builds import instructions
from tests.expert.writing.test_emulated import SMALL_MAP, compare, of_the_zoo
from tunesmith.expert.model.kernel import KernelModel, TemplateDraft
from tunesmith.expert.model.lift import lift
from tunesmith.expert.writing import Unwritable, write
from tunesmith.problem.problem import Problem

SIZES = {
    "transpose_tiled": [{"rows": 37, "cols": 70}, {"rows": 4, "cols": 5}],
    "heat_tile": [{"height": 19, "width": 77}, {"height": 9, "width": 36}],
    "conv3x3_tile": [{"channels": 2, "height": 18, "width": 21}, {"channels": 1, "height": 1, "width": 4}],
    "matmul_tile": [{"m": 18, "n": 37, "k": 21}, {"m": 1, "n": 4, "k": 16}],
}
VALUES: list[dict[str, int]] = [{"LANES": 32, "TASKS": 4, "ITEMS": 2}, {"LANES": 16, "VEC": 4, "SPLIT": 1}]


@needs_emulator
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.few(1)
@pytest.mark.long
def test_a_tile_is_read_as_what_it_holds(name: str, emulated: Path) -> None:
    for sizes, values in zip(SIZES[name], VALUES, strict=True):
        compare(of_the_zoo(name), SMALL_MAP, sizes, emulated, **values)


TILED = SMALL_MAP.without("items", "split", "tasks").having(
    lanes=models.choice("LANES", 64, 128, default=64),
    tile=models.choice("TILE_", 16, 32, 64, default=32),
    across=models.choice("ACROSS", 16, 32, 64, default=32),
    pad=models.choice("PAD", 0, 1, 2, default=1),
)
NCHW = "nchw_to_nhwc"


@needs_emulator
@pytest.mark.parametrize(
    ("name", "sizes", "values"),
    [
        ("transpose_tiled", {"rows": 37, "cols": 70}, {}),
        ("transpose_tiled", {"rows": 68, "cols": 5}, {"TILE_": 64, "ACROSS": 16, "PAD": 0, "LANES": 128}),
        (NCHW, {"images": 2, "channels": 19, "pixels": 33}, {"TILE_": 16, "ACROSS": 64, "PAD": 2}),
        (NCHW, {"images": 3, "channels": 24, "pixels": 72}, {"VEC": 8, "STORE": 1}),
        (NCHW, {"images": 1, "channels": 4, "pixels": 36}, {"VEC": 4, "TILE_": 64, "PAD": 0}),
    ],
)
@pytest.mark.few(1)
def test_what_goes_through_a_tile(
    name: str, sizes: dict[str, int], values: dict[str, int], emulated: Path
) -> None:
    compare(of_the_zoo(name), TILED, sizes, emulated, **values)


def _smoothed() -> tuple[KernelModel, Problem]:
    """A row in shared memory, of which each thread reads the neighbours of its element."""
    problem = row_problem(ROWS["neighbours"][0], d="{ min = 1, max = 512 }")
    kernel = lift(problem)
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
        write(TemplateDraft(kernel, TILED), problem)


@needs_nvrtc
@pytest.mark.few(1)
def test_tiles_are_filled_and_emptied_in_wide_accesses() -> None:
    found = instructions(of_the_zoo(NCHW), TILED, VEC=8)
    assert {a.width for a in found.accesses if a.space == "global"} == {16}
