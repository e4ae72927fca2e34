from __future__ import annotations

import numpy as np

from tunesmith.search.models import speed_targets


def test_they_are_speeds_beside_the_best_to_a_power() -> None:
    made = speed_targets(np.log([[1.0], [2.0], [4.0], [0.001]]), power=2)
    values = made.values[:, 0]
    assert np.allclose((values - values[3]) / (values[2] - values[3]), [1 / 16, 1 / 4, 1, 0], atol=1e-6)
    assert np.isclose(values.mean(), 0)
    assert np.isclose(values.std(), 1)


def test_near_the_best_they_are_log_units_over_the_scale() -> None:
    scores = np.array([[0.0], [-0.001], [-1.0], [-2.0]])
    made = speed_targets(scores)
    first, second = made.values[:2, 0]
    assert np.isclose((first - second) * made.scales[0], 0.001, rtol=0.01)


def test_what_is_far_behind_is_alike_and_failures_count_as_the_slowest() -> None:
    values = speed_targets(np.array([[3.0], [1.0], [np.nan], [2.0], [0.0], [-9.0]])).values[:, 0]
    assert values[2] == values[5] == values.min()
    assert values[0] > values[3] > values[1] > values[4] > values[5]
    assert values[4] - values[5] < 0.001 * (values[0] - values[3])


def test_differences_that_are_noise_are_not_blown_up() -> None:
    assert np.ptp(speed_targets(np.array([[0.001], [0.0], [0.002]])).values) < 0.2


def test_nothing_that_worked_is_no_error() -> None:
    assert not speed_targets(np.array([[np.nan], [np.nan]])).values.any()
