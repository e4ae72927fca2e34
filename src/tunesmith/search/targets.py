"""Scores made ready for a model: failures filled in, the bad half levelled, everything in deviations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tunesmith.core.model.encoding import Matrix
from tunesmith.core.model.gaussian_process import Vector

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
