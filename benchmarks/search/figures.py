"""From runs to figures: means over spaces, with the interval over seeds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.search.compare import EVALS, traces
from benchmarks.search.recorded import Recorded, nearness

BUDGETS = (25, 50, 100, 200)


@dataclass(frozen=True)
class Curves:
    """Optimum ÷ best so far: [space, seed, evaluation], over the seeds that every space has."""

    spaces: tuple[str, ...]
    values: NDArray[np.float64]

    @property
    def seeds(self) -> int:
        return int(self.values.shape[1])

    def at(self, budget: int) -> NDArray[np.float64]:
        """[space, seed]"""
        return self.values[:, :, budget - 1]

    def mean(self, budget: int) -> float:
        return float(self.at(budget).mean())

    def interval(self, budget: int) -> float:
        """Half the 95 % interval of the mean over spaces; seeds are independent, spaces fixed."""
        return interval(self.at(budget))


def interval(values: NDArray[np.float64]) -> float:
    """Of the mean of [space, seed]: from the spread over seeds within each space."""
    if values.shape[1] < 2:
        return float("nan")
    variances = values.var(axis=1, ddof=1) / values.shape[1]
    return float(1.96 * np.sqrt(variances.sum()) / len(values))


def curves(found: dict[str, Recorded], out: Path, arm: str, evals: int = EVALS) -> Curves | None:
    """None where the arm has not been run on every space."""
    runs = traces(out, arm)
    names = tuple(sorted({space for space, _ in runs}))
    if not names:
        return None
    common = sorted(set.intersection(*({seed for space, seed in runs if space == name} for name in names)))
    if not common:
        return None
    values = [[nearness(found[name], runs[name, seed], evals) for seed in common] for name in names]
    return Curves(names, np.array(values))


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    first, *others = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return [first, "|" + "---|" * len(head), *others]


def short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
