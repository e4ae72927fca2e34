"""The port to hardware counters: one launch of a kernel counted, or a sentence that says why not."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tunesmith.backends.messages import Draw, Unit
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Plan
from tunesmith.profiles.facts import Counters


@dataclass(frozen=True)
class Counted:
    """What the hardware counted, or why it did not."""

    counters: Counters | None
    why_not: str = ""
    left_out: tuple[str, ...] = ()  # what the tool that is here cannot count, by its own names


@dataclass(frozen=True)
class ToCount:
    """A built kernel at a workload, with everything a process of its own needs to launch it once."""

    unit: Unit
    binary: bytes
    code_digest: str
    device: Device
    plan: Plan
    draw: Draw
    warm: bool
    main: int = 0  # which of the plan's launches is told of


class Counting(Protocol):
    """Counts in a process of its own, so that nothing of it lands in a timing. Never raises for what a tool,
    a permission or a kernel does: that is a sentence."""

    def count(self, what: ToCount) -> Counted: ...


@dataclass(frozen=True)
class NoCounting:
    """Where there is nothing to count with."""

    why: str

    def count(self, what: ToCount) -> Counted:
        return Counted(None, self.why)


@runtime_checkable
class Marking(Protocol):
    """A session that can tell a profiler where to look."""

    def profiled(self) -> AbstractContextManager[None]: ...
