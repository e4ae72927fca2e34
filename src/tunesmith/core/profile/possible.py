"""Ceilings that can be true: on a busy machine some of what was measured contradicts the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tunesmith.core.profile.facts import Ceilings, Point
from tunesmith.core.profile.roofline import best_bandwidth, seconds_for

VISIBLE = 1.1  # times: measurements that disagree by less are noise, and are corrected without a word
AGAIN = "if the machine was busy, measure again: tunesmith profile PROBLEM --remeasure"


def is_sound(ceilings: Ceilings) -> bool:
    """Whether every number is one that a measurement gives: above zero, and finite."""
    moved = [(float(p.bytes), p.seconds) for p in (*ceilings.copy, *ceilings.read)]
    single = (
        ceilings.launch,
        ceilings.graph_launch,
        ceilings.fp32,
        ceilings.fp16,
        ceilings.fp64,
        ceilings.tensor,
        ceilings.cache_bytes,
        ceilings.cache_bandwidth,
    )
    numbers = [*(n for pair in moved for n in pair), *(float(n) for n in single if n is not None)]
    return all(math.isfinite(number) and number > 0 for number in numbers)


def possible(ceilings: Ceilings) -> Ceilings:
    """The same without contradictions, which are always to the device's disadvantage: what was interrupted
    took too long. More bytes take no less time, reads no longer than copies, an empty launch no longer than
    one that moves something, and the cache is no slower than the memory behind it."""
    copy = _rising(ceilings.copy)
    as_copies = [(p, seconds_for(copy, p.bytes)) for p in ceilings.read]
    read = _rising([Point(p.bytes, min(p.seconds, s if s is not None else p.seconds)) for p, s in as_copies])
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


def contradictions(before: Ceilings, after: Ceilings) -> str:
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


def _rising(points: Sequence[Point]) -> tuple[Point, ...]:
    """In the order of size, none slower than a larger one."""
    found: list[Point] = []
    for point in sorted(points, key=lambda p: -p.bytes):
        least = min(point.seconds, found[-1].seconds) if found else point.seconds
        found.append(Point(point.bytes, least))
    return tuple(found[::-1])
