"""What each parameter is worth in a run: from its state alone, and nothing wrong counts as fast."""

from __future__ import annotations

import pytest

from tests.samples import a_problem, a_template, built, config, finalist, outcome, state_of, verified
from tunesmith.problem.plan import Status
from tunesmith.run.events import Event, Pruned, Stopped, Verified
from tunesmith.run.explain import Explanation, ValueEffect, explanations, history_of
from tunesmith.run.outcome import Outcome
from tunesmith.run.racing import verified_choice
from tunesmith.run.state import State

PROBLEM = a_problem()  # small with weight 1, wide with weight 3
TEMPLATE = a_template(PROBLEM)  # BLOCK = 32, 64, 128, 256 and VEC = 1, 2, 4
A, B = config(64, 2), config(128, 2)
SEARCH = (
    outcome(0, A, {"small": 0.5, "wide": 0.5}),
    outcome(1, config(64, 1), {"small": 1.0, "wide": 1.0}),
    outcome(2, config(32, 2), {"small": Status.CRASHED, "wide": Status.CRASHED}),
    outcome(3, B, {"small": 0.25, "wide": 1.0}),
)
FINALS = (
    finalist(4, A, {"small": 2.0, "wide": 2.0}),
    finalist(5, B, {"small": 4.0, "wide": 1.0}),
    verified(A, {"small": 2.0, "wide": 2.0}),
    verified(B, {"small": 4.0}),
)


def finished(*events: Outcome | Verified | Event) -> State:
    return state_of(*events, Stopped("enough"))


def explained(state: State) -> tuple[Explanation, ...]:
    return explanations(PROBLEM, lambda _config: TEMPLATE, state, verified_choice(PROBLEM, state))


def value(explanation: Explanation, name: str, wanted: int) -> ValueEffect:
    param = next(p for p in explanation.params if p.name == name)
    return next(v for v in param.values if v.value == wanted)


def test_the_general_winner_and_that_of_a_workload_each_by_their_own_times() -> None:
    general, small = explained(finished(*SEARCH, *FINALS))
    assert (general.workload, general.config) == ("", A.as_dict())
    assert (small.workload, small.config) == ("small", B.as_dict())
    assert value(general, "VEC", 1).slower == pytest.approx(2.0)
    # over all: small twice as fast, with weight 1, and wide half as fast, with weight 3
    assert value(general, "BLOCK", 128).slower == pytest.approx(2**0.5, rel=1e-5)
    assert value(small, "BLOCK", 64).slower == pytest.approx(2.0)
    assert value(general, "BLOCK", 32).source == "failed"
    assert value(general, "BLOCK", 32).why == "crashed"
    assert value(general, "BLOCK", 256).source == "unknown"


def test_a_run_without_gain_has_a_history_alone() -> None:
    state = finished(SEARCH[2])
    assert explained(state) == ()
    assert history_of(PROBLEM, state).speedups == (None,)


def test_the_history_is_that_of_the_search() -> None:
    found = history_of(PROBLEM, finished(*SEARCH, *FINALS))
    assert found.speedups == (2.0, 1.0, None, pytest.approx(2**0.5, rel=1e-5))
    assert [(b.workload, b.steps) for b in found.best] == [
        ("", ((1, 2.0),)),
        ("small", ((1, 2.0), (4, 4.0))),
        ("wide", ((1, 2.0),)),
    ]


def test_what_a_longer_look_finds_wrong_was_never_fast() -> None:
    wrong = finalist(6, B, {"small": Status.WRONG, "wide": Status.WRONG})
    state = finished(*SEARCH, FINALS[0], wrong, FINALS[2])
    assert history_of(PROBLEM, state).speedups == (2.0, 1.0, None, None)
    (general,) = explained(state)
    assert (value(general, "BLOCK", 128).source, value(general, "BLOCK", 128).why) == ("failed", "wrong")


def test_what_fails_verification_was_never_fast() -> None:
    state = finished(*SEARCH, *FINALS[:3], verified(B, {"small": Status.UNSTABLE}))
    assert history_of(PROBLEM, state).speedups[3] is None
    (general,) = explained(state)
    assert value(general, "BLOCK", 128).why == "unstable"


def test_where_one_workload_fails_the_other_still_counts() -> None:
    crashed = finalist(6, B, {"small": 4.0, "wide": Status.CRASHED})
    state = finished(*SEARCH, FINALS[0], crashed, *FINALS[2:])
    found = history_of(PROBLEM, state)
    assert found.speedups[3] is None
    assert found.best[1].steps == ((1, 2.0), (4, 4.0))


def test_the_same_code_was_measured_already() -> None:
    twin = config(64, 4)
    same = [built(config(64, 1), "one"), built(twin, "one"), Pruned(twin, "same_code", "the same")]
    general, _ = explained(finished(*same, *SEARCH, *FINALS))
    assert value(general, "VEC", 4).source == "measured"
    assert value(general, "VEC", 4).slower == pytest.approx(2.0)
    assert len(history_of(PROBLEM, finished(*same, *SEARCH)).speedups) == 4


def test_what_a_constraint_forbids_is_named_and_not_estimated() -> None:
    problem = a_problem(workloads="small = { rows = 16, d = 16 }\n")  # whole: d % (8 * VEC) == 0
    events = (
        outcome(0, A, {"small": 0.5}),
        finalist(1, A, {"small": 2.0}),
        verified(A, {"small": 2.0}),
        Stopped("enough"),
    )
    state = state_of(*events, original={"small": 1.0})
    (general,) = explanations(problem, lambda _config: TEMPLATE, state, verified_choice(problem, state))
    assert (value(general, "VEC", 4).source, value(general, "VEC", 4).why) == ("excluded", "whole")
    assert value(general, "VEC", 1).source == "unknown"
