"""The state is a fold over the events."""

from __future__ import annotations

from tests.samples import baseline, config, finalist, outcome, records, started, state_of, verified
from tunesmith.core.events import Admitted, Asked, Decided, Measured, Stopped
from tunesmith.core.outcome import Status
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
