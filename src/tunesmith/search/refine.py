"""The first default: exhaustive when small, otherwise random with local refinement of the best so far."""

from __future__ import annotations

import numpy as np

from tunesmith.core.ports import SearchView
from tunesmith.core.space import Config
from tunesmith.search.exhaustive import Exhaustive
from tunesmith.search.random import draw

SMALL = 256  # spaces up to this size are tried whole, when the budget allows
OPENING = 16  # random configurations before the first refinement
LEADERS = 4  # whose neighbours are worth a look
RANDOM_SHARE = 0.3  # keeps looking elsewhere, so that a local optimum is no trap


class Refine:
    name = "refine"

    def ask(self, view: SearchView, n: int) -> list[Config]:
        budget = view.budget_left
        if len(view.configs) <= SMALL and (budget is None or budget >= len(view.configs) - len(view.seen)):
            return Exhaustive().ask(view, n)
        rng = np.random.default_rng(view.seed)
        n = view.room(n)
        found = list(view.untried_default[:n])
        seen = {*view.seen, *found}
        scored = sorted(
            ((score, config) for config, score in view.tried if score is not None), key=lambda pair: -pair[0]
        )
        ready = len(view.tried) >= OPENING
        while len(found) < n:
            local = ready and rng.random() >= RANDOM_SHARE
            picked = self._neighbour(view, scored, seen, rng) if local else None
            more = [picked] if picked is not None else draw(view, 1, rng, seen)
            if not more:
                break
            found += more
        return found

    def _neighbour(
        self,
        view: SearchView,
        scored: list[tuple[float, Config]],
        seen: set[Config],
        rng: np.random.Generator,
    ) -> Config | None:
        """An unseen neighbour of the best leader that still has one."""
        for _, leader in scored[:LEADERS]:
            open_ = [c for c in view.space.neighbours(leader) if c not in seen and c in view.configs]
            if open_:
                config = open_[int(rng.integers(len(open_)))]
                seen.add(config)
                return config
        return None
