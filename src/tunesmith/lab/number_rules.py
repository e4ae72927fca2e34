"""The host's rules of comparison as numbers that a device can apply: what it finds right by them is right."""

from __future__ import annotations

import math

from tunesmith.backends.port import Comparison, NumberRule
from tunesmith.core import messages as m
from tunesmith.core.checks.compare import ErrorStats
from tunesmith.core.dtypes import element_type
from tunesmith.core.plan import BufferPlan

NEIGHBOURS = NumberRule(0.0, 0.0, 1.0)  # at most one step apart
DOUBT = 1e-9  # of a sum, relatively: what the order of its terms may change, and more


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
    limit = 1.25 * original.rms_error + 0.25 * rms(found.squared_ulp, found.count)
    # The host adds up in another order: where that may decide, it shall.
    return rms(found.squared_error, found.count) <= (1 - DOUBT) * limit


def is_comparable(b: BufferPlan, spec: m.ExpectedArray) -> bool:
    """Dense numbers of a kind the device knows, and integers only where integers are expected."""
    exact = b.compare == "exact"
    return b.in_c_order and element_type(b.type).packed == 1 and exact == (spec.dtype != "float64")


def rms(squared: float, count: int) -> float:
    return math.sqrt(squared / count) if count else 0.0
