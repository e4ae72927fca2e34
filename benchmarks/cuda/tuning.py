"""Runs `tunesmith tune` and `tunesmith retune` as a user does, as processes, and takes the time."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cuda.asking import ask
from benchmarks.cuda.journals import Run, read_run, summary


@dataclass(frozen=True)
class Tuned:
    run: Run
    report: dict[str, Any]
    wall: float

    def figures(self) -> dict[str, Any]:
        return {
            **summary(self.run, self.wall),
            "geometric_mean": self.report["geometric_mean"],
            "workloads": self.report["workloads"],
        }


def tune(
    problem: Path,
    template: Path,
    out: Path,
    *,
    seed: int,
    more: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Tuned:
    """A run that knows no earlier one, in a folder of its own; what an earlier call left there goes."""
    words = ["tune", problem, "--template", template, "--no-prior", "--seed", seed]
    return _ran([*map(str, words), *more], out, environment)


def retune(
    target: Path,
    out: Path,
    *,
    seed: int,
    more: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Tuned:
    """A run's template, or a template file, searched again."""
    return _ran(["retune", str(target), "--seed", str(seed), *more], out, environment)


def new_run(
    words: Sequence[str], out: Path, environment: Mapping[str, str] | None = None, within: float | None = None
) -> tuple[dict[str, Any], float]:
    """The report of a run in a folder of its own, and the seconds it took; what was there before goes."""
    if (out / "journal.jsonl").exists():
        shutil.rmtree(out)
    before = time.perf_counter()
    report = ask([*words, "--out", str(out), "--no-cache", "--no-library"], environment, within)
    return report, time.perf_counter() - before


def _ran(words: Sequence[str], out: Path, environment: Mapping[str, str] | None) -> Tuned:
    report, wall = new_run(words, out, environment)
    return Tuned(read_run(out), report, wall)
