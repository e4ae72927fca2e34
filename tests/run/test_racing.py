"""The race of the finalists: who enters, where they are timed, who meets again, and that it ends."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import a_problem, config, finalist, outcome, state_of, verified
from tests.thoroughness import examples
from tunesmith.problem.plan import Status
from tunesmith.run import racing as choose
from tunesmith.run.events import Admitted, Settings, Verified
from tunesmith.run.outcome import Outcome
from tunesmith.run.racing import (
    DEVIATIONS,
    HEATS,
    MARGIN,
    PATIENCE,
    PER_WORKLOAD,
    TIE,
    entries,
    general_entries,
    heat,
    medians,
    merged,
)
from tunesmith.run.scores import USUAL_NOISE
from tunesmith.run.state import State
from tunesmith.space.params import Config

PROBLEM = a_problem()  # small with weight 1, wide with weight 3
ONE = a_problem(workloads="only = { rows = 16, d = 256 }")
A, B, C, D, E = config(32), config(64), config(128), config(256), config(32, 2)
WRONG, INFEASIBLE, CRASHED = Status.WRONG, Status.INFEASIBLE, Status.CRASHED
BOTH = ("small", "wide")

Heat = tuple[tuple[Config, tuple[str, ...]], ...]


def searched(number: int, chosen: Config, *speedups: float | Status) -> Outcome:
    """By speed-up over an original that takes one second, at small and wide or at the only workload."""
    names = BOTH if len(speedups) == 2 else ("only",)
    found = zip(names, speedups, strict=True)
    return outcome(number, chosen, {n: v if isinstance(v, Status) else 1 / v for n, v in found})


def raced(number: int, chosen: Config, small: float | Status, wide: float | Status, noise: float) -> Outcome:
    return finalist(number, chosen, {"small": small, "wide": wide}, noise)


def entered(state: State, count: int = 3) -> dict[Config, tuple[set[str], bool]]:
    return {c: (e.workloads, e.is_general) for c, e in entries(PROBLEM, state, count).items()}


def next_heat(*events: Outcome | Verified) -> dict[Config, tuple[str, ...]]:
    return dict(heat(PROBLEM, state_of(*events)))


# -- who enters ---------------------------------------------------------------------------------------


def test_the_best_in_general_run_everywhere_and_the_best_of_a_workload_there() -> None:
    state = state_of(
        searched(0, A, 2.0, 2.0),
        searched(1, B, 1.95, 2.0),
        searched(2, C, 9.0, 0.1),
        searched(3, D, WRONG, WRONG),
        searched(4, E, 0.1, 2.02),
    )
    assert entered(state) == {
        A: ({"small", "wide"}, True),
        B: ({"small", "wide"}, True),
        C: ({"small"}, False),
        E: ({"wide"}, False),
    }
    assert general_entries(PROBLEM, state) == [A, B]
    assert next_heat(*state.searched) == {A: BOTH, B: BOTH, C: ("small",), E: ("wide",)}


def test_one_with_sizes_built_in_contends_at_its_workloads_alone() -> None:
    baking = Admitted("t", 12, 12, baking=("d if VEC == 2 else 0",))
    found = (searched(1, E, 3.0, 3.0), searched(2, A, 2.0, 2.0), searched(3, B, 1.9, 1.9))
    assert [c for c, (_, is_general) in entered(state_of(baking, *found)).items() if is_general] == [A, B]
    assert entered(state_of(baking, *found))[E] == ({"small", "wide"}, False)
    alone = (searched(1, E, 3.0, 3.0), searched(2, A, WRONG, WRONG))
    assert entered(state_of(baking, *alone)) == {E: ({"small", "wide"}, True)}
    assert next(iter(entered(state_of(*found)))) == E  # a journal that does not say: as it was


def test_the_first_are_the_best_by_weight() -> None:
    state = state_of(searched(0, A, 2.0, 2.0), searched(1, B, 1.9, 2.1), searched(2, C, 2.05, 2.0))
    assert list(entries(PROBLEM, state, 3)) == [B, C, A]
    assert [c for c, (_, general) in entered(state, 2).items() if general] == [B, C]


def test_no_more_than_asked_for_in_general_and_a_few_of_each_workload() -> None:
    many = [searched(n, config(n + 1), 2.0 - 0.001 * n, 2.0) for n in range(10)]
    state = state_of(*many)
    first = [o.trial.config for o in many]
    assert [c for c, (_, general) in entered(state, 2).items() if general] == first[:2]
    assert PER_WORKLOAD == 3
    assert list(entries(PROBLEM, state, 1)) == first[:3]
    assert heat(PROBLEM, state_of(*many, settings=Settings(finalists=1)))[0] == (first[0], BOTH)
    assert len(entries(PROBLEM, state, 100)) == 10


def test_who_is_far_behind_does_not_enter() -> None:
    margin = MARGIN + DEVIATIONS * USUAL_NOISE

    def behind(by: float) -> list[Config]:
        slower = math.exp(-by)
        return list(
            entries(PROBLEM, state_of(searched(0, A, 2, 2), searched(1, B, 2 * slower, 2 * slower)), 3)
        )

    assert behind(0.99 * margin) == [A, B]
    assert behind(1.01 * margin) == [A]


def test_the_noisier_the_short_look_the_more_may_enter() -> None:
    race = [searched(0, A, 2.0, 2.0), searched(1, B, 1.5, 1.5)]
    seconds = [1.0, 1.1, 1.0, 1.1, 1.0, 1.1]
    noisy = [
        outcome(16 * i, None, dict.fromkeys(BOTH, s), "sentinel") for i, s in enumerate(seconds, start=1)
    ]
    assert list(entries(PROBLEM, state_of(*race), 3)) == [A]
    assert list(entries(PROBLEM, state_of(*race, *noisy), 3)) == [A, B]


def test_one_that_failed_somewhere_contends_where_it_did_not() -> None:
    """One that may not run somewhere is no failure: the original stays there."""
    state = state_of(searched(0, A, 9.0, WRONG), searched(1, B, 2.0, 2.0))
    assert entered(state) == {B: ({"small", "wide"}, True), A: ({"small"}, False)}
    state = state_of(searched(0, A, 16.0, INFEASIBLE), searched(1, B, 2.0, 2.0))
    assert entered(state)[A] == ({"small"}, True)


def like(number: int, chosen: Config, key: str, small: float, wide: float) -> Outcome:
    found = searched(number, chosen, small, wide)
    results = tuple(replace(r, key=f"{key} at {r.workload}") for r in found.results)
    return replace(found, results=results, code_digest="all the same")


def test_equal_code_launched_alike_is_one_contender() -> None:
    state = state_of(
        like(0, A, "x", 2.0, 2.0),
        like(1, B, "x", 1.99, 1.99),
        like(2, C, "y", 1.98, 1.98),  # one binary, but launched differently
        like(3, D, "z", 1.97, 1.97),
    )
    assert general_entries(PROBLEM, state) == [A, C, D]
    assert list(entries(PROBLEM, state, 2)) == [A, C, D]  # D is the third of each workload
    assert B not in entries(PROBLEM, state, 100)


def test_code_may_be_equal_at_one_workload_alone() -> None:
    """Where sizes are baked in, two that differ elsewhere may be one here."""
    first, second = like(0, A, "x", 9.0, 0.1), like(1, B, "y", 8.9, 0.1)
    same = replace(second.results[0], key=first.results[0].key)
    second = replace(second, results=(same, second.results[1]))
    state = state_of(first, second, searched(2, C, 2.0, 2.0))
    assert entered(state) == {C: ({"small", "wide"}, True), A: ({"small"}, False)}


def test_nobody_enters_where_everything_failed() -> None:
    for failed in ([], [searched(0, A, WRONG, CRASHED)], [searched(0, A, INFEASIBLE, INFEASIBLE)]):
        assert entries(PROBLEM, state_of(*failed), 3) == {}
        assert heat(PROBLEM, state_of(*failed)) == ()


# -- heats --------------------------------------------------------------------------------------------

CLOSE = [searched(0, A, 2.0, 2.0), searched(1, B, 2.0, 2.0), searched(2, C, 2.0, 2.0)]


def test_a_clear_race_is_over_after_one_heat() -> None:
    first = [raced(3, A, 2.0, 2.0, 0.01), raced(4, B, 1.9, 1.9, 0.01), raced(5, C, 1.5, 1.5, 0.01)]
    assert next_heat(*CLOSE) == {A: BOTH, B: BOTH, C: BOTH}
    assert next_heat(*CLOSE, first[0]) == {B: BOTH, C: BOTH}, "each has its first heat"
    assert next_heat(*CLOSE, *first) == {}


def test_whose_places_are_open_meet_again_without_those_surely_behind() -> None:
    first = [raced(3, A, 2.0, 2.0, 0.05), raced(4, B, 1.96, 1.96, 0.05), raced(5, C, 1.5, 1.5, 0.05)]
    assert next_heat(*CLOSE, *first) == {A: BOTH, B: BOTH}
    second = [raced(6, A, 2.0, 2.0, 0.0), raced(7, B, 1.8, 1.8, 0.0)]
    assert next_heat(*CLOSE, *first, *second) == {}, "by all they have shown it is settled now"


def test_there_are_only_so_many_heats() -> None:
    events = [*CLOSE[:2]]
    count = 0
    while found := next_heat(*events):
        assert found == {A: BOTH, B: BOTH}
        count += 1
        events += [raced(2 * count, A, 2.0, 2.0, 0.05), raced(2 * count + 1, B, 1.96, 1.96, 0.05)]
    assert count == HEATS == 3


def test_nobody_runs_again_for_a_difference_that_nobody_would_notice() -> None:
    close = 2.0 * math.exp(-0.6 * TIE)
    sure = raced(3, A, 2.0, 2.0, 0.1 * TIE)
    assert next_heat(*CLOSE[:2], sure, raced(4, B, close, close, 0.1 * TIE)) == {}
    assert next_heat(*CLOSE[:2], sure, raced(4, B, 2.0, 2.0, 0.1 * TIE)) == {}


def test_medians_that_are_close_settle_nothing_where_nobody_knows_them_well() -> None:
    leader = raced(3, A, 2.0, 2.0, 0.05)
    assert next_heat(*CLOSE[:2], leader, raced(4, B, 1.999, 1.999, 0.05)) == {A: BOTH, B: BOTH}


def test_one_that_comes_late_is_timed_though_the_leader_has_had_its_heats() -> None:
    leader = [raced(3 + n, A, 2.0, 2.0, 0.05) for n in range(HEATS)]
    assert next_heat(*CLOSE[:2], *leader, raced(9, B, 1.96, 1.96, 0.05)) == {B: BOTH}


def test_they_meet_again_only_where_it_is_open() -> None:
    first = [raced(3, A, 2.0, 3.0, 0.05), raced(4, B, 1.96, 1.5, 0.05)]
    assert next_heat(*CLOSE[:2], *first) == {A: ("small",), B: ("small",)}
    second = [finalist(5, A, {"small": 2.0}, 0.05), finalist(6, B, {"small": 1.96}, 0.05)]
    assert next_heat(*CLOSE[:2], *first, *second) == {A: ("small",), B: ("small",)}
    third = [finalist(7, A, {"small": 2.0}, 0.05), finalist(8, B, {"small": 1.96}, 0.05)]
    assert next_heat(*CLOSE[:2], *first, *second, *third) == {}


def test_the_general_place_may_be_open_where_each_workload_is_settled() -> None:
    """A leads at one and B at the other, neither in doubt; over all they are close."""
    first = [raced(3, A, 2.00, 2.00, 0.05), raced(4, B, 2.53, 1.80, 0.05)]
    assert next_heat(*CLOSE[:2], *first) == {A: BOTH, B: BOTH}
    apart = [first[0], raced(4, B, 2.53, 1.60, 0.05)]
    assert next_heat(*CLOSE[:2], *apart) == {}


def test_one_that_contends_at_a_workload_alone_is_not_in_the_general_race() -> None:
    short = [searched(0, A, 2.0, 2.0), searched(1, C, 2.1, 0.1)]
    first = [raced(2, A, 2.0, 2.0, 0.05), finalist(3, C, {"small": 2.04}, 0.05)]
    assert next_heat(*short) == {A: BOTH, C: ("small",)}
    assert next_heat(*short, *first) == {A: ("small",), C: ("small",)}


def test_a_race_of_one_is_no_race() -> None:
    assert next_heat(CLOSE[0], raced(1, A, 2.0, 2.0, 0.3)) == {}


def test_one_workload() -> None:
    short = [searched(0, A, 2.0), searched(1, B, 1.98), searched(2, C, 0.5)]
    assert dict(heat(ONE, state_of(*short, original={"only": 1.0}))) == {A: ("only",), B: ("only",)}
    first = [finalist(3, A, {"only": 2.0}, 0.05), finalist(4, B, {"only": 1.96}, 0.05)]
    state = state_of(*short, *first, original={"only": 1.0})
    assert dict(heat(ONE, state)) == {A: ("only",), B: ("only",)}
    clear = [finalist(3, A, {"only": 2.0}, 0.01), finalist(4, B, {"only": 1.8}, 0.01)]
    assert heat(ONE, state_of(*short, *clear, original={"only": 1.0})) == ()


# -- taken together -----------------------------------------------------------------------------------


def test_heats_are_taken_together() -> None:
    first, second = raced(0, A, 2.0, 3.0, 0.0), finalist(1, A, {"small": 1.0})
    (found,) = merged(state_of(first, second)).values()
    assert list(found) == ["small", "wide"]
    timing = found["small"].timing
    assert timing is not None
    assert len(timing.samples) == len(timing.paired) == 24
    assert set(timing.ratios) == {1.0, 2.0}
    assert medians(found) == pytest.approx({"small": 1.5, "wide": 3.0})


def test_a_failure_in_any_heat_counts() -> None:
    good, bad = raced(0, A, 2.0, 3.0, 0.0), finalist(1, A, {"small": CRASHED})
    for events in ([good, bad], [bad, good], [good, bad, replace(good, trial=replace(good.trial, id=2))]):
        found = merged(state_of(*events))[A]
        assert found["small"].status is CRASHED
        assert found["wide"].ok
        assert list(medians(found)) == ["wide"]


# -- replacements -------------------------------------------------------------------------------------

LINE = [searched(n, config(n + 1), 2.0 - 0.001 * n, 2.0 - 0.001 * n) for n in range(40)]


def place(n: int) -> Config:
    return config(n + 1)


def test_one_that_fails_its_long_look_gives_its_place_to_the_next() -> None:
    race = [*LINE, raced(50, place(0), WRONG, WRONG, 0.0), raced(51, place(1), 2.0, 2.0, 0.0)]
    assert next_heat(*LINE) == {place(n): BOTH for n in range(3)}
    assert next_heat(*race) == {place(2): BOTH, place(3): BOTH}
    assert general_entries(PROBLEM, state_of(*race)) == [place(1), place(2), place(3)]


def test_one_that_fails_verification_gives_its_place_to_the_next() -> None:
    race = [raced(50 + n, place(n), 2.0, 2.0, 0.0) for n in range(3)]
    assert next_heat(*LINE, *race) == {}
    failed = verified(place(0), {"small": 2.0, "wide": WRONG})
    assert next_heat(*LINE, *race, failed) == {place(3): BOTH}
    assert next_heat(*LINE, *race, verified(place(0), {"small": 2.0, "wide": 2.0})) == {}


def test_one_that_failed_at_one_workload_is_not_timed_there_again() -> None:
    short = [searched(0, A, 2.0, 2.0), searched(1, B, 2.0, 2.0)]
    first = [raced(2, A, 2.0, CRASHED, 0.05), raced(3, B, 1.96, 1.96, 0.05)]
    assert next_heat(*short, *first).get(A) == ("small",)


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
    assert choose.choose(PROBLEM, state_of(*LINE, good, *failed[:-1])).general == place(0)
    assert choose.choose(PROBLEM, state_of(*LINE, good, *failed)).general == place(0)


def test_one_that_fails_at_a_workload_gives_its_place_there_to_the_next() -> None:
    race = [raced(50 + n, place(n), 2.0, CRASHED, 0.0) for n in range(3)]
    assert "wide" in next_heat(*LINE, *race).get(place(3), ())


# -- whatever happens ---------------------------------------------------------------------------------

status = st.sampled_from([WRONG, INFEASIBLE, CRASHED])
near = st.floats(1.9, 2.1)
speed = near | near | st.floats(0.5, 3.0) | status


@examples(100)
@given(st.lists(st.tuples(speed, speed), max_size=7), st.data())
def test_whatever_happens_the_race_ends(
    short: list[tuple[float | Status, float | Status]], data: st.DataObject
) -> None:
    """Heats and verifications as the loop has them: nobody is timed too often, or where it did not run."""
    events: list[Outcome | Verified] = [searched(n, config(n + 1), *both) for n, both in enumerate(short)]
    ran = {o.trial.config: {r.workload for r in o.results if r.ok} for o in events}  # type: ignore[union-attr]
    noise = data.draw(st.sampled_from([0.0, 0.02, 0.1]))
    times: Counter[tuple[Config, str]] = Counter()
    failed: set[Config] = set()
    for step in range(100):
        state = state_of(*events)
        failed |= {c for c, results in merged(state).items() if not any(r.ok for r in results.values())}
        if found := heat(PROBLEM, state):
            assert failed.isdisjoint(chosen for chosen, _ in found)
            assert len({chosen for chosen, _ in found}) == len(found)
            for chosen, workloads in found:
                assert workloads
                assert ran[chosen].issuperset(workloads)
                times.update((chosen, name) for name in workloads)
                speeds = {name: data.draw(near | near | near | status) for name in workloads}
                events.append(finalist(100 + 10 * step, chosen, speeds, noise))
        elif left := choose.unverified(PROBLEM, state):
            chosen, workloads = left[0]
            speeds = {name: data.draw(near | near | status) for name in workloads}
            events.append(verified(chosen, speeds))
            failed |= {chosen} if any(isinstance(v, Status) for v in speeds.values()) else set()
        else:
            break
    else:
        pytest.fail("it goes on and on")
    assert all(count <= HEATS for count in times.values())
    assert failed.isdisjoint(choose.choose(PROBLEM, state).configs())
