"""The part of a space that a search looks at first: conditions over parameters, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tunesmith.space.configset import ConfigSet
from tunesmith.space.expr import Expr, parse
from tunesmith.space.expr.vector import holds
from tunesmith.space.params import Config, Param

Side = Literal["inside", "outside"]
Numbers = NDArray[np.int64]
MOST = 50_000  # configurations that are looked at; of larger spaces a part, drawn once and for all
OUTSIDE_EVERY = 8  # picks, of which one is outside: a focus that is never left cannot prove wrong


@dataclass(frozen=True)
class Condition:
    """What configurations must have, in the template's words, and why."""

    remedy: str
    text: str
    finding: str
    evidence: str  # the numbers, in words
    score: float  # share of the time at stake × how sure that is, over all workloads


@dataclass(frozen=True)
class Focus:
    """All conditions at once. An event holds it, so it is made of words and numbers alone."""

    conditions: tuple[Condition, ...]
    inside: int  # configurations that meet them
    of: int

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(condition.text for condition in self.conditions)

    def holds(self, config: Config) -> bool:
        return meets(config, self.texts)

    def without(self, remedies: frozenset[str]) -> tuple[Condition, ...]:
        return tuple(condition for condition in self.conditions if condition.remedy not in remedies)

    def __str__(self) -> str:
        return " and ".join(
            f"({text})" if " or " in text and len(self.texts) > 1 else text for text in self.texts
        )


@dataclass(frozen=True)
class Region:
    """The configurations of a set on one side of a focus, in the set's order."""

    configs: ConfigSet
    numbers: Numbers = field(compare=False)
    texts: tuple[str, ...] = ()
    side: Side = "inside"

    @property
    def is_whole(self) -> bool:
        """Whether `numbers` are all that lie on this side; of a large space they are a part."""
        return len(self.configs) <= MOST

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> Config:
        return self.configs[int(self.numbers[index])]

    def __iter__(self) -> Iterator[Config]:
        return (self.configs[int(number)] for number in self.numbers)

    def __contains__(self, config: object) -> bool:
        return isinstance(config, Config) and config in self.configs and self.is_beside(config)

    def is_beside(self, config: Config) -> bool:
        """Whether a configuration lies on this side, feasible or not."""
        return meets(config, self.texts) == (self.side == "inside")


def meets(config: Config, texts: tuple[str, ...]) -> bool:
    values = config.as_dict()
    return all(_parsed(text).holds(values) for text in texts)


@lru_cache(maxsize=64)
def _parsed(text: str) -> Expr:
    return parse(text)


@lru_cache(maxsize=8)  # pure; every question of a run asks for the same two
def region(configs: ConfigSet, params: tuple[Param, ...], texts: tuple[str, ...], side: Side) -> Region:
    numbers, inside = _split(configs, params, texts)
    return Region(configs, numbers[inside if side == "inside" else ~inside], texts, side)


def count(configs: ConfigSet, params: tuple[Param, ...], texts: tuple[str, ...]) -> int:
    """How many meet all conditions; of a large space as many as its part lets expect."""
    numbers, inside = _split(configs, params, texts)
    return round(int(inside.sum()) * len(configs) / max(1, len(numbers)))


@lru_cache(maxsize=32)
def _split(
    configs: ConfigSet, params: tuple[Param, ...], texts: tuple[str, ...]
) -> tuple[Numbers, NDArray[np.bool_]]:
    total = len(configs)
    drawn = np.random.default_rng(0).integers(total, size=MOST) if total > MOST else np.arange(total)
    numbers = np.unique(drawn)
    values = configs.values_matrix(numbers)
    columns = {param.name: values[:, place] for place, param in enumerate(params)}
    inside = np.ones(len(numbers), dtype=np.bool_)
    for text in texts:
        inside &= holds(_parsed(text), columns)
    return numbers, inside
