"""An author for runs that need none."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.core.device import Device
from tunesmith.core.ports import Declined, Refactoring, Written
from tunesmith.core.problem import Problem


@dataclass(frozen=True)
class Silent:
    reason: str

    def write(self, task: Refactoring, problem: Problem, device: Device) -> Written | Declined:
        del task, problem, device
        return Declined(self.reason)
