"""Who wins, and where the original stays."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import a_problem, config, finalist, outcome, state_of, verified
from tunesmith.core import choose
from tunesmith.core.choose import Choice, Pick, Yardstick
from tunesmith.core.outcome import Outcome, Result, Status
from tunesmith.core.space import Config
from tunesmith.core.state import State
from tunesmith.core.stats import Interval

PROBLEM = a_problem()  # small with weight 1, wide with weight 3
A, B, C, D = config(32), config(64), config(128), config(256)
WRONG, INFEASIBLE, CRASHED = Status.WRONG, Status.INFEASIBLE, Status.CRASHED


def served(choice: Choice) -> dict[str, Config | None]:
    return {pick.workload: pick.config for pick in choice.picks}


def searched(number: int, chosen: Config, small: float | Status, wide: float | Status) -> Outcome:
    """By speed-up over an original that takes one second."""
    seconds = {n: v if isinstance(v, Status) else 1 / v for n, v in (("small", small), ("wide", wide))}
    return outcome(number, chosen, seconds)


def sentinel(number: int, small: float, wide: float = 1.0) -> Outcome:
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


# -- scores and finalists -----------------------------------------------------------------------------


def test_scores_weigh_the_workloads() -> None:
    state = state_of(searched(0, A, 4.0, 1.0), searched(1, B, 1.0, 4.0), searched(2, C, WRONG, CRASHED))
    assert choose.scores(PROBLEM, state) == (
        (A, pytest.approx(math.log(4) * 1 / 4)),
        (B, pytest.approx(math.log(4) * 3 / 4)),
        (C, None),
    )


def test_where_a_configuration_cannot_run_the_original_stays() -> None:
    state = state_of(searched(0, A, 16.0, INFEASIBLE), searched(1, B, 2.5, 1.9))
    scores = dict(choose.scores(PROBLEM, state))
    assert scores[A] == pytest.approx(math.log(16) / 4)
    assert scores[B] == pytest.approx((math.log(2.5) + 3 * math.log(1.9)) / 4)


def test_sentinels_are_not_scored() -> None:
    assert choose.scores(PROBLEM, state_of(sentinel(0, 1.0), searched(1, A, 2.0, 2.0))) == (
        (A, pytest.approx(math.log(2))),
    )


def test_finalists_are_the_best_in_general_and_the_best_of_each_workload() -> None:
    state = state_of(
        searched(0, A, 1.0, 1.0),
        searched(1, B, 2.0, 2.0),
        searched(2, C, 9.0, 0.1),
        searched(3, D, WRONG, WRONG),
        searched(4, config(32, 2), 1.5, 1.9),
        searched(5, config(64, 2), 0.1, 9.0),
        searched(6, config(128, 2), 0.5, 0.5),
    )
    found = choose.finalists(PROBLEM, state, 1)
    assert found[0] == config(64, 2)  # the weight is on wide
    assert set(found[1:]) == {C, B}  # the best two at small; at wide they are there already
    assert choose.finalists(PROBLEM, state, 3)[:3] == (config(64, 2), B, config(32, 2))
    assert D not in choose.finalists(PROBLEM, state, 100)


def test_equal_code_launched_alike_is_one_contender() -> None:
    def like(number: int, chosen: Config, key: str, speedup: float) -> Outcome:
        found = searched(number, chosen, speedup, speedup)
        results = tuple(
            Result(r.workload, r.status, r.timing, key=f"{key} at {r.workload}") for r in found.results
        )
        return Outcome(found.trial, results, code_digest="all the same")

    state = state_of(like(0, A, "x", 2.0), like(1, B, "x", 1.9), like(2, C, "y", 1.8), like(3, D, "z", 1.7))
    assert choose.finalists(PROBLEM, state, 2) == (A, C)  # one binary, but C is launched differently
    assert choose.finalists(PROBLEM, state, 3) == (A, C, D)


def test_no_finalists_where_everything_failed() -> None:
    assert choose.finalists(PROBLEM, state_of(searched(0, A, WRONG, CRASHED)), 3) == ()
    assert choose.finalists(PROBLEM, state_of(), 3) == ()


# -- the choice ---------------------------------------------------------------------------------------


def chosen(*events: object) -> Choice:
    return choose.choose(PROBLEM, state_of(*events))  # type: ignore[arg-type]


def test_one_general_configuration_serves_all() -> None:
    choice = chosen(finalist(0, A, {"small": 2.0, "wide": 2.0}), finalist(1, B, {"small": 1.5, "wide": 1.5}))
    assert choice.general == A
    assert served(choice) == {"small": A, "wide": A}
    assert choice.picks[0].speedup == Interval(2.0, 2.0, 2.0)
    assert choice.configs() == (A,)


def test_the_general_one_is_chosen_by_weight() -> None:
    choice = chosen(finalist(0, A, {"small": 3.0, "wide": 1.5}), finalist(1, B, {"small": 1.5, "wide": 2.0}))
    assert choice.general == B
    assert served(choice) == {"small": A, "wide": B}
    assert choice.configs() == (B, A)


def test_a_workload_gets_its_own_only_for_a_clear_gain() -> None:
    def with_small(speedup: float) -> Choice:
        own = finalist(1, B, {"small": speedup, "wide": 0.5})
        return chosen(finalist(0, A, {"small": 2.0, "wide": 2.0}), own)

    assert served(with_small(2.03)) == {"small": A, "wide": A}
    assert served(with_small(2.05)) == {"small": B, "wide": A}


@pytest.mark.parametrize(("speedup", "claimed"), [(1.0, False), (1.01, False), (1.011, True), (0.5, False)])
def test_a_speed_up_is_claimed_above_one_per_cent(speedup: float, claimed: bool) -> None:
    choice = chosen(finalist(0, A, {"small": speedup, "wide": 2.0}))
    assert served(choice) == {"small": A if claimed else None, "wide": A}
    if not claimed:
        assert choice.picks[0] == Pick("small", None, Interval(1.0, 1.0, 1.0))


def test_a_noisy_speed_up_is_not_claimed() -> None:
    choice = chosen(finalist(0, A, {"small": 1.2, "wide": 1.2}, noise=0.4))
    assert choice == Choice(
        None, (Pick("small", None, Interval(1, 1, 1)), Pick("wide", None, Interval(1, 1, 1)))
    )
    assert served(chosen(finalist(0, A, {"small": 1.2, "wide": 1.2}, noise=0.02))) == {"small": A, "wide": A}


def test_a_configuration_that_is_infeasible_somewhere_serves_the_rest() -> None:
    choice = chosen(finalist(0, A, {"small": 3.0, "wide": INFEASIBLE}))
    assert choice.general == A
    assert served(choice) == {"small": A, "wide": None}
    choice = chosen(
        finalist(0, A, {"small": 300.0, "wide": INFEASIBLE}), finalist(1, B, {"small": 1.5, "wide": 1.5})
    )
    assert choice.general == A
    assert served(choice) == {"small": A, "wide": B}


def test_one_that_crashes_somewhere_serves_nobody_in_general() -> None:
    crashing = finalist(0, A, {"small": 300.0, "wide": CRASHED})
    choice = chosen(crashing, finalist(1, B, {"small": 1.5, "wide": 1.5}))
    assert choice.general == B
    assert served(choice) == {"small": A, "wide": B}
    assert chosen(crashing).general is None


def test_nobody_serves_in_general_without_a_gain_anywhere() -> None:
    """A special one must not drag along a general one that is no better than the original."""
    choice = chosen(finalist(0, A, {"small": 2.0, "wide": 0.2}), finalist(1, B, {"small": 1.0, "wide": 1.0}))
    assert served(choice) == {"small": A, "wide": None}
    assert choice.general is None
    choice = chosen(
        finalist(0, A, {"small": 9.0, "wide": 0.1}),
        finalist(1, B, {"small": 0.001, "wide": 9.0}),
        finalist(2, C, {"small": 2.5, "wide": 2.0}),
    )
    assert served(choice) == {"small": A, "wide": B}
    assert choice.general == C


def test_without_finalists_the_original_stays() -> None:
    assert served(chosen()) == {"small": None, "wide": None}
    assert chosen().general is None
    failed = finalist(0, A, {"small": WRONG, "wide": WRONG})
    assert chosen(failed).configs() == ()


def test_who_failed_verification_is_out() -> None:
    race = [finalist(0, A, {"small": 3.0, "wide": 3.0}), finalist(1, B, {"small": 2.0, "wide": 2.0})]
    choice = chosen(*race, verified(A, {"small": 3.0, "wide": WRONG}))
    assert choice.general == B
    assert served(choice) == {"small": B, "wide": B}
    assert chosen(*race, verified(A, {"small": 3.0, "wide": 3.0})).general == A


# -- verification -------------------------------------------------------------------------------------

SPECIAL = [finalist(0, A, {"small": 3.0, "wide": 1.5}), finalist(1, B, {"small": 1.5, "wide": 2.0})]


def unverified(*events: object) -> tuple[tuple[Config, tuple[str, ...]], ...]:
    return choose.unverified(PROBLEM, state_of(*events))  # type: ignore[arg-type]


def test_everything_delivered_is_verified_the_general_one_first_and_everywhere() -> None:
    assert unverified(*SPECIAL) == ((B, ("small", "wide")), (A, ("small",)))
    done = verified(B, {"small": 1.5, "wide": 2.0})
    assert unverified(*SPECIAL, done) == ((A, ("small",)),)
    assert unverified(*SPECIAL, done, verified(A, {"small": 3.0})) == ()


def test_where_it_cannot_run_there_is_nothing_to_verify() -> None:
    assert unverified(finalist(0, A, {"small": 3.0, "wide": INFEASIBLE})) == ((A, ("small",)),)
    assert unverified(finalist(0, A, {"small": 1.0, "wide": 1.0})) == ()


def test_the_next_best_is_verified_after_a_failure() -> None:
    failed = verified(B, {"small": WRONG, "wide": WRONG})
    assert unverified(*SPECIAL, failed) == ((A, ("small", "wide")),)


def test_a_proven_one_is_proven_again_where_it_steps_in_for_another() -> None:
    problem = a_problem(
        workloads="""
        a = { rows = 1, d = 8 }
        b = { rows = 2, d = 8 }
        c = { rows = 3, d = 8 }
        """
    )
    race = [
        finalist(0, A, {"a": 1.2, "b": 1.2, "c": 1.2}),
        finalist(1, B, {"a": 9.0, "b": 2.0, "c": 0.01}),
        finalist(2, C, {"a": 0.1, "b": 9.0, "c": 0.1}),
    ]
    done = [
        verified(A, {"a": 1.2, "b": 1.2, "c": 1.2}),
        verified(B, {"a": 9.0}),
        verified(C, {"b": WRONG}),
    ]
    original = {"a": 1.0, "b": 1.0, "c": 1.0}
    before = state_of(*race, *done, original=original)
    assert choose.unverified(problem, before) == ((B, ("b",)),)
    assert served(choose.verified_choice(problem, before)) == {"a": B, "b": None, "c": A}
    after = state_of(*race, *done, verified(B, {"b": 2.0}), original=original)
    assert choose.unverified(problem, after) == ()
    assert served(choose.verified_choice(problem, after)) == {"a": B, "b": B, "c": A}
    result = choose.timing_of(after, B, "a")
    assert result is not None
    assert result.timing is not None


def verified_choice(*events: object) -> Choice:
    return choose.verified_choice(PROBLEM, state_of(*events))  # type: ignore[arg-type]


def test_the_speed_ups_told_are_those_of_the_verification() -> None:
    choice = verified_choice(*SPECIAL, verified(B, {"small": 1.4, "wide": 1.8}), verified(A, {"small": 2.5}))
    assert choice.general == B
    assert served(choice) == {"small": A, "wide": B}
    assert [pick.speedup.value for pick in choice.picks] == pytest.approx([2.5, 1.8])


def test_what_does_not_hold_in_verification_is_not_claimed() -> None:
    choice = verified_choice(*SPECIAL, verified(B, {"small": 1.5, "wide": 1.0}), verified(A, {"small": 2.5}))
    assert choice.general == B  # it does gain, at small
    assert served(choice) == {"small": A, "wide": None}
    choice = verified_choice(*SPECIAL, verified(B, {"small": 1.0, "wide": 1.0}), verified(A, {"small": 2.5}))
    assert choice.general is None
    assert served(choice) == {"small": A, "wide": None}


def test_nothing_unverified_is_ever_delivered() -> None:
    choice = verified_choice(*SPECIAL, verified(B, {"small": 1.5, "wide": 2.0}))
    assert served(choice) == {"small": None, "wide": B}
    assert verified_choice(*SPECIAL).configs() == ()
    failed = verified_choice(*SPECIAL, verified(B, {"small": WRONG, "wide": WRONG}))
    assert failed.configs() == ()


speed = st.floats(0.3, 3.0) | st.sampled_from([WRONG, INFEASIBLE, CRASHED])


@given(st.lists(st.tuples(speed, speed), max_size=4), st.data())
def test_whatever_happens_verification_ends_and_claims_only_what_it_saw(
    race: list[tuple[float | Status, float | Status]], data: st.DataObject
) -> None:
    events: list[object] = [
        finalist(i, config(32 << i), {"small": small, "wide": wide}) for i, (small, wide) in enumerate(race)
    ]
    for _ in range(20):
        left = unverified(*events)
        if not left:
            break
        this, workloads = left[0]
        events.append(verified(this, {name: data.draw(speed) for name in workloads}))
    state: State = state_of(*events)  # type: ignore[arg-type]
    assert choose.unverified(PROBLEM, state) == ()
    choice = choose.verified_choice(PROBLEM, state)
    assert [pick.workload for pick in choice.picks] == ["small", "wide"]
    failed = {v.outcome.trial.config for v in state.verified if not all(r.ok for r in v.outcome.results)}
    assert failed.isdisjoint(choice.configs())
    for pick in choice.picks:
        if pick.config is not None:
            result = choose.timing_of(state, pick.config, pick.workload)
            assert result is not None
            assert result.timing is not None
            assert 1.01 < pick.speedup.low <= pick.speedup.value == pytest.approx(1 / result.timing.seconds)
