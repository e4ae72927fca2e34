"""How good a configuration is by short measurements, by what it is measured, and how much they can see."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import fold as fold_benchmark
from tests.samples import a_problem, built, config, finalist, outcome, state_of
from tunesmith.problem.plan import Status
from tunesmith.run.events import Measured, Pruned, Recorded
from tunesmith.run.outcome import Outcome
from tunesmith.run.ports import Tried
from tunesmith.run.scores import LEAST_NOISE, MOST, SENTINELS, USUAL_NOISE, Yardstick, noise, score, scores
from tunesmith.run.state import State, apply
from tunesmith.space.params import Config

PROBLEM = a_problem()  # small with weight 1, wide with weight 3
A, B, C = config(32), config(64), config(128)
WRONG, INFEASIBLE, CRASHED = Status.WRONG, Status.INFEASIBLE, Status.CRASHED


def searched(number: int, chosen: Config, small: float | Status, wide: float | Status) -> Outcome:
    """By speed-up over an original that takes one second."""
    seconds = {n: v if isinstance(v, Status) else 1 / v for n, v in (("small", small), ("wide", wide))}
    return outcome(number, chosen, seconds)


def sentinel(number: int, small: float | Status, wide: float = 1.0) -> Outcome:
    return outcome(number, None, {"small": small, "wide": wide}, "sentinel")


# -- the yardstick ------------------------------------------------------------------------------------


def test_the_original_is_timed_by_the_baseline_until_a_sentinel_comes() -> None:
    yardstick = Yardstick(state_of(original={"small": 2.0, "wide": 3.0}))
    assert [yardstick.seconds("small", n) for n in (0, 1, 100)] == [2.0, 2.0, 2.0]
    assert yardstick.seconds("wide", 5) == 3.0


def test_the_yardstick_follows_a_drift() -> None:
    """A device that grows slower makes nobody faster."""
    slower = [sentinel(16 * i, 1.0 + i) for i in range(1, 11)]
    yardstick = Yardstick(state_of(*slower))
    near = [yardstick.seconds("small", n) for n in range(170)]
    assert near == sorted(near)
    for i in range(3, 8):  # with as many sentinels before as after it, the trial is measured by its own time
        assert yardstick.seconds("small", 16 * i + 8) == pytest.approx(1.0 + i + 0.5, abs=0.51)
    assert near[0] <= 3.0 < 9.0 <= near[-1]


@given(st.integers(0, 9), st.sampled_from([0.01, 100.0]), st.integers(0, 170))
def test_one_disturbed_sentinel_moves_nothing(place: int, factor: float, trial: int) -> None:
    times = [1.0] * 10
    times[place] *= factor
    yardstick = Yardstick(state_of(*(sentinel(16 * (i + 1), t) for i, t in enumerate(times))))
    assert yardstick.seconds("small", trial) == 1.0


def test_a_sentinel_that_failed_at_one_workload_counts_at_the_other() -> None:
    half = outcome(16, None, {"small": CRASHED, "wide": 9.0}, "sentinel")
    state = state_of(half, outcome(32, None, {"small": 1.0, "wide": 9.0}, "sentinel"))
    assert Yardstick(state).seconds("small", 17) == 1.0
    assert Yardstick(state).seconds("wide", 17) == 9.0


def test_speedups_of_what_could_be_timed() -> None:
    state = state_of(original={"small": 2.0, "wide": 3.0})
    found = Yardstick(state).speedups(outcome(0, A, {"small": 0.5, "wide": WRONG}))
    assert found == {"small": 4.0}


# -- scores ------------------------------------------------------------------------------------------


def test_scores_weigh_the_workloads() -> None:
    state = state_of(searched(0, A, 4.0, 1.0), searched(1, B, 1.0, 4.0), searched(2, C, WRONG, CRASHED))
    four = pytest.approx(math.log(4))
    assert scores(PROBLEM, state) == (
        Tried(A, pytest.approx(math.log(4) * 1 / 4), (four, 0.0)),
        Tried(B, pytest.approx(math.log(4) * 3 / 4), (0.0, four)),
        Tried(C, None, (None, None)),
    )


def test_where_a_configuration_cannot_run_the_original_stays() -> None:
    state = state_of(searched(0, A, 16.0, INFEASIBLE), searched(1, B, 2.5, 1.9))
    first, second = scores(PROBLEM, state)
    assert first == Tried(A, pytest.approx(math.log(16) / 4), (pytest.approx(math.log(16)), None))
    assert second.score == pytest.approx((math.log(2.5) + 3 * math.log(1.9)) / 4)
    assert score(PROBLEM, {}) is None


def test_neither_sentinels_nor_finalists_are_scored() -> None:
    race = finalist(2, A, {"small": 9.0, "wide": 9.0})
    two = pytest.approx(math.log(2))
    assert scores(PROBLEM, state_of(sentinel(0, 1.0), searched(1, A, 2.0, 2.0), race)) == (
        Tried(A, two, (two, two)),
    )


def test_what_its_build_condemns_is_tried_only_where_it_cannot_run() -> None:
    """One left out for its twin or for its spills may be good all the same: a searcher is told nothing."""
    found = [built(one) for one in (A, B, C)]
    cannot = Pruned(A, "cannot_run", "over_limits: too much")
    twin, spills = Pruned(B, "same_code", "as C"), Pruned(C, "spills", "much")
    assert scores(PROBLEM, state_of(*found)) == ()
    assert scores(PROBLEM, state_of(*found, cannot, twin, spills)) == (Tried(A, None, (None, None)),)


# -- noise --------------------------------------------------------------------------------------------


def sentinels(*small: float | Status) -> list[Outcome]:
    return [sentinel(16 * (i + 1), seconds) for i, seconds in enumerate(small)]


def test_without_enough_sentinels_the_noise_is_the_usual() -> None:
    assert noise(state_of()) == USUAL_NOISE
    wild = [1.0, 2.0, 1.0, 2.0]
    for n in range(SENTINELS):
        assert noise(state_of(*sentinels(*wild[:n]))) == USUAL_NOISE
    assert noise(state_of(*sentinels(*wild[:SENTINELS]))) > USUAL_NOISE


def test_noise_is_how_far_apart_sentinels_are() -> None:
    both = [sentinel(i, 1.0 + 0.04 * (i % 2), 5.0 + 0.2 * (i % 2)) for i in range(9)]
    assert noise(state_of(*both)) == pytest.approx(math.log(1.04))
    assert noise(state_of(*sentinels(*[1.0] * 9))) == LEAST_NOISE, "nobody sees more than the clock"


def test_a_long_look_at_the_original_says_nothing_of_short_ones() -> None:
    """The baseline is timed longer, before the device is warm."""
    quiet = sentinels(*[1.0] * 4)
    assert noise(state_of(*quiet, original={"small": 3.0, "wide": 3.0})) == LEAST_NOISE


def test_drift_is_not_noise_and_failures_are_nothing() -> None:
    drift = sentinels(*(1.001**i for i in range(40)))
    assert noise(state_of(*drift)) == LEAST_NOISE
    failed = sentinels(1.0, CRASHED, 1.0, CRASHED, 1.0)
    assert noise(state_of(*failed)) == LEAST_NOISE


@given(st.integers(0, 9), st.sampled_from([0.01, 100.0]))
def test_one_disturbed_sentinel_is_not_noise(place: int, factor: float) -> None:
    times = [1.0] * 10
    times[place] *= factor
    assert noise(state_of(*sentinels(*times))) == LEAST_NOISE


def test_an_absurd_time_is_clipped() -> None:
    """An infinite score would make every other one worthless to a model."""
    state = state_of(searched(0, A, 1e-300, 1e-300), searched(1, B, 1e300, 2.0))
    slow, fast = scores(PROBLEM, state)
    assert (slow.score, slow.at) == (-MOST, (-MOST, -MOST))
    assert fast.at == (MOST, pytest.approx(math.log(2)))
    assert fast.score == pytest.approx((MOST + 3 * math.log(2)) / 4)
    assert score(PROBLEM, {"small": 0.0, "wide": math.inf}) == pytest.approx((-MOST + 3 * MOST) / 4)


# -- without computing twice --------------------------------------------------------------------------


def test_scores_are_the_same_however_a_state_came_about() -> None:
    """What is remembered of one version must not show in another: neither in an older one, nor in one that
    went on differently."""
    rng = random.Random(5)
    events: list[Outcome] = []
    for number in range(150):
        chosen = config(32 << rng.randrange(4), 1 << rng.randrange(3))
        kind = rng.randrange(4)
        found = searched(number, chosen, rng.uniform(0.5, 2), WRONG if kind == 1 else rng.uniform(0.5, 2))
        events.append(sentinel(number, rng.uniform(0.9, 1.1)) if kind == 0 else found)
    states = [state_of()]
    for number, found in enumerate(events):
        states.append(apply(states[-1], Recorded(3 + number, 0.0, Measured(found))))
        assert len(scores(PROBLEM, states[-1])) == len(states[-1].searched)
    branched = apply(states[75], Recorded(78, 0.0, Measured(sentinel(75, 5.0))))
    for n in rng.sample(range(len(states)), 40):
        assert scores(PROBLEM, states[n]) == scores(PROBLEM, state_of(*events[:n]))
        assert scores(PROBLEM, branched) == scores(PROBLEM, state_of(*events[:75], sentinel(75, 5.0)))


def test_a_score_is_computed_a_few_times_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until enough sentinels surround it: never again after that."""
    calls = 0
    whole = Yardstick.speedups

    def counted(self: Yardstick, found: Outcome) -> dict[str, float]:
        nonlocal calls
        calls += 1
        return whole(self, found)

    monkeypatch.setattr(Yardstick, "speedups", counted)
    problem, state = fold_benchmark.a_problem(), State()
    for record in fold_benchmark.records(800):
        state = apply(state, record)
        scores(problem, state)
    assert len(state.searched) == 800
    assert calls <= 800 * 5
