"""Sittings: the measurements of one kernel at one workload, each in a process of its own and apart in time;
and what may be claimed by them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tunesmith.run.outcome import (
    Interval,
    Result,
    Timing,
    median_interval,
    sittings_interval,
    speedup_interval,
)
from tunesmith.run.state import State
from tunesmith.space.params import Config

AGREE = 1.10  # figures of two sittings that agree are no further apart
NEEDED = 2  # quiet sittings that agree, for a certified claim


@dataclass(frozen=True)
class Settled:
    speedup: Interval
    doubt: str = ""  # why it is not certified, in a sentence; empty: it is


def later_sittings(state: State, config: Config, workload: str) -> tuple[Timing, ...]:
    """By what is delivered, called through its dispatch after it was verified: in another process."""
    results: list[Result] = [
        call.result
        for served in state.served
        for call in served.calls
        if call.config == config and call.result.workload == workload
    ]
    found = [r.timing for r in results if r.timing is not None and r.timing.ratios]
    return tuple(found[-1:])


def settle(verified: Timing, others: Sequence[Timing], seed: int) -> Settled:
    """The largest group of quiet sittings that agree makes the figure, where there is a choice one with the
    verification. Where no two do, the worst of all is what can be said. Journals of earlier versions, whose
    timings do not name their draws, claim what the verification gave, as they did then."""
    if not verified.draws:
        return Settled(median_interval(verified.ratios, seed))
    sittings = [verified, *(timing for timing in others if timing.draws)]
    quiet = [timing for timing in sittings if timing.quiet]
    figures = {id(timing): speedup_interval(timing, seed) for timing in sittings}
    for count in range(len(quiet), NEEDED - 1, -1):
        for group in combinations(quiet, count):
            if _agree([figures[id(timing)] for timing in group], all(len(t.draws) > 1 for t in group)):
                own, every = sittings_interval(group, seed), sittings_interval(quiet, seed)
                # One that disagrees shows how far the next may be: the figure leaves it out, the ends do not.
                return Settled(Interval(own.value, min(own.low, every.low), max(own.high, every.high)))
    worst = min(figures.values(), key=lambda interval: interval.low)
    highest = max(interval.high for interval in figures.values())
    return Settled(Interval(worst.low, worst.low, highest), _doubt(sittings, list(figures.values())))


def _agree(figures: Sequence[Interval], vary: bool) -> bool:
    """Sittings on inputs of their own, where time depends on them, may be as far apart as their draws are."""
    values = [figure.value for figure in figures]
    overlap = max(figure.low for figure in figures) <= min(figure.high for figure in figures)
    return max(values) <= AGREE * min(values) or (vary and overlap)


def _doubt(sittings: Sequence[Timing], figures: Sequence[Interval]) -> str:
    if disturbed := [timing.disturbance for timing in sittings if not timing.quiet]:
        return f"the device was not left alone: {disturbed[0]}"
    if len(sittings) < NEEDED:
        return "it was timed in one sitting alone"
    return f"its sittings disagree: {', '.join(f'{figure.value:.2f}×' for figure in figures)}"
