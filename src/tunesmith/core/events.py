"""The facts of a run, in the order they happened. The journal holds these and nothing else remembers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tunesmith.core.device import Device
from tunesmith.core.outcome import Outcome, Trial


@dataclass(frozen=True)
class Settings:
    """What the user asked of this run; fixed once it has started."""

    search: str = "default"
    evals: int | None = None
    seconds: float | None = None
    seed: int = 0
    width: int = 8  # trials in flight
    finalists: int = 3
    use_cache: bool = True


@dataclass(frozen=True)
class Started:
    problem: str
    files: tuple[tuple[str, str], ...]  # name as the problem spells it -> digest of the stored copy
    template: str  # name in `files`; empty when there is none
    backend: str
    device: Device
    settings: Settings
    versions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Baseline:
    """The original, checked over the contract's edges and timed as it is."""

    outcome: Outcome
    judged_by: Literal["reference", "original"]


@dataclass(frozen=True)
class Admitted:
    """A template passed the gate and may be searched."""

    template: str
    feasible: int
    combinations: int


@dataclass(frozen=True)
class Decided:
    decision: Literal["search", "finish"]
    reason: str


@dataclass(frozen=True)
class Asked:
    trial: Trial


@dataclass(frozen=True)
class Measured:
    outcome: Outcome


@dataclass(frozen=True)
class Verified:
    """A finalist rebuilt from what is delivered, in a fresh process, on sizes and seeds never used before."""

    outcome: Outcome
    cases: int


@dataclass(frozen=True)
class Stopped:
    reason: str


Event = Started | Baseline | Admitted | Decided | Asked | Measured | Verified | Stopped
EVENT_TYPES: dict[str, type[Event]] = {
    t.__name__: t for t in (Started, Baseline, Admitted, Decided, Asked, Measured, Verified, Stopped)
}


@dataclass(frozen=True)
class Recorded:
    """An event with its number and the seconds the run had been active when it was written."""

    number: int
    at: float
    event: Event
