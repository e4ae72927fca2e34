"""Faults of what is computed: doubles, divisions, special functions, ways that split, one thread's work."""

from __future__ import annotations

from tunesmith.core.profile.case import GUESSED, KNOWN, READ, SEEN, RuleInput, finding, percent, source_of
from tunesmith.core.profile.costs import PER_DIVISION
from tunesmith.core.profile.findings import Finding, Kind
from tunesmith.core.profile.memory_rules import BUSY, STAKE

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
    confidence, pipe = given.busy_elsewhere(KNOWN if doubles is False else READ), given.counters.fp64
    if pipe is not None:
        evidence.append(f"the fp64 pipe is at {percent(pipe)} of its peak")
        gain, confidence = max(gain, pipe), SEEN if doubles is False else READ
    if gain < STAKE / 2:
        return None
    return finding(Kind.FP64, gain, confidence, source_of(pipe), evidence)


def integer_division(given: RuleInput) -> Finding | None:
    costs = given.costs
    if costs is None or not costs.mix.division:
        return None
    share = min(1.0, PER_DIVISION * costs.mix.division / max(1, costs.mix.total))
    evidence = [
        f"{costs.mix.division} integer divisions by what is not a constant, about {percent(share)} of "
        f"{costs.mix.total} instructions"
    ]
    gain, confidence, issue = costs.stake("division"), given.busy_elsewhere(READ), given.counters.issue
    if issue is not None:
        evidence.append(f"instructions are issued in {percent(issue)} of the cycles")
        gain, confidence = max(gain, share) * min(1.0, issue / BUSY), KNOWN
    if gain < STAKE:
        return None
    return finding(Kind.INTEGER_DIVISION, gain, confidence, source_of(issue), evidence)


def special_functions(given: RuleInput) -> Finding | None:
    costs, pipe = given.costs, given.counters.special
    count = costs.mix.special + costs.mix.slow_conversion if costs is not None else 0
    words = f"{count} special functions and conversions by the slow unit" if costs is not None else ""
    if pipe is not None:
        if pipe < BUSY:
            return None
        evidence = [f"their pipe is at {percent(pipe)} of its peak", *filter(None, [words])]
        gain = 1 - BUSY / pipe * 0.5
        return finding(Kind.SPECIAL_FUNCTIONS, gain, READ, "counters", evidence)
    if costs is None or not count or (gain := costs.stake("special")) < STAKE:
        return None
    return finding(Kind.SPECIAL_FUNCTIONS, gain, 0.5, "static", [words])


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
        return finding(Kind.DIVERGENCE, gain, SEEN, "counters", evidence)
    if costs is None or not read or (gain := costs.stake("split")) < STAKE:
        return None
    confidence = given.busy_elsewhere(READ if lane >= data else GUESSED)
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
    confidence = READ + 0.1
    if waiting is not None and threads is not None:
        evidence.append(
            f"{percent(waiting)} of waiting is at barriers, {threads:.1f} of 32 threads take part"
        )
        idle = 1 - max(0.0, threads) / 32
        if max(waiting, idle) < BARRIERS:
            return None
        gain, confidence = max(waiting, idle), SEEN
    return finding(Kind.SERIAL_THREAD, gain, confidence, source_of(waiting), evidence)


def barriers(given: RuleInput) -> Finding | None:
    """A symptom: warps wait for each other."""
    waiting = given.counters.stalled("barrier")
    if waiting is None or waiting < BARRIERS:
        return None
    count = given.costs.mix.barrier if given.costs is not None else 0
    evidence = [f"{percent(waiting)} of waiting is at barriers"] + ([f"{count} of them"] if count else [])
    return finding(Kind.BARRIERS, waiting / 2, READ, "counters", evidence)


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
    return finding(Kind.COMPUTE, 0.3, READ, "counters", evidence)


COMPUTE_RULES = (fp64, integer_division, special_functions, divergence, serial_thread, barriers, compute)
