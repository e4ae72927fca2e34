"""A time can exist only where the status is ok."""

from __future__ import annotations

import pytest

from tests.samples import config, outcome
from tunesmith.problem.plan import Status
from tunesmith.run.outcome import Outcome, Result, Timing, Trial

BAD = [status for status in Status if status is not Status.OK]


@pytest.mark.parametrize("status", BAD)
def test_a_result_that_is_not_ok_has_no_time(status: Status) -> None:
    with pytest.raises(ValueError, match=f"a {status} result carries no time"):
        Result("w", status, Timing((1.0,)))
    assert not Result("w", status, detail="why").ok
    assert Result("w", Status.OK, Timing((1.0,))).ok


def test_a_time_has_samples_and_pairs() -> None:
    assert Timing((3.0, 1.0, 2.0)).seconds == 2.0
    assert Timing((2.0, 4.0)).ratios == ()
    assert Timing((2.0, 4.0), paired=(6.0, 6.0)).ratios == (3.0, 1.5)  # original ÷ candidate
    with pytest.raises(ValueError, match="without samples"):
        Timing(())
    with pytest.raises(ValueError, match="1 samples cannot be paired with 2"):
        Timing((1.0, 2.0), paired=(1.0,))


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ({"a": Status.WRONG, "b": 1.0}, Status.OK),
        ({"a": Status.INFEASIBLE, "b": Status.CRASHED}, Status.INFEASIBLE),
        ({"a": Status.CRASHED, "b": Status.INFEASIBLE}, Status.CRASHED),
        ({}, Status.INFEASIBLE),
    ],
)
def test_one_word_for_the_whole_trial(results: dict[str, float | Status], status: Status) -> None:
    assert outcome(0, config(64), results).status is status


def test_results_by_workload() -> None:
    found = outcome(0, config(64), {"a": 1.0, "b": Status.WRONG})
    assert found.result("b") == found.results[1]
    assert found.result("c") is None
    assert Outcome(Trial(0, None, (), "short"), ()).result("a") is None
