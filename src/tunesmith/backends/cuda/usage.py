"""What a built kernel uses: registers, shared memory and stack as the cubin says, spills as ptxas says."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from tunesmith.backends.cuda.cubin import Cubin, Kernel
from tunesmith.core.device import Limits, Resources
from tunesmith.core.occupancy import registers_per_block

_PROPERTIES = re.compile(
    r"Function properties for (\S+)\s+(?:ptxas\s+\.\s+)?"
    r"\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
# A remark with a number is not chatter: (C7508) Potential Performance Loss.
_CHATTER = re.compile(
    r"^ptxas info\s+: (?!\(C\d+\)).*\n?|^ptxas\s+\..*\n?|^ +\d+ bytes stack frame,.*\n?", re.MULTILINE
)


def resources_of(cubin: Cubin, symbols: Mapping[str, str], log: str, limits: Limits) -> Resources:
    """Spills of a kernel that the log does not mention are not known: a compiler that takes the code from its
    cache says nothing."""
    spilled = spills(log)
    # A function that is not inlined is some kernel's, nobody says whose.
    shared_out = sum(count for name, count in spilled.items() if name not in cubin.kernels)
    by_entry = tuple(
        (entry, _of_kernel(cubin.kernels[symbol], _sum(spilled.get(symbol), shared_out), limits))
        for entry, symbol in symbols.items()
    )
    every = [resources for _, resources in by_entry]
    return Resources(
        registers=_most(r.registers for r in every),
        shared=_most(r.shared for r in every),
        spills=_most(r.spills for r in every),
        private=_most(r.private for r in every),
        max_threads=min((r.max_threads for r in every if r.max_threads is not None), default=None),
        by_entry=by_entry,
    )


def spills(log: str) -> dict[str, int]:
    """Bytes stored and loaded again for want of registers, by symbol."""
    return {name: int(stores) + int(loads) for name, stores, loads in _PROPERTIES.findall(log)}


def without_chatter(log: str) -> str:
    """What is left when ptxas' account of every function is taken out: warnings and errors."""
    return _CHATTER.sub("", log).strip()


def _sum(own: int | None, others: int) -> int | None:
    return None if own is None else own + others


def _of_kernel(kernel: Kernel, spilled: int | None, limits: Limits) -> Resources:
    return Resources(
        registers=kernel.registers,
        shared=kernel.shared,
        spills=spilled,
        private=kernel.frame,
        max_threads=_max_threads(kernel, limits),
    )


def _max_threads(kernel: Kernel, limits: Limits) -> int:
    bounds = [math.prod(block) for block in (kernel.max_block, kernel.required_block) if block]
    most = min([limits.max_threads, *bounds])
    if not limits.registers_per_block:
        return most
    threads = limits.max_threads
    while threads > limits.warp and (
        registers_per_block(limits, kernel.registers, threads) > limits.registers_per_block
    ):
        threads -= limits.warp
    return min(most, threads)


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
