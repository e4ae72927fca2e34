"""What earlier runs foretell, and whether it holds here.

Another device puts the best configurations into another order, and mostly agrees on where they are. So what
is foretold serves as a filter: the best one in a hundred count alike, and which of them is best is found
out here.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tunesmith.run.ports import Prior
from tunesmith.search.models import LEAST, LISTED, Numbers
from tunesmith.space import gaussian_process as gp
from tunesmith.space.configset import ConfigSet
from tunesmith.space.gaussian_process import Positions, Vector
from tunesmith.space.space import Space

ROWS = 200  # of an earlier run that are looked at: the better half of them its best, the rest from all over
FITTED = 120
AGREEMENT_FROM = 8  # outcomes from which runs are judged by how well they agree with them
BEST = 0.01  # of all configurations: those foretold to be best, which count alike,
FEWEST = 16  # and so many at least
SAMPLE = 4000  # configurations that stand for all, where these are too many to list
AT_ONCE = 2000  # configurations that are foretold in one go: memory

FIRST = 8  # picks of a search, of which every second is among those foretold to be best,
UNTIL = 48  # and up to here a model of its outcomes knows what is foretold: by then they say more


def is_following(turn: int) -> bool:
    """Whether the pick of this number follows what is foretold, as long as that holds. The first may be the
    default; and half of the first do not, so that what misleads costs no more than the others."""
    return turn % 2 == 1 if turn < FIRST else turn < UNTIL


class Guide:
    """What earlier runs foretell together, as log speed-ups, of which only differences mean anything. Runs
    count by their agreement with the scores known here (NaN: it failed), once these are enough."""

    def __init__(
        self, space: Space, configs: ConfigSet, priors: tuple[Prior, ...], known: Numbers, scores: Vector
    ) -> None:
        self._configs = configs
        models = ((prior, _model(space, prior)) for prior in priors)
        self._runs = [(prior, model) for prior, model in models if model is not None]
        self._agreements = np.ones(len(self._runs))
        if len(known) >= AGREEMENT_FROM:
            told = np.nan_to_num(scores, nan=-np.inf)
            self._agreements = np.array([rank_correlation(each, told) for each in self._each(known)])
        share = min(max(BEST, FEWEST / max(len(configs), 1)), 1.0)
        self._level = float(np.quantile(self._sampled, 1 - share)) if self._runs else np.inf

    @property
    def holds(self) -> bool:
        """Whether there is anything foretold, and what is known here is not against all of it."""
        return bool(self._runs) and bool(self._agreements.max() > 0)

    def is_followed(self, turn: int) -> bool:
        """Whether the pick of this number follows."""
        return self.holds and is_following(turn)

    def is_early(self, turn: int) -> bool:
        """Whether the pick of this number is one of the first, and others of them follow."""
        return self.holds and turn < FIRST

    def order(self, numbers: Numbers) -> Vector:
        return self._together(self._each(numbers))

    def filter(self, numbers: Numbers) -> Vector:
        """The same, but that the best of all count alike."""
        foretold: Vector = np.minimum(self.order(numbers), self._level)
        return foretold

    def best(self) -> Numbers:
        """Those foretold to be best; where not all are listed, as far as the sample or the runs have them."""
        found = _sample(self._configs)[self._sampled >= self._level]
        if len(self._configs) <= LISTED:
            return found
        rows = np.concatenate([_best_rows(prior, self._configs) for prior, _ in self._runs])
        return np.union1d(found, rows[self.order(rows) >= self._level])

    @property
    def _sampled(self) -> Vector:
        return self._together([_sampled(model, self._configs) for _, model in self._runs])

    def _each(self, numbers: Numbers) -> list[Vector]:
        if len(self._configs) <= LISTED:
            return [_sampled(model, self._configs)[numbers] for _, model in self._runs]
        return [model.means(self._configs.positions(numbers)) for _, model in self._runs]

    def _together(self, each: list[Vector]) -> Vector:
        weights = np.maximum(self._agreements, 0.01)
        total: Vector = weights / weights.sum() @ np.stack(each)
        return total


class _EarlierModel:
    def __init__(
        self, encoding: gp.Encoding, settings: gp.Hyperparameters, rows: Positions, weights: Vector
    ) -> None:
        self._encoding, self._settings, self._rows, self._weights = encoding, settings, rows, weights

    def means(self, positions: Positions) -> Vector:
        parts = [positions[at : at + AT_ONCE] for at in range(0, max(len(positions), 1), AT_ONCE)]
        kernels = (gp.covariance(self._encoding, self._settings, part, self._rows) for part in parts)
        return np.concatenate([kernel @ self._weights for kernel in kernels])


@lru_cache(maxsize=8)  # pure, and the same for every question of a run
def _model(space: Space, prior: Prior) -> _EarlierModel | None:
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
    levelled = _levelled(np.array(scores)[order])
    middle, deviation = levelled.mean(), max(float(levelled.std()), LEAST)
    values = (levelled - middle)[:, None] / deviation
    part = rng.permutation(len(order))[:FITTED]
    settings = gp.fit(encoding, positions[part], values[part])
    kernel = gp.covariance(encoding, settings, positions, positions)
    kernel.flat[:: len(kernel) + 1] += settings.noise + gp.JITTER
    weights = np.linalg.solve(kernel, values[:, 0]) * deviation
    return _EarlierModel(encoding, settings, positions, weights)


def _levelled(scores: Vector) -> Vector:
    """What failed, and the slower half, counts as the middle one: how slow it was there says nothing here."""
    floor = float(np.nanmedian(scores))
    levelled: Vector = np.maximum(np.nan_to_num(scores, nan=floor), floor)
    return levelled


@lru_cache(maxsize=4)
def _sample(configs: ConfigSet) -> Numbers:
    """All, or as many as stand for them."""
    if len(configs) <= LISTED:
        return np.arange(len(configs))
    return np.unique(np.random.default_rng(0).integers(len(configs), size=SAMPLE))


@lru_cache(maxsize=8)  # asked for by every question, and the same for all
def _sampled(model: _EarlierModel, configs: ConfigSet) -> Vector:
    return model.means(configs.positions(_sample(configs)))


@lru_cache(maxsize=8)
def _best_rows(prior: Prior, configs: ConfigSet) -> Numbers:
    right = [(score, config) for config, score in prior.rows if score is not None]
    best = sorted(right, key=lambda row: -row[0])[: ROWS // 2]
    numbers = (configs.index(config) for _, config in best)
    return np.array([number for number in numbers if number is not None], dtype=np.int64)


def rank_correlation(a: Vector, b: Vector) -> float:
    """Spearman's; 0 where one of them tells nothing apart."""
    ranks_a, ranks_b = _ranks(a), _ranks(b)
    if not np.ptp(ranks_a) or not np.ptp(ranks_b):
        return 0.0
    return float(np.corrcoef(ranks_a, ranks_b)[0, 1])


def _ranks(values: Vector) -> Vector:
    """Equal values share the mean of their ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Vector = (np.cumsum(counts) - (counts - 1) / 2)[which]
    return ranks
