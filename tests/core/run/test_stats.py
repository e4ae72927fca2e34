"""The statistics that claims rest on."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.run.outcome import Interval, chance_apart, geometric_mean, median, median_interval

positive = st.floats(1e-6, 1e6)


@given(st.lists(positive, min_size=1))
def test_median(samples: list[float]) -> None:
    assert median(samples) == statistics.median(samples)


@given(st.lists(positive, min_size=1, max_size=10))
def test_geometric_mean(values: list[float]) -> None:
    assert geometric_mean(values) == pytest.approx(statistics.geometric_mean(values))


@given(st.lists(st.tuples(positive, st.integers(1, 5)), min_size=1, max_size=6))
def test_a_weight_counts_like_repetition(pairs: list[tuple[float, int]]) -> None:
    repeated = [value for value, weight in pairs for _ in range(weight)]
    got = geometric_mean([value for value, _ in pairs], [weight for _, weight in pairs])
    assert got == pytest.approx(geometric_mean(repeated))


@pytest.mark.parametrize(
    "figure",
    [lambda: median([]), *(lambda w=w: geometric_mean(*w) for w in (([],), ([], []), ([2.0], [0.0])))],
)
def test_there_is_no_middle_of_nothing(figure: Callable[[], float]) -> None:
    with pytest.raises(ValueError, match="nothing"):
        figure()


@given(st.lists(positive, min_size=2, max_size=30), st.integers(0, 2**63))
def test_the_interval_holds_the_median_and_stays_inside_the_samples(samples: list[float], seed: int) -> None:
    found = median_interval(tuple(samples), seed, resamples=200)
    assert found.value == median(samples)
    assert min(samples) <= found.low <= found.high <= max(samples)
    assert found == median_interval(tuple(samples), seed, resamples=200)


def test_one_sample_proves_nothing_and_equal_ones_leave_no_doubt() -> None:
    assert median_interval((2.0,), 1) == Interval(2.0, -math.inf, math.inf)
    assert median_interval((1.5,) * 9, 3) == Interval(1.5, 1.5, 1.5)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    draws = [rng.lognormal(0.0, 0.1, 20).tolist() for _ in range(200)]  # the true median is 1
    intervals = [median_interval(tuple(samples), 7, resamples=400) for samples in draws]
    assert 0.9 <= np.mean([i.low <= 1.0 <= i.high for i in intervals]) <= 0.99
    few, many = intervals[0], median_interval(tuple(rng.lognormal(0.0, 0.1, 500).tolist()), 7)
    assert many.high - many.low < (few.high - few.low) / 2


def test_the_chance_that_alike_sides_are_as_far_apart() -> None:
    apart = ([3.0, 4.0], [1.0, 2.0])
    assert chance_apart([apart]) == pytest.approx(2 / 6)
    assert chance_apart([apart, apart]) == pytest.approx(2 / 36)
    assert chance_apart([apart, apart[::-1]]) == 1.0, "what one group says the other takes back"
    assert chance_apart([([1.0], [1.0])]) == 1.0
    assert chance_apart([([0.1, 0.3], [0.2])]) == 1.0, "equal sums in another order are equal"
    assert chance_apart([([5.0, 6.0, 7.0], [1.0])]) == pytest.approx(1 / 4), "sides of other sizes"


def test_where_deals_are_too_many_some_are_drawn() -> None:
    rng = np.random.default_rng(5)
    one, other = rng.normal(0.8, 1, 12).tolist(), rng.normal(0, 1, 12).tolist()
    drawn = chance_apart([(one, other)])
    assert drawn == chance_apart([(one, other)])
    # By Student's test on the same values, which for normal ones is the same question.
    gap = statistics.mean(one) - statistics.mean(other)
    error = math.sqrt((statistics.variance(one) + statistics.variance(other)) / 12)
    normal = math.erfc(abs(gap) / error / math.sqrt(2))
    assert drawn == pytest.approx(normal, abs=0.03)
    far = ([10.0 + i for i in range(12)], [float(i) / 10 for i in range(12)])
    assert 0 < chance_apart([far]) < 1e-3
