"""Warm starts between two GPUs of one kernel: what an earlier run on the other one is worth.

    python -m benchmarks.search.warm FOLDER --out RESULTS [--seeds 40] [--jobs 2] [--page PAGE.md]
        [--into SPACE]

Every kernel that FOLDER has on several GPUs is searched on each with our default, from nothing (as compare.py
does, whose runs are used where RESULTS has them), and again from such a run of 200 evaluations on each of the
other GPUs, with the same seed. Writes RESULTS/default.jsonl and RESULTS/warm.jsonl, the configurations asked
for by space and seed; what is there is not run again. With --page the figures are written as a page. With
--into only the pairs that lead to that space are run, and printed; earlier runs have 40 seeds, which seeds
beyond take again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.search import compare
from benchmarks.search.compare import here, spaces, traces, unmixed
from benchmarks.search.our_arm import prior_of, trace
from benchmarks.search.recorded import Recorded
from tunesmith.search.default import Default

EVALS = 50
COLD_EVALS = compare.EVALS
EARLIER_SEEDS = 40
SHORT = f"default-{EVALS}"  # runs from nothing with which nobody begins; compare.py would take them for whole
# Between these the settings of search/models.py were chosen.
CHOSEN_ON = frozenset(
    {"convolution-A100", "convolution-A4000", "convolution-W6600", "dedispersion-A100", "dedispersion-W6600"}
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
class ColdJob:
    folder: Path
    space: str
    seed: int

    @property
    def is_short(self) -> bool:
        return self.seed >= EARLIER_SEEDS

    def trace(self) -> Trace:
        evals = EVALS if self.is_short else COLD_EVALS
        return trace(Default(), spaces(self.folder)[self.space], self.seed, evals)

    @property
    def line(self) -> dict[str, object]:
        return {"space": self.space, "seed": self.seed}


@dataclass(frozen=True)
class WarmJob:
    folder: Path
    pair: Pair
    seed: int
    earlier: tuple[int, ...]

    def trace(self) -> Trace:
        found = spaces(self.folder)
        prior = prior_of(found[self.pair.source], list(self.earlier), self.pair.source)
        return trace(Default(), found[self.pair.target], self.seed, EVALS, priors=(prior,))

    @property
    def line(self) -> dict[str, object]:
        return {"space": self.pair.target, "source": self.pair.source, "seed": self.seed}


def pairs(found: dict[str, Recorded], into: str = "") -> list[Pair]:
    """Every two spaces of one kernel, both ways; or those that lead to one of them."""
    return [
        Pair(source.name, target.name)
        for target in found.values()
        for source in found.values()
        if source.kernel == target.kernel and source.name != target.name and into in ("", target.name)
    ]


def cold_traces(out: Path) -> dict[tuple[str, int], Trace]:
    return traces(out, SHORT) | traces(out, "default")


def warm_traces(out: Path) -> dict[tuple[Pair, int], Trace]:
    path = out / "warm.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return {(Pair(line["source"], line["space"]), line["seed"]): line["asked"] for line in found}


def cold_jobs(folder: Path, out: Path, seeds: int, into: str = "") -> list[ColdJob]:
    """The runs from nothing that there are not yet."""
    done, wanted = cold_traces(out), pairs(spaces(folder), into)
    names = [(pair.target, seed) for seed in range(seeds) for pair in wanted]
    names += [(pair.source, seed) for seed in range(min(seeds, EARLIER_SEEDS)) for pair in wanted]
    return [ColdJob(folder, *name) for name in dict.fromkeys(names) if name not in done]


def warm_jobs(folder: Path, out: Path, seeds: int, into: str = "") -> list[WarmJob]:
    earlier, done = traces(out, "default"), warm_traces(out)
    return [
        WarmJob(folder, pair, seed, tuple(earlier[pair.source, seed % EARLIER_SEEDS]))
        for seed in range(seeds)
        for pair in pairs(spaces(folder), into)
        if (pair, seed) not in done
    ]


def run_all(pool: ProcessPoolExecutor, jobs: Sequence[ColdJob | WarmJob], file: Path, commit: str) -> None:
    """Each result is on disk as soon as it is there."""
    running = {pool.submit(job.trace): job for job in jobs}
    for count, future in enumerate(as_completed(running), start=1):
        line = running[future].line | {"commit": commit, "asked": future.result()}
        with file.open("a") as out:
            out.write(json.dumps(line) + "\n")
        print(f"\r{file.stem}: {count} of {len(running)} runs", end="", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="the recorded spaces, *.json.gz")
    parser.add_argument("--out", type=Path, required=True, help="where results go and earlier ones are found")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", type=Path, help="where the figures go")
    parser.add_argument("--into", default="", metavar="SPACE", help="one that FOLDER has")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    commit = here()
    unmixed(given.out, ["default", SHORT, "warm"], commit)
    own = (given.folder, given.out, given.seeds, given.into)
    with ProcessPoolExecutor(given.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        cold = cold_jobs(*own)
        run_all(pool, [job for job in cold if not job.is_short], given.out / "default.jsonl", commit)
        run_all(pool, [job for job in cold if job.is_short], given.out / f"{SHORT}.jsonl", commit)
        run_all(pool, warm_jobs(*own), given.out / "warm.jsonl", commit)
    if given.into:
        from benchmarks.search.warm_page import rows

        print("\n".join(rows(*own)))
    elif given.page is not None:
        from benchmarks.search.warm_page import page

        given.page.write_text(page(given.folder, given.out, given.seeds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
