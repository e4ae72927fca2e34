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

from tunesmith.problem.template import Remedy
from tunesmith.profiles import code_rules, kernel_rules
from tunesmith.profiles import costs as c
from tunesmith.profiles.costs import ABOUT, RuleInput, costs_of, finding, percent
from tunesmith.profiles.facts import Bound, Diagnosis, Finding, Kind, Profile
from tunesmith.profiles.roofline import (
    OF_OPERATIONS,
    Ceiling,
    Floor,
    roof_facts,
    roofline,
    unmeasured_operations,
)
from tunesmith.text import counted

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


def diagnose(profile: Profile) -> Diagnosis:
    """Of any profile, however little it knows."""
    roof = roofline(profile)
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
    found = replace(found, notes=_notes(profile, floor))
    if floor is not None and distance is not None and _near(profile, floor, distance):
        return _at_the_floor(found, floor, distance)
    given = RuleInput(profile, costs_of(profile), roof)
    findings = _ranked(given, distance)
    away = _away(profile, floor, distance)
    if not findings:
        bound, looked = code_rules.by_elimination(given)
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


def _away(profile: Profile, floor: Floor | None, distance: float | None) -> str:
    if floor is not None and distance is not None:
        return f"{distance:.2f} × the floor of {floor}"
    if profile.seconds is None:
        return "not timed"
    return "no floor is known"


def _near(profile: Profile, floor: Floor, distance: float) -> bool:
    if distance <= (NEAR if floor.measured else NEAR_DATA_SHEET):
        return True
    counters, work = profile.counters, profile.work
    if counters is None or counters.dram is None or work is None or floor.ceiling is not Ceiling.MEMORY:
        return False
    # Of several launches the share of the peak is that of one: it says nothing of the others.
    if counters.dram_read is None or counters.dram_written is None or profile.parts:
        return False
    moved = counters.dram_read + counters.dram_written
    return counters.dram >= SATURATED_MEMORY and moved <= kernel_rules.EXTRA * work.bytes


def _ranked(given: RuleInput, distance: float | None) -> tuple[Finding, ...]:
    """What is shown is what is ranked: no gain above what the distance to the floor allows."""
    found = _merged([f for rule in RULES if (f := rule(given)) is not None and f.gain >= WORTH_SHOWING])
    shown = [
        f
        for f in found
        if not any(o.kind in ABOUT[f.kind].causes and o.score >= EXPLAINS * f.score for o in found)
    ]
    most = 1.0 if distance is None else max(0.0, 1 - 1 / distance)
    capped = [replace(f, gain=min(f.gain, most)) for f in shown]
    return tuple(sorted(capped, key=lambda f: -f.score))


def _merged(found: Sequence[Finding]) -> list[Finding]:
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


def _notes(profile: Profile, floor: Floor | None) -> tuple[str, ...]:
    notes = [_launches(profile)] if profile.parts else []
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
    given = RuleInput(profile, None, roofline(profile))
    if given.cached_share is not None:
        share = percent(given.cached_share)
        notes.append(f"{share} of the time goes when the data is in the cache (experiment)")
    elif profile.experiments.warm and profile.experiments.cold and profile.work and not given.fits_cache:
        notes.append("warm against cold tells nothing: the cache does not hold what must move")
    return tuple(notes)


def _launches(profile: Profile) -> str:
    """Which of several launches is shown, and what each takes where that is known."""
    main, count = profile.main, len(profile.parts)
    entry = main.entry if main is not None else profile.parts[0].entry
    known = [f"{part.entry} {percent(part.share)}" for part in profile.parts if part.share is not None]
    if len(known) == count:
        return f"of its {count} launches {entry} takes most and is shown; of the time: {', '.join(known)}"
    return f"of its {count} launches {entry} has the most threads and is shown: what each takes is not known"


# -- faults of a launch --------------------------------------------------------------------------------

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
    if launch.idle_threads is not None and launch.idle_threads >= IDLE_THREADS:
        words = f"{percent(launch.idle_threads)} of the threads have no element"
        gain = 0.2 * launch.idle_threads  # they end at once: what they cost is their start
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
    return finding(Kind.BLOCK_SIZE, 1 - best.seconds / now, c.SEEN, "experiment", [words])


def launch_cost(given: RuleInput) -> Finding | None:
    share, seconds = given.launch_share, given.profile.seconds
    if share is None or seconds is None or share < LAUNCH_SHARE:
        return None
    launches = given.profile.launches
    whose = "an empty launch takes" if launches == 1 else f"{launches} empty launches take"
    words = f"{whose} {1e6 * share * seconds:.2f} µs of {1e6 * seconds:.2f} µs"
    confidence = c.KNOWN if share <= 1 else c.GUESSED
    return finding(Kind.LAUNCH, share, confidence, "timing", [words])


# -- what experiments tell -----------------------------------------------------------------------------

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
    return finding(Kind.TOO_FEW_BLOCKS, 1 - max(0.5, launch.waves), c.READ, "experiment", evidence, remedies)


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
    return c.READ if given.launch is not None and given.launch.idle_threads is not None else c.GUESSED


RULES: tuple[Callable[[RuleInput], Finding | None], ...] = (
    *(too_few_blocks, tail, idle_threads, low_occupancy, block_size, launch_cost),
    *kernel_rules.MEMORY_RULES,
    *kernel_rules.COMPUTE_RULES,
    *code_rules.STATIC_RULES,
    *(more_blocks, waiting, uneven_blocks, memory, compute),
)
