"""What an expression tells of addresses: of which arrays, and whether by steps, by lowest bits or by more."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

NUMBER = "number"  # what a pointer points to that is made of one
NOTHING = "null"  # what a pointer points to that may be null
SHIFTED_AWAY = 64
WIDEST_SHARED = 4096  # of shared memory, whose places follow from the build alone


@dataclass(frozen=True)
class FlowArray:
    name: str
    space: str  # argument, shared, private, constant; a variable; unknown: a parameter that nobody here fills
    is_read_only: bool = False
    lacks_write: bool = False  # nothing is there before this launch writes it
    holds: str = ""  # * pointers lie there, s structs that hold some


@dataclass(frozen=True)
class FlowValue:
    """A number or a pointer. No arrays and no lowest bits: nothing of an address is in it."""

    arrays: frozenset[str] = frozenset()
    shift: int | None = (
        None  # None: a place there, some steps on; else bits of an address, shifted by so many
    )
    is_low: bool = False  # lowest bits of an address, as far as an alignment goes, have a part in it
    is_moved: bool = False
    dims: int = 1  # of what it points to

    @property
    def is_plain(self) -> bool:
        return not (self.arrays or self.is_low)

    @property
    def is_place(self) -> bool:
        return bool(self.arrays) and self.shift is None

    @property
    def one_array(self) -> str | None:
        return next(iter(self.arrays)) if self.is_place and len(self.arrays) == 1 else None

    def stepped(self, by: FlowValue) -> FlowValue:
        return replace(self, is_moved=True, is_low=self.is_low or by.is_low)

    def mixed(self, by: FlowValue, shift: int = 0) -> FlowValue:
        """Bits of both."""
        arrays = self.arrays | by.arrays
        shift = min(max(self.shift or 0, by.shift or 0) + shift, SHIFTED_AWAY)
        return FlowValue(arrays, shift if arrays else None, self.is_low or by.is_low)


PLAIN = FlowValue()
LOW = FlowValue(is_low=True)
NULL = FlowValue(frozenset({NOTHING}))
FORGED = FlowValue(frozenset({NUMBER}), 0)


def join(one: FlowValue, other: FlowValue) -> FlowValue:
    """Either of them."""
    if one == other:
        return one
    is_low = one.is_low or other.is_low
    if not (one.arrays or other.arrays):
        return LOW if is_low else PLAIN
    if one.arrays and other.arrays:
        arrays = one.arrays | other.arrays
        shifts = [each.shift for each in (one, other) if each.shift is not None]
        dims = max(one.dims, other.dims)
        return FlowValue(arrays, max(shifts, default=None), is_low, one.is_moved or other.is_moved, dims)
    held, bare = (one, other) if one.arrays else (other, one)
    return held.mixed(bare) if bare.is_low else replace(held, arrays=held.arrays | {NOTHING})


def join_all(values: Collection[FlowValue]) -> FlowValue:
    found = [value for value in values if not value.is_plain]
    result = found[0] if found else PLAIN
    for value in found[1:]:
        result = join(result, value)
    return result


def combine(
    operator: str, left: FlowValue, right: FlowValue, number: int | None, width: int
) -> FlowValue | None:
    """Of an operator of arithmetic; `number` is what the right side is, where that is known, `width` what an
    alignment may be. None: the distance between two arrays."""
    if left.is_plain and right.is_plain:
        return PLAIN
    if not (left.arrays or right.arrays):
        return LOW
    if operator == "+" and not (left.arrays and right.arrays):
        held, by = (left, right) if left.arrays else (right, left)
        return held.stepped(by)
    if operator == "-" and not right.arrays:
        return left.stepped(right)
    if operator == "-" and left.is_place and right.is_place:
        is_known = left.one_array is not None and left.one_array == right.one_array
        return (LOW if left.is_low or right.is_low else PLAIN) if is_known else None
    is_power = number is not None and number > 0 and number & (number - 1) == 0
    if operator == "%" and number is not None and is_power:
        operator, number = "&", number - 1
    if operator == "&" and number is not None:
        held = left if left.arrays else right
        if number >= 0 and 1 << number.bit_length() + (held.shift or 0) <= width:
            return LOW
        if number < 0 and ~number < width and held.is_place:
            return replace(held, is_low=True, is_moved=True)
    shift = 0
    if operator in (">>", "/", "%"):
        bits = number if operator == ">>" else (number or 0).bit_length() - 1 if is_power else None
        is_known = bits is not None and operator != "%" and 0 <= bits < SHIFTED_AWAY
        shift = bits if is_known and bits is not None else SHIFTED_AWAY
    return left.mixed(right, shift)
