"""Planted numbers are met where a case names them, and no promise about an array is broken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.core.problem.test_draws import buffer
from tunesmith.problem.inputs import draw_array
from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.structures import planted_name

NUMBERS = (200.0, 12345.0, 0.1)


def matrix(type: str, name: str = "x") -> BufferPlan:
    return replace(buffer(type, 64 * 48, name), shape=(64, 48), strides=(48, 1))


def test_a_name_says_all_numbers() -> None:
    name = planted_name(NUMBERS)
    assert tuple(float(text) for text in name.removeprefix("planted ").split(",")) == NUMBERS


@pytest.mark.parametrize(
    ("type", "wanted"),
    [
        ("float32", 12345.0),
        ("float16", 200.0),
        ("bfloat16", 200.0),
        ("uint8", 200),
        ("int64", 12345),
        ("int8", 0),
    ],
)
def test_rows_hold_the_numbers_that_fit_the_type(type: str, wanted: float) -> None:
    rows = draw_array(matrix(type), planted_name(NUMBERS), 3).reshape(64, 48)
    assert (rows.astype(np.float64) == wanted).any()
    assert np.isfinite(rows.astype(np.float64)).all()


def test_two_arrays_have_rows_in_common() -> None:
    both = [matrix("float32", name) for name in ("x", "y")]
    x, y = (draw_array(one, planted_name(NUMBERS), 3).reshape(64, 48) for one in both)
    same = (x == y).all(axis=1)
    assert 0 < np.count_nonzero(same) < 32


def test_promises_hold() -> None:
    name = planted_name((-7.0, 0.25, 9.0))
    bounded = draw_array(buffer("float32", 4096, range=(0.0, 1.0)), name, 1)
    assert (bounded.min() >= 0, bounded.max() <= 1, (bounded == 0.25).any()) == (True, True, True)
    positive = buffer("float32", 4096, values="positive")
    assert np.array_equal(draw_array(positive, name, 1), draw_array(positive, "normal", 1))
    packed = buffer("int4", 64)
    assert np.array_equal(draw_array(packed, name, 1), draw_array(packed, "normal", 1))
