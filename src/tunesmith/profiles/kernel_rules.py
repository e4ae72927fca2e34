"""Faults of what is computed: doubles, divisions, special functions, ways that split, one thread's work."""

from __future__ import annotations

from tunesmith.profiles import costs as c
from tunesmith.profiles.costs import RuleInput, finding, percent
from tunesmith.profiles.facts import Finding, Kind

FULL_WARP = 24  # threads of 32 an instruction: below it a quarter of the lanes and more do nothing
SATURATED = 0.8  # of a pipe's peak: NVIDIA's own tools call it the bottleneck from here on
BARRIERS = 0.3  # share of stalls
SERIAL_ALONE = 0.8  # of the time, where one thread walks through global memory and the others wait
SERIAL_SHORT = 0.2  # where it walks through shared memory or registers


def fp64(given: RuleInput) -> Finding | None:
    costs, doubles = given.costs, given.profile.static.doubles
    if costs is None or not costs.mix.fp64 or doubles:
        return None
    gain = costs.stake("fp64")
    evidence = [f"{costs.mix.fp64} of {costs.mix.total} instructions are in double precision"]
    if doubles is False:
        evidence.append("no argument is")
    confidence, pipe = given.busy_elsewhere(c.KNOWN if doubles is False else c.READ), given.counters.fp64
    if pipe is not None:
        evidence.append(f"the fp64 pipe is at {percent(pipe)} of its peak")
        gain, confidence = max(gain, pipe), c.SEEN if doubles is False else c.READ
    return finding(Kind.FP64, gain, confidence, c.source_of(pipe), evidence, least=STAKE / 2)


def integer_division(given: RuleInput) -> Finding | None:
    costs = given.costs
    if costs is None or not costs.mix.division:
        return None
    share = min(1.0, c.PER_DIVISION * costs.mix.division / max(1, costs.mix.total))
    evidence = [
        f"{costs.mix.division} integer divisions by what is not a constant, about {percent(share)} of "
        f"{costs.mix.total} instructions"
    ]
    gain, confidence, issue = costs.stake("division"), given.busy_elsewhere(c.READ), given.counters.issue
    if issue is not None:
        evidence.append(f"instructions are issued in {percent(issue)} of the cycles")
        gain, confidence = max(gain, share) * min(1.0, issue / BUSY), c.KNOWN
    return finding(Kind.INTEGER_DIVISION, gain, confidence, c.source_of(issue), evidence, least=STAKE)


def special_functions(given: RuleInput) -> Finding | None:
    costs, pipe = given.costs, given.counters.special
    count = costs.mix.special + costs.mix.slow_conversion if costs is not None else 0
    words = f"{count} special functions and conversions by the slow unit" if costs is not None else ""
    if pipe is not None:
        if pipe < BUSY:
            return None
        evidence = [f"their pipe is at {percent(pipe)} of its peak", *filter(None, [words])]
        return finding(Kind.SPECIAL_FUNCTIONS, 1 - BUSY / pipe * 0.5, c.READ, "counters", evidence)
    if costs is None or not count:
        return None
    return finding(Kind.SPECIAL_FUNCTIONS, costs.stake("special"), 0.5, "static", [words], least=STAKE)


def divergence(given: RuleInput) -> Finding | None:
    costs, code, threads = given.costs, given.code, given.counters.threads_per_instruction
    lane = code.split_by_lane if code is not None else 0
    data = code.split_by_data if code is not None else 0
    read = [
        f"{count} of {costs.mix.total if costs else 0} instructions run because threads of a warp go several "
        f"ways by {cause}"
        for count, cause in ((lane, "their number"), (data, "what they loaded"))
        if count
    ]
    if threads is not None:
        if threads >= FULL_WARP:
            return None
        evidence = [f"{threads:.1f} of 32 threads take part in the average instruction", *read]
        issue = given.counters.issue
        weight = 1.0 if issue is None else min(1.0, issue / BUSY)
        gain = (1 - max(0.0, threads) / 32) * weight
        return finding(Kind.DIVERGENCE, gain, c.SEEN, "counters", evidence)
    if costs is None or not read or (gain := costs.stake("split")) < STAKE:
        return None
    confidence = given.busy_elsewhere(c.READ if lane >= data else c.GUESSED)
    return finding(Kind.DIVERGENCE, gain, confidence, "static", read)


def serial_thread(given: RuleInput) -> Finding | None:
    code, counters = given.code, given.counters
    if code is None or not code.one_thread_loop:
        return None
    evidence = [f"a loop of {code.one_thread_loop} instructions runs in one thread while the others wait"]
    gain = SERIAL_ALONE if code.one_thread_global else SERIAL_SHORT
    if code.one_thread_global:
        evidence.append(f"with {code.one_thread_global} accesses to global memory")
    waiting, threads = counters.stalled("barrier"), counters.threads_per_instruction
    confidence = c.READ + 0.1
    if waiting is not None and threads is not None:
        at_barriers = f"{percent(waiting)} of waiting is at barriers"
        evidence.append(f"{at_barriers}, {threads:.1f} of 32 threads take part")
        idle = 1 - max(0.0, threads) / 32
        if max(waiting, idle) < BARRIERS:
            return None
        gain, confidence = max(waiting, idle), c.SEEN
    return finding(Kind.SERIAL_THREAD, gain, confidence, c.source_of(waiting), evidence)


def barriers(given: RuleInput) -> Finding | None:
    """A symptom: warps wait for each other."""
    waiting = given.counters.stalled("barrier")
    if waiting is None or waiting < BARRIERS:
        return None
    count = given.costs.mix.barrier if given.costs is not None else 0
    evidence = [f"{percent(waiting)} of waiting is at barriers"] + ([f"{count} of them"] if count else [])
    return finding(Kind.BARRIERS, waiting / 2, c.READ, "counters", evidence)


def compute(given: RuleInput) -> Finding | None:
    """A symptom: a pipe, or the issue of instructions, is saturated."""
    counters = given.counters
    units = {
        "the issue of instructions": counters.issue,
        "the fma pipe": counters.fma,
        "the alu pipe": counters.alu,
        "the tensor pipe": counters.tensor,
    }
    known = {name: share for name, share in units.items() if share is not None}
    if not known or max(known.values()) < SATURATED:
        return None
    name = max(known, key=lambda n: known[n])
    evidence = [f"{name} is at {percent(known[name])} of its peak"]
    return finding(Kind.COMPUTE, 0.3, c.READ, "counters", evidence)


COMPUTE_RULES = (fp64, integer_division, special_functions, divergence, serial_thread, barriers, compute)


HALF_A_SECTOR = c.SECTOR / 2  # bytes used of each sector
NARROW = 2  # bytes: below the 4 of a register, and a warp asks for half a cache line or less
REMAINDER = 0.2  # of the bytes that the code has accesses for
STAKE = 0.05  # below it a fault in the code is not worth telling
CONFLICTS = 0.2  # share of shared memory's cycles
LOCAL = 0.1  # share of L1's sectors
EXTRA = 1.25  # times the bytes that must move: caches and partial lines account for less
BUSY = 0.6  # of a peak: what is below it is not saturated
WAITING = 0.4  # share of stalls


def uncoalesced(given: RuleInput) -> Finding | None:
    costs, counters = given.costs, given.counters
    far = [a for a in (costs.accesses if costs else ()) if c.is_global(a) and c.sectors(a) > 2 * c.ideal(a)]
    unknown = "a distance that only the run knows"
    read = [
        f"{a.direction}s of {a.width} bytes (×{a.count}), "
        f"{unknown if a.stride is None else f'{a.stride} bytes'} from thread to thread"
        for a in (far if given.strides_hold else ())
    ]
    seen = [
        (words, asked, used)
        for words, asked, used in (
            ("loads", counters.load_sectors, counters.load_bytes_per_sector),
            ("stores", counters.store_sectors, counters.store_bytes_per_sector),
        )
        if asked is not None and used is not None and asked >= 8 and 0 <= used < HALF_A_SECTOR
    ]
    if seen:
        evidence = [f"{w}: {s:.1f} sectors a request, {u:.0f} of {c.SECTOR} bytes used" for w, s, u in seen]
        gain = max(1 - used / c.SECTOR for _, _, used in seen)
        return finding(Kind.UNCOALESCED, gain, c.SEEN, "counters", evidence + read)
    if costs is None or not read or counters.load_sectors is not None:
        return None
    return finding(Kind.UNCOALESCED, costs.stake("uncoalesced"), c.KNOWN, "static", read, least=STAKE)


def narrow_access(given: RuleInput) -> Finding | None:
    costs, counters = given.costs, given.counters
    if costs is None:
        return None
    own = [a for a in costs.accesses if c.is_global(a) and a.pattern != "uniform"]
    narrow = [a for a in own if a.width <= NARROW]
    count, every = sum(a.count for a in narrow), sum(a.count for a in own)
    if not narrow or 2 * count < every:
        return None
    moved = sum(a.count * a.width for a in own)
    if sum(a.count * a.width for a in narrow) < REMAINDER * moved:
        return None  # a loop over what is left beside one with wide accesses
    gain = costs.stake("narrow")
    widest = "2 bytes or less" if any(a.width == NARROW for a in narrow) else "1 byte"
    evidence = [f"{count} of {every} global accesses are of {widest} a thread"]
    confidence = c.READ
    if counters.dram is not None:
        if counters.dram > BUSY + 0.2:
            return None
        evidence.append(f"device memory is at {percent(counters.dram)} of its peak")
        gain, confidence = max(gain, 0.8 - counters.dram), c.KNOWN
    return finding(Kind.NARROW_ACCESS, gain, confidence, c.source_of(counters.dram), evidence, least=STAKE)


def bank_conflicts(given: RuleInput) -> Finding | None:
    counters, costs = given.counters, given.costs
    waves, lost = counters.shared_wavefronts, counters.shared_conflicts
    bad = [a for a in (costs.accesses if costs else ()) if a.space == "shared" and c.bank_ways(a) > 1]
    read = [
        f"shared {a.direction}s of {a.width} bytes (×{a.count}), {a.stride} apart: {c.bank_ways(a)} in a bank"
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
        return finding(Kind.BANK_CONFLICTS, gain, c.SEEN, "counters", evidence)
    if costs is None or not read or (gain := costs.stake("conflicts")) < STAKE:
        return None
    return finding(Kind.BANK_CONFLICTS, gain, given.busy_elsewhere(c.KNOWN), "static", read)


def spills(given: RuleInput) -> Finding | None:
    """Registers that do not fit, or arrays that are indexed at run time: both go through local memory."""
    costs, resources = given.costs, given.profile.static.resources
    local = costs.mix.local if costs is not None else 0
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
        gain, confidence = max(share, stake), c.SEEN
    else:
        gain, confidence = stake, c.KNOWN if local else c.GUESSED
    if share is not None and share < LOCAL:
        return None
    return finding(kind, gain, confidence, c.source_of(share), evidence, least=STAKE)


def extra_traffic(given: RuleInput) -> Finding | None:
    counters, work = given.counters, given.profile.work
    if counters.dram_read is None or counters.dram_written is None or work is None or work.bytes <= 0:
        return None
    moved = counters.dram_read + counters.dram_written
    if moved <= EXTRA * work.bytes:
        return None
    evidence = [f"{moved / 1e6:.1f} MB moved, {work.bytes / 1e6:.1f} MB must be"]
    weight = 1.0 if counters.dram is None else min(1.0, counters.dram / BUSY)
    return finding(Kind.EXTRA_TRAFFIC, (1 - work.bytes / moved) * weight, c.KNOWN, "counters", evidence)


def atomics(given: RuleInput) -> Finding | None:
    accesses = given.code.accesses if given.code is not None else ()
    same = [a for a in accesses if a.direction == "atomic" and a.pattern == "uniform" and a.hot]
    if not same:
        return None
    count = sum(a.count for a in same)
    evidence = [f"{count} atomics whose address is the same for all threads of a warp"]
    return finding(Kind.ATOMICS, 0.4, c.GUESSED, "static", evidence)


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
            ready = f"{counters.eligible_warps:.2f} warps of a scheduler"
            evidence.append(f"{ready} are ready in the average cycle")
        return finding(Kind.LATENCY, 1 - busiest, c.READ, "counters", evidence + flight)
    if costs is None or (gain := costs.stake("flight")) < STAKE:
        return None
    return finding(Kind.LATENCY, gain, 0.5, "static", flight)


MEMORY_RULES = (spills, uncoalesced, narrow_access, bank_conflicts, extra_traffic, atomics, latency)
