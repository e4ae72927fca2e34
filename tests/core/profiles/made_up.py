"""Small profiles to start from: a plain kernel on an H200 that is three times its floor, with no fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.samples import HOPPER
from tunesmith.problem.device import Resources
from tunesmith.problem.plan import Geometry
from tunesmith.profiles.diagnose import diagnose_profile
from tunesmith.profiles.facts import (
    Ceilings,
    Counters,
    Direction,
    Finding,
    Instructions,
    Kind,
    LaunchFacts,
    MemoryAccess,
    Mix,
    Pattern,
    Point,
    Profile,
    Space,
    Stall,
    StaticFacts,
    WorkNeeded,
    launch_facts,
)

LIMITS = replace(HOPPER, llc=50 << 20, pin_bandwidth=4.8e12)
CEILINGS = Ceilings(
    copy=(Point(1 << 20, 1.6e-6), Point(1 << 24, 5.6e-6), Point(1 << 28, 64e-6)),
    read=(Point(1 << 20, 1.6e-6), Point(1 << 24, 5.2e-6), Point(1 << 28, 60e-6)),
    graph_launch=0.6e-6,
)
WORK = WorkNeeded(1 << 27, 1 << 27)


def access(
    space: Space = "global",
    direction: Direction = "load",
    width: int = 16,
    pattern: Pattern = "strided",
    stride: int | None = None,
    count: int = 1,
) -> MemoryAccess:
    step = width if stride is None and pattern == "strided" else stride
    return MemoryAccess(space, direction, width, pattern, True, count, step)


def code(*accesses: MemoryAccess, total: int = 40, **more: Any) -> Instructions:
    fields = {name: more.pop(name) for name in list(more) if name in Mix.__dataclass_fields__}
    mix = Mix(total=total, **fields)
    own = accesses or (access(count=4), access(direction="store", count=4))
    return Instructions(all=mix, hot=mix, accesses=own, **{"bytes_in_flight": 64, **more})


def launch(blocks: int = 1 << 14, threads: int = 256, registers: int = 32, shared: int = 0) -> LaunchFacts:
    geometry = Geometry("k", (blocks, 1, 1), (threads, 1, 1), shared, ())
    return launch_facts(geometry, LIMITS, Resources(registers=registers, shared=0))


def profile(**changes: Any) -> Profile:
    plain = Profile(
        kernel="k",
        workload="large",
        seconds=192e-6,
        limits=LIMITS,
        work=WORK,
        static=StaticFacts(Resources(registers=32, shared=0, spills=0, private=0), code(), doubles=False),
        launch=launch(),
        ceilings=CEILINGS,
    )
    return replace(plain, **changes)


def with_code(*accesses: MemoryAccess, **more: Any) -> Profile:
    return profile(static=replace(profile().static, instructions=code(*accesses, **more)))


def counted(stalls: dict[Stall, float] | None = None, **counters: float) -> Profile:
    return profile(counters=Counters(**counters, stalls=tuple((stalls or {}).items())))


def found(profile: Profile, kind: Kind) -> Finding | None:
    return next((f for f in diagnose_profile(profile).findings if f.kind is kind), None)
