"""Runs searchers on recorded spaces, many seeds each, and writes down which configurations they asked for.

    python -m benchmarks.search.compare FOLDER --out RESULTS [--arms default optuna-tpe ...] [--seeds 50]
        [--first-seed 0] [--jobs 2] [--until-best]

FOLDER holds the recorded spaces. RESULTS gets one file of JSON lines per searcher, each line with the commit
it was made at; what is there already is not run again, so a run that was stopped goes on where it was. A file
of another commit is not added to.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.search import kernel_tuner_arm, optuna_arm, our_arm
from benchmarks.search.recorded import Recorded, read_all
from tunesmith.run.budget import plan_batches
from tunesmith.run.events import Settings
from tunesmith.run.ports import Searcher
from tunesmith.search.default import Choices, Default
from tunesmith.search.simple import Evolution, Random

Arm = Callable[[Recorded, int, int, bool], list[int]]

EVALS = 200

# What the default might have been; leave_one_out.py says how it would have been chosen.
CHOICES = {
    "local-3": Choices(local_every=3),
    "local-6": Choices(local_every=6),
    "no-exchanges": Choices(exchanges_from=None),
    "opening-12": Choices(opening=12),
    "power-2": Choices(power=2),
}


def _kernel_tuner(strategy: str) -> Arm:
    return lambda recorded, seed, evals, _: kernel_tuner_arm.run(recorded, strategy, seed, evals)


def _ours(make: Callable[[], Searcher], paced: our_arm.Paced = our_arm.ONE) -> Arm:
    return lambda recorded, seed, evals, until_best: our_arm.trace(
        make(), recorded, seed, evals, paced, until_best=until_best
    )


def _as_a_run(devices: int) -> our_arm.Paced:
    return lambda known: plan_batches(known, devices, Settings().width)


# What several devices do to a search; parallel.py shows it.
PARALLEL: dict[str, our_arm.Paced] = {
    **{f"batches-of-{count}": our_arm.steady(count, count) for count in (4, 16)},  # all told, then all asked
    **{f"always-{count}": our_arm.steady(1, count) for count in (4, 16)},  # one told, one asked
    "four-behind-four": our_arm.steady(4, 8),  # as runs asked once, with one device
    **{f"run-on-{count}": _as_a_run(count) for count in (4, 16, 64)},
    # The most that n evaluations can come to with 16 in flight: all before the last 16 one by one.
    **{f"bound-16-at-{n}": our_arm.then_all(n - 16, 16) for n in (25, 50)},
}


ARMS: dict[str, Arm] = {
    "default": _ours(Default),
    "default-in-a-run": _ours(Default, _as_a_run(1)),
    "evolution": _ours(Evolution),
    "random": _ours(Random),
    "optuna-tpe": optuna_arm.run,
    **{f"kernel-tuner-{name}": _kernel_tuner(name) for name in kernel_tuner_arm.STRATEGIES},
    **{f"choice-{name}": _ours(partial(Default, choices)) for name, choices in CHOICES.items()},
    **{f"parallel-{name}": _ours(Default, paced) for name, paced in PARALLEL.items()},
}
USUAL = [arm for arm in ARMS if not arm.startswith(("choice-", "parallel-"))]


@dataclass(frozen=True)
class Job:
    folder: Path
    arm: str
    space: str
    seed: int
    until_best: bool


@cache
def spaces(folder: Path) -> dict[str, Recorded]:
    return {recorded.name: recorded for recorded in read_all(folder)}


def work(job: Job) -> tuple[Job, list[int]]:
    return job, ARMS[job.arm](spaces(job.folder)[job.space], job.seed, EVALS, job.until_best)


def traces(out: Path, arm: str) -> dict[tuple[str, int], list[int]]:
    """What an earlier run left: (space, seed) → the configurations asked for, by number."""
    path = out / f"{arm}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return {(line["space"], line["seed"]): line["asked"] for line in found}


def commits(out: Path, arm: str) -> set[str]:
    """What the runs of an arm were made at; an empty word for those from before it was written down."""
    path = out / f"{arm}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {json.loads(line).get("commit", "") for line in lines}


def here() -> str:
    """The commit of this tree, and whether anything in it was changed since."""
    asked = ["git", "-C", str(Path(__file__).parent)]
    commit = subprocess.run([*asked, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run([*asked, "status", "--porcelain", "-uno"], capture_output=True, text=True)
    if commit.returncode or changed.returncode:
        return "unknown"
    return commit.stdout.strip() + ("-changed" if changed.stdout.strip() else "")


def unmixed(out: Path, arms: list[str], commit: str) -> None:
    for arm in arms:
        if others := commits(out, arm) - {commit}:
            raise SystemExit(
                f"{arm}.jsonl holds runs of {', '.join(sorted(o or 'no commit' for o in others))}, this is "
                f"{commit}: move the file away, so that figures of two versions are not mixed"
            )


def missing(folder: Path, out: Path, arms: list[str], seeds: range, until_best: bool) -> Iterator[Job]:
    done = {(arm, *run) for arm in arms for run in traces(out, arm)}
    for seed in seeds:
        for arm in arms:
            for space in spaces(folder):
                if (arm, space, seed) not in done:
                    yield Job(folder, arm, space, seed, until_best)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="the recorded spaces, *.json.gz")
    parser.add_argument("--out", type=Path, required=True, help="where results go and earlier ones are found")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=USUAL)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=0, help="others than those a choice was made by")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--until-best", action="store_true", help="end a run with the optimum; warm.py needs runs that go on"
    )
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    commit = here()
    unmixed(given.out, given.arms, commit)
    with ProcessPoolExecutor(given.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        seeds = range(given.first_seed, given.first_seed + given.seeds)
        left = missing(given.folder, given.out, given.arms, seeds, given.until_best)
        running = [pool.submit(work, job) for job in left]
        for count, future in enumerate(as_completed(running), start=1):
            job, asked = future.result()
            found = {"space": job.space, "seed": job.seed, "commit": commit, "asked": asked}
            line = json.dumps(found)
            with (given.out / f"{job.arm}.jsonl").open("a") as file:
                file.write(line + "\n")
            print(f"\r{count} of {len(running)} runs", end="", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
