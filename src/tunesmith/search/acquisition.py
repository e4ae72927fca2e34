"""Expected improvement: how much a candidate may add to what is delivered."""

from __future__ import annotations

import numpy as np

from tunesmith.core.model.gaussian_process import Posterior, Vector
from tunesmith.search.targets import Targets


def improvement(posterior: Posterior, targets: Targets, weights: Vector) -> Vector:
    """In log units, summed over the functions by weight: the general configuration counts 1, and each
    workload, which may get one of its own, its share."""
    deviations = posterior.deviations[:, None]
    ahead = (posterior.means - targets.best) / deviations
    expected = deviations * (ahead * _below(ahead) + np.exp(-(ahead**2) / 2) / np.sqrt(2 * np.pi))
    total: Vector = expected @ (weights * targets.scales)
    return total


def _below(z: Vector) -> Vector:
    """The normal distribution function; Abramowitz and Stegun 7.1.26, right to 1e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(z) / np.sqrt(2))
    tail = t * np.exp(-(z**2) / 2)
    tail *= 0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    upper: Vector = np.where(z > 0, 1 - tail / 2, tail / 2)
    return upper
