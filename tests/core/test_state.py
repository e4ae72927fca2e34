"""The state is a fold over the events."""

from __future__ import annotations

from dataclasses import replace

from tests.samples import DEVICE, baseline, config, finalist, outcome, records, started, state_of, verified
from tunesmith.core.events import (
    Admitted,
    Asked,
    Attached,
    Decided,
    Measured,
    Settings,
    Stopped,
    Surveyed,
    SurveyedBuild,
)
from tunesmith.core.outcome import Result, Status
from tunesmith.core.state import State, apply, fold

ONE, TWO = (outcome(i, config(32 << i), {"small": 1.0, "wide": 1.0}) for i in range(2))
WATCH = outcome(2, None, {"small": 1.0, "wide": 1.0}, "sentinel")
BAD = outcome(3, config(256), {"small": Status.WRONG, "wide": Status.WRONG})
LONG = finalist(4, config(32), {"small": 2.0, "wide": 1.0})
EVENTS = [
    started(),
    baseline({"small": 1.0, "wide": 1.0}),
    Admitted("t", 12, 12),
    Decided("search", "why not"),
    *(Asked(o.trial) for o in (ONE, TWO, WATCH, BAD)),
    *(Measured(o) for o in (ONE, TWO)),
    Measured(WATCH),
    Measured(BAD),
    Decided("finish", "enough"),
    Asked(LONG.trial),
    Measured(LONG),
    verified(config(32), {"small": 2.0}),
    Stopped("enough"),
]


def test_every_event_has_its_place() -> None:
    state = fold(records(EVENTS))
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


def test_outcomes_by_what_they_were_for() -> None:
    state = fold(records(EVENTS))
    assert state.searched() == (ONE, TWO, BAD)
    assert state.finalists() == (LONG,)
    assert state.sentinels() == (EVENTS[1].outcome, WATCH)
    assert state.statuses() == {"ok": 2, "wrong": 1}


def test_what_is_asked_is_in_flight_until_measured() -> None:
    seen = []
    state = State()
    for record in records(EVENTS):
        state = apply(state, record)
        seen.append([t.id for t in state.in_flight])
    assert seen[4:12] == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [1, 2, 3], [2, 3], [3], []]
    assert seen[13:15] == [[4], []]


def test_searching_is_what_was_decided_last() -> None:
    found = [fold(records(EVENTS[:n])).searching for n in (3, 4, 12, 13, len(EVENTS))]
    assert found == [False, True, True, False, False]


def test_nothing_yet() -> None:
    assert fold([]) == State()
    assert State().sentinels() == ()
    assert not State().searching


def test_folding_in_two_parts_is_folding_at_once() -> None:
    recorded = records(EVENTS)
    for cut in range(len(recorded) + 1):
        state = fold(recorded[:cut])
        for record in recorded[cut:]:
            state = apply(state, record)
        assert state == fold(recorded)


def test_a_sample_state_is_what_it_says() -> None:
    assert state_of(ONE, BAD).searched() == (ONE, BAD)


ABSENT = replace(DEVICE, name="one that is elsewhere", absent=True)


def surveyed(block: int | None, *refused: str) -> Surveyed:
    build = SurveyedBuild(("small", "wide"), f"source of {block}", f"code of {block}")
    results = tuple(Result(name, Status.OVER_LIMITS, detail="too much") for name in refused)
    return Surveyed(config(block) if block else None, (build,), results)


class TestAbsentDevice:
    BEGUN = replace(started(Settings(evals=9, width=8)), device=ABSENT, compiler="nvrtc 13.4")
    SURVEY = (surveyed(None), surveyed(32), surveyed(64, "wide"), surveyed(128, "small", "wide"))
    EVENTS = (BEGUN, Admitted("t", 12, 12), *SURVEY)

    def test_unable_is_what_no_workload_can_use(self) -> None:
        assert [s.unable for s in self.SURVEY] == [False, False, False, True]
        assert [s.status for s in self.SURVEY] == ["ok", "ok", "ok", "over_limits"]

    def test_before_a_device_is_there(self) -> None:
        state = fold(records(self.EVENTS))
        assert state.device == ABSENT
        assert state.compiler == "nvrtc 13.4"
        assert state.surveyed == self.SURVEY
        assert state.unable == ()
        assert state.statuses() == {}

    def test_the_device_in_force_and_what_is_known_of_it(self) -> None:
        attached = Attached(DEVICE, "nvrtc 13.4", 45, (config(128),))
        state = fold(records([*self.EVENTS, attached]))
        assert (state.device, state.compiler, state.settings.width) == (DEVICE, "nvrtc 13.4", 45)
        assert state.settings.evals == 9
        assert state.unable == (self.SURVEY[-1],)
        assert state.statuses() == {"over_limits": 1}
        assert state.admitted is None, "what is feasible depends on the device"
        assert state.attached_at == len(self.EVENTS)

    def test_what_another_compiler_said_is_forgotten(self) -> None:
        moved = Attached(ABSENT, "nvcc 12.8", 8)
        state = fold(records([*self.EVENTS, moved]))
        assert state.surveyed == ()
        assert state.compiler == "nvcc 12.8"
        assert fold(records([*self.EVENTS, moved, surveyed(64)])).surveyed == (surveyed(64),)
