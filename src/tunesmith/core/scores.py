"""How good a configuration is by its short measurements: log speed-ups over the original around it."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence
from itertools import pairwise

from tunesmith.core.outcome import Outcome
from tunesmith.core.ports import Tried
from tunesmith.core.problem import Problem
from tunesmith.core.state import State
from tunesmith.core.stats import median

MOST = 30.0  # of a log speed-up, either way: a factor of 10**13
LEAST_NOISE = 0.002  # no clock here is better than that
USUAL_NOISE = 0.01  # as long as nobody knows
SENTINELS = 3  # that tell the noise
NEAREST = 5  # sentinels that tell the original's time around a trial: drift is slow, noise is not


class Yardstick:
    """The original's time around each trial: the median of the nearest sentinels forgives an outlier."""

    def __init__(self, state: State) -> None:
        self._ids: dict[str, list[int]] = {}
        self._seconds: dict[str, list[float]] = {}
        self._medians: dict[tuple[str, int], float] = {}
        for outcome in state.sentinels():
            for result in outcome.results:
                if result.timing is not None:
                    self._ids.setdefault(result.workload, []).append(outcome.trial.id)
                    self._seconds.setdefault(result.workload, []).append(result.timing.seconds)

    def seconds(self, workload: str, trial: int) -> float:
        after = bisect(self._ids[workload], trial)
        start = max(0, min(after - NEAREST // 2, len(self._ids[workload]) - NEAREST))
        if (workload, start) not in self._medians:
            self._medians[workload, start] = median(self._seconds[workload][start : start + NEAREST])
        return self._medians[workload, start]

    def speedups(self, outcome: Outcome) -> dict[str, float]:
        return {
            r.workload: self.seconds(r.workload, outcome.trial.id) / r.timing.seconds
            for r in outcome.results
            if r.timing is not None
        }


def score(problem: Problem, found: dict[str, float]) -> float | None:
    """Log of the weighted geometric mean; the original stays (1.0) where a configuration cannot run."""
    if not found:
        return None
    weights = [w.weight for w in problem.workloads]
    logs = [_log(found.get(w.name, 1.0)) for w in problem.workloads]
    return sum(weight * log for weight, log in zip(weights, logs, strict=True)) / sum(weights)


def _log(speedup: float) -> float:
    """Clipped: one absurd figure must not blind a model to all the others. Below zero there is none."""
    return max(-MOST, min(MOST, math.log(speedup) if speedup else -math.inf))


def scores(problem: Problem, state: State) -> tuple[Tried, ...]:
    """Every configuration tried, in order; None where it failed, or needed no trial to."""
    yardstick = Yardstick(state)
    names = [w.name for w in problem.workloads]
    tried = [Tried(s.config, None, (None,) * len(names)) for s in state.unable if s.config is not None]
    for outcome in state.searched():
        if outcome.trial.config is not None:
            found = yardstick.speedups(outcome)
            at = tuple(_log(found[name]) if name in found else None for name in names)
            tried.append(Tried(outcome.trial.config, score(problem, found), at))
    return tuple(tried)


def noise(state: State) -> float:
    """Relative: how far apart two short measurements of the same kernel are, by those of the original."""
    times: dict[str, list[float]] = {}
    for outcome in state.sentinels():
        for result in outcome.results:
            if result.timing is not None and outcome.trial.effort == "short":
                times.setdefault(result.workload, []).append(math.log(result.timing.seconds))
    spreads = [
        median([abs(b - a) for a, b in pairwise(logs)]) for logs in times.values() if len(logs) >= SENTINELS
    ]
    return max(LEAST_NOISE, median(spreads)) if spreads else USUAL_NOISE


def last_improvement(tried: Sequence[Tried], least: float) -> int:
    """How many had been tried when last one was better than all before it, in general or at a workload."""
    best: dict[int, float] = {}
    last = 0
    for number, one in enumerate(tried, 1):
        for place, value in enumerate((one.score, *one.at)):
            if value is not None and value > best.get(place, -math.inf):
                if value > best.get(place, -math.inf) + least:
                    last = number
                best[place] = value
    return last
