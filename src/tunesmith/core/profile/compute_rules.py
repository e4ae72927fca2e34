"""Faults of what is computed: doubles, divisions, special functions, ways that split, one thread's work."""

from __future__ import annotations

from tunesmith.core.profile.case import GUESSED, KNOWN, READ, SEEN, Case, finding, percent, source_of
from tunesmith.core.profile.costs import PER_DIVISION
from tunesmith.core.profile.findings import Bound, Finding, Kind
from tunesmith.core.profile.memory_rules import BUSY, STAKE
from tunesmith.core.profile.remedies import Remedy

FULL_WARP = 24  # threads of 32 an instruction: below it a quarter of the lanes and more do nothing
SATURATED = 0.8  # of a pipe's peak: NVIDIA's own tools call it the bottleneck from here on
BARRIERS = 0.3  # share of stalls
SERIAL_ALONE = 0.8  # of the time, where one thread walks through global memory and the others wait
SERIAL_SHORT = 0.2  # where it walks through shared memory or registers


def fp64(case: Case) -> Finding | None:
    costs, doubles = case.costs, case.profile.static.doubles
    if costs is None or not costs.mix.fp64 or doubles:
        return None
    gain = costs.stake("fp64")
    evidence = [f"{costs.mix.fp64} of {costs.mix.total} instructions are in double precision"]
    if doubles is False:
        evidence.append("no argument is")
    confidence, pipe = case.busy_elsewhere(KNOWN if doubles is False else READ), case.counters.fp64
    if pipe is not None:
        evidence.append(f"the fp64 pipe is at {percent(pipe)} of its peak")
        gain, confidence = max(gain, pipe), SEEN if doubles is False else READ
    if gain < STAKE / 2:
        return None
    remedies = (Remedy.FP32_LITERALS, Remedy.FAST_INTRINSICS, Remedy.COMPILER_FLAGS)
    return finding(Kind.FP64, Bound.COMPUTE, gain, confidence, source_of(pipe), evidence, *remedies)


def integer_division(case: Case) -> Finding | None:
    costs = case.costs
    if costs is None or not costs.mix.division:
        return None
    share = min(1.0, PER_DIVISION * costs.mix.division / max(1, costs.mix.total))
    evidence = [
        f"{costs.mix.division} integer divisions by what is not a constant, about {percent(share)} of "
        f"{costs.mix.total} instructions"
    ]
    gain, confidence, issue = costs.stake("division"), case.busy_elsewhere(READ), case.counters.issue
    if issue is not None:
        evidence.append(f"instructions are issued in {percent(issue)} of the cycles")
        gain, confidence = max(gain, share) * min(1.0, issue / BUSY), KNOWN
    if gain < STAKE:
        return None
    remedies = (Remedy.CHEAP_DIVISION, Remedy.BAKE_SIZES, Remedy.HOIST_INVARIANTS)
    return finding(
        Kind.INTEGER_DIVISION, Bound.COMPUTE, gain, confidence, source_of(issue), evidence, *remedies
    )


def special_functions(case: Case) -> Finding | None:
    costs, pipe = case.costs, case.counters.special
    count = costs.mix.special + costs.mix.slow_conversion if costs is not None else 0
    remedies = (
        Remedy.FAST_INTRINSICS,
        Remedy.HARDWARE_CONVERSIONS,
        Remedy.RECIPROCAL,
        Remedy.COMPILER_FLAGS,
    )
    words = f"{count} special functions and conversions by the slow unit" if costs is not None else ""
    if pipe is not None:
        if pipe < BUSY:
            return None
        evidence = [f"their pipe is at {percent(pipe)} of its peak", *filter(None, [words])]
        gain = 1 - BUSY / pipe * 0.5
        return finding(Kind.SPECIAL_FUNCTIONS, Bound.COMPUTE, gain, READ, "counters", evidence, *remedies)
    if costs is None or not count or (gain := costs.stake("special")) < STAKE:
        return None
    return finding(Kind.SPECIAL_FUNCTIONS, Bound.COMPUTE, gain, 0.5, "static", [words], *remedies)


def divergence(case: Case) -> Finding | None:
    costs, code, threads = case.costs, case.code, case.counters.threads_per_instruction
    lane = code.split_by_lane if code is not None else 0
    data = code.split_by_data if code is not None else 0
    read = [
        f"{count} of {costs.mix.total if costs else 0} instructions run because threads of a warp go several "
        f"ways by {cause}"
        for count, cause in ((lane, "their number"), (data, "what they loaded"))
        if count
    ]
    remedies = (Remedy.REGROUP_BRANCHES, Remedy.HOIST_INVARIANTS, Remedy.ROWS_PER_BLOCK)
    if threads is not None:
        if threads >= FULL_WARP:
            return None
        evidence = [f"{threads:.1f} of 32 threads take part in the average instruction", *read]
        issue = case.counters.issue
        weight = 1.0 if issue is None else min(1.0, issue / BUSY)
        gain = (1 - max(0.0, threads) / 32) * weight
        return finding(Kind.DIVERGENCE, Bound.SERIALISATION, gain, SEEN, "counters", evidence, *remedies)
    if costs is None or not read or (gain := costs.stake("split")) < STAKE:
        return None
    confidence = case.busy_elsewhere(READ if lane >= data else GUESSED)
    return finding(Kind.DIVERGENCE, Bound.SERIALISATION, gain, confidence, "static", read, *remedies)


def serial_thread(case: Case) -> Finding | None:
    code, counters = case.code, case.counters
    if code is None or not code.one_thread_loop:
        return None
    evidence = [f"a loop of {code.one_thread_loop} instructions runs in one thread while the others wait"]
    gain = SERIAL_ALONE if code.one_thread_global else SERIAL_SHORT
    if code.one_thread_global:
        evidence.append(f"with {code.one_thread_global} accesses to global memory")
    waiting, threads = counters.stalled("barrier"), counters.threads_per_instruction
    confidence = READ + 0.1
    if waiting is not None and threads is not None:
        evidence.append(
            f"{percent(waiting)} of waiting is at barriers, {threads:.1f} of 32 threads take part"
        )
        idle = 1 - max(0.0, threads) / 32
        if max(waiting, idle) < BARRIERS:
            return None
        gain, confidence = max(waiting, idle), SEEN
    remedies = (Remedy.SHARE_SERIAL_WORK, Remedy.SHUFFLE_REDUCTION, Remedy.WARP_PER_ROW)
    return finding(
        Kind.SERIAL_THREAD,
        Bound.SERIALISATION,
        gain,
        confidence,
        source_of(waiting),
        evidence,
        *remedies,
    )


def barriers(case: Case) -> Finding | None:
    """A symptom: warps wait for each other."""
    waiting = case.counters.stalled("barrier")
    if waiting is None or waiting < BARRIERS:
        return None
    count = case.costs.mix.barrier if case.costs is not None else 0
    evidence = [f"{percent(waiting)} of waiting is at barriers"] + ([f"{count} of them"] if count else [])
    remedies = (Remedy.SHUFFLE_REDUCTION, Remedy.WARP_PER_ROW, Remedy.ROWS_PER_BLOCK, Remedy.BLOCK_SIZE)
    return finding(Kind.BARRIERS, Bound.SERIALISATION, waiting / 2, READ, "counters", evidence, *remedies)


def compute(case: Case) -> Finding | None:
    """A symptom: a pipe, or the issue of instructions, is saturated."""
    counters = case.counters
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
    remedies = (
        Remedy.HOIST_INVARIANTS,
        Remedy.UNROLL,
        Remedy.FAST_INTRINSICS,
        Remedy.WIDE_ACCESS,
        Remedy.COMPILER_FLAGS,
    )
    return finding(Kind.COMPUTE, Bound.COMPUTE, 0.3, READ, "counters", evidence, *remedies)
