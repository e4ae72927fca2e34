"""Searchers with a focus: mostly inside, one in eight outside, and never stuck."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.space.test_region import focus_on
from tests.suites.searcher_suite import MIDDLE, SMALL, TIED, bowl, drive
from tunesmith.run.ports import Prior, Searcher, SearchView, Tried
from tunesmith.search.default import Default
from tunesmith.search.models import OpenConfigs, is_following
from tunesmith.search.simple import Evolution, Exhaustive, Focused, Random
from tunesmith.space import space as region_module
from tunesmith.space.configset import Config
from tunesmith.space.space import OUTSIDE_EVERY

SEARCHERS = [Default(), Random(), Evolution(), Exhaustive()]
each = pytest.mark.parametrize("inner", SEARCHERS, ids=lambda s: s.name)


def focused(view: SearchView, *texts: str) -> SearchView:
    return replace(view, focus=focus_on(view, *texts))


@each
def test_without_a_focus_it_is_the_searcher_itself(inner: Searcher) -> None:
    assert Focused(inner).name == inner.name
    assert Focused(inner).ask(MIDDLE, 6) == inner.ask(MIDDLE, 6)


@each
@pytest.mark.parametrize(
    "view", [focused(MIDDLE, "A >= 5", "B < 4"), focused(TIED, "P0 >= 6")], ids=["", "large"]
)
@pytest.mark.few(2)
def test_one_in_eight_is_outside(inner: Searcher, view: SearchView) -> None:
    if inner.name == "exhaustive" and view.space == TIED.space:
        pytest.skip("nobody lists millions")
    end = drive(Focused(inner), view, bowl, 49)
    asked = [t.config for t in end.tried]
    assert len(set(asked)) == 49
    outside = [c for c in asked[1:] if not view.focus.holds(c)]  # the default comes first, wherever it is
    assert 48 // OUTSIDE_EVERY - 2 <= len(outside) <= 48 // OUTSIDE_EVERY + 2
    first = asked[1 : OUTSIDE_EVERY - 1]
    assert all(view.focus.holds(c) for c in first), "the opening lies inside"


def test_picks_that_follow_earlier_runs_are_counted_over_both_sides() -> None:
    rows = tuple((MIDDLE.configs[i], bowl(MIDDLE.configs[i])) for i in range(0, 300, 3))
    view = focused(replace(MIDDLE, priors=(Prior("earlier", rows),), asked=0), "A >= 5", "B < 4")
    asked = Focused(Default()).ask(view, 10)
    assert asked.followed == {asked.configs[turn] for turn in range(10) if is_following(turn)}


@each
def test_a_batch_in_a_pool_keeps_to_the_pool(inner: Searcher) -> None:
    pool = tuple(MIDDLE.configs[i] for i in range(0, 200, 5))
    view = focused(replace(MIDDLE, pool=pool, tried=(Tried(MIDDLE.default, 0.0),)), "A >= 1")
    picked = Focused(inner).ask(view, 4).configs
    assert len(picked) == 4
    assert set(picked) <= set(pool)


@each
@pytest.mark.parametrize("text", ["A >= 0", "A > 99", "A == 1"], ids=["all", "none", "some"])
@pytest.mark.few(4)
def test_it_goes_on_until_everything_is_tried(inner: Searcher, text: str) -> None:
    end = drive(Focused(inner), focused(SMALL, text), bowl, 1000)
    assert {t.config for t in end.tried} == {*SMALL.configs}


@each
def test_the_budget_and_the_default_are_respected(inner: Searcher) -> None:
    view = focused(replace(MIDDLE, budget_left=3), "A >= 5")
    picked = Focused(inner).ask(view, 10).configs
    assert len(picked) == 3
    assert picked[0] == MIDDLE.default
    assert Focused(inner).ask(view, 10) == Focused(inner).ask(view, 10), "the same question, the same answer"
    assert Focused(inner).ask(replace(view, budget_left=0), 10).configs == ()


def test_neighbours_of_the_best_are_found_in_spaces_too_large_to_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(region_module, "MAX", 1000)
    view = focused(TIED, "P0 >= 6")
    best = Config.of({f"P{i}": 6 for i in range(6)})
    near = OpenConfigs(view.on("inside")).around(best, set())
    found = [view.configs[int(number)] for number in near]
    assert len(found) == 5 * 11 + 5  # every other value of five parameters, and those of P0 from 6 on
    assert all(config["P0"] >= 6 for config in found)
