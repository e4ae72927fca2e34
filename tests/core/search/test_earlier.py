"""What earlier runs foretell, and how far it is believed."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from tests.suites.searcher_suite import MIDDLE, TIED, space, view_of
from tunesmith.run.ports import Prior, SearchView, Tried
from tunesmith.search.default import Default
from tunesmith.search.models import (
    FEWEST,
    FIRST,
    UNTIL,
    Guide,
    Numbers,
    OpenConfigs,
    is_following,
    rank_correlation,
)
from tunesmith.space.configset import Config
from tunesmith.space.features import Vector

VIEW = view_of(space({"A": 10, "B": 10, "C": 6, "D": 4}))  # 2,400 configurations


def worth(config: Config) -> float:
    values = config.as_dict()
    return -((values["A"] - 7) ** 2 + (values["B"] - 2) ** 2 + (values["C"] - 4) ** 2) / 20


def a_run(view: SearchView, sign: float = 1.0, count: int = 120) -> Prior:
    picked = np.random.default_rng(3).choice(len(view.configs), count, replace=False)
    configs = [view.configs[int(number)] for number in picked]
    return Prior(f"run {sign}", tuple((config, sign * worth(config)) for config in configs))


def known(view: SearchView, count: int) -> tuple[Numbers, Vector]:
    numbers = np.random.default_rng(4).choice(len(view.configs), count, replace=False)
    return numbers, np.array([worth(view.configs[int(number)]) for number in numbers])


def guide(*priors: Prior, count: int = 0) -> Guide:
    return Guide(VIEW.space, VIEW.configs, priors, *known(VIEW, count))


EVERY = np.arange(len(VIEW.configs))
TRUE = np.array([worth(VIEW.configs[number]) for number in range(len(VIEW.configs))])


def test_half_of_the_first_picks_follow_and_then_all_for_a_while() -> None:
    assert [turn for turn in range(100) if is_following(turn)] == [1, 3, 5, 7, *range(FIRST, UNTIL)]


def test_the_best_count_alike_and_the_others_keep_their_order() -> None:
    told = guide(a_run(VIEW))
    best = told.best()
    assert len(best) == pytest.approx(24, abs=2)
    assert TRUE[best].mean() > np.quantile(TRUE, 0.97)
    assert np.ptp(told.order(best)) > 0
    assert np.ptp(told.filter(best)) == 0
    others = np.setdiff1d(EVERY, best)
    assert np.array_equal(told.filter(others), told.order(others))
    assert told.filter(others).max() < told.filter(best).min()


def test_a_small_space_has_a_few_that_count_as_best() -> None:
    small = Guide(MIDDLE.space, MIDDLE.configs, (), *known(VIEW, 0))
    assert not small.holds, "no run, nothing foretold"
    rows = tuple((MIDDLE.configs[i], float(i)) for i in range(0, 300, 3))
    told = Guide(MIDDLE.space, MIDDLE.configs, (Prior("earlier", rows),), *known(VIEW, 0))
    assert told.holds
    assert FEWEST <= len(told.best()) <= FEWEST + 2


def test_runs_count_by_their_agreement_with_what_is_known() -> None:
    right, wrong = a_run(VIEW), a_run(VIEW, -1.0)
    assert guide(wrong).holds, "nobody knows yet"
    assert not guide(wrong, count=12).holds
    both = guide(wrong, right, count=12)
    assert both.holds
    assert rank_correlation(both.order(EVERY), TRUE) > 0.6
    assert abs(rank_correlation(guide(wrong, right).order(EVERY), TRUE)) < 0.5, "before that alike"


def test_failures_count_as_the_worst() -> None:
    numbers, scores = known(VIEW, 40)
    scores[scores > np.median(scores)] = np.nan  # what the run calls good does not work here
    assert not Guide(VIEW.space, VIEW.configs, (a_run(VIEW),), numbers, scores).holds


def test_ranks_of_equals_are_shared() -> None:
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([5.0, 5.0, 9.0])) == pytest.approx(
        0.866, abs=1e-3
    )
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, -np.inf])) == pytest.approx(-1)
    assert rank_correlation(np.ones(4), np.arange(4.0)) == 0


def test_the_first_picks_are_spread_over_what_is_foretold_to_be_best() -> None:
    view = replace(VIEW, priors=(a_run(VIEW),))
    asked = Default().ask(view, FIRST)
    best = {VIEW.configs[int(number)] for number in guide(*view.priors).best()}
    followed = [asked.configs[turn] for turn in (1, 3, 5, 7)]
    assert asked.followed == frozenset(followed)
    assert set(followed) <= best
    order = np.argsort(-guide(*view.priors).order(EVERY))
    assert set(followed) != {VIEW.configs[int(number)] for number in order[:4]}, "spread, not in order"


def test_of_a_pool_without_any_of_them_the_best_foretold_is_taken() -> None:
    best = set(guide(a_run(VIEW)).best().tolist())
    pool = tuple(VIEW.configs[number] for number in range(0, 2400, 50) if number not in best)
    view = replace(
        VIEW, priors=(a_run(VIEW),), pool=pool, asked=1, default=pool[0], tried=(Tried(pool[0], 0.0),)
    )
    (asked,) = Default().ask(view, 1).configs
    field = OpenConfigs(view).pool
    order = guide(a_run(VIEW)).order(field[field != VIEW.configs.index(pool[0])])
    told = guide(a_run(VIEW)).order(np.array([VIEW.configs.index(asked)]))[0]
    assert told == pytest.approx(order.max())


def test_a_space_too_large_to_list_is_judged_by_a_sample_and_the_runs_own_best() -> None:
    configs = [TIED.configs[i * 20_011] for i in range(100)]
    rows = [(config, -float(config["P0"])) for config in configs]
    rows[70] = (configs[70], 4.0)
    view = replace(TIED, priors=(Prior("earlier", tuple(rows)),))
    begun = time.process_time()
    asked = Default().ask(view, FIRST)
    assert time.process_time() - begun < 2
    assert len(asked.followed) == FIRST // 2
    told = Guide(view.space, view.configs, view.priors, np.zeros(0, dtype=np.int64), np.zeros(0))
    found = told.best()
    assert 20 <= len(found) <= 60, "one in a hundred of the sample"
    assert view.configs.index(configs[70]) in found
    assert {view.configs.index(config) for config in asked.followed} <= set(found.tolist())
