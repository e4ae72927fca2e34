"""How fast a workload could be: what must move and be computed, against what the device can do.

On a busy machine some of what was measured contradicts the rest: `possible` gives ceilings that can be true.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from tunesmith.problem.plan import necessary_traffic, traffic_by_argument
from tunesmith.problem.problem import OPERATIONS, Problem
from tunesmith.profiles.facts import Ceilings, Operations, Point, Profile, RoofFacts, WorkNeeded

VISIBLE = 1.1  # times: measurements that disagree by less are noise, and are corrected without a word
AGAIN = "if the machine was busy, measure again: tunesmith profile PROBLEM --remeasure"


class Ceiling(StrEnum):
    LAUNCH = "launch"
    MEMORY = "memory bandwidth"
    CACHE = "cache bandwidth"
    FP32 = "fp32 rate"
    FP16 = "fp16 rate"
    FP64 = "fp64 rate"
    TENSOR = "tensor rate"


# By field of `Operations` and of `Ceilings`.
OF_OPERATIONS = {kind: Ceiling(f"{kind} rate") for kind in OPERATIONS}


@dataclass(frozen=True)
class Floor:
    ceiling: Ceiling
    seconds: float
    measured: bool  # False: from the device's data sheet, which no kernel reaches

    def __str__(self) -> str:
        return self.ceiling if self.measured else f"{self.ceiling} by the data sheet"


@dataclass(frozen=True)
class Roofline:
    """The least time under each ceiling that is known, the highest floor first."""

    floors: tuple[Floor, ...]
    seconds: float | None = None  # what the kernel takes

    @property
    def floor(self) -> Floor | None:
        return self.floors[0] if self.floors else None

    @property
    def distance(self) -> float | None:
        """How many times its floor a kernel takes."""
        if self.seconds is None or not self.floors or self.floors[0].seconds <= 0:
            return None
        return self.seconds / self.floors[0].seconds


def work_of(problem: Problem, sizes: Mapping[str, int], operations: Operations | None = None) -> WorkNeeded:
    """Bytes by direction; where the problem states their sum, shared out as its arrays are."""
    total = necessary_traffic(problem, sizes)
    read = written = 0
    for argument, moved in traffic_by_argument(problem, sizes):
        one_way = moved // 2 if argument.role == "inout" else moved
        read += one_way if argument.role != "output" else 0
        written += one_way if argument.is_written else 0
    if read + written <= 0:
        return WorkNeeded(total, 0, operations or Operations())
    share = round(total * read / (read + written))
    return WorkNeeded(share, total - share, operations or Operations())


def compute_roofline(profile: Profile) -> Roofline:
    known = [(kind, count / rate) for kind, count, rate in _operation_rates(profile) if rate]
    floors = [
        *_memory_floors(profile),
        *(Floor(OF_OPERATIONS[kind], seconds, True) for kind, seconds in known),
    ]
    if (launch := profile.ceilings.least_launch) is not None:
        floors.append(Floor(Ceiling.LAUNCH, launch, True))
    return Roofline(tuple(sorted(floors, key=lambda f: -f.seconds)), profile.seconds)


def roof_facts(profile: Profile, roof: Roofline) -> RoofFacts | None:
    """For whoever draws it: floors of a length that a clock could tell."""
    if profile.work is None:
        return None
    stated = sum(count for _, count, _ in _operation_rates(profile))
    floors = tuple((str(f.ceiling), f.seconds) for f in roof.floors if 0 < f.seconds < math.inf)
    return RoofFacts(profile.work.bytes, stated, floors)


def move_seconds(work: WorkNeeded, ceilings: Ceilings) -> float | None:
    """How long the device takes to move as much, read and written in the same proportion, and no more.
    Copies are half of each; what is read more than written lies between them and reads, which are faster."""
    copy, read = seconds_for(ceilings.copy, work.bytes), seconds_for(ceilings.read, work.bytes)
    if copy is None or read is None:
        return read if copy is None else copy
    if not work.bytes:
        return copy
    return copy + (min(read, copy) - copy) * max(0.0, 2 * work.read / work.bytes - 1)


def best_bandwidth(ceilings: Ceilings) -> float | None:
    """The highest that was measured, bytes a second."""
    return max((p.bytes / p.seconds for p in (*ceilings.copy, *ceilings.read) if p.seconds > 0), default=None)


def _memory_floors(profile: Profile) -> list[Floor]:
    work, ceilings, limits = profile.work, profile.ceilings, profile.limits
    if work is None or work.bytes <= 0:
        return []
    if profile.warm and ceilings.cache_bandwidth and work.bytes <= (ceilings.cache_bytes or 0):
        return [Floor(Ceiling.CACHE, work.bytes / ceilings.cache_bandwidth, True)]
    seconds = move_seconds(work, ceilings)
    if seconds is not None:
        # A small copy takes as long as its launch: then that is what bounds it, and not the bytes.
        launch, best = ceilings.least_launch, best_bandwidth(ceilings)
        by_launch = launch is not None and best is not None and work.bytes / best < launch
        return [Floor(Ceiling.LAUNCH if by_launch else Ceiling.MEMORY, seconds, True)]
    if limits is not None and limits.pin_bandwidth and not profile.warm:
        return [Floor(Ceiling.MEMORY, work.bytes / limits.pin_bandwidth, False)]
    return []


def unmeasured_operations(profile: Profile) -> tuple[str, ...]:
    """Kinds of operations that are stated and have no ceiling, where others were measured."""
    if profile.ceilings == Ceilings():
        return ()
    return tuple(kind for kind, _, rate in _operation_rates(profile) if not rate)


def _operation_rates(profile: Profile) -> list[tuple[str, float, float | None]]:
    """Kind, count and rate of operations."""
    if profile.work is None:
        return []
    stated, rates = profile.work.operations, profile.ceilings
    found = [(kind, getattr(stated, kind), getattr(rates, kind)) for kind in OF_OPERATIONS]
    return [(kind, count, rate) for kind, count, rate in found if count]


def seconds_for(points: Sequence[Point], nbytes: int) -> float | None:
    """Between two sizes that were measured on a straight line, beyond them by the bandwidth of the last."""
    known = sorted((p for p in points if p.bytes > 0 and p.seconds > 0), key=lambda p: p.bytes)
    if not known:
        return None
    if nbytes <= known[0].bytes:
        return known[0].seconds
    for low, high in pairwise(known):
        if nbytes == high.bytes:
            return high.seconds  # which the line below may miss by a rounding
        if nbytes < high.bytes:
            share = (nbytes - low.bytes) / (high.bytes - low.bytes)
            return low.seconds + (high.seconds - low.seconds) * share
    return known[-1].seconds * nbytes / known[-1].bytes


def is_sound(ceilings: Ceilings) -> bool:
    """Whether every number is one that a measurement gives: above zero, and finite."""
    moved = [(float(p.bytes), p.seconds) for p in (*ceilings.copy, *ceilings.read)]
    single = [float(value) for value in vars(ceilings).values() if isinstance(value, int | float)]
    numbers = [*(n for pair in moved for n in pair), *single]
    return all(math.isfinite(number) and number > 0 for number in numbers)


def correct_ceilings(ceilings: Ceilings) -> Ceilings:
    """The same without contradictions, which are always to the device's disadvantage: what was interrupted
    took too long. More bytes take no less time, reads no longer than copies, an empty launch no longer than
    one that moves something, and the cache is no slower than the memory behind it."""
    copy = _monotonic_points(ceilings.copy)
    as_copies = [(p, seconds_for(copy, p.bytes)) for p in ceilings.read]
    read = _monotonic_points(
        [Point(p.bytes, min(p.seconds, s if s is not None else p.seconds)) for p, s in as_copies]
    )
    least = min((p.seconds for p in (*copy, *read)), default=math.inf)
    found = replace(ceilings, copy=copy, read=read)
    if ceilings.graph_launch is not None:
        found = replace(found, graph_launch=min(ceilings.graph_launch, least))
    elif ceilings.launch is not None:
        found = replace(found, launch=min(ceilings.launch, least))
    cold = best_bandwidth(found)
    if found.cache_bandwidth is not None and cold is not None:
        found = replace(found, cache_bandwidth=max(found.cache_bandwidth, cold))
    return found


def describe_corrections(before: Ceilings, after: Ceilings) -> str:
    """What had to be corrected by more than noise, in words; empty where nothing had."""
    said: list[str] = []
    for what, olds, news in (("copies", before.copy, after.copy), ("reads", before.read, after.read)):
        pairs = zip(sorted(olds, key=lambda p: p.bytes), news, strict=True)
        slow = [old.bytes for old, new in pairs if old.seconds > VISIBLE * new.seconds]
        if slow:
            said.append(f"{what} of {f'{slow[0] >> 10} KiB' if len(slow) == 1 else f'{len(slow)} sizes'}")
    cache, corrected = before.cache_bandwidth, after.cache_bandwidth
    if cache is not None and corrected is not None and corrected > VISIBLE * cache:
        said.append("the cache's bandwidth")
    launches = (before.launch, after.launch), (before.graph_launch, after.graph_launch)
    if any(old and new and old > VISIBLE * new for old, new in launches):
        said.append("an empty launch")
    if not said:
        return ""
    return f"ceilings contradicted each other and were corrected ({', '.join(said)}): {AGAIN}"


def _monotonic_points(points: Sequence[Point]) -> tuple[Point, ...]:
    """In the order of size, none slower than a larger one."""
    found: list[Point] = []
    for point in sorted(points, key=lambda p: -p.bytes):
        least = min(point.seconds, found[-1].seconds) if found else point.seconds
        found.append(Point(point.bytes, least))
    return tuple(found[::-1])
