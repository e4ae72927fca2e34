"""A Gaussian process over encoded configurations, in plain NumPy.

The kernel is a sum of two. One compares whole configurations (Matérn 3/2, a length scale for each group of
features); the other adds up what each parameter does alone, which few evaluations suffice to learn. Length
scales, noise and the two variances are the most likely ones under a broad prior, found by sign-based steps
along the analytic gradient: every step is cheap, and no scale of the gradient can upset it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.core.model.encoding import Encoding, Matrix, Positions

Vector = NDArray[np.float64]

LENGTH = 0.7  # of a main feature that spans 1, in a space of 4 parameters; grows as the root of their number
MINOR_LENGTH = 3.0
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


def usual(encoding: Encoding) -> Hyperparameters:
    """The middle of the prior."""
    scale = np.sqrt(len(encoding.params)) / 2
    lengths = np.where(encoding.minor, MINOR_LENGTH, LENGTH) * scale
    return Hyperparameters(np.log([*lengths, NOISE, 1.0, ALONE]))


def matern(squares: Matrix) -> tuple[Matrix, Matrix]:
    """Matérn 3/2 of squared distances, and its derivative by them."""
    root = np.sqrt(3 * squares)
    decay = np.exp(-root)
    return (1 + root) * decay, -1.5 * decay


def _matern_of(squares: Matrix) -> Matrix:
    """The same without the derivative, in its argument's place: most of the time of an answer goes here."""
    squares *= 3
    root = np.sqrt(squares, out=squares)
    decay = np.exp(-root)
    root += 1
    root *= decay
    return root


def covariance(encoding: Encoding, settings: Hyperparameters, a: Positions, b: Positions) -> Matrix:
    """The kernel between configurations, given by their positions."""
    scales = 1 / settings.lengths[encoding.groups]
    total = _matern_of(_squares(encoding.features(a) * scales, encoding.features(b) * scales))
    total *= settings.whole
    share = settings.alone / len(encoding.params)
    for owner, (param, table) in enumerate(zip(encoding.params, encoding.tables, strict=True)):
        own, here, there = scales[encoding.columns(owner)], a[:, param], b[:, param]
        if len(table) <= FEW:  # compare the values, and look the configurations up
            values = table * own
            few = share * _matern_of(_squares(values, values) * _alone_scale(encoding))
            total += few[here].take(there, axis=1)
        else:
            squares = _squares(table[here] * own, table[there] * own)
            total += share * _matern_of(squares * _alone_scale(encoding))
    return total


class Pairs:
    """Squared distances by group of features: between outcomes, and between the values of each parameter."""

    def __init__(self, encoding: Encoding, positions: Positions) -> None:
        features = encoding.features(positions)
        parts = [features[:, encoding.groups == group] for group in range(len(encoding.owners))]
        self.outcomes = np.stack([_squares(part, part).ravel() for part in parts])
        self.values: list[tuple[NDArray[np.int64], Matrix, Matrix]] = []
        for owner, param in enumerate(encoding.params):
            # A parameter has few values: what it does alone is compared by these.
            first, which = np.unique(positions[:, param], return_index=True, return_inverse=True)[1:]
            own = np.flatnonzero(encoding.owners == owner)
            squares = np.stack([_squares(parts[group][first], parts[group][first]) for group in own])
            self.values.append((own, squares, np.eye(len(first))[which]))


def loss(encoding: Encoding, logs: Vector, pairs: Pairs, targets: Matrix) -> tuple[float, Vector]:
    """Minus the log posterior of the hyperparameters, and its gradient.

    `targets` has a column for each function that shares the kernel, and these count as one, on average.
    """
    settings = Hyperparameters(logs)
    count, functions = targets.shape
    scales = settings.lengths**-2
    whole, whole_slope = matern((scales @ pairs.outcomes).reshape(count, count))
    share = settings.alone / len(encoding.params)
    kernel = settings.whole * whole
    slopes: list[Matrix] = []
    for own, squares, which in pairs.values:
        alone, slope = matern(np.tensordot(scales[own], squares, 1) * _alone_scale(encoding))
        slopes.append(slope)
        kernel += share * (which @ alone @ which.T)
    all_alone = kernel - settings.whole * whole
    kernel.flat[:: count + 1] += settings.noise + JITTER
    factor = np.linalg.cholesky(kernel)
    half = np.linalg.inv(factor)
    inverse = half.T @ half
    weights = inverse @ targets
    off = (logs - usual(encoding).logs) / _spreads(encoding)
    value = np.sum(targets * weights) / (2 * functions) + np.log(np.diag(factor)).sum() + off @ off / 2

    outer = (inverse - weights @ weights.T / functions) / 2  # the derivative by each entry of the kernel
    by_scale = pairs.outcomes @ (settings.whole * outer * whole_slope).ravel()
    for (own, squares, which), slope in zip(pairs.values, slopes, strict=True):
        through = share * _alone_scale(encoding) * slope * (which.T @ outer @ which)
        by_scale[own] += np.sum(squares * through, axis=(1, 2))
    by_noise = 2 * settings.noise * np.trace(outer)
    by_whole = 2 * settings.whole * np.sum(outer * whole)
    by_alone = 2 * np.sum(outer * all_alone)
    gradient = np.array([*(-2 * scales * by_scale), by_noise, by_whole, by_alone]) + off / _spreads(encoding)
    return float(value), gradient


def fit(encoding: Encoding, positions: Positions, targets: Matrix, steps: int = STEPS) -> Hyperparameters:
    """The most likely hyperparameters, or close to them."""
    pairs = Pairs(encoding, positions)
    logs = usual(encoding).logs
    best, best_logs = np.inf, logs
    reach, last = np.full(len(logs), 0.2), np.zeros(len(logs))
    for _ in range(steps):
        value, gradient = loss(encoding, logs, pairs, targets)
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
        kernel = covariance(encoding, settings, known, known) + self._trend.known @ self._trend.known.T
        kernel.flat[:: len(kernel) + 1] += settings.noise + JITTER
        half = np.linalg.inv(np.linalg.cholesky(kernel))
        across = covariance(encoding, settings, candidates, known)
        self._white = (across + self._trend.candidates @ self._trend.known.T) @ half.T
        self.means = self._white @ (half @ targets)
        before = settings.variance + np.sum(self._trend.candidates**2, axis=1)
        self.variances = before - np.sum(self._white**2, axis=1)

    @property
    def deviations(self) -> Vector:
        deviations: Vector = np.sqrt(np.maximum(self.variances, 1e-10))
        return deviations

    def expect(self, candidate: int) -> None:
        """Take it that this candidate turns out as the means say. They stay; what is near becomes certain."""
        here = self._candidates[candidate : candidate + 1]
        shared = covariance(self._encoding, self._settings, self._candidates, here)[:, 0]
        shared += self._trend.candidates @ self._trend.candidates[candidate]
        shared -= self._white @ self._white[candidate]
        certain = max(self.variances[candidate], 1e-10) + self._settings.noise + JITTER
        column = shared / np.sqrt(certain)
        self._white = np.concatenate([self._white, column[:, None]], axis=1)
        self.variances = self.variances - column**2


def _squares(a: Matrix, b: Matrix) -> Matrix:
    squares: Matrix = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1) - 2 * a @ b.T
    return np.maximum(squares, 0.0, out=squares)


def _alone_scale(encoding: Encoding) -> float:
    """Undoes the growth of lengths with the number of parameters, for one parameter alone."""
    return len(encoding.params) / 4


def _spreads(encoding: Encoding) -> Vector:
    lengths, *rest = SPREADS
    return np.array([lengths] * len(encoding.owners) + rest)
