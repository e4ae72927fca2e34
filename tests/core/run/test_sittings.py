"""What several sittings of one kernel claim together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.samples import a_problem, config, finalist, outcome, state_of, verified
from tunesmith.run.outcome import Outcome, Timing
from tunesmith.run.race import CLAIM, Pick, settle_figure, sittings_of, verified_choice

SPREAD = (0.996, 0.998, 0.999, 1.0, 1.0, 1.001, 1.002, 1.004)
BUSY = "in 20 of 20 rounds launches waited for a processor for 93 % of the time"


def sitting(speedup: float, disturbance: str = "", old: bool = False) -> Timing:
    draws, paired = () if old else (len(SPREAD),), (speedup,) * len(SPREAD)
    return Timing(SPREAD, paired, disturbance=disturbance, draws=draws)


@pytest.mark.parametrize(
    ("sittings", "claimed", "doubt"),
    [
        ((sitting(3.0), sitting(3.01)), 3.0, ""),
        ((sitting(3.0), sitting(3.2), sitting(2.95)), 3.05, ""),
        ((sitting(3.0), sitting(7.0), sitting(3.1)), 3.05, ""),  # a third decides
        ((sitting(7.0), sitting(3.0), sitting(3.1)), 3.05, ""),
        ((sitting(3.0, BUSY), sitting(3.2), sitting(3.3)), 3.25, ""),
        ((sitting(3.0), sitting(7.0)), 3.0, "its sittings disagree: 3.00×, 7.00×"),
        ((sitting(7.0), sitting(5.0), sitting(3.0)), 3.0, "its sittings disagree: 7.00×, 5.00×, 3.00×"),
        ((sitting(42.5, BUSY), sitting(15.8)), 15.8, f"the device was not left alone: {BUSY}"),
        ((sitting(15.8), sitting(42.5, BUSY), sitting(42.0, BUSY)), 15.8, BUSY),
        ((sitting(3.0),), 3.0, "it was timed in one sitting alone"),
        ((sitting(3.0, old=True), sitting(7.0, old=True)), 3.0, ""),  # as earlier versions claimed
        ((sitting(3.0), sitting(3.0, old=True)), 3.0, "it was timed in one sitting alone"),
    ],
)
def test_what_is_claimed(sittings: tuple[Timing, ...], claimed: float, doubt: str) -> None:
    found = settle_figure(sittings[0], sittings[1:], 1)
    assert found.speedup.value == pytest.approx(claimed, rel=0.02)
    assert doubt in found.doubt
    assert bool(found.doubt) == bool(doubt)
    assert found.speedup.low <= found.speedup.value <= found.speedup.high
    if found.doubt:  # the worst that was seen, and no more
        assert found.speedup.value == found.speedup.low <= min(s.seconds * min(s.paired) for s in sittings)


def test_what_agrees_covers_all_sittings() -> None:
    found = settle_figure(sitting(3.0), (sitting(3.2), sitting(3.1)), 1).speedup
    assert found.low < 3.05
    assert found.high > 3.15


PROBLEM = a_problem(workloads="only = { rows = 16, d = 256 }")
WINNER = config(32)


def with_draws(found: Outcome, disturbance: str = "") -> Outcome:
    def drawn(timing: Timing) -> Timing:
        return replace(timing, draws=(len(timing.samples),), disturbance=disturbance)

    return replace(found, results=tuple(replace(r, timing=drawn(r.timing)) for r in found.results))


def picked(raced: float, proven: float, disturbance: str = "") -> Pick:
    heats = with_draws(finalist(1, WINNER, {"only": raced}))
    seen = verified(WINNER, {"only": proven})
    seen = replace(seen, outcome=with_draws(seen.outcome, disturbance))
    state = state_of(outcome(0, WINNER, {"only": 1 / raced}), heats, seen, original={"only": 1.0})
    assert len(sittings_of(state, WINNER, "only")) == 2
    return verified_choice(PROBLEM, state).picks[0]


def test_what_is_not_certified_is_delivered_all_the_same_with_the_worst_figure() -> None:
    assert picked(3.0, 3.05).doubt == ""
    disagreeing, disturbed = picked(7.0, 3.0), picked(7.0, 3.0, BUSY)
    assert disagreeing.config == disturbed.config == WINNER
    assert disagreeing.speedup.value == pytest.approx(3.0, rel=0.02)
    assert "disagree" in disagreeing.doubt
    assert BUSY in disturbed.doubt


def test_what_is_no_gain_in_its_worst_sitting_and_not_certified_is_none() -> None:
    pick = picked(7.0, CLAIM * 0.99, BUSY)
    assert pick.config is None
