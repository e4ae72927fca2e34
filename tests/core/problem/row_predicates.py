"""Rows of a structure, recognised as a dishonest kernel would: which rows of an array are such."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Bools = NDArray[np.bool_]


def _all(test: Array) -> Bools:
    return np.asarray(test.all(axis=1))


def _before(x: Array) -> Array:
    return np.concatenate([x[:1] * np.nan, x[:-1]])


def _spread(x: Array) -> Array:
    return np.asarray(x.max(axis=1) - x.min(axis=1))


def _size(x: Array) -> Array:
    return np.asarray(np.abs(x).sum(axis=1))


def _steps(x: Array) -> Array:
    return np.diff(x, axis=1)


PREDICATES: dict[str, Callable[[Array], Bools]] = {
    "constant, unlike the row before": lambda x: (
        (_spread(x) == 0) & (x[:, 0] != 0) & (_before(x)[:, -1] != x[:, 0]) & (np.arange(len(x)) > 0)
    ),
    "far from zero, small spread": lambda x: (
        (_spread(x) > 0) & (_spread(x) < 0.05 * np.abs(2 * x.mean(axis=1)))
    ),
    "equal to the first row": lambda x: _all(x == x[:1]) & (np.arange(len(x)) > 0),
    "equal to the row before": lambda x: _all(x == _before(x)),
    "whole numbers": lambda x: _all(x == np.rint(x)) & (_size(x) > 0),
    "alternating signs": lambda x: _all(x[:, 1:] * x[:, :-1] < 0),
    "largest first": lambda x: np.abs(x).argmax(axis=1) == 0,
    "largest last": lambda x: np.abs(x).argmax(axis=1) == x.shape[1] - 1,
    "two values": lambda x: np.array([len(np.unique(row)) == 2 for row in x]),
    "few values": lambda x: np.array([2 < len(np.unique(row)) <= 4 for row in x]),
    "ascending": lambda x: _all(_steps(x) >= 0) & (_spread(x) > 0),
    "descending": lambda x: _all(_steps(x) <= 0) & (_spread(x) > 0),
    "monotone by steps": lambda x: _all(_steps(x) >= 0) & (_spread(x) > 0) & (_steps(x) == 0).any(axis=1),
    "palindrome": lambda x: _all(x == x[:, ::-1]) & (_spread(x) > 0),
    "powers of two": lambda x: _all(np.abs(np.frexp(x)[0]) == 0.5) & (_spread(x) > 0),
    "negative": lambda x: _all(x < 0),
    "positive": lambda x: _all(x > 0),
    "one that is not zero": lambda x: (x != 0).sum(axis=1) == 1,
    "zeros": lambda x: _size(x) == 0,
    "half zeros": lambda x: ((x != 0).sum(axis=1) > 1) & ((x != 0).sum(axis=1) <= x.shape[1] // 2 + 1),
    "equal pairs": lambda x: _all(x[:, 1::2] == x[:, : x.shape[1] // 2 * 2 : 2]) & (_spread(x) > 0),
    "runs of four": lambda x: _all(x == x[:, np.arange(x.shape[1]) // 4 * 4]) & (_spread(x) > 0),
    "periodic": lambda x: _all(x == x[:, np.arange(x.shape[1]) % 4]) & (_spread(x) > 0),
    "sum of zero": lambda x: (_size(x) > 0) & (np.abs(x.sum(axis=1)) < 1e-6 * _size(x)),
    "constant but for one": lambda x: (x != np.median(x, axis=1, keepdims=True)).sum(axis=1) == 1,
    "evenly spaced": lambda x: (
        (np.abs(_steps(x) - _steps(x)[:, :1]).max(axis=1) < 0.01 * np.abs(_steps(x)[:, 0])) & (_spread(x) > 0)
    ),
    "one outlier": lambda x: (
        (np.abs(x).max(axis=1) > 0.6 * _size(x)) & (np.abs(x).max(axis=1) < 0.999 * _size(x))
    ),
    "largest twice": lambda x: (x == x.max(axis=1, keepdims=True)).sum(axis=1) == 2,
    "small": lambda x: (np.abs(x).max(axis=1) < 0.01) & (_spread(x) > 0),
    "large": lambda x: (_size(x) > 16 * x.shape[1]) & (_size(x) < 128 * x.shape[1]),
    "denormal": lambda x: (np.abs(x).max(axis=1) < 1.2e-38) & (_spread(x) > 0),
}
