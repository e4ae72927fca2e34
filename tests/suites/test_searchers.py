"""Every searcher against the suite, and what each promises beyond it."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import find_spec
from statistics import mean

import pytest

from tests.suites.searcher_suite import FREE, SMALL, SearcherSuite, drive, space, view_of
from tunesmith import search
from tunesmith.base.errors import BadInput
from tunesmith.run.ports import Proposal, Searcher, SearchView, Tried
from tunesmith.search.default import Default
from tunesmith.search.simple import Evolution, Exhaustive, Focused, Random, Tpe
from tunesmith.space.configset import Config
from tunesmith.space.space import Condition, Focus, count_configs


class TestExhaustive(SearcherSuite):
    def make_searcher(self) -> Searcher:
        return Exhaustive()

    def test_the_order_is_that_of_the_space(self) -> None:
        rest = [config for config in SMALL.configs if config != SMALL.default]
        assert Exhaustive().ask(SMALL, 100).configs == (SMALL.default, *rest)


class TestRandom(SearcherSuite):
    def make_searcher(self) -> Searcher:
        return Random()

    def test_every_configuration_is_as_likely(self) -> None:
        known = replace(SMALL, tried=(Tried(SMALL.default, 0.0),))
        first = [Random().ask(replace(known, seed=seed), 1).configs[0] for seed in range(2000)]
        counts = [first.count(config) for config in known.configs if config != known.default]
        expected = 2000 / len(counts)
        assert all(expected / 2 < count < expected * 2 for count in counts)

    def test_another_seed_draws_another_sample(self) -> None:
        assert len({Random().ask(replace(FREE, seed=seed), 4).configs for seed in range(20)}) == 20


class TestEvolution(SearcherSuite):
    def make_searcher(self) -> Searcher:
        return Evolution()

    def test_it_beats_random_search_where_neighbours_are_alike(self) -> None:
        seeds = range(0, 8000, 1000)
        assert mean(best(Evolution(), s) for s in seeds) > mean(best(Random(), s) for s in seeds) + 0.1


class TestDefault(SearcherSuite):
    def make_searcher(self) -> Searcher:
        return Default()

    @pytest.mark.long
    def test_it_beats_evolution(self) -> None:
        seeds = range(0, 6000, 1000)
        assert mean(best(Default(), s) for s in seeds) > mean(best(Evolution(), s) for s in seeds) + 0.05


@pytest.mark.skipif(find_spec("optuna") is None, reason="Optuna is not installed")
class TestTpe(SearcherSuite):
    def make_searcher(self) -> Searcher:
        return Tpe()


class Steered:
    """A searcher that has a focus on every question, whatever the space."""

    def __init__(self, inner: Searcher) -> None:
        self.name, self._focused = inner.name, Focused(inner)

    def ask(self, view: SearchView, n: int) -> Proposal:
        texts = (f"{view.space.params[0].name} >= 1",)
        conditions = tuple(Condition("unroll", text, "latency", "few bytes in flight", 0.5) for text in texts)
        inside = count_configs(view.configs, view.space.params, texts) if len(view.configs) else 0
        return self._focused.ask(replace(view, focus=Focus(conditions, inside, len(view.configs))), n)


class TestRandomWithAFocus(SearcherSuite):
    def make_searcher(self) -> Searcher:
        return Steered(Random())


@pytest.mark.long
class TestDefaultWithAFocus(SearcherSuite):
    def make_searcher(self) -> Searcher:
        return Steered(Default())


def test_tpe_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(BadInput, match="needs Optuna") as caught:
        Tpe().ask(SMALL, 1)
    assert "pip install" in (caught.value.hint or "")


USUAL = view_of(space({"A": 5, "B": 4, "C": 4, "D": 3, "E": 4, "F": 2, "G": 2, "H": 3}, "A + B < 8"))


def best(searcher: Searcher, seed: int) -> float:
    end = drive(searcher, replace(USUAL, seed=seed), hill, evals=50)
    return max(t.score for t in end.tried if t.score is not None)


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
    for name in search.SEARCHERS:
        assert search.load_searcher(name).name == name
    with pytest.raises(BadInput, match="unknown search 'magic'; known are default"):
        search.load_searcher("magic")
