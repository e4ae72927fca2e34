"""How far a contract goes: as the host's own checks say, else as far as sizes were seen or given."""

from __future__ import annotations

import re
from dataclasses import replace

from tunesmith.expert.reading.known import KnownFacts

# Conditions that are a bound by themselves: those of the contract, and no longer conditions.
_BOUND = re.compile(r"(\w+) (<=|<|>=|>) (\d+)")


def with_limits(known: KnownFacts, how: str) -> KnownFacts:
    """`how`: sizes of workloads are "seen" or "given"; what nobody says stays open."""
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    others: list[str] = []
    for text in known.requires:
        bound = _BOUND.fullmatch(text)
        if bound is None:
            others.append(text)
        elif bound[2] in ("<=", "<"):
            value = int(bound[3]) - (bound[2] == "<")
            most[bound[1]] = min(value, most.get(bound[1], value))
        else:
            value = int(bound[3]) + (bound[2] == ">")
            least[bound[1]] = max(value, least.get(bound[1], value))
    limits: dict[str, tuple[int, int]] = {}
    said: dict[str, str] = {}
    largest = _largest(known)
    for name in dict.fromkeys((*largest, *most)):
        step = int(known.multiples.get(name, 1))
        end = most[name] // step * step if name in most else -(-largest[name] // step) * step
        start = max(step, -(-least.get(name, 1) // step) * step)
        if end < start or end < largest.get(name, 0):  # a check of another instance
            end, start = -(-largest[name] // step) * step if name in largest else start, step
            most.pop(name, None)
        limits[name] = (start, end)
        said[name] = "as the host checks" if name in most else f"the largest that was {how}"
    unused = [f"{name} >= {value}" for name, value in least.items() if name not in limits]
    return replace(known, limits=limits, limits_from=said, requires=(*others, *unused))


def _largest(known: KnownFacts) -> dict[str, int]:
    found: dict[str, int] = {}
    for workload in known.workloads:
        for name, value in workload.sizes:
            found[name] = max(value, found.get(name, 0))
    return found
