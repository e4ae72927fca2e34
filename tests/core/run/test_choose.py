"""Whatever happens, verification ends, and only what it saw is claimed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import a_problem, config, finalist, outcome, state_of, verified
from tunesmith.problem.plan import Status
from tunesmith.run import race as choose
from tunesmith.run.events import Verified
from tunesmith.run.outcome import Outcome
from tunesmith.run.state import State
from tunesmith.space.configset import Config

PROBLEM = a_problem()  # small with weight 1, wide with weight 3
WEIGHTS = {w.name: w.weight for w in PROBLEM.workloads}
A, B, C, D = config(32), config(64), config(128), config(256)
WRONG, INFEASIBLE, CRASHED = Status.WRONG, Status.INFEASIBLE, Status.CRASHED


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


def unverified(*events: Outcome | Verified) -> tuple[tuple[Config, tuple[str, ...]], ...]:
    return choose.unverified_winners(PROBLEM, after(*events))


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
    assert choose.unverified_winners(PROBLEM, state) == ()
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
