"""What `tunesmith profile` found: one value, for the terminal, for JSON and for the plot."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.core.profile.facts import Ceilings, Profile
from tunesmith.core.profile.findings import Diagnosis


@dataclass(frozen=True)
class View:
    """One kernel at one workload."""

    profile: Profile
    diagnosis: Diagnosis
    notes: tuple[str, ...] = ()  # what was not found out, and why


@dataclass(frozen=True)
class WorkloadPage:
    name: str
    sizes: dict[str, int]
    warm: bool
    views: tuple[View, ...]  # the original first


@dataclass(frozen=True)
class ProfilePage:
    problem: str
    device: str
    driver: str
    compiler: str
    ceilings: Ceilings
    workloads: tuple[WorkloadPage, ...]
    notes: tuple[str, ...] = ()
    missing: str = ""  # why nothing was measured
    plot: str = ""  # the file with the roofline

    @property
    def no_counters(self) -> tuple[str, ...]:
        """Why there are none, each reason once."""
        reasons = [v.profile.no_counters for w in self.workloads for v in w.views if not v.profile.counters]
        return tuple(dict.fromkeys(reason for reason in reasons if reason))
