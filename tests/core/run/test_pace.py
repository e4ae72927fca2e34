"""How many trials are in flight, and how many are asked for at a time."""

from __future__ import annotations

import pytest

from tunesmith.run.budget import BLIND, PER_SPARE_ALONE, plan_batches

WIDTH = 8
KNOWN = range(0, 2000, 7)


def in_flight(known: int, devices: int, width: int = WIDTH) -> int:
    """The most there are: down to enough nobody asks, then a batch is asked for."""
    batch, enough = plan_batches(known, devices, width)
    return batch + enough


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 8, 16, 17, 64, 1000])
def test_every_device_has_a_trial_once_as_many_are_known(devices: int) -> None:
    for known in KNOWN:
        batch, enough = plan_batches(known, devices, WIDTH)
        assert batch >= 1
        assert enough >= 0
        assert in_flight(known, devices) >= min(devices, max(BLIND, known))
        assert in_flight(known, devices) <= devices + max(WIDTH - 1, devices // 2)
    most = [in_flight(known, devices) for known in KNOWN]
    assert most == sorted(most), "the more is known, the more may wait"


def test_one_device_has_one_that_waits_and_more_when_more_is_known() -> None:
    assert plan_batches(0, 1, WIDTH) == plan_batches(2 * PER_SPARE_ALONE - 1, 1, WIDTH) == (1, 1)
    assert in_flight(1000, 1) == WIDTH
    assert {plan_batches(known, 1, 1) for known in KNOWN} == {(1, 0)}, "with a width of 1 nothing waits"


def test_several_devices_have_none_that_wait_as_long_as_little_is_known() -> None:
    assert [in_flight(0, devices) for devices in (2, 4, 16)] == [2, 4, 16]
    assert in_flight(0, 64) == BLIND, "more would be chosen blindly"
    assert in_flight(40, 64) == 40


def test_the_more_is_known_the_more_are_asked_for_at_once() -> None:
    assert [plan_batches(known, 64, WIDTH)[0] for known in (0, 200, 1000)] == [4, 6, 16]
    assert [plan_batches(known, 4, WIDTH)[0] for known in (0, 1000)] == [1, 3]
