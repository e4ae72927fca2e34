"""Our own searchers over a recorded space, asked and answered as the loop does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.search.recorded import Recorded
from tunesmith.run.ports import Prior, Searcher, SearchView, Tried
from tunesmith.space.configset import Config

Paced = Callable[[int], tuple[int, int]]  # of what is known: as in `pace` of a run


def steady(batch: int, width: int) -> Paced:
    """A batch whenever there is room for one within the width, from beginning to end."""
    return lambda _known: (batch, width - batch)


def then_all(first: int, batch: int) -> Paced:
    """One at a time until so many are known, then a batch."""
    return lambda known: (1, 0) if known < first else (batch, 0)


ONE = steady(1, 1)  # at a time


def trace(
    searcher: Searcher,
    recorded: Recorded,
    seed: int,
    evals: int,
    paced: Paced = ONE,
    priors: tuple[Prior, ...] = (),
    until_best: bool = False,
) -> list[int]:
    """Asked for a batch whenever as few are in flight as the pace says; outcomes come in order. `until_best`
    ends it once the optimum has been asked for, after which no figure changes."""
    # A recording has no default: one that is not feasible is never asked for.
    view = SearchView(
        recorded.space, recorded.configs, Config(()), (), (), budget_left=evals, seed=seed, priors=priors
    )
    asked: list[int] = []
    while True:
        batch, enough = paced(len(view.tried))
        while len(asked) < evals and len(view.in_flight) <= enough:
            view = replace(view, seed=seed * 100_003 + len(asked), budget_left=evals - len(asked))
            proposal = searcher.ask(view, batch)
            if not proposal.configs:  # everything has been tried
                break
            asked += [_number(recorded, config) for config in proposal.configs]
            view = view.with_asked(proposal)
        if not view.in_flight or (until_best and recorded.best_number in asked):
            return asked
        done, *rest = view.in_flight
        tried = Tried(done, recorded.scores[_number(recorded, done)])
        view = replace(view, tried=(*view.tried, tried), in_flight=tuple(rest))


def _number(recorded: Recorded, config: Config) -> int:
    number = recorded.configs.index(config)
    assert number is not None, "a searcher asks for what is feasible"
    return number


def prior_of(recorded: Recorded, asked: list[int], name: str) -> Prior:
    """What a search that asked for these would leave to later ones."""
    return Prior(name, tuple((recorded.config(number), recorded.scores[number]) for number in asked))
