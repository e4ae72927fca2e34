"""Outputs and what is expected of them, drawn at random: right, nearly so, wrong; all special numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.compare import ErrorStats
from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.problem import Compare, ElementType, element_type

Array = NDArray[Any]
ROUNDS = 150


@dataclass(frozen=True)
class Trials:
    """Small outputs, right ones and wrong ones, with what is expected of them."""

    type: str
    compare: Compare
    plain: bool

    def __iter__(self) -> Iterator[tuple[BufferPlan, Array, Array, ErrorStats | None]]:
        element = element_type(self.type)
        rng = np.random.default_rng(len(self.type) + 10 * self.plain)
        for number in range(ROUNDS):
            count = int(rng.integers(1, 12))
            expected = (_plain if self.plain else numbers)(rng, element, count)
            if not self.plain and number % 3 == 0:
                expected[0] = rng.choice(edges(element))
            got = outputs(rng, element, expected, exact=number % 2 == 0)
            rtol, atol = rng.choice([0.0, 1e-3, 0.1]), rng.choice([0.0, 1e-6, 0.5])
            b = buffer(self.type, count, float(rtol), float(atol), self.compare)
            yield b, got, expected, rng.choice([None, _stats(rng, element, expected)])


def _stats(rng: np.random.Generator, element: ElementType, expected: Array) -> ErrorStats:
    """The error of an original: of about the size that rounding makes, or none at all."""
    finite = expected[np.isfinite(expected)]
    ulp = float(element.ulp(finite).max(initial=0.0)) if element.kind == "float" else 1.0
    largest = float(rng.choice([0.0, 0.5, 2.0])) * ulp
    return ErrorStats(largest, largest * float(rng.choice([0.1, 0.6, 1.0])))


def _plain(rng: np.random.Generator, element: ElementType, count: int) -> Array:
    """Finite, and well inside the type."""
    if element.kind == "float":
        return rng.standard_normal(count) * 2.0 ** rng.integers(-6, 4, count)
    near = rng.choice([max(element.bounds[0], -100) + 2.0, 10.0, 100.0])
    return near + np.round(rng.random(count) * 8) / 4  # quarters, so that ties come up


def numbers(rng: np.random.Generator, element: ElementType, count: int) -> Array:
    """Reference values of all kinds, but for those where even the host's rounding is a matter of luck."""
    plain = _plain(rng, element, count)
    if element.kind != "float":
        low, high = float(element.bounds[0]), float(element.bounds[1])
        kinds = [plain, low + plain, high - plain, np.resize([math.nan, math.inf, -math.inf, 0.0], count)]
    else:
        smallest = 2.0 ** (element.min_exponent - element.mantissa)
        exponents = rng.integers(element.min_exponent, 1 - element.min_exponent, count)
        wide = np.ldexp(1 + rng.random(count), exponents) * rng.choice([-1.0, 1.0], count)
        steps = rng.integers(-8, 9, count) / 2  # halves: ties among subnormals
        special = [0.0, -0.0, math.nan, math.inf, -math.inf, 2.0 * element.largest, -4.0 * element.largest]
        around_one = 1 + np.round(rng.random(count) * 16) * 2.0 ** -(element.mantissa + 1)
        kinds = [plain, wide, steps * smallest, np.resize(special, count), around_one]
    return np.choose(rng.integers(0, len(kinds), count), kinds)


def edges(element: ElementType) -> list[float]:
    """Where the type ends, and where numbers begin to round to what it has none of."""
    largest = element.largest
    if element.kind != "float":
        ends = [float(element.bounds[0]), float(largest)]
        return [end + off for end in ends for off in (-1.0, -0.5, 0.0, 0.5, 1.0, 40.0, -40.0)]
    half = float(element.ulp(np.array([largest]))[0]) / 2
    sizes = [largest, largest + half if element.bytes < 8 else largest]
    near = [size * (1 + off) for size in sizes for off in (-1e-3, -1e-7, -1e-9, 0.0)]
    if element.bytes < 8:
        near += [size * (1 + off) for size in sizes for off in (1e-9, 1e-7, 1e-3)]
    return [sign * size for size in near for sign in (-1.0, 1.0)]


def ends(element: ElementType) -> list[Array]:
    """What a kernel may give there, each by itself: the last numbers, the first, infinities, NaN."""
    if element.kind != "float":
        low, high = element.bounds
        return [np.array([v], dtype=element.numpy) for v in (low, low + 1, 0, high - 1, high)]
    with np.errstate(all="ignore"):
        values = np.array([element.largest, element.largest / 2, math.inf, math.nan, 0.0])
        return [np.array([v]).astype(element.numpy) for v in (*values, *-values)]


def outputs(rng: np.random.Generator, element: ElementType, expected: Array, exact: bool = False) -> Array:
    """What a kernel might make of it: mostly the nearest numbers, else their neighbours or anything."""
    count = expected.size
    with np.errstate(all="ignore"):
        if element.kind != "float":
            low, high = element.bounds
            whole = np.nan_to_num(np.rint(expected), nan=7.0, posinf=high, neginf=low).tolist()
            moves = [0] * count if exact else rng.choice([0, 0, 0, 1, -1, 2], count).tolist()
            # In Python's integers: the ends of 64 bits are no float64.
            moved = [min(max(int(v) + move, low), high) for v, move in zip(whole, moves, strict=True)]
            return np.array(moved, dtype=element.numpy)
        got = expected.astype(element.numpy)
        if exact and rng.random() < 0.5:  # what saturating code does
            return np.clip(expected, -element.largest, element.largest).astype(element.numpy)
    if exact:
        return got
    bits = got.view(f"u{element.bytes}")
    bits += rng.choice([0, 0, 0, 1, 2], count).astype(bits.dtype)
    anything = rng.integers(0, 256, count * element.bytes, dtype=np.uint8).view(bits.dtype)
    return np.where(rng.random(count) < 0.02, anything, bits).view(element.numpy)


def buffer(
    type: str, count: int, rtol: float = 0.0, atol: float = 0.0, compare: Compare | None = None
) -> BufferPlan:
    element = element_type(type)
    return BufferPlan(
        name="out",
        type=type,
        role="output",
        shape=(count,),
        strides=(1,),
        extent=count,
        align=element.bytes,
        values=None,
        range=None,
        init=None,
        rtol=rtol,
        atol=atol,
        compare=compare or ("close" if element.kind == "float" else "exact"),
        itemsize=element.bytes,
    )
