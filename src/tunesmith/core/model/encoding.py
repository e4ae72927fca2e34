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

from tunesmith.core.space import Param, Space

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
            parts = _features(space.params[place])
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


def _features(param: Param) -> list[Matrix]:
    """The parts of a parameter's features, the main one first; each spans about 1."""
    values = np.array(param.values, dtype=np.float64)
    if param.categorical and len(values) > 2:
        return [np.sqrt(0.5) * _directions(len(values))]
    if len(values) == 2 or values.min() < 0:
        return [_spread(np.arange(len(values)))]
    logs = np.log2(values + (values.min() == 0))
    if len(np.unique(logs)) < len(logs):
        return [_spread(np.arange(len(values)))]
    twos = np.log2([value & -value for value in param.values]) if values.min() > 0 else logs
    parts = [_spread(logs)]
    if np.ptp(twos) > 0 and not np.allclose(twos - twos[0], logs - logs[0]):
        parts.append(_spread(twos))
    return parts


def _directions(count: int) -> Matrix:
    """Unit vectors at right angles, or nearly."""
    if count <= ONE_HOT:
        return np.eye(count)
    drawn: Matrix = np.random.default_rng(0).standard_normal((count, ONE_HOT))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn


def _spread(numbers: NDArray[np.generic]) -> Matrix:
    column: Matrix = numbers.astype(np.float64)[:, None]
    spread: Matrix = (column - column.min()) / np.ptp(column)
    return spread
