"""Runs `tunesmith tune` as a user does, as a process of its own, and takes the time."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    if (out / "journal.jsonl").exists():
        shutil.rmtree(out)
    words = ["tune", problem, "--template", template, "--seed", seed, "--out", out]
    words += ["--no-cache", "--no-prior", "--json"]
    command = [sys.executable, "-m", "tunesmith", *map(str, words), *more]
    before = time.perf_counter()
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment
    )
    wall = time.perf_counter() - before
    if ended.returncode != 0:
        why = ended.stderr[-4000:]
        raise SystemExit(f"tunesmith tune {problem.name} ended with {ended.returncode}:\n{why}")
    return Tuned(read_run(out), json.loads(ended.stdout), wall)
