"""Scores made ready for a model: failures filled in, the bad half levelled, everything in deviations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tunesmith.run.ports import Prior
from tunesmith.space import gaussian_process as gp
from tunesmith.space.gaussian_process import Matrix, Vector
from tunesmith.space.space import Space

LEVEL = 0.5  # below this quantile differences are of no interest: how slow the slow ones are misleads a model
LEAST = 0.02  # of a deviation, in log units: smaller ones are noise


@dataclass(frozen=True)
class Targets:
    """A column for each function; 0 is its mean and 1 its deviation."""

    values: Matrix
    scales: Vector  # the deviations in log units

    @property
    def best(self) -> Vector:
        best: Vector = self.values.max(axis=0)
        return best


def targets(scores: Matrix, level: float = LEVEL) -> Targets:
    """Of scores by configuration and function, NaN where it failed: as good as the middle one, and no better,
    so that a model stays away from failures without being bent by them."""
    columns: list[Vector] = []
    scales: list[float] = []
    for column in scores.T:
        right = column[~np.isnan(column)]
        floor = float(np.quantile(right, level)) if len(right) else 0.0
        levelled = np.where(np.isnan(column), floor, np.maximum(column, floor))
        scales.append(max(float(levelled.std()), LEAST))
        columns.append((levelled - levelled.mean()) / scales[-1])
    return Targets(np.stack(columns, axis=1), np.array(scales))


ROWS = 200  # of an earlier run that are looked at: the better half of them its best, the rest from all over
FITTED = 120
FOLLOWING = (1, 2, 3, 8, 12, 16)  # the picks of a search that follow the earlier runs;
APART_UNTIL = 48  # up to here the others do not know of what those have found
TRUST = 0.8  # the weight expected of the trend,
DOUBT = 0.4  # and its deviation
AGREEMENT_FROM = 8  # outcomes from which runs are weighed by how well they agree


def listens(turn: int) -> bool:
    """Whether a search's pick with this number follows earlier runs. The first may be the default."""
    return turn in FOLLOWING


def apart(followed: NDArray[np.bool_], turn: int) -> NDArray[np.bool_]:
    """Which outcomes a pick that does not follow knows of, given which of them followed."""
    return ~followed | (turn >= APART_UNTIL)


class Guide:
    """The earlier runs' common prediction, as log speed-ups; only differences mean anything."""

    def __init__(self, space: Space, priors: tuple[Prior, ...]) -> None:
        models = [_model(space, prior) for prior in priors]
        self._encoding = gp.Encoding.of(space)
        self._models = [model for model in models if model is not None]

    def __bool__(self) -> bool:
        return bool(self._models)

    def predictions(self, positions: gp.Positions, known: gp.Positions, scores: Vector) -> Vector:
        """For each configuration; runs count by their agreement with the scores known here, once there are
        some."""
        each = [model.means(self._encoding, positions) for model in self._models]
        weights = np.ones(len(each))
        right = ~np.isnan(scores)
        if right.sum() >= AGREEMENT_FROM and len(each) > 1:
            at_known = [model.means(self._encoding, known)[right] for model in self._models]
            weights = np.array([max(0.01, _rank_correlation(m, scores[right])) for m in at_known])
        total: Vector = weights / weights.sum() @ np.stack(each)
        return total


class _PriorModel:
    def __init__(self, settings: gp.Hyperparameters, rows: gp.Positions, weights: Vector) -> None:
        self._settings, self._rows, self._weights = settings, rows, weights

    def means(self, encoding: gp.Encoding, positions: gp.Positions) -> Vector:
        return gp.covariance(encoding, self._settings, positions, self._rows) @ self._weights


@lru_cache(maxsize=8)  # pure, and the same for every question of a run
def _model(space: Space, prior: Prior) -> _PriorModel | None:
    """None where the run says nothing that could be used."""
    places = [param.positions for param in space.params]
    names = [param.name for param in space.params]
    rows: list[list[int]] = []
    scores: list[float] = []
    for config, score in prior.rows:
        values = config.as_dict()
        if all(name in values and values[name] in at for name, at in zip(names, places, strict=True)):
            rows.append([at[values[name]] for name, at in zip(names, places, strict=True)])
            scores.append(np.nan if score is None else score)
    if np.isfinite(scores).sum() < 2:
        return None
    order = np.argsort(-np.nan_to_num(np.array(scores), nan=-np.inf), kind="stable")
    rng = np.random.default_rng(0)
    if len(order) > ROWS:
        others = rng.choice(order[ROWS // 2 :], ROWS - ROWS // 2, replace=False)
        order = np.concatenate([order[: ROWS // 2], others])
    positions = np.array(rows, dtype=np.uint32)[order]
    encoding = gp.Encoding.of(space)
    made = targets(np.array(scores)[order][:, None])
    part = rng.permutation(len(order))[:FITTED]
    settings = gp.fit(encoding, positions[part], made.values[part])
    kernel = gp.covariance(encoding, settings, positions, positions)
    kernel.flat[:: len(kernel) + 1] += settings.noise + gp.JITTER
    return _PriorModel(settings, positions, np.linalg.solve(kernel, made.values[:, 0]) * made.scales[0])


def _rank_correlation(a: Vector, b: Vector) -> float:
    ranks = [np.argsort(np.argsort(x)) for x in (a, b)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
