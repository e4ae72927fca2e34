"""What candidates may add, also where a model is sure that none does."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.suites.searcher_suite import space, view_of
from tunesmith.run.ports import Tried
from tunesmith.search.default import Default
from tunesmith.search.models import _log_improvement, surprise_factors


def test_it_is_right_near_zero_and_far_below() -> None:
    def exact(z: float) -> float:
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) + z * math.erfc(-z / math.sqrt(2)) / 2

    places = np.array([5.0, 1.0, 0.0, -1.0, -2.99, -3.01, -6.0, -8.0])
    assert np.allclose(np.exp(_log_improvement(places)), [exact(z) for z in places], rtol=1e-3)
    far = _log_improvement(np.array([-40.0]))[0]
    assert far == pytest.approx(-(40**2) / 2 - math.log(2 * math.pi) / 2 - 2 * math.log(40), abs=0.01)
    assert (np.diff(_log_improvement(np.linspace(-60, 6, 2000))) > 0).all(), "it grows everywhere"


def test_one_that_is_far_ahead_is_a_surprise_and_failures_are_none() -> None:
    scores = np.array([[0.0], [0.1], [2.0], [np.nan]])
    assert surprise_factors(np.array([[0.5], [0.5], [30.0], [99.0]]), scores)[0] == pytest.approx(
        math.sqrt((0.25 + 0.25 + 900) / 3)
    )
    assert surprise_factors(np.array([[0.5], [0.5], [0.1], [99.0]]), scores)[0] == 1


def test_behind_one_that_is_far_ahead_something_is_still_expected() -> None:
    """All others count next to nothing: a model of them is sure of itself."""
    view = view_of(space({"A": 8, "B": 8, "C": 6, "D": 3}))
    rng = np.random.default_rng(1)
    picked = [view.configs[int(i)] for i in rng.choice(len(view.configs), 60, replace=False)]
    tried = [Tried(config, float(rng.normal(0, 0.15))) for config in picked]
    tried[30] = Tried(picked[30], 4.0)
    asked = Default().ask(replace(view, tried=tuple(tried), default=picked[0], asked=60), 1)
    assert asked.gain is not None
    assert asked.gain > 0.001
