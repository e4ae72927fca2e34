from __future__ import annotations

import numpy as np

from tunesmith.search.models import targets


def test_the_bad_half_and_failures_count_the_same() -> None:
    made = targets(np.array([[3.0], [1.0], [np.nan], [2.0], [0.0], [-9.0]]))
    values = made.values[:, 0]
    assert values[1] == values[2] == values[4] == values[5] == values.min()
    assert values[0] > values[3] > values[1]
    assert np.isclose(values.mean(), 0)
    assert np.isclose(values.std(), 1)


def test_differences_that_are_noise_are_not_blown_up() -> None:
    assert np.ptp(targets(np.array([[0.001], [0.0], [0.002]])).values) < 0.2


def test_nothing_that_worked_is_no_error() -> None:
    assert not targets(np.array([[np.nan], [np.nan]])).values.any()
