"""How a search went: the speed-up of every evaluation, and the best so far, over all and at each workload."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.core.ports import Tried

MOST = 50.0  # log: beyond it a ratio is no measurement


@dataclass(frozen=True)
class Best:
    workload: str  # empty: the weighted geometric mean over all
    steps: tuple[tuple[int, float], ...]  # evaluation, counted from 1, and the speed-up it reached


@dataclass(frozen=True)
class History:
    """By the short measurements of the search, against the original around each."""

    speedups: tuple[float | None, ...] = ()  # of every evaluation, over all workloads; None: it failed
    best: tuple[Best, ...] = ()

    @property
    def failed(self) -> int:
        return self.speedups.count(None)


def history(tried: Sequence[Tried], workloads: Sequence[str]) -> History:
    overall = [known(t.score) for t in tried]
    best = [Best("", _steps(overall))]
    if len(workloads) > 1:
        best += [Best(name, _steps([score_at(t, i) for t in tried])) for i, name in enumerate(workloads)]
    return History(tuple(None if log is None else ratio(log) for log in overall), tuple(best))


def score_at(tried: Tried, place: int) -> float | None:
    """The log speed-up at a workload; where there is one alone it is the overall score."""
    if not tried.at:
        return known(tried.score) if place == 0 else None
    return known(tried.at[place]) if place < len(tried.at) else None


def known(log: float | None) -> float | None:
    return log if log is not None and math.isfinite(log) else None


def ratio(log: float) -> float:
    """As it is written down: six digits are more than a clock can tell, and the same on every machine."""
    return float(f"{math.exp(min(max(log, -MOST), MOST)):.6g}")


def _steps(logs: Sequence[float | None]) -> tuple[tuple[int, float], ...]:
    steps: list[tuple[int, float]] = []
    best = -math.inf
    for number, log in enumerate(logs, 1):
        if log is not None and log > best:
            best = log
            steps.append((number, ratio(log)))
    return tuple(steps)
