"""How many blocks of a kernel a multiprocessor holds at once, by the units that its backend says."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.core.device import AllocationUnits, Limits, Resources


@dataclass(frozen=True)
class Occupancy:
    blocks_per_sm: int
    percent: int  # of the threads a multiprocessor has room for, rounded down


def occupancy(limits: Limits, resources: Resources, threads: int, shared: int) -> Occupancy | None:
    """Of one kernel launched with so many threads in a block and so many bytes of dynamic shared memory.

    None where the device or the compiler does not say what it takes to know. `resources` are that kernel's
    own. Barriers, which may limit it further, no compiler tells.
    """
    known = (limits.registers_per_sm, limits.shared_per_sm, limits.threads_per_sm, limits.blocks_per_sm)
    if not all(known) or resources.registers is None or resources.shared is None or threads < 1:
        return None
    warps = -(-threads // limits.warp)
    blocks = min(
        limits.blocks_per_sm,
        limits.threads_per_sm // limits.warp // warps,
        _by_registers(limits, resources.registers, warps),
        limits.shared_per_sm // shared_per_block(limits, resources.shared + shared),
    )
    return Occupancy(blocks, 100 * blocks * warps * limits.warp // limits.threads_per_sm)


def registers_per_block(limits: Limits, registers: int, threads: int) -> int:
    """What the hardware counts when it decides whether a block can be launched at all: warps as if they
    came in whole rounds over the partitions."""
    warps = -(-threads // limits.warp)
    return _registers_per_warp(limits, registers) * _round_up(warps, _units(limits).partitions)


def shared_per_block(limits: Limits, shared: int) -> int:
    """Bytes a block takes from a multiprocessor's shared memory; at least one unit, so that it can divide."""
    unit = _units(limits).shared
    return max(unit, _round_up(shared + limits.shared_reserved, unit))


def _by_registers(limits: Limits, registers: int, warps: int) -> int:
    each = _registers_per_warp(limits, registers)
    if not each:
        return limits.blocks_per_sm
    partitions = _units(limits).partitions
    if limits.registers_per_block and limits.registers_per_block < each * _round_up(warps, partitions):
        return 0
    return limits.registers_per_sm // partitions // each * partitions // warps


def _registers_per_warp(limits: Limits, registers: int) -> int:
    return _round_up(registers * limits.warp, _units(limits).registers)


def _units(limits: Limits) -> AllocationUnits:
    """As the backend says; journals of earlier versions say nothing, and their devices are NVIDIA's."""
    return limits.units or AllocationUnits(shared=128 if limits.capability >= 80 else 256)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
