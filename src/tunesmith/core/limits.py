"""What the hardware forbids of a launch, in words. Drivers do not all check this themselves.

A block is judged before its grid: how many blocks a multiprocessor holds may be part of the grid.
"""

from __future__ import annotations

import math

from tunesmith.core.device import Limits, Resources
from tunesmith.core.occupancy import registers_per_block

Three = tuple[int, int, int]

LARGEST_CLUSTER = 8  # beyond it a kernel must opt in, and not every device agrees


def block_broken(block: Three, shared: int, local: int, limits: Limits, resources: Resources) -> str | None:
    """The first limit that one block breaks. `shared` are the bytes of shared memory the launch asks for,
    `local` those of its local arguments; the kernel's own come from `resources`."""
    threads = math.prod(block)
    if min(block) < 1:
        return f"the launch is empty: block {block}"
    if shared < 0:
        return f"{shared} bytes of shared memory"
    if threads > limits.max_threads:
        return f"{threads} threads per block, the device allows {limits.max_threads}"
    if resources.registers and limits.registers_per_block:
        taken = registers_per_block(limits, resources.registers, threads)
        if taken > limits.registers_per_block:
            product = f"{resources.registers} registers × {threads} threads"
            allowed = f"the device allows {limits.registers_per_block} per block"
            return f"{product}: {taken} as they are allocated, {allowed}"
    if resources.max_threads and threads > resources.max_threads:
        return f"{threads} threads per block, this build allows {resources.max_threads}"
    if any(side > most for side, most in zip(block, limits.max_block, strict=True)):
        return f"block {block}, the device allows {limits.max_block}"
    total = shared + local + (resources.shared or 0)
    if total > limits.shared:
        return f"{total} bytes of shared memory per block, the device allows {limits.shared}"
    return None


def grid_broken(
    grid: Three, cluster: Three | None, cooperative: bool, blocks_per_sm: int | None, limits: Limits
) -> str | None:
    """The first limit that the blocks break together; `blocks_per_sm` is None where nobody knows."""
    if min(grid) < 1:
        return f"the launch is empty: grid {grid}"
    if any(side > most for side, most in zip(grid, limits.max_grid, strict=True)):
        return f"grid {grid}, the device allows {limits.max_grid}"
    if cluster is not None:
        if min(cluster) < 1:
            return f"the launch is empty: cluster {cluster}"
        if math.prod(cluster) > LARGEST_CLUSTER:
            return f"{math.prod(cluster)} blocks in a cluster, devices allow {LARGEST_CLUSTER}"
        if any(side % part for side, part in zip(grid, cluster, strict=True)):
            return f"grid {grid} is no multiple of the cluster {cluster}"
        if 0 < limits.capability < 90 and math.prod(cluster) > 1:
            return f"clusters need compute capability 9.0, the device has {limits.capability / 10}"
    if cooperative and blocks_per_sm is not None and math.prod(grid) > blocks_per_sm * limits.sms:
        room = f"{limits.sms} multiprocessors hold {blocks_per_sm} blocks each"
        return f"a cooperative grid of {math.prod(grid)} blocks cannot run at once: {room}"
    return None
