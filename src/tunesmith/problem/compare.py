"""The verdict on one output of one case: against the float64 reference, or without one the original's output.

Everything goes through in chunks that stay in the processor's cache, so tens of millions of elements cost
little memory beyond the arrays themselves (an output with padded strides is packed once).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.inputs import MIXED
from tunesmith.problem.plan import BufferPlan, OutputErrors, Plan
from tunesmith.problem.problem import ANY_ORDER, Argument, ElementType, Problem, element_type

Array = NDArray[Any]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SLACK = 64.0  # times the tolerance; an original that is further off is no measure
UNLIKE_TIES = 6  # in a row; fewer may agree with a rule by chance
GROSS = 0.25  # of the largest value of a row, where the original itself is not within the tolerance
LUCK = 8.0  # times the worst error of the original where it counts
NO_MEASURE = 1 / 64  # of it; an original further off is no measure of anything


def clip_to_type(values: Array, element: ElementType) -> Floats:
    """To the values the type has; what is no number stays none."""
    low = -element.largest if element.kind == "float" else float(element.bounds[0])
    return np.clip(_as_float64(values), low, element.largest)


def slack_of(buffer: BufferPlan, original: Array, expected: Array) -> float:
    """How many tolerances an element may be off the reference: twice what the original is, one at least."""
    with np.errstate(all="ignore"):
        exact = _as_float64(expected)
        least = 0.5 * element_type(buffer.type).ulp(exact)
        allowed = np.maximum(buffer.atol + buffer.rtol * np.abs(exact), least)
        ratio = np.abs(_as_float64(original) - exact) / allowed
        return 2 * float(ratio[ratio <= SLACK / 2].max(initial=0.5))


def broken_tie(buffer: BufferPlan, got: Array, expected: Array, original: Array) -> str | None:
    """Why codes are wrong at exact ties: the original has one rule at those of a row, these another result.
    Rows in which it has none are computed less exactly, and ties are open; so they are where the file allows
    codes to be half a step off."""
    if buffer.atol >= 0.5:
        return None
    element, e = element_type(buffer.type), _as_float64(expected).reshape(-1)
    with np.errstate(all="ignore"):
        inside = np.flatnonzero(e == clip_to_type(e, element))
        value = e[inside]
        even = _round_to_type(value, element)
        away = 2 * value - even  # the other side of a tie
        tied = (np.abs(value - even) > 0) & (_round_to_type(away, element) == away)
        tied &= _round_to_type((value + even) / 2, element) == even  # no code lies between
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
    what = f"{_name_element(buffer.name, places[first], buffer.shape)} is {found[first]:.9g}"
    return (
        f"{what}, expected {given[first]:.9g}: {e[places[first]]:.9g} is an exact "
        f"tie, and the original rounds these {rule}; {len(wrong)} of {len(places)} ties are wrong"
    )


def _rows_with_ties(rows: NDArray[np.int64], sizes: Floats) -> Bools:
    """Of ties, which lie in a row with several unlike ones: its scale is exact. A single one may be an
    accident, as half of the largest is, whose quotient a kernel may well round."""
    pairs = np.unique(np.stack([rows.astype(np.float64), sizes]), axis=1)
    some, counts = np.unique(pairs[0], return_counts=True)
    return np.isin(rows, some[counts >= UNLIKE_TIES])


def _round_to_type(values: Floats, element: ElementType) -> Floats:
    if element.kind != "float":
        return np.rint(values)
    return values.astype(element.numpy).astype(np.float64)


def excused_in_rows(buffer: BufferPlan, got: Array, expected: Array | None, original: Array) -> Bools:
    """Elements of rows on which every rounding is amplified, such as a variance far from zero: where the
    original itself is beyond the tolerance somewhere in a row, a candidate may be off by a quarter of the
    row's largest value, and where the original is far off nobody is judged. In other rows, where it may have
    been lucky, several times the error it has elsewhere. Without a reference nobody knows which rows those
    are, so that the quarter holds for all."""
    row = buffer.shape[-1] if len(buffer.shape) > 1 else 1
    g, o = (one.astype(np.float64).reshape(-1, max(row, 1)) for one in (got, original))
    e = o if expected is None else _as_float64(expected).reshape(o.shape)
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


Chunk = tuple[int, Array, Array]  # the first element's number, what was given there, what is expected

CHUNK = 1 << 15


@dataclass(frozen=True)
class ErrorStats:
    """Absolute errors against the reference, over the positions where both are finite."""

    max_error: float
    rms_error: float


@dataclass(frozen=True)
class _CompareRule:
    """Which values are right: `judge` marks the wrong ones of a chunk, `explain` says why one of them is."""

    judge: Callable[[Array, Array], Bools]
    explain: Callable[[Array, Array], str]


@dataclass
class _Sums:
    """What the rms rule needs, over finite positions."""

    count: int = 0
    squared_error: float = 0.0
    squared_ulp: float = 0.0

    def add(self, error: Floats, ulp: Floats) -> None:
        self.count += error.size
        self.squared_error += float(np.sum(error * error))
        self.squared_ulp += float(np.sum(ulp * ulp))

    @property
    def error(self) -> float:
        return root_mean_square(self.squared_error, self.count)


@dataclass(frozen=True)
class _ErrorBound:
    """How large an error may be at an element, and the words for it."""

    words: str
    at: Callable[[Floats, Floats], Floats]  # (|expected|, its ulp) -> largest error


def error_stats(got: Array, expected: Array, buffer: BufferPlan | None = None) -> ErrorStats:
    """The error of an output; `judge` wants that of the original kernel in the same case. With the buffer,
    what is expected of quantised codes is first clipped as `judge` clips it."""
    largest, squares, count = 0.0, 0.0, 0
    coded = element_type(buffer.type) if buffer is not None and buffer.compare == "codes" else None
    for _, g, e in _array_chunks(got, expected):
        with np.errstate(all="ignore"):
            exact = clip_to_type(e, coded) if coded is not None else _in_range(e, got.dtype)
            error = np.abs(_as_float64(g) - exact)
            finite = _finite_mask(exact, got.dtype)
            error = error[np.isfinite(error) if finite is None else np.isfinite(error) & finite]
        if error.size:
            largest = max(largest, float(error.max()))
            squares += float(np.sum(error * error))
            count += error.size
    return ErrorStats(largest, root_mean_square(squares, count))


def output_errors(array: str, found: ErrorStats, original: ErrorStats) -> OutputErrors:
    parts = (found.max_error, found.rms_error, original.max_error, original.rms_error)
    return OutputErrors(array, *(part if math.isfinite(part) else None for part in parts))


def judge_output(buffer: BufferPlan, got: Array, expected: Array, original: ErrorStats | None) -> str | None:
    """None when the output is right, else the reason in words. `got` has the buffer's element type and
    logical shape, `expected` the same shape in float64 (or integers, which alone are exact beyond 2**53).
    `original` is the original kernel's own error in this case: a candidate may not be much worse. Without it
    only the problem's tolerance counts."""
    sums = _Sums()
    rule = _rule_of(buffer, _error_bounds(buffer, original), sums)
    reason = _first_wrong(buffer, got.shape, _array_chunks(got, expected), rule)
    if reason is not None or original is None or not sums.count:
        return reason
    limit = rms_limit(original, sums.squared_ulp, sums.count)
    if sums.error <= limit:
        return None
    return (
        f"{buffer.name}: the rms error over {sums.count} elements is {sums.error:.4g}, allowed is "
        f"{limit:.4g}: 1.25 times the original's {original.rms_error:.4g} plus "
        f"a quarter {_error_unit(buffer)}"
    )


def rms_limit(original: ErrorStats, squared_ulp: float, count: int) -> float:
    return 1.25 * original.rms_error + 0.25 * root_mean_square(squared_ulp, count)


def root_mean_square(squared: float, count: int) -> float:
    return math.sqrt(squared / count) if count else 0.0


def judge_against_original(buffer: BufferPlan, got: Array, original_output: Array) -> str | None:
    """The verdict where there is no reference: None when the output matches the original's. Where a reference
    would be near a tie nobody knows, so codes may be 1 apart, but only in 1 % of places."""
    reason = _first_wrong(buffer, got.shape, _array_chunks(got, original_output), _like_original(buffer))
    if reason is not None or buffer.compare != "codes":
        return reason
    with np.errstate(all="ignore"):
        chunks = _array_chunks(got, original_output)
        count = sum(int(np.count_nonzero(_steps_apart(g, o))) for _, g, o in chunks)
    if count > max(1, got.size // 100):
        return f"{buffer.name}: {count} of {got.size} codes differ from the original's, allowed is 1 %"
    return None


def judge_odd(
    buffer: BufferPlan,
    got: Array,
    expected: Array | None,
    original_output: Array,
    nan_is_open: bool = False,
    distribution: str = "",
) -> str | None:
    """The verdict on odd values: None where every element is like the original's, which may overflow on its
    way, flush what is denormal or lose digits, or like the reference's: NaN, either infinity, or finite and
    within the tolerance or twice the original's own error. No integer is wrong where the reference is NaN: C
    leaves that conversion open; so does `nan_is_open` all NaNs where the original has lost one. Codes at
    exact ties are the original's, and mixed rows have a rule of their own."""
    like, excusable = _like_original(buffer), np.zeros(got.size, dtype=np.bool_)
    if distribution == MIXED and buffer.compare == "close":
        excusable = excused_in_rows(buffer, got, expected, original_output)
    if expected is None:
        if distribution == "halves" and buffer.compare == "codes":
            return judge_against_original(buffer, got, original_output)
        return _first_wrong(buffer, got.shape, _array_chunks(got, original_output), like, excusable)
    if buffer.compare == "codes" and (reason := broken_tie(buffer, got, expected, original_output)):
        return reason
    slack = slack_of(buffer, original_output, expected)
    if distribution == MIXED:  # one unsteady row must not excuse zeros in others
        slack = min(slack, max(1.0, GROSS / max(buffer.rtol, GROSS / SLACK)))
    bound = _tolerance_bound(buffer, ", or twice the original's own error", 0.5, slack)
    rule = _rule_of(buffer, (bound,), _Sums())
    with np.errstate(all="ignore"):
        parts = [~like.judge(g, o) for _, g, o in _array_chunks(got, original_output)]
    excused = np.concatenate([*parts, np.zeros(0, dtype=np.bool_)]) | excusable
    if expected.dtype.kind == "f":
        nan = np.isnan(expected.reshape(-1))
        lost = nan_is_open and not np.isnan(_as_float64(original_output.reshape(-1)[nan])).all()
        if lost or element_type(buffer.type).kind != "float":
            excused |= nan
    return _first_wrong(buffer, got.shape, _array_chunks(got, expected), rule, excused)


def judge_other_rows(
    buffer: BufferPlan, got: Array, original_output: Array, judged: Sequence[int], at_most: int
) -> tuple[str | None, tuple[int, ...]]:
    """The same for the rows that the reference has not `judged`, and the rows for which it should be asked.
    Where the two differ both may be right, one a little above what is expected and one a little below: only
    the reference can tell. No row is named when there would be more than `at_most`."""
    if judged:
        got = got.copy()
        got[list(judged)] = original_output[list(judged)]
    reason = judge_against_original(buffer, got, original_output)
    if reason is None or not judged:
        return reason, ()
    return reason, _rows_unlike(buffer, _array_chunks(got, original_output), at_most)


@dataclass(frozen=True)
class Stretch:
    """Part of an output whose elements lie one after the other, and what the original gave there."""

    first: int
    got: Array
    original: Array


def judge_stretches(
    buffer: BufferPlan, stretches: Sequence[Stretch], judged: Sequence[int], at_most: int
) -> tuple[str | None, tuple[int, ...]]:
    """The same where these stretches alone may be unlike, and not too many codes differ."""
    row_size, known = math.prod(buffer.shape[1:]), np.asarray(judged, dtype=np.intp)
    parts: list[Chunk] = []
    for one in stretches:
        rows = (one.first + np.arange(one.got.size)) // row_size
        parts.append((one.first, np.where(np.isin(rows, known), one.original, one.got), one.original))
    reason = _first_wrong(buffer, buffer.shape, parts, _like_original(buffer))
    return reason, _rows_unlike(buffer, parts, at_most) if reason and judged else ()


def unlike_original(buffer: BufferPlan, got: Array, original_output: Array) -> NDArray[np.intp]:
    """Which elements differ from the original's by more than both being right explains."""
    unlike = list(_unlike_places(buffer, _array_chunks(got, original_output)))
    return np.concatenate(unlike) if unlike else np.empty(0, dtype=np.intp)


def _rows_unlike(buffer: BufferPlan, chunks: Iterable[Chunk], at_most: int) -> tuple[int, ...]:
    rows, size = set[int](), math.prod(buffer.shape[1:])
    for places in _unlike_places(buffer, chunks):
        rows.update((places // size).tolist())
        if len(rows) > at_most:
            return ()
    return tuple(sorted(rows))


def _unlike_places(buffer: BufferPlan, chunks: Iterable[Chunk]) -> Iterator[NDArray[np.intp]]:
    rule = _like_original(buffer)
    for start, got, original in chunks:
        with np.errstate(all="ignore"):
            wrong = rule.judge(got, original)
        yield start + np.flatnonzero(wrong)


def _rule_of(buffer: BufferPlan, bounds: tuple[_ErrorBound, ...], sums: _Sums) -> _CompareRule:
    """By what the problem says of the output; the bounds are of values that need only be close."""
    if buffer.compare == "exact":
        return _exact_rule()
    return _codes_rule(buffer, sums) if buffer.compare == "codes" else _close_rule(buffer, bounds, sums)


def _like_original(buffer: BufferPlan) -> _CompareRule:
    if buffer.compare == "codes":
        return _CompareRule(lambda g, o: _steps_apart(g, o) > 1, lambda _g, _o: "more than 1 code apart")
    ulps = 2 if element_type(buffer.type).kind == "float" else 0  # integers have no rounding to forgive
    bound = _tolerance_bound(buffer, ", or 2 ulp" if ulps else "", ulps)
    return _rule_of(buffer, (bound,), _Sums())


def _tolerance_bound(buffer: BufferPlan, words: str, ulps: float, slack: float = 1.0) -> _ErrorBound:
    def at(size: Floats, ulp: Floats) -> Floats:
        return slack * np.maximum(buffer.atol + buffer.rtol * size, ulps * ulp)

    return _ErrorBound(f"rtol and atol{words}", at)


def _error_bounds(buffer: BufferPlan, original: ErrorStats | None) -> tuple[_ErrorBound, ...]:
    # The type may have no value closer than half an ulp, so a tighter tolerance could not be met by anything.
    tolerance = _tolerance_bound(buffer, "", 0.5)
    if original is None:
        return (tolerance,)
    twice = 2 * original.max_error
    words = f"twice the original's largest error {original.max_error:.4g} plus 1 {_error_unit(buffer)}"
    return tolerance, _ErrorBound(words, lambda size, ulp: twice + ulp)


def _close_rule(buffer: BufferPlan, bounds: tuple[_ErrorBound, ...], sums: _Sums) -> _CompareRule:
    element = element_type(buffer.type)

    def wrong(got: Array, expected: Array) -> Bools:
        g, e = _as_float64(got), _as_float64(expected)
        finite = _finite_mask(e, got.dtype)
        result = np.zeros(e.shape, dtype=np.bool_)
        if finite is not None:
            rounded = _round_to_dtype(e, got.dtype)
            result = ~finite & (g != rounded) & ~(np.isnan(g) & np.isnan(rounded))
            g, e = np.where(finite, g, 0.0), np.where(finite, e, 0.0)
        error, size, ulp = np.abs(g - e), np.abs(e), element.ulp(e)
        for bound in bounds:
            result |= ~(error <= bound.at(size, ulp))  # also where the error is NaN
        sums.add(error if finite is None else error[finite], ulp if finite is None else ulp[finite])
        return result

    def explain(got: Array, expected: Array) -> str:
        g, e = _as_float64(got), _as_float64(expected)
        rounded = _round_to_dtype(e, got.dtype)
        if not np.isfinite(rounded).all() and np.isfinite(e).all():
            return f"expected overflows {element.name} to {rounded[0]}"
        if not (np.isfinite(g).all() and np.isfinite(e).all()):
            return "they are not both finite, NaN, or the same infinity"
        error, size, ulp = np.abs(g - e), np.abs(e), element.ulp(e)
        bound = next(b for b in bounds if not error[0] <= b.at(size, ulp)[0])
        return f"off by {error[0]:.4g}, allowed is {bound.at(size, ulp)[0]:.4g} ({bound.words})"

    return _CompareRule(wrong, explain)


def _exact_rule() -> _CompareRule:
    def wrong(got: Array, expected: Array) -> Bools:
        if not _is_integer(got.dtype):
            rounded = expected.astype(got.dtype)
            right: Bools = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
            return ~right
        if _is_integer(expected.dtype):
            return np.not_equal(got, expected)
        whole = np.rint(_as_float64(expected))
        # Compared as integers: two int64 beyond 2**53 may be the same float64.
        info = np.iinfo(got.dtype)
        holds = (whole >= float(info.min)) & (whole < float(int(info.max) + 1))
        right = holds & (np.where(holds, whole, 0.0).astype(got.dtype) == got)
        return ~right

    return _CompareRule(wrong, lambda _g, _e: "it must be equal")


def _codes_rule(buffer: BufferPlan, sums: _Sums) -> _CompareRule:
    """Quantised codes; the reference gives the value before rounding, here first clipped to the type. From
    the nearest code the value is half a step away at most. Another code is right where the two are nearly
    tied: its distance is a half step and then how far the value is from the tie."""
    element = element_type(buffer.type)

    def parts(got: Array, expected: Array) -> tuple[Floats, Floats, Floats, Floats]:
        g, e = _as_float64(got), clip_to_type(expected, element)
        # A whole number has one neighbour on either side; of floats, whose steps differ, none are counted.
        steps = np.abs(g - np.rint(e)) if element.kind != "float" else np.zeros_like(e)
        return np.abs(g - e), element.ulp(e), steps, buffer.atol + buffer.rtol * np.abs(e)

    def wrong(got: Array, expected: Array) -> Bools:
        error, step, steps, near = parts(got, expected)
        counted = ~np.isnan(error)
        sums.add(error[counted], step[counted])
        neither = np.isnan(_as_float64(got)) & np.isnan(_as_float64(expected))
        right: Bools = neither | ((steps <= 1) & (error <= 0.5 * step + near))
        return ~right

    def explain(got: Array, expected: Array) -> str:
        error, step, steps, near = parts(got, expected)
        if not np.isfinite(error[0]):
            return "that is no code"
        if steps[0] > 1:
            return f"{steps[0]:.0f} codes from the nearest, allowed is 1"
        tie = error[0] - 0.5 * step[0]
        return f"not the nearest code, and {tie:.4g} from a tie, allowed is {near[0]:.4g}"

    return _CompareRule(wrong, explain)


def _steps_apart(got: Array, other: Array) -> Floats:
    """How many codes apart two are; a NaN and an infinity are alike to their own kind alone."""
    if _is_integer(got.dtype):
        return np.abs(_as_float64(got) - _as_float64(other))
    same = (_as_float64(got) == _as_float64(other)) | (np.isnan(got) & np.isnan(other))
    apart = np.abs(_float_ordinals(got) - _float_ordinals(other)).astype(np.float64)
    return np.where(np.isfinite(got) & np.isfinite(other), apart, np.where(same, 0.0, np.inf))


def _float_ordinals(values: Array) -> NDArray[np.int64]:
    """Floats numbered in their order, both zeros 0: neighbours differ by 1."""
    bits = values.dtype.itemsize * 8
    magnitude = values.view(f"u{values.dtype.itemsize}").astype(np.int64)
    negative = magnitude >> (bits - 1) & 1
    magnitude &= (1 << bits - 1) - 1
    return np.where(negative == 1, -magnitude, magnitude)


def _first_wrong(
    buffer: BufferPlan,
    shape: Sequence[int],
    chunks: Iterable[Chunk],
    rule: _CompareRule,
    excused: Bools | None = None,
) -> str | None:
    count, first = 0, (-1, np.empty(0), np.empty(0))
    with np.errstate(all="ignore"):
        for start, g, e in chunks:
            wrong = rule.judge(g, e)
            if excused is not None:
                wrong &= ~excused[start : start + g.size]
            here = int(np.count_nonzero(wrong))
            if here and not count:
                at = int(wrong.argmax())
                first = start + at, g[at : at + 1], e[at : at + 1]
            count += here
        if not count:
            return None
        place, g, e = first
        why = rule.explain(g, e)
    what = f"{_name_element(buffer.name, place, shape)} is {_format_element(g)}"
    wrong_of = f"{count} of {math.prod(shape)} elements are wrong"
    return f"{what}, expected {_format_element(e)}: {why}; {wrong_of}"


def _name_element(name: str, place: int, shape: Sequence[int]) -> str:
    return f"{name}[{', '.join(map(str, np.unravel_index(place, tuple(shape))))}]"


def _array_chunks(got: Array, expected: Array) -> Iterator[Chunk]:
    if got.shape != expected.shape:
        raise ValueError(f"an output of shape {got.shape} cannot be compared with one of {expected.shape}")
    g, e = got.reshape(-1), expected.reshape(-1)
    for start in range(0, g.size, CHUNK):
        yield start, g[start : start + CHUNK], e[start : start + CHUNK]


def _as_float64(values: Array) -> Floats:
    return values.astype(np.float64, copy=False)


def _round_to_dtype(values: Floats, dtype: np.dtype[Any]) -> Floats:
    """The nearest values of the type: what overflows it becomes infinite (integers do not overflow)."""
    return values if _is_integer(dtype) else _as_float64(values.astype(dtype))


def _finite_mask(values: Floats, dtype: np.dtype[Any]) -> Bools | None:
    """Where the values are finite once rounded to the type; None: everywhere, which the largest one tells."""
    peak = np.abs(values).max(keepdims=True)  # NaN if any is
    if np.isfinite(_round_to_dtype(peak, dtype)).all():
        return None
    return np.isfinite(_round_to_dtype(values, dtype))


def _in_range(values: Array, dtype: np.dtype[Any]) -> Floats:
    exact = _as_float64(values)
    if not _is_integer(dtype):
        return exact
    info = np.iinfo(dtype)
    return np.clip(exact, float(info.min), float(info.max))


def _is_integer(dtype: np.dtype[Any]) -> bool:
    return bool(np.issubdtype(dtype, np.integer))


def _error_unit(buffer: BufferPlan) -> str:
    return "ulp" if element_type(buffer.type).kind == "float" and buffer.compare == "close" else "step"


def _format_element(value: Array) -> str:
    return str(int(value[0])) if _is_integer(value.dtype) else f"{float(value[0]):.9g}"


# Outputs whose order is open are brought into one order, and indices put for the keys they point to, so that
# what is left to compare is values. It is always a rearrangement of what a kernel gave, whole: nothing that
# is missing, or there twice, can be found right.

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class OutputView:
    """What is compared of an output; `buffer` is how: with a name for people, type, rule and tolerance."""

    output: str
    buffer: BufferPlan
    array: Array


Views = dict[str, OutputView]  # by the buffer's name


def is_free(plan: Plan) -> bool:
    return bool(judged_whole(plan))


def judged_whole(plan: Plan) -> frozenset[str]:
    """Outputs of which no part can be judged without the rest, nor without each other."""
    compared = plan.compared()
    if any(b.compare == "function" for b in compared):  # it may ask for all of them
        return frozenset(b.name for b in compared)
    leaders = {b.order for b in compared if b.order not in ("", ANY_ORDER)}
    return frozenset(leaders | {b.name for b in compared if b.order or b.keys})


def key_arrays(plan: Plan) -> tuple[str, ...]:
    """Inputs without which no index can be judged."""
    return tuple(dict.fromkeys(b.keys for b in plan.compared() if b.keys))


def views_of(
    plan: Plan, outputs: Mapping[str, Array], inputs: Mapping[str, Array], rows: Array | None = None
) -> Views:
    """`outputs` may be a kernel's, or what is expected of it; `inputs` are those of `key_arrays`, whole;
    `rows`: of the outputs these are there. What is not among the outputs has no view."""
    found: list[OutputView] = []
    compared = [b for b in plan.compared() if b.name in outputs]
    for b in compared:
        if b.order not in ("", ANY_ORDER):
            continue  # it goes with another
        mine = _output_views(plan, b, outputs[b.name], inputs, rows)
        followers = [other for other in compared if other.order == b.name]
        theirs = [v for f in followers for v in _output_views(plan, f, outputs[f.name], inputs, rows)]
        if b.order == ANY_ORDER:
            found += _sort_views([*mine, *theirs], b.along, "sorted {}")
        elif theirs:
            together = f"{{}}, sorted with {' and '.join(f.name for f in followers)},"
            found += [*mine, *_sort_views(mine, b.along, together, theirs)]
            found += _sort_views(theirs, b.along, "sorted {}", mine)
        else:
            found += mine
        found += [_repeats_view(o, outputs[o.name], inputs[o.keys], rows) for o in (b, *followers) if o.keys]
    return {view.buffer.name: view for view in found}


def _output_views(
    plan: Plan, b: BufferPlan, array: Array, inputs: Mapping[str, Array], rows: Array | None
) -> list[OutputView]:
    """The output itself; of indices the keys they point to, and those that point nowhere as they are."""
    if not b.keys:
        return [OutputView(b.name, b, array)]
    keys = plan.buffer(b.keys)
    index, inside, source = _gather_keys(b, array, inputs[b.keys], rows)
    taken = np.take_along_axis(source, np.where(inside, index, 0), axis=1) if source.shape[1] else index
    at = np.where(inside, taken, np.zeros((), dtype=taken.dtype)).reshape(array.shape)
    outside = np.where(inside, 0, index).reshape(array.shape)
    kind = keys.type if source.shape[1] else "int64"
    return [
        OutputView(b.name, _exact_buffer(b, f"{b.name} outside {keys.name}", "int64"), outside),
        OutputView(b.name, _exact_buffer(b, f"{keys.name} at {b.name}", kind), at),
    ]


def _exact_buffer(b: BufferPlan, name: str, type_name: str) -> BufferPlan:
    return replace(b, name=name, type=type_name, compare="exact", keys="", packed=1)


def _gather_keys(
    b: BufferPlan, array: Array, keys: Array, rows: Array | None
) -> tuple[Integers, NDArray[np.bool_], Array]:
    """By rows of the output: indices, whether there is a key at each, and the keys of the row."""
    length = array.shape[-1] if array.shape else 1
    index = _as_int64(array).reshape(-1, length) if array.size else np.zeros((0, length), dtype=np.int64)
    if b.keys_by_row:
        keys = keys[np.asarray(rows)] if rows is not None else keys
        source = keys.reshape(math.prod(keys.shape[:-1]), keys.shape[-1])
    else:
        source = np.broadcast_to(keys.reshape(1, -1), (index.shape[0], keys.size))
    return index, (index >= 0) & (index < source.shape[1]), source


def _repeats_view(b: BufferPlan, array: Array, keys: Array, rows: Array | None) -> OutputView:
    """How often each index has come before in its row, sorted: 0 throughout where none comes twice."""
    index, inside, _ = _gather_keys(b, array, keys, rows)
    length = index.shape[1]
    order = np.argsort(np.where(inside, index, -1), axis=1, kind="stable")
    listed = np.take_along_axis(np.where(inside, index, -1), order, axis=1)
    place = np.broadcast_to(np.arange(length), listed.shape)
    begins = np.ones(listed.shape, dtype=np.bool_)
    begins[:, 1:] = listed[:, 1:] != listed[:, :-1]
    first = np.maximum.accumulate(np.where(begins, place, 0), axis=1)
    before = np.sort(np.where(listed < 0, 0, place - first), axis=1).reshape(array.shape)
    return OutputView(b.name, _exact_buffer(b, f"repeats of {b.name}", "int64"), before)


def _sort_views(
    views: Sequence[OutputView], along: int, name: str, others: Sequence[OutputView] = ()
) -> list[OutputView]:
    """All in one order, which is that of the values together: exact ones decide before those that may be a
    little off, whose order among near neighbours may be another."""
    members = sorted([*views, *others], key=lambda v: (v.buffer.compare != "exact", v.buffer.name))
    order = _joint_order(members, along)
    found = []
    for view in views:
        flat = view.array.reshape(*order.shape, math.prod(view.array.shape[along + 1 :]))
        array = np.take_along_axis(flat, order[:, :, np.newaxis], axis=1).reshape(view.array.shape)
        called = replace(view.buffer, name=name.format(view.buffer.name))
        found.append(OutputView(view.output, called, array))
    return found


def _joint_order(members: Sequence[OutputView], along: int) -> NDArray[np.intp]:
    shape = members[0].array.shape
    batch, length = math.prod(shape[:along]), shape[along]
    columns: list[Array] = []
    for view in members:
        flat = _sort_keys(view).reshape(batch, length, math.prod(view.array.shape[along + 1 :]))
        columns += [flat[:, :, number] for number in range(flat.shape[2])]
    if not columns:
        return np.broadcast_to(np.arange(length), (batch, length))
    return np.lexsort(tuple(reversed(columns)), axis=-1)


def _sort_keys(view: OutputView) -> Array:
    """Numbers that NumPy sorts, alike for what was given and what is expected."""
    element, array = element_type(view.buffer.type), view.array
    if array.dtype.kind in "iub":
        return array
    if view.buffer.compare == "exact" and element.kind == "float":
        array = array.astype(element.numpy)
    values = array.astype(np.float64)
    return np.rint(values) if view.buffer.compare == "exact" and element.kind != "float" else values


def _as_int64(array: Array) -> Integers:
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    values = array.astype(np.float64)
    fits = np.abs(values) < 2.0**62  # NaN does not
    return np.where(fits, np.rint(np.where(fits, values, 0.0)), -1.0).astype(np.int64)


LOOSE = 0.1  # a relative tolerance that says little, but for types of one byte
ANYTHING = 1.0  # one that zeros meet
EMPTY = "accepts anything"


def verdict_words(problem: Problem, has_reference: bool) -> str:
    """What it means that results were found right: by what, and by which rules."""
    said = (_tolerance_words(problem, has_reference), problem.own_rules)
    rules = "; ".join(words for words in said if words)
    if has_reference:
        return f"{'right' if EMPTY in rules else 'right by the float64 reference'}: {rules}"
    seen = " and what was recorded of a program" if problem.recorded else ""
    return f"matches the original{seen} (there is no reference): {rules}"


def _tolerance_words(problem: Problem, compares_errors: bool) -> str:
    """`rtol`, `atol` and `compare`, by outputs where they differ, and whose errors are the bound besides."""
    outputs = [a for a in problem.arguments if a.is_written and not a.alias]
    by_rule: dict[str, list[str]] = {}
    for one in outputs:
        if one.checker is None:  # else `own_rules` names it
            by_rule.setdefault(_output_tolerance(problem, one, compares_errors), []).append(one.name)
    named = len(by_rule) > 1 or len(outputs) > sum(map(len, by_rule.values()))
    return ", ".join(f"{' and '.join(names)} {rule}" if named else rule for rule, names in by_rule.items())


def _output_tolerance(problem: Problem, output: Argument, compares_errors: bool) -> str:
    accuracy = problem.accuracy
    rtol = accuracy.rtol if output.rtol is None else output.rtol
    atol = accuracy.atol if output.atol is None else output.atol
    words = f"rtol {rtol:g} and atol {atol:g}"
    if output.compare == "exact" or (output.compare is None and output.element.kind != "float"):
        return "exact"
    if output.compare == "codes":
        return f"codes, next to a tie within {words}" if atol < ANYTHING / 2 else f"codes within {words}"
    if rtol >= ANYTHING:
        words += f", which {EMPTY}"
    elif atol >= ANYTHING:
        words += f", which accepts anything up to {atol:g}"
    elif rtol >= LOOSE and output.element.bytes > 1:
        words += ", which is loose"
    return f"close within {words}" + (", and twice the original's error" if compares_errors else "")
