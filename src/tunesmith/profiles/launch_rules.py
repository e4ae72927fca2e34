"""A launch against its device, and its faults: too few blocks, an unfilled last wave, the wrong block."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from tunesmith.problem.device import Limits, Resources, occupancy
from tunesmith.problem.plan import Geometry
from tunesmith.problem.template import Remedy
from tunesmith.profiles import costs as c
from tunesmith.profiles.costs import RuleInput, finding, percent
from tunesmith.profiles.facts import Finding, Kind, LaunchFacts
from tunesmith.text import counted

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
        half = given.half_share
        evidence = [words] if half is None else [words, f"half the grid takes {percent(half)} of the time"]
        return finding(Kind.TOO_FEW_BLOCKS, idle, c.SEEN, "static", evidence)
    if launch.waves is None or launch.waves >= FILLED or given.costs is None:
        return None
    gain = given.costs.stake("few_warps")
    held_by = counted(launch.sms, "compute unit holds", "compute units hold")
    words = f"{launch.blocks} blocks fill {percent(launch.waves)} of what {held_by}"
    held = f"{launch.resident_threads} threads on each, too few to hide the latency of their loads"
    return finding(Kind.TOO_FEW_BLOCKS, gain, c.READ, "static", [words, held])


def tail(given: RuleInput) -> Finding | None:
    """The last blocks run while most multiprocessors have none. A unit that is shared serves a lone block
    faster: then a multiprocessor's turns count, one block each. What waits for its loads takes as long alone
    as in company: then whole waves count."""
    launch, active = given.launch, given.counters.sm_active
    if launch is None or launch.waves is None or launch.sms < 1 or not launch.sms < launch.blocks < 10**9:
        return None
    turns = launch.blocks / launch.sms
    by_turns, by_waves = _unfilled(turns), _unfilled(launch.waves)
    waiting = given.costs.waiting if given.costs is not None else 0.5
    lost = by_turns + (by_waves - by_turns) * waiting
    evidence = [f"{launch.blocks} blocks are {launch.waves:.2f} waves, {turns:.2f} for each compute unit"]
    confidence = c.READ
    if active is not None:
        evidence.append(f"the average compute unit is at work {percent(active)} of the time")
        lost, confidence = min(max(by_turns, by_waves), 1 - active), c.SEEN
    return finding(Kind.TAIL, lost, confidence, c.source_of(active), evidence, least=LOST_TO_TAIL)


def _unfilled(rounds: float) -> float:
    """The share of whole rounds in which there is nothing to do; in a single one all start at once."""
    return 1 - rounds / math.ceil(rounds) if 1 < rounds < 1e9 else 0.0


def idle_threads(given: RuleInput) -> Finding | None:
    launch = given.launch
    if launch is None:
        return None
    if launch.idle_lanes >= IDLE_LANES:
        idle = f"{percent(launch.idle_lanes)} of the lanes have no thread"
        words = f"{idle}: {launch.threads} threads in a block"
        return finding(Kind.IDLE_THREADS, launch.idle_lanes, c.KNOWN, "static", [words])
    if launch.surplus is not None and launch.surplus >= SURPLUS:
        words = f"{percent(launch.surplus)} of the threads have no element"
        gain = 0.2 * launch.surplus  # they end at once: what they cost is their start
        return finding(Kind.IDLE_THREADS, gain, c.READ, "static", [words], (Remedy.BLOCK_SIZE,))
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
        achieved = f"{percent(counters.occupancy)} achieved"
        evidence.append(f"{achieved}, {percent(waiting)} of waiting is for memory")
        gain = waiting * (1 - min(1.0, counters.occupancy / FILLED))
        return finding(Kind.LOW_OCCUPANCY, gain, c.READ, "counters", evidence, remedies)
    gain = given.costs.stake("few_warps") if given.costs is not None else 0.1
    return finding(Kind.LOW_OCCUPANCY, gain, 0.5, "static", evidence, remedies)


def block_size(given: RuleInput) -> Finding | None:
    launch, experiments = given.launch, given.profile.experiments
    swept = [b for b in experiments.blocks if b.seconds > 0]
    if launch is None or not swept:
        return None
    own = next((b for b in swept if b.threads == launch.threads), None)
    now = own.seconds if own is not None else experiments.cold or given.profile.seconds
    best = min(swept, key=lambda b: b.seconds)
    if now is None or now <= 0 or best.threads == launch.threads or 1 - best.seconds / now < BLOCK_GAIN:
        return None
    words = f"blocks of {best.threads} threads take {percent(best.seconds / now)} of the time"
    gain = 1 - best.seconds / now
    return finding(Kind.BLOCK_SIZE, gain, c.SEEN, "experiment", [words])


def launch_cost(given: RuleInput) -> Finding | None:
    share, seconds = given.launch_share, given.profile.seconds
    if share is None or seconds is None or share < LAUNCH_SHARE:
        return None
    launches = given.profile.launches
    whose = "an empty launch takes" if launches == 1 else f"{launches} empty launches take"
    words = f"{whose} {1e6 * share * seconds:.2f} µs of {1e6 * seconds:.2f} µs"
    confidence = c.KNOWN if share <= 1 else c.GUESSED
    return finding(Kind.LAUNCH, share, confidence, "timing", [words])


LAUNCH_RULES = (too_few_blocks, tail, idle_threads, low_occupancy, block_size, launch_cost)


AS_LONG = 0.9  # of the whole's time: half the grid saves nothing
SHARED_OUT = 1.5  # times it: blocks share one work, and half of them take longer
IN_PROPORTION = (0.4, 0.65)  # half the blocks, about half the time
GOES = 0.3  # share of the time that goes with data in the cache: memory is what is waited for
TURNS = 4  # blocks a multiprocessor: with fewer, half of them is no smaller number of rounds
LIKELY = 0.5  # how sure a symptom is that only an experiment shows
SATURATED_GAIN = 0.3  # as where a counter shows a saturated pipe


def more_blocks(given: RuleInput) -> Finding | None:
    """Blocks share one work, there is room for more of them, and with fewer it takes longer."""
    launch, ratio = given.launch, _half(given)
    if ratio is None or launch is None or launch.waves is None or ratio < SHARED_OUT:
        return None
    if launch.waves >= 1 or launch.blocks < launch.sms:
        return None  # there is no room; or there are multiprocessors without a block, which says more
    evidence = [
        f"half the grid takes {percent(ratio)} of the time, and {percent(launch.waves)} of what the device "
        f"holds is there"
    ]
    remedies = (Remedy.MORE_BLOCKS, Remedy.SPLIT_ROWS, Remedy.BLOCK_SIZE)
    gain = 1 - max(0.5, launch.waves)
    return finding(Kind.TOO_FEW_BLOCKS, gain, c.READ, "experiment", evidence, remedies)


def waiting(given: RuleInput) -> Finding | None:
    """All blocks are there at once, and half of them take as long: each waits for itself."""
    launch, ratio = given.launch, _half(given)
    if ratio is None or launch is None or _counted(given) or not AS_LONG <= ratio < SHARED_OUT:
        return None
    if launch.waves is None or launch.waves > 1 or (launch.blocks_per_sm or 0) < 2:
        return None
    evidence = [f"half the grid takes {percent(ratio)} of the time: what a block waits for decides"]
    share = given.cached_share
    if share is not None:
        evidence.append(f"{percent(share)} of the time goes when the data is in the cache")
    remedies = (Remedy.ITEMS_IN_FLIGHT, Remedy.SPLIT_ROWS, Remedy.MORE_BLOCKS, Remedy.WIDE_ACCESS)
    return finding(Kind.LATENCY, 0.5, _sure(given), "experiment", evidence, remedies)


def uneven_blocks(given: RuleInput) -> Finding | None:
    """There are several rounds of blocks, and half of them take as long: one block, or a few, decide."""
    launch, ratio = given.launch, _half(given)
    if ratio is None or launch is None or launch.sms < 1 or not AS_LONG <= ratio < SHARED_OUT:
        return None
    rounds = launch.blocks / launch.sms if launch.waves is None else launch.waves
    if rounds < 2 or (given.counters.sm_active or 0.0) >= AS_LONG:
        return None
    evidence = [
        f"half the grid takes {percent(ratio)} of the time though its {launch.blocks} blocks come in "
        f"{rounds:.1f} rounds: a few of the first half take most of it"
    ]
    return finding(Kind.UNEVEN_BLOCKS, 0.5, _sure(given), "experiment", evidence)


def memory(given: RuleInput) -> Finding | None:
    """A symptom: with the data in the cache much of the time goes."""
    share = given.cached_share
    if share is None or share < GOES or _counted(given) or _mostly_launch(given) or given.profile.warm:
        return None
    evidence = [f"{percent(share)} of the time goes when the data is in the cache: memory is waited for"]
    return finding(Kind.MEMORY, share, LIKELY, "experiment", evidence)


def compute(given: RuleInput) -> Finding | None:
    """A symptom: the cache makes no difference, and twice the blocks take twice as long."""
    share, ratio, launch = given.cached_share, _half(given), given.launch
    if share is None or ratio is None or launch is None or _counted(given):
        return None
    in_proportion = IN_PROPORTION[0] <= ratio <= IN_PROPORTION[1]
    if share >= c.NO_DIFFERENCE or not in_proportion or launch.blocks < TURNS * launch.sms:
        return None
    evidence = [
        f"{percent(share)} of the time goes when the data is in the cache, and half the grid takes "
        f"{percent(ratio)}: compute units are busy, not memory"
    ]
    remedies = (Remedy.HOIST_INVARIANTS, Remedy.UNROLL, Remedy.FAST_INTRINSICS, Remedy.WIDE_ACCESS)
    return finding(Kind.COMPUTE, SATURATED_GAIN, LIKELY, "experiment", evidence, remedies)


def _half(given: RuleInput) -> float | None:
    """What half the grid takes of the whole's time; None where that is not known or tells nothing."""
    return None if _mostly_launch(given) else given.half_share


def _mostly_launch(given: RuleInput) -> bool:
    return (given.launch_share or 0.0) >= LAUNCH_SHARE


def _counted(given: RuleInput) -> bool:
    return given.counters.dram is not None or bool(given.counters.stalls)


def _sure(given: RuleInput) -> float:
    """A thread that has one element cannot have taken over the other half's: then the blocks were fewer and
    so was the work. Else they may share one work, of which half of them can do as much."""
    return c.READ if given.launch is not None and given.launch.surplus is not None else c.GUESSED


EXPERIMENT_RULES = (more_blocks, waiting, uneven_blocks, memory, compute)
