"""A verdict: right, or the status that says how it is not, with the reason in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tunesmith.core.checks.cases import Case
from tunesmith.core.outcome import Status
from tunesmith.core.plan import BufferPlan, Plan
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


@dataclass(frozen=True)
class RunEvidence:
    """What two runs of a kernel left in memory, wherever that is looked at."""

    damage: Callable[[BufferPlan, int], str]  # where the guard zones of the buffer of that number were hit
    input_changed: Callable[[BufferPlan], bool]
    gaps_hit: Callable[[BufferPlan], bool]  # between the rows of a strided array
    runs_differ: Callable[[BufferPlan], bool]
    unwritten: Callable[[BufferPlan], int]  # elements that hold what they were poisoned with


def integrity(plan: Plan, deterministic: bool, seen: RunEvidence) -> tuple[Verdict, bool]:
    """Everything but the values, and whether memory outside the arrays was hit."""
    for number, b in enumerate(plan.buffers):
        if damage := seen.damage(b, number):
            return Verdict(Status.WRONG, f"it writes outside {b.name}: {damage}"), True
    for b in plan.buffers:
        if b.role == "input" and seen.input_changed(b):
            return Verdict(Status.WRONG, f"it changes the input {b.name}"), False
    for b in plan.compared():
        if seen.gaps_hit(b):
            return Verdict(Status.WRONG, f"it writes between the rows of {b.name}"), False
        if not seen.runs_differ(b):
            continue
        # A byte may equal its poison by chance: where runs may differ, its value is judged and no more.
        count = 0 if b.itemsize == 1 and not deterministic else seen.unwritten(b)
        if count:
            # Poison plus something is still that poison: what adds to an output looks as if it never wrote.
            never = f"{count} of {b.count} elements of {b.name} are never written"
            words = f"{never}, or computed from what was there before: is it inout?"
            return Verdict(Status.WRONG, words), False
        if deterministic:
            return Verdict(Status.UNSTABLE, f"two runs on the same inputs give different {b.name}"), False
    return RIGHT, False
