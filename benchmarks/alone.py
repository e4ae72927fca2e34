"""Work on one problem in a process of its own, which prints its figures as JSON on its last line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LONGEST = 400  # of a reason


@dataclass(frozen=True)
class AloneResult:
    """`figures` is None where it failed; `failed` then says why."""

    figures: dict[str, Any] | None
    failed: str
    seconds: float


def run_alone(module: str, words: Sequence[str], within: float, done: str) -> AloneResult:
    """Never an exception. `done`: what it should have been when the time is up, such as "read"."""
    before = time.perf_counter()
    try:
        ended = subprocess.run(
            [sys.executable, "-m", module, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=within,
        )
    except subprocess.TimeoutExpired:
        return AloneResult(None, f"not {done} after {within:g} s", within)
    seconds = round(time.perf_counter() - before, 1)
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"])[-1]
        return AloneResult(None, last[:LONGEST], seconds)
    return AloneResult(json.loads(ended.stdout.splitlines()[-1]), "", seconds)
