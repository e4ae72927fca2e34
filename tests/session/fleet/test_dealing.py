"""The budget is dealt by weight and expected gain, and kept."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fleets import ended, plan, standing, verified
from tunesmith.session.fleet.dealing import (
    HOPE,
    OPENING,
    expected_gain,
    funded,
    next_start,
)
from tunesmith.session.fleet.plans import HOUR, FleetDevice, FleetPlan, cells_of, slots_of
from tunesmith.session.fleet.record import (
    CellBegan,
    CellState,
    FleetEvent,
    FleetState,
    HeadBegan,
    apply,
    fold,
)

A, B = "p0@gpu+expert", "p1@gpu+expert"


def after(own: FleetPlan, *events: FleetEvent) -> FleetState:
    return fold([HeadBegan(own.hours), *events])


def start(own: FleetPlan, state: FleetState) -> CellBegan | None:
    slots = list(slots_of(own))
    taken = {c.began.slot for c in state.cells.values() if c.began is not None}
    found = next_start(state, cells_of(own), [slot for slot in slots if slot.name not in taken], slots)
    return found[1] if found else None


def test_every_cell_has_a_first_share_the_heaviest_first() -> None:
    own = plan((1.0, 5.0))
    share = OPENING * HOUR / 2
    assert start(own, after(own)) == CellBegan(B, "gpu/here/0", share, "stop")
    began = CellBegan(B, "gpu/here/0", share, "stop")
    paused = after(own, began, ended(B, "paused", share, standing=standing(share, 3.0)))
    assert start(own, paused) == CellBegan(A, "gpu/here/0", share, "stop")


@pytest.mark.parametrize(
    ("weights", "bests", "heir"),
    [
        ((1.0, 1.0), (1.0, 2.0), B),  # the better got further with the same
        ((1.0, 1.0), (2.0, 1.0), A),
        ((9.0, 1.0), (1.2, 1.3), A),  # and the heavier counts more
    ],
)
def test_then_by_weight_and_what_the_last_share_brought(
    weights: tuple[float, float], bests: tuple[float, float], heir: str
) -> None:
    own = plan(weights)
    share = OPENING * HOUR / 2
    state = after(
        own, *(ended(c, "paused", standing=standing(share, b)) for c, b in zip((A, B), bests, strict=True))
    )
    begun = start(own, state)
    assert begun is not None
    assert (begun.cell, begun.until) == (heir, 2 * share), "it is given what it has had, again"


def test_no_more_cells_begin_than_can_come_to_their_search() -> None:
    own = plan((1.0, 1.0, 1.0))  # first shares of 300 s, and the original takes 1000 s
    first = ended(A, "paused", standing=standing(1000.0, evaluations=0))
    begun = start(own, after(own, first))
    assert begun is not None
    assert (begun.cell, begun.until) == (A, 2000.0), "it has paid its entry, others have not"
    second = ended(A, "paused", standing=standing(2000.0, 1.001, headroom=0.001))
    begun = start(own, after(own, first, second))
    assert begun is not None
    assert (begun.cell, begun.then) == (B, "stop"), "there is enough for one more"
    third = ended(B, "paused", standing=standing(1000.0, evaluations=0, headroom=0.001))
    begun = start(own, after(own, first, second, third))
    assert begun is not None
    assert begun.then == "finish", "and not for the last"


def test_what_the_searcher_expects_and_the_floor_count() -> None:
    dry = CellState(sessions=3, searches=3, standing=standing(5.0))
    assert expected_gain(dry) < HOPE / 20
    assert expected_gain(CellState(searches=3, standing=standing(5.0, expected=0.2))) == 0.2
    assert expected_gain(CellState(searches=3, standing=standing(5.0, expected=0.2, headroom=0.05))) == 0.05
    assert expected_gain(CellState(standing=standing(headroom=-0.1))) == 0


def test_who_has_nothing_to_expect_finishes_while_the_budget_is_there() -> None:
    own = plan((1.0, 1.0))
    state = after(
        own, ended(A, "paused", standing=standing(10.0, headroom=0.0)), CellBegan(B, "x", 20.0, "stop")
    )
    assert start(own, state) == CellBegan(A, "gpu/here/0", 10.0, "finish")


def test_when_the_budget_is_used_up_what_has_begun_finishes_and_nothing_begins() -> None:
    own = plan((1.0, 1.0, 1.0))
    state = after(own, ended(A, "paused", HOUR), ended(B, "finished", standing=standing(5.0)))
    assert start(own, state) == CellBegan(A, "gpu/here/0", HOUR, "finish")
    state = apply(state, ended(A, "finished", HOUR))
    assert start(own, state) is None


def test_a_cell_goes_on_elsewhere_if_there_is_another_place() -> None:
    one, two = FleetDevice("gpu", slots=1), FleetDevice("gpu", slots=2)
    for device, slot in ((two, "gpu/here/1"), (one, "gpu/here/0")):
        own = plan((1.0,), [device])
        begun = start(own, after(own, ended(A, "lost", 5.0)))
        assert begun is not None
        assert begun.slot == slot


def test_a_head_that_begins_again_decides_alike() -> None:
    own = plan((1.0, 2.0, 3.0))
    events = [ended(A, "paused", 5.0), ended(B, "lost", 3.0)]
    assert start(own, after(own, *events)) == start(own, after(own, *events, HeadBegan(own.hours)))


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.floats(0.01, 100), min_size=1, max_size=12),
    slots=st.integers(1, 4),
    batch=st.floats(0.1, 300),
    seed=st.integers(0, 1 << 30),
)
def test_the_budget_is_kept_but_for_a_batch_of_each_slot(
    weights: list[float], slots: int, batch: float, seed: int
) -> None:
    """Whatever searches bring, whoever is lost: all that began finish, and the fleet comes to its end."""
    own = plan(weights, [FleetDevice("gpu", slots=slots)], hours=0.5)
    draw, state = random.Random(seed), after(own)
    for _ in range(3000):
        while (begun := start(own, state)) is not None:
            state = apply(state, begun)
        at_work = [c for c in state.cells.values() if c.began is not None]
        if not at_work:
            break
        assert len({c.began.slot for c in at_work if c.began}) == len(at_work) <= slots
        began = draw.choice(at_work).began
        assert began is not None
        known = state.of(began.cell).standing
        used, best, lost = known.device_seconds, known.best, draw.random() < 0.1
        while used < began.until and not (lost and draw.random() < 0.3):
            used, best = used + batch * draw.uniform(0.5, 1.0), best * draw.choice((1.0, 1.0, 1.2))
        done = not lost and (began.then == "finish" or draw.random() < 0.2)
        now = standing(used, best, expected=draw.choice((None, 0.1, 0.0)))
        how = "lost" if lost else "finished" if done else "paused"
        state = apply(state, ended(began.cell, how, slot=began.slot, standing=now))
    else:
        pytest.fail("it does not come to an end")
    assert state.spent <= own.hours * HOUR + slots * batch
    for cell in cells_of(own):
        known = state.of(cell.name)
        assert known.status in ("finished", "failed") or known.standing.device_seconds == 0


def test_nothing_is_funded_beyond_the_budget() -> None:
    own = plan((1.0,) * 8)
    state = after(own, *(ended(c.name, "paused", standing=standing(400.0, 2.0)) for c in cells_of(own)))
    assert sum(share.seconds for share in funded(state, cells_of(own))) <= HOUR - 8 * 400.0 + 1e-9


def test_what_is_verified_is_no_longer_dealt_to() -> None:
    own = plan((1.0,))
    done = ended(A, "finished", standing=standing(5.0, 2.0))
    assert verified().speedup == 2.0
    assert start(own, after(own, done)) is None
