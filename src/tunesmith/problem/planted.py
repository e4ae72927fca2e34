"""Inputs drawn to meet conditions on data: ordinary values, and rows in which numbers are planted.

Which numbers is in the distribution's name, so that a case says all of itself. Some rows have a structure of
the catalogue besides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.problem import ElementType, element_type
from tunesmith.problem.structures import lay_rows, structures_for
from tunesmith.text import seed_of

Array = NDArray[Any]
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


def plant(values: Array, buffer: BufferPlan, distribution: str, seed: int) -> Array:
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
    near = [n for n in _neighbours(numbers, element) if low <= n <= high] or [min(max(0, low), high)]
    exact = [n for n in numbers if low <= n <= high and (is_float or n == int(n))] or near
    wide = values.dtype if not is_float and element.bytes == 8 else np.dtype(np.float64)
    rows = np.resize(values.astype(wide), (-(-values.size // width), width))
    count, column = len(rows), (len(rows), 1)
    # Rows of several arrays have the same form, or each its own.
    both, own = (np.random.default_rng(seed_of(seed, PLANTED, name)) for name in ("", buffer.name))
    drawn = both.random((count, 2))
    form = np.where(drawn[:, 0] < 0.5, drawn[:, 1], own.random(count)) * len(_FORMS)
    ground, share = (np.array(part)[form.astype(np.int64)][:, None] for part in zip(*_FORMS, strict=True))

    some = np.where(own.random(column) < 0.5, own.choice(exact, rows.shape), own.choice(near, rows.shape))
    if is_float and low < 0:
        some *= own.choice((1, 1, 1, -1), column)  # a row's: numbers that cancel say nothing of a kernel
    power = own.choice((0, 1, -1), column)  # the same number all over, or spread by it
    is_one = (own.random(column) < 0.25) & ((power != 0) | (np.abs(some[:, :1]) <= _LARGE))
    some = np.where(is_one, some[:, :1] * (1 + own.random(rows.shape)) ** power, some)
    ordered = np.resize(np.roll(exact, own.integers(len(exact))), rows.shape)
    common = _COMMON * np.random.default_rng(seed).random(rows.shape if is_flat else width)
    named = [int(n) % width for n in numbers if n >= 0 and n == int(n)]
    place = own.choice([0, int(own.integers(width)), *named], column)
    is_planted = (own.random(rows.shape) < share) | ((share == _ONCE) & (np.arange(width) == place))
    rows = np.where(is_planted, some, np.choose(ground, [rows, 0 * rows, ordered, common]))
    laid = rows.astype(wide).reshape(-1)
    lay_rows(own, laid, width, width, _STRUCTURED, structures_for(element, True, True), (low, high))
    done: Array = np.clip(laid[: values.size], low, high).astype(values.dtype)
    return done


def _neighbours(numbers: Sequence[float], element: ElementType) -> list[float]:
    """Of each number those of the type beside it, what lies half-way to the next and its root; and the value
    that has it as its bits."""
    if element.kind != "float":
        return [near for n in numbers if n == int(n) for near in (int(n) - 1, int(n) + 1, -int(n))]
    word = np.dtype(f"u{element.bytes}")
    found = [math.sqrt(n) for n in numbers if n >= 0]
    found += [(low + high) / 2 for low, high in pairwise(sorted(numbers))]
    for number in (n for n in numbers if 0 < n < element.largest):
        bits = np.full(1, number).astype(element.numpy).view(word)
        found += [
            float((bits + word.type(step)).view(element.numpy)[0])
            for step in (1, -1 % 2 ** (8 * word.itemsize))
        ]
    patterns = [int(n) for n in numbers if n == int(n) and _BITS_FROM <= n < 2 ** (8 * word.itemsize)]
    return found + [float(np.full(1, bits, word).view(element.numpy)[0]) for bits in patterns]
