"""Element types against NumPy's own idea of them."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.base.errors import BadInput
from tunesmith.problem.problem import TYPES, ElementType, element_type

FLOATS = {16: np.float16, 32: np.float32, 64: np.float64}


def expected(value: float, bits: int) -> float:
    return float(np.spacing(FLOATS[bits](abs(value))))


def ulp(value: float, name: str) -> float:
    return float(element_type(name).ulp(np.array([value]))[0])


@pytest.mark.parametrize("bits", FLOATS)
@given(data=st.data())
def test_the_distance_to_the_next_number(bits: int, data: st.DataObject) -> None:
    largest = float(np.nextafter(np.finfo(FLOATS[bits]).max, FLOATS[bits](0)))
    value = data.draw(st.floats(-largest, largest, width=bits))  # subnormals among them
    assert ulp(value, f"float{bits}") == expected(value, bits)


@pytest.mark.parametrize("bits", FLOATS)
def test_zero_subnormals_and_powers_of_two(bits: int) -> None:
    info = np.finfo(FLOATS[bits])
    tiny, smallest = float(info.smallest_normal), float(info.smallest_subnormal)
    below = float(np.nextafter(info.smallest_normal, FLOATS[bits](0)))
    name = f"float{bits}"
    for value in (0.0, -0.0, smallest, 3 * smallest, below, tiny, -tiny):
        assert ulp(value, name) == smallest
    assert ulp(1.0, name) == float(info.eps)
    assert ulp(-2.0, name) == 2 * float(info.eps)
    assert ulp(float(np.nextafter(FLOATS[bits](1), FLOATS[bits](0))), name) == float(info.eps) / 2


def test_many_values_at_once() -> None:
    values = np.array([[0.0, 1.0], [-1024.0, 3e-8]])
    got = TYPES["float16"].ulp(values)
    assert got.shape == values.shape
    assert got.tolist() == [[expected(v, 16) for v in row] for row in values.tolist()]


@pytest.mark.parametrize(
    ("name", "value", "distance"),
    [
        ("bfloat16", 1.0, 2**-7),
        ("bfloat16", 0.0, 2**-133),
        ("float8_e4m3", 1.0, 2**-3),
        ("float8_e4m3", 0.0, 2**-9),
        ("float8_e5m2", 1.0, 2**-2),
        ("float8_e5m2", 0.0, 2**-16),
        ("int32", 7.0, 1.0),
        ("uint8", 0.0, 1.0),
    ],
)
def test_small_floats_and_integers(name: str, value: float, distance: float) -> None:
    assert ulp(value, name) == distance


@pytest.mark.parametrize("element", [t for t in TYPES.values() if not t.extension], ids=lambda t: t.name)
def test_numpy_agrees_on_size_and_kind(element: ElementType) -> None:
    assert element.numpy.itemsize == element.bytes
    assert {"f": "float", "i": "int", "u": "uint"}[element.numpy.kind] == element.kind
    assert element_type(element.name) is element


@pytest.mark.parametrize("element", [t for t in TYPES.values() if t.extension], ids=lambda t: t.name)
def test_extension_types_say_what_they_need(element: ElementType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # as if it were not installed
    with pytest.raises(BadInput, match=f"{element.name} needs the package ml_dtypes"):
        _ = replace(element).numpy  # a copy: what has been found once is kept


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("float16", 65504.0),
        ("float32", float(np.finfo(np.float32).max)),
        ("bfloat16", 3.3895313892515355e38),
        ("float8_e4m3", 448.0),
        ("float8_e5m2", 57344.0),
        ("int16", 32767),
        ("uint4", 15),
    ],
)
def test_the_largest_number(name: str, largest: float) -> None:
    if element_type(name).extension:
        pytest.importorskip("ml_dtypes")
    assert element_type(name).largest == largest


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3", "float8_e5m2"])
def test_the_distance_between_neighbours_of_a_small_type(name: str) -> None:
    """All of them, subnormal ones as well: from each to the next one away from zero."""
    pytest.importorskip("ml_dtypes")
    element = element_type(name)
    top = 1 << 8 * element.bytes - 1
    with np.errstate(invalid="ignore"):
        values = np.arange(top, dtype=f"u{element.bytes}").view(element.numpy).astype(np.float64)
    values = values[np.isfinite(values)]
    assert values[-1] == element.largest
    assert (element.ulp(values[:-1]) == np.diff(values)).all()
    assert (element.ulp(-values[:-1]) == np.diff(values)).all()


@pytest.mark.parametrize(("name", "bounds"), [("int4", (-8, 7)), ("uint4", (0, 15))])
def test_four_bits_to_an_element(name: str, bounds: tuple[int, int]) -> None:
    element = element_type(name)
    assert element.bounds == bounds
    assert all(map(element.holds, bounds))
    assert not any(map(element.holds, (bounds[0] - 1, bounds[1] + 1)))
    assert [element.nbytes(count) for count in (0, 1, 2, 3, 4096)] == [0, 1, 1, 2, 2048]
    assert element.memory == np.uint8
    assert element.numpy == {"int4": np.int8, "uint4": np.uint8}[name]
    assert element_type("float32").nbytes(3) == 12


def test_an_unknown_type_lists_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"unknown element type 'float'.*float16.*uint64"):
        element_type("float")
