"""What the hardware forbids of one block and of a grid."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.samples import HOPPER, LIMITS
from tests.wording import says
from tunesmith.problem.device import Resources, Three, block_broken, grid_broken

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
    assert "76800 as they are allocated" in str(
        block_broken((320, 1, 1), 0, 0, HOPPER, Resources(registers=200))
    )


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
    assert "need compute capability 9.0, the device has 8.0" in str(
        grid_broken((8, 1, 1), (2, 1, 1), False, None, ampere)
    )
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
