"""Recorded spaces: every feasible configuration of a kernel on one GPU, with its time.

A space is a gzipped JSON file: `params` (name → values), `configs` (lists of values in that order), `time_ms`
(one for each, null where it failed), and perhaps `cost_s` (what each evaluation took: compiling, verifying
and timing). The kernel and the GPU are read from its name, `kernel-GPU.json.gz`.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tunesmith.space.configset import ComboTable, Config, ConfigSet, Param
from tunesmith.space.space import Space


@dataclass(frozen=True)
class Recorded:
    """Configurations in the order of the space; `times` in milliseconds, NaN where one failed."""

    name: str
    space: Space
    rows: NDArray[np.int64]
    times: NDArray[np.float64]
    costs: NDArray[np.float64] | None = None  # seconds of each evaluation, where they were recorded

    @property
    def kernel(self) -> str:
        return self.name.partition("-")[0]

    @property
    def gpu(self) -> str:
        return self.name.partition("-")[2].replace("_", " ")

    @property
    def best(self) -> float:
        return float(np.nanmin(self.times))

    @cached_property
    def best_number(self) -> int:
        return int(np.nanargmin(self.times))

    @cached_property
    def configs(self) -> ConfigSet:
        columns = []
        for param, values in zip(self.space.params, self.rows.T, strict=True):
            columns.append(np.array([param.positions[int(value)] for value in values], dtype=np.uint8))
        count = len(self.rows)
        table = ComboTable(
            params=tuple(range(len(columns))),
            columns=tuple(columns),
            sets=(1,),
            groups=np.zeros(count, dtype=np.uint8),
            grouped=np.arange(count, dtype=np.int32),
            starts=np.array([0, count]),
        )
        return ConfigSet(self.space.params, (table,), 1, 1)

    @cached_property
    def scores(self) -> tuple[float | None, ...]:
        """Log speed-ups over the median, None where the configuration failed."""
        middle = float(np.nanmedian(self.times))
        return tuple(None if np.isnan(time) else float(np.log(middle / time)) for time in self.times)

    def config(self, index: int) -> Config:
        return self.configs[index]


def read(path: Path) -> Recorded:
    with gzip.open(path, "rt") as file:
        data = json.load(file)
    params = tuple(Param(name, tuple(values)) for name, values in data["params"].items())
    rows = np.array(data["configs"], dtype=np.int64)
    times = np.array([np.nan if time is None else time for time in data["time_ms"]], dtype=np.float64)
    places = [[param.positions[int(value)] for value in rows[:, i]] for i, param in enumerate(params)]
    order = np.lexsort(places[::-1])
    costs = np.array(data["cost_s"], dtype=np.float64)[order] if "cost_s" in data else None
    return Recorded(path.name.removesuffix(".json.gz"), Space(params), rows[order], times[order], costs)


def read_all(folder: Path) -> list[Recorded]:
    return [read(path) for path in sorted(folder.glob("*.json.gz"))]


def nearness(recorded: Recorded, trace: list[int], evals: int) -> NDArray[np.float64]:
    """Optimum ÷ best so far after each evaluation; 0 until something worked, held where a search stopped."""
    times = np.where(np.isnan(recorded.times), np.inf, recorded.times)[trace[:evals]]
    so_far = recorded.best / np.minimum.accumulate(times)
    last = so_far[-1] if len(so_far) else 0.0
    return np.concatenate([so_far, np.full(evals - len(so_far), last)])
