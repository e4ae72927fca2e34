"""Kernels whose tasks are each worked on by a team of threads, read by playing through their blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunesmith.expert.model.geometry import (
    Layout,
    Strided,
    team_lanes,
)
from tunesmith.expert.model.launch_terms import LaunchTerms
from tunesmith.expert.model.normal import Normal
from tunesmith.expert.model.reach import OutOfReach
from tunesmith.expert.model.reading import Reading
from tunesmith.expert.model.scenario import Scenario
from tunesmith.expert.model.team_reader import TeamReader


def read_teams(
    normal: Normal,
    launch: LaunchTerms,
    tried: Sequence[Scenario],
    loops: Mapping[str, Strided],
    aliases: Mapping[str, str],
    language: str,
) -> Reading:
    if not any(loop.role == "element" for loop in loops.values()):
        return _read_one_each(normal, launch, tried, loops, aliases, 64 if language == "hip" else 32)
    layouts = [Layout(scenario, team_lanes(loops, normal, scenario)) for scenario in tried]
    try:
        return TeamReader(normal, launch, layouts, loops, aliases, 64 if language == "hip" else 32).read()
    except OutOfReach:
        if language != "hip":
            raise
        # Some devices that HIP serves have warps of 32.
        return TeamReader(normal, launch, layouts, loops, aliases, 32).read()


def _read_one_each(
    normal: Normal,
    launch: LaunchTerms,
    tried: Sequence[Scenario],
    loops: Mapping[str, Strided],
    aliases: Mapping[str, str],
    warp: int,
) -> Reading:
    """Kernels with an element to each thread: by blocks, or by rows of a block with several."""
    tried = [scenario for scenario in tried if scenario.threads > 1]
    tried = [tried[0], tried[-1]] if len(tried) > 2 else tried
    shapes = [[Layout(scenario, scenario.threads) for scenario in tried]] if tried else []
    if any(scenario.block[1] * scenario.block[2] > 1 for scenario in tried):
        shapes.append([Layout(scenario, scenario.block[0]) for scenario in tried])
    if all(scenario.threads % warp == 0 for scenario in tried):
        shapes.append([Layout(scenario, warp) for scenario in tried])
    reasons: list[OutOfReach] = []
    distinct = {tuple(layout.lanes for layout in layouts): layouts for layouts in reversed(shapes)}
    for layouts in reversed(distinct.values()):
        try:
            return TeamReader(normal, launch, layouts, loops, aliases, warp, one_each=True).read()
        except OutOfReach as stop:
            reasons.append(stop)
    if not reasons:
        raise OutOfReach("a single thread to a block")
    furthest = max(reasons, key=lambda stop: stop.line)
    raise OutOfReach(
        f"threads cooperate other than by totals over a row's elements: {furthest.reason}", furthest.line
    )


def read_rows(
    normal: Normal,
    launch: LaunchTerms,
    tried: Sequence[Scenario],
    loops: Mapping[str, Strided],
    aliases: Mapping[str, str],
) -> Reading:
    """Kernels with a thread to each row: the loops of one thread become loops over elements."""
    layouts = [Layout(replace(scenario, block=(1, 1, 1)), 1) for scenario in tried[-2:]]
    return TeamReader(normal, launch, layouts, loops, aliases, 32, real=tried).read()
