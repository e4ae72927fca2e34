"""How buffers are laid out and filled, so that stray and missing writes show, and where they lie."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.core.lab.labs import device_of
from tunesmith.lab import memory as guards
from tunesmith.lab.memory import (
    GUARD,
    MOVED_BYTES,
    PAGE,
    CaseLayout,
    GuardedLayout,
    as_array,
    count_poisoned,
    gaps_damaged,
    initial_payload,
    layouts_of,
)
from tunesmith.problem.plan import BufferPlan, Status
from tunesmith.problem.problem import Role, element_type


def buffer(
    type_: str = "float32", shape: tuple[int, ...] = (6,), role: Role = "output", **more: Any
) -> BufferPlan:
    """Dense, unless `more` says otherwise."""
    element, count = element_type(type_), prod(shape)
    strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    plain = BufferPlan(
        *("out", type_, role, shape, strides, count, element.bytes, None, None, None, 0, 0, "close"),
        itemsize=element.bytes,
        packed=element.packed,
    )
    return replace(plain, **more)


def guarded(nbytes: int) -> GuardedLayout:
    return GuardedLayout(GUARD, nbytes, 2 * GUARD + nbytes)


PADDED = {"shape": (2, 3), "strides": (5, 1), "extent": 8}


def test_a_single_byte_changes_the_digest_and_is_found() -> None:
    layout = guarded(100)
    before, after = clean = guards.intact_zones(layout, 1)
    assert (len(before), len(after)) == layout.zone_sizes == (GUARD, GUARD)
    assert guards.describe_damage(clean, clean, 1) == ""
    hit = before[:-3] + b"\0" + before[-2:]
    assert guards.describe_damage((hit, after), clean, 1) == "1 byte before its start, the nearest 3 away"
    hit = after[:10] + b"\0\0" + after[12:]
    assert guards.describe_damage((before, hit), clean, 1) == "2 bytes past its end, the nearest 10 away"


def test_whole_numbers_are_counted_though_some_of_their_bytes_are_alike() -> None:
    """What is read past one array and written past another: the two zones differ in one byte of four."""
    layout = guarded(4)
    before, after = clean = guards.intact_zones(layout, 1)
    strange = guards.repeat_pattern(guards.zone_pattern(0), 63 * 4)
    hit = strange + after[len(strange) :]
    assert sum(a != b for a, b in zip(hit, after, strict=True)) == 63
    assert guards.describe_damage((before, hit), clean, 4) == "252 bytes past its end, the nearest 0 away"
    hit = before[: -len(strange)] + strange
    assert guards.describe_damage((hit, after), clean, 4) == "252 bytes before its start, the nearest 1 away"


def test_no_two_arrays_and_no_poison_look_alike() -> None:
    looks = [guards.zone_pattern(number) for number in range(40)] + [guards.PATTERN, guards.OTHER_PATTERN]
    halves = [{look[:2], look[2:]} for look in looks]
    assert len(set(looks)) == len(looks)
    assert all(np.isnan(np.frombuffer(look, dtype=kind)).all() for look in looks for kind in ("<f2", "<f4"))
    assert all(a != b for i, a in enumerate(halves) for b in halves[:i])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("pattern", [guards.PATTERN, guards.OTHER_PATTERN])
def test_poison_is_no_number_in_any_type(dtype: type, pattern: bytes) -> None:
    assert np.isnan(np.frombuffer(guards.repeat_pattern(pattern, 64), dtype=dtype)).all()


def test_two_poisons_differ_in_every_byte() -> None:
    assert all(a != b for a, b in zip(guards.PATTERN, guards.OTHER_PATTERN, strict=True))


class TestInitialPayload:
    def test_an_output_is_poisoned(self) -> None:
        assert initial_payload(buffer(), guards.PATTERN) == guards.PATTERN * 6
        assert initial_payload(buffer(), guards.OTHER_PATTERN) == guards.OTHER_PATTERN * 6

    def test_gaps_keep_one_pattern_in_both_runs(self) -> None:
        first, second = (
            np.frombuffer(initial_payload(buffer(**PADDED), p), dtype=np.uint32)
            for p in (guards.PATTERN, guards.OTHER_PATTERN)
        )
        assert (first == second).tolist() == [False] * 3 + [True] * 2 + [False] * 3

    def test_what_the_caller_fills_it_with(self) -> None:
        assert (
            np.frombuffer(initial_payload(buffer(init=2.5), guards.PATTERN), np.float32).tolist() == [2.5] * 6
        )
        codes = buffer("int8", init=-3)
        assert np.frombuffer(initial_payload(codes, guards.PATTERN), np.int8).tolist() == [-3] * 6


class TestPoison:
    @pytest.mark.parametrize("type_", ["uint8", "float16", "float32", "float64"])
    def test_every_element_never_written_is_counted(self, type_: str) -> None:
        for shape in ({}, PADDED):
            plan = buffer(type_, **shape)
            data = bytearray(initial_payload(plan, guards.PATTERN))
            assert count_poisoned(plan, bytes(data)) == 6
            data[: plan.itemsize] = bytes(plan.itemsize)
            assert count_poisoned(plan, bytes(data)) == 5

    def test_what_the_caller_filled_was_never_poisoned(self) -> None:
        plan = buffer(init=1.0)
        assert count_poisoned(plan, guards.repeat_pattern(guards.PATTERN, 24)) == 0


class TestGaps:
    def test_only_what_lies_between_counts(self) -> None:
        plan = buffer(**PADDED)
        data = np.frombuffer(initial_payload(plan, guards.PATTERN), dtype=np.uint32).copy()
        data[:3] = data[5:] = 7
        assert not gaps_damaged(plan, data.tobytes(), None)
        data[4] = 0
        assert gaps_damaged(plan, data.tobytes(), None)

    def test_of_an_array_changed_in_place(self) -> None:
        plan = buffer(role="inout", **PADDED)
        data = np.arange(8, dtype=np.uint32)
        before = guards.gaps_digest(plan, data.tobytes())
        data[:3] = 99
        assert not gaps_damaged(plan, data.tobytes(), before)
        data[3] = 99
        assert gaps_damaged(plan, data.tobytes(), before)

    def test_a_dense_array_has_none(self) -> None:
        assert not gaps_damaged(buffer(), bytes(24), None)


@pytest.mark.parametrize("role", ["output", "inout"])
@pytest.mark.parametrize("deterministic", [True, False])
def test_what_an_earlier_launch_left_may_show_in_nothing_that_is_compared(
    role: Role, deterministic: bool
) -> None:
    b = buffer(role=role)
    plan: Any = SimpleNamespace(buffers=(b,), compared=lambda: (b,))

    def no(_b: BufferPlan) -> bool:
        return False

    def seen(stale: bool) -> guards.RunEvidence:
        return guards.RunEvidence(lambda _b, _n: "", no, no, no, lambda _b: 0, lambda _b: stale)

    assert guards.check_integrity(plan, deterministic, seen(False))[0].ok
    found = guards.check_integrity(plan, deterministic, seen(True))[0]
    assert found.status is (Status.WRONG if deterministic else Status.OK)


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


DEVICE = device_of("fake")
SEEDS = range(400)


def layouts(align: int = 4, sizes: tuple[int, ...] = (256, 1000, 0, 4096), **limits: int) -> list[CaseLayout]:
    device = replace(DEVICE, limits=replace(DEVICE.limits, **{"alignment": 1, **limits}))
    arrays = [replace(buffer(), name=f"a{n}", extent=size // 4, align=align) for n, size in enumerate(sizes)]
    return [layout for seed in SEEDS for layout in layouts_of(arrays, device, seed)]


@pytest.mark.parametrize("align", [1, 4, 16, 128, 4096, 65536])
def test_no_two_overlap_all_are_aligned_and_many_no_better_than_promised(align: int) -> None:
    found = layouts(align)
    for layout in found:
        parts = sorted(layout.parts, key=lambda p: (p.block, p.start))
        assert all(p.place % align == 0 and min(p.zone_sizes) >= 0 for p in parts)
        assert all(a.start + a.total <= b.start for a, b in pairwise(parts) if a.block == b.block)
        assert parts[0].zone_sizes[0] >= GUARD <= parts[-1].zone_sizes[1]
    odd = sum(p.place % (2 * align) != 0 for layout in found for p in layout.parts)
    assert odd > 0.1 * 4 * len(found)


def test_every_arrangement_order_and_neighbourhood_is_drawn() -> None:
    found = layouts()
    kinds = Counter(layout.arrangement for layout in found)
    assert min(kinds[kind] for kind in ("together", "apart", "far", "fenced")) > 0.08 * len(found)
    orders = {tuple(sorted(range(4), key=lambda n: layout.parts[n].place)) for layout in found}
    assert len(orders) == 24
    gaps = [
        b.place - a.place - a.nbytes
        for f in found
        for a, b in pairwise(sorted(f.parts, key=lambda p: p.place))
    ]
    assert min(gaps) == 0
    assert max(gaps) > 1 << 18
    assert {p.place % PAGE // 512 for f in found for p in f.parts} == set(range(8))
    ends = [(p.place + p.nbytes) % PAGE for f in found for p in f.parts[:1] if f.arrangement == "fenced"]
    assert 0 < ends.count(0) < len(ends)


def test_what_is_large_stays_and_what_one_allocation_cannot_hold_has_several() -> None:
    assert len(layouts(sizes=(MOVED_BYTES,))) == len(SEEDS)
    found = layouts(sizes=(1 << 20, 1 << 20), max_allocation=(1 << 20) + 3 * GUARD, memory=1 << 30)
    assert {len(layout.blocks) for layout in found} == {2}
    assert all(max(layout.blocks) <= (1 << 20) + 3 * GUARD for layout in found)
