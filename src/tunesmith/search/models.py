"""What outcomes let us expect of candidates, by themselves or with earlier runs as a trend."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tunesmith.search.candidates import Numbers
from tunesmith.search.transfer import DOUBT, TRUST, Guide, Targets, targets
from tunesmith.space import gaussian_process as gp
from tunesmith.space.gaussian_process import Matrix, Vector
from tunesmith.space.space import Space

FITTED = 60  # outcomes that hyperparameters are fitted to
REFIT_EVERY = 5  # outcomes: between, the same hyperparameters serve


@dataclass(frozen=True)
class Outcomes:
    """Scores (a column for each function, NaN where it failed) of configurations given by positions."""

    space: Space
    known: gp.Positions
    scores: Matrix
    level: float

    @property
    def targets(self) -> Targets:
        return targets(self.scores, self.level)

    @property
    def settings(self) -> gp.Hyperparameters:
        """Fitted to outcomes up to a round number of them: a question soon after finds the answer ready."""
        count = max(len(self.known) - len(self.known) % REFIT_EVERY, 2)
        part = most_telling(self.scores[:count, 0], FITTED)
        values, known = targets(self.scores[part], self.level).values, self.known[part]
        return _fitted(self.space, known.tobytes(), known.dtype.str, values.tobytes())


@dataclass(frozen=True)
class ImprovementModel:
    """Asked how much each candidate may add."""

    posterior: gp.Posterior
    made: Targets
    weights: Vector

    def improvements(self) -> Vector:
        """In log units, summed over the functions by weight: the general configuration counts 1, and each
        workload, which may get one of its own, its share."""
        deviations = self.posterior.deviations[:, None]
        ahead = (self.posterior.means - self.made.best) / deviations
        expected = deviations * (ahead * _below(ahead) + np.exp(-(ahead**2) / 2) / np.sqrt(2 * np.pi))
        total: Vector = expected @ (self.weights * self.made.scales)
        return total


def own(
    outcomes: Outcomes, candidates: gp.Positions, weights: Vector, trend: gp.Trend | None
) -> ImprovementModel:
    encoding, made = gp.Encoding.of(outcomes.space), outcomes.targets
    posterior = gp.Posterior(encoding, outcomes.settings, outcomes.known, made.values, candidates, trend)
    return ImprovementModel(posterior, made, weights)


def guided(outcomes: Outcomes, candidates: gp.Positions, weights: Vector, guide: Guide) -> ImprovementModel:
    """With the earlier runs' prediction as a trend: of the expected weight, give or take what our own
    outcomes say."""
    known, made = outcomes.known, outcomes.targets
    every = guide.predictions(np.concatenate([known, candidates]), known, outcomes.scores[:, 0])
    every = (every - every[: len(known)].mean()) / made.scales[0]
    there, here = every[: len(known)], every[len(known) :]
    trend = gp.Trend(_with_constant(DOUBT * there), _with_constant(DOUBT * here))
    left = made.values - TRUST * there[:, None]
    encoding = gp.Encoding.of(outcomes.space)
    posterior = gp.Posterior(encoding, outcomes.settings, known, left, candidates, trend)
    posterior.means += TRUST * here[:, None]
    return ImprovementModel(posterior, made, weights)


def most_telling(scores: Vector, count: int) -> Numbers:
    """Which outcomes to keep, in their order: half of them the best, the rest evenly from the others."""
    order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")
    if len(order) <= count:
        return np.arange(len(order))
    others = order[count // 2 :]
    spread = others[np.linspace(0, len(others) - 1, count - count // 2).astype(np.int64)]
    return np.sort(np.concatenate([order[: count // 2], spread]))


@lru_cache(maxsize=32)  # pure: the same outcomes give the same hyperparameters
def _fitted(space: Space, positions: bytes, kind: str, values: bytes) -> gp.Hyperparameters:
    rows = np.frombuffer(positions, dtype=kind).reshape(-1, len(space.params))
    return gp.fit(gp.Encoding.of(space), rows, np.frombuffer(values).reshape(len(rows), -1))


def _with_constant(column: Vector) -> Matrix:
    return np.stack([np.ones(len(column)), column], axis=1)


def _below(z: Vector) -> Vector:
    """The normal distribution function; Abramowitz and Stegun 7.1.26, right to 1e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(z) / np.sqrt(2))
    tail = t * np.exp(-(z**2) / 2)
    tail *= 0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    upper: Vector = np.where(z > 0, 1 - tail / 2, tail / 2)
    return upper
