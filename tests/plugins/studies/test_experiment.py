"""What several comparisons say together, against figures that are worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.deliver.shown.comparisons import EXPERIMENTS, Runs, experiment
from tunesmith.plugins.studies.experiment import ArmFigures, ExperimentFigures, estimate_mean


def arm(found: ExperimentFigures, name: str) -> ArmFigures:
    return next(one for one in found.arms if one.arm == name)


class TestIntervals:
    def test_where_nothing_differs_the_interval_is_the_mean(self) -> None:
        own = arm(EXPERIMENTS["several drafts"][0], "template").mean
        assert (own.value, own.low, own.high) == (4.0, 4.0, 4.0)

    def test_problems_are_drawn_and_the_same_ones_for_both_arms(self) -> None:
        found = EXPERIMENTS["varied"][0]
        own = arm(found, "template").mean
        assert own.value == 4.0
        assert own.low is not None
        assert own.high is not None
        assert 2.0 <= own.low < 3.0 < 6.0 < own.high <= 8.0
        (ratio,) = found.ratios
        # 2 at p and at q; at r the mean of 8 over that of 4 and 1.
        assert ratio.ratio.value == pytest.approx((2 * 2 * 4) ** (1 / 3), rel=1e-5)
        assert ratio.ratio.low == pytest.approx(2.0), "paired by problem: it is at least 2 at each"
        assert arm(found, "rewrite").worst == 1.0

    def test_repeats_are_drawn_as_well(self) -> None:
        given: Runs = {(p, "expert"): [1.0, 4.0] for p in "pqr"}
        own = arm(experiment(given, "expert", "p,q,r"), "expert").mean
        assert own.value == 2.0
        assert own.low is not None
        assert own.low < 1.5, "the same problem thrice with other repeats is another mean"

    @settings(max_examples=20, deadline=None)
    @given(st.lists(st.lists(st.floats(-2, 2), min_size=1, max_size=4), min_size=3, max_size=6))
    def test_the_mean_lies_between_the_ends_and_all_is_the_same_again(self, groups):
        found = estimate_mean(groups)
        assert found == estimate_mean(groups)
        assert found.low is not None
        assert found.high is not None
        every = [math.exp(value) for group in groups for value in group]
        assert min(every) * 0.999 <= found.low <= found.high <= max(every) * 1.001


def test_what_each_round_added_and_what_tokens_brought() -> None:
    """A round that did not come adds nothing; gain over tokens is all gain over all tokens."""
    found = arm(EXPERIMENTS["rounds and tokens"][0], "template")
    assert [gain.value for gain in found.gains] == [2.0, 2.0]
    assert [after.value for after in found.after] == [2.0, 4.0]
    assert found.tokens == 20_000
    assert found.per_tokens.value == 2.0  # 16× for 40,000 tokens
    assert found.within == ((10_000, 1.41421), (20_000, 2.0), (40_000, 4.0))
