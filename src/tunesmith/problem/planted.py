"""Inputs drawn to meet conditions on data: ordinary values, and rows in which numbers are planted.

Which numbers is in the distribution's name, so that a case says all of itself. Each row has a form of its
own: a number first, anywhere, often or alone, numbers in their order, a row above or below one, equal
neighbours, a row like the one before or like another array's, an extreme at a column that is a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.draws import PLANTED
from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.problem import ElementType, element_type
from tunesmith.text import seed_of

Array = NDArray[Any]
_FORMS = 16
_MAX_NUMBERS = 12
_WHOLE = 8  # so many whole numbers from 0 on
_RUN = 32  # elements of a flat array that make a row
_BITS_FROM = 1 << 16  # so large a whole number may be meant as a float's bits
_LARGE = 16.0  # a whole row of a larger number is ill-conditioned where a mean is taken off


def planted_name(numbers: Iterable[float]) -> str:
    return PLANTED + ", ".join(f"{number:.17g}" for number in islice(numbers, _MAX_NUMBERS))


def plant(values: Array, buffer: BufferPlan, distribution: str, seed: int) -> Array:
    """What the user promises of an array's values stays so."""
    element, is_flat = element_type(buffer.type), len(buffer.shape) < 2
    width = _RUN if is_flat else buffer.shape[-1]
    if buffer.values is not None or element.packed > 1 or not width:
        return values
    ends = (-element.largest, element.largest) if element.kind == "float" else element.bounds
    low, high = (
        f(pair) for f, pair in zip((max, min), zip(ends, buffer.range or ends, strict=True), strict=True)
    )
    numbers = [float(text) for text in distribution.removeprefix(PLANTED).split(",") if text.strip()]
    exact = [n for n in numbers if low <= n <= high and (element.kind == "float" or n == int(n))]
    near = [n for n in _neighbours(numbers, element) if low <= n <= high]
    places = [int(n) for n in numbers if n >= 0 and n == int(n)] or [0]
    found = values.astype(values.dtype if values.dtype.kind in "iu" and element.bytes == 8 else np.float64)
    alike = np.random.default_rng(seed).random(found.size if is_flat else width)  # for all arrays
    same = alike if element.kind == "float" else np.floor(alike * _WHOLE)
    # Rows of several arrays have the same form, or each its own.
    both, own = (np.random.default_rng(seed_of(seed, PLANTED, name)) for name in ("", buffer.name))
    for start in range(0, found.size, width):
        forms = int(both.integers(_FORMS)), int(own.integers(_FORMS))
        part, before = found[start : start + width], found[max(start - width, 0) :]
        size = part.size
        known = exact if exact and own.integers(2) else near
        some = own.choice(known, size) if known else part.astype(np.float64)
        ordered = np.resize(np.roll(exact, own.integers(len(exact))), size) if exact else some
        if element.kind == "float" and low < 0 and not own.integers(4):
            some = -some  # all of a row: numbers that cancel say nothing of a kernel
        others = (ordered, before[:size], same[start if is_flat else 0 :][:size])
        _fill(part, forms[int(both.integers(2))], some, others, places[int(own.integers(len(places)))], own)
    done: Array = np.clip(found, low, high).astype(values.dtype)
    return done


def _fill(
    row: Array, form: int, some: Array, others: Sequence[Array], place: int, rng: np.random.Generator
) -> None:
    anywhere = int(rng.integers(row.size))
    match form:
        case 1:
            row[0] = some[0]
        case 2 | 3:  # alone, it is the row's sum and its extreme
            row[...] = row if form == 2 else 0
            row[anywhere] = some[0]
        case 4 | 5 | 6:
            often = rng.random(row.size) < (0.125, 0.5, 1.0)[form - 4]
            row[often] = some[often]
        case 7 | 8:
            row[...] = others[form - 7]
        case 9 | 14 | 15:  # two arrays must have it at once
            row[...] = others[2]
        case 10:
            row[...] = some[0] if abs(some[0]) <= _LARGE else row[0]
        case 11:
            row[1::2] = row[: row.size - row.size % 2 : 2]
        case 12:
            row[place % row.size] = min(float(np.abs(row).max()) * 2 + 1, 2.0**62) * rng.choice((1, -1))
        case 13:
            spread = 1 + rng.random(row.size)
            row[...] = some[0] * spread if rng.integers(2) else some[0] / spread


def _neighbours(numbers: Sequence[float], element: ElementType) -> list[float]:
    """Of each number those of the type beside it and its root; and the value that has it as its bits."""
    if element.kind != "float":
        return [near for n in numbers if n == int(n) for near in (int(n) - 1, int(n) + 1, -int(n))]
    word = np.dtype(f"u{element.bytes}")
    found = [math.sqrt(n) for n in numbers if n >= 0]
    for number in (n for n in numbers if 0 < n < element.largest):
        bits = np.full(1, number).astype(element.numpy).view(word)
        found += [
            float((bits + word.type(step)).view(element.numpy)[0])
            for step in (1, -1 % 2 ** (8 * word.itemsize))
        ]
    patterns = [int(n) for n in numbers if n == int(n) and _BITS_FROM <= n < 2 ** (8 * word.itemsize)]
    return found + [float(np.full(1, bits, word).view(element.numpy)[0]) for bits in patterns]
