"""Launches of a kernel with all their numbers, at sizes of its contract."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tunesmith.problem.problem import Problem, SizeRule
from tunesmith.space.expr import Expr as SizeExpr
from tunesmith.space.expr import Undefined
from tunesmith.space.grammar import Node

Triple = tuple[int, int, int]
_MOST_THREADS = 1024
ANY_DEVICE = {"device.sms": 108}  # a launch may ask for multiprocessors; for a reading any number will do


@dataclass(frozen=True)
class Scenario:
    sizes: tuple[tuple[str, int], ...]
    parameters: tuple[tuple[str, int], ...]  # the kernel's integer parameters
    grid: Triple
    block: Triple
    several: tuple[bool, bool, bool]  # axes along which some launch of the kernel has more than one block

    @property
    def numbers(self) -> dict[str, int]:
        """Parameters and built-in indices, as the first thread has them."""
        return {**dict(self.parameters), **self.builtins((0, 0, 0), 0)}

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    def thread(self, number: int) -> Triple:
        x, y, _ = self.block
        return number % x, number // x % y, number // (x * y)

    def builtins(self, block: Triple, thread: int) -> dict[str, int]:
        place = self.thread(thread)
        found: dict[str, int] = {}
        for at, axis in enumerate("xyz"):
            found[f"threadIdx.{axis}"] = place[at]
            found[f"blockIdx.{axis}"] = block[at]
            found[f"blockDim.{axis}"] = self.block[at]
            found[f"gridDim.{axis}"] = self.grid[at]
        return found

    def of_threads(self) -> Scenario:
        """As if every thread were a block by itself, along the axes of the block."""
        x, y, z = (self.several[axis] or self.block[axis] > 1 for axis in range(3))
        return replace(self, block=(1, 1, 1), several=(x, y, z))


def scenarios(problem: Problem, values: Mapping[str, Node], count: int = 4) -> tuple[Scenario, ...]:
    """Launches of different block shapes: of the workloads, of the smallest sizes, of some between."""
    found: dict[Triple, Scenario] = {}
    every = every_scenario(problem, values)
    for scenario in every:
        if 0 < scenario.threads <= _MOST_THREADS:
            found.setdefault(scenario.block, scenario)
    ordered = sorted(found.values(), key=lambda s: s.threads)
    if len(ordered) == 1:  # one shape for all: other sizes still
        others = [s for s in every if s.block == ordered[0].block]
        ordered = [*others[-2:], *ordered] if len(others) > 2 else others
    if len(ordered) <= count:
        return tuple(ordered)
    # The smallest two, the largest, and one in the middle: odd shapes are among the small ones.
    return (*ordered[: count - 2], ordered[len(ordered) // 2], ordered[-1])


def every_scenario(problem: Problem, values: Mapping[str, Node]) -> tuple[Scenario, ...]:
    """Launches at all the sizes that are looked at, also those not played through."""
    made = (scenario_at(problem, values, sizes) for sizes in _sizes(problem))
    found = dict.fromkeys(scenario for scenario in made if scenario is not None)
    x, y, z = (any(scenario.several[axis] for scenario in found) for axis in range(3))
    return tuple(dict.fromkeys(replace(scenario, several=(x, y, z)) for scenario in found))


def _sizes(problem: Problem) -> Iterator[dict[str, int]]:
    for workload in problem.workloads:
        yield workload.as_dict()
    rules = problem.contract.sizes
    smallest = {rule.name: _allowed(rule, rule.min) for rule in rules}
    first = problem.workloads[0].as_dict() if problem.workloads else smallest
    tried = [smallest, {rule.name: _allowed(rule, rule.max) for rule in rules}]
    draw = random.Random(0)
    wishes = (0, 3, 33, 48, 100, 257, 1000)
    tried += [{r.name: _allowed(r, draw.choice(wishes)) for r in rules} for _ in range(24)]
    for rule in rules:
        more = (rule.min, rule.min * 5, 40, 200, 600, rule.max)
        tried += [first | {rule.name: _allowed(rule, at)} for at in more]
    for sizes in tried:
        if not problem.contract.violations(sizes):
            yield sizes


def _allowed(rule: SizeRule, wish: int) -> int:
    if rule.one_of:
        return min(rule.one_of, key=lambda value: abs(value - wish))
    step = rule.multiple_of
    value = max(rule.min, min(rule.max, wish))
    return max(-(-rule.min // step) * step, value // step * step)


def scenario_at(
    problem: Problem,
    values: Mapping[str, Node],
    sizes: Mapping[str, int],
    device: Mapping[str, int] = ANY_DEVICE,
) -> Scenario | None:
    """The launch at these sizes; None where it has no numbers."""
    if not problem.launches:
        return None
    launch = problem.launches[0]
    known = {**sizes, **device}
    try:
        grid = triple([max(1, expr.evaluate(known)) for expr in launch.grid])
        block = triple([max(1, expr.evaluate(known)) for expr in launch.block])
        parameters = tuple((name, SizeExpr("", node).evaluate(known)) for name, node in values.items())
    except Undefined:
        return None
    several = grid[0] > 1, grid[1] > 1, grid[2] > 1
    return Scenario(tuple(sizes.items()), parameters, grid, block, several)


def triple(values: list[int]) -> Triple:
    x, y, z = [*values, 1, 1, 1][:3]
    return x, y, z
