"""Any searcher, shown one side of a focus at a time: mostly the inside, now and then the outside.

A focus that is never left cannot prove wrong: one pick of eight lies outside.
"""

from __future__ import annotations

from dataclasses import replace

from tunesmith.core.ports import Proposal, Searcher, SearchView
from tunesmith.core.region import OUTSIDE_EVERY, Side
from tunesmith.core.space import Config


class Focused:
    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        self.name = searcher.name

    def ask(self, view: SearchView, n: int) -> Proposal:
        if view.focus is None:
            return self._searcher.ask(view, n)
        n = view.room(n)
        picks: list[Config] = list(view.untried_first[:n])
        turns = range(len(view.seen) + len(picks), len(view.seen) + n)
        outside = sum(turn % OUTSIDE_EVERY == OUTSIDE_EVERY - 1 for turn in turns)
        gains: list[float | None] = []
        so_far = view.with_asked(Proposal(tuple(picks)))
        shares: list[tuple[Side, int]] = [("inside", len(turns) - outside), ("outside", outside)]
        # Whatever one side cannot give, the other does.
        for side, count in (*shares, ("outside", n), ("inside", n)):
            wanted = min(count, n - len(picks))
            if wanted <= 0:
                continue
            found = self._searcher.ask(replace(so_far.on(side), budget_left=wanted), wanted)
            so_far = so_far.with_asked(found)
            picks += found.configs
            gains.append(found.gain)
        known = [gain for gain in gains if gain is not None]
        followed = so_far.followed.intersection(picks)
        return Proposal(tuple(picks), max(known) if known else None, followed)
