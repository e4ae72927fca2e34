"""How good a configuration is by short measurements, by what it is measured, and how much they can see."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import fold as fold_benchmark
from tests.samples import a_problem, config, outcome, state_of
from tunesmith.problem.plan import Status
from tunesmith.run.events import Measured, Recorded
from tunesmith.run.outcome import Outcome
from tunesmith.run.scores import LEAST_NOISE, SpeedupScale, measurement_noise, score_configs
from tunesmith.run.state import State, apply_record
from tunesmith.space.configset import Config

PROBLEM = a_problem()  # small with weight 1, wide with weight 3
A, B, C = config(32), config(64), config(128)
WRONG, INFEASIBLE, CRASHED = Status.WRONG, Status.INFEASIBLE, Status.CRASHED


def searched(number: int, chosen: Config, small: float | Status, wide: float | Status) -> Outcome:
    """By speed-up over an original that takes one second."""
    seconds = {n: v if isinstance(v, Status) else 1 / v for n, v in (("small", small), ("wide", wide))}
    return outcome(number, chosen, seconds)


def sentinel(number: int, small: float | Status, wide: float = 1.0) -> Outcome:
    return outcome(number, None, {"small": small, "wide": wide}, "sentinel")


def test_the_yardstick_follows_a_drift() -> None:
    """A device that grows slower makes nobody faster."""
    slower = [sentinel(16 * i, 1.0 + i) for i in range(1, 11)]
    yardstick = SpeedupScale(state_of(*slower))
    near = [yardstick.seconds("small", n) for n in range(170)]
    assert near == sorted(near)
    for i in range(3, 8):  # with as many sentinels before as after it, the trial is measured by its own time
        assert yardstick.seconds("small", 16 * i + 8) == pytest.approx(1.0 + i + 0.5, abs=0.51)
    assert near[0] <= 3.0 < 9.0 <= near[-1]


@given(st.integers(0, 9), st.sampled_from([0.01, 100.0]), st.integers(0, 170))
def test_one_disturbed_sentinel_moves_nothing_and_is_no_noise(place: int, factor: float, trial: int) -> None:
    times = [1.0] * 10
    times[place] *= factor
    state = state_of(*sentinels(*times))
    assert SpeedupScale(state).seconds("small", trial) == 1.0
    assert measurement_noise(state) == LEAST_NOISE


# -- noise --------------------------------------------------------------------------------------------


def sentinels(*small: float | Status) -> list[Outcome]:
    return [sentinel(16 * (i + 1), seconds) for i, seconds in enumerate(small)]


@pytest.mark.parametrize(
    "seconds", [[1.001**i for i in range(40)], [1.0, CRASHED, 1.0, CRASHED, 1.0]], ids=["drift", "failures"]
)
def test_drift_is_not_noise_and_failures_are_nothing(seconds: list[float | Status]) -> None:
    assert measurement_noise(state_of(*sentinels(*seconds))) == LEAST_NOISE


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
        states.append(apply_record(states[-1], Recorded(3 + number, 0.0, Measured(found))))
        assert len(score_configs(PROBLEM, states[-1])) == len(states[-1].searched)
    branched = apply_record(states[75], Recorded(78, 0.0, Measured(sentinel(75, 5.0))))
    for n in rng.sample(range(len(states)), 40):
        assert score_configs(PROBLEM, states[n]) == score_configs(PROBLEM, state_of(*events[:n]))
        assert score_configs(PROBLEM, branched) == score_configs(
            PROBLEM, state_of(*events[:75], sentinel(75, 5.0))
        )


def test_a_score_is_computed_a_few_times_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until enough sentinels surround it: never again after that."""
    calls = 0
    whole = SpeedupScale.speedups

    def counted(self: SpeedupScale, found: Outcome) -> dict[str, float]:
        nonlocal calls
        calls += 1
        return whole(self, found)

    monkeypatch.setattr(SpeedupScale, "speedups", counted)
    problem, state = fold_benchmark.a_problem(), State()
    for record in fold_benchmark.records(800):
        state = apply_record(state, record)
        score_configs(problem, state)
    assert len(state.searched) == 800
    assert calls <= 800 * 5
