"""The few statistics claims rest on: medians, weighted geometric means, bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Interval:
    """A point with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


def median(samples: Sequence[float]) -> float:
    ordered = sorted(samples)
    if not ordered:
        raise ValueError("the median of nothing")
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def geometric_mean(values: Iterable[float], weights: Iterable[float] | None = None) -> float:
    numbers = list(values)
    parts = list(weights) if weights is not None else [1.0] * len(numbers)
    total = sum(parts)
    if not numbers or total <= 0:
        raise ValueError("the mean of nothing")
    return math.exp(sum(w * math.log(v) for v, w in zip(numbers, parts, strict=True)) / total)


def median_interval(samples: Sequence[float], seed: int, resamples: int = 2000) -> Interval:
    """Median with its bootstrap interval, the same for the same samples and seed."""
    point = median(samples)
    if len(samples) < 2:
        return Interval(point, -math.inf, math.inf)
    rng = np.random.default_rng(seed)
    data = np.asarray(samples, dtype=np.float64)
    draws = np.median(data[rng.integers(0, len(data), (resamples, len(data)))], axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(point, float(low), float(high))
