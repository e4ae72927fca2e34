"""What a model is asked about, and what outcomes let us expect of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tunesmith.run.ports import Prior, SearchView
from tunesmith.space import features as gp
from tunesmith.space.configset import Config, ConfigSet, Param
from tunesmith.space.features import Matrix, Positions, Vector
from tunesmith.space.space import Region, Space

LISTED = 20_000  # spaces up to this size are listed; of larger ones only what is drawn is ever made
DRAWN = 1200
NEXT = 64  # values of a parameter to either side that count as near

Numbers = NDArray[np.int64]


class OpenConfigs:
    """The open configurations of a view by number: those of a pool, or of the whole space."""

    def __init__(self, view: SearchView) -> None:
        self._view = view
        self._space = view.space
        self.pool: Numbers | None = None  # None: too many to list
        self._places: Positions = np.zeros((0, len(view.space.params)), dtype=np.uint8)
        self._has_many = any(len(param.values) > NEXT for param in view.space.params)
        opened = view.open
        self._part = opened if isinstance(opened, Region) and not opened.is_whole else None
        if view.pool is not None:
            found = [_config_number(view.configs, config) for config in opened]
            self.pool = np.array([number for number in found if number is not None], dtype=np.int64)
            self._places = view.configs.positions(self.pool)
        elif isinstance(opened, Region):
            self.pool, self._places = opened.numbers, _region_positions(opened)
        elif len(view.configs) <= LISTED:
            self.pool, self._places = np.arange(len(view.configs)), _all_positions(view.configs)

    def number(self, config: Config) -> int | None:
        return _config_number(self._view.configs, config)

    def positions(self, numbers: Numbers) -> Positions:
        return self._view.configs.positions(numbers)

    def open(self, numbers: Numbers) -> Numbers:
        return numbers if self.pool is None else numbers[np.isin(numbers, self.pool)]

    def draw(self, rng: np.random.Generator, count: int, seen: set[int]) -> Numbers:
        """Up to so many unseen ones, each once. Where they are listed, some whenever any are left."""
        if self.pool is None:
            drawn = np.unique(rng.integers(len(self._view.configs), size=count))
            return _exclude_numbers(drawn, seen)
        left = _exclude_numbers(self.pool, seen)
        return left if len(left) <= count else np.sort(rng.choice(left, count, replace=False))

    def around(self, config: Config, seen: set[int]) -> Numbers:
        """The unseen ones that differ from this one in one parameter: by any value, or where a parameter has
        a great many by those listed next to its own."""
        number = self.number(config)
        if number is None:
            return np.zeros(0, dtype=np.int64)
        if self.pool is not None and self._part is None:
            places = self.positions(np.array([number]))[0]
            differing = (self._places != places).sum(axis=1) == 1
            if self._has_many:
                steps = np.abs(self._places.astype(np.int64) - places).max(axis=1)
                differing &= steps <= NEXT
            return _exclude_numbers(self.pool[differing], seen)
        near = [
            config.replace(param.name, value)
            for param in self._space.params
            for at in [param.positions[config[param.name]]]
            for value in param.values[max(0, at - NEXT) : at + NEXT + 1]
            if value != config[param.name]
        ]
        return self.among(near, seen)

    def among(self, configs: Iterable[Config], seen: set[int]) -> Numbers:
        """Those of them that are unseen and may be asked for."""
        beside = (c for c in configs if self._part is None or self._part.is_beside(c))
        numbers = {number for c in beside if (number := self.number(c)) is not None}
        found = _exclude_numbers(np.array(sorted(numbers), dtype=np.int64), seen)
        return found if self._part is not None else self.open(found)


def exchange_sizes(space: Space, config: Config) -> Iterator[Config]:
    """Those that differ in two sizes and have the same product of the two.

    Threads along one axis for threads along another, a larger tile for fewer threads: a product that is
    right, or bounded by a constraint, stays as it is, where a change of either size alone would lose it.
    """
    sizes = [param for param in space.params if _is_size(param)]
    for one, two in combinations(sizes, 2):
        size, other = config[one.name], config[two.name]
        at = one.positions[size]
        for value in one.values[max(0, at - NEXT) : at + NEXT + 1]:
            left, rest = divmod(size * other, value)
            if value != size and not rest and left in two.positions:
                yield config.replace(one.name, value).replace(two.name, left)


def _is_size(param: Param) -> bool:
    return len(param.values) > 1 and not param.categorical and min(param.values) > 0


@lru_cache(maxsize=2)
def _all_positions(configs: ConfigSet) -> Positions:
    return configs.positions()


@lru_cache(maxsize=4)
def _region_positions(region: Region) -> Positions:
    return region.configs.positions(region.numbers)


@lru_cache(maxsize=8192)  # pure; every question of a run asks for the same ones, and a few new
def _config_number(configs: ConfigSet, config: Config) -> int | None:
    return configs.index(config)


def _exclude_numbers(numbers: Numbers, seen: set[int]) -> Numbers:
    return numbers[~np.isin(numbers, list(seen))] if seen else numbers


POWER = 3  # of a speed, beside the best: how slow the slow ones are, and why, misleads a model
LEAST = 0.02  # of a deviation, in log units near the best: smaller ones are noise


@dataclass(frozen=True)
class Targets:
    """A column for each function; 0 is its mean and 1 its deviation."""

    values: Matrix
    scales: Vector  # the deviations, in log units near the best

    @property
    def best(self) -> Vector:
        best: Vector = self.values.max(axis=0)
        return best


def speed_targets(scores: Matrix, power: float = POWER) -> Targets:
    """Of scores by configuration and function, NaN where it failed: speed beside the best, to a power. What
    failed counts as the slowest that worked, so that a model stays away from it without being bent by it."""
    columns: list[Vector] = []
    scales: list[float] = []
    for column in scores.T:
        worked = column[~np.isnan(column)]
        floor, best = (worked.min(), worked.max()) if len(worked) else (0.0, 0.0)
        speeds = np.exp(power * (np.nan_to_num(column, nan=floor) - best))
        scales.append(max(float(speeds.std()) / power, LEAST))
        columns.append((speeds - speeds.mean()) / (power * scales[-1]))
    return Targets(np.stack(columns, axis=1), np.array(scales))


FITTED = 60  # outcomes that hyperparameters are fitted to
REFIT_EVERY = 5  # outcomes: between, the same hyperparameters serve


@dataclass(frozen=True)
class ImprovementModel:
    """Asked how much each candidate may add, as a logarithm: far below the best some still may add more."""

    posterior: gp.Posterior
    made: Targets
    weights: Vector
    surprise: Vector  # by function: how much less sure than it says the model is of what it foretells

    def improvements(self, joint: gp.JointPosterior | None = None) -> Vector:
        """Of all candidates, or of a few of them."""
        return self._log_expected_improvement(
            self.posterior if joint is None else joint, np.ones(len(self.surprise))
        )

    def most(self, among: NDArray[np.bool_]) -> float:
        """The largest of these candidates, in log units, where the model is no surer than it may be."""
        return float(
            np.exp(self._log_expected_improvement(self.posterior, self.surprise)[among].max(initial=-np.inf))
        )

    def _log_expected_improvement(
        self, posterior: gp.Posterior | gp.JointPosterior, surprise: Vector
    ) -> Vector:
        """Logarithms of what is expected in log units, summed over the functions by weight: the general
        configuration counts 1, and each workload, which may get one of its own, its share."""
        deviations = posterior.deviations[:, None] * surprise
        ahead = (posterior.means - self.made.best) / deviations
        with np.errstate(divide="ignore"):  # a workload may have no weight
            expected = _log_improvement(ahead) + np.log(deviations * self.weights * self.made.scales)
        most = expected.max(axis=1)
        total: Vector = most + np.log(np.exp(expected - most[:, None]).sum(axis=1))
        return total


def surprise_factors(errors: Matrix, scores: Matrix) -> Vector:
    """By function: how far off outcomes that worked are from what the others foretell, beside what that is
    sure of; 1 at least. Where one is far ahead a model of all others is sure that there is no other."""
    worked = ~np.isnan(scores)
    squares = np.sum(np.where(worked, errors, 0.0) ** 2, axis=0) / np.maximum(worked.sum(axis=0), 1)
    factors: Vector = np.sqrt(np.maximum(squares, 1.0))
    return factors


TRUST = 0.8  # the weight expected of what is foretold,
DOUBT = 0.4  # and its deviation


@dataclass(frozen=True)
class Foretold:
    """Log speed-ups by earlier runs, of which only differences mean anything."""

    known: Vector
    candidates: Vector

    def speeds(self, power: float) -> tuple[Vector, Vector]:
        """As targets are: beside the best, to a power."""
        best = max(self.known.max(), self.candidates.max())
        return np.exp(power * (self.known - best)), np.exp(power * (self.candidates - best))


@dataclass(frozen=True)
class Outcomes:
    """Scores (a column for each function, NaN where it failed) of configurations given by positions."""

    space: Space
    known: gp.Positions
    scores: Matrix
    power: float

    @property
    def settings(self) -> gp.Hyperparameters:
        """Fitted to outcomes up to a round number of them: a question soon after finds the answer ready."""
        count = max(len(self.known) - len(self.known) % REFIT_EVERY, 2)
        part = most_telling(self.scores[:count, 0], FITTED)
        values, known = speed_targets(self.scores[part], self.power).values, self.known[part]
        return _fit_hyperparameters(self.space, known.tobytes(), known.dtype.str, values.tobytes())

    def model(
        self, candidates: gp.Positions, weights: Vector, trend: gp.Trend | None, foretold: Foretold | None
    ) -> ImprovementModel:
        """What is foretold is part of the trend: of the expected weight, give or take what our own outcomes
        say."""
        made = speed_targets(self.scores, self.power)
        unexplained, expected = made.values, np.zeros((len(candidates), 1))
        if foretold is not None:
            there, here = foretold.speeds(self.power)
            middle = there.mean()
            there, here = ((speeds - middle) / (self.power * made.scales[0]) for speeds in (there, here))
            unexplained, expected = made.values - TRUST * there[:, None], TRUST * here[:, None]
            foretold_trend = gp.Trend(_with_constant(DOUBT * there), _with_constant(DOUBT * here))
            trend = foretold_trend if trend is None else foretold_trend.beside(trend)
        encoding = gp.Encoding.of(self.space)
        posterior = gp.Posterior(encoding, self.settings, self.known, unexplained, candidates, trend)
        posterior.means += expected
        return ImprovementModel(posterior, made, weights, surprise_factors(posterior.errors, self.scores))


def most_telling(scores: Vector, count: int) -> Numbers:
    """Which outcomes to keep, in their order: half of them the best, the rest evenly from the others."""
    order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")
    if len(order) <= count:
        return np.arange(len(order))
    others = order[count // 2 :]
    spread = others[np.linspace(0, len(others) - 1, count - count // 2).astype(np.int64)]
    return np.sort(np.concatenate([order[: count // 2], spread]))


def most_promising(worth: Vector, count: int) -> Numbers:
    """The places of the largest, in order of place, without those that are worth minus infinity."""
    order = np.argsort(-worth, kind="stable")[:count]
    return np.sort(order[worth[order] > -np.inf])


@lru_cache(maxsize=32)  # pure: the same outcomes give the same hyperparameters
def _fit_hyperparameters(space: Space, positions: bytes, kind: str, values: bytes) -> gp.Hyperparameters:
    rows = np.frombuffer(positions, dtype=kind).reshape(-1, len(space.params))
    return gp.fit_hyperparameters(gp.Encoding.of(space), rows, np.frombuffer(values).reshape(len(rows), -1))


def _with_constant(column: Vector) -> Matrix:
    return np.stack([np.ones(len(column)), column], axis=1)


FAR = -3.0  # below which the difference of two small numbers has no digits left
FRACTIONS = 40


def _log_improvement(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of what a normal variable is expected to be above zero, where its mean is z and its
    deviation 1. Right far below zero too: where nothing is likely to improve, something is likeliest to."""
    near, far = np.maximum(z, FAR), np.minimum(z, FAR)
    close = np.log(near * _normal_cdf(near) + np.exp(-(near**2) / 2) / np.sqrt(2 * np.pi))
    x, rest = -far, np.zeros(z.shape)
    for k in range(FRACTIONS, 0, -1):  # 1 / (x + rest) is Mills' ratio, a continued fraction
        rest = k / (x + rest)
    distant = -(x**2) / 2 - np.log(2 * np.pi) / 2 + np.log(rest / (x + rest))
    result: NDArray[np.float64] = np.where(z > FAR, close, distant)
    return result


def _normal_cdf(z: Vector) -> Vector:
    """The normal distribution function; Abramowitz and Stegun 7.1.26, right to 1e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(z) / np.sqrt(2))
    tail = t * np.exp(-(z**2) / 2)
    tail *= 0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    upper: Vector = np.where(z > 0, 1 - tail / 2, tail / 2)
    return upper


# -- What earlier runs foretell, and whether it holds here.
#
# Another device puts the best configurations into another order, and mostly agrees on where they are. So what
# is foretold serves as a filter: the best one in a hundred count alike, and which of them is best is found
# out here.


ROWS = 200  # of an earlier run that are looked at: the better half of them its best, the rest from all over
EARLIER_FITTED = 120
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
        models = ((prior, _fit_earlier_model(space, prior)) for prior in priors)
        self._runs = [(prior, model) for prior, model in models if model is not None]
        self._agreements = np.ones(len(self._runs))
        if len(known) >= AGREEMENT_FROM:
            told = np.nan_to_num(scores, nan=-np.inf)
            self._agreements = np.array([rank_correlation(each, told) for each in self._means_by_run(known)])
        share = min(max(BEST, FEWEST / max(len(configs), 1)), 1.0)
        self._level = float(np.quantile(self._combined_sample, 1 - share)) if self._runs else np.inf

    @property
    def holds(self) -> bool:
        """Whether there is anything foretold, and what is known here is not against all of it."""
        return bool(self._runs) and bool(self._agreements.max() > 0)

    def is_followed(self, turn: int) -> bool:
        return self.holds and is_following(turn)

    def is_early(self, turn: int) -> bool:
        """Whether the pick of this number is one of the first, and others of them follow."""
        return self.holds and turn < FIRST

    def order(self, numbers: Numbers) -> Vector:
        return self._combine_runs(self._means_by_run(numbers))

    def filter(self, numbers: Numbers) -> Vector:
        """The same, but that the best of all count alike."""
        foretold: Vector = np.minimum(self.order(numbers), self._level)
        return foretold

    def best(self) -> Numbers:
        """Those foretold to be best; where not all are listed, as far as the sample or the runs have them."""
        found = _sample_numbers(self._configs)[self._combined_sample >= self._level]
        if len(self._configs) <= LISTED:
            return found
        rows = np.concatenate([_best_rows(prior, self._configs) for prior, _ in self._runs])
        return np.union1d(found, rows[self.order(rows) >= self._level])

    @property
    def _combined_sample(self) -> Vector:
        return self._combine_runs([_sample_means(model, self._configs) for _, model in self._runs])

    def _means_by_run(self, numbers: Numbers) -> list[Vector]:
        if len(self._configs) <= LISTED:
            return [_sample_means(model, self._configs)[numbers] for _, model in self._runs]
        return [model.means(self._configs.positions(numbers)) for _, model in self._runs]

    def _combine_runs(self, each: list[Vector]) -> Vector:
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
        kernels = (gp.covariance_matrix(self._encoding, self._settings, part, self._rows) for part in parts)
        return np.concatenate([kernel @ self._weights for kernel in kernels])


@lru_cache(maxsize=8)  # pure, and the same for every question of a run
def _fit_earlier_model(space: Space, prior: Prior) -> _EarlierModel | None:
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
    levelled = _level_slow_half(np.array(scores)[order])
    middle, deviation = levelled.mean(), max(float(levelled.std()), LEAST)
    values = (levelled - middle)[:, None] / deviation
    part = rng.permutation(len(order))[:EARLIER_FITTED]
    settings = gp.fit_hyperparameters(encoding, positions[part], values[part])
    kernel = gp.covariance_matrix(encoding, settings, positions, positions)
    kernel.flat[:: len(kernel) + 1] += settings.noise + gp.JITTER
    weights = np.linalg.solve(kernel, values[:, 0]) * deviation
    return _EarlierModel(encoding, settings, positions, weights)


def _level_slow_half(scores: Vector) -> Vector:
    """What failed, and the slower half, counts as the middle one: how slow it was there says nothing here."""
    floor = float(np.nanmedian(scores))
    levelled: Vector = np.maximum(np.nan_to_num(scores, nan=floor), floor)
    return levelled


@lru_cache(maxsize=4)
def _sample_numbers(configs: ConfigSet) -> Numbers:
    """All, or as many as stand for them."""
    if len(configs) <= LISTED:
        return np.arange(len(configs))
    return np.unique(np.random.default_rng(0).integers(len(configs), size=SAMPLE))


@lru_cache(maxsize=8)  # asked for by every question, and the same for all
def _sample_means(model: _EarlierModel, configs: ConfigSet) -> Vector:
    return model.means(configs.positions(_sample_numbers(configs)))


@lru_cache(maxsize=8)
def _best_rows(prior: Prior, configs: ConfigSet) -> Numbers:
    right = [(score, config) for config, score in prior.rows if score is not None]
    best = sorted(right, key=lambda row: -row[0])[: ROWS // 2]
    numbers = (configs.index(config) for _, config in best)
    return np.array([number for number in numbers if number is not None], dtype=np.int64)


def rank_correlation(a: Vector, b: Vector) -> float:
    """Spearman's; 0 where one of them tells nothing apart."""
    ranks_a, ranks_b = _mean_ranks(a), _mean_ranks(b)
    if not np.ptp(ranks_a) or not np.ptp(ranks_b):
        return 0.0
    return float(np.corrcoef(ranks_a, ranks_b)[0, 1])


def _mean_ranks(values: Vector) -> Vector:
    """Equal values share the mean of their ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Vector = (np.cumsum(counts) - (counts - 1) / 2)[which]
    return ranks
