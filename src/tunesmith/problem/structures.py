"""Inputs drawn to meet conditions on data: ordinary values, and rows in which numbers are planted.

Which numbers is in the distribution's name, so that a case says all of itself. Some rows have a structure of
the catalogue besides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.base.text import seed_of
from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.problem import ElementType, element_type

Array = NDArray[Any]
Random = np.random.Generator
Make = Callable[[Random, Array], Array]  # new rows from ordinary ones, (rows, length), length >= 2

SPARSE = 1 / 32  # of such a row's elements are not zero
GROUP = 32  # in each so many elements of `halves` one is the largest


@dataclass(frozen=True)
class Structure:
    """What rows of a drawn array look like; one array mixes several. To add one takes a row in the table.
    `is_calm`: sums of such a row and its square are about as large as before, so that ordinary rules on
    errors hold. `is_own`: it has no values but the row's own, so a promise on values is kept."""

    name: str
    make: Make
    is_calm: bool = False
    is_own: bool = False


def _group_starts(x: Array, step: int) -> NDArray[np.int64]:
    """Of each so many columns the first."""
    return np.arange(x.shape[1]) // step * step


def one_unlike(make: Make, one: Make) -> Make:
    """Rows with a single element, anywhere, as another structure has it."""

    def made_of(rng: Random, x: Array) -> Array:
        place = rng.integers(x.shape[1], size=(len(x), 1))
        element = np.take_along_axis(one(rng, x), place, axis=1)
        made = make(rng, x)
        np.put_along_axis(made, place, element, axis=1)
        return made

    return made_of


def keep_rows(_: Random, x: Array) -> Array:
    return x


def zero_rows(_: Random, x: Array) -> Array:
    return np.zeros_like(x)


def _constant_rows(_: Random, x: Array) -> Array:
    return np.repeat(x[:, :1], x.shape[1], axis=1)


def _far_from_zero(rng: Random, x: Array) -> Array:
    """Far from zero, with a spread of 2**-5 to 2**-10 of that: one pass in float32 has digits left."""
    distance, share = rng.integers(3, 11, (len(x), 1)), rng.integers(5, 11, (len(x), 1))
    made: Array = np.ldexp(rng.choice((-1.0, 1.0), (len(x), 1)), distance) + np.ldexp(x, distance - share)
    return made


def _close_together(rng: Random, x: Array) -> Array:
    """The same for what must stay within a range: around the row's first value."""
    made: Array = x[:, :1] + np.ldexp(x - x[:, :1], -rng.integers(3, 9, (len(x), 1)))
    return made


def _scaled_by_row(least: int, most: int) -> Make:
    """By a power of two that each row draws."""
    return lambda rng, x: np.ldexp(x, rng.integers(least, most, (len(x), 1)))


def _largest_at(place: int) -> Make:
    def make(_: Random, x: Array) -> Array:
        rows = np.arange(len(x))  # by value, and every second by magnitude
        largest = np.where(rows % 2, x.argmax(axis=1), np.abs(x).argmax(axis=1))
        x[rows, largest], x[:, place] = x[:, place].copy(), x[rows, largest].copy()
        return x

    return make


def _zero_block(rng: Random, x: Array) -> Array:
    """Half of the row, from a random place on."""
    behind = np.arange(x.shape[1]) - rng.integers(x.shape[1], size=(len(x), 1))
    return np.where(behind % x.shape[1] < -(-x.shape[1] // 2), x.dtype.type(0), x)


def _few_values(rng: Random, x: Array) -> Array:
    few = min(int(rng.integers(2, 5)), x.shape[1])
    return np.take_along_axis(x, rng.integers(0, few, x.shape), axis=1)


def _sum_zero(_: Random, x: Array) -> Array:
    half = x.shape[1] // 2
    x[:, half : 2 * half] = -x[:, :half]
    x[:, 2 * half :] = 0
    return x


def _evenly_spaced(_: Random, x: Array) -> Array:
    """By a power of two, on its multiples: so that small types have these values."""
    spread = (x[:, -1:] - x[:, :1]).astype(np.float64)
    step = np.copysign(np.ldexp(1.0, np.frexp(spread / x.shape[1])[1] - 1), spread)
    made: Array = (np.rint(x[:, :1] / step) + np.arange(x.shape[1])) * step
    return made


AS_FIRST, AS_BEFORE = "equal to the first row", "equal to the row before"  # when all others are made
CATALOGUE: tuple[Structure, ...] = (
    Structure(AS_FIRST, keep_rows, is_calm=True, is_own=True),
    Structure(AS_BEFORE, keep_rows, is_calm=True, is_own=True),
    Structure("equal pairs", lambda _, x: x[:, _group_starts(x, 2)], is_calm=True, is_own=True),
    Structure(
        "palindrome", lambda _, x: np.where(_group_starts(x, 1) < x.shape[1] // 2, x, x[:, ::-1]), True, True
    ),
    Structure("alternating signs", lambda _, x: np.copysign(x, 0.5 - _group_starts(x, 1) % 2), is_calm=True),
    Structure("whole numbers", lambda _, x: np.copysign(np.ceil(np.abs(x)), x), is_calm=True),
    Structure("powers of two", lambda _, x: np.ldexp(np.sign(x), np.frexp(x)[1] - 1), is_calm=True),
    Structure("two values of either sign", lambda _, x: np.copysign(x[:, :1], x), is_calm=True),
    Structure("constant", _constant_rows, is_own=True),
    Structure("constant but one", one_unlike(_constant_rows, keep_rows), is_own=True),
    Structure("far from zero", _far_from_zero),
    Structure("close together", _close_together),
    Structure("one outlier", one_unlike(keep_rows, _scaled_by_row(4, 9))),
    Structure("ascending", lambda _, x: np.sort(x, axis=1), is_own=True),
    Structure("descending", lambda _, x: np.sort(x, axis=1)[:, ::-1], is_own=True),
    Structure("steps", lambda _, x: np.sort(x, axis=1)[:, _group_starts(x, 8)], is_own=True),
    Structure("largest first", _largest_at(0), is_own=True),
    Structure("largest last", _largest_at(-1), is_own=True),
    Structure(
        "largest twice", one_unlike(keep_rows, lambda _, x: 0 * x + x.max(1, keepdims=True)), is_own=True
    ),
    Structure("runs of equals", lambda _, x: x[:, _group_starts(x, 4)], is_own=True),
    Structure("periodic", lambda _, x: x[:, _group_starts(x, 1) % 4], is_own=True),
    Structure("few values", _few_values, is_own=True),
    Structure("zeros", zero_rows),
    Structure("one that is not zero", one_unlike(zero_rows, keep_rows)),
    Structure("sparse", lambda rng, x: np.where(rng.random(x.shape) < SPARSE, x, x.dtype.type(0))),
    Structure("block of zeros", _zero_block),
    Structure("sum of zero", _sum_zero),
    Structure("negative", lambda _, x: -np.abs(x)),
    Structure("positive", lambda _, x: np.abs(x)),
    Structure("magnitude of its own", _scaled_by_row(-14, 8)),
    Structure("magnitudes by column", lambda rng, x: np.ldexp(x, rng.integers(-6, 7, (1, x.shape[1])))),
    Structure("evenly spaced", _evenly_spaced),
)
_WITH_ZERO = ("zeros", "one that is not zero", "sparse", "block of zeros")


def structures_for(element: ElementType, is_own: bool, is_calm: bool) -> tuple[Structure, ...]:
    """Those that suit a type and what is promised of values."""
    if is_own:
        return tuple(one for one in CATALOGUE if one.is_calm and one.is_own)
    table = tuple(one for one in CATALOGUE if one.is_calm or not is_calm)
    if element.kind != "float":
        return tuple(one for one in table if one.is_own or one.name in _WITH_ZERO)
    tiny = Structure("denormals", lambda _, x: np.ldexp(x, element.min_exponent - 2))
    return table if is_calm else (*table, tiny)


def lay_rows(
    rng: Random,
    values: Array,
    row: int,
    pitch: int,
    share: float,
    table: Sequence[Structure],
    bounds: tuple[float, float],
) -> None:
    """Give that share of the rows a structure, in turn, so that none is missing where there are enough rows;
    a row begins every `pitch` elements."""
    count = values.size // pitch if row > 1 else 0
    wanted = math.ceil(count * share) if rng.random() < count * share else 0
    if not wanted or not table:
        return
    grid = values[: count * pitch].reshape(count, pitch)[:, :row]
    kinds = np.full(count, len(table))
    kinds[rng.permutation(count)[:wanted]] = rng.permutation(len(table))[np.arange(wanted) % len(table)]
    for number, one in enumerate(table):
        if (rows := np.flatnonzero(kinds == number)).size:
            with np.errstate(all="ignore"):
                made = one.make(rng, grid[rows])
                held = ((made >= bounds[0]) & (made <= bounds[1])).all(axis=1)
            grid[rows[held]] = made[held]
    names = np.array([*(one.name for one in table), ""])[kinds]
    grid[names == AS_FIRST] = grid[0]
    copied = names == AS_BEFORE
    source = np.maximum.accumulate(np.where(copied, 0, np.arange(count)))  # the one before may be a copy
    grid[copied] = grid[source[copied]]


# Codes that rows are scaled to: the largest, and how many bits of a float's fraction it has; None: integers.
CODES: tuple[tuple[int, int | None], ...] = (
    *((127, None), (128, None), (255, None), (7, None), (8, None), (15, None)),
    *((448, 3), (240, 3), (57344, 2), (6, 1)),
)


def lay_halves(rng: Random, values: Array, row: int, pitch: int) -> None:
    """Every element a tie between two codes, where the row's largest magnitude stands for the largest code:
    whole numbers and a half, or numbers with a bit more than a small float keeps, times a power of two. `rng`
    is the same for all arrays: rows of one number share a scale, so that their sums are ties as well."""
    count = max(values.size // pitch, 1)
    kinds, powers = rng.integers(len(CODES), size=count), rng.integers(-3, 4, size=count)
    powers[::3] = 0  # what is rounded as it is
    row = min(row, values.size)
    grid = values[: (count - 1) * pitch + row]
    grid = np.lib.stride_tricks.as_strided(grid, (count, row), (pitch * values.itemsize, values.itemsize))
    for number, (largest, kept) in enumerate(CODES):
        rows = np.flatnonzero(kinds == number)
        shape = len(rows), row
        if kept is None:
            made = rng.integers(-largest, largest, shape) + 0.5
        else:
            odd = 2 * rng.integers(1 << kept, 2 << kept, shape) + 1
            top = math.frexp(largest)[1] - kept - 2
            made = np.ldexp(odd, rng.integers(top - 6, top, shape)) * rng.choice((-1.0, 1.0), shape)
        starts = np.arange(0, row, GROUP)
        lengths = np.minimum(GROUP, row - starts)
        places = starts + (rng.random((len(rows), len(starts))) * lengths).astype(np.int64)
        np.put_along_axis(made, places, largest * rng.choice((-1.0, 1.0), places.shape), axis=1)
        grid[rows] = np.ldexp(made, powers[rows, np.newaxis])


PLANTED = "planted "  # begins the name of those in which numbers are planted; the numbers follow
_MAX_NUMBERS = 12
_RUN = 32  # elements of a flat array that make a row
_BITS_FROM = 1 << 16  # so large a whole number may be meant as a float's bits
_LARGE = 16.0  # a whole row of a larger number is ill-conditioned where a mean is taken off
_STRUCTURED = 1 / 4  # of the rows are equal to others, pairs or palindromes besides
_COMMON = 8.0  # below it are numbers that all arrays have
# Of a row: what else is in it, and the share of its elements in which numbers are planted.
_ORDINARY, _ZEROS, _IN_ORDER, _IN_ALL = 0, 1, 2, 3
_NOWHERE, _ONCE = -1.0, 0.0
_FORMS = (
    *((_ORDINARY, _ONCE), (_ORDINARY, _ONCE), (_ZEROS, _ONCE)),
    *((_ORDINARY, 0.125), (_ORDINARY, 0.5), (_ORDINARY, 1.0)),
    *((_IN_ORDER, _NOWHERE), (_IN_ALL, _NOWHERE), (_IN_ALL, _NOWHERE), (_IN_ALL, _NOWHERE)),
)


def planted_name(numbers: Iterable[float]) -> str:
    return PLANTED + ", ".join(f"{number:.17g}" for number in islice(numbers, _MAX_NUMBERS))


def plant_numbers(values: Array, buffer: BufferPlan, distribution: str, seed: int) -> Array:
    """What the user promises of an array's values stays so."""
    element, is_flat = element_type(buffer.type), len(buffer.shape) < 2
    width = _RUN if is_flat else buffer.shape[-1]
    if buffer.values is not None or element.packed > 1 or not width * values.size:
        return values
    is_float = element.kind == "float"
    ends = (-element.largest, element.largest) if is_float else element.bounds
    given = buffer.range or ends
    low, high = max(ends[0], given[0]), min(ends[1], given[1])
    numbers = [float(text) for text in distribution.removeprefix(PLANTED).split(",") if text.strip()]
    near = [n for n in _neighbour_values(numbers, element) if low <= n <= high] or [min(max(0, low), high)]
    exact = [n for n in numbers if low <= n <= high and (is_float or n == int(n))] or near
    wide = values.dtype if not is_float and element.bytes == 8 else np.dtype(np.float64)
    rows = np.resize(values.astype(wide), (-(-values.size // width), width))
    count, column = len(rows), (len(rows), 1)
    # Rows of several arrays have the same form, or each its own.
    both, rng = (np.random.default_rng(seed_of(seed, PLANTED, name)) for name in ("", buffer.name))
    drawn = both.random((count, 2))
    form = np.where(drawn[:, 0] < 0.5, drawn[:, 1], rng.random(count)) * len(_FORMS)
    ground, share = (np.array(part)[form.astype(np.int64)][:, None] for part in zip(*_FORMS, strict=True))

    some = np.where(rng.random(column) < 0.5, rng.choice(exact, rows.shape), rng.choice(near, rows.shape))
    if is_float and low < 0:
        some *= rng.choice((1, 1, 1, -1), column)  # a row's: numbers that cancel say nothing of a kernel
    power = rng.choice((0, 1, -1), column)  # the same number all over, or spread by it
    is_one = (rng.random(column) < 0.25) & ((power != 0) | (np.abs(some[:, :1]) <= _LARGE))
    some = np.where(is_one, some[:, :1] * (1 + rng.random(rows.shape)) ** power, some)
    ordered = np.resize(np.roll(exact, rng.integers(len(exact))), rows.shape)
    common = _COMMON * np.random.default_rng(seed).random(rows.shape if is_flat else width)
    named = [int(n) % width for n in numbers if n >= 0 and n == int(n)]
    place = rng.choice([0, int(rng.integers(width)), *named], column)
    is_planted = (rng.random(rows.shape) < share) | ((share == _ONCE) & (np.arange(width) == place))
    rows = np.where(is_planted, some, np.choose(ground, [rows, 0 * rows, ordered, common]))
    laid = rows.astype(wide).reshape(-1)
    lay_rows(rng, laid, width, width, _STRUCTURED, structures_for(element, True, True), (low, high))
    done: Array = np.clip(laid[: values.size], low, high).astype(values.dtype)
    return done


def _neighbour_values(numbers: Sequence[float], element: ElementType) -> list[float]:
    """Of each number those of the type beside it, what lies half-way to the next and its root; and the value
    that has it as its bits."""
    if element.kind != "float":
        return [near for n in numbers if n == int(n) for near in (int(n) - 1, int(n) + 1, -int(n))]
    word = np.dtype(f"u{element.bytes}")
    found = [math.sqrt(n) for n in numbers if n >= 0]
    found += [(low + high) / 2 for low, high in pairwise(sorted(numbers))]
    for number in (n for n in numbers if 0 < n < element.largest):
        bits = np.full(1, number).astype(element.numpy).view(word)
        steps = word.type(1), word.type(-1 % 2 ** (8 * word.itemsize))
        found += [float((bits + step).view(element.numpy)[0]) for step in steps]
    patterns = [int(n) for n in numbers if n == int(n) and _BITS_FROM <= n < 2 ** (8 * word.itemsize)]
    return found + [float(np.full(1, bits, word).view(element.numpy)[0]) for bits in patterns]
