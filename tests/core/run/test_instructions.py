"""Instructions of whoever watches: taken up once, decided on by the journal alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.core.run.test_loop import BEST, CONFIGS, PROBLEM, FakeLab, MemoryJournal, Run, events
from tunesmith.run import events as ev
from tunesmith.run.folder import INBOX, LONGEST_HINT, FolderInbox
from tunesmith.run.journal import broken_rule
from tunesmith.run.race import verified_choice
from tunesmith.run.state import State, apply_record
from tunesmith.search.simple import Random

STOP, FINISH = ev.RunInstruction("1-stop", "stop"), ev.RunInstruction("2-finish", "finish")
WHOLE = ev.Settings(evals=20)
HINTED = CONFIGS[-1]


@dataclass
class TimedInbox:
    """Instructions that are there from the event of a number on."""

    journal: MemoryJournal
    given: list[tuple[int, ev.RunInstruction]]
    dropped: list[str] = field(default_factory=list)

    def waiting(self) -> Sequence[ev.RunInstruction]:
        there = [i for number, i in self.given if number <= len(self.journal.records)]
        return [i for i in there if i.id not in self.dropped]

    def drop(self, id: str) -> None:
        self.dropped.append(id)


@dataclass
class WatchedRun(Run):
    given: list[tuple[int, ev.RunInstruction]] = field(default_factory=list)

    def make_inbox(self) -> TimedInbox:
        return TimedInbox(self.journal, self.given)


def run_with(*given: tuple[int, ev.RunInstruction], settings: ev.Settings = WHOLE) -> WatchedRun:
    return WatchedRun(settings, Random(), given=list(given))


def hint(text: str, id: str = "3-hint") -> ev.RunInstruction:
    return ev.RunInstruction(id, "hint", text)


def instructed(run: Run) -> list[ev.Event]:
    return events(run, ev.Instructed)


@pytest.mark.parametrize("ahead", [0, 12])
def test_stop_collects_what_is_under_way_asks_for_nothing_and_can_be_resumed(ahead: int) -> None:
    settings = replace(WHOLE, ahead=ahead)
    run = run_with((12, STOP), settings=settings)
    state = run.go()
    assert state.stopped is None
    assert not state.in_flight
    records = run.journal.records
    after = records[next(r.number for r in records if isinstance(r.event, ev.Instructed)) + 1 :]
    assert after
    assert {type(r.event) for r in after} == {ev.Measured}
    assert run.inbox.dropped == [STOP.id]
    again = replace(run, lab=FakeLab(), records=run.journal.records, given=[])
    ended = again.go()
    assert ended.stopped is not None
    assert [(e.what, e.id) for e in instructed(again)] == [("stop", STOP.id), ("resume", "")]


def test_a_stop_that_nobody_took_up_does_not_stop_the_run_that_is_resumed() -> None:
    state = run_with((0, STOP)).go()
    assert state.stopped is not None
    assert [i.refused for i in state.instructed] == ["the run had ended before it was taken up"]


def test_finish_ends_the_search_and_delivers_what_was_found() -> None:
    state = run_with((15, FINISH)).go()
    assert "asked it to finish" in state.stopped.reason
    assert len(state.searched) < 20
    assert verified_choice(PROBLEM, state).general is not None
    assert state.verified


def test_finish_before_anything_was_decided_searches_nothing() -> None:
    run = run_with((0, FINISH))
    state = run.go()
    assert state.stopped is not None
    assert [d.decision for d in state.decided] == ["finish"]
    assert not events(run, ev.Searched)


def test_a_second_finish_is_refused() -> None:
    state = run_with((15, FINISH), (16, replace(FINISH, id="again"))).go()
    assert [i.refused for i in state.instructed] == ["", "the run is finishing already"]


@pytest.mark.parametrize("ahead", [0, 12])
def test_a_hint_is_what_is_tried_next(ahead: int) -> None:
    run = run_with((20, hint(str(BEST))), settings=replace(WHOLE, ahead=ahead))
    state = run.go()
    place = next(r.number for r in run.journal.records if isinstance(r.event, ev.Instructed))
    event = run.journal.records[place].event
    if event.refused:  # the search was there first
        assert "has been tried" in event.refused
        return
    asked = run.journal.records[place + 1].event
    assert [trial.config for trial in asked.trials] == [BEST]
    assert state.searched.count(BEST) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("NOSUCH=1", "the template has no parameter 'NOSUCH'"),
        (f"{HINTED.items[0][0]}=12345", "is not in its domain"),
        ("<script>alert(1)</script>", "the template has no parameter"),
        ("", "has been tried"),
    ],
)
def test_a_hint_that_names_nothing_is_refused_in_words(text: str, why: str) -> None:
    run = run_with((20, hint(text)))
    with_hint, without = run.go(), run_with().go()
    assert why in with_hint.instructed[0].refused
    assert with_hint.instructed[0].text == text
    assert [o.trial.config for o in with_hint.outcomes] == [o.trial.config for o in without.outcomes]


def test_a_hint_after_the_search_is_refused() -> None:
    whole = run_with()
    whole.go()
    end = next(r.number for r in whole.journal.records if _is_finish(r.event)) + 1
    state = run_with((end, hint(str(HINTED)))).go()
    assert state.instructed[0].refused == "nothing is searched any more"


def _is_finish(event: ev.Event) -> bool:
    return isinstance(event, ev.Decided) and event.decision == "finish"


@pytest.mark.parametrize("ahead", [0, 12])
def test_wherever_it_is_killed_a_run_that_was_told_things_goes_on_as_it_would_have(ahead: int) -> None:
    """Also between the event and the file that is taken away: nothing is taken up twice."""
    given = [(10, hint(str(HINTED))), (14, hint("NOSUCH=1", "4-bad")), (20, FINISH)]
    settings = replace(WHOLE, ahead=ahead)
    whole = run_with(*given, settings=settings)
    whole.go()
    facts = [r.event for r in whole.journal.records]
    assert len([e for e in facts if isinstance(e, ev.Instructed)]) == 3
    places = [n for n, e in enumerate(facts) if isinstance(e, ev.Instructed)]
    for cut in sorted({place + more for place in places for more in (0, 1, 2)}):
        again = run_with(*given, settings=settings)
        again.journal.records[:] = whole.journal.records[:cut]
        again.go()
        assert [r.event for r in again.journal.records] == facts, cut


def test_what_was_told_can_have_happened() -> None:
    run = run_with((10, hint(str(HINTED))), (14, hint("NOSUCH=1", "4-bad")), (20, FINISH))
    run.go()
    state = State()
    for record in run.journal.records:
        assert record.number == 0 or broken_rule(state, record) is None
        state = apply_record(state, record)


def test_what_cannot_be_meant_is_refused() -> None:
    state = run_with((10, hint(str(HINTED)))).go()
    open_ = replace(state, stopped=None)
    for event, why in (
        (state.instructed[0], "is taken up once"),
        (ev.Instructed("x", "hint", "A=1"), "a configuration is what a hint names"),
        (ev.Instructed("x", "stop", config=BEST), "a configuration is what a hint names"),
        (ev.Instructed("x", "hint", "", replace(BEST, candidate="9")), "there is no template '9'"),
    ):
        assert why in (broken_rule(open_, ev.Recorded(state.events, state.elapsed, event)) or ""), event


def test_an_inbox_gives_what_was_put_in_order_until_it_is_dropped(tmp_path: Path) -> None:
    inbox = FolderInbox(tmp_path)
    assert inbox.waiting() == ()
    kinds: tuple[ev.InstructionKind, ...] = ("hint", "stop", "finish")
    ids = [inbox.put(what, "A=1" if what == "hint" else "") for what in kinds]
    assert [(i.id, i.what, i.text) for i in FolderInbox(tmp_path).waiting()] == [
        (ids[0], "hint", "A=1"),
        (ids[1], "stop", ""),
        (ids[2], "finish", ""),
    ]
    inbox.drop(ids[0])
    inbox.drop(ids[0])
    assert [i.id for i in inbox.waiting()] == ids[1:]


def test_what_is_no_instruction_is_taken_away_or_left_alone(tmp_path: Path) -> None:
    inbox = FolderInbox(tmp_path)
    inbox.put("hint", "x" * 5000)
    folder = tmp_path / INBOX
    (folder / f"{'1' * 20}-00000000.json").write_text('{"what": "erase"}')
    (folder / f"{'2' * 20}-00000000.json").write_bytes(b"\xff\xfe")
    (folder / f"{'3' * 20}-00000000.json").symlink_to(tmp_path / "elsewhere.json")
    (tmp_path / "elsewhere.json").write_text('{"what": "stop"}')
    (folder / "notes.txt").write_text("mine")
    assert [(i.what, len(i.text)) for i in inbox.waiting()] == [("hint", LONGEST_HINT)]
    assert len(list(folder.iterdir())) == 2, "the hint and what is not ours"
    assert (tmp_path / "elsewhere.json").exists()
