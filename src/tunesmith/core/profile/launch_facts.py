"""A launch against its device: what limits occupancy, how many waves there are, who has nothing to do."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from tunesmith.core.device import Limits, Resources
from tunesmith.core.occupancy import occupancy
from tunesmith.core.plan import Geometry
from tunesmith.core.profile.facts import LaunchFacts

# What a multiprocessor has, by the names of `Limits`, and what people call it.
_HAS = {
    "registers_per_sm": "registers",
    "shared_per_sm": "shared memory",
    "threads_per_sm": "threads",
    "blocks_per_sm": "blocks",
}
_PLENTY = 1 << 40  # more than any device has: what still limits then is the one thing that was not raised


def launch_facts(
    geometry: Geometry, limits: Limits, resources: Resources, local: int = 0, elements: int | None = None
) -> LaunchFacts:
    """`resources` are the kernel's own, `local` the bytes of its local arguments; `elements` is the number of
    items there are, where a thread has one at most."""
    threads, blocks = math.prod(geometry.block), math.prod(geometry.grid)
    shared = geometry.shared + local
    held = occupancy(limits, resources, threads, shared)
    lanes = -(-threads // limits.warp) * limits.warp
    facts = LaunchFacts(
        grid=geometry.grid,
        block=geometry.block,
        threads=threads,
        blocks=blocks,
        sms=limits.sms,
        idle_lanes=1 - threads / lanes,
        surplus=None if elements is None else max(0.0, 1 - elements / (threads * blocks)),
    )
    if held is None or held.blocks_per_sm < 1:
        return facts
    waves = blocks / (held.blocks_per_sm * limits.sms)
    return replace(
        facts,
        blocks_per_sm=held.blocks_per_sm,
        occupancy=held.percent,
        limited_by=limiters(limits, resources, threads, shared),
        waves=waves,
        last_wave=waves - math.ceil(waves) + 1,
        resident_threads=threads * min(held.blocks_per_sm, -(-blocks // limits.sms)),
    )


def limiters(limits: Limits, resources: Resources, threads: int, shared: int) -> tuple[str, ...]:
    """What allows the fewest blocks on a multiprocessor: several where they agree, none if nobody knows."""
    allowed: dict[str, int] = {}
    for own, words in _HAS.items():
        others: dict[str, Any] = {name: _PLENTY for name in _HAS if name != own}
        held = occupancy(replace(limits, **others), resources, threads, shared)
        if held is None or not getattr(limits, own):
            return ()
        allowed[words] = held.blocks_per_sm
    least = min(allowed.values())
    return tuple(words for words, blocks in allowed.items() if blocks == least)
