"""What `tunesmith apply` is asked for, and what it gives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

from tunesmith.capture.folder import read_capture
from tunesmith.errors import BadInput
from tunesmith.session.apply.foretold import ForetoldGain, foretold_gain
from tunesmith.session.apply.measuring import BenchMetric, BenchSeries
from tunesmith.session.apply.swap_library import SwapCounts
from tunesmith.session.run_result import Run

Ending = Literal["applied", "dry run", "rolled back", "undone", "swapped", "swap failed"]


class WishedApply(TypedDict, total=False):
    """Options, as the command and the Python interface have them."""

    repo: str | os.PathLike[str] | None
    test: str | None
    bench: str | None
    build: str | None
    metric: str | None
    higher: bool
    rounds: int
    timeout: float
    capture: str | os.PathLike[str] | None
    force: bool
    dry_run: bool
    undo: bool
    swap: Sequence[str] | None  # a program whose launches are swapped; no file is touched
    kernel: str | None  # the original's name in that program


@dataclass(frozen=True)
class Applied:
    """What became of it. `fault`: why it was rolled back, or how the program failed with swapped launches."""

    run: str
    problem: str
    repository: str
    ending: Ending
    patch: str  # the file, which is kept
    diff: str
    files: tuple[str, ...]
    launches: tuple[str, ...]  # that ask for the tuned kernel first
    delivered: int
    winners: int
    notes: tuple[str, ...] = ()
    tested: tuple[float, ...] = ()  # seconds that tests took, before and after
    bench: BenchSeries | None = None
    foretold: ForetoldGain | None = None
    fault: str = ""
    counts: SwapCounts | None = None  # of the last run with swapped launches
    still_patched: tuple[str, ...] = ()  # rolled back but for these, which others changed meanwhile
    kernel: str = ""  # whose launches are swapped
    version: int = 1


def foretold_by(
    run: Run, kernel: str, capture: Path | None, metric: BenchMetric
) -> tuple[ForetoldGain | None, list[str]]:
    """What a capture of the program foretells; where it does not, why."""
    if capture is None:
        return None, ["nothing is foretold: no capture is known, name one with --capture"]
    try:
        seen = read_capture(capture)
    except BadInput as refused:
        return None, [f"nothing is foretold: {refused}"]
    workloads = [(workload.weight, workload.figure.shown) for workload in run.result.workloads]
    found = foretold_gain(seen, kernel, workloads, whole=not metric.pattern)
    if found is None:
        return None, ["nothing is foretold: the capture has no times of this kernel"]
    return found, []
