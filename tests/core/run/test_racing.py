"""The race of the finalists: who enters, where they are timed, who meets again, and that it ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import a_problem, config, finalist, outcome, state_of, verified
from tests.thoroughness import examples
from tunesmith.problem.plan import Status
from tunesmith.run import race as choose
from tunesmith.run.events import Verified
from tunesmith.run.outcome import Outcome, median
from tunesmith.run.race import HEATS, PATIENCE, median_ratios, merge_measurements, plan_heat
from tunesmith.space.configset import Config

PROBLEM = a_problem()  # small with weight 1, wide with weight 3
A = config(32)
WRONG, INFEASIBLE, CRASHED = Status.WRONG, Status.INFEASIBLE, Status.CRASHED
BOTH = ("small", "wide")


def searched(number: int, chosen: Config, *speedups: float | Status) -> Outcome:
    """By speed-up over an original that takes one second, at small and wide or at the only workload."""
    names = BOTH if len(speedups) == 2 else ("only",)
    found = zip(names, speedups, strict=True)
    return outcome(number, chosen, {n: v if isinstance(v, Status) else 1 / v for n, v in found})


def raced(number: int, chosen: Config, small: float | Status, wide: float | Status, noise: float) -> Outcome:
    return finalist(number, chosen, {"small": small, "wide": wide}, noise)


def next_heat(*events: Outcome | Verified) -> dict[Config, tuple[str, ...]]:
    return dict(plan_heat(PROBLEM, state_of(*events)))


# -- heats --------------------------------------------------------------------------------------------


def test_heats_are_taken_together() -> None:
    first, second = raced(0, A, 2.0, 3.0, 0.0), finalist(1, A, {"small": 1.0})
    (found,) = merge_measurements(state_of(first, second)).values()
    assert list(found) == ["small", "wide"]
    timing = found["small"].timing
    assert len(timing.samples) == len(timing.paired) == 24
    assert set(timing.ratios) == {1.0, 2.0}
    assert median_ratios(found) == pytest.approx({"small": 1.5, "wide": 3.0})


def test_a_failure_in_any_heat_counts() -> None:
    good, bad = raced(0, A, 2.0, 3.0, 0.0), finalist(1, A, {"small": CRASHED})
    for events in ([good, bad], [bad, good], [good, bad, replace(good, trial=replace(good.trial, id=2))]):
        found = merge_measurements(state_of(*events))[A]
        assert found["small"].status is CRASHED
        assert found["wide"].ok
        assert list(median_ratios(found)) == ["wide"]


LINE = [searched(n, config(n + 1), 2.0 - 0.001 * n, 2.0 - 0.001 * n) for n in range(40)]


def place(n: int) -> Config:
    return config(n + 1)


def test_patience_ends() -> None:
    failed = [raced(50 + n, place(n), WRONG, WRONG, 0.0) for n in range(PATIENCE)]
    assert next_heat(*LINE, *failed) == {place(n): BOTH for n in range(PATIENCE, PATIENCE + 3)}
    more = raced(90, place(PATIENCE), WRONG, WRONG, 0.0)
    assert next_heat(*LINE, *failed, more) == {}
    one_by_verification = verified(place(PATIENCE), {"small": WRONG})
    assert next_heat(*LINE, *failed, one_by_verification) == {}


def test_where_the_patience_ends_those_that_held_keep_their_places() -> None:
    good = raced(50, place(0), 2.0, 2.0, 0.0)
    failed = [raced(50 + n, place(n), WRONG, WRONG, 0.0) for n in range(1, PATIENCE + 2)]
    assert choose.choose_winners(PROBLEM, state_of(*LINE, good, *failed[:-1])).general == place(0)
    assert choose.choose_winners(PROBLEM, state_of(*LINE, good, *failed)).general == place(0)


status = st.sampled_from([WRONG, INFEASIBLE, CRASHED])
near = st.floats(1.9, 2.1)
speed = near | near | st.floats(0.5, 3.0) | status


@examples(100)
@given(st.lists(st.tuples(speed, speed), max_size=7), st.data())
def test_whatever_happens_the_race_ends(
    short: list[tuple[float | Status, float | Status]], data: st.DataObject
) -> None:
    """Heats and verifications as the loop has them: nobody is timed too often, or where it did not run; and
    what is claimed was verified."""
    events: list[Outcome | Verified] = [searched(n, config(n + 1), *both) for n, both in enumerate(short)]
    ran = {o.trial.config: {r.workload for r in o.results if r.ok} for o in events}
    noise = data.draw(st.sampled_from([0.0, 0.02, 0.1]))
    times: Counter[tuple[Config, str]] = Counter()
    failed: set[Config] = set()
    for step in range(100):
        state = state_of(*events)
        failed |= {
            c for c, results in merge_measurements(state).items() if not any(r.ok for r in results.values())
        }
        if found := plan_heat(PROBLEM, state):
            assert failed.isdisjoint(chosen for chosen, _ in found)
            assert len({chosen for chosen, _ in found}) == len(found)
            for chosen, workloads in found:
                assert workloads
                assert ran[chosen].issuperset(workloads)
                times.update((chosen, name) for name in workloads)
                speeds = {name: data.draw(near | near | near | status) for name in workloads}
                events.append(finalist(100 + 10 * step, chosen, speeds, noise))
        elif left := choose.unverified_winners(PROBLEM, state):
            chosen, workloads = left[0]
            speeds = {name: data.draw(near | near | status) for name in workloads}
            events.append(verified(chosen, speeds))
            failed |= {chosen} if any(isinstance(v, Status) for v in speeds.values()) else set()
        else:
            break
    else:
        pytest.fail("it goes on and on")
    assert all(count <= HEATS for count in times.values())
    assert failed.isdisjoint(choose.choose_winners(PROBLEM, state).configs())
    choice = choose.verified_choice(PROBLEM, state)
    assert [pick.workload for pick in choice.picks] == ["small", "wide"]
    assert failed.isdisjoint(choice.configs())
    for pick in choice.picks:
        if pick.config is not None:
            result = choose.timing_of(state, pick.config, pick.workload)
            speedup = median(result.timing.ratios)
            assert 1.01 < pick.speedup.low <= pick.speedup.value == pytest.approx(speedup)
