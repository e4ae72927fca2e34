"""What the hardware counts of a launch: workers send it, and load no more than this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stall = Literal["memory", "shared", "barrier", "queue", "math", "branch", "dependency", "other"]

ALL = 1.05  # of a whole, with what counters differ in that are read one after the other


@dataclass(frozen=True)
class Counters:
    """What the hardware counted. Shares are 0 to 1."""

    dram: float | None = None  # share of the peak, over the whole time
    l2: float | None = None
    l1: float | None = None
    issue: float | None = None  # cycles in which an instruction was issued
    sm_active: float | None = None  # of the time, on the average multiprocessor
    occupancy: float | None = None  # achieved
    eligible_warps: float | None = None  # a cycle and scheduler
    threads_per_instruction: float | None = None  # of a warp's 32
    dram_read: float | None = None  # bytes
    dram_written: float | None = None
    l2_hits: float | None = None
    load_sectors: float | None = None  # a request; global memory
    store_sectors: float | None = None
    load_bytes_per_sector: float | None = None  # of 32
    store_bytes_per_sector: float | None = None
    shared_wavefronts: float | None = None  # cycles that shared memory was at work
    shared_conflicts: float | None = None  # of these, for conflicts
    local_sectors: float | None = None  # spills and stack, of the sectors L1 was asked for
    shared_pipe: float | None = None  # share of the peak of the unit behind shared memory and L1
    fma: float | None = None  # pipes: share of their peak
    alu: float | None = None
    fp64: float | None = None
    special: float | None = None
    tensor: float | None = None
    stalls: tuple[tuple[Stall, float], ...] = ()  # share of the time warps waited, by reason

    def stalled(self, reason: Stall) -> float | None:
        return dict(self.stalls).get(reason)
