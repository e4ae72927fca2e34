"""Memory of packed elements, as it is filled before a run and read after it."""

from __future__ import annotations

import numpy as np
import pytest

from tunesmith.lab import memory as guards
from tunesmith.lab.memory import as_array, count_poisoned, gaps_damaged, initial_payload
from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.problem import element_type


def buffer(type_: str, shape: tuple[int, ...], init: float | None = None) -> BufferPlan:
    element = element_type(type_)
    count = int(np.prod(shape))
    return BufferPlan(
        name="out",
        type=type_,
        role="output",
        shape=shape,
        strides=tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))),
        extent=count,
        align=1,
        values=None,
        range=None,
        init=init,
        rtol=0,
        atol=0,
        compare="exact",
        itemsize=element.bytes,
        packed=element.packed,
    )


def test_packed_outputs_are_poisoned_byte_by_byte() -> None:
    plan = buffer("int4", (3, 4))
    data = bytearray(initial_payload(plan, guards.PATTERN))
    assert bytes(data) == guards.repeat_pattern(guards.PATTERN, 6)
    assert count_poisoned(plan, bytes(data)) == 12
    data[2] ^= 0x10
    assert count_poisoned(plan, bytes(data)) == 10
    assert not gaps_damaged(plan, bytes(data), None)


@pytest.mark.parametrize(("type_", "value", "byte"), [("int4", -3, 0xDD), ("uint4", 9, 0x99)])
def test_what_callers_fill_packed_arrays_with(type_: str, value: int, byte: int) -> None:
    plan = buffer(type_, (3, 4), init=value)
    data = initial_payload(plan, guards.PATTERN)
    assert data == bytes([byte]) * 6
    assert (as_array(plan, data) == value).all()


def test_packed_outputs_are_read_one_to_an_element() -> None:
    array = as_array(buffer("int4", (2, 2)), bytes([0x2F, 0x81]))
    assert array.tolist() == [[-1, 2], [1, -8]]
    assert as_array(buffer("uint4", (2, 2)), bytes([0x2F, 0x81])).tolist() == [[15, 2], [1, 8]]


@pytest.mark.parametrize("type_", ["float8_e4m3", "float8_e5m2", "bfloat16"])
def test_small_floats_are_read_and_filled(type_: str) -> None:
    pytest.importorskip("ml_dtypes")
    plan = buffer(type_, (2, 3), init=1.5)
    data = initial_payload(plan, guards.PATTERN)
    assert as_array(plan, data).astype(np.float64).tolist() == [[1.5] * 3] * 2
