"""A verdict: right, or the status that says how it is not, with the reason in words."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.core.checks.cases import Case
from tunesmith.core.outcome import Status
from tunesmith.core.plan import Plan
from tunesmith.core.untrusted import cut


@dataclass(frozen=True)
class Verdict:
    status: Status
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.status is Status.OK

    @property
    def first_line(self) -> str:
        """Of a compiler's or a kernel's words as much as stands in a sentence."""
        return cut((self.detail.strip().splitlines() or ["no reason given"])[0], 300)


RIGHT = Verdict(Status.OK)


@dataclass(frozen=True)
class Examined:
    """A kernel's part in one case: its launch there, and how long that may take."""

    case: Case
    plan: Plan
    deadline: float
