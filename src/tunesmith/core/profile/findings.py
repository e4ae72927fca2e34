"""What a diagnosis consists of: what bounds a workload, and findings with their evidence and remedies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tunesmith.core.profile.remedies import Remedy

Source = Literal["counters", "static", "experiment", "timing"]


class Bound(StrEnum):
    BANDWIDTH = "bandwidth"
    LATENCY = "latency"
    LAUNCH = "launch"
    COMPUTE = "compute"
    OCCUPANCY = "occupancy"
    TAIL = "tail"
    PARTIAL_SECTORS = "partial sectors"
    BANK_CONFLICTS = "bank conflicts"
    SPILLS = "spills"
    SERIALISATION = "serialisation"
    UNKNOWN = "unknown"


class Kind(StrEnum):
    """Faults, and at the end symptoms, which are told where no fault explains them."""

    TOO_FEW_BLOCKS = "too_few_blocks"
    TAIL = "tail"
    IDLE_THREADS = "idle_threads"
    SPILLS = "spills"
    LOCAL_ARRAYS = "local_arrays"
    UNCOALESCED = "uncoalesced"
    NARROW_ACCESS = "narrow_access"
    BANK_CONFLICTS = "bank_conflicts"
    FP64 = "fp64"
    INTEGER_DIVISION = "integer_division"
    SPECIAL_FUNCTIONS = "special_functions"
    DIVERGENCE = "divergence"
    SERIAL_THREAD = "serial_thread"
    ATOMICS = "atomics"
    LAUNCH = "launch"
    BLOCK_SIZE = "block_size"
    LOW_OCCUPANCY = "low_occupancy"
    UNEVEN_BLOCKS = "uneven_blocks"
    EXTRA_TRAFFIC = "extra_traffic"
    MEMORY = "memory"
    BARRIERS = "barriers"
    COMPUTE = "compute"
    LATENCY = "latency"


@dataclass(frozen=True)
class Finding:
    kind: Kind
    gain: float  # share of the present time that is at stake, 0 to 1: an estimate
    confidence: float  # 0 to 1
    evidence: tuple[str, ...]  # the numbers, in words
    remedies: tuple[Remedy, ...]  # the likeliest first
    source: Source
    bound: Bound

    @property
    def score(self) -> float:
        return self.gain * self.confidence


@dataclass(frozen=True)
class Diagnosis:
    bound: Bound
    summary: str  # one sentence
    confidence: float
    findings: tuple[Finding, ...]  # the most worthwhile first
    distance: float | None = None  # time over the floor
    floor: float | None = None  # seconds
    ceiling: str = ""  # what the floor is made of
    notes: tuple[str, ...] = ()  # what was not known, and why
    launch: str = ""  # of several launches the one that the findings are about

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """Of all findings, in their order, each once."""
        return tuple(dict.fromkeys(r for finding in self.findings for r in finding.remedies))
