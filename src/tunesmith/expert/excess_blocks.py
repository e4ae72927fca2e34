"""Launches with many times the blocks that the kernel's own bounds let work.

Such a launch is right, and may be what production does. It may also be a slip, and then the time that it
wastes is counted as a gain. Only blocks that do nothing at all are counted: any block may be empty in part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.csource.fold import int_value
from tunesmith.csource.walk import names_in
from tunesmith.expert.author import read_call
from tunesmith.expert.model.entry_sizes import with_entry_sizes
from tunesmith.expert.model.kernel import KernelModel, Reach
from tunesmith.expert.model.scenarios import Scenario, scenario_at
from tunesmith.expert.model.translate import launch_terms
from tunesmith.problem import languages
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem

TIMES = 8  # as many blocks as have work: from here on it is told
NAMED = 3  # workloads; more are only counted
SPARE = 64  # idle blocks that nobody notices, as rounding up to whole clusters leaves them


@dataclass(frozen=True)
class ExcessBlocks:
    """A workload's launch, in threads."""

    workload: str
    launched: int
    enough: int  # those of the blocks that have work
    meant: tuple[tuple[str, str], ...] = ()  # what the grid says -> the same if it counted threads

    @property
    def times(self) -> float:
        return self.launched / self.enough


def excess_block_notes(problem: Problem, device: Device) -> tuple[str, ...]:
    """In words; nothing where the kernel cannot be read."""
    if not languages.named(problem.kernel.language).is_c_family:
        return ()
    notes = []
    for part, kernel in read_call(problem):
        found = () if isinstance(kernel, str) else excess_blocks(part.problem, kernel, device)
        if found:
            note = _note(found, problem.kernel.language)
            notes.append(f"{part.entry}: {note}" if part.number else note)
    return tuple(notes)


def excess_blocks(problem: Problem, kernel: KernelModel, device: Device) -> tuple[ExcessBlocks, ...]:
    """The workloads whose launch has far more than the kernel can use."""
    problem = with_entry_sizes(problem, kernel.pinned)
    parameters = launch_terms(problem, tuple(p.name for p in kernel.function.parameters)).parameters
    found: list[ExcessBlocks] = []
    for workload in problem.workloads:
        scenario = scenario_at(problem, parameters, workload.as_dict(), device.limits.names())
        if scenario is None or not kernel.reach:
            continue
        parts = [_part(part, problem, scenario) for part in kernel.reach]
        blocks, meant = max(parts, key=lambda part: math.prod(part[0]))
        launched, enough = math.prod(scenario.grid), math.prod(blocks)
        if launched >= TIMES * enough and launched - enough >= SPARE:
            threads = scenario.threads
            found.append(ExcessBlocks(workload.name, launched * threads, enough * threads, meant))
    return tuple(found)


def _part(
    reaches: Sequence[Reach], problem: Problem, scenario: Scenario
) -> tuple[tuple[int, ...], tuple[tuple[str, str], ...]]:
    """Blocks along each axis that have work, and how the grid may have been meant."""
    launch, blocks, meant = problem.launches[0], list(scenario.grid), dict[str, str]()
    numbers = scenario.numbers
    for reach in reaches:
        counted = [axis for axis in range(len(launch.grid)) if _blocks(axis) in names_in(reach.count)]
        if len(counted) != 1:
            continue
        axis = counted[0]
        grid, block = launch.grid[axis], [expr.text for expr in launch.block]
        # A loop is often given as many blocks as keep the device busy, whatever there is to do.
        if reach.goes_on and not grid.names & set(problem.size_names):
            continue
        values, bound = int_value(reach.count, {**numbers, _blocks(axis): 1}), int_value(reach.bound, numbers)
        if values is None or bound is None:
            continue
        needed = -(-max(1, bound) // max(1, values))
        if needed >= blocks[axis]:
            continue
        blocks[axis] = needed
        if values > 1 and -(-scenario.grid[axis] // values) == needed:
            by = block[axis] if axis < len(block) and values == scenario.block[axis] else str(values)
            meant[grid.text] = f"ceildiv({grid.text}, {by})"
    return tuple(blocks), tuple(meant.items())


def _blocks(axis: int) -> str:
    return f"gridDim.{'xyz'[axis]}"


def _note(found: Sequence[ExcessBlocks], language: str) -> str:
    """The rule, the numbers, what to do."""
    groups, items = ("work-groups", "work-items") if language == "opencl" else ("blocks", "threads")
    worst = max(found, key=lambda one: one.times)
    others = [one.workload for one in found if one is not worst]
    named = ", ".join(others) if len(others) <= NAMED else f"{len(others)} other workloads"
    likewise = f"; similarly at {named}" if others else ""
    meant = " and ".join(f'"{said}" is meant as "{better}"' for said, better in worst.meant)
    see = f"perhaps {meant}" if meant else "see whether it is too large"
    return (
        f"at {worst.workload} the launch has {worst.times:.0f} times the {items} that the kernel uses "
        f"({worst.launched} where {worst.enough} are enough{likewise}): grid counts {groups}, not "
        f"{items}, so {see}; if production launches it so, all is well"
    )
