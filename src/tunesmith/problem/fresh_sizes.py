"""Sizes at which a winner is verified that nobody knew: spread over the contract, stratum by stratum.

Of k points each size has one in each k-th of its range: a band that covers a k-th of it and more is met more
often than by independent draws, one twice as wide always.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tunesmith.problem.domain import Domain, Ints, Sizes

LOG_CASES = 8  # every size log-uniform
LINEAR_CASES = 2  # in all or one for each size, uniform in it and the others log-uniform or near a workload's

ROWS = 32  # of each size, where it is rows that are looked at


def fresh_sizes(
    domain: Domain, edges: Ints, rng: np.random.Generator, limit: float, used: Collection[Sizes]
) -> list[Sizes]:
    """Sizes not among `used`, as far as there are any, none with more than `limit` bytes."""
    known = {frozenset(one) for one in used}
    every, points = range(len(domain.names)), domain.sample(rng)
    small = points[domain.bytes(points) <= limit]
    if sum(frozenset(one) not in known for one in domain.named(small)) < LOG_CASES:
        points = np.unique(np.concatenate([points, edges]), axis=0)
    found = _picked(domain, rng.permutation(points), LOG_CASES, (limit, limit), every, known, rng)
    for size, rule in enumerate(domain.problem.contract.sizes):
        count = 1 if rule.one_of else -(-LINEAR_CASES // len(domain.names))
        points = domain.sample(rng, uniform=size, near=0.5)
        found += _picked(domain, points, count, (limit, limit / 2), [size], known, rng)
    return list(dict.fromkeys(found))


def sizes_with_rows(domain: Domain, rng: np.random.Generator, limit: float, count: int) -> list[Sizes]:
    """Small cases with several rows of some length, most sizes near those of the workloads."""
    points = domain.sample(rng, near=0.75)
    points = points[domain.bytes(points) <= limit]
    least = np.minimum(points.max(axis=0, initial=0), ROWS)
    points = points[(points >= least).all(axis=1)]
    return _picked(domain, points, count, (limit, count * limit), range(len(domain.names)), set(), rng)


def _picked(
    domain: Domain,
    points: Ints,
    count: int,
    most_bytes: tuple[float, float],
    sizes: Collection[int],
    known: Collection[frozenset[tuple[str, int]]],
    rng: np.random.Generator,
) -> list[Sizes]:
    """Of these points as many, one in each stratum of these sizes; `most_bytes`: of one, and of all."""
    limit, room = most_bytes
    taken = domain.bytes(points)
    points, taken = points[taken <= limit], taken[taken <= limit]
    named = list(domain.named(points))
    # Where the domain is nearly used up: old sizes, new values.
    is_used = np.array([frozenset(one) in known for one in named], dtype=np.bool_)
    ranks = _ranks(points[:, list(sizes)])
    chosen: list[int] = []
    for target in _strata(rng, count, len(sizes)) if named else ():
        away = np.abs(ranks - target).max(axis=1, initial=0.0) + 2.0 * is_used
        # Where there is no room for all: the smallest.
        away = np.where(taken <= room - taken[chosen].sum(), away, 4.0 + taken)
        away[chosen] = np.inf
        if np.isfinite(away.min()):
            chosen.append(int(away.argmin()))
    return [named[i] for i in chosen]


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
