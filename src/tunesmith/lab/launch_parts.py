"""An operator of several launches: what each of them takes, and which costs most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tunesmith.core.plan import Geometry, Plan
from tunesmith.core.profile.facts import LaunchPart


def prefixes(plan: Plan) -> tuple[Plan, ...]:
    """The first launch, the first two, and so on, without all of them. Each finds what those before it have
    written, which a launch by itself would not."""
    return tuple(replace(plan, launches=plan.launches[:count]) for count in range(1, len(plan.launches)))


def shares(first_ones: Sequence[float], whole: float) -> tuple[float, ...]:
    """Of the whole time, by how much longer each makes what is before it; noise is no negative share."""
    ends = [*first_ones, whole]
    each = [max(0.0, end - begin) for begin, end in zip([0.0, *first_ones], ends, strict=True)]
    total = sum(each)
    return tuple(seconds / total if total > 0 else 1 / len(each) for seconds in each)


def with_shares(parts: Sequence[LaunchPart], found: Sequence[float]) -> tuple[LaunchPart, ...]:
    return tuple(replace(part, share=share) for part, share in zip(parts, found, strict=True))


def main_place(launches: Sequence[Geometry]) -> int:
    """Which has the most threads: as long as nobody knows, the one that costs most."""
    threads = [math.prod(g.grid) * math.prod(g.block) for g in launches]
    return threads.index(max(threads))
