"""Sizes at which the general configuration is timed: over the whole contract, and at its ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tunesmith.problem.domain import Domain, Ints, Sizes
from tunesmith.space.expr import Expr
from tunesmith.space.vector import holds

LEAST_BYTES = 4096  # of all arrays: with less, a call is a launch and nothing else


def probe_sizes(
    domain: Domain,
    seed: int,
    count: int,
    most_bytes: float,
    inside: Sequence[Expr] = (),
    known: Collection[Sizes] = (),
    ends: bool = True,
) -> tuple[Sizes, ...]:
    """At random and, with `ends`, each size at its least and at its largest; no array more
    than that. Only where all conditions hold."""
    rng = np.random.default_rng(seed)
    points = np.concatenate([domain.sample(rng), domain.sample(rng)])
    taken = domain.bytes(points)
    points = points[(taken >= LEAST_BYTES) & (taken <= most_bytes)]
    for condition in inside:
        points = points[holds(condition, domain.columns(points))]
    chosen: list[Sizes] = []
    if len(points) and ends:
        chosen += domain.named(_ends(domain, points))
    chosen += domain.named(points)
    fresh = [sizes for sizes in dict.fromkeys(chosen) if sizes not in known]
    return tuple(fresh[:count])


def _ends(domain: Domain, points: Ints) -> Ints:
    """The largest of each size and the largest arrays, the smallest of each, and the smallest arrays."""
    taken = domain.bytes(points)
    rows = [int(taken.argmax()), int(taken.argmin())]
    for column in points.T:
        rows += [int(column.argmax()), int(column.argmin())]
    return points[list(dict.fromkeys(rows))]
