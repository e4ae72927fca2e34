"""The state is a fold over the events."""

from __future__ import annotations

import time
from dataclasses import replace

from benchmarks.fold import records as journal
from tests.samples import (
    DEVICE,
    baseline,
    built,
    config,
    finalist,
    outcome,
    records,
    started,
    state_of,
    verified,
)
from tunesmith.problem.plan import Status
from tunesmith.run import events as ev
from tunesmith.run.outcome import Result, Trial
from tunesmith.run.state import State, apply_record, fold_records

ONE, TWO = (outcome(i, config(32 << i), {"small": 1.0, "wide": 1.0}) for i in range(2))
WATCH = outcome(2, None, {"small": 1.0, "wide": 1.0}, "sentinel")
BAD = outcome(3, config(256), {"small": Status.WRONG, "wide": Status.WRONG})
LONG = finalist(4, config(32), {"small": 2.0, "wide": 1.0})
EVENTS = [
    started(),
    baseline({"small": 1.0, "wide": 1.0}),
    ev.Admitted("t", 12, 12),
    ev.Decided("search", "why not"),
    *(ev.Asked(trials, gain) for trials, gain in (((ONE.trial, TWO.trial), 0.2), ((WATCH.trial,), None))),
    ev.Asked((BAD.trial,), 0.1),
    *(ev.Measured(o) for o in (ONE, TWO)),
    ev.Measured(WATCH),
    ev.Measured(BAD),
    ev.Decided("finish", "enough"),
    ev.Asked((LONG.trial,)),
    ev.Measured(LONG),
    verified(config(32), {"small": 2.0}),
    ev.Stopped("enough"),
]


def test_every_event_has_its_place() -> None:
    state = fold_records(records(EVENTS))
    assert state.started == EVENTS[0]
    assert state.baseline == EVENTS[1]
    assert state.admitted == EVENTS[2]
    assert [d.decision for d in state.decided] == ["search", "finish"]
    assert state.asked == tuple(o.trial for o in (ONE, TWO, WATCH, BAD, LONG))
    assert state.outcomes == (ONE, TWO, WATCH, BAD, LONG)
    assert state.verified == (EVENTS[-2],)
    assert state.stopped == EVENTS[-1]
    assert state.events == len(EVENTS)
    assert state.elapsed == len(EVENTS) - 1
    assert state.next_trial == 5
    assert state.gains == (0.2, 0.1), "of each batch of the search, and of nothing else"


def test_outcomes_by_what_they_were_for() -> None:
    state = fold_records(records(EVENTS))
    assert state.searched == (ONE, TWO, BAD)
    assert state.finalists() == (LONG,)
    assert state.sentinels == (EVENTS[1].outcome, WATCH)
    assert state.statuses() == {"ok": 2, "wrong": 1}


def test_what_is_asked_is_in_flight_until_measured() -> None:
    seen = []
    state = State()
    for record in records(EVENTS):
        state = apply_record(state, record)
        seen.append([t.id for t in state.in_flight])
    assert seen[4:11] == [[0, 1], [0, 1, 2], [0, 1, 2, 3], [1, 2, 3], [2, 3], [3], []]
    assert seen[12:14] == [[4], []]


def test_folding_in_two_parts_is_folding_at_once() -> None:
    recorded = records(EVENTS)
    for cut in range(len(recorded) + 1):
        state = fold_records(recorded[:cut])
        for record in recorded[cut:]:
            state = apply_record(state, record)
        assert state == fold_records(recorded)


def test_a_state_that_was_seen_does_not_change() -> None:
    recorded = records(EVENTS)
    states = [State()]
    for record in recorded:
        states.append(apply_record(states[-1], record))
    assert states == [fold_records(recorded[:n]) for n in range(len(recorded) + 1)]
    # Two that go on differently from the same one have nothing to do with each other.
    one, two = (
        apply_record(states[10], ev.Recorded(10, 10.0, ev.Measured(replace(BAD, seconds=s))))
        for s in (1.0, 2.0)
    )
    assert [o.seconds for o in (one.outcomes[-1], two.outcomes[-1])] == [1.0, 2.0]
    assert (len(states[10].outcomes), states[10]) == (3, fold_records(recorded[:10]))


def test_folding_takes_time_in_proportion() -> None:
    """Eight times as many trials: linear is 8, quadratic is 64. The least of three, as machines are busy."""

    def seconds(trials: int) -> float:
        recorded, times = journal(trials), []
        for _ in range(3):
            begun = time.process_time()
            fold_records(recorded)
            times.append(time.process_time() - begun)
        return min(times)

    long = seconds(8000)
    assert long <= 1.5, "half a second, on a machine that has nothing else to do"
    assert long / seconds(1000) < 24


def to_build(number: int, block: int) -> Trial:
    return Trial(number, config(block), ("small", "wide"), "build", "search", "t")


REFUSED = {"small": Status.OVER_LIMITS, "wide": Status.BUILD_FAILED}


class TestBuiltAhead:
    BUILDS = tuple(to_build(n, block) for n, block in enumerate((32, 64, 128, 256)))

    def test_what_is_asked_to_be_built_is_building_until_surveyed(self) -> None:
        state = state_of(ev.Asked(self.BUILDS))
        assert state.building == self.BUILDS
        assert state.in_flight == ()
        assert state.next_trial == 4
        assert state.gains == (), "no batch for the device"
        state = state_of(
            ev.Asked(self.BUILDS), built(None), built(config(32)), built(config(64), refused=REFUSED)
        )
        assert state.building == self.BUILDS[2:]

    def test_the_pool_is_what_may_be_measured_now(self) -> None:
        builds = [built(None), *(built(t.config) for t in self.BUILDS)]
        state = state_of(ev.Asked(self.BUILDS), *builds)
        assert [s.config for s in state.pool] == [t.config for t in self.BUILDS]
        short = Trial(4, config(64), ("small", "wide"), "short", "search", "t")
        verdict = ev.Pruned(config(128), "same_code", "builds and launches the same as another")
        state = state_of(ev.Asked(self.BUILDS), *builds, ev.Asked((short,), 0.5), verdict)
        assert [s.config for s in state.pool] == [config(32), config(256)]
        assert state.in_flight == (short,)
        assert state.pruned == (verdict,)
        assert state.gains == (0.5,)

    def test_a_finalist_does_not_leave_the_pool_for_what_it_never_was_in(self) -> None:
        race = finalist(1, config(64), {"small": 2.0, "wide": 2.0})
        state = state_of(built(config(32)), outcome(0, config(64), {"small": 1.0, "wide": 1.0}), race)
        assert [s.config for s in state.pool] == [config(32)]

    def test_what_cannot_run_counts_as_tried_once_that_is_said(self) -> None:
        found = built(config(32), refused=REFUSED)
        assert state_of(found).unable == ()
        assert state_of(found).pool == (found,)
        state = state_of(found, ev.Pruned(config(32), "cannot_run", "over_limits: too much"))
        assert state.unable == (found,)
        assert state.pool == ()
        assert state.statuses() == {"over_limits": 1}

    def test_what_is_left_out_for_another_reason_does_not(self) -> None:
        for rule in ("same_code", "spills", "occupancy"):
            state = state_of(built(config(32)), ev.Pruned(config(32), rule, "because"))
            assert state.unable == ()
            assert state.pool == ()
            assert state.statuses() == {}


ABSENT = replace(DEVICE, name="one that is elsewhere", absent=True)


def surveyed(block: int | None, *refused: str) -> ev.Surveyed:
    build = ev.SurveyedBuild(("small", "wide"), f"source of {block}", f"code of {block}")
    results = tuple(Result(name, Status.OVER_LIMITS, detail="too much") for name in refused)
    return ev.Surveyed(config(block) if block else None, (build,), results)


class TestAbsentDevice:
    BEGUN = replace(started(ev.Settings(evals=9, ahead=8)), device=ABSENT, compiler="nvrtc 13.4")
    SURVEY = (surveyed(None), surveyed(32), surveyed(64, "wide"), surveyed(128, "small", "wide"))
    EVENTS = (BEGUN, ev.Admitted("t", 12, 12), *SURVEY)

    def test_unable_is_what_no_workload_can_use(self) -> None:
        assert [s.unable for s in self.SURVEY] == [False, False, False, True]
        assert [s.status for s in self.SURVEY] == ["ok", "ok", "ok", "over_limits"]

    def test_before_a_device_is_there(self) -> None:
        state = fold_records(records(self.EVENTS))
        assert state.device == ABSENT
        assert state.compiler == "nvrtc 13.4"
        assert state.surveyed == self.SURVEY
        assert state.unable == ()
        assert state.statuses() == {}

    def test_the_device_in_force_and_what_is_known_of_it(self) -> None:
        attached = ev.Attached(DEVICE, "nvrtc 13.4", 45, (config(128),))
        state = fold_records(records([*self.EVENTS, attached]))
        assert (state.device, state.compiler, state.settings.ahead) == (DEVICE, "nvrtc 13.4", 45)
        assert state.settings.evals == 9
        assert state.unable == (self.SURVEY[-1],)
        assert state.statuses() == {"over_limits": 1}
        assert state.admitted is None, "what is feasible depends on the device"
        assert state.attached_at == len(self.EVENTS)

    def test_what_another_compiler_said_is_forgotten(self) -> None:
        moved = ev.Attached(ABSENT, "nvcc 12.8", 8)
        state = fold_records(records([*self.EVENTS, moved]))
        assert state.surveyed == ()
        assert state.compiler == "nvcc 12.8"
        assert fold_records(records([*self.EVENTS, moved, surveyed(64)])).surveyed == (surveyed(64),)
