"""Inputs drawn at random: the same distribution, seed and buffer give the same array in every process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.base.text import seed_of
from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.problem import ElementType, element_type
from tunesmith.problem.structures import PLANTED, Random, lay_halves, lay_rows, plant_numbers, structures_for
from tunesmith.space.expr import Expr, parse_expr
from tunesmith.space.expr_arrays import evaluate_columns

Array = NDArray[Any]
Bounds = tuple[float, float]

# What the tester explores; the first alone is used before timing.
DISTRIBUTIONS = ("normal", "uniform", "wide", "zeros", "ones", "spikes")
# Values that callers may send, and at which an original may be less exact: candidates are held to it there.
ODD = ("special", "extreme", "rows", "halves")
MIXED = "rows"  # every structure of the catalogue, where ordinary inputs have the calm ones

# Larger arrays repeat one drawn block of about so many elements, each time rolled by another odd step and,
# where the distribution is symmetric, with every second block negated: no two stretches of memory are alike,
# at the price of a copy. Marginal distributions stay; long-range independence is not what kernels are tested
# on. Block and step are whole rows where these are so short that as many repetitions all start elsewhere.
BLOCK = 1 << 20
_ROLL = 1_000_003  # odd, so the first BLOCK repetitions all start elsewhere
CALM_SHARE = 1 / 8  # of the rows of ordinary inputs have a structure
MIXED_SHARE = 7 / 8  # of those where structures are what is tested
RUN_LENGTHS = (3, 14)  # powers of two: where rows lie is not known, as in the memory of timed launches
ZONES = 8  # with a length each
_ALONG = 0.8  # of arrays with several axes: rows along the last one; else columns, or all axes but the first

CONSTANT = ("zeros", "ones")
_SYMMETRIC = ("normal", "uniform", "wide", "spikes")
_INTEGERS = (0, 100)
_SPIKE = 50.0
_SPIKE_EVERY = 64
_SPECIAL_EVERY = 256  # about so many elements hold one of each special number; of integers a quarter
_ROOM = 12  # powers of two below the largest value: the sum of a few thousand such numbers has a value
_EXACT = 1 << 53  # whole numbers beyond it are not all there are in a float64


@dataclass(frozen=True)
class RepeatedBlock:
    """What an array repeats: its k-th stretch of n items, as many as `values` has, is `values` from item
    k * roll % n on and then from the start, with the sign bits flipped where `negate` and k is odd. Items are
    those in memory: elements, or bytes that packed elements share. Not longer than the array itself."""

    values: Array
    roll: int
    negate: bool

    def stretch(self, start: int, count: int) -> Array:
        """Items `start` to `start + count` of the array."""
        if not self.roll and start + count <= self.values.size:
            return self.values[start : start + count]
        out = np.empty(count, dtype=self.values.dtype)
        at, size = start, self.values.size
        while at < start + count:
            number, place = divmod(at, size)
            first = (place + number * self.roll) % size
            # To the end of the stretch, of the block, or of what is asked for, whichever comes first.
            length = min(size - place, size - first, start + count - at)
            part = out[at - start : at - start + length]
            part[...] = self.values[first : first + length]
            if self.negate and number % 2:
                np.negative(part, out=part)
            at += length
        return out

    def at(self, places: NDArray[np.int64]) -> Array:
        """The items at these places of the array."""
        numbers, within = np.divmod(places, self.values.size)
        found: Array = self.values[(within + numbers * self.roll) % self.values.size]
        if self.negate:
            np.negative(found, out=found, where=numbers % 2 == 1)
        return found


def draw_block(buffer: BufferPlan, distribution: str, seed: int, *, is_timed: bool = False) -> RepeatedBlock:
    """What `draw_array` repeats, for those who lay an array out themselves. What the user promises comes
    first: `values` replaces the distribution, and a `range` alone means uniform within it (up to rounding to
    the type), or what of an odd distribution fits in. Integers are zeros, ones, or uniform in `range`, else 0
    to 100; packed ones else over all their values; special ones have the ends of the range or the type among
    them. Timed memory serves arrays of all sizes: runs instead of rows."""
    if distribution.startswith(PLANTED):
        block = draw_block(buffer, DISTRIBUTIONS[0], seed)
        return replace(block, values=plant_numbers(block.values, buffer, distribution, seed))
    element = element_type(buffer.type)
    kept = distribution if distribution in ODD else "uniform"
    chosen = buffer.values or (kept if buffer.range else distribution)
    rng = np.random.default_rng(seed_of(seed, buffer.name))
    row, pitch = _row_of(buffer)
    count, roll = _repeat_period(buffer, pitch)
    if chosen in ("zeros", "ones"):
        constant = np.full(element.packed, int(chosen == "ones"), dtype=element.numpy)
        return RepeatedBlock(np.repeat(pack_elements(constant, element), count), 0, False)
    if element.kind != "float":
        usual = buffer.range or (element.bounds if element.packed > 1 else _INTEGERS)
        kind: Any = element.numpy.type
        ends = _whole_bounds(element, usual)
        whole = rng.integers(*ends, count * element.packed, dtype=kind, endpoint=True)
        if chosen == "special":
            for end in _whole_bounds(element, buffer.range or element.bounds):
                whole[_random_places(rng, whole.size, _SPECIAL_EVERY // 4)] = end
        if not is_timed:  # where many are equal atomics wait for each other, which is not what callers time
            _add_structure(buffer, whole, (row, pitch), distribution, seed, usual)
        values = pack_elements(whole, element)
    else:
        drawn = _draw_floats(rng, count, element, chosen, buffer.range)
        given = buffer.range or (-element.largest, element.largest)
        _add_structure(buffer, drawn, None if is_timed else (row, pitch), distribution, seed, given)
        values = drawn.astype(element.numpy)
    symmetric = element.kind == "float" and chosen in _SYMMETRIC and buffer.range is None
    repeats = buffer.words > count
    return RepeatedBlock(values, roll if repeats else 0, symmetric and repeats)


def _row_of(buffer: BufferPlan) -> tuple[int, int]:
    """Elements of a row that lie side by side, and from the start of one to that of the next."""
    axes = sorted(zip(buffer.strides, buffer.shape, strict=True))
    steps = [(stride, length) for stride, length in axes if length > 1]
    row = steps[0][1] if steps and steps[0][0] == 1 else 1
    return row, max(steps[1][0] if len(steps) > 1 else row, row)


def _repeat_period(buffer: BufferPlan, pitch: int) -> tuple[int, int]:
    """Items of the block that an array repeats, and by how many it is rolled each time."""
    rows = BLOCK * buffer.packed // pitch
    if buffer.words <= BLOCK or rows * pitch * rows < buffer.extent or pitch % buffer.packed:
        return min(buffer.words, BLOCK), _ROLL % BLOCK
    step = next(n for n in range(rows * 5 // 8, 0, -1) if math.gcd(n, rows) == 1)
    return rows * pitch // buffer.packed, step * pitch // buffer.packed


def _add_structure(
    buffer: BufferPlan,
    values: Array,
    rows: tuple[int, int] | None,
    distribution: str,
    seed: int,
    bounds: Bounds,
) -> None:
    """Rows of the catalogue among drawn ones; runs, where nobody knows of rows."""
    rng = np.random.default_rng(seed_of(seed, buffer.name, "rows"))
    element = element_type(buffer.type)
    # Of wide numbers one made the scale of a row would stand above all others.
    is_own = buffer.values is not None or distribution not in ("normal", "uniform", MIXED)
    is_mixed, is_free = distribution == MIXED, buffer.values is None and buffer.range is None
    if distribution == "halves" and rows is not None and is_free and element.kind == "float":
        lay_halves(np.random.default_rng(seed_of(seed, "halves")), values, *rows)
        np.clip(values, *bounds, out=values)
    if distribution in (*CONSTANT, *ODD) and not is_mixed:
        return
    share, table = MIXED_SHARE if is_mixed else CALM_SHARE, structures_for(element, is_own, not is_mixed)
    lay = partial(lay_rows, rng, share=share, table=table, bounds=bounds)
    dense = 0 < values.size == buffer.count and buffer.in_c_order
    if rows is None or (len(buffer.shape) < 2 and rng.integers(2)):
        for zone in np.array_split(values, ZONES):  # where nobody knows how long rows are
            length = 1 << int(rng.integers(*RUN_LENGTHS))
            lay(zone, length, length)
    elif len(buffer.shape) < 2 or not dense or rng.random() < _ALONG:
        lay(values, *rows)
    elif len(buffer.shape) > 2 and rng.integers(2):
        slab = math.prod(buffer.shape[1:])
        lay(values, slab, slab)
    else:
        turned = np.ascontiguousarray(values.reshape(-1, buffer.shape[-1]).T)
        lay(turned.reshape(-1), turned.shape[1], turned.shape[1])
        values[...] = turned.T.reshape(-1)


def draw_array(buffer: BufferPlan, distribution: str, seed: int) -> Array:
    """The buffer's whole memory, padding between strides included; packed elements as bytes."""
    return draw_block(buffer, distribution, seed).stretch(0, buffer.words)


def draw_rows(buffer: BufferPlan, distribution: str, seed: int, rows: Sequence[int]) -> Array:
    """`logical(draw_array(...), buffer)[rows]`, without the rest of the array."""
    block = draw_block(buffer, distribution, seed)
    element = element_type(buffer.type)
    shape, strides = buffer.shape[1:], buffer.strides[1:]
    count = math.prod(shape)
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if count else 0
    out = np.empty((len(rows), *shape), dtype=element.numpy)
    if not count:
        return out
    for number, row in enumerate(rows):
        if not 0 <= row < buffer.shape[0]:
            raise IndexError(f"row {row} of {buffer.name}, which has {buffer.shape[0]}")
        first = row * buffer.strides[0]
        if element.packed > 1:  # dense, and the last axis is even: a row is whole bytes, or a single element
            start, end = first // element.packed, -(-(first + count) // element.packed)
            values = unpack_elements(block.stretch(start, end - start), element)
            out[number] = values[first % element.packed :][:count].reshape(shape)
        elif reach <= 2 * count:
            span = block.stretch(first, reach)
            out[number] = _strided_view(span, shape, strides)
        else:
            out[number] = block.at(first + _element_offsets(shape, strides))
    return out


def shaped_view(view: Array, buffer: BufferPlan) -> Array:
    """The buffer's memory as an array of its shape: a read-only view, a copy only of packed elements."""
    if view.ndim != 1 or view.size < buffer.words:
        raise ValueError(f"{buffer.name} takes {buffer.words} elements in a row, got shape {view.shape}")
    element = element_type(buffer.type)
    if element.packed > 1:
        values = unpack_elements(view, element)[: buffer.extent].reshape(buffer.shape)
        values.setflags(write=False)
        return values
    return _strided_view(view, buffer.shape, buffer.strides)


def pack_elements(values: Array, element: ElementType) -> Array:
    """Elements as they lie in memory: two to a byte, the first in its low bits; other types as they are."""
    if element.packed == 1:
        return values
    nibbles = values.reshape(-1).astype(np.uint8) & 0xF
    if nibbles.size % 2:
        nibbles = np.append(nibbles, np.uint8(0))
    together: Array = nibbles[0::2] | nibbles[1::2] << 4
    return together


def unpack_elements(memory: Array, element: ElementType) -> Array:
    """The elements in packed memory, one to a byte."""
    out = np.empty(2 * memory.size, dtype=np.uint8)
    out[0::2] = memory & 0xF
    out[1::2] = memory >> 4
    return (out ^ 8).view(np.int8) - np.int8(8) if element.kind == "int" else out


def _strided_view(view: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    steps = tuple(stride * view.strides[0] for stride in strides)
    words = view.view(f"u{view.itemsize}")  # of a type that is not its own NumPy makes no strided view
    return np.lib.stride_tricks.as_strided(words, shape, steps, writeable=False).view(view.dtype)


def _element_offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> NDArray[np.int64]:
    """Where the elements of a row lie, relative to its first."""
    places = np.zeros((), dtype=np.int64)
    for length, stride in zip(shape, strides, strict=True):
        places = places[..., np.newaxis] + stride * np.arange(length, dtype=np.int64)
    return places


def _draw_floats(rng: Random, count: int, element: ElementType, chosen: str, bounds: Bounds | None) -> Array:
    kind: Any = np.float64 if element.bytes == 8 else np.float32
    values: Array
    if chosen in ODD and (bounds or chosen != "extreme"):
        values = _draw_floats(rng, count, element, "uniform" if bounds else "normal", bounds)
        if chosen == "special":
            _add_special(rng, values, element, bounds)
        return values
    if bounds:  # the type may be smaller than what the user allows: beyond it lie infinities, or NaN
        bounds = (max(bounds[0], -element.largest), min(bounds[1], element.largest))
    if chosen == "integers":
        low, high = (math.ceil(bounds[0]), math.floor(bounds[1])) if bounds else _INTEGERS
        low, high = max(low, -_EXACT), min(high, _EXACT)
        values = rng.integers(low, high, count, dtype=np.int64, endpoint=True).astype(kind)
    elif chosen == "normal":
        values = rng.standard_normal(count, dtype=kind)
    elif chosen in ("uniform", "positive"):
        values = rng.random(count, dtype=kind)  # 0 included, 1 not
        if bounds:  # so written, no span overflows
            values = (1 - values) * kind(bounds[0]) + values * kind(bounds[1])
        elif chosen == "uniform":
            values = 2 * values - 1
        else:  # not below the smallest normal number: rounding to the type must not give 0
            values = np.maximum(1 - values, kind(2.0**element.min_exponent))
    elif chosen == "wide":
        reach = 10 if element.bytes > 1 else 7  # 1e-3 to 1e3, but a byte may hold no more than 448
        values = _draw_log_uniform(rng, count, -reach, reach, kind)
    elif chosen == "extreme":
        least = element.min_exponent
        most = max(math.frexp(element.largest)[1] - _ROOM, least + 1)
        values = _draw_log_uniform(rng, count, least, most, kind)
    elif chosen == "spikes":
        values = rng.standard_normal(count, dtype=kind) * kind(0.1)
        places = rng.integers(0, count, max(1, count // _SPIKE_EVERY) if count else 0)
        values[places] = kind(_SPIKE) * _random_signs(rng, places.size, kind)
    else:
        known = ", ".join((*DISTRIBUTIONS, *ODD, "positive", "integers"))
        raise ValueError(f"there is no distribution {chosen!r}, only {known}")
    return np.clip(values, *bounds) if bounds else values


def _draw_log_uniform(rng: Random, count: int, least: int, most: int, kind: Any) -> Array:
    """A random fraction times a random power of two: log-uniform enough, and exact on every machine."""
    powers = rng.integers(least, most, count, dtype=np.int32)
    drawn: Array = np.ldexp(1 + rng.random(count, dtype=kind), powers) * _random_signs(rng, count, kind)
    return drawn


def _add_special(rng: Random, values: Array, element: ElementType, bounds: Bounds | None) -> None:
    """All the larger ones but one leave room for sums, whose overflow would depend on their order."""
    low, high = bounds or (-math.inf, math.inf)
    large = math.ldexp(element.largest, -_ROOM)
    least, smallest = 2.0**element.min_exponent, 2.0 ** (element.min_exponent - element.mantissa)
    sizes = (math.inf, large, least, least / 2, 5 * smallest, smallest, 0.0)
    wanted = [low, high, *(sign * size for size in sizes for sign in (1, -1))]
    for number in [n for n in wanted if low <= n <= high] + ([math.nan] if bounds is None else []):
        values[_random_places(rng, values.size, _SPECIAL_EVERY)] = number
    if bounds is None and values.size:
        values[rng.integers(values.size)] = element.largest


def _random_places(rng: Random, count: int, every: int) -> NDArray[np.int64]:
    return rng.integers(0, count, -(-count // every)) if count else np.zeros(0, dtype=np.int64)


def _random_signs(rng: Random, count: int, kind: Any) -> Array:
    flips: Array = rng.integers(0, 2, count, dtype=np.int8).astype(kind)
    return 1 - 2 * flips


def _whole_bounds(element: ElementType, bounds: Bounds) -> tuple[int, int]:
    least, largest = element.bounds
    return max(math.ceil(bounds[0]), least), min(math.floor(bounds[1]), largest)


# Memory that timed launches rotate through, the same in every process. An arena is one long stretch of drawn
# numbers; slot s of an array begins s strides into it, so what follows an array up to the next slot is known
# as well. Swapping a few stretches makes an input that no launch has seen.

VERSIONS = 2  # of arrays that the user's function makes: neighbouring slots differ
GAP = 64  # bytes at least that belong to nobody between two slots
SWAPS = 8  # pairs of stretches
LONGEST = 1024  # items of a stretch: so many that the sum of a long row changes by more than a tolerance


@dataclass(frozen=True)
class SlotPlace:
    """One slot among those of a workload; `apart`: strides are multiples of so many bytes."""

    slot: int
    apart: int
    swaps: int = 0  # the seed of what was swapped; 0: nothing was

    @property
    def version(self) -> int:
        return self.slot % VERSIONS


def stride_of(b: BufferPlan, apart: int) -> int:
    """An odd number of alignments: slots begin at odd and even ones, as arrays do in checks."""
    align = max(b.align, apart, b.itemsize)
    return (-(-(b.nbytes + GAP) // align) | 1) * align


def block_of(b: BufferPlan, distribution: str, seed: int) -> RepeatedBlock:
    """What the arena of an array repeats, however large it is: one block serves every workload."""
    count = b.packed * (BLOCK + 1)
    long = replace(b, shape=(count,), strides=(1,), extent=count, traffic=None, rtol=0.0, atol=0.0, align=1)
    return _draw_arena(long, distribution, seed)


_draw_arena = lru_cache(8)(partial(draw_block, is_timed=True))


@lru_cache(256)
def swap_moves(b: BufferPlan, seed: int, back: bool = False) -> tuple[tuple[int, int, int], ...]:
    """What swapping moves: to which place, from which place of what was drawn, and how many items of memory;
    `back`: each its own again. Nothing where there are too few, or no seed."""
    if not seed or b.words < 2:
        return ()
    length = max(1, min(LONGEST, b.words // (16 * SWAPS)))
    stretches = b.words // length
    rng = np.random.default_rng(seed_of(seed, b.name))
    spare = int(rng.integers(b.words - stretches * length + 1))
    numbers: dict[int, None] = {}  # different ones out of possibly very many, without a list of them all
    while len(numbers) < 2 * min(SWAPS, stretches // 2):
        numbers[int(rng.integers(stretches))] = None
    places = [spare + number * length for number in numbers]
    others = [places[n ^ 1] for n in range(len(places))]  # neighbours in the list change places
    return tuple((to, to if back else source, length) for to, source in zip(places, others, strict=True))


def slot_items(
    b: BufferPlan, distribution: str, seed: int, place: SlotPlace, first: int = 0, count: int | None = None
) -> Array:
    """The array at a slot in memory, with what was swapped: `count` items from `first` on, or all of them."""
    block = block_of(b, distribution, seed)
    start = place.slot * stride_of(b, place.apart) // b.itemsize
    items = np.array(block.stretch(start + first, b.words if count is None else count))
    for to, source, length in swap_moves(b, place.swaps):
        begin, end = max(to, first), min(to + length, first + items.size)
        if begin < end:
            part = block.stretch(start + source + begin - to, end - begin)
            items[begin - first : end - first] = part
    return items


def after_slot(b: BufferPlan, distribution: str, seed: int, place: SlotPlace) -> bytes:
    """What lies between an array and the next slot."""
    stride = stride_of(b, place.apart)
    first = place.slot * stride // b.itemsize
    end = (place.slot + 1) * stride // b.itemsize
    gap = block_of(b, distribution, seed).stretch(first + b.words, end - first - b.words)
    return gap.tobytes()


FLAT = "i"  # an element's number, counted with the last axis fastest


class NoElement(Exception):
    """An element that has no value, or none of its type."""


def index_names(axes: int) -> tuple[str, ...]:
    """What a formula may name besides sizes: the element's number, and its place along each axis."""
    return (FLAT, *(f"{FLAT}{axis}" for axis in range(axes)))


def formula_values(buffer: BufferPlan) -> NDArray[Any]:
    """The array, of its logical shape; raises NoElement."""
    element = element_type(buffer.type)
    found = values_at(parse_expr(buffer.formula), {}, buffer.shape, element, buffer.name)
    return found.astype(element.numpy)


def values_at(
    expr: Expr, sizes: Mapping[str, int], shape: Sequence[int], element: ElementType, name: str
) -> NDArray[np.int64]:
    columns: dict[str, NDArray[np.int64] | int] = {n: v for n, v in sizes.items() if n in expr.names}
    for axis, length in enumerate(shape):
        if f"{FLAT}{axis}" in expr.names:
            along = [1] * len(shape)
            along[axis] = length
            columns[f"{FLAT}{axis}"] = np.arange(length, dtype=np.int64).reshape(along)
    if FLAT in expr.names:
        columns[FLAT] = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    if columns:
        values, undefined = evaluate_columns(expr, columns)
    else:
        values, undefined = np.array(expr.evaluate({})), np.array(False)
    if np.any(undefined):
        raise NoElement(f"{expr.text!r} has no value at {_name_element(undefined, shape, name)}")
    if element.kind != "float":
        low, high = element.bounds
        outside = (values < low) | (values > high)
        if np.any(outside):
            at = _name_element(outside, shape, name)
            raise NoElement(f"{expr.text!r} is no {element.name} at {at}: allowed is {low} to {high}")
    return np.broadcast_to(values, tuple(shape))


def _name_element(wrong: NDArray[np.bool_], shape: Sequence[int], name: str) -> str:
    everywhere = np.broadcast_to(wrong, tuple(shape))
    place = np.unravel_index(int(everywhere.argmax()), tuple(shape)) if everywhere.size else ()
    return f"{name}[{', '.join(map(str, place))}]"
