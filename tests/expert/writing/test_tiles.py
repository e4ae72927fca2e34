"""Kernels with tiles, written anew: each element by itself gives what the block gave together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.expert.writing.emulator import needs_emulator
from tests.expert.writing.test_emulated import SMALL_MAP, compare, of_the_zoo

SIZES = {
    "transpose_tiled": [{"rows": 37, "cols": 70}, {"rows": 4, "cols": 5}],
    "heat_tile": [{"height": 19, "width": 77}, {"height": 9, "width": 36}],
    "conv3x3_tile": [{"channels": 2, "height": 18, "width": 21}, {"channels": 1, "height": 1, "width": 4}],
    "matmul_tile": [{"m": 18, "n": 37, "k": 21}, {"m": 1, "n": 4, "k": 16}],
}
VALUES: list[dict[str, int]] = [{"LANES": 32, "TASKS": 4, "ITEMS": 2}, {"LANES": 16, "VEC": 4, "SPLIT": 1}]


@needs_emulator
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.few(2)
def test_a_tile_is_read_as_what_it_holds(name: str, emulated: Path) -> None:
    for sizes, values in zip(SIZES[name], VALUES, strict=True):
        compare(of_the_zoo(name), SMALL_MAP, sizes, emulated, **values)
