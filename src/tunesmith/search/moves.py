"""Steps from one configuration to others like it that change two parameters at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tunesmith.space.params import Config, Param
from tunesmith.space.space import Space

REACH = 64  # values of a parameter to either side that are looked at


def exchanges(space: Space, config: Config) -> Iterator[Config]:
    """Those that differ in two sizes and have the same product of the two.

    Threads along one axis for threads along another, a larger tile for fewer threads: a product that is
    right, or bounded by a constraint, stays as it is, where a change of either size alone would lose it.
    """
    sizes = [param for param in space.params if _is_size(param)]
    for one, two in combinations(sizes, 2):
        own, other = config[one.name], config[two.name]
        at = one.positions[own]
        for value in one.values[max(0, at - REACH) : at + REACH + 1]:
            left, rest = divmod(own * other, value)
            if value != own and not rest and left in two.positions:
                yield config.replace(one.name, value).replace(two.name, left)


def _is_size(param: Param) -> bool:
    return len(param.values) > 1 and not param.categorical and min(param.values) > 0
