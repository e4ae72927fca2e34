"""Warm starts between two GPUs of one kernel: what an earlier run on the other one is worth.

    python -m benchmarks.search.warm FOLDER --out RESULTS [--seeds 50] [--jobs 2]

An earlier run is one of our own default on the other GPU, as compare.py left it in RESULTS: the run with the
same seed. Writes RESULTS/warm.jsonl, for every space and seed the configurations asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from benchmarks.search.compare import here, spaces, traces, unmixed
from benchmarks.search.our_arm import prior_of, trace
from benchmarks.search.recorded import Recorded
from tunesmith.search.default import Default

EVALS = 50


@dataclass(frozen=True)
class Job:
    folder: Path
    source: str
    target: str
    seed: int
    earlier: tuple[int, ...]


def pairs(found: dict[str, Recorded]) -> list[tuple[str, str]]:
    """From and to: every two spaces of one kernel, both ways."""
    return [
        (source.name, target.name)
        for target in found.values()
        for source in found.values()
        if source.kernel == target.kernel and source.name != target.name
    ]


def work(job: Job) -> tuple[Job, list[int]]:
    found = spaces(job.folder)
    prior = prior_of(found[job.source], list(job.earlier), job.source)
    return job, trace(Default(), found[job.target], job.seed, EVALS, priors=(prior,))


def missing(folder: Path, out: Path, seeds: int) -> list[Job]:
    """One for every pair and seed for which there is an earlier run, and no result yet."""
    earlier, done = traces(out, "default"), traces(out, "warm")
    return [
        Job(folder, source, target, seed, tuple(earlier[source, seed]))
        for seed in range(seeds)
        for source, target in pairs(spaces(folder))
        if (source, seed) in earlier and (target, seed) not in done
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="the recorded spaces, *.json.gz")
    parser.add_argument("--out", type=Path, required=True, help="where compare.py wrote, and this one does")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    commit = here()
    unmixed(given.out, ["default", "warm"], commit)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(given.jobs) as pool:
        running = [pool.submit(work, job) for job in missing(given.folder, given.out, given.seeds)]
        for count, future in enumerate(as_completed(running), start=1):
            job, asked = future.result()
            line = {
                "space": job.target,
                "source": job.source,
                "seed": job.seed,
                "commit": commit,
                "asked": asked,
            }
            with (given.out / "warm.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(f"\r{count} of {len(running)} runs", end="", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
