"""What rows of a drawn array look like: constant, repeated, sorted, far from zero and so on, mixed within one
array. To add a structure takes a row in the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.problem import ElementType

Array = NDArray[Any]
Random = np.random.Generator
Make = Callable[[Random, Array], Array]  # new rows from ordinary ones, (rows, length), length >= 2

CALM_SHARE = 1 / 8  # of the rows of ordinary inputs
MIXED_SHARE = 7 / 8  # of those where structures are what is tested
RUN_LENGTHS = (3, 14)  # powers of two: where rows lie is not known, as in the memory of timed launches
ZONES = 8  # with a length each
GROUP = 32  # in each so many elements of `halves` one is the largest


@dataclass(frozen=True)
class Structure:
    """`is_calm`: sums of such a row and its square are about as large as before, so that ordinary rules on
    errors hold. `is_own`: it has no values but the row's own, so a promise on values is kept."""

    name: str
    make: Make
    is_calm: bool = False
    is_own: bool = False


def _pairs(_: Random, x: Array) -> Array:
    half = x.shape[1] // 2
    x[:, 1 : 2 * half : 2] = x[:, 0 : 2 * half : 2]
    return x


def _palindrome(_: Random, x: Array) -> Array:
    half = x.shape[1] // 2
    x[:, x.shape[1] - half :] = x[:, :half][:, ::-1]
    return x


def _alternating(_: Random, x: Array) -> Array:
    x = np.abs(x)
    x[:, 1::2] *= -1
    return x


def _powers_of_two(_: Random, x: Array) -> Array:
    made: Array = np.ldexp(np.sign(x), np.frexp(x)[1] - 1)
    return made


def _constant_but_one(rng: Random, x: Array) -> Array:
    made, place = np.repeat(x[:, :1], x.shape[1], axis=1), rng.integers(x.shape[1], size=len(x))
    made[np.arange(len(x)), place] = x[np.arange(len(x)), place]
    return made


def _far(rng: Random, x: Array) -> Array:
    """Far from zero with a small spread, 2**-5 to 2**-12 of the distance."""
    distance, share = rng.integers(3, 11, (len(x), 1)), rng.integers(5, 13, (len(x), 1))
    made: Array = np.ldexp(_signs(rng, x), distance) + np.ldexp(x, distance - share)
    return made


def _close_together(rng: Random, x: Array) -> Array:
    """The same for what must stay within a range: around the row's first value."""
    made: Array = x[:, :1] + np.ldexp(x - x[:, :1], -rng.integers(3, 9, (len(x), 1)))
    return made


def _outlier(rng: Random, x: Array) -> Array:
    rows, place = np.arange(len(x)), rng.integers(x.shape[1], size=len(x))
    x[rows, place] = np.ldexp(x[rows, place], rng.integers(4, 9, len(x)))
    return x


def _steps(_: Random, x: Array) -> Array:
    return np.sort(x, axis=1)[:, np.arange(x.shape[1]) // 8 * 8]


def _largest_at(place: int) -> Make:
    def make(_: Random, x: Array) -> Array:
        rows = np.arange(len(x))  # by value, and every second by magnitude
        largest = np.where(rows % 2, x.argmax(axis=1), np.abs(x).argmax(axis=1))
        x[rows, largest], x[:, place] = x[:, place].copy(), x[rows, largest].copy()
        return x

    return make


def _largest_twice(rng: Random, x: Array) -> Array:
    x[np.arange(len(x)), rng.integers(x.shape[1], size=len(x))] = x.max(axis=1)
    return x


def _one_hot(rng: Random, x: Array) -> Array:
    made, place = np.zeros_like(x), rng.integers(x.shape[1], size=len(x))
    made[np.arange(len(x)), place] = x[np.arange(len(x)), place]
    return made


def _zero_block(rng: Random, x: Array) -> Array:
    """Half of the row, from a random place on."""
    first = rng.integers(x.shape[1], size=(len(x), 1))
    inside = (np.arange(x.shape[1]) - first) % x.shape[1] < -(-x.shape[1] // 2)
    return np.where(inside, x.dtype.type(0), x)


def _few_values(rng: Random, x: Array) -> Array:
    few = min(int(rng.integers(2, 5)), x.shape[1])
    return np.take_along_axis(x, rng.integers(0, few, x.shape), axis=1)


def _sum_zero(_: Random, x: Array) -> Array:
    half = x.shape[1] // 2
    x[:, half : 2 * half] = -x[:, :half]
    x[:, 2 * half :] = 0
    return x


def _scaled(rng: Random, x: Array) -> Array:
    return np.ldexp(x, rng.integers(-14, 8, (len(x), 1)))


def _scaled_columns(rng: Random, x: Array) -> Array:
    return np.ldexp(x, rng.integers(-6, 7, (1, x.shape[1])))


def _ramp(_: Random, x: Array) -> Array:
    steps = np.arange(x.shape[1]).astype(x.dtype) / x.shape[1]
    made: Array = x[:, :1] + (x[:, -1:] - x[:, :1]) * steps
    return made


def _signs(rng: Random, x: Array) -> Array:
    return np.where(rng.integers(0, 2, (len(x), 1)), 1, -1).astype(x.dtype)


def _copy(_: Random, x: Array) -> Array:
    return x  # of another row, which `lay_out` makes when all others are made


AS_FIRST, AS_BEFORE = "equal to the first row", "equal to the row before"
CATALOGUE: tuple[Structure, ...] = (
    Structure(AS_FIRST, _copy, is_calm=True, is_own=True),
    Structure(AS_BEFORE, _copy, is_calm=True, is_own=True),
    Structure("equal pairs", _pairs, is_calm=True, is_own=True),
    Structure("palindrome", _palindrome, is_calm=True, is_own=True),
    Structure("alternating signs", _alternating, is_calm=True),
    Structure("whole numbers", lambda _, x: np.copysign(np.ceil(np.abs(x)), x), is_calm=True),
    Structure("powers of two", _powers_of_two, is_calm=True),
    Structure("two values of either sign", lambda _, x: np.copysign(x[:, :1], x), is_calm=True),
    Structure("constant", lambda _, x: np.repeat(x[:, :1], x.shape[1], axis=1), is_own=True),
    Structure("constant but one", _constant_but_one, is_own=True),
    Structure("far from zero", _far),
    Structure("close together", _close_together),
    Structure("one outlier", _outlier),
    Structure("ascending", lambda _, x: np.sort(x, axis=1), is_own=True),
    Structure("descending", lambda _, x: np.sort(x, axis=1)[:, ::-1], is_own=True),
    Structure("steps", _steps, is_own=True),
    Structure("largest first", _largest_at(0), is_own=True),
    Structure("largest last", _largest_at(-1), is_own=True),
    Structure("largest twice", _largest_twice, is_own=True),
    Structure("runs of equals", lambda _, x: x[:, np.arange(x.shape[1]) // 4 * 4], is_own=True),
    Structure("periodic", lambda _, x: x[:, np.arange(x.shape[1]) % 4 % x.shape[1]], is_own=True),
    Structure("few values", _few_values, is_own=True),
    Structure("zeros", lambda _, x: np.zeros_like(x)),
    Structure("one that is not zero", _one_hot),
    Structure("block of zeros", _zero_block),
    Structure("sum of zero", _sum_zero),
    Structure("negative", lambda _, x: -np.abs(x)),
    Structure("positive", lambda _, x: np.abs(x)),
    Structure("magnitude of its own", _scaled),
    Structure("magnitudes by column", _scaled_columns),
    Structure("evenly spaced", _ramp),
)
_WITH_ZERO = ("zeros", "one that is not zero", "block of zeros")


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
    a row begins every `pitch` elements. One that would leave the bounds stays as it is."""
    count = values.size // pitch if row > 1 else 0
    wanted = math.ceil(count * share) if rng.random() < count * share else 0
    if not wanted or not table:
        return
    grid = values[: count * pitch].reshape(count, pitch)[:, :row]
    chosen = rng.permutation(count)[:wanted]
    kinds = rng.permutation(len(table))[np.arange(wanted) % len(table)]
    of = {one.name: chosen[kinds == number] for number, one in enumerate(table)}
    for one in table:
        if one.name not in (AS_FIRST, AS_BEFORE) and of[one.name].size:
            with np.errstate(all="ignore"):
                made = one.make(rng, grid[of[one.name]])
                held = ((made >= bounds[0]) & (made <= bounds[1])).all(axis=1)
            grid[of[one.name][held]] = made[held]
    grid[of[AS_FIRST]] = grid[0]
    source = np.arange(count)
    source[of[AS_BEFORE]] = 0
    source = np.maximum.accumulate(source)  # the row before may be such a copy itself
    grid[of[AS_BEFORE]] = grid[source[of[AS_BEFORE]]]


def lay_runs(
    rng: Random,
    values: Array,
    share: float,
    table: Sequence[Structure],
    bounds: tuple[float, float],
) -> None:
    """The same where nobody knows how long rows are: stretches of several lengths."""
    zone = max(-(-values.size // ZONES), 1)
    for first in range(0, values.size, zone):
        length = 1 << int(rng.integers(*RUN_LENGTHS))
        lay_rows(rng, values[first : first + zone], length, length, share, table, bounds)


# Codes that rows are scaled to: the largest, and how many bits of a float's fraction it has; None: integers.
CODES: tuple[tuple[int, int | None], ...] = (
    *((127, None), (128, None), (255, None), (7, None), (8, None), (15, None)),
    *((448, 3), (240, 3), (57344, 2), (6, 1)),
)


def lay_halves(rng: Random, values: Array, row: int, pitch: int) -> None:
    """Every element a tie between two codes, where the row's largest magnitude stands for the largest code:
    whole numbers and a half, or numbers with a bit more than a small float keeps, times a power of two.
    `rng` is the same for all arrays: rows of one number share a scale, so that their sums are ties as well.
    """
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
