"""Blocks per multiprocessor, against the answers of NVIDIA's own calculator (cuda_occupancy.h of CUDA 13)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import HOPPER, LIMITS
from tunesmith.problem.device import (
    Occupancy,
    Resources,
    compute_occupancy,
    registers_per_block,
    shared_per_block,
)

AMPERE = replace(HOPPER, capability=86, shared_per_sm=102400, threads_per_sm=1536, blocks_per_sm=16)
TURING = replace(HOPPER, capability=75, shared_per_sm=65536, shared_reserved=0, threads_per_sm=1024)


def built(registers: int | None = 32, shared: int | None = 0) -> Resources:
    return Resources(registers=registers, shared=shared)


@pytest.mark.parametrize(
    ("threads", "registers", "static", "dynamic", "blocks", "percent"),
    [
        (256, 32, 0, 0, 8, 100),
        (256, 40, 0, 0, 6, 75),
        (1024, 64, 0, 0, 1, 50),
        (128, 255, 0, 0, 2, 12),
        (32, 16, 0, 0, 32, 50),  # more blocks than there may be
        (33, 32, 0, 0, 32, 100),  # two warps, though one thread uses the second
        (1000, 32, 0, 0, 2, 100),
        (32, 88, 0, 0, 20, 31),  # registers for 23 warps, but in quarters for 5 warps each
        (64, 0, 0, 0, 32, 100),
        (1, 255, 0, 0, 8, 12),
        (256, 32, 0, 46080, 4, 50),
        (256, 32, 0, 47104, 4, 50),
        (256, 32, 0, 57344, 4, 50),
        (256, 32, 0, 57345, 3, 37),
        (256, 32, 16384, 212992, 1, 12),
        (256, 32, 0, 232448, 1, 12),
    ],
)
def test_known_answers_of_a_hopper(
    threads: int, registers: int, static: int, dynamic: int, blocks: int, percent: int
) -> None:
    found = compute_occupancy(HOPPER, built(registers, static), threads, dynamic)
    assert found == Occupancy(blocks, percent)


def test_older_devices_count_shared_memory_in_larger_pieces() -> None:
    assert [shared_per_block(limits, 1) for limits in (HOPPER, TURING)] == [1152, 256]
    assert shared_per_block(HOPPER, 128) == 1152
    assert shared_per_block(HOPPER, 129) == 1280
    found = compute_occupancy(TURING, built(shared=8193), 64, 0)
    assert found == Occupancy(7, 43)


def test_limits_of_other_devices() -> None:
    assert compute_occupancy(AMPERE, built(), 256, 0) == Occupancy(6, 100)
    assert compute_occupancy(AMPERE, built(), 1024, 0) == Occupancy(1, 66)
    assert compute_occupancy(TURING, built(64), 256, 0) == Occupancy(4, 100)


def test_a_block_with_too_many_registers_fits_nowhere() -> None:
    assert registers_per_block(HOPPER, 255, 1024) == 256 * 1024
    assert registers_per_block(HOPPER, 168, 352) == 168 * 384  # eleven warps are checked as twelve
    assert compute_occupancy(HOPPER, built(255), 1024, 0) == Occupancy(0, 0)
    assert compute_occupancy(HOPPER, built(255), 256, 0) == Occupancy(1, 12)


@pytest.mark.parametrize("missing", ["registers_per_sm", "shared_per_sm", "threads_per_sm", "blocks_per_sm"])
def test_nothing_is_known_of_a_device_that_does_not_say(missing: str) -> None:
    assert compute_occupancy(replace(HOPPER, **{missing: 0}), built(), 256, 0) is None
    assert compute_occupancy(LIMITS, built(), 256, 0) is None


def test_nothing_is_known_of_a_build_that_does_not_say() -> None:
    assert compute_occupancy(HOPPER, built(registers=None), 256, 0) is None
    assert compute_occupancy(HOPPER, built(shared=None), 256, 0) is None
    assert compute_occupancy(HOPPER, built(), 0, 0) is None


@given(st.integers(1, 1024), st.integers(0, 255), st.integers(0, 100_000), st.integers(0, 100_000))
def test_it_never_holds_more_than_there_is(threads: int, registers: int, static: int, dynamic: int) -> None:
    found = compute_occupancy(HOPPER, built(registers, static), threads, dynamic)
    assert found is not None
    assert found.blocks_per_sm * threads <= 2048
    assert found.blocks_per_sm * threads * registers <= 65536
    assert found.blocks_per_sm * (static + dynamic + 1024) <= 233472
    assert 0 <= found.percent <= 100
    more = compute_occupancy(HOPPER, built(registers + 1, static + 1), threads, dynamic)
    assert more is not None
    assert more.blocks_per_sm <= found.blocks_per_sm
