"""What expressions may know of a device and of a build, how many blocks it holds, and what it forbids."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import DEVICE, HOPPER, LIMITS, a_device
from tests.wording import says
from tunesmith.problem.device import (
    DEVICE_NAMES,
    RESOURCE_NAMES,
    Occupancy,
    Resources,
    Three,
    block_broken,
    compute_occupancy,
    grid_broken,
    registers_per_block,
    shared_per_block,
)


def test_every_name_promised_before_a_device_is_known_has_a_value() -> None:
    assert set(DEVICE.limits.names()) == set(DEVICE_NAMES)
    assert DEVICE.limits.names()["device.max_threads"] == 1024
    assert set(a_device(pin_bandwidth=1e9).limits.names()) == set(DEVICE_NAMES)


def test_what_the_compiler_does_not_say_has_no_name() -> None:
    assert Resources(registers=0, spills=3).names() == {"resources.registers": 0, "resources.spills": 3}
    assert Resources().names() == {}
    assert set(Resources(1, 2, 3, 4, 5, 6, 7).names()) == set(RESOURCE_NAMES)


@pytest.mark.parametrize("field", ["backend", "platform", "name", "driver"])
def test_another_chip_or_driver_is_another_device(field: str) -> None:
    assert replace(DEVICE, **{field: "other"}).key != DEVICE.key


def test_the_same_chip_in_another_slot_is_the_same() -> None:
    assert replace(DEVICE, id="7").key == DEVICE.key


def test_only_a_cpu_shares_its_cores_with_builds() -> None:
    kinds = [kind for kind in ("cpu", "gpu", "simulated") if replace(DEVICE, kind=kind).is_host]
    assert kinds == ["cpu"]


NOTHING = Resources()


def test_more_registers_than_a_block_may_have() -> None:
    reason = block_broken((1024, 1, 1), 0, 0, HOPPER, Resources(registers=255))
    says(reason, "255 registers × 1024 threads", "262144", "allows 65536 per block")
    assert block_broken((256, 1, 1), 0, 0, HOPPER, Resources(registers=255)) is None
    assert block_broken((1024, 1, 1), 0, 0, LIMITS, Resources(registers=255)) is None  # it does not say
    assert block_broken((1024, 1, 1), 0, 0, HOPPER, NOTHING) is None


def test_registers_are_counted_as_they_are_allocated() -> None:
    # 10 warps of 200 registers are 64000, but are checked as if they were 12.
    assert HOPPER.registers_per_block > 10 * 32 * 200
    reason = block_broken((320, 1, 1), 0, 0, HOPPER, Resources(registers=200))
    assert "76800 as they are allocated" in str(reason)


def test_a_launch_that_asks_for_less_than_nothing_is_not_saved_by_its_local_memory() -> None:
    assert block_broken((64, 1, 1), -1, 100, LIMITS, NOTHING) == "-1 bytes of shared memory"
    assert block_broken((64, 1, 1), 0, 49152, LIMITS, NOTHING) is None
    assert block_broken((64, 1, 1), 1, 49152, LIMITS, NOTHING) is not None


@pytest.mark.parametrize(
    ("grid", "cluster", "words"),
    [
        ((16, 1, 1), (8, 1, 1), None),
        ((16, 4, 1), (2, 2, 1), None),
        ((16, 1, 1), (16, 1, 1), "16 blocks in a cluster, devices allow 8"),
        ((16, 16, 1), (4, 4, 1), "16 blocks in a cluster"),
        ((12, 1, 1), (8, 1, 1), "grid (12, 1, 1) is no multiple of the cluster (8, 1, 1)"),
        ((8, 3, 1), (2, 2, 1), "is no multiple"),
        ((8, 1, 1), (0, 1, 1), "the launch is empty: cluster (0, 1, 1)"),
    ],
)
def test_clusters(grid: Three, cluster: Three, words: str | None) -> None:
    reason = grid_broken(grid, cluster, False, None, HOPPER)
    assert (reason is None) == (words is None)
    assert (words or "") in str(reason)


def test_older_devices_have_no_clusters() -> None:
    ampere = replace(HOPPER, capability=80)
    reason = grid_broken((8, 1, 1), (2, 1, 1), False, None, ampere)
    assert "need compute capability 9.0, the device has 8.0" in str(reason)
    assert grid_broken((8, 1, 1), (1, 1, 1), False, None, ampere) is None
    assert grid_broken((8, 1, 1), (2, 1, 1), False, None, LIMITS) is None  # nobody knows


def test_a_cooperative_grid_has_room_for_all_its_blocks() -> None:
    room = 2 * HOPPER.sms
    grid: Three = (room // 2, 2, 1)
    assert math.prod(grid) == room
    assert grid_broken(grid, None, True, 2, HOPPER) is None
    assert grid_broken(grid, None, True, None, HOPPER) is None
    assert grid_broken(grid, None, False, 1, HOPPER) is None
    assert "cannot run at once" in str(grid_broken(grid, None, True, 1, HOPPER))


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
