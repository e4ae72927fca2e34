"""Configurations as numbers that a model can compare: what is alike on a GPU should lie close together.

An ordered parameter is placed by the logarithm of its value, because tile and group sizes act by ratios (by
position where it may be negative, has two values, or has some too close for their logarithms to differ).
Where values are not simply powers of two, how often 2 divides them is a second feature: 96 and 112 are near
in size, but only one is made of whole warps. A categorical parameter is one-hot: every two of its values are
equally far apart; nearly so where they are too many for that, and get directions at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tunesmith.space.configset import Param
from tunesmith.space.space import Space

Matrix = NDArray[np.float64]
Positions = NDArray[np.unsignedinteger]

ONE_HOT = 128  # values of a categorical parameter that get a column each


@dataclass(frozen=True)
class Encoding:
    """Features of a space. Columns in one group share a length scale; parameters of one value have none."""

    params: tuple[int, ...]  # the parameters that vary, by their place in the space
    tables: tuple[Matrix, ...]  # for each of these: a row of features per value
    groups: NDArray[np.int64]  # the group of each column
    owners: NDArray[np.int64]  # the parameter of each group, as an index into `params`
    minor: NDArray[np.bool_]  # groups that only refine another one: less likely to matter

    @staticmethod
    @lru_cache(maxsize=8)  # pure, and asked for again and again
    def of(space: Space) -> Encoding:
        tables: list[Matrix] = []
        groups: list[int] = []
        owners: list[int] = []
        minor: list[bool] = []
        params = tuple(i for i, param in enumerate(space.params) if len(param.values) > 1)
        for owner, place in enumerate(params):
            parts = _param_features(space.params[place])
            for rank, part in enumerate(parts):
                groups += [len(owners)] * part.shape[1]
                owners.append(owner)
                minor.append(rank > 0)
            tables.append(np.concatenate(parts, axis=1))
        assert all(np.isfinite(table).all() for table in tables), "a feature that is no number"
        return Encoding(
            params, tuple(tables), np.array(groups, int), np.array(owners, int), np.array(minor, bool)
        )

    def features(self, positions: Positions) -> Matrix:
        """One row of features for each row of positions (all parameters of the space)."""
        columns = [t[positions[:, p]] for t, p in zip(self.tables, self.params, strict=True)]
        return np.concatenate(columns, axis=1) if columns else np.zeros((len(positions), 0))

    def columns(self, owner: int) -> NDArray[np.bool_]:
        """The columns of one parameter."""
        mask: NDArray[np.bool_] = self.owners[self.groups] == owner
        return mask


def _param_features(param: Param) -> list[Matrix]:
    """The parts of a parameter's features, the main one first; each spans about 1."""
    values = np.array(param.values, dtype=np.float64)
    if param.categorical and len(values) > 2:
        return [np.sqrt(0.5) * _orthogonal_directions(len(values))]
    if len(values) == 2 or values.min() < 0:
        return [_scale_to_unit(np.arange(len(values)))]
    logs = np.log2(values + (values.min() == 0))
    if len(np.unique(logs)) < len(logs):
        return [_scale_to_unit(np.arange(len(values)))]
    twos = np.log2([value & -value for value in param.values]) if values.min() > 0 else logs
    parts = [_scale_to_unit(logs)]
    if np.ptp(twos) > 0 and not np.allclose(twos - twos[0], logs - logs[0]):
        parts.append(_scale_to_unit(twos))
    return parts


def _orthogonal_directions(count: int) -> Matrix:
    """Unit vectors at right angles, or nearly."""
    if count <= ONE_HOT:
        return np.eye(count)
    drawn: Matrix = np.random.default_rng(0).standard_normal((count, ONE_HOT))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn


def _scale_to_unit(numbers: NDArray[np.generic]) -> Matrix:
    column: Matrix = numbers.astype(np.float64)[:, None]
    spread: Matrix = (column - column.min()) / np.ptp(column)
    return spread


Vector = NDArray[np.float64]

# Of a main feature that spans 1, in a space of 4 parameters; grows as the root of their number. Long: a step
# has about the effect that it has elsewhere, unless outcomes say otherwise.
LENGTH = 5.6
MINOR_LENGTH = 24.0
NOISE = 0.05  # standard deviation, of targets with deviation 1
ALONE = 0.5  # standard deviation of what the parameters do alone, beside 1 for the whole
SPREADS = (1.0, 0.7, 0.5, 1.0)  # of the priors: logarithms of lengths, noise, the whole, alone
JITTER = 1e-6
FEW = 64  # values of a parameter that are all compared with each other, occurring or not
STEPS = 25


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters, as logarithms: lengths by group, then noise, whole and alone as deviations."""

    logs: Vector

    @property
    def lengths(self) -> Vector:
        return np.exp(self.logs[:-3])

    @property
    def noise(self) -> float:
        return float(np.exp(2 * self.logs[-3]))

    @property
    def whole(self) -> float:
        return float(np.exp(2 * self.logs[-2]))

    @property
    def alone(self) -> float:
        return float(np.exp(2 * self.logs[-1]))

    @property
    def variance(self) -> float:
        return self.whole + self.alone


def prior_hyperparameters(encoding: Encoding) -> Hyperparameters:
    """The middle of the prior."""
    scale = np.sqrt(len(encoding.params)) / 2
    lengths = np.where(encoding.minor, MINOR_LENGTH, LENGTH) * scale
    return Hyperparameters(np.log([*lengths, NOISE, 1.0, ALONE]))


def covariance_matrix(encoding: Encoding, settings: Hyperparameters, a: Positions, b: Positions) -> Matrix:
    """The kernel between configurations, given by their positions: of the whole, which falls off with the sum
    of what parameters differ by, and of what each of them does alone."""
    reach, share = _single_param_reach(encoding), settings.alone / len(encoding.params)
    columns, steps, single = [np.zeros((len(a), 0))], [np.zeros((0, len(b)))], [np.zeros((0, len(b)))]
    others: list[Matrix] = []
    for owner, (param, table) in enumerate(zip(encoding.params, encoding.tables, strict=True)):
        here, there = a[:, param], b[:, param]
        if len(table) <= FEW:  # compare the values; one product for all parameters looks the pairs up
            apart = _param_distances(encoding, settings, owner, table, table)[:, there]
            columns.append(np.eye(len(table))[here])
            steps.append(apart)
            single.append(np.exp(-reach * apart))
        else:
            others.append(_param_distances(encoding, settings, owner, table[here], table[there]))
    # Few arrays of this size, and in place: each is made of new pages, which take longer than the sums.
    which = np.concatenate(columns, axis=1)
    total: Matrix = which @ np.concatenate(steps)
    alone: Matrix = which @ np.concatenate(single)
    for apart in others:
        total += apart
        alone += np.exp(-reach * apart)
    np.exp(np.negative(total, out=total), out=total)
    total *= settings.whole
    alone *= share
    total += alone
    return total


def _param_distances(
    encoding: Encoding, settings: Hyperparameters, owner: int, a: Matrix, b: Matrix
) -> Matrix:
    """How far apart values of one parameter are, in lengths, by their features."""
    groups = encoding.groups[encoding.columns(owner)]
    total = np.zeros((len(a), len(b)))
    for group in np.flatnonzero(encoding.owners == owner):
        total += _pairwise_distances(a[:, groups == group], b[:, groups == group]) / settings.lengths[group]
    return total


def group_distances(encoding: Encoding, positions: Positions) -> Matrix:
    """Between each two of these: a row for each group of features."""
    features = encoding.features(positions)
    parts = [features[:, encoding.groups == group] for group in range(len(encoding.owners))]
    return np.stack([_pairwise_distances(part, part).ravel() for part in parts])


def posterior_loss(encoding: Encoding, logs: Vector, apart: Matrix, targets: Matrix) -> tuple[float, Vector]:
    """Minus the log posterior of the hyperparameters, and its gradient. `apart` are the `distances`.
    `targets` has a column for each function that shares the kernel, and these count as one, on average."""
    settings = Hyperparameters(logs)
    count, functions = targets.shape
    reach, share = _single_param_reach(encoding), settings.alone / len(encoding.params)
    by_group = apart / settings.lengths[:, None]
    by_owner = np.stack([by_group[encoding.owners == o].sum(axis=0) for o in range(len(encoding.params))])
    whole = settings.whole * np.exp(-by_group.sum(axis=0))
    alone = share * np.exp(-reach * by_owner)
    kernel = (whole + alone.sum(axis=0)).reshape(count, count)
    kernel.flat[:: count + 1] += settings.noise + JITTER
    factor = np.linalg.cholesky(kernel)
    half = np.linalg.inv(factor)
    inverse = half.T @ half
    weights = inverse @ targets
    off = (logs - prior_hyperparameters(encoding).logs) / _prior_spreads(encoding)
    value = np.sum(targets * weights) / (2 * functions) + np.log(np.diag(factor)).sum() + off @ off / 2

    outer = (inverse - weights @ weights.T / functions) / 2  # the derivative by each entry of the kernel
    by_length = (by_group * (whole + reach * alone[encoding.owners])) @ outer.ravel()
    by_noise = 2 * settings.noise * np.trace(outer)
    by_whole, by_alone = 2 * whole @ outer.ravel(), 2 * alone.sum(axis=0) @ outer.ravel()
    gradient = np.array([*by_length, by_noise, by_whole, by_alone]) + off / _prior_spreads(encoding)
    return float(value), gradient


def fit_hyperparameters(
    encoding: Encoding, positions: Positions, targets: Matrix, steps: int = STEPS
) -> Hyperparameters:
    """The most likely hyperparameters, or close to them."""
    apart = group_distances(encoding, positions)
    logs = prior_hyperparameters(encoding).logs
    best, best_logs = np.inf, logs
    reach, last = np.full(len(logs), 0.2), np.zeros(len(logs))
    for _ in range(steps):
        value, gradient = posterior_loss(encoding, logs, apart, targets)
        if value < best:
            best, best_logs = value, logs
        agreement = np.sign(gradient * last)
        reach = np.clip(reach * np.where(agreement > 0, 1.4, np.where(agreement < 0, 0.5, 1.0)), 0.01, 0.7)
        last = np.where(agreement < 0, 0.0, gradient)
        logs = logs - np.sign(last) * reach
    return Hyperparameters(best_logs)


@dataclass(frozen=True)
class Trend:
    """Columns whose sum, with unknown weights of deviation 1, is part of the functions."""

    known: Matrix
    candidates: Matrix

    @staticmethod
    def add_to(kernel: Matrix, some: Matrix, others: Matrix) -> None:
        """What these have in common by the trend."""
        if some.shape[1]:
            kernel += some @ others.T

    def beside(self, other: Trend) -> Trend:
        sides = ((self.known, other.known), (self.candidates, other.candidates))
        return Trend(*(np.concatenate(each, axis=1) for each in sides))


class Posterior:
    """What the outcomes say about candidates: means for each function, and a deviation that they share."""

    def __init__(
        self,
        encoding: Encoding,
        settings: Hyperparameters,
        known: Positions,
        targets: Matrix,
        candidates: Positions,
        trend: Trend | None = None,
    ) -> None:
        self._encoding, self._settings, self._candidates = encoding, settings, candidates
        self._trend = trend or Trend(np.zeros((len(known), 0)), np.zeros((len(candidates), 0)))
        kernel = covariance_matrix(encoding, settings, known, known)
        self._trend.add_to(kernel, self._trend.known, self._trend.known)
        kernel.flat[:: len(kernel) + 1] += settings.noise + JITTER
        half = _inverse_of_lower(np.linalg.cholesky(kernel))
        across = covariance_matrix(encoding, settings, candidates, known)
        self._trend.add_to(across, self._trend.candidates, self._trend.known)
        self._white = across @ half.T
        pulls = half.T @ (half @ targets)
        # How far off outcomes are from what all others foretell of each, in deviations of that.
        self.errors = pulls / np.sqrt(np.sum(half**2, axis=0))[:, None]
        self.means = self._white @ (half @ targets)
        before = settings.variance + np.sum(self._trend.candidates**2, axis=1)
        self.variances = before - np.einsum("ij,ij->i", self._white, self._white)

    @property
    def deviations(self) -> Vector:
        deviations: Vector = np.sqrt(np.maximum(self.variances, 1e-10))
        return deviations

    def expect(self, which: NDArray[np.int64]) -> None:
        """Take it that these candidates turn out as the means say: all else that is near becomes certain."""
        shared = self._shared_covariance(np.arange(len(self._candidates)), which)
        kernel = shared[which]
        kernel.flat[:: len(kernel) + 1] = np.maximum(np.diag(kernel), 1e-10) + self._settings.noise + JITTER
        columns = shared @ _inverse_of_lower(np.linalg.cholesky(kernel)).T
        self._white = np.concatenate([self._white, columns], axis=1)
        self.variances = self.variances - np.einsum("ij,ij->i", columns, columns)

    def joint(self, kept: NDArray[np.int64]) -> JointPosterior:
        """Of these candidates alone."""
        return JointPosterior(self.means[kept], self._shared_covariance(kept, kept), self._settings.noise)

    def _shared_covariance(self, some: NDArray[np.int64], others: NDArray[np.int64]) -> Matrix:
        """What they have in common beyond what is known."""
        here, there = self._candidates[some], self._candidates[others]
        shared = covariance_matrix(self._encoding, self._settings, here, there)
        self._trend.add_to(shared, self._trend.candidates[some], self._trend.candidates[others])
        shared -= self._white[some] @ self._white[others].T
        return shared


class JointPosterior:
    """A few candidates with all that each two of them have in common: quick to go on with, one by one."""

    def __init__(self, means: Matrix, covariances: Matrix, noise: float) -> None:
        self.means, self._covariances, self._noise = means, covariances, noise

    @property
    def deviations(self) -> Vector:
        deviations: Vector = np.sqrt(np.maximum(np.diag(self._covariances), 1e-10))
        return deviations

    def expect(self, candidate: int) -> None:
        """Take it that it turns out as its means say. They stay; what is near becomes certain."""
        shared = self._covariances[candidate]
        certain = max(float(shared[candidate]), 1e-10) + self._noise + JITTER
        self._covariances = self._covariances - np.outer(shared, shared / certain)


def _pairwise_distances(a: Matrix, b: Matrix) -> Matrix:
    if a.shape[1] == 1:
        return np.abs(a - b.T)
    squares: Matrix = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1) - 2 * a @ b.T
    return np.sqrt(np.maximum(squares, 0.0, out=squares))


def _inverse_of_lower(factor: NDArray[np.floating]) -> Matrix:
    """Of a lower triangular matrix: by halves, which leaves most of the work to products."""
    if len(factor) <= 64:
        return np.asarray(np.linalg.inv(factor), dtype=np.float64)
    half = len(factor) // 2
    inverse: Matrix = np.zeros(factor.shape)
    inverse[:half, :half] = _inverse_of_lower(factor[:half, :half])
    inverse[half:, half:] = _inverse_of_lower(factor[half:, half:])
    inverse[half:, :half] = -inverse[half:, half:] @ (factor[half:, :half] @ inverse[:half, :half])
    return inverse


def _single_param_reach(encoding: Encoding) -> float:
    """Undoes the growth of lengths with the number of parameters, for one parameter alone."""
    return float(np.sqrt(len(encoding.params)) / 2)


def _prior_spreads(encoding: Encoding) -> Vector:
    lengths, *rest = SPREADS
    return np.array([lengths] * len(encoding.owners) + rest)
