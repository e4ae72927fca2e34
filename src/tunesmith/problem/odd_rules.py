"""What candidates are held to where inputs are odd: codes at exact ties, rows that amplify every rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.problem import ElementType, element_type

Array = NDArray[Any]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SLACK = 64.0  # times the tolerance; an original that is further off is no measure
UNLIKE_TIES = 6  # in a row; fewer may agree with a rule by chance
GROSS = 0.25  # of the largest value of a row, where the original itself is not within the tolerance
LUCK = 8.0  # times the worst error of the original where it counts
NO_MEASURE = 1 / 64  # of it; an original further off is no measure of anything


def clipped(values: Array, element: ElementType) -> Floats:
    """To the values the type has; what is no number stays none."""
    low = -element.largest if element.kind == "float" else float(element.bounds[0])
    return np.clip(values.astype(np.float64, copy=False), low, element.largest)


def slack_of(buffer: BufferPlan, original: Array, expected: Array) -> float:
    """How many tolerances an element may be off the reference: twice what the original is, one at least."""
    with np.errstate(all="ignore"):
        exact = expected.astype(np.float64, copy=False)
        least = 0.5 * element_type(buffer.type).ulp(exact)
        allowed = np.maximum(buffer.atol + buffer.rtol * np.abs(exact), least)
        ratio = np.abs(original.astype(np.float64, copy=False) - exact) / allowed
        return 2 * float(ratio[ratio <= SLACK / 2].max(initial=0.5))


def broken_tie(buffer: BufferPlan, got: Array, expected: Array, original: Array) -> str | None:
    """Why codes are wrong at exact ties: the original has one rule at those of a row, these another result.

    Rows in which it has none are computed less exactly, and ties are open; so they are where the file allows
    codes to be half a step off.
    """
    if buffer.atol >= 0.5:
        return None
    element = element_type(buffer.type)
    e = expected.astype(np.float64, copy=False).reshape(-1)
    with np.errstate(all="ignore"):
        inside = np.flatnonzero(e == clipped(e, element))
        value = e[inside]
        even = _nearest(value, element)
        away = 2 * value - even  # the other side of a tie
        tied = (np.abs(value - even) > 0) & (_nearest(away, element) == away)
        tied &= _nearest((value + even) / 2, element) == even  # no code lies between
        tied &= np.abs(value - even) == 0.5 * np.minimum(element.ulp(even), element.ulp(away))
    places, even, away = inside[tied], even[tied], away[tied]
    given = original.reshape(-1)[places].astype(np.float64)
    upper, lower = np.maximum(even, away), np.minimum(even, away)
    outer = np.where(np.abs(even) > np.abs(away), even, away)
    rules = {"to even": even, "up": upper, "away from zero": outer, "down": lower}
    rows = places // (buffer.shape[-1] if len(buffer.shape) > 1 else max(e.size, 1))
    known = _rows_with_ties(rows, np.abs(e[places]))
    follows = {name: ~np.isin(rows, rows[given != result]) & known for name, result in rules.items()}
    rule = max(follows, key=lambda name: np.count_nonzero(follows[name]))
    held = np.flatnonzero(follows[rule])
    if 2 * len(held) <= np.count_nonzero(known):
        return None
    places, given = places[held], given[held]
    found = got.reshape(-1)[places].astype(np.float64)
    wrong = np.flatnonzero(found != given)
    if not len(wrong):
        return None
    first = wrong[0]
    index = ", ".join(map(str, np.unravel_index(places[first], buffer.shape)))
    tie = f"{e[places[first]]:.9g}"
    return (
        f"{buffer.name}[{index}] is {found[first]:.9g}, expected {given[first]:.9g}: {tie} is an exact "
        f"tie, and the original rounds these {rule}; {len(wrong)} of {len(places)} ties are wrong"
    )


def _rows_with_ties(rows: NDArray[np.int64], sizes: Floats) -> Bools:
    """Of ties, which lie in a row with several unlike ones: its scale is exact. A single one may be an
    accident, as half of the largest is, whose quotient a kernel may well round."""
    pairs = np.unique(np.stack([rows.astype(np.float64), sizes]), axis=1)
    some, counts = np.unique(pairs[0], return_counts=True)
    return np.isin(rows, some[counts >= UNLIKE_TIES])


def _nearest(values: Floats, element: ElementType) -> Floats:
    if element.kind != "float":
        return np.rint(values)
    return values.astype(element.numpy).astype(np.float64)


def excused_in_rows(buffer: BufferPlan, got: Array, expected: Array | None, original: Array) -> Bools:
    """Elements of rows on which every rounding is amplified, such as a variance far from zero: where the
    original itself is beyond the tolerance somewhere in a row, a candidate may be off by a quarter of the
    row's largest value, and where the original is far off nobody is judged. In other rows, where it may have
    been lucky, several times the error it has elsewhere. Without a reference nobody knows which rows those
    are, so that the quarter holds for all.
    """
    row = buffer.shape[-1] if len(buffer.shape) > 1 else 1
    g, o = (one.astype(np.float64).reshape(-1, max(row, 1)) for one in (got, original))
    e = o if expected is None else expected.astype(np.float64, copy=False).reshape(o.shape)
    with np.errstate(all="ignore"):
        size = np.abs(np.where(np.isfinite(e), e, 0.0))
        largest = size.max(axis=1, keepdims=True, initial=0.0)
        error = np.where(np.isfinite(e), np.abs(o - e), 0.0)
        unsteady = ~(error <= buffer.atol + buffer.rtol * size).all(axis=1, keepdims=True)
        hopeless = ~(error <= NO_MEASURE * largest).all(axis=1, keepdims=True)
        near = np.abs(g - e) <= GROSS * largest
        elsewhere = LUCK * slack_of(buffer, o, e) * (buffer.atol + buffer.rtol * size)
        lucky = near & (np.abs(g - e) <= elsewhere)
    excused: Bools = near if expected is None else lucky | unsteady & (hopeless | near)
    return excused.reshape(-1)
