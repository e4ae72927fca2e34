"""A small model of what was measured: a Gaussian process over configurations, for values nobody tried.

Two configurations are alike as far as the parameters that matter agree. How much each matters is what makes
the measurements most likely. Every estimate has a deviation, and a model that cannot tell what was left out
of it does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.core.space import Config, Param, Space

Array = NDArray[np.float64]

MOST = 96  # configurations it is fitted to: those nearest to the one in question
LEAST = 32  # below that there is nothing to learn from
FREE = 16  # so many must be left when each parameter has taken two to fit its weight
CONVINCING = 0.5  # of the variance it must tell in advance, each measurement left out in turn
WEIGHTS = (0.03, 0.3, 1.0, 3.0)  # of a parameter: from hardly any to all the difference
NOISES = (1e-3, 1e-2, 5e-2)  # shares of the variance
SWEEPS = 2


@dataclass(frozen=True)
class Estimate:
    """A difference of two log speed-ups, with its standard deviation."""

    value: float
    deviation: float


@dataclass(frozen=True)
class Surrogate:
    rows: int
    explained: float  # share of the variance, each measurement left out in turn
    spread: float  # standard deviation of what was measured
    _params: tuple[Param, ...]
    _at: Array  # the configurations, as positions of their values
    _weights: Array
    _inverse: Array
    _pull: Array
    _best: float  # what was measured of the centre, over the mean
    _scale: float  # variance
    _noise: float

    @classmethod
    def fit(cls, space: Space, measured: Mapping[Config, float], centre: Config) -> Surrogate | None:
        """None where there is too little to learn from, or where what was learnt does not hold.

        The centre is among those measured.
        """
        params = tuple(param for param in space.params if len(param.values) > 1)
        # The nearest, and not the best: a choice by what was measured would bend the model.
        near = sorted(measured, key=lambda config: _differing(config, centre))[:MOST]
        free = len(near) - 2 * len(params)
        if len(near) < LEAST or free < FREE:
            return None
        y = np.array([measured[config] for config in near])
        mean, spread = y.mean(), y.std()
        if not np.isfinite(spread) or spread <= 1e-9 * (1 + abs(mean)):
            return None
        z = (y - mean) / spread
        at = _positions(params, near)
        apart = _apart(params, at, at)
        weights, noise = _most_likely(apart, z)
        try:
            inverse = np.asarray(np.linalg.inv(_covariance(apart, weights, noise)), np.float64)
        except np.linalg.LinAlgError:
            return None
        pull = inverse @ z
        left_out = pull / np.diag(inverse)  # the errors, each measurement foretold by the others
        explained = float(1 - (left_out @ left_out) / (z @ z))
        if not explained >= CONVINCING:
            return None
        # Where the errors are larger than they should be, so are the deviations.
        scale = float(z @ pull) / free
        surprise = float(np.mean(left_out**2 * np.diag(inverse))) / scale
        scale *= max(1.0, surprise) * spread**2
        return cls(
            rows=len(y),
            explained=explained,
            spread=float(spread),
            _params=params,
            _at=at,
            _weights=weights,
            _inverse=inverse,
            _pull=pull * spread,
            _best=float(measured[centre] - mean),
            _scale=scale,
            _noise=noise,
        )

    def differences(self, configs: Sequence[Config]) -> tuple[Estimate, ...]:
        """How much better each would be measured than the centre was."""
        at = _positions(self._params, configs)
        seen = _covariance(_apart(self._params, at, self._at), self._weights)
        values = seen @ self._pull - self._best
        left = 1.0 - np.einsum("ij,jk,ik->i", seen, self._inverse, seen) + self._noise
        deviations = np.sqrt(self._scale * np.maximum(left, 0.0))
        return tuple(Estimate(float(v), float(d)) for v, d in zip(values, deviations, strict=True))


def _differing(a: Config, b: Config) -> int:
    return sum(x != y for x, y in zip(a.items, b.items, strict=True))


def _positions(params: Sequence[Param], configs: Sequence[Config]) -> Array:
    rows = [[param.positions[config[param.name]] for param in params] for config in configs]
    return np.array(rows, dtype=np.float64).reshape(len(configs), len(params))


def _apart(params: Sequence[Param], a: Array, b: Array) -> Array:
    """For each parameter, how far apart: 0 for the same value, 1 for the two ends or another category."""
    steps = np.abs(a.T[:, :, None] - b.T[:, None, :])
    spans = np.array(
        [1 if param.categorical else len(param.values) - 1 for param in params], dtype=np.float64
    )
    return (steps > 0) * 0.5 + np.minimum(steps / spans[:, None, None], 1.0) * 0.5


def _covariance(apart: Array, weights: Array, noise: float = 0.0) -> Array:
    found: Array = np.exp(-np.tensordot(weights, apart, 1))
    if noise:
        found[np.diag_indices(len(found))] += noise
    return found


def _most_likely(apart: Array, z: Array) -> tuple[Array, float]:
    """Weights and noise, one improved after the other: the grid is coarse, for so is what is to be learnt."""
    weights, noise = np.full(len(apart), 0.3), NOISES[1]
    best = _unlikelihood(apart, z, weights, noise)
    for _ in range(SWEEPS):
        for place in range(len(apart)):
            for weight in WEIGHTS:
                other = weights.copy()
                other[place] = weight
                if (value := _unlikelihood(apart, z, other, noise)) < best:
                    best, weights = value, other
        for level in NOISES:
            if (value := _unlikelihood(apart, z, weights, level)) < best:
                best, noise = value, level
    return weights, noise


def _unlikelihood(apart: Array, z: Array, weights: Array, noise: float) -> float:
    """The negative log likelihood, at the variance that suits it best, without its constants."""
    try:
        root = np.linalg.cholesky(_covariance(apart, weights, noise))
    except np.linalg.LinAlgError:
        return np.inf
    whitened = np.linalg.solve(root, z)
    return float(0.5 * len(z) * np.log(whitened @ whitened / len(z)) + np.log(np.diag(root)).sum())
