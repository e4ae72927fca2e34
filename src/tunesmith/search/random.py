"""Configurations drawn at random from the feasible ones."""

from __future__ import annotations

from itertools import chain, islice

import numpy as np

from tunesmith.core.ports import Proposal, SearchView
from tunesmith.core.space import Config

TRIES = 64  # misses in a row before looking through everything that is left


class Random:
    name = "random"

    def ask(self, view: SearchView, n: int) -> Proposal:
        first = view.untried_first[: view.room(n)]
        rng = np.random.default_rng(view.seed)
        return Proposal((*first, *draw(view, view.room(n) - len(first), rng, {*view.seen, *first})))


def draw(view: SearchView, n: int, rng: np.random.Generator, seen: set[Config]) -> list[Config]:
    """Up to n unseen configurations; adds them to `seen`."""
    found: list[Config] = []
    everything = view.open
    total = len(everything)
    misses = 0
    while len(found) < n and misses < TRIES and total:
        config = everything[int(rng.integers(total))]
        if config in seen:
            misses += 1
            continue
        misses = 0
        seen.add(config)
        found.append(config)
    if len(found) < n:
        # Almost everything has been tried: list what is left, which is cheap by then.
        left = [c for c in everything if c not in seen]
        for i in rng.permutation(len(left))[: n - len(found)]:
            seen.add(left[int(i)])
            found.append(left[int(i)])
    return found


class Exhaustive:
    name = "exhaustive"

    def ask(self, view: SearchView, n: int) -> Proposal:
        first = view.untried_first
        seen = view.seen.union(first)
        rest = (config for config in view.open if config not in seen)
        return Proposal(tuple(islice(chain(first, rest), view.room(n))))
