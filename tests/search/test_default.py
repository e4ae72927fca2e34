from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from tests.conformance.searcher_suite import TIED, drive, space, view_of
from tunesmith.core.ports import Prior, SearchView, Tried
from tunesmith.core.space import Config, Param, Space
from tunesmith.search.default import Default
from tunesmith.search.transfer import APART_UNTIL, apart, listens

USUAL = view_of(space({"A": 8, "B": 8, "C": 6, "D": 5, "E": 4, "F": 3}))  # 23,040 configurations


def slope(config: Config) -> float:
    a, b, c, d, *_ = config.as_dict().values()
    return -((a - 6) ** 2 + (b - 2) ** 2 + (c - 4) ** 2 + (d - 1) ** 2) / 20


def best(view: SearchView) -> float:
    return max(t.score for t in view.tried if t.score is not None)


def test_failures_are_learned() -> None:
    def half_fails(config: Config) -> float | None:
        return None if config["A"] >= 4 else slope(config)

    end = drive(Default(), USUAL, half_fails, evals=70)
    assert sum(t.score is None for t in end.tried[-30:]) <= 8
    assert best(end) > -0.6  # -0.45 is the best there is


def test_values_of_a_categorical_parameter_have_no_order() -> None:
    kinds = Param("K", tuple(range(12)), categorical=True)
    made = Space((kinds, *USUAL.space.params[:3]))
    worth = np.random.default_rng(1).permutation(12)
    view = view_of(made)

    def cost(config: Config) -> float:
        return float(worth[config["K"]]) / 6 - (config["A"] - 5) ** 2 / 20

    assert best(drive(Default(), view, cost, evals=60)) > 10 / 6


def test_a_batch_does_not_crowd() -> None:
    view = drive(Default(), USUAL, slope, evals=40)
    asked = Default().ask(replace(view, budget_left=None), 8).configs
    assert len(set(asked)) == 8
    away = [
        sum(x != y for x, y in zip(a.items, b.items, strict=True)) for a in asked for b in asked if a != b
    ]
    assert max(away) >= 3


def test_what_is_in_flight_is_taken_into_account() -> None:
    view = drive(Default(), USUAL, slope, evals=40)
    first = Default().ask(replace(view, budget_left=None), 1).configs
    then = Default().ask(replace(view, budget_left=None, in_flight=first), 1).configs
    assert set(first).isdisjoint(then)


def test_the_gain_falls_when_nothing_is_left_to_find() -> None:
    early = drive(Default(), USUAL, slope, evals=15)
    late = drive(Default(), USUAL, slope, evals=90)
    gains = [Default().ask(replace(view, budget_left=None), 1).gain for view in (early, late)]
    assert gains[0] is not None
    assert gains[1] is not None
    assert gains[1] < gains[0] / 3


def test_the_best_of_each_workload_is_sought() -> None:
    """Two workloads that want opposite ends of A: both ends are visited."""

    def at(config: Config) -> tuple[float, float]:
        rest = -((config["B"] - 2) ** 2 + (config["C"] - 4) ** 2) / 20
        return rest - (config["A"]) / 4, rest - (7 - config["A"]) / 4

    view = replace(USUAL, weights=(1.0, 1.0))
    for step in range(15):
        asked = Default().ask(replace(view, seed=step), 4).configs
        view = replace(view, tried=(*view.tried, *(Tried(c, sum(at(c)) / 2, at(c)) for c in asked)))
    assert max(t.at[0] for t in view.tried if t.at[0] is not None) > -0.15
    assert max(t.at[1] for t in view.tried if t.at[1] is not None) > -0.15


def prior(cost: str, count: int = 150) -> Prior:
    rng = np.random.default_rng(3)
    configs = [USUAL.configs[int(i)] for i in rng.integers(len(USUAL.configs), size=count)]
    sign = {"helpful": 1.0, "misleading": -1.0}[cost]
    return Prior(cost, tuple((config, sign * slope(config)) for config in configs))


def test_an_earlier_run_that_agrees_saves_evaluations() -> None:
    def after(evals: int, priors: tuple[Prior, ...]) -> float:
        views = (replace(USUAL, seed=seed, priors=priors) for seed in range(0, 5000, 1000))
        return float(np.mean([best(drive(Default(), view, slope, evals, width=1)) for view in views]))

    assert after(8, (prior("helpful"),)) > after(8, ()) + 0.3


def test_an_earlier_run_that_misleads_is_left_behind() -> None:
    wrong = replace(USUAL, priors=(prior("misleading"),))
    ends = [best(drive(Default(), replace(wrong, seed=s), slope, 50, width=1)) for s in (0, 1000, 2000)]
    assert float(np.mean(ends)) > -0.1


def test_an_earlier_run_of_other_parameters_says_nothing() -> None:
    other = Prior("other", tuple((Config.of({"Z": i}), float(i)) for i in range(9)))
    asked = Default().ask(replace(USUAL, priors=(other,)), 3).configs
    assert asked == Default().ask(USUAL, 3).configs


def test_earlier_runs_are_followed_at_first() -> None:
    heard = [i for i in range(200) if listens(i)]
    assert heard[:3] == [1, 2, 3]
    assert len(heard) == 6, "a misleading run costs no more"
    assert heard[-1] < APART_UNTIL


def test_what_following_found_is_not_known_to_the_others_for_a_while() -> None:
    followed = np.array([0, 1, 0, 1], dtype=bool)
    assert apart(followed, 4).tolist() == [True, False, True, False]
    assert apart(followed, APART_UNTIL).all()


@pytest.mark.parametrize(("outcomes", "seconds"), [(200, 0.16), (1000, 0.5)])
def test_a_question_is_answered_in_time(outcomes: int, seconds: float) -> None:
    """20 ms for each of 8, at 200 outcomes; three times as much is allowed here, for busy machines."""
    rng = np.random.default_rng(0)
    picked = rng.choice(len(USUAL.configs), outcomes, replace=False)
    view = replace(USUAL, tried=tuple(Tried(c, slope(c)) for c in (USUAL.configs[int(i)] for i in picked)))
    view = replace(view, default=view.tried[0].config)
    taken = []
    for seed in range(3):
        begun = time.perf_counter()
        Default().ask(replace(view, seed=seed, tried=view.tried[seed:]), 8)
        taken.append(time.perf_counter() - begun)
    assert min(taken) < 3 * seconds


def test_a_space_of_millions_is_asked_about_in_time() -> None:
    tried = tuple(Tried(c, -float(c["P0"])) for c in (TIED.configs[i * 20_011] for i in range(100)))
    begun = time.perf_counter()
    assert len(Default().ask(replace(TIED, tried=tried), 8).configs) == 8
    assert time.perf_counter() - begun < 1


def test_what_the_compiler_says_is_listened_to_among_what_is_built() -> None:
    """Speed follows spills, which nothing but the compiler knows: parameters have no say in them."""
    rng = np.random.default_rng(3)
    configs = [USUAL.configs[int(i)] for i in rng.choice(len(USUAL.configs), 80, replace=False)]
    spills = {config: float(rng.integers(0, 400)) for config in configs}
    static = {config: (32.0, spilled, 0.0, 0.0, 50.0) for config, spilled in spills.items()}
    tried = tuple(Tried(config, -np.log2(2 + spills[config]) / 4) for config in configs[:40])
    view = replace(USUAL, tried=tried, pool=tuple(configs[40:]), static=static)
    asked = Default().ask(view, 4).configs
    deaf = Default().ask(replace(view, static={}), 4).configs
    assert max(spills[config] for config in asked) < np.median(list(spills.values()))
    assert sum(spills[config] for config in asked) < sum(spills[config] for config in deaf) / 2
