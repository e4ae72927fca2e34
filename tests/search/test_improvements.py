from __future__ import annotations

import numpy as np

from tests.conformance.searcher_suite import space
from tunesmith.search.models import Believes, Outcomes
from tunesmith.space import gaussian_process as gp

SPACE = space({"A": 6, "B": 5, "C": 4})
PLACES = SPACE.configs().positions()
KNOWN, OTHERS = PLACES[::7], PLACES[1::7]
SCORES = -((KNOWN.astype(float) - 2) ** 2) @ np.array([[1.0, 0.5], [0.2, 0.7], [0.0, 0.1]])


def improvements(believes: Believes, expected: int | None = None) -> np.ndarray:
    outcomes = Outcomes(SPACE, KNOWN, SCORES, 0.5, believes)
    model = outcomes.model(OTHERS, np.array([1.0, 0.5]), None, None)
    if expected is not None:
        model.posterior.expect(expected)
    return model.improvements()


def test_fitted_and_usual_hyperparameters_have_an_equal_say() -> None:
    fitted, usual = improvements("fitted"), improvements("usual")
    assert not np.allclose(fitted, usual, rtol=0.1)
    assert np.allclose(improvements("both"), (fitted + usual) / 2)


def test_what_is_expected_is_expected_by_each() -> None:
    place = int(np.argmax(improvements("both")))
    after = improvements("both", place)
    assert after[place] < improvements("both")[place] / 2
    assert np.allclose(after, (improvements("fitted", place) + improvements("usual", place)) / 2)


def test_the_expected_gain_is_that_of_many_draws() -> None:
    outcomes = Outcomes(SPACE, KNOWN, SCORES[:, :1], 0.5, "usual")
    model = outcomes.model(OTHERS[:4], np.ones(1), None, None)
    (posterior,) = model.posterior.each
    draws = np.random.default_rng(0).normal(posterior.means[:, 0], posterior.deviations, size=(200_000, 4))
    gains = np.maximum(draws - model.made.best[0], 0).mean(axis=0) * model.made.scales[0]
    assert np.allclose(model.improvements(), gains, rtol=0.05, atol=1e-4)
    assert isinstance(posterior, gp.Posterior)
