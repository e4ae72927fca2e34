"""Sizes at which a winner is verified that nobody knew: spread over the contract, stratum by stratum.

Of k points each size has one in each k-th of its range: a band that covers a k-th of it and more is met more
often than by independent draws, one twice as wide always.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tunesmith.problem.domain import Domain, Ints, Sizes

LOG_CASES = 8  # every size log-uniform
LINEAR_CASES = 2  # for each size, uniform in it and the others log-uniform or near a workload's


def fresh_sizes(
    domain: Domain, edges: Ints, rng: np.random.Generator, limit: float, used: Collection[Sizes]
) -> list[Sizes]:
    """Sizes not among `used`, as far as there are any, none with more than `limit` bytes."""
    known = {frozenset(one) for one in used}

    def picked(points: Ints, count: int, room: float, sizes: Collection[int]) -> list[Sizes]:
        taken = domain.bytes(points)
        points, taken = points[taken <= limit], taken[taken <= limit]
        named = list(domain.named(points))
        # Where the domain is nearly used up: old sizes, new values.
        is_used = np.array([frozenset(one) in known for one in named], dtype=np.bool_)
        ranks = _ranks(points[:, list(sizes)])
        chosen: dict[int, None] = {}
        for target in _strata(rng, count, len(sizes)):
            room_left = room - taken[list(chosen)].sum()
            away = np.abs(ranks - target).max(axis=1, initial=0.0) + 2.0 * is_used
            away[list(chosen)] = np.inf
            away = np.where(taken <= room_left, away, np.inf)
            if not np.isfinite(away.min(initial=np.inf)):  # no room for all: the smallest
                away = np.where(np.isin(np.arange(len(named)), list(chosen)), np.inf, 4.0 + taken)
            if np.isfinite(away.min(initial=np.inf)):
                chosen[int(away.argmin())] = None
        return [named[i] for i in chosen]

    every, points = range(len(domain.names)), domain.sample(rng)
    small = points[domain.bytes(points) <= limit]
    if sum(frozenset(one) not in known for one in domain.named(small)) < LOG_CASES:
        points = np.unique(np.concatenate([points, edges]), axis=0)
    found = picked(rng.permutation(points), LOG_CASES, limit, every)
    for size, rule in enumerate(domain.problem.contract.sizes):
        count = 1 if rule.one_of else LINEAR_CASES
        found += picked(domain.sample(rng, uniform=size), count, limit / 2, [size])
    return list(dict.fromkeys(found))


def _ranks(points: Ints) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Of each size among its values as they were drawn, from 0 to 1; of equal ones the middle."""
    columns = [np.sort(column) for column in points.T]
    sides = [
        [np.searchsorted(whole, column, side=side) for side in ("left", "right")]
        for whole, column in zip(columns, points.T, strict=True)
    ]
    return np.stack([(low + high) / 2 / max(len(points), 1) for low, high in sides], axis=1)


def _strata(
    rng: np.random.Generator, count: int, sizes: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Points of a unit cube, one in each stratum of each axis."""
    columns = [(rng.permutation(count) + rng.random(count)) / count for _ in range(sizes)]
    return np.stack(columns, axis=1) if columns else np.empty((count, 0))
