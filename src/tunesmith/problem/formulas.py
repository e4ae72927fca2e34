"""Inputs that an expression makes: every element from its index and the sizes, the same in each process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.problem import ElementType, element_type
from tunesmith.space.expr import Expr, parse
from tunesmith.space.vector import evaluate

FLAT = "i"  # an element's number, counted with the last axis fastest


class NoElement(Exception):
    """An element that has no value, or none of its type."""


def index_names(axes: int) -> tuple[str, ...]:
    """What a formula may name besides sizes: the element's number, and its place along each axis."""
    return (FLAT, *(f"{FLAT}{axis}" for axis in range(axes)))


def formula_values(buffer: BufferPlan) -> NDArray[Any]:
    """The array, of its logical shape; raises NoElement."""
    element = element_type(buffer.type)
    found = values_at(parse(buffer.formula), {}, buffer.shape, element, buffer.name)
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
    values, undefined = evaluate(expr, columns) if columns else (np.int64(expr.evaluate({})), np.False_)
    if np.any(undefined):
        raise NoElement(f"{expr.text!r} has no value at {_where(undefined, shape, name)}")
    if element.kind != "float":
        low, high = element.bounds
        outside = (values < low) | (values > high)
        if np.any(outside):
            at = _where(outside, shape, name)
            raise NoElement(f"{expr.text!r} is no {element.name} at {at}: allowed is {low} to {high}")
    return np.broadcast_to(values, tuple(shape))


def _where(wrong: NDArray[np.bool_] | np.bool_, shape: Sequence[int], name: str) -> str:
    everywhere = np.broadcast_to(wrong, tuple(shape))
    place = np.unravel_index(int(everywhere.argmax()), tuple(shape)) if everywhere.size else ()
    return f"{name}[{', '.join(map(str, place))}]"
