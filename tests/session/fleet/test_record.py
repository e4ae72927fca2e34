"""The journal of a fleet, and what it folds into."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.fleets import ended, standing
from tunesmith.errors import BadInput
from tunesmith.session.fleet.record import (
    FLEET_JOURNAL,
    MOST_LOSSES,
    MOST_RESTS,
    REST,
    CellBegan,
    FleetEvent,
    FleetJournal,
    HeadBegan,
    fold,
)

EVENTS: list[FleetEvent] = [
    HeadBegan(2.0),
    CellBegan("a", "gpu/here/0", 5.0, "stop"),
    ended("a", "paused", 5.0),
    HeadBegan(3.0),
]


def test_what_was_written_is_read_and_a_torn_line_is_dropped(tmp_path: Path) -> None:
    journal = FleetJournal(tmp_path)
    assert list(journal.read()) == []
    for event in EVENTS[:3]:
        journal.append(event)
    journal.close()
    with (tmp_path / FLEET_JOURNAL).open("ab") as file:
        file.write(b'{"number": 3, "head": {"ho')
    again = FleetJournal(tmp_path)
    assert list(again.read()) == EVENTS[:3]
    again.append(EVENTS[3])
    again.close()
    assert list(FleetJournal(tmp_path).read()) == EVENTS


@pytest.mark.parametrize("line", [b"nonsense", b'{"number": 7, "head": {"hours": 1}}', b'{"number": 0}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    (tmp_path / FLEET_JOURNAL).write_bytes(line + b"\n")
    with pytest.raises(BadInput, match="damaged") as caught:
        list(FleetJournal(tmp_path).read())
    assert (caught.value.where or "").endswith(f"{FLEET_JOURNAL}:1")


def test_a_cell_that_is_lost_again_and_again_and_gets_nowhere_has_failed() -> None:
    lost = [ended("a", "lost", 5.0, reason="signal 9") for _ in range(MOST_LOSSES)]
    assert fold(lost).of("a").status == "paused", "the first of them got somewhere"
    found = fold([*lost, lost[0]]).of("a")
    assert (found.status, found.code) == ("failed", 1)
    assert "3 times in a row: signal 9" in found.reason


def test_getting_somewhere_is_no_failure() -> None:
    lost = [ended("a", "lost", float(seconds)) for seconds in range(1, 9)]
    assert fold(lost).of("a").is_ready


def test_a_node_that_is_gone_costs_the_cell_nothing_and_rests() -> None:
    gone = [ended("a", "no device", at=float(at)) for at in range(MOST_LOSSES)]
    assert fold(gone).rests_until("gpu/here/0") == math.inf, "it never worked: nobody waits for it"
    state = fold(gone := [ended("b", "paused"), *gone])
    assert state.of("a").is_ready
    assert state.rests_until("gpu/here/0") == MOST_LOSSES - 1 + REST
    for _ in range(MOST_RESTS):
        state = fold(gone := [*gone, ended("a", "no device", at=9.0)])
    assert state.rests_until("gpu/here/0") == math.inf
    assert fold([*gone, ended("b", "paused")]).rests_until("gpu/here/0") == 0
    assert fold([*gone, HeadBegan(1.0)]).rests_until("gpu/here/0") == 0, "another head tries it again"


def test_a_node_that_comes_and_goes_is_used_while_it_is_there() -> None:
    coming = [ended("abc"[n % 3], "lost", float(n + 1), at=1.0) for n in range(12)]
    assert fold(coming).rests_until("gpu/here/0") == 0


def test_one_bad_cell_is_no_fault_of_the_slot() -> None:
    assert fold([ended("a", "lost", at=1.0)] * 9).rests_until("gpu/here/0") == 0
    several = [ended("a", "paused"), *(ended(name, "lost", at=1.0) for name in "abc")]
    assert fold(several).rests_until("gpu/here/0") == 1.0 + REST


@pytest.mark.parametrize(("code", "again"), [(1, True), (2, True), (3, False)])
def test_another_head_tries_again_what_can_be_mended(code: int, again: bool) -> None:
    state = fold([ended("a", "failed", code=code), HeadBegan(1.0)])
    assert state.of("a").is_ready == again


def test_what_cells_at_work_may_use_is_reserved() -> None:
    state = fold(
        [ended("a", "paused", 5.0), CellBegan("a", "s", 8.0, "stop"), CellBegan("b", "t", 2.0, "stop")]
    )
    assert (state.spent, state.reserved) == (5.0, 5.0)


def test_a_share_that_somebody_cut_short_is_none() -> None:
    now = standing(5.0, 2.0)
    cut = fold([ended("a", "paused", standing=now, asked=True)]).of("a")
    whole = fold([ended("a", "paused", standing=now)]).of("a")
    assert (cut.sessions, whole.sessions, whole.searches) == (0, 1, 1)
    assert math.isclose(whole.gained, math.log(2))


def test_a_clock_that_is_put_back_lengthens_no_rest() -> None:
    slot, noon = "gpu/here/0", 1e9
    there = ended("z", "finished", 1.0, at=noon)
    lost = [ended(name, "no device", at=noon) for name in "abc"]
    state = fold([there, *lost])
    assert state.rests_until(slot) == noon + REST
    assert state.is_resting(slot, noon + 1)
    assert not state.is_resting(slot, noon + REST)
    assert not state.is_resting(slot, noon - 86400), "it would rest for a day"
    never = fold(lost)
    assert never.is_resting(slot, noon - 86400), "what never worked is left out, whatever the time"
    assert not state.is_resting("another", noon)
