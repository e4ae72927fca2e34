"""The journal of a fleet and what it folds into; the budget is dealt by weight and gain, and kept."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fleets import ended, plan, standing
from tunesmith.base.errors import BadInput
from tunesmith.plugins.fleet.plan import HOUR, FleetDevice, FleetPlan, cells_of, slots_of
from tunesmith.plugins.fleet.record import (
    FIRST_GAIN,
    FLEET_JOURNAL,
    MAX_LOSSES,
    OPENING_SHARE,
    CellBegan,
    CellState,
    FleetEvent,
    FleetJournal,
    FleetState,
    HeadBegan,
    apply_fleet_event,
    expected_gain,
    fold_fleet_events,
    fund_cells,
    next_start,
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
    lost = [ended("a", "lost", 5.0, reason="signal 9") for _ in range(MAX_LOSSES)]
    assert fold_fleet_events(lost).of("a").status == "paused", "the first of them got somewhere"
    found = fold_fleet_events([*lost, lost[0]]).of("a")
    assert (found.status, found.code) == ("failed", 1)
    assert "3 times in a row: signal 9" in found.reason


def test_getting_somewhere_is_no_failure() -> None:
    lost = [ended("a", "lost", float(seconds)) for seconds in range(1, 9)]
    assert fold_fleet_events(lost).of("a").is_ready


def test_a_device_that_is_gone_is_no_fault_of_the_cell() -> None:
    assert fold_fleet_events([ended("a", "no device")] * 9).of("a").is_ready


@pytest.mark.parametrize(("code", "again"), [(1, True), (2, True), (3, False)])
def test_another_head_tries_again_what_can_be_mended(code: int, again: bool) -> None:
    state = fold_fleet_events([ended("a", "failed", code=code), HeadBegan(1.0)])
    assert state.of("a").is_ready == again


def test_what_cells_at_work_may_use_is_reserved() -> None:
    state = fold_fleet_events(
        [ended("a", "paused", 5.0), CellBegan("a", "s", 8.0, "stop"), CellBegan("b", "t", 2.0, "stop")]
    )
    assert (state.spent, state.reserved) == (5.0, 5.0)


def test_a_share_that_somebody_cut_short_is_none() -> None:
    now = standing(5.0, 2.0)
    cut = fold_fleet_events([ended("a", "paused", standing=now, asked=True)]).of("a")
    whole = fold_fleet_events([ended("a", "paused", standing=now)]).of("a")
    assert (cut.sessions, whole.sessions, whole.searches) == (0, 1, 1)
    assert math.isclose(whole.gained, math.log(2))


# -- the budget ---------------------------------------------------------------------------------------

A, B = "p0@gpu+expert", "p1@gpu+expert"


def after(fleet: FleetPlan, *events: FleetEvent) -> FleetState:
    return fold_fleet_events([HeadBegan(fleet.hours), *events])


def start(fleet: FleetPlan, state: FleetState) -> CellBegan | None:
    found = next_start(state, cells_of(fleet), list(slots_of(fleet)))
    return found[1] if found else None


def test_every_cell_has_a_first_share_the_heaviest_first() -> None:
    fleet = plan((1.0, 5.0))
    share = OPENING_SHARE * HOUR / 2
    assert start(fleet, after(fleet)) == CellBegan(B, "gpu/here/0", share, "stop")
    began = CellBegan(B, "gpu/here/0", share, "stop")
    paused = after(fleet, began, ended(B, "paused", share, standing=standing(share, 3.0)))
    assert start(fleet, paused) == CellBegan(A, "gpu/here/0", share, "stop")


@pytest.mark.parametrize(
    ("weights", "bests", "heir"),
    [
        ((1.0, 1.0), (1.0, 2.0), B),  # the better got further with the same
        ((1.0, 1.0), (2.0, 1.0), A),
        ((9.0, 1.0), (1.2, 1.3), A),  # and the heavier counts more
    ],
)
def test_then_by_weight_and_what_the_last_share_brought(weights, bests, heir):
    fleet = plan(weights)
    share = OPENING_SHARE * HOUR / 2
    state = after(
        fleet, *(ended(c, "paused", standing=standing(share, b)) for c, b in zip((A, B), bests, strict=True))
    )
    begun = start(fleet, state)
    assert (begun.cell, begun.until) == (heir, 2 * share), "it is given what it has had, again"


def test_no_more_cells_begin_than_can_come_to_their_search() -> None:
    fleet = plan((1.0, 1.0, 1.0))  # first shares of 300 s, and the original takes 1000 s
    first = ended(A, "paused", standing=standing(1000.0, evaluations=0))
    begun = start(fleet, after(fleet, first))
    assert (begun.cell, begun.until) == (A, 2000.0), "it has paid its entry, others have not"
    second = ended(A, "paused", standing=standing(2000.0, 1.001, headroom=0.001))
    begun = start(fleet, after(fleet, first, second))
    assert (begun.cell, begun.then) == (B, "stop"), "there is enough for one more"
    third = ended(B, "paused", standing=standing(1000.0, evaluations=0, headroom=0.001))
    begun = start(fleet, after(fleet, first, second, third))
    assert begun.then == "finish", "and not for the last"


def test_what_the_searcher_expects_and_the_floor_count() -> None:
    dry = CellState(sessions=3, searches=3, standing=standing(5.0))
    assert expected_gain(dry) < FIRST_GAIN / 20
    assert expected_gain(CellState(searches=3, standing=standing(5.0, expected=0.2))) == 0.2
    assert expected_gain(CellState(searches=3, standing=standing(5.0, expected=0.2, headroom=0.05))) == 0.05
    assert expected_gain(CellState(standing=standing(headroom=-0.1))) == 0


def test_who_has_nothing_to_expect_finishes_while_the_budget_is_there() -> None:
    fleet = plan((1.0, 1.0))
    state = after(
        fleet, ended(A, "paused", standing=standing(10.0, headroom=0.0)), CellBegan(B, "x", 20.0, "stop")
    )
    assert start(fleet, state) == CellBegan(A, "gpu/here/0", 10.0, "finish")


def test_when_the_budget_is_used_up_what_has_begun_finishes_and_nothing_begins() -> None:
    fleet = plan((1.0, 1.0, 1.0))
    state = after(fleet, ended(A, "paused", HOUR), ended(B, "finished", standing=standing(5.0)))
    assert start(fleet, state) == CellBegan(A, "gpu/here/0", HOUR, "finish")
    state = apply_fleet_event(state, ended(A, "finished", HOUR))
    assert start(fleet, state) is None


def test_a_cell_goes_on_elsewhere_if_there_is_another_place() -> None:
    one, two = FleetDevice("gpu", slots=1), FleetDevice("gpu", slots=2)
    for device, slot in ((two, "gpu/here/1"), (one, "gpu/here/0")):
        fleet = plan((1.0,), [device])
        begun = start(fleet, after(fleet, ended(A, "lost", 5.0)))
        assert begun.slot == slot


def test_a_head_that_begins_again_decides_alike() -> None:
    fleet = plan((1.0, 2.0, 3.0))
    events = [ended(A, "paused", 5.0), ended(B, "lost", 3.0)]
    assert start(fleet, after(fleet, *events)) == start(fleet, after(fleet, *events, HeadBegan(fleet.hours)))


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.floats(0.01, 100), min_size=1, max_size=12),
    slots=st.integers(1, 4),
    batch=st.floats(0.1, 300),
    seed=st.integers(0, 1 << 30),
)
def test_the_budget_is_kept_but_for_a_batch_of_each_slot(weights, slots, batch, seed):
    """Whatever searches bring, whoever is lost: all that began finish, and the fleet comes to its end."""
    fleet = plan(weights, [FleetDevice("gpu", slots=slots)], hours=0.5)
    draw, state = random.Random(seed), after(fleet)
    for _ in range(3000):
        while (begun := start(fleet, state)) is not None:
            state = apply_fleet_event(state, begun)
        at_work = [c for c in state.cells.values() if c.began is not None]
        if not at_work:
            break
        assert len({c.began.slot for c in at_work if c.began}) == len(at_work) <= slots
        began = draw.choice(at_work).began
        known = state.of(began.cell).standing
        used, best, lost = known.device_seconds, known.best, draw.random() < 0.1
        while used < began.until and not (lost and draw.random() < 0.3):
            used, best = used + batch * draw.uniform(0.5, 1.0), best * draw.choice((1.0, 1.0, 1.2))
        done = not lost and (began.then == "finish" or draw.random() < 0.2)
        now = standing(used, best, expected=draw.choice((None, 0.1, 0.0)))
        how = "lost" if lost else "finished" if done else "paused"
        state = apply_fleet_event(state, ended(began.cell, how, slot=began.slot, standing=now))
    else:
        pytest.fail("it does not come to an end")
    assert state.spent <= fleet.hours * HOUR + slots * batch
    for cell in cells_of(fleet):
        known = state.of(cell.name)
        assert known.status in ("finished", "failed") or known.standing.device_seconds == 0


def test_nothing_is_funded_beyond_the_budget() -> None:
    fleet = plan((1.0,) * 8)
    state = after(fleet, *(ended(c.name, "paused", standing=standing(400.0, 2.0)) for c in cells_of(fleet)))
    assert sum(share.seconds for share in fund_cells(state, cells_of(fleet))) <= HOUR - 8 * 400.0 + 1e-9


def test_what_is_verified_is_no_longer_dealt_to() -> None:
    fleet = plan((1.0,))
    done = ended(A, "finished", standing=standing(5.0, 2.0))
    assert start(fleet, after(fleet, done)) is None
