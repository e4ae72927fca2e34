"""Configurations as numbers, and the Gaussian process that compares them."""

from __future__ import annotations

import numpy as np
import pytest

from tunesmith.space.configset import Param
from tunesmith.space.features import (
    JITTER,
    Encoding,
    Hyperparameters,
    Posterior,
    Trend,
    covariance_matrix,
    fit_hyperparameters,
    group_distances,
    posterior_loss,
    prior_hyperparameters,
)
from tunesmith.space.space import Space


def features(param: Param) -> np.ndarray:
    places = np.arange(len(param.values), dtype=np.uint8)[:, None]
    return Encoding.of(Space((param,))).features(places)


def test_sizes_are_placed_by_their_ratio() -> None:
    assert np.allclose(features(Param("A", (1, 2, 4, 16)))[:, 0], [0, 0.25, 0.5, 1])


def test_alignment_is_a_feature_where_values_are_not_powers_of_two() -> None:
    found = features(Param("A", (32, 48, 64, 96, 128)))
    assert found.shape[1] == 2
    assert found[1, 1] < found[0, 1] == found[3, 1] < found[2, 1] < found[4, 1]
    assert features(Param("A", (8, 16, 32))).shape[1] == 1
    assert features(Param("A", (1, 3, 5))).shape[1] == 1  # all odd: nothing to tell apart


def test_values_of_a_categorical_parameter_are_equally_far_apart() -> None:
    found = features(Param("A", (7, 1, 30, 2), categorical=True))
    apart = np.linalg.norm(found[:, None] - found[None], axis=2)
    assert np.allclose(apart, 1 - np.eye(4))


def test_zero_and_negative_values_have_a_place() -> None:
    assert np.allclose(features(Param("A", (0, 1, 3)))[:, 0], [0, 0.5, 1])
    assert np.allclose(features(Param("A", (-1, 0, 1)))[:, 0], [0, 0.5, 1])


def test_a_parameter_of_one_value_has_no_feature() -> None:
    space = Space((Param("A", (4,)), Param("B", (0, 1)), Param("C", (2, 4, 6))))
    encoding = Encoding.of(space)
    assert encoding.params == (1, 2)
    assert encoding.features(np.zeros((3, 3), dtype=np.uint8)).shape == (3, 3)
    assert encoding.owners.tolist() == [0, 1, 1]
    assert encoding.minor.tolist() == [False, False, True]


def test_values_whose_logarithms_are_the_same_are_distinguished_by_position() -> None:
    huge = Param("A", (2**60, 2**60 + 1, 2**60 + 2, 2**60 + 3))
    features = Encoding.of(Space((huge,))).features(np.arange(4, dtype=np.uint8)[:, None])
    assert np.allclose(features[:, 0], [0, 1 / 3, 2 / 3, 1])


def test_too_many_categories_for_a_column_each_are_nearly_equally_far_apart() -> None:
    many = Encoding.of(Space((Param("K", tuple(range(70_000)), categorical=True),)))
    assert many.tables[0].nbytes < 100e6
    some = many.features(np.arange(0, 70_000, 1000, dtype=np.uint32)[:, None])
    apart = np.sum((some[:, None] - some[None]) ** 2, axis=2)[~np.eye(len(some), dtype=bool)]
    assert apart.mean() == pytest.approx(1, abs=0.02)
    assert 0.5 < apart.min() < apart.max() < 1.5


SPACE = Space(
    (
        Param("A", (16, 32, 48, 64, 96)),
        Param("B", (1, 2, 4)),
        Param("C", (0, 1, 2, 3), categorical=True),
        Param("D", (0, 1)),
    )
)
ENCODING = Encoding.of(SPACE)
SIZES = [len(param.values) for param in SPACE.params]


def rows(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(size, size=count) for size in SIZES], axis=1).astype(np.uint8)


def settings(seed: int = 0) -> Hyperparameters:
    usual_logs = prior_hyperparameters(ENCODING).logs
    return Hyperparameters(usual_logs + np.random.default_rng(seed).normal(0, 0.3, len(usual_logs)))


def direct(a: np.ndarray, b: np.ndarray, made: Hyperparameters) -> float:
    """The kernel between two configurations, term by term."""
    x, y = ENCODING.features(a[None])[0], ENCODING.features(b[None])[0]
    groups = range(len(ENCODING.owners))
    apart = np.array([np.linalg.norm((x - y)[ENCODING.groups == g]) / made.lengths[g] for g in groups])
    alone = [np.exp(-apart[ENCODING.owners == o].sum() * np.sqrt(len(SIZES)) / 2) for o in range(len(SIZES))]
    return made.whole * float(np.exp(-apart.sum())) + made.alone * float(np.mean(alone))


def test_the_kernel_is_the_sum_of_the_whole_and_the_parameters_alone() -> None:
    a, b, made = rows(5, 1), rows(4, 2), settings()
    expected = [[direct(x, y, made) for y in b] for x in a]
    assert np.allclose(covariance_matrix(ENCODING, made, a, b), expected)


def test_the_gradient_is_that_of_the_loss() -> None:
    known, targets = rows(20, 3), np.random.default_rng(4).normal(size=(20, 2))
    apart = group_distances(ENCODING, known)
    logs = settings(5).logs
    _, gradient = posterior_loss(ENCODING, logs, apart, targets)
    for i, step in enumerate(np.eye(len(logs)) * 1e-5):
        up, down = (posterior_loss(ENCODING, logs + sign * step, apart, targets)[0] for sign in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / 2e-5, rel=1e-3, abs=1e-4)


def test_the_posterior_is_that_of_the_textbook() -> None:
    known, new, made = rows(15, 6), rows(6, 7), settings(1)
    targets = np.random.default_rng(8).normal(size=(15, 2))
    trend = Trend(
        np.random.default_rng(9).normal(size=(15, 1)), np.random.default_rng(10).normal(size=(6, 1))
    )
    kernel = covariance_matrix(ENCODING, made, known, known) + trend.known @ trend.known.T
    kernel += (made.noise + JITTER) * np.eye(15)
    across = covariance_matrix(ENCODING, made, new, known) + trend.candidates @ trend.known.T
    prior = covariance_matrix(ENCODING, made, new, new) + trend.candidates @ trend.candidates.T
    left = prior - across @ np.linalg.solve(kernel, across.T)
    posterior = Posterior(ENCODING, made, known, targets, new, trend)
    assert np.allclose(posterior.means, across @ np.linalg.solve(kernel, targets))
    assert np.allclose(posterior.variances, np.diag(left))


def test_to_expect_an_outcome_is_to_know_it_as_the_mean() -> None:
    known, new, made = rows(12, 11), rows(6, 12), settings(2)
    targets = np.random.default_rng(13).normal(size=(12, 1))
    posterior = Posterior(ENCODING, made, known, targets, new)
    more = np.concatenate([targets, posterior.means[2:3], posterior.means[4:5]])
    posterior.expect(np.array([2, 4]))
    anew = Posterior(ENCODING, made, np.concatenate([known, new[[2, 4]]]), more, new)
    assert np.allclose(posterior.means, anew.means, atol=1e-6)
    assert np.allclose(posterior.variances, anew.variances, atol=1e-6)


def test_a_few_candidates_by_themselves_are_what_they_are_among_all() -> None:
    known, new, made = rows(90, 11), rows(8, 12), settings(2)
    trend = Trend(
        np.random.default_rng(9).normal(size=(90, 1)), np.random.default_rng(10).normal(size=(8, 1))
    )
    targets = np.random.default_rng(13).normal(size=(90, 2))
    posterior = Posterior(ENCODING, made, known, targets, new, trend)
    posterior.expect(np.array([7]))
    joint = posterior.joint(np.array([1, 2, 4, 6]))
    assert np.allclose(joint.deviations, posterior.deviations[[1, 2, 4, 6]])
    for place, candidate in enumerate((1, 2, 4)):
        posterior.expect(np.array([candidate]))
        joint.expect(place)
    assert np.allclose(joint.means, posterior.means[[1, 2, 4, 6]])
    assert np.allclose(joint.deviations, posterior.deviations[[1, 2, 4, 6]], rtol=1e-4)


def test_what_does_not_matter_gets_a_longer_length() -> None:
    known = rows(60, 14)
    targets = (known[:, :1].astype(float) - 2) / 1.4
    lengths = fit_hyperparameters(ENCODING, known, targets).lengths / prior_hyperparameters(ENCODING).lengths
    of_a, of_b = lengths[ENCODING.owners == 0].min(), lengths[ENCODING.owners == 1].min()
    assert of_b > 1.5 * of_a


def test_many_values_are_compared_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    encoding = Encoding.of(SPACE)
    rows = np.stack([np.arange(6) % len(param.values) for param in SPACE.params], axis=1).astype(np.uint8)
    few = covariance_matrix(encoding, prior_hyperparameters(encoding), rows, rows[:4])
    monkeypatch.setattr("tunesmith.space.features.FEW", 0)
    assert np.allclose(covariance_matrix(encoding, prior_hyperparameters(encoding), rows, rows[:4]), few)
