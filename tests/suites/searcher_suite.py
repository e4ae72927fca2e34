"""What every searcher must do. Inherit `SearcherSuite` and provide `make_searcher`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.thoroughness import THOROUGH, examples
from tunesmith.run.ports import Prior, Proposal, Searcher, SearchView, Tried
from tunesmith.space.configset import Config, Param
from tunesmith.space.expr import parse_expr
from tunesmith.space.space import Constraint, Space

Cost = Callable[[Config], float | None]


def space(domains: dict[str, int], *constraints: str) -> Space:
    """Parameters with the values 0 to n - 1."""
    params = tuple(Param(name, tuple(range(n))) for name, n in domains.items())
    return Space(params, tuple(Constraint(text, parse_expr(text)) for text in constraints))


def view_of(made: Space) -> SearchView:
    """The start of a run: everything open, the first values the default."""
    default = Config(tuple((p.name, p.values[0]) for p in made.params))
    return SearchView(made, made.configs(), default, (), (), budget_left=None, seed=0)


SMALL = view_of(space({"A": 4, "B": 3, "C": 3}, "A + B < 5", "C != 1 or A > 0"))
MIDDLE = view_of(space({"A": 10, "B": 10, "C": 6}, "(A + B + C) % 2 == 0"))
TINY = view_of(space({"A": 1}))
NONE = view_of(space({"A": 3}, "A > 5"))
FREE = view_of(space({f"P{i}": 16 for i in range(10)}))  # 2**40 configurations
TIED = view_of(space({f"P{i}": 12 for i in range(6)}, "P0 + P1 + P2 + P3 + P4 + P5 > 8"))  # nearly 3 million


def bowl(config: Config) -> float | None:
    """Smooth, with one best configuration; a third of the space fails."""
    values = config.as_dict().values()
    return None if sum(values) % 3 == 2 else -float(sum((v - 2) ** 2 for v in values))


def drive(searcher: Searcher, view: SearchView, cost: Cost, evals: int, width: int = 4) -> SearchView:
    """Ask and answer as the loop does, until nothing more comes or the budget is spent."""
    spent = 0
    while True:
        left = evals - spent
        room = min(width - len(view.in_flight), left)
        view = replace(view, seed=view.seed + 1, budget_left=left)
        proposal = searcher.ask(view, room) if room else Proposal(())
        asked = proposal.configs
        spent += len(asked)
        view = view.with_asked(proposal)
        if not view.in_flight:
            return view
        if not asked or len(view.in_flight) == width:
            done, *rest = view.in_flight
            view = replace(view, tried=(*view.tried, Tried(done, cost(done))), in_flight=tuple(rest))


@st.composite
def views(draw: st.DrawFn) -> SearchView:
    """Any moment of a run in a space of a few or a few hundred configurations."""
    view = draw(st.sampled_from([SMALL, MIDDLE]))
    numbers = st.integers(0, len(view.configs) - 1)
    some = st.lists(numbers, unique=True, max_size=40) | st.just(list(range(len(view.configs) - 2)))
    picked = draw(some)
    flying = draw(st.integers(0, min(8, len(picked))))
    scores = st.none() | st.floats(-3, 3)
    return replace(
        view,
        tried=tuple(Tried(view.configs[i], draw(scores)) for i in picked[flying:][:40])
        + tuple(Tried(view.configs[i], 0.0) for i in picked[flying:][40:]),
        in_flight=tuple(view.configs[i] for i in picked[:flying]),
        budget_left=draw(st.none() | st.integers(0, 500)),
        seed=draw(st.integers(0, 2**60 - 1)),
    )


# One test method, run by every class that inherits it.
inherited = examples(25, suppress_health_check=[HealthCheck.differing_executors])


class SearcherSuite(ABC):
    @abstractmethod
    def make_searcher(self) -> Searcher: ...

    @given(view=views(), n=st.integers(0, 12))
    @inherited
    def test_what_is_asked_is_new_feasible_and_not_too_much(self, view: SearchView, n: int) -> None:
        asked = self.make_searcher().ask(view, n).configs
        assert len(asked) <= n
        assert view.budget_left is None or len(asked) <= view.budget_left
        assert len(set(asked)) == len(asked)
        assert view.seen.isdisjoint(asked)
        assert all(config in view.configs for config in asked)

    @given(view=views(), n=st.integers(1, 12))
    @inherited
    def test_something_is_asked_while_anything_is_left(self, view: SearchView, n: int) -> None:
        left = len(view.configs) - len(view.seen)
        possible = min(n, left, left if view.budget_left is None else view.budget_left)
        assert bool(self.make_searcher().ask(view, n).configs) == bool(possible)

    @given(view=views(), other=views(), n=st.integers(1, 12))
    @inherited
    def test_the_answer_depends_on_the_view_alone(self, view: SearchView, other: SearchView, n: int) -> None:
        searcher = self.make_searcher()
        first = searcher.ask(view, n)
        searcher.ask(other, n)
        assert searcher.ask(view, n) == first == self.make_searcher().ask(view, n)

    def test_the_default_comes_first(self) -> None:
        for view in (SMALL, MIDDLE, FREE, TIED):
            default = view.configs[len(view.configs) // 2]
            for budget in (None, 5):
                asked = self.make_searcher().ask(replace(view, default=default, budget_left=budget), 3)
                assert asked.configs[0] == default

    def test_what_is_known_to_be_good_follows_the_default(self) -> None:
        known = tuple(MIDDLE.configs[i] for i in (7, 90, 41))
        outside = Config.of({"A": 0, "B": 0, "C": 1})
        view = replace(MIDDLE, first=(known[0], outside, MIDDLE.default, *known[1:]))
        searcher = self.make_searcher()
        assert searcher.ask(view, 6).configs[:4] == (MIDDLE.default, *known)
        assert searcher.ask(view, 2).configs == (MIDDLE.default, known[0])
        tried = replace(view, tried=(Tried(MIDDLE.default, 0.0), Tried(known[0], 1.0)), in_flight=(known[1],))
        asked = searcher.ask(tried, 3).configs
        assert asked[0] == known[2]
        assert not {outside, *known[:2], MIDDLE.default} & set(asked)
        built = replace(
            view, pool=(known[2], MIDDLE.configs[11], known[0]), tried=(Tried(MIDDLE.default, 0.0),)
        )
        assert searcher.ask(built, 2).configs == (known[0], known[2])

    def test_a_default_that_is_not_feasible_or_known_already_is_not_asked(self) -> None:
        outside = Config.of({"A": 3, "B": 2, "C": 0})
        assert outside not in SMALL.configs
        assert outside not in self.make_searcher().ask(replace(SMALL, default=outside), 5).configs
        for known in (
            replace(SMALL, tried=(Tried(SMALL.default, None),)),
            replace(SMALL, in_flight=(SMALL.default,)),
        ):
            assert SMALL.default not in self.make_searcher().ask(known, 5).configs

    @pytest.mark.parametrize(
        ("view", "cost"),
        [
            (SMALL, bowl),
            (SMALL, lambda config: None),
            (TINY, bowl),
            pytest.param(MIDDLE, bowl, marks=pytest.mark.long),
        ],
    )
    def test_every_configuration_is_tried_once(self, view: SearchView, cost: Cost) -> None:
        end = drive(self.make_searcher(), view, cost, evals=10_000)
        tried = [t.config for t in end.tried]
        assert len(tried) == len(view.configs)
        assert set(tried) == set(view.configs)

    @given(view=views(), n=st.integers(1, 6), share=st.integers(2, 5))
    @inherited
    def test_with_a_pool_only_what_is_in_it_is_asked(self, view: SearchView, n: int, share: int) -> None:
        pool = tuple(config for i, config in enumerate(view.configs) if i % share == 0)
        asked = self.make_searcher().ask(replace(view, pool=pool), n).configs
        assert set(asked) <= set(pool) - view.seen
        left = len(set(pool) - view.seen)
        assert bool(asked) == bool(min(left, left if view.budget_left is None else view.budget_left))

    def test_several_workloads_and_an_earlier_run_are_taken(self) -> None:
        rows = tuple((MIDDLE.configs[i], None if i % 7 == 0 else i / 100) for i in range(0, 280, 4))
        tried = tuple(
            Tried(MIDDLE.configs[i], i / 100, (None if i % 5 == 0 else i / 50, 0.1)) for i in range(3, 290, 9)
        )
        view = replace(MIDDLE, tried=tried, weights=(2.0, 1.0), priors=(Prior("earlier", rows),))
        asked = self.make_searcher().ask(view, 5).configs
        assert len(set(asked)) == 5
        assert view.seen.isdisjoint(asked)

    def test_nothing_is_asked_of_an_empty_space(self) -> None:
        assert len(NONE.configs) == 0
        assert self.make_searcher().ask(NONE, 4).configs == ()

    @pytest.mark.parametrize("evals", [1, 7, pytest.param(50, marks=pytest.mark.long)])
    def test_the_budget_is_spent_and_no_more(self, evals: int) -> None:
        for view in (MIDDLE, FREE):
            assert len(drive(self.make_searcher(), view, bowl, evals).tried) == evals

    def test_a_run_can_be_repeated(self) -> None:
        runs = [drive(self.make_searcher(), MIDDLE, bowl, evals=60).tried for _ in range(2)]
        assert runs[0] == runs[1]

    @pytest.mark.timeout(60)
    @pytest.mark.parametrize("view", [FREE, TIED], ids=["free", "tied"])
    def test_a_large_space_is_not_listed(self, view: SearchView) -> None:
        assert len(view.configs) > 2_000_000
        begun = time.perf_counter()
        evals = 100 if THOROUGH else 25
        end = drive(self.make_searcher(), view, bowl, evals)
        assert len({t.config for t in end.tried}) == evals
        assert all(t.config in view.configs for t in end.tried)
        assert time.perf_counter() - begun < 15
