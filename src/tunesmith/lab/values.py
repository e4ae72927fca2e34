"""Whether values are right: what a case should give, and the verdict on what a kernel gave. The same where
the host judges and where what a device gave has to be judged as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.base.errors import BadInput
from tunesmith.lab.references import CONTESTED_ROWS, UserCodeFailed
from tunesmith.problem.cases import COMPARABLE_ITEMS
from tunesmith.problem.compare import (
    ErrorStats,
    OutputView,
    Views,
    error_stats,
    judge_odd,
    judge_other_rows,
    judge_output,
    output_errors,
    views_of,
)
from tunesmith.problem.plan import OutputErrors, Plan

Array = NDArray[Any]
Arrays = Mapping[str, Array]
# Asks the user's function about an output, given all that a kernel gave and all that is expected.
AskFunction = Callable[[str, Arrays, Arrays], str | None]


@dataclass(frozen=True)
class CaseRules:
    """What a case is judged by."""

    is_odd: bool = False
    may_fail: bool = False  # the original
    compares_errors: bool = True
    nan_is_open: bool = False
    distribution: str = ""  # of the inputs


@dataclass(frozen=True)
class ExpectedValues:
    """By views: what the reference says, what the original gave and how far that was off."""

    arrays: dict[str, Array] = field(default_factory=dict)  # float64 or exact integers; empty: no reference
    rows: NDArray[np.intp] | None = None  # the sampled ones; None: all
    sampled: frozenset[str] = frozenset()  # outputs the rows apply to
    original: dict[str, Array] = field(default_factory=dict)  # kept where others are compared with it
    errors: dict[str, ErrorStats] = field(default_factory=dict)
    inputs: dict[str, Array] = field(default_factory=dict)  # that indices point into
    # For a function of the user's, by outputs.
    referred: dict[str, Array] = field(default_factory=dict)
    given: dict[str, Array] = field(default_factory=dict)  # by the original
    unasked: frozenset[str] = frozenset()  # outputs of which it cannot tell that the original's is itself

    @property
    def nbytes(self) -> int:
        held = (self.arrays, self.original, self.inputs, self.referred, self.given)
        return sum(array.nbytes for arrays in held for array in arrays.values())

    def views(self, plan: Plan, outputs: Arrays) -> Views:
        return views_of(plan, outputs, self.inputs)

    def of_sample(self, view: OutputView) -> Array:
        """What of it the reference was asked for."""
        return view.array[self.rows] if self.rows is not None and view.output in self.sampled else view.array


def establish_expected(
    plan: Plan, outputs: Arrays, referred: Arrays, bare: ExpectedValues, rules: CaseRules, ask: AskFunction
) -> tuple[ExpectedValues, str | None]:
    """From what the original gave, and the reference; and why the original itself is wrong."""
    got = bare.views(plan, outputs)
    wanted = {n: v.array for n, v in views_of(plan, referred, bare.inputs, bare.rows).items()}
    asks = any(b.compare == "function" for b in plan.compared())
    errors: dict[str, ErrorStats] = {}
    unasked: set[str] = set()
    for name, view in got.items():
        if rules.is_odd and view.buffer.compare == "function":
            unasked |= {view.output} if _cannot_tell(view.output, outputs, ask) else set()
            continue
        if name not in wanted:
            continue
        if view.buffer.compare == "function":
            reason = _by_function(view, outputs, referred, ask)
        else:
            reason = judge_output(view.buffer, bare.of_sample(view), wanted[name], None)
            errors[name] = error_stats(bare.of_sample(view), wanted[name], view.buffer)
        if reason and not (rules.may_fail or rules.is_odd):
            return bare, reason
    kept = [n for n, v in got.items() if rules.is_odd or v.output in bare.sampled or n not in wanted]
    found = ExpectedValues(
        arrays=wanted,
        rows=bare.rows,
        sampled=bare.sampled,
        original={name: got[name].array for name in kept},
        errors=errors,
        inputs=bare.inputs,
        referred=dict(referred) if asks else {},
        given=dict(outputs) if asks else {},
        unasked=frozenset(unasked),
    )
    return found, None


def errors_of(plan: Plan, outputs: Arrays, expected: ExpectedValues) -> tuple[OutputErrors, ...]:
    found: dict[str, OutputErrors] = {}
    for name, view in expected.views(plan, outputs).items():
        if name in expected.errors and view.output not in found:
            stats = error_stats(expected.of_sample(view), expected.arrays[name], view.buffer)
            found[view.output] = output_errors(view.output, stats, expected.errors[name])
    return tuple(found.values())


def wrong_values(
    plan: Plan, outputs: Arrays, expected: ExpectedValues, rules: CaseRules, ask: AskFunction
) -> tuple[str | None, tuple[int, ...]]:
    """Why it is wrong; where it is so by the original alone, the rows to ask the reference for."""
    for name, view in expected.views(plan, outputs).items():
        buffer, array = view.buffer, view.array
        if view.output in expected.unasked:
            continue  # NaN, most likely, which is equal to nothing: such values judge nobody
        if buffer.compare == "function":
            if reason := _function_refuses(view, outputs, expected, rules, ask):
                return reason, ()
            continue
        if rules.is_odd:
            both = expected.arrays.get(name), expected.original[name]
            if reason := judge_odd(buffer, array, *both, rules.nan_is_open, rules.distribution):
                return reason, ()
            continue
        if name in expected.arrays:
            comparable = rules.compares_errors and buffer.count >= COMPARABLE_ITEMS
            original = expected.errors.get(name) if comparable else None
            if reason := judge_output(buffer, expected.of_sample(view), expected.arrays[name], original):
                return reason, ()
        if name in expected.original:
            rows = expected.rows.tolist() if expected.rows is not None else []
            reason, contested = judge_other_rows(buffer, array, expected.original[name], rows, CONTESTED_ROWS)
            if reason:
                return reason, contested
    return None, ()


def _function_refuses(
    view: OutputView, outputs: Arrays, expected: ExpectedValues, rules: CaseRules, ask: AskFunction
) -> str | None:
    """With a reference that decides; at odd values one of the two is enough."""
    measures = [expected.referred] if expected.referred else [expected.given]
    if rules.is_odd and expected.referred:
        measures = [expected.given, expected.referred]
    reasons = [_by_function(view, outputs, measure, ask) for measure in measures]
    return None if None in reasons else reasons[-1]


def _cannot_tell(output: str, outputs: Arrays, ask: AskFunction) -> bool:
    """Whether the user's function, at odd values, does not even find the original's equal to itself."""
    try:
        return ask(output, outputs, outputs) is not None
    except (BadInput, UserCodeFailed):
        return True


def _by_function(view: OutputView, outputs: Arrays, wanted: Arrays, ask: AskFunction) -> str | None:
    """What no function may excuse comes first: a number that is none, where all are expected to be some."""
    got, other = outputs[view.output], wanted[view.output]
    if got.dtype.kind not in "iub" and np.isfinite(other.astype(np.float64)).all():
        finite = np.isfinite(got.astype(np.float64))
        if not finite.all():
            count = int(np.count_nonzero(~finite))
            return f"{view.output}: {count} of {finite.size} elements are NaN or infinite, expected are none"
    return ask(view.output, outputs, wanted)
