"""Trials and what came of them. A time can exist only where the status is ok: the type forbids the lie."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tunesmith.core.device import Resources
from tunesmith.core.space import Config
from tunesmith.core.stats import median

Effort = Literal["build", "short", "long"]
Purpose = Literal["search", "gate", "sentinel", "finalist"]


class Status(StrEnum):
    OK = "ok"
    INFEASIBLE = "infeasible"
    BUILD_FAILED = "build_failed"
    OVER_LIMITS = "over_limits"
    WRONG = "wrong"
    UNSTABLE = "unstable"
    SUSPECT = "suspect"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True)
class Trial:
    """A configuration to try; `config` None is the original, timed as a sentinel."""

    id: int
    config: Config | None
    workloads: tuple[str, ...]
    effort: Effort
    purpose: Purpose = "search"
    template: str = ""  # digest; empty for the original
    followed: bool = False  # the searcher picked it by what earlier runs say


@dataclass(frozen=True)
class Timing:
    """Seconds per launch. With `paired`, samples of the original taken in alternation, pair by pair."""

    samples: tuple[float, ...]
    paired: tuple[float, ...] = ()
    cached: bool = False
    discarded: int = 0  # rounds taken again because the clock was held down

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError("a time without samples")
        if self.paired and len(self.paired) != len(self.samples):
            raise ValueError(f"{len(self.paired)} samples cannot be paired with {len(self.samples)}")

    @property
    def seconds(self) -> float:
        return median(self.samples)

    @property
    def ratios(self) -> tuple[float, ...]:
        """Original ÷ candidate for each pair: above 1 is faster."""
        return tuple(p / s for p, s in zip(self.paired, self.samples, strict=True)) if self.paired else ()


@dataclass(frozen=True)
class Result:
    workload: str
    status: Status
    timing: Timing | None = None
    detail: str = ""  # why not ok, in words
    key: str = ""  # binary, launch, device, driver, workload and timing policy, as one digest

    def __post_init__(self) -> None:
        if (self.timing is not None) and self.status is not Status.OK:
            raise ValueError(f"a {self.status} result carries no time")

    @property
    def ok(self) -> bool:
        return self.status is Status.OK


@dataclass(frozen=True)
class Outcome:
    trial: Trial
    results: tuple[Result, ...]
    source_digest: str = ""
    code_digest: str = ""
    resources: Resources | None = None
    seconds: float = 0.0  # what the evaluation cost
    busy: float = 0.0  # of these, the device was in kernels, where it says

    def result(self, workload: str) -> Result | None:
        return next((r for r in self.results if r.workload == workload), None)

    @property
    def status(self) -> Status:
        """One word for the whole trial: ok where any workload is, else the first failure."""
        if any(r.ok for r in self.results):
            return Status.OK
        return self.results[0].status if self.results else Status.INFEASIBLE
