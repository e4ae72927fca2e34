"""Every searcher against the suite, and what each promises beyond it."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

import pytest

from tests.conformance.searcher_suite import FREE, SMALL, SearcherSuite, drive, space, view_of
from tunesmith import registry
from tunesmith.core.errors import BadInput
from tunesmith.core.ports import Searcher
from tunesmith.core.space import Config
from tunesmith.search.exhaustive import Exhaustive
from tunesmith.search.random import Random
from tunesmith.search.refine import Refine


class TestExhaustive(SearcherSuite):
    def make_searcher(self) -> Searcher:
        return Exhaustive()

    def test_the_order_is_that_of_the_space(self) -> None:
        rest = [config for config in SMALL.configs if config != SMALL.default]
        assert Exhaustive().ask(SMALL, 100) == [SMALL.default, *rest]


class TestRandom(SearcherSuite):
    def make_searcher(self) -> Searcher:
        return Random()

    def test_every_configuration_is_as_likely(self) -> None:
        known = replace(SMALL, tried=((SMALL.default, 0.0),))
        first = [Random().ask(replace(known, seed=seed), 1)[0] for seed in range(2000)]
        counts = [first.count(config) for config in known.configs if config != known.default]
        expected = 2000 / len(counts)
        assert all(expected / 2 < count < expected * 2 for count in counts)

    def test_another_seed_draws_another_sample(self) -> None:
        assert len({tuple(Random().ask(replace(FREE, seed=seed), 4)) for seed in range(20)}) == 20


class TestRefine(SearcherSuite):
    def make_searcher(self) -> Searcher:
        return Refine()

    def test_a_small_space_is_tried_in_order_if_the_budget_allows(self) -> None:
        assert Refine().ask(SMALL, 100) == Exhaustive().ask(SMALL, 100)
        enough = replace(SMALL, budget_left=len(SMALL.configs))
        assert Refine().ask(enough, 100) == Exhaustive().ask(SMALL, 100)
        short = replace(SMALL, budget_left=len(SMALL.configs) - 1, seed=4)
        assert Refine().ask(short, 100) != Exhaustive().ask(short, 100)

    def test_it_looks_around_the_best(self) -> None:
        others = [USUAL.configs[i] for i in range(0, 8000, 400)]
        best = USUAL.configs[4242]
        view = replace(USUAL, tried=(*((config, -1.0) for config in others), (best, 1.0)))
        near = set(view.space.neighbours(best)).intersection(view.configs)
        assert near
        asked = [c for seed in range(40) for c in Refine().ask(replace(view, seed=seed), 1)]
        assert 0.5 < mean(config in near for config in asked) < 1

    def test_it_beats_random_search_where_neighbours_are_alike(self) -> None:
        def best(searcher: Searcher, seed: int) -> float:
            end = drive(searcher, replace(USUAL, seed=seed), hill, evals=50)
            return max(score for _, score in end.tried if score is not None)

        seeds = range(0, 8000, 1000)
        assert mean(best(Refine(), s) for s in seeds) > mean(best(Random(), s) for s in seeds) + 0.1


USUAL = view_of(space({"A": 5, "B": 4, "C": 4, "D": 3, "E": 4, "F": 2, "G": 2, "H": 3}, "A + B < 8"))


def hill(config: Config) -> float | None:
    """Like the log speed-up of a kernel: some parameters matter, some only together, some corners fail."""
    a, b, c, d, e, f, g, h = config.as_dict().values()
    if a * b > 9:
        return None
    far = (
        3 * (a - 3) ** 2 + 2 * (b - 1) ** 2 + (c - 2) ** 2 + 2 * abs(d - 1) + (e - 2) ** 2 + 2 * f + g * d + h
    )
    return -far / 10


def test_names() -> None:
    for name in registry.SEARCHERS:
        assert registry.searcher(name).name == ("refine" if name == "default" else name)
    with pytest.raises(BadInput, match="unknown search 'magic'; known are default"):
        registry.searcher("magic")
