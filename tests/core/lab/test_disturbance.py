"""Rounds that others disturbed, on a simulated GPU that is shared in slices, and by recorded waits."""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from statistics import median

import pytest

from tunesmith.lab.disturbance import (
    BY_WAITS,
    PRECISE,
    TAKEN,
    Judgement,
    Round,
    Sample,
    Waits,
    judge_rounds,
    read_waits,
)

PARTS, WANTED, LEAST = 4, 31, 15
SLICE, NOISE = 2e-3, 0.004
ORIGINAL, CANDIDATE = 40e-6, 10e-6  # seconds of a launch: 4×
LENGTH = 2.2e-3  # of a sample


class SharedGpu:
    """Its own contexts and another's have it in turn, while the other one wants it."""

    def __init__(self, wants: Callable[[float], bool], pace: Callable[[float], float], seed: int) -> None:
        self.now, self._wants, self._pace, self._random = 0.0, wants, pace, random.Random(seed)

    def sample(self, launch: float, seconds: float) -> Sample:
        """A chain begins at a slice's start, because what waits for the device is let in there."""
        length = max(1, round(seconds / launch))
        left, parts = SLICE, []
        for part in range(PARTS):
            count = (part + 1) * length // PARTS - part * length // PARTS
            work = count * launch * self._pace(self.now) * self._random.gauss(1, NOISE)
            began = self.now
            while work > left:
                self.now, work = self.now + left, work - left
                self.now += SLICE if self._wants(self.now) else 0.0
                left = SLICE
            self.now, left = self.now + work, left - work
            parts.append((self.now - began, count))
        self.now += 2e-4  # the host
        return Sample(sum(taken for taken, _ in parts) / length, tuple(taken / n for taken, n in parts))


def rounds_of(
    gpu: SharedGpu, launches: tuple[float, float] = (ORIGINAL, CANDIDATE), alike: bool = True
) -> Iterator[Round]:
    while True:
        yield [gpu.sample(t, LENGTH if alike or t > CANDIDATE else LENGTH / 4) for t in launches]


def judged(gpu: SharedGpu, launches: tuple[float, float] = (ORIGINAL, CANDIDATE)) -> tuple[float, Judgement]:
    """As the stopwatch does it: what is disturbed is taken again, twice as many rounds at most."""
    rounds: list[Round] = []
    for taken in rounds_of(gpu, launches):
        rounds.append(taken)
        found = judge_rounds(rounds, WANTED, PRECISE)
        if len(rounds) >= 2 * WANTED or (len(rounds) >= WANTED and len(found.kept) >= WANTED):
            break
    found = judge_rounds(rounds, LEAST, PRECISE)
    return median(rounds[n][0].seconds / rounds[n][1].seconds for n in found.kept), found


def never(_now: float) -> bool:
    return False


def always(_now: float) -> bool:
    return True


def steady(_now: float) -> float:
    return 1.0


def on_and_off(period: float) -> Callable[[float], bool]:
    return lambda now: now % period < period / 2


def test_a_slice_hits_the_long_samples_alone_where_they_are_not_alike() -> None:
    """What was wrong before: nothing is seen in the spread of either."""
    rounds = list(islice(rounds_of(SharedGpu(always, steady, 1), alike=False), WANTED))
    ratios = sorted(original.seconds / candidate.seconds for original, candidate in rounds)
    assert ratios[0] > 1.5 * ORIGINAL / CANDIDATE
    assert ratios[-3] / ratios[2] < 1.05, "and an interval of them is narrow"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("wants", [always, on_and_off(0.02), on_and_off(0.1), on_and_off(0.5)])
def test_nothing_that_a_neighbour_bends_is_quiet(wants: Callable[[float], bool], seed: int) -> None:
    ratio, found = judged(SharedGpu(wants, steady, seed))
    assert found.disturbance or ratio == pytest.approx(ORIGINAL / CANDIDATE, rel=0.03)
    if wants is always:
        assert "rounds launches were held up" in found.disturbance


def test_a_neighbour_that_is_there_half_of_the_time_costs_rounds_and_no_more() -> None:
    ratio, found = judged(SharedGpu(on_and_off(0.1), steady, 3))
    assert not found.disturbance
    assert ratio == pytest.approx(4.0, rel=0.02)


def test_a_quiet_device_raises_no_alarm() -> None:
    found = [judged(SharedGpu(never, steady, seed)) for seed in range(120)]
    assert not any(one.disturbance for _, one in found)
    assert sum(len(one.kept) < WANTED for _, one in found) == 0


def test_a_device_that_grows_warm_has_drifted() -> None:
    gpu = SharedGpu(never, lambda now: 1 + min(0.13, now), 1)
    assert "the original drifted from " in judged(gpu)[1].disturbance


def test_what_a_candidate_does_by_itself_counts() -> None:
    """One that is slow every third time, in work put off, may not have those rounds taken again."""
    fair = [[Sample(1.0, (1.0,)), Sample(0.5 if n % 3 else 2.0, (0.5 if n % 3 else 2.0,))] for n in range(30)]
    assert judge_rounds(fair, LEAST, PRECISE) == Judgement(tuple(range(30)))
    both = [[Sample(1.0 if n % 3 else 4.0, (1.0 if n % 3 else 4.0,)), fair[n][1]] for n in range(30)]
    assert len(judge_rounds(both, LEAST, PRECISE).kept) == 20


@pytest.mark.parametrize(
    ("waited", "by", "kept", "disturbance"),
    [
        ((0.0,) * 20, BY_WAITS, 20, ""),
        ((0.04,) * 20, BY_WAITS, 20, ""),
        ((0.5, 0.0) * 10, BY_WAITS, 20, "in 10 of 20 rounds launches waited for a processor for 50 %"),
        ((0.5, 0.0, 0.0, 0.0, 0.0) * 4, BY_WAITS, 16, ""),
        ((0.93,) * 20, BY_WAITS, 20, "in 20 of 20 rounds launches waited for a processor for 93 %"),
    ],
)
def test_by_what_threads_waited(waited: tuple[float, ...], by: object, kept: int, disturbance: str) -> None:
    rounds = [[Sample(1.0), Sample(0.5, waited=share)] for share in waited]
    found = judge_rounds(rounds, LEAST, BY_WAITS)
    assert (len(found.kept), disturbance in found.disturbance) == (kept, True)
    assert bool(found.disturbance) == bool(disturbance)


def test_samples_of_a_processor_in_two_sizes_are_no_evidence() -> None:
    """They come so on a quiet one too: the interval tells."""
    rounds = [[Sample(1.0 + n % 2), Sample(0.5)] for n in range(20)]
    assert judge_rounds(rounds, LEAST, BY_WAITS) == Judgement(tuple(range(20)))


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
