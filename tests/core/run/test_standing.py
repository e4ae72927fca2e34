"""Where a run stands, at every event of a whole run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.run.test_instructions import STOP, run_with
from tests.core.run.test_loop import Run
from tunesmith.profiles.facts import Bound, Diagnosis
from tunesmith.run.budget import BudgetUse
from tunesmith.run.events import Profiled, Recorded, Settings
from tunesmith.run.figures import best_so_far
from tunesmith.run.progress import (
    FloorDistance,
    RunProgress,
    budget_text,
    clock_text,
    current_standing,
    done_text,
    floor_text,
    left_text,
)
from tunesmith.run.state import State, apply_record


def test_a_whole_run_goes_through_its_phases() -> None:
    run = Run(Settings(evals=20))
    run.go()
    found = [current_standing(state) for state in run.watcher.states]
    phases = list(dict.fromkeys(one.phase for one in found))
    assert phases[0] == "deciding what comes next"
    assert phases[1:4] == ["searching", "racing finalists", "verifying the winners in fresh processes"]
    assert phases[-1].startswith("ended: ")
    assert [one.ended for one in found[-2:]] == [False, True]
    searching = [one for one in found if one.phase == "searching"]
    assert [one.done for one in searching] == sorted(one.done for one in searching)
    assert searching[-1].of == 20
    assert searching[-1].best == best_so_far(run.watcher.states[-1]).speedup
    busy = [one for one in searching if one.doing]
    assert all(one.queued == len(one.queue) for one in busy)
    assert max(one.queued for one in busy) >= 2  # behind the one that is measured: few, as little is known


def test_races_and_verification_are_beside_the_budget() -> None:
    state = Run(Settings(evals=20)).go()
    seconds = [use.used for use in current_standing(state).budgets if use.what == "seconds"]
    assert seconds == [pytest.approx(state.decided_at, abs=1e-3)]
    assert state.elapsed > state.decided_at


def test_before_anything_has_happened() -> None:
    assert current_standing(State()) == RunProgress("starting")
    begun = apply_record(State(), Run().journal.records[0])
    assert current_standing(begun).phase == "checking and timing the original"


def test_what_is_left_falls_and_is_nobodys_guess_without_a_budget() -> None:
    run = Run(Settings(evals=40))
    run.go()
    left = [one.left for state in run.watcher.states if (one := current_standing(state)).phase == "searching"]
    known = [value for value in left if value is not None]
    assert known[0] > known[-1] == 0
    timed = Run(Settings(seconds=1000.0))
    timed.go()
    first = next(s for s in timed.watcher.states if s.searching)
    assert current_standing(first).left == pytest.approx(1000 - first.elapsed)
    assert current_standing(first, since=10).left == pytest.approx(990 - first.elapsed)


def test_a_run_that_is_stopping_says_so() -> None:
    assert current_standing(run_with((12, STOP)).go()).stopping


def test_the_floor_is_held_against_the_best() -> None:
    state = Run(Settings(evals=40)).go()
    result, best = state.baseline.outcome.results[0], best_so_far(state)
    assert current_standing(state).floors[0].times is None
    floor = result.timing.seconds / 8
    seen = Diagnosis(next(iter(Bound)), "far", 0.9, (), distance=8.0, floor=floor)
    open_, profiled = replace(state, stopped=None), Profiled(None, result.workload, seen)
    distance = current_standing(apply_record(open_, Recorded(state.events, state.elapsed, profiled))).floors[
        0
    ]
    assert distance.floor == pytest.approx(floor * 1e6)
    assert distance.times == pytest.approx(8 / best.at[result.workload])
    assert best.at[result.workload] > 1


def test_in_words() -> None:
    assert [clock_text(s) for s in (0, 65.9, 7800)] == ["0:00", "1:05", "2:10:00"]
    assert [left_text(s) for s in (0.2, 42, 600, 7200)] == [
        "about 1 s",
        "about 42 s",
        "about 10 min",
        "about 2.0 h",
    ]
    assert done_text(RunProgress("x", done=3, of=10, beside=1, failed=2)) == (
        "3 of 10, and 1 evaluation by the gate, 2 failed"
    )
    assert budget_text(BudgetUse("device_seconds", 1.5, 60)) == "device seconds 1.5 of 60"
    assert budget_text(BudgetUse("seconds", 342.884, 60)) == "seconds 342.9 of 60"
    assert budget_text(BudgetUse("tokens", None, None)) == "tokens unknown"
    assert floor_text(FloorDistance("big", 30.0, 20.0)) == "big 30.0 µs, 1.50 × its floor of 20.0 µs"
    assert floor_text(FloorDistance("big", 30.0)) == "big 30.0 µs, floor not known"
