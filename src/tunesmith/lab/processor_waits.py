"""How long this process's threads stood ready and had no processor, as Linux counts it."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field

_TASKS = "/proc/self/task"
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class Waits:
    """At a moment; nothing is known where nobody counts."""

    by_thread: dict[str, int] = field(default_factory=dict)  # nanoseconds
    stolen: int = 0  # ticks of all processors that a virtual machine was not given
    at: float = field(default_factory=time.perf_counter)

    def share_until(self, later: Waits) -> float:
        """Of the time between, what the thread that waited longest has waited; or what was stolen, where
        that is more. A tick is as coarse as a sample is long: one is no evidence."""
        wall = max(later.at - self.at, 1e-6)
        waited = (later.by_thread[t] - ns for t, ns in self.by_thread.items() if t in later.by_thread)
        stolen = max(0, later.stolen - self.stolen - 1) / _TICKS / (os.cpu_count() or 1)
        return min(1.0, max(max(waited, default=0) * 1e-9, stolen) / wall)


def read_waits() -> Waits:
    found: dict[str, int] = {}
    with suppress(OSError):
        for thread in os.listdir(_TASKS):
            with suppress(OSError, ValueError, IndexError):  # a thread that has ended meanwhile
                found[thread] = int(_read(f"{_TASKS}/{thread}/schedstat").split()[1])
    return Waits(found, processor_ticks()[1])


def processor_ticks() -> tuple[int, int]:
    """Of all processors so far, and those that others were given; zeros where nobody counts."""
    try:
        fields = [int(field) for field in _read("/proc/stat").split(b"\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    return (sum(fields), fields[7]) if len(fields) == 8 else (0, 0)


def _read(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, 256)
    finally:
        os.close(file)
