"""Who wins, and where the original stays."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import a_problem, config, finalist, outcome, state_of, verified
from tunesmith.problem.plan import Status
from tunesmith.run import racing as choose
from tunesmith.run.events import Verified
from tunesmith.run.outcome import Interval, Outcome
from tunesmith.run.racing import Pick, Winners
from tunesmith.run.state import State
from tunesmith.space.params import Config

PROBLEM = a_problem()  # small with weight 1, wide with weight 3
WEIGHTS = {w.name: w.weight for w in PROBLEM.workloads}
A, B, C, D = config(32), config(64), config(128), config(256)
WRONG, INFEASIBLE, CRASHED = Status.WRONG, Status.INFEASIBLE, Status.CRASHED


def served(choice: Winners) -> dict[str, Config | None]:
    return {pick.workload: pick.config for pick in choice.picks}


def after(*race: Outcome | Verified, original: dict[str, float] | None = None) -> State:
    """The state after a race of those that were equally promising in the search.

    Where a finalist is infeasible it was so in the search, and is not timed there.
    """
    names = original or {"small": 1.0, "wide": 1.0}
    total = sum(WEIGHTS.get(name, 1.0) for name in names)
    promising: dict[Config, Outcome] = {}
    events: list[Outcome | Verified] = []
    for event in race:
        if isinstance(event, Verified):
            events.append(event)
            continue
        chosen = event.trial.config
        assert chosen is not None
        cannot = {r.workload for r in event.results if r.status is INFEASIBLE}
        share = sum(WEIGHTS.get(name, 1.0) for name in names if name not in cannot) / total
        short = {name: INFEASIBLE if name in cannot else 0.5 ** (1 / share) for name in names}
        promising.setdefault(chosen, outcome(50 + event.trial.id, chosen, short))
        timed = tuple(r for r in event.results if r.workload not in cannot)
        trial = replace(event.trial, workloads=tuple(r.workload for r in timed))
        events += [replace(event, trial=trial, results=timed)] if timed else []
    return state_of(*promising.values(), *events, original=original)


# -- the choice ---------------------------------------------------------------------------------------


def chosen(*events: Outcome | Verified) -> Winners:
    return choose.choose(PROBLEM, after(*events))


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
    def with_small(speedup: float) -> Winners:
        own = finalist(1, B, {"small": speedup, "wide": 0.5})
        return chosen(finalist(0, A, {"small": 2.0, "wide": 2.0}), own)

    assert served(with_small(2.015)) == {"small": A, "wide": A}
    assert served(with_small(2.025)) == {"small": B, "wide": A}


@pytest.mark.parametrize(("speedup", "claimed"), [(1.0, False), (1.01, False), (1.011, True), (0.5, False)])
def test_a_speed_up_is_claimed_above_one_per_cent(speedup: float, claimed: bool) -> None:
    choice = chosen(finalist(0, A, {"small": speedup, "wide": 2.0}))
    assert served(choice) == {"small": A if claimed else None, "wide": A}
    if not claimed:
        assert choice.picks[0] == Pick("small", None, Interval(1.0, 1.0, 1.0))


def test_a_noisy_speed_up_is_not_claimed() -> None:
    choice = chosen(finalist(0, A, {"small": 1.2, "wide": 1.2}, noise=0.4))
    assert choice == Winners(
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


def test_only_one_that_entered_in_general_serves_in_general() -> None:
    """Who was fast at one workload alone has not been timed at the others: nothing is known of it there."""
    state = state_of(
        outcome(0, A, {"small": 0.5, "wide": 0.5}),
        outcome(1, B, {"small": 0.1, "wide": 9.0}),
        finalist(2, A, {"small": 2.0, "wide": 2.0}),
        finalist(3, B, {"small": 10.0}),
    )
    choice = choose.choose(PROBLEM, state)
    assert choice.general == A
    assert served(choice) == {"small": B, "wide": A}


def test_all_heats_count_together() -> None:
    first = [finalist(0, A, {"small": 2.1, "wide": 2.1}), finalist(1, B, {"small": 2.0, "wide": 2.0})]
    again = [finalist(n, A, {"small": 1.8, "wide": 1.8}) for n in (2, 4)]
    stays = [finalist(n, B, {"small": 2.0, "wide": 2.0}) for n in (3, 5)]
    assert chosen(*first).general == A
    choice = chosen(*first, *again, *stays)
    assert choice.general == B
    assert choice.picks[0].speedup.value == 2.0


def test_one_that_failed_in_any_heat_is_out_where_it_failed_and_a_liar_everywhere() -> None:
    first = [finalist(0, A, {"small": 3.0, "wide": 3.0}), finalist(1, B, {"small": 2.0, "wide": 2.0})]
    assert chosen(*first, finalist(2, A, {"small": WRONG})).general == B
    assert chosen(finalist(2, A, {"small": WRONG}), *first).general == B
    assert served(chosen(*first, finalist(2, A, {"small": WRONG}))) == {"small": B, "wide": B}
    crashed = finalist(2, A, {"small": Status.CRASHED})
    assert served(chosen(*first, crashed)) == {"small": B, "wide": A}


# -- verification -------------------------------------------------------------------------------------

SPECIAL = [finalist(0, A, {"small": 3.0, "wide": 1.5}), finalist(1, B, {"small": 1.5, "wide": 2.0})]


def unverified(*events: Outcome | Verified) -> tuple[tuple[Config, tuple[str, ...]], ...]:
    return choose.unverified(PROBLEM, after(*events))


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
    before = after(*race, *done, original=original)
    assert choose.unverified(problem, before) == ((B, ("b",)),)
    assert served(choose.verified_choice(problem, before)) == {"a": B, "b": None, "c": A}
    later = after(*race, *done, verified(B, {"b": 2.0}), original=original)
    assert choose.unverified(problem, later) == ()
    assert served(choose.verified_choice(problem, later)) == {"a": B, "b": B, "c": A}
    result = choose.timing_of(later, B, "a")
    assert result is not None
    assert result.timing is not None


def verified_choice(*events: Outcome | Verified) -> Winners:
    return choose.verified_choice(PROBLEM, after(*events))


def test_the_speed_ups_reported_are_those_of_the_verification() -> None:
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
    events: list[Outcome | Verified] = [
        finalist(i, config(32 << i), {"small": small, "wide": wide}) for i, (small, wide) in enumerate(race)
    ]
    for _ in range(20):
        left = unverified(*events)
        if not left:
            break
        this, workloads = left[0]
        events.append(verified(this, {name: data.draw(speed) for name in workloads}))
    state = after(*events)
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
