"""Evaluate an expression over NumPy columns, row by row the same answer as the scalar evaluation.

Every sub-expression is computed for all rows, also where a short circuit makes it irrelevant; which rows have
no value is carried along as a mask. Bounds from the columns' extremes go with each value: where they prove
that nothing can pass 2**62 no row is checked, and where they do not each row is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from tunesmith.space import expr as n
from tunesmith.space.expr import COMPARE, LIMIT, ArithmeticOp, CompareOp, Expr, Function, Node

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Columns = Mapping[str, Ints | int]


@dataclass(frozen=True, slots=True)
class _Column:
    """Numbers (one per row, or a single one for all) between `low` and `high`; 0 where undefined."""

    numbers: Ints
    low: int
    high: int
    undefined: Bools | None = None  # None: defined everywhere

    @property
    def true(self) -> Bools:
        return np.not_equal(self.numbers, 0)


_Binary = Callable[[_Column, _Column], _Column]


def evaluate_truth(expr: Expr, columns: Columns) -> Bools:
    """For each row, whether the expression is defined and not zero."""
    numbers, undefined = evaluate_columns(expr, columns)
    return np.not_equal(numbers, 0) & ~undefined


def evaluate_columns(expr: Expr, columns: Columns) -> tuple[Ints, Bools]:
    """The value for each row, and where there is none (the value there is 0)."""
    shape = np.broadcast_shapes(*(np.shape(column) for column in columns.values()))
    with np.errstate(all="ignore"):  # rows that could overflow or divide by zero are masked
        value = _Evaluation(columns).of(expr.tree)
    undefined = np.False_ if value.undefined is None else value.undefined
    return np.broadcast_to(value.numbers, shape), np.broadcast_to(undefined, shape)


class _Evaluation:
    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.seen: dict[str, _Column] = {}

    def of(self, node: Node) -> _Column:
        match node:
            case n.Num(number):
                return _Column(np.asarray(number, dtype=np.int64), number, number)
            case n.Variable(id):
                if id not in self.seen:
                    self.seen[id] = _read_column(self.columns.get(id))
                return self.seen[id]
            case n.Arithmetic(op, left, right):
                return _ARITHMETIC[op](self.of(left), self.of(right))
            case n.Compare(left, links):
                return self.chain(left, links)
            case n.Logic(op, operands):
                return self.logic(op == "and", operands)
            case n.Conditional(test, then, other):
                return _choose_rows(self.of(test), self.of(then), self.of(other))
            case n.FunctionCall(function, args):
                values = [self.of(arg) for arg in args]
                return _UNARY[function](values[0]) if len(values) == 1 else reduce(_BINARY[function], values)
            case n.Not(operand):
                value = self.of(operand)
                return _truth_column(~value.true, value.undefined)
            case n.Neg(operand):
                value = self.of(operand)
                return _Column(-value.numbers, -value.high, -value.low, value.undefined)
            case n.OneOf(item, options, negated):
                value = self.of(item)
                inside = np.isin(value.numbers, np.array(options, dtype=np.int64))
                return _truth_column(inside != negated, value.undefined)
        assert_never(node)

    def chain(self, left: Node, links: tuple[tuple[CompareOp, Node], ...]) -> _Column:
        previous = self.of(left)
        pending: Bools = np.array(True)  # rows whose chain has held so far
        undefined: Bools | None = None
        for op, right in links:
            value = self.of(right)
            lost = _merge_masks(previous.undefined, value.undefined)
            undefined = _merge_masks(undefined, None if lost is None else pending & lost)
            pending = pending & COMPARE[op](previous.numbers, value.numbers)
            if lost is not None:
                pending = pending & ~lost
            previous = value
        return _truth_column(pending, undefined)

    def logic(self, conjunction: bool, operands: tuple[Node, ...]) -> _Column:
        pending: Bools = np.array(True)  # rows that no operand has settled yet
        undefined: Bools | None = None
        for operand in operands:
            value = self.of(operand)
            if value.undefined is not None:
                undefined = _merge_masks(undefined, pending & value.undefined)
                pending = pending & ~value.undefined
            pending = pending & (value.true if conjunction else ~value.true)
        return _truth_column(pending if conjunction else ~pending, undefined)


def _read_column(column: Ints | int | None) -> _Column:
    if column is None or (isinstance(column, int) and abs(column) > LIMIT):  # may not even fit the array
        return _Column(np.asarray(0, dtype=np.int64), 0, 0, np.array(True))
    numbers = np.asarray(column, dtype=np.int64)
    if not numbers.size:
        return _Column(numbers, 0, 0)
    return _mask_excess(numbers, int(numbers.min()), int(numbers.max()), None)


def _mask_excess(numbers: Ints, low: int, high: int, undefined: Bools | None) -> _Column:
    """Keep the numbers where bounds allow no excess, else mask each row that exceeds. Needs numbers that have
    not wrapped around, or only 2**63 to -2**63, which exceeds as well."""
    if low < -LIMIT or high > LIMIT:
        excess = (numbers > LIMIT) | (numbers < -LIMIT)
        undefined = _merge_masks(undefined, excess)
        low, high = max(low, -LIMIT), min(high, LIMIT)
    return _mask_undefined(numbers, low, high, undefined)


def _mask_undefined(numbers: Ints, low: int, high: int, undefined: Bools | None) -> _Column:
    """Undefined rows get 0, which the bounds then include, so that later arithmetic stays in range."""
    if undefined is None:
        return _Column(numbers, low, high)
    return _Column(np.where(undefined, 0, numbers), min(low, 0), max(high, 0), undefined)


def _truth_column(true: Bools, undefined: Bools | None) -> _Column:
    if undefined is not None:
        true = true & ~undefined
    return _Column(true.astype(np.int64), 0, 1, undefined)


def _merge_masks(a: Bools | None, b: Bools | None) -> Bools | None:
    if a is None or b is None:
        return b if a is None else a
    return a | b


def _choose_rows(test: _Column, then: _Column, other: _Column) -> _Column:
    undefined = test.undefined
    if then.undefined is not None:
        undefined = _merge_masks(undefined, test.true & then.undefined)
    if other.undefined is not None:
        undefined = _merge_masks(undefined, ~test.true & other.undefined)
    numbers = np.where(test.true, then.numbers, other.numbers)
    return _mask_undefined(numbers, min(then.low, other.low), max(then.high, other.high), undefined)


def _add_columns(a: _Column, b: _Column) -> _Column:
    undefined = _merge_masks(a.undefined, b.undefined)
    return _mask_excess(a.numbers + b.numbers, a.low + b.low, a.high + b.high, undefined)


def _subtract_columns(a: _Column, b: _Column) -> _Column:
    undefined = _merge_masks(a.undefined, b.undefined)
    return _mask_excess(a.numbers - b.numbers, a.low - b.high, a.high - b.low, undefined)


def _multiply_columns(a: _Column, b: _Column) -> _Column:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    low, high = min(corners), max(corners)
    undefined = _merge_masks(a.undefined, b.undefined)
    if low < -LIMIT or high > LIMIT:
        # |a| * |b| > LIMIT, asked without forming the product, which could wrap around to anything.
        excess = np.abs(a.numbers) > LIMIT // np.maximum(np.abs(b.numbers), 1)
        undefined = _merge_masks(undefined, excess)
        low, high = max(low, -LIMIT), min(high, LIMIT)
    return _mask_undefined(a.numbers * b.numbers, low, high, undefined)


def _safe_divisor(a: _Column, b: _Column) -> tuple[Ints, Bools | None]:
    """b with ones for zeros, and the rows undefined by a, b or a division by zero."""
    undefined = _merge_masks(a.undefined, b.undefined)
    if not b.low <= 0 <= b.high:
        return b.numbers, undefined
    zero = b.numbers == 0
    return np.where(zero, 1, b.numbers), _merge_masks(undefined, zero)


def _divide_columns(a: _Column, b: _Column) -> _Column:
    divisor, undefined = _safe_divisor(a, b)
    largest = max(abs(a.low), abs(a.high))
    low = 0 if a.low >= 0 and b.low >= 0 else -largest
    return _mask_undefined(a.numbers // divisor, low, largest, undefined)


def _column_remainder(a: _Column, b: _Column) -> _Column:
    divisor, undefined = _safe_divisor(a, b)
    return _mask_undefined(a.numbers % divisor, min(b.low, 0), max(b.high, 0), undefined)


def _ceil_divide_columns(a: _Column, b: _Column) -> _Column:
    divisor, undefined = _safe_divisor(a, b)
    largest = max(abs(a.low), abs(a.high))
    return _mask_undefined(-(-a.numbers // divisor), -largest, largest, undefined)


def _round_up(a: _Column, b: _Column) -> _Column:
    divisor, undefined = _safe_divisor(a, b)
    reach = max(abs(a.low), abs(a.high)) + max(abs(b.low), abs(b.high))  # the result is less than b beyond a
    return _mask_excess(-(-a.numbers // divisor) * divisor, -reach, reach, undefined)


def _make_extreme_operator(
    of_two: Callable[[int, int], int], of_columns: Callable[[Ints, Ints], Ints]
) -> _Binary:
    def extreme(a: _Column, b: _Column) -> _Column:
        numbers, undefined = of_columns(a.numbers, b.numbers), _merge_masks(a.undefined, b.undefined)
        return _mask_undefined(numbers, of_two(a.low, b.low), of_two(a.high, b.high), undefined)

    return extreme


def _next_pow2(a: _Column) -> _Column:
    undefined = a.undefined if a.low > 0 else _merge_masks(a.undefined, a.numbers <= 0)
    bits = np.maximum(a.numbers, 1) - 1
    for shift in (1, 2, 4, 8, 16, 32):  # copy the highest bit to all below it
        bits = bits | (bits >> shift)
    return _mask_undefined(bits + 1, 1, 1 << max(a.high - 1, 0).bit_length(), undefined)


def _is_pow2(a: _Column) -> _Column:
    return _truth_column((a.numbers > 0) & (a.numbers & (a.numbers - 1) == 0), a.undefined)


_ARITHMETIC: dict[ArithmeticOp, _Binary] = {
    "+": _add_columns, "-": _subtract_columns, "*": _multiply_columns, "//": _divide_columns, "%":
    _column_remainder,
}  # fmt: skip
_UNARY: dict[Function, Callable[[_Column], _Column]] = {"next_pow2": _next_pow2, "is_pow2": _is_pow2}
_BINARY: dict[Function, _Binary] = {
    "min": _make_extreme_operator(min, np.minimum), "max": _make_extreme_operator(max, np.maximum),
    "ceildiv": _ceil_divide_columns, "round_up": _round_up,
}  # fmt: skip
