"""Faults of memory accesses: far apart, narrow, in one bank, spilled; bytes moved twice; loads waited for."""

from __future__ import annotations

from tunesmith.core.profile.case import GUESSED, KNOWN, READ, SEEN, RuleInput, finding, percent, source_of
from tunesmith.core.profile.costs import SECTOR, bank_ways, ideal, is_global, sectors
from tunesmith.core.profile.facts import MemoryAccess
from tunesmith.core.profile.findings import Finding, Kind

HALF_A_SECTOR = SECTOR / 2  # bytes used of each sector
NARROW = 2  # bytes: below the 4 of a register, and a warp asks for half a cache line or less
STAKE = 0.05  # below it a fault in the code is not worth telling
CONFLICTS = 0.2  # share of shared memory's cycles
LOCAL = 0.1  # share of L1's sectors
EXTRA = 1.25  # times the bytes that must move: caches and partial lines account for less
BUSY = 0.6  # of a peak: what is below it is not saturated
WAITING = 0.4  # share of stalls


def uncoalesced(given: RuleInput) -> Finding | None:
    costs, counters = given.costs, given.counters
    far = [a for a in (costs.accesses if costs else ()) if is_global(a) and sectors(a) > 2 * ideal(a)]
    read = [_far_words(a) for a in far] if given.strides_hold else []
    seen = [
        (words, asked, used)
        for words, asked, used in (
            ("loads", counters.load_sectors, counters.load_bytes_per_sector),
            ("stores", counters.store_sectors, counters.store_bytes_per_sector),
        )
        if asked is not None and used is not None and asked >= 8 and 0 <= used < HALF_A_SECTOR
    ]
    if seen:
        evidence = [f"{w}: {s:.1f} sectors a request, {u:.0f} of {SECTOR} bytes used" for w, s, u in seen]
        gain = max(1 - used / SECTOR for _, _, used in seen)
        return finding(Kind.UNCOALESCED, gain, SEEN, "counters", evidence + read)
    if costs is None or not read or counters.load_sectors is not None:
        return None
    gain = costs.stake("uncoalesced")
    if gain < STAKE:
        return None
    return finding(Kind.UNCOALESCED, gain, KNOWN, "static", read)


def _far_words(access: MemoryAccess) -> str:
    apart = f"{access.stride} bytes" if access.stride is not None else "a distance that only the run knows"
    return f"{access.direction}s of {access.width} bytes (×{access.count}), {apart} from thread to thread"


def narrow_access(given: RuleInput) -> Finding | None:
    costs, counters = given.costs, given.counters
    if costs is None:
        return None
    own = [a for a in costs.accesses if is_global(a) and a.pattern != "uniform"]
    narrow = [a for a in own if a.width <= NARROW]
    count, every = sum(a.count for a in narrow), sum(a.count for a in own)
    if not narrow or 2 * count < every:
        return None
    gain = costs.stake("narrow")
    widest = "2 bytes or less" if any(a.width == NARROW for a in narrow) else "1 byte"
    evidence = [f"{count} of {every} global accesses are of {widest} a thread"]
    confidence = READ
    if counters.dram is not None:
        if counters.dram > BUSY + 0.2:
            return None
        evidence.append(f"device memory is at {percent(counters.dram)} of its peak")
        gain, confidence = max(gain, 0.8 - counters.dram), KNOWN
    if gain < STAKE:
        return None
    return finding(Kind.NARROW_ACCESS, gain, confidence, source_of(counters.dram), evidence)


def bank_conflicts(given: RuleInput) -> Finding | None:
    counters, costs = given.counters, given.costs
    waves, lost = counters.shared_wavefronts, counters.shared_conflicts
    bad = [a for a in (costs.accesses if costs else ()) if a.space == "shared" and bank_ways(a) > 1]
    read = [
        f"shared {a.direction}s of {a.width} bytes (×{a.count}), {a.stride} apart: {bank_ways(a)} in a bank"
        for a in (bad if given.strides_hold else ())
    ]
    if waves is not None and lost is not None:
        share = lost / waves if waves > 0 else 0.0
        weight = 0.5 if counters.shared_pipe is None else min(1.0, counters.shared_pipe / BUSY)
        if share < CONFLICTS or share * weight < STAKE / 2:
            return None
        evidence = [f"{percent(share)} of shared memory's cycles go to bank conflicts", *read]
        if counters.shared_pipe is not None:
            evidence.insert(1, f"it is at {percent(counters.shared_pipe)} of its peak")
        gain = share * weight
        return finding(Kind.BANK_CONFLICTS, gain, SEEN, "counters", evidence)
    if costs is None or not read or (gain := costs.stake("conflicts")) < STAKE:
        return None
    confidence = given.busy_elsewhere(KNOWN)
    return finding(Kind.BANK_CONFLICTS, gain, confidence, "static", read)


def spills(given: RuleInput) -> Finding | None:
    """Registers that do not fit, or arrays that are indexed at run time: both go through local memory."""
    costs, resources = given.costs, given.profile.static.resources
    local = costs.mix.local_load + costs.mix.local_store if costs is not None else 0
    spilled, share = resources.spills or 0, given.counters.local_sectors
    if spilled <= 0 and local <= 0 and not share:
        return None
    is_array = resources.spills == 0 and bool(resources.private)
    kind = Kind.LOCAL_ARRAYS if is_array else Kind.SPILLS
    evidence = [f"{local} accesses to local memory in the code that runs most"] if costs is not None else []
    if spilled > 0:
        evidence.insert(0, f"{spilled} bytes spilled; a thread has {resources.registers} registers")
    elif is_array:
        evidence.insert(0, f"{resources.private} bytes of stack: an array that is indexed at run time")
    elif resources.private:
        evidence.insert(0, f"{resources.private} bytes of stack; the compiler did not say what is spilled")
    stake = costs.stake("spills") if costs is not None else 0.3 if spilled > 0 else 0.0
    if share is not None:
        evidence.append(f"{percent(share)} of the sectors L1 serves are local memory")
        gain, confidence = max(share, stake), SEEN
    else:
        gain, confidence = stake, KNOWN if local else GUESSED
    if gain < STAKE or (share is not None and share < LOCAL):
        return None
    return finding(kind, gain, confidence, source_of(share), evidence)


def extra_traffic(given: RuleInput) -> Finding | None:
    counters, work = given.counters, given.profile.work
    if counters.dram_read is None or counters.dram_written is None or work is None or work.bytes <= 0:
        return None
    moved = counters.dram_read + counters.dram_written
    if moved <= EXTRA * work.bytes:
        return None
    evidence = [f"{moved / 1e6:.1f} MB moved, {work.bytes / 1e6:.1f} MB must be"]
    weight = 1.0 if counters.dram is None else min(1.0, counters.dram / BUSY)
    gain = (1 - work.bytes / moved) * weight
    return finding(Kind.EXTRA_TRAFFIC, gain, KNOWN, "counters", evidence)


def atomics(given: RuleInput) -> Finding | None:
    code = given.code
    if code is None:
        return None
    same = [a for a in code.accesses if a.direction == "atomic" and a.pattern == "uniform" and a.hot]
    if not same:
        return None
    count = sum(a.count for a in same)
    evidence = [f"{count} atomics whose address is the same for all threads of a warp"]
    return finding(Kind.ATOMICS, 0.4, GUESSED, "static", evidence)


def latency(given: RuleInput) -> Finding | None:
    """A symptom: loads are waited for and nothing is saturated."""
    counters, costs = given.counters, given.costs
    waiting = counters.stalled("memory")
    flight = [f"a thread has {given.code.bytes_in_flight} bytes in flight"] if given.code is not None else []
    if counters.dram is not None and waiting is not None:
        busiest = max(counters.dram, counters.issue or 0.0, counters.l2 or 0.0, counters.l1 or 0.0)
        if busiest > BUSY or waiting < WAITING:
            return None
        evidence = [f"{percent(waiting)} of waiting is for memory, and no unit is above {percent(busiest)}"]
        if counters.eligible_warps is not None:
            evidence.append(
                f"{counters.eligible_warps:.2f} warps of a scheduler are ready in the average cycle"
            )
        return finding(Kind.LATENCY, 1 - busiest, READ, "counters", evidence + flight)
    if costs is None or (gain := costs.stake("flight")) < STAKE:
        return None
    return finding(Kind.LATENCY, gain, 0.5, "static", flight)


MEMORY_RULES = (spills, uncoalesced, narrow_access, bank_conflicts, extra_traffic, atomics, latency)
