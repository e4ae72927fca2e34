"""Inputs drawn at random: the same distribution, seed and buffer give the same array in every process."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.core.digest import seed_of
from tunesmith.core.dtypes import ElementType, element_type
from tunesmith.core.plan import BufferPlan

# What the tester explores; the first alone is used before timing.
DISTRIBUTIONS = ("normal", "uniform", "wide", "zeros", "ones", "spikes")

# Larger arrays repeat one drawn block of this many elements, each time rolled by another odd step and, where
# the distribution is symmetric, with every second block negated: no two stretches of memory are alike, at
# the price of a copy. Marginal distributions stay; long-range independence is not what kernels are tested on.
BLOCK = 1 << 22
_ROLL = 1_000_003  # odd, so the first BLOCK repetitions all start elsewhere

_SYMMETRIC = ("normal", "uniform", "wide", "spikes")
_INTEGERS = (0, 100)
_SPIKE = 50.0
_SPIKE_EVERY = 64


def draw_array(buffer: BufferPlan, distribution: str, seed: int) -> NDArray[Any]:
    """All `extent` elements of the buffer's memory, padding between strides included.

    What the user promises comes first: `values` replaces the distribution, and a `range` alone means uniform
    within it (up to rounding to the type). Integers are zeros, ones, or uniform in `range`, else 0 to 100.
    """
    element = element_type(buffer.type)
    chosen = buffer.values or ("uniform" if buffer.range else distribution)
    rng = np.random.default_rng(seed_of(seed, buffer.name))
    count = min(buffer.extent, BLOCK)
    if chosen in ("zeros", "ones"):
        return np.full(buffer.extent, int(chosen == "ones"), dtype=element.numpy)
    if element.kind != "float":
        block = _integers(rng, count, element, buffer.range or _INTEGERS)
    else:
        block = _floats(rng, count, element, chosen, buffer.range).astype(element.numpy)
    if buffer.extent <= BLOCK:
        return block
    symmetric = element.kind == "float" and chosen in _SYMMETRIC and buffer.range is None
    return _repeated(block, buffer.extent, symmetric)


def logical(view: NDArray[Any], buffer: BufferPlan) -> NDArray[Any]:
    """The buffer's memory as an array of its shape: a read-only view, no copy."""
    if view.ndim != 1 or view.size < buffer.extent:
        raise ValueError(f"{buffer.name} takes {buffer.extent} elements in a row, got shape {view.shape}")
    strides = tuple(stride * view.strides[0] for stride in buffer.strides)
    return np.lib.stride_tricks.as_strided(view, buffer.shape, strides, writeable=False)


def _floats(
    rng: np.random.Generator,
    count: int,
    element: ElementType,
    chosen: str,
    bounds: tuple[float, float] | None,
) -> NDArray[Any]:
    kind: Any = np.float64 if element.bytes == 8 else np.float32
    values: NDArray[Any]
    if chosen == "integers":
        low, high = (math.ceil(bounds[0]), math.floor(bounds[1])) if bounds else _INTEGERS
        values = rng.integers(low, high, count, dtype=np.int64, endpoint=True).astype(kind)
    elif chosen == "normal":
        values = rng.standard_normal(count, dtype=kind)
    elif chosen in ("uniform", "positive"):
        values = rng.random(count, dtype=kind)  # 0 included, 1 not
        if bounds:
            values = values * kind(bounds[1] - bounds[0]) + kind(bounds[0])
        elif chosen == "uniform":
            values = 2 * values - 1
        else:  # not below the smallest normal number: rounding to the type must not give 0
            values = np.maximum(1 - values, kind(2.0**element.min_exponent))
    elif chosen == "wide":
        # A random fraction times a random power of two: log-uniform enough, and exact on every machine.
        reach = 10 if element.bytes > 1 else 7  # 1e-3 to 1e3, but a byte may hold no more than 448
        powers = rng.integers(-reach, reach, count, dtype=np.int32)
        values = np.ldexp(1 + rng.random(count, dtype=kind), powers) * _signs(rng, count, kind)
    elif chosen == "spikes":
        values = rng.standard_normal(count, dtype=kind) * kind(0.1)
        places = rng.integers(0, count, max(1, count // _SPIKE_EVERY) if count else 0)
        values[places] = kind(_SPIKE) * _signs(rng, places.size, kind)
    else:
        known = ", ".join((*DISTRIBUTIONS, "positive", "integers"))
        raise ValueError(f"there is no distribution {chosen!r}, only {known}")
    return np.clip(values, *bounds) if bounds else values


def _signs(rng: np.random.Generator, count: int, kind: Any) -> NDArray[Any]:
    flips: NDArray[Any] = rng.integers(0, 2, count, dtype=np.int8).astype(kind)
    return 1 - 2 * flips


def _integers(
    rng: np.random.Generator, count: int, element: ElementType, bounds: tuple[float, float]
) -> NDArray[Any]:
    kind: Any = element.numpy.type
    info = np.iinfo(kind)
    low = max(math.ceil(bounds[0]), int(info.min))
    high = min(math.floor(bounds[1]), int(info.max))
    values: NDArray[Any] = rng.integers(low, high, count, dtype=kind, endpoint=True)
    return values


def _repeated(block: NDArray[Any], extent: int, symmetric: bool) -> NDArray[Any]:
    out = np.empty(extent, dtype=block.dtype)
    for number, start in enumerate(range(0, extent, BLOCK)):
        part = out[start : start + BLOCK]
        cut = number * _ROLL % BLOCK
        head = block[cut : cut + part.size]
        part[: head.size] = head
        part[head.size :] = block[: part.size - head.size]
        if symmetric and number % 2:
            np.negative(part, out=part)
    return out
