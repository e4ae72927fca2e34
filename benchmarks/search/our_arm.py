"""Our own searchers over a recorded space, asked and answered as the loop does."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.search.recorded import Recorded
from tunesmith.core.ports import Prior, Searcher, SearchView, Tried
from tunesmith.core.space import Config


def trace(
    searcher: Searcher,
    recorded: Recorded,
    seed: int,
    evals: int,
    in_flight: int = 1,
    priors: tuple[Prior, ...] = (),
) -> list[int]:
    # A recording has no default: one that is not feasible is never asked for.
    view = SearchView(
        recorded.space, recorded.configs, Config(()), (), (), budget_left=evals, seed=seed, priors=priors
    )
    asked: list[int] = []
    while len(asked) < evals or view.in_flight:
        view = replace(view, seed=seed * 100_003 + len(asked), budget_left=evals - len(asked))
        room = in_flight - len(view.in_flight)
        proposed = searcher.ask(view, room).configs if room and len(asked) < evals else ()
        asked += [number for config in proposed if (number := recorded.configs.index(config)) is not None]
        view = replace(view, in_flight=(*view.in_flight, *proposed))
        if not view.in_flight:  # everything has been tried
            break
        done, *rest = view.in_flight
        number = recorded.configs.index(done)
        assert number is not None
        score = recorded.scores[number]
        view = replace(view, tried=(*view.tried, Tried(done, score)), in_flight=tuple(rest))
    return asked


def prior_of(recorded: Recorded, asked: list[int], name: str) -> Prior:
    """What a search that asked for these would leave to later ones."""
    return Prior(name, tuple((recorded.config(number), recorded.scores[number]) for number in asked))
