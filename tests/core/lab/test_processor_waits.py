"""What Linux counts of threads that stood ready, and had no processor."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time

import pytest

from tunesmith.lab.disturbance import TAKEN, Waits, read_waits

SECONDS = 1.0


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


@pytest.mark.skipif(sys.platform != "linux", reason="nobody counts")
def test_a_neighbour_on_every_processor_is_seen() -> None:
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=spin, args=(4 * SECONDS,)) for _ in range(2 * (os.cpu_count() or 1))]
    for other in others:
        other.start()
    time.sleep(0.2)
    before = read_waits()
    spin(SECONDS)
    share = before.share_until(read_waits())
    for other in others:
        other.kill()
        other.join()
    assert share > 4 * TAKEN


def test_shares() -> None:
    before = Waits({"1": 0, "2": 5_000_000}, 100, at=10.0)
    assert before.share_until(
        Waits({"1": 10_000_000, "2": 5_000_000, "3": 9}, 100, at=10.1)
    ) == pytest.approx(0.1)
    assert before.share_until(Waits({"2": 5_000_000}, 101, at=10.1)) == 0.0, "one tick is no evidence"
    assert before.share_until(Waits({}, 100 + 20 * (os.cpu_count() or 1), at=10.1)) > 0.5
    assert Waits().share_until(Waits()) == 0.0
