"""Warm starts between two GPUs of one kernel: what an earlier run on the other one is worth.

    python -m benchmarks.search.warm FOLDER --out RESULTS [--seeds 40] [--jobs 2] [--page docs/benchmarks/warm.md]

Every kernel that FOLDER has on several GPUs is searched on each with our default, from nothing (as compare.py
does, whose runs are used where RESULTS has them), and again beginning from such a run of 200 evaluations on each
other GPU, with the same seed. Writes RESULTS/default.jsonl and RESULTS/warm.jsonl, the configurations asked for by
space and seed; what is there is not run again. With --page the figures are written as a page.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.search import compare
from benchmarks.search.compare import here, spaces, traces, unmixed
from benchmarks.search.our_arm import prior_of, trace
from benchmarks.search.recorded import Recorded
from tunesmith.search.default import Default

EVALS = 50
# On these, and between them, the settings of search/earlier.py were chosen. No other space was looked at for it.
CHOSEN_ON = frozenset(
    {
        "convolution-A100",
        "convolution-A4000",
        "convolution-W6600",
        "dedispersion-A100",
        "dedispersion-W6600",
    }
)

Trace = list[int]


@dataclass(frozen=True)
class Pair:
    """A search on one GPU from what a run on another has found."""

    source: str
    target: str

    @property
    def was_chosen_on(self) -> bool:
        return {self.source, self.target} <= CHOSEN_ON


@dataclass(frozen=True)
class WarmJob:
    folder: Path
    pair: Pair
    seed: int
    earlier: tuple[int, ...]


def pairs(found: dict[str, Recorded]) -> list[Pair]:
    """Every two spaces of one kernel, both ways."""
    return [
        Pair(source.name, target.name)
        for target in found.values()
        for source in found.values()
        if source.kernel == target.kernel and source.name != target.name
    ]


def work(job: WarmJob) -> Trace:
    found = spaces(job.folder)
    prior = prior_of(found[job.pair.source], list(job.earlier), job.pair.source)
    return trace(Default(), found[job.pair.target], job.seed, EVALS, priors=(prior,))


def warm_traces(out: Path) -> dict[tuple[Pair, int], Trace]:
    path = out / "warm.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return {(Pair(line["source"], line["space"]), line["seed"]): line["asked"] for line in found}


def cold_jobs(folder: Path, out: Path, seeds: int) -> list[compare.Job]:
    """The runs from nothing that there are not yet."""
    done = traces(out, "default")
    names = dict.fromkeys(pair.target for pair in pairs(spaces(folder)))
    wanted = [(name, seed) for seed in range(seeds) for name in names if (name, seed) not in done]
    return [compare.Job(folder, "default", name, seed) for name, seed in wanted]


def warm_jobs(folder: Path, out: Path, seeds: int) -> list[WarmJob]:
    earlier, done = traces(out, "default"), warm_traces(out)
    return [
        WarmJob(folder, pair, seed, tuple(earlier[pair.source, seed]))
        for seed in range(seeds)
        for pair in pairs(spaces(folder))
        if (pair, seed) not in done
    ]


def run_all[T](
    pool: ProcessPoolExecutor, work: Callable[[T], Any], jobs: Sequence[T], file: Path, line: Callable[[T, Any], Any]
) -> None:
    """Each result is on disk as soon as it is there."""
    running = {pool.submit(work, job): job for job in jobs}
    for count, future in enumerate(as_completed(running), start=1):
        with file.open("a") as out:
            out.write(json.dumps(line(running[future], future.result())) + "\n")
        print(f"\r{file.stem}: {count} of {len(running)} runs", end="", file=sys.stderr)
