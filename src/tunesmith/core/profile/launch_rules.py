"""A launch against its device, and its faults: too few blocks, an unfilled last wave, the wrong block."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from tunesmith.core.counted import counted
from tunesmith.core.device import Limits, Resources
from tunesmith.core.occupancy import occupancy
from tunesmith.core.plan import Geometry
from tunesmith.core.profile.case import GUESSED, KNOWN, READ, SEEN, RuleInput, finding, percent, source_of
from tunesmith.core.profile.facts import LaunchFacts
from tunesmith.core.profile.findings import Finding, Kind
from tunesmith.core.profile.remedies import Remedy

# What a multiprocessor has, by the names of `Limits`, and what people call it.
_HAS = {
    "registers_per_sm": "registers",
    "shared_per_sm": "shared memory",
    "threads_per_sm": "threads",
    "blocks_per_sm": "blocks",
}
_PLENTY = 1 << 40  # more than any device has: what still limits then is the one thing that was not raised
LOST_TO_TAIL = 0.1  # of the time; a tenth of the multiprocessors idle on average
FILLED = 0.5  # of the threads a device holds: below it loads may be too few to hide their latency
IDLE_LANES = 0.1
SURPLUS = 0.3
LOW_OCCUPANCY = 0.35  # a third of the threads: judgement; with several loads in flight more seldom pays
BLOCK_GAIN = 0.05
LAUNCH_SHARE = 0.3  # of the time
_BY_LIMITER = {
    "registers": (Remedy.REGISTER_CAP, Remedy.LAUNCH_BOUNDS, Remedy.BLOCK_SIZE),
    "shared memory": (Remedy.LESS_SHARED, Remedy.ROW_IN_REGISTERS, Remedy.BLOCK_SIZE),
    "threads": (Remedy.BLOCK_SIZE,),
    "blocks": (Remedy.BLOCK_SIZE, Remedy.ROWS_PER_BLOCK),
}


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


def too_few_blocks(given: RuleInput) -> Finding | None:
    launch = given.launch
    if launch is None or launch.blocks < 1 or launch.sms < 1:
        return None
    if launch.blocks < launch.sms:
        idle = 1 - launch.blocks / launch.sms
        blocks = counted(launch.blocks, "block")
        words = f"{blocks} on {counted(launch.sms, 'compute unit')}: {percent(idle)} of them have none"
        evidence = [words, *_half_grid(given)]
        return finding(Kind.TOO_FEW_BLOCKS, idle, SEEN, "static", evidence)
    if launch.waves is None or launch.waves >= FILLED or given.costs is None:
        return None
    gain = given.costs.stake("few_warps")
    held_by = counted(launch.sms, "compute unit holds", "compute units hold")
    words = f"{launch.blocks} blocks fill {percent(launch.waves)} of what {held_by}"
    held = f"{launch.resident_threads} threads on each, too few to hide the latency of their loads"
    return finding(Kind.TOO_FEW_BLOCKS, gain, READ, "static", [words, held])


def _half_grid(given: RuleInput) -> list[str]:
    share = given.half_share
    return [] if share is None else [f"half the grid takes {percent(share)} of the time"]


def tail(given: RuleInput) -> Finding | None:
    """The last blocks run while most multiprocessors have none.

    A unit that is shared serves a lone block faster: then a multiprocessor's turns count, one block each.
    What waits for its loads takes as long alone as in company: then whole waves count.
    """
    launch, active = given.launch, given.counters.sm_active
    if launch is None or launch.waves is None or launch.sms < 1 or not launch.sms < launch.blocks < 10**9:
        return None
    turns = launch.blocks / launch.sms
    by_turns, by_waves = _unfilled(turns), _unfilled(launch.waves)
    waiting = given.costs.waiting if given.costs is not None else 0.5
    lost = by_turns + (by_waves - by_turns) * waiting
    evidence = [f"{launch.blocks} blocks are {launch.waves:.2f} waves, {turns:.2f} for each compute unit"]
    confidence = READ
    if active is not None:
        evidence.append(f"the average compute unit is at work {percent(active)} of the time")
        lost, confidence = min(max(by_turns, by_waves), 1 - active), SEEN
    if lost < LOST_TO_TAIL:
        return None
    return finding(Kind.TAIL, lost, confidence, source_of(active), evidence)


def _unfilled(rounds: float) -> float:
    """The share of whole rounds in which there is nothing to do; in a single one all start at once."""
    return 1 - rounds / math.ceil(rounds) if 1 < rounds < 1e9 else 0.0


def idle_threads(given: RuleInput) -> Finding | None:
    launch = given.launch
    if launch is None:
        return None
    if launch.idle_lanes >= IDLE_LANES:
        words = (
            f"{percent(launch.idle_lanes)} of the lanes have no thread: {launch.threads} threads in a block"
        )
        return finding(Kind.IDLE_THREADS, launch.idle_lanes, KNOWN, "static", [words])
    if launch.surplus is not None and launch.surplus >= SURPLUS:
        words = f"{percent(launch.surplus)} of the threads have no element"
        gain = 0.2 * launch.surplus  # they end at once: what they cost is their start
        return finding(Kind.IDLE_THREADS, gain, READ, "static", [words], (Remedy.BLOCK_SIZE,))
    return None


def low_occupancy(given: RuleInput) -> Finding | None:
    launch, counters = given.launch, given.counters
    if launch is None or launch.occupancy is None or launch.occupancy >= 100 * LOW_OCCUPANCY:
        return None
    limiters = launch.limited_by or ("what is not known",)
    evidence = [f"room for {launch.occupancy} % of the threads, limited by {' and '.join(limiters)}"]
    remedies = dict.fromkeys(r for limiter in limiters for r in _BY_LIMITER.get(limiter, ()))
    remedies |= {Remedy.ITEMS_IN_FLIGHT: None}
    waiting = counters.stalled("memory")
    if counters.occupancy is not None and waiting is not None:
        evidence.append(
            f"{percent(counters.occupancy)} achieved, {percent(waiting)} of waiting is for memory"
        )
        gain = waiting * (1 - min(1.0, counters.occupancy / FILLED))
        return finding(Kind.LOW_OCCUPANCY, gain, READ, "counters", evidence, remedies)
    gain = given.costs.stake("few_warps") if given.costs is not None else 0.1
    return finding(Kind.LOW_OCCUPANCY, gain, 0.5, "static", evidence, remedies)


def block_size(given: RuleInput) -> Finding | None:
    launch, swept = given.launch, [b for b in given.experiments.blocks if b.seconds > 0]
    if launch is None or not swept:
        return None
    own = next((b for b in swept if b.threads == launch.threads), None)
    now = own.seconds if own is not None else given.experiments.cold or given.profile.seconds
    best = min(swept, key=lambda b: b.seconds)
    if now is None or now <= 0 or best.threads == launch.threads or 1 - best.seconds / now < BLOCK_GAIN:
        return None
    words = f"blocks of {best.threads} threads take {percent(best.seconds / now)} of the time"
    gain = 1 - best.seconds / now
    return finding(Kind.BLOCK_SIZE, gain, SEEN, "experiment", [words])


def launch_cost(given: RuleInput) -> Finding | None:
    share, seconds = given.launch_share, given.profile.seconds
    if share is None or seconds is None or share < LAUNCH_SHARE:
        return None
    launches = given.profile.launches
    whose = "an empty launch takes" if launches == 1 else f"{launches} empty launches take"
    words = f"{whose} {1e6 * share * seconds:.2f} µs of {1e6 * seconds:.2f} µs"
    confidence = KNOWN if share <= 1 else GUESSED
    return finding(Kind.LAUNCH, share, confidence, "timing", [words])


LAUNCH_RULES = (too_few_blocks, tail, idle_threads, low_occupancy, block_size, launch_cost)
