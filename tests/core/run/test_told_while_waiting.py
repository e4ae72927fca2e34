"""Whoever watches is heard while a model is waited for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.core.run.test_instructions import FINISH, STOP, TimedInbox
from tests.core.run.test_loop import PROBLEM, FakeLab, delivered, events, kinds_of
from tests.core.run.test_talking import GOOD, TalkingRun, a_run, model_of
from tests.samples import log_of
from tests.talkers import Said, Scripted, plan
from tunesmith.run import talk as talking
from tunesmith.run.candidates import Templates
from tunesmith.run.events import Instructed, NoReply, Pending, Reply, Request, RunInstruction, Unanswered
from tunesmith.run.state import fold_records
from tunesmith.run.talk import ModelDialogue, taken_up

SCRIPT: dict[int, Sequence[Said]] = {1: [plan()], 2: [GOOD], 3: [plan("stop")]}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talking, "LOOK", 0.01)


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """Set when nobody waits any more."""
    found = threading.Event()
    yield found
    found.set()


@dataclass
class Silent(Scripted):
    """Has no answer to one request."""

    number: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    at_once: bool = False

    def reply(self, request: Request) -> Reply | Pending | NoReply:
        if request.number == self.number:
            self.asked.append(request)
            self.over.wait(60)
            return Reply(GOOD)
        return super().reply(request)


@dataclass
class WatchedTalk(TalkingRun):
    """`given` is there when a request of that number is open."""

    given: RunInstruction = STOP
    number: int = 0

    def talk(self, templates: Templates) -> ModelDialogue:
        found = super().talk(templates)
        return replace(found, conversation=replace(found.conversation, inbox=self))

    def waiting(self) -> Sequence[RunInstruction]:
        opened = fold_records(self.journal.read()).open_request
        if opened is not None and opened.request.number == self.number:
            self.inbox.given = [(0, self.given)]
        return self.inbox.waiting()

    def drop(self, id: str) -> None:
        self.inbox.drop(id)

    def make_inbox(self) -> TimedInbox:
        return TimedInbox(self.journal, [])


def a_watched_run(given: RunInstruction, number: int, over: threading.Event) -> WatchedTalk:
    run = a_run(SCRIPT, kind=WatchedTalk)
    assert isinstance(run, WatchedTalk)
    models = dict.fromkeys(("planner", "author"), Silent(SCRIPT, number=number, over=over))
    return replace(run, models=models, given=given, number=number)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_stop_is_heard_and_the_run_goes_on_as_it_would_have(number: int, over: threading.Event) -> None:
    run = a_watched_run(STOP, number, over)
    state = run.go()
    assert state.stopped is None
    assert state.open_request.request.number == number
    assert kinds_of(run)[-2:] == ["Requested", "Instructed"]
    assert run.inbox.dropped == [STOP.id]
    again = a_run(SCRIPT, records=run.journal.records, kept=run.texts)
    ended = again.go()
    whole = a_run(SCRIPT)
    assert delivered(ended) == delivered(whole.go())
    assert [k for k in kinds_of(again) if k != "Instructed"] == kinds_of(whole)
    assert model_of(again).asked[0].number == number, "nothing is asked twice that was answered"


@pytest.mark.parametrize(("number", "then"), [(1, "Decided"), (2, "Declined"), (3, "Decided")])
def test_finish_gives_up_what_is_open(number: int, then: str, over: threading.Event) -> None:
    run = a_watched_run(FINISH, number, over)
    state = run.go()
    assert "asked it to finish" in state.stopped.reason
    kinds = kinds_of(run)
    at = kinds.index("Instructed")
    assert kinds[at - 1 : at + 3] == ["Requested", "Instructed", "Unanswered", then]
    (given_up,) = events(run, Unanswered)
    assert given_up.final
    assert (delivered(state).general is not None) == (number == 3), "what was found is delivered"


def test_a_hint_waits_and_a_reply_is_heard_beside_it(over: threading.Event) -> None:
    run = a_watched_run(RunInstruction("4-hint", "hint", "VEC=1"), 2, over)
    threading.Timer(0.1, over.set).start()
    state = run.go()
    assert state.stopped is not None
    assert len(events(run, Instructed)) == 1
    kinds = kinds_of(run)
    assert kinds.index("Instructed") > kinds.index("Admitted")


@pytest.mark.parametrize("given", [STOP, FINISH])
def test_what_was_taken_up_is_dropped_also_without_a_loop(
    given: RunInstruction, over: threading.Event
) -> None:
    run = a_watched_run(given, 1, over)
    run.inbox = TimedInbox(run.journal, [(0, given)])
    log = log_of(run.journal, run.watcher)
    state = log.state
    talk = run.talk(Templates(PROBLEM, state.device, run.template, run.texts))
    told = talk.urgent_instruction(state)
    assert told == Instructed(given.id, given.what)
    assert not run.inbox.dropped, "it is not in the journal yet"
    log.write(told)
    try:
        assert talk.urgent_instruction(log.state) is None
    except KeyboardInterrupt:
        assert given == STOP
    assert run.inbox.dropped == [given.id]


def test_without_a_device_nothing_can_finish() -> None:
    state = fold_records(a_run(SCRIPT, lab=FakeLab()).journal.read())
    assert taken_up(FINISH, state, None) == Instructed(FINISH.id, "finish")
    absent = replace(state.started.device, absent=True)
    state = replace(state, started=replace(state.started, device=absent))
    refused = taken_up(FINISH, state, None)
    assert "without the device" in refused.refused
    assert taken_up(STOP, state, None) == Instructed(STOP.id, "stop")
