"""Sizes at which the general configuration is timed: at its corners, where it was weak, and anywhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, product

import numpy as np

from tunesmith.problem.domain import Domain, Ints, Sizes
from tunesmith.space.expr import Expr
from tunesmith.space.vector import holds

LEAST_BYTES = 4096  # of all arrays: with less, a call is a launch and nothing else
MOST_ENDS = 3  # sizes whose ends are combined
ENOUGH, DRAWS = 2000, 12  # points to choose from, and how often they are drawn at most


def probe_sizes(
    domain: Domain,
    seed: int,
    count: int,
    most_bytes: float,
    inside: Sequence[Expr] = (),
    known: Collection[Sizes] = (),
    served: Sequence[Sizes] = (),
    weak: Sequence[Sizes] = (),
) -> tuple[Sizes, ...]:
    """Fresh sizes where all conditions hold and the arrays take no more than that.

    Up to half of them are the corners of what is `served`, up to a third lie nearest to the `weak` ones, the
    rest is drawn at random.
    """
    region = _ProbedRegion(domain, most_bytes, inside)
    points = region.points(seed)
    if not len(points):
        return ()
    chosen: dict[Sizes, None] = {}

    def choose(some: Ints, most: int) -> None:
        fresh = (sizes for sizes in domain.named(some) if sizes not in known and sizes not in chosen)
        chosen.update(dict.fromkeys(islice(dict.fromkeys(fresh), most)))

    choose(_corners(region, points, _points(domain, served)), count // 2)
    choose(_beside(points, _points(domain, weak)), count // 3)
    choose(points, count - len(chosen))
    return tuple(chosen)


def _points(domain: Domain, some: Sequence[Sizes]) -> Ints:
    rows = [[dict(sizes)[name] for name in domain.names] for sizes in some]
    return np.array(rows, dtype=np.int64).reshape(-1, len(domain.names))


@dataclass(frozen=True)
class _ProbedRegion:
    domain: Domain
    most_bytes: float
    inside: Sequence[Expr]

    def points(self, seed: int) -> Ints:
        rng = np.random.default_rng(seed)
        found = np.empty((0, len(self.domain.names)), dtype=np.int64)
        for _ in range(DRAWS):
            found = np.concatenate([found, self.held(self.domain.sample(rng))])
            if len(found) >= ENOUGH:
                break
        return found

    def held(self, points: Ints) -> Ints:
        nbytes = self.domain.bytes(points)
        points = points[(nbytes >= LEAST_BYTES) & (nbytes <= self.most_bytes)]
        for condition in self.inside:
            points = points[holds(condition, self.domain.columns(points))]
        return points


def _corners(region: _ProbedRegion, points: Ints, served: Ints) -> Ints:
    """Every size at one of its ends; for each two sizes where one is largest beside the other; the most and
    the least bytes; the largest and the smallest of each size; places on the edges."""
    domain = region.domain
    known = np.concatenate([points, served])
    corners, edges = _frame(known.min(axis=0), known.max(axis=0), between=points[0])
    nbytes = domain.bytes(points)
    scale = np.log(np.maximum(points, 1))
    pairs = permutations(range(len(domain.names)), 2)
    rows = [int((scale[:, one] - scale[:, other]).argmax()) for one, other in pairs]
    rows += [int(nbytes.argmax()), int(nbytes.argmin())]
    for column in points.T:
        rows += [int(column.argmax()), int(column.argmin())]
    held = [region.held(domain.allowed(some)) for some in (corners, edges)]
    return np.concatenate([held[0], points[rows], held[1]])


def _frame(low: Ints, high: Ints, between: Ints) -> tuple[Ints, Ints]:
    """The corners of a box, and a place on each of its edges."""
    free = min(MOST_ENDS, len(low))
    corners, edges = [], []
    for at_end in product((False, True), repeat=free):
        corner = between.copy()
        corner[:free] = np.where(at_end, high[:free], low[:free])
        corners.append(corner)
        for size in range(free):
            edges.append(corner.copy())
            edges[-1][size] = between[size]
    return np.array(corners), np.array(edges)


def _beside(points: Ints, weak: Ints) -> Ints:
    """The points nearest to the weak ones by ratio: the nearest of each, then the next of each."""
    scale, places = np.log(np.maximum(points, 1)), np.log(np.maximum(weak, 1))
    order = np.empty((len(points), len(weak)), dtype=np.int64)
    for number, place in enumerate(places):
        order[:, number] = ((scale - place) ** 2).sum(axis=1).argsort(kind="stable")
    near: Ints = points[order.ravel()]
    return near
