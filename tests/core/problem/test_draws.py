"""Drawn inputs: what each distribution looks like, and which memory a timed launch finds."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thoroughness import examples
from tunesmith.problem import inputs
from tunesmith.problem.inputs import (
    DISTRIBUTIONS,
    LONGEST,
    ODD,
    SWAPS,
    SlotPlace,
    draw_array,
    draw_block,
    draw_rows,
    pack_elements,
    shaped_view,
    slot_items,
    swap_moves,
    unpack_elements,
)
from tunesmith.problem.plan import BufferPlan
from tunesmith.problem.problem import Distribution, element_type
from tunesmith.problem.structures import planted_name

EVERY = (*DISTRIBUTIONS, "positive", "integers")
FLOATS = ("float16", "bfloat16", "float32", "float64")


def buffer(type: str, count: int, name: str = "x", **promised: Any) -> BufferPlan:
    element = element_type(type)
    compare = "close" if element.kind == "float" else "exact"
    fixed = {"init": None, "rtol": 0.0, "atol": 0.0, "compare": compare, "packed": element.packed}
    promised = {"values": None, "range": None, **promised}
    memory = {"extent": count, "align": element.bytes, "itemsize": element.bytes}
    return BufferPlan(name, type, "input", (count,), (1,), **memory, **fixed, **promised)  # type: ignore[arg-type]


@pytest.mark.parametrize("distribution", EVERY)
@pytest.mark.parametrize(
    "type", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "uint64"]
)
def test_an_array_has_its_type_and_length_and_is_finite(type: str, distribution: str) -> None:
    for count in (0, 1, 1000):
        array = draw_array(buffer(type, count), distribution, 1)
        assert array.dtype == np.dtype(type)
        assert array.shape == (count,)
        assert np.isfinite(array).all()


@pytest.mark.parametrize("distribution", ["normal", "uniform", "wide", "spikes", "positive"])
def test_seed_and_name_decide_the_array_and_nothing_else(distribution: str) -> None:
    one = draw_array(buffer("float32", 100), distribution, 1)
    assert (draw_array(buffer("float32", 100), distribution, 1) == one).all()
    assert (draw_array(buffer("float32", 100), distribution, 2) != one).any()
    assert (draw_array(buffer("float32", 100, name="y"), distribution, 1) != one).any()


def test_another_process_draws_the_same_array() -> None:
    imports = "from tunesmith.problem.inputs import draw_array; from tunesmith.problem.plan import BufferPlan"
    program = f"{imports}; print(draw_array({buffer('float16', 64)!r}, 'normal', 5).tobytes().hex())"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == draw_array(buffer("float16", 64), "normal", 5).tobytes().hex()


def test_distributions_look_like_what_they_are_called() -> None:
    rows = replace(buffer("float32", 100_000), shape=(1000, 100), strides=(100, 1))
    drawn = {name: draw_array(rows, name, 3) for name in EVERY}
    assert abs(drawn["normal"].mean()) < 0.02
    assert abs(drawn["normal"].std() - 1) < 0.02
    assert drawn["uniform"].min() < -0.99
    assert 0.99 < drawn["uniform"].max() <= 1
    assert drawn["positive"].min() > 0
    assert drawn["positive"].max() <= 1
    magnitude = np.log10(np.abs(drawn["wide"]))
    assert -3.1 < magnitude.min() < -2.9
    assert 2.9 < magnitude.max() < 3.1
    assert abs(magnitude.mean()) < 0.05
    assert abs((drawn["wide"] > 0).mean() - 0.5) < 0.02
    assert (drawn["zeros"] == 0).all()
    assert (drawn["ones"] == 1).all()
    large = np.abs(drawn["spikes"]) == 50
    assert 0.005 < large.mean() < 0.03
    assert np.abs(drawn["spikes"][~large]).max() < 1
    assert set(np.unique(drawn["integers"])) == set(range(101))


def test_a_positive_number_stays_positive_in_a_small_type() -> None:
    assert draw_array(buffer("float16", 1 << 20), "positive", 1).min() > 0


@pytest.mark.parametrize("type", FLOATS)
def test_special_numbers_are_all_there_is(type: str) -> None:
    element = element_type(type)
    drawn = draw_array(buffer(type, 20_000), "special", 1).astype(np.float64)
    normal = 2.0**element.min_exponent
    assert np.isnan(drawn).any()
    assert {np.inf, -np.inf} <= set(drawn[np.isinf(drawn)])
    assert ((drawn != 0) & (np.abs(drawn) < normal)).any()
    assert {element.largest, normal, 0.0} <= set(np.abs(drawn))
    assert {True, False} == set(np.signbit(drawn[drawn == 0]).tolist())
    ordinary = np.isfinite(drawn) & (np.abs(drawn) > 1e-4) & (np.abs(drawn) < 6)
    assert ordinary.mean() > 0.8


@pytest.mark.parametrize("type", FLOATS)
def test_odd_distributions_look_like_what_they_are_called(type: str) -> None:
    drawn = {name: draw_array(buffer(type, 6400), name, 3).astype(np.float64) for name in ODD}
    assert all(np.isfinite(values).all() for name, values in drawn.items() if name != "special")
    element = element_type(type)
    assert drawn["extreme"].max() > math.ldexp(element.largest, -16)
    assert np.abs(drawn["extreme"]).min() < 2.0 ** (element.min_exponent + 4)


@pytest.mark.parametrize("name", ODD)
def test_odd_arrays_repeat_a_block_as_others_do(name: str) -> None:
    whole = buffer("float32", 2 * inputs.BLOCK + 50)
    rows = replace(whole, shape=(2, inputs.BLOCK + 25), strides=(inputs.BLOCK + 25, 1))
    array = draw_array(rows, name, 4)
    np.testing.assert_array_equal(draw_rows(rows, name, 4, [1])[0], array[inputs.BLOCK + 25 :])


def test_integers_reach_the_ends_of_their_type_or_of_the_range_they_have() -> None:
    for type in ("int8", "uint8", "int32", "int64", "uint64", "int4"):
        element = element_type(type)
        memory = draw_array(buffer(type, 1000), "special", 1)
        drawn = unpack_elements(memory, element) if element.packed > 1 else memory
        assert (int(drawn.min()), int(drawn.max())) == element.bounds
    within = draw_array(buffer("int32", 1000, range=(3, 9)), "special", 1)
    assert set(np.unique(within)) == set(range(3, 10))


@given(st.floats(-1e3, 1e3), st.floats(0.5, 1e3), st.sampled_from((*EVERY, *ODD)))
def test_a_promised_range_holds_whatever_the_case_asks_for(low: float, span: float, asked: str) -> None:
    bounds = (low, low + span)
    for values in (None, "uniform", "normal", "positive"):
        array = draw_array(buffer("float64", 200, values=values, range=bounds), asked, 1)
        assert low <= array.min() <= array.max() <= low + span


def test_a_promised_distribution_replaces_the_cases_own() -> None:
    for asked in (*EVERY, *ODD):
        assert (draw_array(buffer("float32", 10, values="ones"), asked, 1) == 1).all()
        whole = draw_array(buffer("float32", 500, values="integers", range=(-2, 2)), asked, 1)
        assert set(np.unique(whole)) == {-2, -1, 0, 1, 2}


@pytest.mark.parametrize("type", ["int8", "uint8", "int32", "int64"])
def test_integers_fill_their_range_and_fit_their_type(type: str) -> None:
    assert set(draw_array(buffer(type, 5000), "normal", 1).tolist()) == set(range(101))
    bounded = draw_array(buffer(type, 500, range=(3, 7)), "zeros", 1)
    assert set(bounded.tolist()) == {3, 4, 5, 6, 7}
    info = np.iinfo(type)
    extreme = draw_array(buffer(type, 500, range=(-1e30, 1e30)), "normal", 1)
    assert info.min <= extreme.min() < info.max // 3
    assert info.max // 2 < extreme.max() <= info.max


def test_an_unknown_distribution_is_our_own_fault() -> None:
    with pytest.raises(ValueError, match="cauchy"):
        draw_array(buffer("float32", 1), "cauchy", 1)


@pytest.mark.parametrize("distribution", ["normal", "uniform", "positive", "integers"])
def test_a_large_array_repeats_no_block_where_another_lies(
    distribution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "BLOCK", 1 << 10)
    count = 5 * (1 << 10) + 17
    array = draw_array(buffer("float32", count), distribution, 1)
    assert array.shape == (count,)
    blocks = [array[start : start + (1 << 10)] for start in range(0, count - 17, 1 << 10)]
    for number, block in enumerate(blocks):
        for other in blocks[:number]:
            assert (block == other).mean() < 0.1
    symmetric = distribution in ("normal", "uniform")
    for number, block in enumerate(blocks):
        sign = -1 if symmetric and number % 2 else 1
        assert (np.sort(sign * block) == np.sort(blocks[0])).all()


def test_a_logical_view_follows_the_strides_and_cannot_be_written() -> None:
    padded = replace(buffer("float32", 0), shape=(3, 4), strides=(10, 1), extent=24)
    memory = np.arange(24, dtype=np.float32)
    view = shaped_view(memory, padded)
    assert view.shape == (3, 4)
    assert view[2, 3] == 23
    assert (view[1] == [10, 11, 12, 13]).all()
    assert np.shares_memory(view, memory)
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 1


def test_a_logical_view_never_reaches_beyond_its_memory() -> None:
    padded = replace(buffer("float32", 0), shape=(3, 4), strides=(10, 1), extent=24)
    with pytest.raises(ValueError, match="24 elements"):
        shaped_view(np.zeros(23, dtype=np.float32), padded)


def test_an_empty_or_scalar_buffer_has_a_logical_view() -> None:
    empty = replace(buffer("float32", 0), shape=(0, 4), strides=(4, 1), extent=0)
    assert shaped_view(np.zeros(0, dtype=np.float32), empty).shape == (0, 4)
    single = replace(buffer("float32", 0), shape=(), strides=(), extent=1)
    assert math.isclose(float(shaped_view(np.ones(1, dtype=np.float32), single)), 1.0)


SMALL = ("bfloat16", "float8_e4m3", "float8_e5m2")


@pytest.mark.parametrize("type", SMALL)
@pytest.mark.parametrize("distribution", EVERY)
def test_small_floats_are_drawn_finite_and_negated_block_by_block(
    type: str, distribution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ml_dtypes")
    monkeypatch.setattr(inputs, "BLOCK", 1 << 10)
    drawn = draw_array(buffer(type, 4000), distribution, 1)
    assert drawn.dtype == element_type(type).numpy
    values = drawn.astype(np.float64)
    assert np.isfinite(values).all()
    if distribution in ("normal", "uniform", "wide", "spikes"):
        assert abs((values > 0).mean() - 0.5) < 0.1
        rolled = np.roll(values[:1024], -(inputs._ROLL % 1024))
        assert (values[1024:2048] == -rolled).all()
    if distribution == "positive":
        assert values.min() > 0
    if distribution == "wide":
        assert np.abs(values).max() > 64
    if distribution == "spikes":
        assert np.abs(values).max() >= 48  # the nearest a byte has to 50


@pytest.mark.parametrize("type", [*SMALL, "float16", "float32", "float64"])
@pytest.mark.parametrize("values", [None, "normal", "integers", "positive"])
def test_a_range_beyond_the_type_ends_at_its_largest_number(type: str, values: Distribution | None) -> None:
    if element_type(type).extension:
        pytest.importorskip("ml_dtypes")
    for bounds in ((-1e308, 1e308), (0.0, 1e308), (-1e6, 1.0)):
        drawn = draw_array(buffer(type, 1000, values=values, range=bounds), "normal", 1).astype(np.float64)
        assert np.isfinite(drawn).all()
        assert np.abs(drawn).max() <= element_type(type).largest
        assert (drawn >= bounds[0]).all()


@given(st.lists(st.integers(-8, 7)))
def test_packed_and_unpacked_again(values: list[int]) -> None:
    signed, unsigned = element_type("int4"), element_type("uint4")
    memory = pack_elements(np.array(values, dtype=np.int8), signed)
    assert memory.dtype == np.uint8
    assert memory.size == -(-len(values) // 2)
    assert unpack_elements(memory, signed)[: len(values)].tolist() == values
    assert unpack_elements(memory, unsigned)[: len(values)].tolist() == [value % 16 for value in values]


def test_the_first_of_two_lies_in_the_low_bits() -> None:
    packed = pack_elements(np.array([1, -2, 7, 0], dtype=np.int8), element_type("int4"))
    assert packed.tolist() == [0xE1, 0x07]
    pair = replace(buffer("int4", 4), shape=(2, 2), strides=(2, 1))
    assert shaped_view(np.array([0xE1, 0x07], dtype=np.uint8), pair).tolist() == [[1, -2], [7, 0]]


@pytest.mark.parametrize(("type", "low", "high"), [("int4", -8, 7), ("uint4", 0, 15)])
def test_four_bits_take_all_their_values(type: str, low: int, high: int) -> None:
    whole = buffer(type, 2000)
    memory = draw_array(whole, "normal", 1)
    assert (memory.dtype, memory.size) == (np.dtype(np.uint8), 1000)
    values = shaped_view(memory, whole)
    assert values.dtype == element_type(type).numpy
    found, counts = np.unique(values, return_counts=True)
    assert found.tolist() == list(range(low, high + 1))
    assert counts.min() > 60
    some = replace(whole, range=(1.0, 3.0))
    assert set(shaped_view(draw_array(some, "normal", 1), some).tolist()) == {1, 2, 3}
    for name, value in (("zeros", 0), ("ones", 1)):
        assert (shaped_view(draw_array(whole, name, 1), whole) == value).all()


@pytest.mark.parametrize("type", ["float16", "float32", "int8", "int4"])
@pytest.mark.parametrize("distribution", ["normal", "zeros", "ones", "spikes"])
@pytest.mark.parametrize("count", [0, 100, 1024, 1026, 5000])
def test_an_array_is_its_block_again_and_again(
    type: str, distribution: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As whoever lays it out elsewhere does it: rolled, and every second with its sign bits flipped."""
    monkeypatch.setattr(inputs, "BLOCK", 1 << 9)
    whole = buffer(type, count)
    block = draw_block(whole, distribution, 7)
    assert block.values.size == min(whole.words, 1 << 9)
    memory = draw_array(whole, distribution, 7)
    bits = np.dtype(f"u{whole.itemsize}")
    top = bits.type(1 << 8 * whole.itemsize - 1)
    for number, start in enumerate(range(0, memory.size, 1 << 9)):
        expected = np.roll(block.values.view(bits), -(number * block.roll % (1 << 9)))
        if block.negate and number % 2:
            expected = expected ^ top
        part = memory[start : start + (1 << 9)].view(bits)
        assert (part == expected[: part.size]).all()
    if distribution in ("zeros", "ones"):
        assert (block.roll, block.negate) == (0, False)
    elif whole.words > 1 << 9:
        assert block.roll % 2 == 1
        assert block.negate == (element_type(type).kind == "float")


def test_what_is_repeated_is_drawn_in_no_time() -> None:
    assert draw_block(buffer("float32", 1 << 40), "normal", 1).values.size == inputs.BLOCK == 1 << 20


shapes = st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9))
steps = st.tuples(st.integers(0, 90), st.integers(0, 30), st.integers(0, 20))
layouts = shapes.map(lambda n: (n, (n[1] * n[2], n[2], 1))) | st.tuples(shapes, steps)
kinds = st.sampled_from(["float32", "float16", "int32", "uint64"])


@given(layouts, kinds, st.sampled_from(EVERY), st.integers(0, 3), st.data())
@examples()
def test_rows_are_those_of_the_whole_array(
    layout: tuple[tuple[int, ...], tuple[int, ...]], type: str, name: str, seed: int, data: st.DataObject
) -> None:
    shape, strides = layout
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if math.prod(shape) else 0
    some = replace(buffer(type, 0), shape=shape, strides=strides, extent=reach)
    rows = data.draw(st.lists(st.integers(0, shape[0] - 1), max_size=5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "BLOCK", 1 << 6)
        whole = shaped_view(draw_array(some, name, seed), some)[np.array(rows, dtype=np.intp)]
        drawn = draw_rows(some, name, seed, rows)
    assert (drawn.dtype, drawn.shape) == (whole.dtype, whole.shape)
    assert drawn.tobytes() == whole.tobytes()


@pytest.mark.parametrize("type", ["int4", "uint4", "bfloat16", "float8_e4m3", "float8_e5m2"])
@pytest.mark.parametrize("shape", [(6, 3, 4), (40,), (40, 50)])
def test_rows_of_small_types(type: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    if element_type(type).extension:
        pytest.importorskip("ml_dtypes")
    monkeypatch.setattr(inputs, "BLOCK", 1 << 4)
    steps = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    dense = replace(buffer(type, math.prod(shape)), shape=shape, strides=steps)
    columns = replace(dense, strides=tuple(reversed(steps)), shape=shape[::-1])
    rows = [3, 0, 3, shape[0] - 1]
    for some in (dense,) if dense.packed > 1 else (dense, columns):
        here = [row % some.shape[0] for row in rows]
        whole = shaped_view(draw_array(some, "normal", 5), some)[here]
        assert draw_rows(some, "normal", 5, here).tobytes() == whole.tobytes()


def test_a_row_that_is_not_there() -> None:
    with pytest.raises(IndexError, match="row 4 of x, which has 4"):
        draw_rows(buffer("float32", 4), "normal", 1, [4])


SIZES = (2, 3, 17, 100, 4096, 50_000, 2_500_000)


@pytest.mark.parametrize("count", SIZES)
def test_stretches_change_places_in_pairs_and_go_back(count: int) -> None:
    b = buffer("float32", count)
    before = np.arange(count)
    for seed in range(1, 20 if count < 1_000_000 else 4):
        after = before.copy()
        for to, source, length in swap_moves(b, seed):
            assert 0 <= to <= count - length
            assert length <= LONGEST
            after[to : to + length] = before[source : source + length]
        assert np.array_equal(np.sort(after), before)
        assert 2 <= np.count_nonzero(after != before) <= max(2 * SWAPS, count / 8)
        for to, source, length in swap_moves(b, seed, back=True):
            after[to : to + length] = before[source : source + length]
        assert np.array_equal(after, before)


def test_nothing_moves_without_a_seed_or_where_there_is_one_element() -> None:
    assert swap_moves(buffer("float32", 100), 0) == ()
    assert swap_moves(buffer("float32", 1), 5) == ()


def test_a_long_row_changes_by_more_than_a_tolerance() -> None:
    """What remembers the scale of a row by a sample of it is off by more than most tolerances allow."""
    b, d = buffer("float32", 16 * 8192), 8192
    place = SlotPlace(0, 128)
    plain = slot_items(b, "normal", 1, place).astype(np.float64).reshape(16, d)
    for seed in range(1, 20):
        items = slot_items(b, "normal", 1, SlotPlace(0, 128, seed)).astype(np.float64).reshape(16, d)
        change = np.mean(items**2, axis=1) / np.mean(plain**2, axis=1) - 1
        assert np.abs(change / 2).max() > 1e-3


@pytest.mark.parametrize(("first", "count"), [(0, 10), (1000, 1), (4000, 96), (700, 2000)])
def test_a_part_is_the_part_of_the_whole(first: int, count: int) -> None:
    b = buffer("float32", 4096)
    for seed in range(20):
        place = SlotPlace(3, 128, seed)
        whole = slot_items(b, "normal", 1, place)
        assert np.array_equal(slot_items(b, "normal", 1, place, first, count), whole[first : first + count])


NUMBERS = (200.0, 12345.0, 0.1)


def matrix(type: str, name: str = "x") -> BufferPlan:
    return replace(buffer(type, 64 * 48, name), shape=(64, 48), strides=(48, 1))


def test_a_name_says_all_numbers() -> None:
    name = planted_name(NUMBERS)
    assert tuple(float(text) for text in name.removeprefix("planted ").split(",")) == NUMBERS


@pytest.mark.parametrize(
    ("type", "wanted"),
    [
        ("float32", 12345.0),
        ("float16", 200.0),
        ("bfloat16", 200.0),
        ("uint8", 200),
        ("int64", 12345),
        ("int8", 0),
    ],
)
def test_rows_hold_the_numbers_that_fit_the_type(type: str, wanted: float) -> None:
    rows = draw_array(matrix(type), planted_name(NUMBERS), 3).reshape(64, 48)
    assert (rows.astype(np.float64) == wanted).any()
    assert np.isfinite(rows.astype(np.float64)).all()


def test_two_arrays_have_rows_in_common() -> None:
    both = [matrix("float32", name) for name in ("x", "y")]
    x, y = (draw_array(one, planted_name(NUMBERS), 3).reshape(64, 48) for one in both)
    same = (x == y).all(axis=1)
    assert 0 < np.count_nonzero(same) < 32


def test_promises_hold() -> None:
    name = planted_name((-7.0, 0.25, 9.0))
    bounded = draw_array(buffer("float32", 4096, range=(0.0, 1.0)), name, 1)
    assert (bounded.min() >= 0, bounded.max() <= 1, (bounded == 0.25).any()) == (True, True, True)
    positive = buffer("float32", 4096, values="positive")
    assert np.array_equal(draw_array(positive, name, 1), draw_array(positive, "normal", 1))
    packed = buffer("int4", 64)
    assert np.array_equal(draw_array(packed, name, 1), draw_array(packed, "normal", 1))
