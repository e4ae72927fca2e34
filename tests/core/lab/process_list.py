"""Which processes are there; killing is asynchronous, so patience is part of the question."""

from __future__ import annotations

import time
from pathlib import Path

from tunesmith.lab.process import WorkerProcess


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pid: int, *, reaped_by: WorkerProcess | None = None, timeout: float = 10) -> bool:
    """Whether the process has ended, or does within the time, and its owner knows."""
    end = time.monotonic() + timeout
    while running(pid) or (reaped_by is not None and reaped_by.alive):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
