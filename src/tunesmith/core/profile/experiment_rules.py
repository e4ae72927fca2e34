"""What timings of the same code under other conditions tell: half the grid, and data in the cache.

Counters tell the same more surely, so these speak of memory and units only where nothing was counted.
Nothing is concluded where the launch itself takes much of the time.
"""

from __future__ import annotations

from tunesmith.core.profile.case import GUESSED, NO_DIFFERENCE, READ, RuleInput, finding, percent
from tunesmith.core.profile.findings import Finding, Kind
from tunesmith.core.profile.launch_rules import LAUNCH_SHARE
from tunesmith.core.profile.remedies import Remedy

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
    return finding(Kind.TOO_FEW_BLOCKS, gain, READ, "experiment", evidence, remedies)


def waiting(given: RuleInput) -> Finding | None:
    """All blocks are there at once, and half of them take as long: each waits for itself."""
    launch, ratio = given.launch, _half(given)
    if ratio is None or launch is None or _counted(given) or not AS_LONG <= ratio < SHARED_OUT:
        return None
    room = launch.waves is not None and launch.waves <= 1 and (launch.blocks_per_sm or 0) >= 2
    if not room:
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
    if share >= NO_DIFFERENCE or not in_proportion or launch.blocks < TURNS * launch.sms:
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
    return READ if given.launch is not None and given.launch.surplus is not None else GUESSED


EXPERIMENT_RULES = (more_blocks, waiting, uneven_blocks, memory, compute)
