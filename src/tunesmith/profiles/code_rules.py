"""What machine code tells where nobody has counted: data that is read twice, barriers and shuffles that are
waited for, instructions that take their time; and by which unit a kernel without a fault is bound.

A pass is one turn of the code that runs most. How many there are follows from the bytes that must move, and
so what share of the measured time each unit needs at least.
"""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.profiles import costs as c
from tunesmith.profiles.costs import PassCosts, RuleInput, finding, percent
from tunesmith.profiles.facts import Bound, Finding, Kind, Mix

BARRIER = 40  # cycles until the last warp of a block is there and all go on
SHUFFLE = 25  # cycles until the result of a shuffle can be used, which the next one waits for
WAITED = 0.08  # share of a block's time
ISSUED = 0.35  # share of the time in which instructions are issued: less is hidden behind memory
AGAIN = 0.8  # of what must be read for each byte written: a loop that reads as much needs no other's reading
MUCH = 0.4  # of the time: a unit that needs less of it is not what bounds a kernel
HALF = 0.5  # of what is read again, the caches serve


def read_again(given: RuleInput) -> Finding | None:
    """A loop that only reads stands ahead of one that reads all that it needs by itself."""
    code, work = given.code, given.profile.work
    if code is None or work is None or given.counters.dram_read is not None or not work.written:
        return None
    if not code.reading_loops or code.loaded_per_stored is None:
        return None
    needed = work.read / work.written
    if needed <= 0 or code.loaded_per_stored < AGAIN * needed:
        return None
    loops = "a loop only reads" if code.reading_loops == 1 else f"{code.reading_loops} loops only read"
    evidence = [
        f"{loops} global memory ahead of one that loads {code.loaded_per_stored:.3g} bytes for each byte it "
        f"stores; {needed:.3g} must be: what the first has read is read again"
    ]
    gain = HALF * work.read / (work.read + work.bytes)
    return finding(Kind.EXTRA_TRAFFIC, gain, c.READ, "static", evidence)


def waits(given: RuleInput) -> Finding | None:
    """Barriers, and shuffles one after the other, as a share of the time that a block has."""
    code, cycles = given.code, _block_cycles(given)
    if code is None or cycles is None or given.counters.stalled("barrier") is not None:
        return None
    if not code.all.barrier:
        return None
    waited = BARRIER * code.all.barrier + SHUFFLE * code.all.shuffle
    share = waited / cycles
    if share < WAITED:
        return None
    evidence = [
        f"{code.all.barrier} barriers and {code.all.shuffle} shuffles, {waited} cycles or more of the "
        f"{cycles:.0f} that a block has"
    ]
    return finding(Kind.BARRIERS, min(0.5, share), c.READ, "static", evidence)


def instructions(given: RuleInput) -> Finding | None:
    """So many for each byte that their issue alone takes much of the time."""
    shares = unit_shares(given)
    if given.costs is None or shares is None or given.counters.issue is not None or shares.issue < ISSUED:
        return None
    mix = given.costs.mix
    evidence = [
        f"{mix.total} instructions for {per_thread(given.costs)} bytes of a thread take "
        f"{percent(min(1.0, shares.issue))} of the time to issue",
        *([f"among them {named}"] if (named := classes(mix)) else []),
    ]
    return finding(Kind.COMPUTE, min(0.5, shares.issue / 2), 0.5, "static", evidence)


STATIC_RULES = (read_again, waits, instructions)


# -- what takes how much of the time ------------------------------------------------------------------------


@dataclass(frozen=True)
class UnitShares:
    """Of the measured time, by a rough model: what each unit needs at least."""

    issue: float
    special: float
    shared: float
    cache: float
    memory: float
    latency: float

    @property
    def named(self) -> dict[str, float]:
        return {
            "issuing instructions": self.issue,
            "special functions": self.special,
            "shared memory and L1": self.shared,
            "L2": self.cache,
            "device memory": self.memory,
            "waiting for loads": self.latency,
        }


_BOUND = {
    "issuing instructions": Bound.COMPUTE,
    "special functions": Bound.COMPUTE,
    "shared memory and L1": Bound.LATENCY,
    "L2": Bound.BANDWIDTH,
    "device memory": Bound.BANDWIDTH,
    "waiting for loads": Bound.LATENCY,
}


def unit_shares(given: RuleInput) -> UnitShares | None:
    costs, work, launch, seconds = given.costs, given.profile.work, given.launch, given.profile.seconds
    if costs is None or work is None or launch is None or not seconds or launch.sms < 1:
        return None
    moved = per_thread(costs) * c.WARP
    if moved <= 0 or work.bytes <= 0:
        return None
    passes = work.bytes / moved / launch.sms  # of warps, on each multiprocessor
    whole = seconds * c.CLOCK
    issue, special, shared, cache, memory, latency = (passes * cycles / whole for cycles in costs.units())
    return UnitShares(issue, special, shared, cache, memory, latency)


def by_elimination(given: RuleInput) -> tuple[Bound, str]:
    """Of a kernel without a fault: the bound of the unit that needs most of the time, if that is much of it;
    and all that was looked at."""
    shares, code, launch = unit_shares(given), given.code, given.launch
    if shares is None or code is None or launch is None:
        return Bound.UNKNOWN, ""
    first, *others = sorted(shares.named.items(), key=lambda pair: -pair[1])
    told = ", ".join(f"{name} {percent(share)}" for name, share in others[:3])
    looked = [
        f"by the code {first[0]} needs most, {percent(min(1.0, first[1]))} of the time ({told})",
        f"{code.bytes_in_flight} bytes in flight a thread",
        *([f"room for {launch.occupancy} % of the threads"] if launch.occupancy is not None else []),
        *([f"{launch.waves:.2f} waves of blocks"] if launch.waves is not None else []),
        f"{code.all.barrier} barriers, {code.all.shuffle} shuffles, {code.loops} loops",
    ]
    return _BOUND[first[0]] if first[1] >= MUCH else Bound.UNKNOWN, "; ".join(looked)


def per_thread(costs: PassCosts) -> int:
    """Global bytes of a thread in a pass, without what is the same for all."""
    own = [a for a in costs.accesses if c.is_global(a) and a.pattern != "uniform"]
    return sum(a.width * a.count for a in own)


def classes(mix: Mix) -> str:
    """The classes of instructions that are many, in words."""
    named = {
        "in single precision": mix.fp32,
        "in half precision": mix.fp16,
        "integer products": mix.multiply,
        "conversions": mix.conversion,
        "special functions": mix.special,
        "branches": mix.branch,
        "shuffles": mix.shuffle,
    }
    many = [f"{count} {name}" for name, count in named.items() if count >= 0.05 * mix.total]
    rest = mix.total - sum(named.values())
    others = [f"{rest} others: moves, addresses, integers and accesses"] if many and rest > 0 else []
    return ", ".join([*many, *others])


def _block_cycles(given: RuleInput) -> float | None:
    """How long a block is there: waves follow each other."""
    launch, seconds = given.launch, given.profile.seconds
    if launch is None or launch.waves is None or not seconds:
        return None
    return seconds * c.CLOCK / max(1.0, launch.waves)
