"""A verdict: right, or the status that says how it is not, with the reason in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tunesmith.backends.port import Comparison, NumberRule
from tunesmith.core.checks.cases import Case
from tunesmith.core.checks.compare import ErrorStats, rms, rms_limit
from tunesmith.core.dtypes import element_type
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
NEIGHBOURS = NumberRule(0.0, 0.0, 1.0)  # at most one step apart
DOUBT = 1e-9  # of a sum, relatively: what the order of its terms may change, and more


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


# -- the rules of comparison as numbers that a device can apply: what it finds right by them is right --


def reference_rule(b: BufferPlan, original: ErrorStats | None) -> NumberRule | None:
    """The host's rule for one element as numbers; None where only the host can tell."""
    if b.compare == "codes":
        return NumberRule(b.rtol, b.atol, 0.5, add_ulps=True)
    if b.compare == "close":
        return NumberRule(b.rtol, b.atol, 0.5, None if original is None else 2 * original.max_error)
    return NumberRule(0.0, 0.0, 0.0) if element_type(b.type).kind != "float" else None


def original_rule(b: BufferPlan) -> NumberRule:
    """The same for floats that are close to the original's."""
    return NumberRule(b.rtol, b.atol, 2.0)


def rms_holds(found: Comparison, original: ErrorStats | None) -> bool:
    """Whether the error on the whole is surely no worse than the host allows."""
    if original is None:
        return True
    limit = rms_limit(original, found.squared_ulp, found.count)
    # The host adds up in another order: where that may decide, it shall.
    return rms(found.squared_error, found.count) <= (1 - DOUBT) * limit


def is_comparable(b: BufferPlan, expected_type: str) -> bool:
    """Dense numbers of a kind the device knows, and integers only where integers are expected."""
    exact = b.compare == "exact"
    return b.in_c_order and element_type(b.type).packed == 1 and exact == (expected_type != "float64")
