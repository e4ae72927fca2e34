"""A model of what was measured around a configuration, for values nobody tried: the Gaussian process of the
search, with an estimate of its own errors.

Every estimate has a deviation, and a model that cannot tell what was left out of it does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.core.model.encoding import Encoding, Positions
from tunesmith.core.model.gaussian_process import JITTER, Hyperparameters, covariance, fit
from tunesmith.core.space import Config, Space

Array = NDArray[np.float64]

MOST = 96  # configurations it is fitted to: those nearest to the one in question
LEAST = 32  # below that there is nothing to learn from
FREE = 16  # so many must be left when each parameter has taken two to fit its lengths
CONVINCING = 0.5  # of the variance it must tell in advance, each measurement left out in turn


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
    _space: Space
    _settings: Hyperparameters
    _at: Positions
    _inverse: Array
    _pull: Array
    _best: float  # what was measured of the centre, over the mean
    _scale: float  # variance, for each 1 of the model's

    @classmethod
    def fit(cls, space: Space, measured: Mapping[Config, float], centre: Config) -> Surrogate | None:
        """None where there is too little to learn from, or where what was learnt does not hold.

        The centre is among those measured.
        """
        encoding = Encoding.of(space)
        # The nearest, and not the best: a choice by what was measured would bend the model.
        near = sorted(measured, key=lambda config: _differing(config, centre))[:MOST]
        free = len(near) - 2 * len(encoding.params)
        if len(near) < LEAST or free < FREE:
            return None
        y = np.array([measured[config] for config in near])
        mean, spread = y.mean(), y.std()
        if not np.isfinite(spread) or spread <= 1e-9 * (1 + abs(mean)):
            return None
        z = (y - mean) / spread
        at = _positions(space, near)
        settings = fit(encoding, at, z[:, None])
        kernel = covariance(encoding, settings, at, at)
        kernel.flat[:: len(kernel) + 1] += settings.noise + JITTER
        inverse = np.asarray(np.linalg.inv(kernel), np.float64)
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
            _space=space,
            _settings=settings,
            _at=at,
            _inverse=inverse,
            _pull=pull * spread,
            _best=float(measured[centre] - mean),
            _scale=scale,
        )

    def differences(self, configs: Sequence[Config]) -> tuple[Estimate, ...]:
        """How much better each would be measured than the centre was."""
        at, settings = _positions(self._space, configs), self._settings
        seen = covariance(Encoding.of(self._space), settings, at, self._at)
        values = seen @ self._pull - self._best
        left = settings.variance - np.einsum("ij,jk,ik->i", seen, self._inverse, seen) + settings.noise
        deviations = np.sqrt(self._scale * np.maximum(left, 0.0))
        return tuple(Estimate(float(v), float(d)) for v, d in zip(values, deviations, strict=True))


def _differing(a: Config, b: Config) -> int:
    return sum(x != y for x, y in zip(a.items, b.items, strict=True))


def _positions(space: Space, configs: Sequence[Config]) -> Positions:
    rows = [[param.positions[config[param.name]] for param in space.params] for config in configs]
    return np.array(rows, dtype=np.uint32).reshape(len(configs), len(space.params))
