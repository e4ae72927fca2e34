"""From a profile to a diagnosis: what bounds a workload, how far from its floor it is, and what to do.

Every rule looks for one fault and says what share of the time is at stake. Findings are ranked by that share
and how sure it is; none can gain more than the distance to the floor. A kernel near its floor has no fault.
Here are also the rules about the launch: too few blocks, an unfilled last wave, the wrong block; and those
that experiments tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tunesmith.base.text import format_count
from tunesmith.problem.template import Remedy
from tunesmith.profiles import costs as c
from tunesmith.profiles.costs import ABOUT, PassCosts, RuleInput, costs_of, format_percent, make_finding
from tunesmith.profiles.facts import Bound, Diagnosis, Finding, Kind, Mix, Profile
from tunesmith.profiles.roofline import (
    OF_OPERATIONS,
    Ceiling,
    Floor,
    compute_roofline,
    roof_facts,
    unmeasured_operations,
)

FULL_WARP = 24  # threads of 32 an instruction: below it a quarter of the lanes and more do nothing
SATURATED = 0.8  # of a pipe's peak: NVIDIA's own tools call it the bottleneck from here on
BARRIERS = 0.3  # share of stalls
SERIAL_ALONE = 0.8  # of the time, where one thread walks through global memory and the others wait
SERIAL_SHORT = 0.2  # where it walks through shared memory or registers


def double_precision(given: RuleInput) -> Finding | None:
    costs, doubles = given.costs, given.profile.static.doubles
    if costs is None or not costs.mix.fp64 or doubles:
        return None
    gain = costs.stake("fp64")
    evidence = [f"{costs.mix.fp64} of {costs.mix.total} instructions are in double precision"]
    if doubles is False:
        evidence.append("no argument is")
    confidence, pipe = given.busy_elsewhere(c.KNOWN if doubles is False else c.READ), given.counters.fp64
    if pipe is not None:
        evidence.append(f"the fp64 pipe is at {format_percent(pipe)} of its peak")
        gain, confidence = max(gain, pipe), c.SEEN if doubles is False else c.READ
    return make_finding(Kind.FP64, gain, confidence, c.source_of(pipe), evidence, least=STAKE / 2)


def integer_division(given: RuleInput) -> Finding | None:
    costs = given.costs
    if costs is None or not costs.mix.division:
        return None
    share = min(1.0, c.PER_DIVISION * costs.mix.division / max(1, costs.mix.total))
    evidence = [
        f"{costs.mix.division} integer divisions by what is not a constant, about {format_percent(share)} of "
        f"{costs.mix.total} instructions"
    ]
    gain, confidence, issue = costs.stake("division"), given.busy_elsewhere(c.READ), given.counters.issue
    if issue is not None:
        evidence.append(f"instructions are issued in {format_percent(issue)} of the cycles")
        gain, confidence = max(gain, share) * min(1.0, issue / BUSY), c.KNOWN
    return make_finding(Kind.INTEGER_DIVISION, gain, confidence, c.source_of(issue), evidence, least=STAKE)


def special_functions(given: RuleInput) -> Finding | None:
    costs, pipe = given.costs, given.counters.special
    count = costs.mix.special + costs.mix.slow_conversion if costs is not None else 0
    words = f"{count} special functions and conversions by the slow unit" if costs is not None else ""
    if pipe is not None:
        if pipe < BUSY:
            return None
        evidence = [f"their pipe is at {format_percent(pipe)} of its peak", *filter(None, [words])]
        return make_finding(Kind.SPECIAL_FUNCTIONS, 1 - BUSY / pipe * 0.5, c.READ, "counters", evidence)
    if costs is None or not count:
        return None
    return make_finding(Kind.SPECIAL_FUNCTIONS, costs.stake("special"), 0.5, "static", [words], least=STAKE)


def warp_divergence(given: RuleInput) -> Finding | None:
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
        return make_finding(Kind.DIVERGENCE, gain, c.SEEN, "counters", evidence)
    if costs is None or not read or (gain := costs.stake("split")) < STAKE:
        return None
    confidence = given.busy_elsewhere(c.READ if lane >= data else c.GUESSED)
    return make_finding(Kind.DIVERGENCE, gain, confidence, "static", read)


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
        at_barriers = f"{format_percent(waiting)} of waiting is at barriers"
        evidence.append(f"{at_barriers}, {threads:.1f} of 32 threads take part")
        idle = 1 - max(0.0, threads) / 32
        if max(waiting, idle) < BARRIERS:
            return None
        gain, confidence = max(waiting, idle), c.SEEN
    return make_finding(Kind.SERIAL_THREAD, gain, confidence, c.source_of(waiting), evidence)


def barrier_stalls(given: RuleInput) -> Finding | None:
    """A symptom: warps wait for each other."""
    waiting = given.counters.stalled("barrier")
    if waiting is None or waiting < BARRIERS:
        return None
    count = given.costs.mix.barrier if given.costs is not None else 0
    evidence = [f"{format_percent(waiting)} of waiting is at barriers"] + (
        [f"{count} of them"] if count else []
    )
    return make_finding(Kind.BARRIERS, waiting / 2, c.READ, "counters", evidence)


def compute_by_counters(given: RuleInput) -> Finding | None:
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
    evidence = [f"{name} is at {format_percent(known[name])} of its peak"]
    return make_finding(Kind.COMPUTE, 0.3, c.READ, "counters", evidence)


COMPUTE_RULES = (
    double_precision,
    integer_division,
    special_functions,
    warp_divergence,
    serial_thread,
    barrier_stalls,
    compute_by_counters,
)


HALF_A_SECTOR = c.SECTOR / 2  # bytes used of each sector
NARROW = 2  # bytes: below the 4 of a register, and a warp asks for half a cache line or less
REMAINDER = 0.2  # of the bytes that the code has accesses for
STAKE = 0.05  # below it a fault in the code is not worth telling
CONFLICTS = 0.2  # share of shared memory's cycles
LOCAL = 0.1  # share of L1's sectors
EXTRA = 1.25  # times the bytes that must move: caches and partial lines account for less
BUSY = 0.6  # of a peak: what is below it is not saturated
WAITING = 0.4  # share of stalls


def uncoalesced_access(given: RuleInput) -> Finding | None:
    costs, counters = given.costs, given.counters
    far = [
        a
        for a in (costs.accesses if costs else ())
        if c.is_global(a) and c.touched_sectors(a) > 2 * c.ideal_sectors(a)
    ]
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
        return make_finding(Kind.UNCOALESCED, gain, c.SEEN, "counters", evidence + read)
    if costs is None or not read or counters.load_sectors is not None:
        return None
    return make_finding(Kind.UNCOALESCED, costs.stake("uncoalesced"), c.KNOWN, "static", read, least=STAKE)


def narrow_access(given: RuleInput) -> Finding | None:
    costs, counters = given.costs, given.counters
    if costs is None:
        return None
    accesses = [a for a in costs.accesses if c.is_global(a) and a.pattern != "uniform"]
    narrow = [a for a in accesses if a.width <= NARROW]
    count, every = sum(a.count for a in narrow), sum(a.count for a in accesses)
    if not narrow or 2 * count < every:
        return None
    moved = sum(a.count * a.width for a in accesses)
    if sum(a.count * a.width for a in narrow) < REMAINDER * moved:
        return None  # a loop over what is left beside one with wide accesses
    gain = costs.stake("narrow")
    widest = "2 bytes or less" if any(a.width == NARROW for a in narrow) else "1 byte"
    evidence = [f"{count} of {every} global accesses are of {widest} a thread"]
    confidence = c.READ
    if counters.dram is not None:
        if counters.dram > BUSY + 0.2:
            return None
        evidence.append(f"device memory is at {format_percent(counters.dram)} of its peak")
        gain, confidence = max(gain, 0.8 - counters.dram), c.KNOWN
    return make_finding(
        Kind.NARROW_ACCESS, gain, confidence, c.source_of(counters.dram), evidence, least=STAKE
    )


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
        evidence = [f"{format_percent(share)} of shared memory's cycles go to bank conflicts", *read]
        if counters.shared_pipe is not None:
            evidence.insert(1, f"it is at {format_percent(counters.shared_pipe)} of its peak")
        gain = share * weight
        return make_finding(Kind.BANK_CONFLICTS, gain, c.SEEN, "counters", evidence)
    if costs is None or not read or (gain := costs.stake("conflicts")) < STAKE:
        return None
    return make_finding(Kind.BANK_CONFLICTS, gain, given.busy_elsewhere(c.KNOWN), "static", read)


def local_memory_traffic(given: RuleInput) -> Finding | None:
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
        evidence.append(f"{format_percent(share)} of the sectors L1 serves are local memory")
        gain, confidence = max(share, stake), c.SEEN
    else:
        gain, confidence = stake, c.KNOWN if local else c.GUESSED
    if share is not None and share < LOCAL:
        return None
    return make_finding(kind, gain, confidence, c.source_of(share), evidence, least=STAKE)


def extra_traffic(given: RuleInput) -> Finding | None:
    counters, work = given.counters, given.profile.work
    if counters.dram_read is None or counters.dram_written is None or work is None or work.bytes <= 0:
        return None
    moved = counters.dram_read + counters.dram_written
    if moved <= EXTRA * work.bytes:
        return None
    evidence = [f"{moved / 1e6:.1f} MB moved, {work.bytes / 1e6:.1f} MB must be"]
    weight = 1.0 if counters.dram is None else min(1.0, counters.dram / BUSY)
    return make_finding(Kind.EXTRA_TRAFFIC, (1 - work.bytes / moved) * weight, c.KNOWN, "counters", evidence)


def contended_atomics(given: RuleInput) -> Finding | None:
    accesses = given.code.accesses if given.code is not None else ()
    same = [a for a in accesses if a.direction == "atomic" and a.pattern == "uniform" and a.hot]
    if not same:
        return None
    count = sum(a.count for a in same)
    evidence = [f"{count} atomics whose address is the same for all threads of a warp"]
    return make_finding(Kind.ATOMICS, 0.4, c.GUESSED, "static", evidence)


def memory_latency(given: RuleInput) -> Finding | None:
    """A symptom: loads are waited for and nothing is saturated."""
    counters, costs = given.counters, given.costs
    waiting = counters.stalled("memory")
    flight = [f"a thread has {given.code.bytes_in_flight} bytes in flight"] if given.code is not None else []
    if counters.dram is not None and waiting is not None:
        busiest = max(counters.dram, counters.issue or 0.0, counters.l2 or 0.0, counters.l1 or 0.0)
        if busiest > BUSY or waiting < WAITING:
            return None
        evidence = [
            f"{format_percent(waiting)} of waiting is for memory, and no unit is above "
            f"{format_percent(busiest)}"
        ]
        if counters.eligible_warps is not None:
            ready = f"{counters.eligible_warps:.2f} warps of a scheduler"
            evidence.append(f"{ready} are ready in the average cycle")
        return make_finding(Kind.LATENCY, 1 - busiest, c.READ, "counters", evidence + flight)
    if costs is None or (gain := costs.stake("flight")) < STAKE:
        return None
    return make_finding(Kind.LATENCY, gain, 0.5, "static", flight)


MEMORY_RULES = (
    local_memory_traffic,
    uncoalesced_access,
    narrow_access,
    bank_conflicts,
    extra_traffic,
    contended_atomics,
    memory_latency,
)


# A pass is one turn of the code that runs most. How many there are follows from the bytes that must move,
# and so what share of the measured time each unit needs at least.
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
    return make_finding(Kind.EXTRA_TRAFFIC, gain, c.READ, "static", evidence)


def barrier_waits(given: RuleInput) -> Finding | None:
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
    return make_finding(Kind.BARRIERS, min(0.5, share), c.READ, "static", evidence)


def issue_load(given: RuleInput) -> Finding | None:
    """So many for each byte that their issue alone takes much of the time."""
    issued = (unit_shares(given) or {}).get("issuing instructions", 0.0)
    if given.costs is None or given.counters.issue is not None or issued < ISSUED:
        return None
    mix = given.costs.mix
    evidence = [
        f"{mix.total} instructions for {per_thread(given.costs)} bytes of a thread take "
        f"{format_percent(min(1.0, issued))} of the time to issue",
        *([f"among them {named}"] if (named := instruction_classes(mix)) else []),
    ]
    return make_finding(Kind.COMPUTE, min(0.5, issued / 2), 0.5, "static", evidence)


STATIC_RULES = (read_again, barrier_waits, issue_load)


_BOUND = {
    "issuing instructions": Bound.COMPUTE,
    "special functions": Bound.COMPUTE,
    "shared memory and L1": Bound.LATENCY,
    "L2": Bound.BANDWIDTH,
    "device memory": Bound.BANDWIDTH,
    "waiting for loads": Bound.LATENCY,
}


def unit_shares(given: RuleInput) -> dict[str, float] | None:
    """Of the measured time, by a rough model: what each unit needs at least."""
    costs, work, launch, seconds = given.costs, given.profile.work, given.launch, given.profile.seconds
    if costs is None or work is None or launch is None or not seconds or launch.sms < 1:
        return None
    moved = per_thread(costs) * c.WARP
    if moved <= 0 or work.bytes <= 0:
        return None
    passes = work.bytes / moved / launch.sms  # of warps, on each multiprocessor
    whole = seconds * c.CLOCK
    return {n: passes * cycles / whole for n, cycles in costs.unit_cycles().items() if n in _BOUND}


def by_elimination(given: RuleInput) -> tuple[Bound, str]:
    """Of a kernel without a fault: the bound of the unit that needs most of the time, if that is much of it;
    and all that was looked at."""
    shares, code, launch = unit_shares(given), given.code, given.launch
    if shares is None or code is None or launch is None:
        return Bound.UNKNOWN, ""
    first, *others = sorted(shares.items(), key=lambda pair: -pair[1])
    told = ", ".join(f"{name} {format_percent(share)}" for name, share in others[:3])
    looked = [
        f"by the code {first[0]} needs most, {format_percent(min(1.0, first[1]))} of the time ({told})",
        f"{code.bytes_in_flight} bytes in flight a thread",
        *([f"room for {launch.occupancy} % of the threads"] if launch.occupancy is not None else []),
        *([f"{launch.waves:.2f} waves of blocks"] if launch.waves is not None else []),
        f"{code.all.barrier} barriers, {code.all.shuffle} shuffles, {code.loops} loops",
    ]
    return _BOUND[first[0]] if first[1] >= MUCH else Bound.UNKNOWN, "; ".join(looked)


def per_thread(costs: PassCosts) -> int:
    """Global bytes of a thread in a pass, without what is the same for all."""
    accesses = [a for a in costs.accesses if c.is_global(a) and a.pattern != "uniform"]
    return sum(a.width * a.count for a in accesses)


def instruction_classes(mix: Mix) -> str:
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


# Times the floor. The best kernels in docs/results.md take 0.96 to 1.1 of a copy's time above a megabyte.
NEAR = 1.15
# A data sheet promises what no kernel gets: copies reach 85 to 90 % of it.
NEAR_DATA_SHEET = 1.3
SATURATED_MEMORY = 0.85  # of the peak, by the counters: what large copies show
# Below this the floor is not one: noise and a cache that helps account for a few per cent.
FASTER = 0.9
WORTH_SHOWING = 0.03  # share of the time
FASTER_THAN_POSSIBLE = (
    "faster than its floor: traffic or ceilings are wrong; measure again with --remeasure, or state `traffic`"
)

TOO_MUCH_STATED = (
    "faster than its floor: `operations` or ceilings are wrong; correct what is stated, or measure again "
    "with --remeasure"
)

EXPLAINS = 0.5  # of a symptom's score: a cause of less cannot be all there is to it
_OF_CEILINGS = {Ceiling.LAUNCH: Bound.LAUNCH, Ceiling.MEMORY: Bound.BANDWIDTH, Ceiling.CACHE: Bound.BANDWIDTH}


def diagnose_profile(profile: Profile) -> Diagnosis:
    """Of any profile, however little it knows."""
    roof = compute_roofline(profile)
    floor, distance = roof.floor, roof.distance
    if distance is not None and not 0 < distance < math.inf:
        distance = None
    main = profile.main
    found = Diagnosis(
        bound=Bound.UNKNOWN,
        summary="",
        confidence=0.2,
        findings=(),
        distance=distance,
        floor=floor.seconds if floor is not None else None,
        ceiling=floor.ceiling if floor is not None else "",
        launch=main.entry if main is not None else "",
        clusters=profile.launch.cluster_words if profile.launch is not None else "",
        roof=roof_facts(profile, roof),
    )
    if profile.cannot_run:
        return replace(found, summary=f"cannot run: {profile.cannot_run}", confidence=1.0)
    found = replace(found, notes=_diagnosis_notes(profile, floor))
    if floor is not None and distance is not None and _is_near_floor(profile, floor, distance):
        return _at_the_floor(found, floor, distance)
    given = RuleInput(profile, costs_of(profile), roof)
    findings = _rank_findings(given, distance)
    away = _floor_distance(profile, floor, distance)
    if not findings:
        bound, looked = by_elimination(given)
        # Who has counters has more to look at than what the code lets expect.
        told = bool(looked) and profile.counters is None
        notes = (*found.notes, f"looked at: {looked}") if told else found.notes
        return replace(found, bound=bound, summary=f"no fault found; {away}", notes=notes)
    if profile.seconds is None:
        found = replace(found, notes=(*found.notes, "shares of the time are estimates from the code alone"))
    first = findings[0]
    where = f"in {main.entry}, " if main is not None else ""
    summary = f"{where}{first.kind.replace('_', ' ')}: {first.evidence[0]}; {away}"
    return replace(found, bound=first.bound, summary=summary, confidence=first.confidence, findings=findings)


def _at_the_floor(found: Diagnosis, floor: Floor, distance: float) -> Diagnosis:
    bound = _OF_CEILINGS.get(floor.ceiling, Bound.COMPUTE)
    if distance < FASTER:
        said = f"faster than its floor of {floor}: {distance:.2f} × that"
        wrong = TOO_MUCH_STATED if floor.ceiling in OF_OPERATIONS.values() else FASTER_THAN_POSSIBLE
        return replace(found, bound=bound, summary=said, confidence=0.3, notes=(*found.notes, wrong))
    near = f"near the ceiling of {floor}: {distance:.2f} × its floor"
    return replace(found, bound=bound, summary=near, confidence=0.9 if floor.measured else 0.6)


def _floor_distance(profile: Profile, floor: Floor | None, distance: float | None) -> str:
    if floor is not None and distance is not None:
        return f"{distance:.2f} × the floor of {floor}"
    if profile.seconds is None:
        return "not timed"
    return "no floor is known"


def _is_near_floor(profile: Profile, floor: Floor, distance: float) -> bool:
    if distance <= (NEAR if floor.measured else NEAR_DATA_SHEET):
        return True
    counters, work = profile.counters, profile.work
    if counters is None or counters.dram is None or work is None or floor.ceiling is not Ceiling.MEMORY:
        return False
    # Of several launches the share of the peak is that of one: it says nothing of the others.
    if counters.dram_read is None or counters.dram_written is None or profile.parts:
        return False
    moved = counters.dram_read + counters.dram_written
    return counters.dram >= SATURATED_MEMORY and moved <= EXTRA * work.bytes


def _rank_findings(given: RuleInput, distance: float | None) -> tuple[Finding, ...]:
    """What is shown is what is ranked: no gain above what the distance to the floor allows."""
    found = _merge_findings(
        [f for rule in RULES if (f := rule(given)) is not None and f.gain >= WORTH_SHOWING]
    )
    shown = [
        f
        for f in found
        if not any(o.kind in ABOUT[f.kind].causes and o.score >= EXPLAINS * f.score for o in found)
    ]
    most = 1.0 if distance is None else max(0.0, 1 - 1 / distance)
    capped = [replace(f, gain=min(f.gain, most)) for f in shown]
    return tuple(sorted(capped, key=lambda f: -f.score))


def _merge_findings(found: Sequence[Finding]) -> list[Finding]:
    """A kind once: as the rule has it that is surer of more, with the evidence of the other."""
    by_kind: dict[Kind, Finding] = {}
    for one in found:
        other = by_kind.get(one.kind)
        if other is None:
            by_kind[one.kind] = one
            continue
        best, rest = (other, one) if other.score >= one.score else (one, other)
        by_kind[one.kind] = replace(best, evidence=tuple(dict.fromkeys((*best.evidence, *rest.evidence))))
    return list(by_kind.values())


def _diagnosis_notes(profile: Profile, floor: Floor | None) -> tuple[str, ...]:
    notes = [_launch_note(profile)] if profile.parts else []
    if profile.counters is None:
        notes.append(f"no hardware counters: {profile.no_counters or 'none were taken'}")
    if profile.static.instructions is None:
        notes.append(f"the machine code was not read: {profile.static.no_instructions or 'nobody did'}")
    if profile.seconds is None:
        notes.append("not timed")
    elif floor is None:
        notes.append("no ceiling is known, so neither is the distance to it")
    if unmeasured := unmeasured_operations(profile):
        kinds = " and ".join(unmeasured)
        notes.append(f"{kinds} operations are stated and their rate was not measured: no floor has them")
    given = RuleInput(profile, None, compute_roofline(profile))
    if given.cached_share is not None:
        share = format_percent(given.cached_share)
        notes.append(f"{share} of the time goes when the data is in the cache (experiment)")
    elif profile.experiments.warm and profile.experiments.cold and profile.work and not given.fits_cache:
        notes.append("warm against cold tells nothing: the cache does not hold what must move")
    return tuple(notes)


def _launch_note(profile: Profile) -> str:
    """Which of several launches is shown, and what each takes where that is known."""
    main, count = profile.main, len(profile.parts)
    entry = main.entry if main is not None else profile.parts[0].entry
    known = [f"{part.entry} {format_percent(part.share)}" for part in profile.parts if part.share is not None]
    if len(known) == count:
        return f"of its {count} launches {entry} takes most and is shown; of the time: {', '.join(known)}"
    return f"of its {count} launches {entry} has the most threads and is shown: what each takes is not known"


LOST_TO_TAIL = 0.1  # of the time; a tenth of the multiprocessors idle on average
FILLED = 0.5  # of the threads a device holds: below it loads may be too few to hide their latency
IDLE_LANES = 0.1
IDLE_THREADS = 0.3
LOW_OCCUPANCY = 0.35  # a third of the threads: judgement; with several loads in flight more seldom pays
BLOCK_GAIN = 0.05
LAUNCH_SHARE = 0.3  # of the time
_BY_LIMITER = {
    "registers": (Remedy.REGISTER_CAP, Remedy.LAUNCH_BOUNDS, Remedy.BLOCK_SIZE),
    "shared memory": (Remedy.LESS_SHARED, Remedy.ROW_IN_REGISTERS, Remedy.BLOCK_SIZE),
    "threads": (Remedy.BLOCK_SIZE,),
    "blocks": (Remedy.BLOCK_SIZE, Remedy.ROWS_PER_BLOCK),
}


def too_few_blocks(given: RuleInput) -> Finding | None:
    launch = given.launch
    if launch is None or launch.blocks < 1 or launch.sms < 1:
        return None
    if launch.blocks < launch.sms:
        idle = 1 - launch.blocks / launch.sms
        blocks = format_count(launch.blocks, "block")
        words = (
            f"{blocks} on {format_count(launch.sms, 'compute unit')}: "
            f"{format_percent(idle)} of them have none"
        )
        half = given.half_share
        evidence = (
            [words] if half is None else [words, f"half the grid takes {format_percent(half)} of the time"]
        )
        return make_finding(Kind.TOO_FEW_BLOCKS, idle, c.SEEN, "static", evidence)
    if launch.waves is None or launch.waves >= FILLED or given.costs is None:
        return None
    gain = given.costs.stake("few_warps")
    held_by = format_count(launch.sms, "compute unit holds", "compute units hold")
    words = f"{launch.blocks} blocks fill {format_percent(launch.waves)} of what {held_by}"
    held = f"{launch.resident_threads} threads on each, too few to hide the latency of their loads"
    return make_finding(Kind.TOO_FEW_BLOCKS, gain, c.READ, "static", [words, held])


def tail_effect(given: RuleInput) -> Finding | None:
    """The last blocks run while most multiprocessors have none. A unit that is shared serves a lone block
    faster: then a multiprocessor's turns count, one block each. What waits for its loads takes as long alone
    as in company: then whole waves count."""
    launch, active = given.launch, given.counters.sm_active
    if launch is None or launch.waves is None or launch.sms < 1 or not launch.sms < launch.blocks < 10**9:
        return None
    turns = launch.blocks / launch.sms
    by_turns, by_waves = _unfilled_share(turns), _unfilled_share(launch.waves)
    waiting = given.costs.waiting if given.costs is not None else 0.5
    lost = by_turns + (by_waves - by_turns) * waiting
    evidence = [f"{launch.blocks} blocks are {launch.waves:.2f} waves, {turns:.2f} for each compute unit"]
    confidence = c.READ
    if active is not None:
        evidence.append(f"the average compute unit is at work {format_percent(active)} of the time")
        lost, confidence = min(max(by_turns, by_waves), 1 - active), c.SEEN
    return make_finding(Kind.TAIL, lost, confidence, c.source_of(active), evidence, least=LOST_TO_TAIL)


def _unfilled_share(rounds: float) -> float:
    """The share of whole rounds in which there is nothing to do; in a single one all start at once."""
    return 1 - rounds / math.ceil(rounds) if 1 < rounds < 1e9 else 0.0


def idle_threads(given: RuleInput) -> Finding | None:
    launch = given.launch
    if launch is None:
        return None
    if launch.idle_lanes >= IDLE_LANES:
        idle = f"{format_percent(launch.idle_lanes)} of the lanes have no thread"
        words = f"{idle}: {launch.threads} threads in a block"
        return make_finding(Kind.IDLE_THREADS, launch.idle_lanes, c.KNOWN, "static", [words])
    if launch.idle_threads is not None and launch.idle_threads >= IDLE_THREADS:
        words = f"{format_percent(launch.idle_threads)} of the threads have no element"
        gain = 0.2 * launch.idle_threads  # they end at once: what they cost is their start
        return make_finding(Kind.IDLE_THREADS, gain, c.READ, "static", [words], (Remedy.BLOCK_SIZE,))
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
        achieved = f"{format_percent(counters.occupancy)} achieved"
        evidence.append(f"{achieved}, {format_percent(waiting)} of waiting is for memory")
        gain = waiting * (1 - min(1.0, counters.occupancy / FILLED))
        return make_finding(Kind.LOW_OCCUPANCY, gain, c.READ, "counters", evidence, remedies)
    gain = given.costs.stake("few_warps") if given.costs is not None else 0.1
    return make_finding(Kind.LOW_OCCUPANCY, gain, 0.5, "static", evidence, remedies)


def block_size(given: RuleInput) -> Finding | None:
    launch, experiments = given.launch, given.profile.experiments
    swept = [b for b in experiments.blocks if b.seconds > 0]
    if launch is None or not swept:
        return None
    present = next((b for b in swept if b.threads == launch.threads), None)
    now = present.seconds if present is not None else experiments.cold or given.profile.seconds
    best = min(swept, key=lambda b: b.seconds)
    if now is None or now <= 0 or best.threads == launch.threads or 1 - best.seconds / now < BLOCK_GAIN:
        return None
    words = f"blocks of {best.threads} threads take {format_percent(best.seconds / now)} of the time"
    return make_finding(Kind.BLOCK_SIZE, 1 - best.seconds / now, c.SEEN, "experiment", [words])


def launch_cost(given: RuleInput) -> Finding | None:
    share, seconds = given.launch_share, given.profile.seconds
    if share is None or seconds is None or share < LAUNCH_SHARE:
        return None
    launches = given.profile.launches
    whose = "an empty launch takes" if launches == 1 else f"{launches} empty launches take"
    words = f"{whose} {1e6 * share * seconds:.2f} µs of {1e6 * seconds:.2f} µs"
    confidence = c.KNOWN if share <= 1 else c.GUESSED
    return make_finding(Kind.LAUNCH, share, confidence, "timing", [words])


AS_LONG = 0.9  # of the whole's time: half the grid saves nothing
SHARED_OUT = 1.5  # times it: blocks share one work, and half of them take longer
IN_PROPORTION = (0.4, 0.65)  # half the blocks, about half the time
GOES = 0.3  # share of the time that goes with data in the cache: memory is what is waited for
TURNS = 4  # blocks a multiprocessor: with fewer, half of them is no smaller number of rounds
LIKELY = 0.5  # how sure a symptom is that only an experiment shows
SATURATED_GAIN = 0.3  # as where a counter shows a saturated pipe


def more_blocks(given: RuleInput) -> Finding | None:
    """Blocks share one work, there is room for more of them, and with fewer it takes longer."""
    launch, ratio = given.launch, _half_grid_share(given)
    if ratio is None or launch is None or launch.waves is None or ratio < SHARED_OUT:
        return None
    if launch.waves >= 1 or launch.blocks < launch.sms:
        return None  # there is no room; or there are multiprocessors without a block, which says more
    evidence = [
        f"half the grid takes {format_percent(ratio)} of the time, and "
        f"{format_percent(launch.waves)} of what the device "
        f"holds is there"
    ]
    remedies = (Remedy.MORE_BLOCKS, Remedy.SPLIT_ROWS, Remedy.BLOCK_SIZE)
    return make_finding(
        Kind.TOO_FEW_BLOCKS, 1 - max(0.5, launch.waves), c.READ, "experiment", evidence, remedies
    )


def block_latency(given: RuleInput) -> Finding | None:
    """All blocks are there at once, and half of them take as long: each waits for itself."""
    launch, ratio = given.launch, _half_grid_share(given)
    if ratio is None or launch is None or _has_counters(given) or not AS_LONG <= ratio < SHARED_OUT:
        return None
    if launch.waves is None or launch.waves > 1 or (launch.blocks_per_sm or 0) < 2:
        return None
    evidence = [f"half the grid takes {format_percent(ratio)} of the time: what a block waits for decides"]
    share = given.cached_share
    if share is not None:
        evidence.append(f"{format_percent(share)} of the time goes when the data is in the cache")
    remedies = (Remedy.ITEMS_IN_FLIGHT, Remedy.SPLIT_ROWS, Remedy.MORE_BLOCKS, Remedy.WIDE_ACCESS)
    return make_finding(Kind.LATENCY, 0.5, _half_grid_confidence(given), "experiment", evidence, remedies)


def uneven_blocks(given: RuleInput) -> Finding | None:
    """There are several rounds of blocks, and half of them take as long: one block, or a few, decide."""
    launch, ratio = given.launch, _half_grid_share(given)
    if ratio is None or launch is None or launch.sms < 1 or not AS_LONG <= ratio < SHARED_OUT:
        return None
    rounds = launch.blocks / launch.sms if launch.waves is None else launch.waves
    if rounds < 2 or (given.counters.sm_active or 0.0) >= AS_LONG:
        return None
    evidence = [
        f"half the grid takes {format_percent(ratio)} of the time though its {launch.blocks} blocks come in "
        f"{rounds:.1f} rounds: a few of the first half take most of it"
    ]
    return make_finding(Kind.UNEVEN_BLOCKS, 0.5, _half_grid_confidence(given), "experiment", evidence)


def memory_waits(given: RuleInput) -> Finding | None:
    """A symptom: with the data in the cache much of the time goes."""
    share = given.cached_share
    if share is None or share < GOES or _has_counters(given) or _mostly_launch(given) or given.profile.warm:
        return None
    evidence = [
        f"{format_percent(share)} of the time goes when the data is in the cache: memory is waited for"
    ]
    return make_finding(Kind.MEMORY, share, LIKELY, "experiment", evidence)


def compute_by_scaling(given: RuleInput) -> Finding | None:
    """A symptom: the cache makes no difference, and twice the blocks take twice as long."""
    share, ratio, launch = given.cached_share, _half_grid_share(given), given.launch
    if share is None or ratio is None or launch is None or _has_counters(given):
        return None
    in_proportion = IN_PROPORTION[0] <= ratio <= IN_PROPORTION[1]
    if share >= c.NO_DIFFERENCE or not in_proportion or launch.blocks < TURNS * launch.sms:
        return None
    evidence = [
        f"{format_percent(share)} of the time goes when the data is in the cache, and half the grid takes "
        f"{format_percent(ratio)}: compute units are busy, not memory"
    ]
    remedies = (Remedy.HOIST_INVARIANTS, Remedy.UNROLL, Remedy.FAST_INTRINSICS, Remedy.WIDE_ACCESS)
    return make_finding(Kind.COMPUTE, SATURATED_GAIN, LIKELY, "experiment", evidence, remedies)


def _half_grid_share(given: RuleInput) -> float | None:
    """What half the grid takes of the whole's time; None where that is not known or tells nothing."""
    return None if _mostly_launch(given) else given.half_share


def _mostly_launch(given: RuleInput) -> bool:
    return (given.launch_share or 0.0) >= LAUNCH_SHARE


def _has_counters(given: RuleInput) -> bool:
    return given.counters.dram is not None or bool(given.counters.stalls)


def _half_grid_confidence(given: RuleInput) -> float:
    """A thread that has one element cannot have taken over the other half's: then the blocks were fewer and
    so was the work. Else they may share one work, of which half of them can do as much."""
    return c.READ if given.launch is not None and given.launch.idle_threads is not None else c.GUESSED


RULES: tuple[Callable[[RuleInput], Finding | None], ...] = (
    *(too_few_blocks, tail_effect, idle_threads, low_occupancy, block_size, launch_cost),
    *MEMORY_RULES,
    *COMPUTE_RULES,
    *STATIC_RULES,
    *(more_blocks, block_latency, uneven_blocks, memory_waits, compute_by_scaling),
)
