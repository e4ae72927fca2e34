"""What a model is asked about: a random part of what is open, and everything next to the best."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tunesmith.run.ports import SearchView
from tunesmith.space.configset import ConfigSet
from tunesmith.space.gaussian_process import Positions
from tunesmith.space.params import Config, Param
from tunesmith.space.region import Region

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
            found = [_number(view.configs, config) for config in opened]
            self.pool = np.array([number for number in found if number is not None], dtype=np.int64)
            self._places = view.configs.positions(self.pool)
        elif isinstance(opened, Region):
            self.pool, self._places = opened.numbers, _placed(opened)
        elif len(view.configs) <= LISTED:
            self.pool, self._places = np.arange(len(view.configs)), _listed(view.configs)

    def number(self, config: Config) -> int | None:
        return _number(self._view.configs, config)

    def positions(self, numbers: Numbers) -> Positions:
        return self._view.configs.positions(numbers)

    def open(self, numbers: Numbers) -> Numbers:
        """Those of them that may be asked for."""
        return numbers if self.pool is None else numbers[np.isin(numbers, self.pool)]

    def draw(self, rng: np.random.Generator, count: int, seen: set[int]) -> Numbers:
        """Up to so many unseen ones, each once. Where they are listed, some whenever any are left."""
        if self.pool is None:
            drawn = np.unique(rng.integers(len(self._view.configs), size=count))
            return _without(drawn, seen)
        left = _without(self.pool, seen)
        return left if len(left) <= count else np.sort(rng.choice(left, count, replace=False))

    def around(self, config: Config, seen: set[int]) -> Numbers:
        """The unseen ones that differ from this one in one parameter: by any value, or where a parameter has
        a great many by those listed next to its own."""
        number = self.number(config)
        if number is None:
            return np.zeros(0, dtype=np.int64)
        if self.pool is not None and self._part is None:
            own = self.positions(np.array([number]))[0]
            differing = (self._places != own).sum(axis=1) == 1
            if self._has_many:
                steps = np.abs(self._places.astype(np.int64) - own).max(axis=1)
                differing &= steps <= NEXT
            return _without(self.pool[differing], seen)
        near = [
            config.replace(param.name, value)
            for param in self._space.params
            for value in _next_to(param, config[param.name])
        ]
        numbers = [self.number(c) for c in near if self._part is None or self._part.is_beside(c)]
        return _without(np.array(sorted(i for i in numbers if i is not None), dtype=np.int64), seen)


def _next_to(param: Param, value: int) -> list[int]:
    at = param.position(value)
    first = max(0, at - NEXT)
    return [other for other in param.values[first : at + NEXT + 1] if other != value]


@lru_cache(maxsize=2)
def _listed(configs: ConfigSet) -> Positions:
    return configs.positions()


@lru_cache(maxsize=4)
def _placed(region: Region) -> Positions:
    return region.configs.positions(region.numbers)


@lru_cache(maxsize=8192)  # pure; every question of a run asks for the same ones, and a few new
def _number(configs: ConfigSet, config: Config) -> int | None:
    return configs.index(config)


def _without(numbers: Numbers, seen: set[int]) -> Numbers:
    return numbers[~np.isin(numbers, list(seen))] if seen else numbers
