"""Evolution: children of the best so far, crossed and changed a little."""

from __future__ import annotations

import numpy as np

from tunesmith.core.ports import Proposal, SearchView
from tunesmith.core.space import Config
from tunesmith.search.random import draw

OPENING = 12  # random configurations before the first child
PARENTS = 8
STRANGERS = 0.1  # of what is asked is random, so that a lost value can come back
TRIES = 50  # children that are not feasible or known already before a random one takes the place


class Evolution:
    name = "evolution"

    def ask(self, view: SearchView, n: int) -> Proposal:
        rng = np.random.default_rng(view.seed)
        n = view.room(n)
        found = list(view.untried_first[:n])
        seen = {*view.seen, *found}
        scored = [(t.score, t.config) for t in view.tried if t.score is not None]
        parents = [config for _, config in sorted(scored, key=lambda pair: -pair[0])[:PARENTS]]
        while len(found) < n:
            child = None
            if len(seen) >= OPENING and len(parents) > 1 and rng.random() >= STRANGERS:
                child = self._child(view, parents, seen, rng)
            more = draw(view, 1, rng, seen) if child is None else [child]
            if not more:
                break
            seen.update(more)
            found += more
        return Proposal(tuple(found))

    def _child(
        self, view: SearchView, parents: list[Config], seen: set[Config], rng: np.random.Generator
    ) -> Config | None:
        """Each value from one of two parents, the better ones likelier; then one parameter, sometimes more,
        takes a neighbouring value."""
        likelihood = np.arange(len(parents), 0, -1, dtype=np.float64)
        likelihood /= likelihood.sum()
        changes = 1.5 / max(len(view.space.params), 1)
        for _ in range(TRIES):
            one, two = (parents[int(i)] for i in rng.choice(len(parents), 2, replace=False, p=likelihood))
            values: dict[str, int] = {}
            for param in view.space.params:
                value = (one if rng.random() < 0.5 else two)[param.name]
                near = param.neighbours(value)
                values[param.name] = int(rng.choice(near)) if near and rng.random() < changes else value
            child = Config(tuple(values.items()), view.space.candidate)
            if child not in seen and child in view.open:
                return child
        return None
