"""A launch with all its numbers: sizes, integer parameters, grid and block. What readings are tried on."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tunesmith.core.expr import Expr as SizeExpr
from tunesmith.core.expr import Undefined
from tunesmith.core.expr.nodes import Node
from tunesmith.core.problem import Problem, SizeRule
from tunesmith.csource.fold import binary, unary
from tunesmith.csource.nodes import Binary, Call, Cast, Expr, Name, Number, SizeOf, Ternary, Unary
from tunesmith.csource.types import byte_size

Triple = tuple[int, int, int]
_MOST_THREADS = 1024
ANY_DEVICE = {"device.sms": 108}  # a launch may ask for multiprocessors; for a reading any number will do


@dataclass(frozen=True)
class Scenario:
    sizes: tuple[tuple[str, int], ...]
    parameters: tuple[tuple[str, int], ...]  # the kernel's integer parameters
    grid: Triple
    block: Triple

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


def scenarios(problem: Problem, values: Mapping[str, Node], count: int = 4) -> tuple[Scenario, ...]:
    """Launches of different block shapes: of the workloads, of the smallest sizes, of some between."""
    found: dict[Triple, Scenario] = {}
    for sizes in _sizes(problem):
        scenario = scenario_at(problem, values, sizes)
        if scenario is not None and 0 < scenario.threads <= _MOST_THREADS:
            found.setdefault(scenario.block, scenario)
    ordered = sorted(found.values(), key=lambda s: s.threads)
    if len(ordered) == 1:  # one shape for all: other sizes still
        others = [s for s in every_scenario(problem, values) if s.block == ordered[0].block]
        ordered = [*others[-2:], *ordered] if len(others) > 2 else others
    if len(ordered) <= count:
        return tuple(ordered)
    # The smallest two, the largest, and one in the middle: odd shapes are among the small ones.
    return (*ordered[: count - 2], ordered[len(ordered) // 2], ordered[-1])


def every_scenario(problem: Problem, values: Mapping[str, Node]) -> tuple[Scenario, ...]:
    """Launches at all the sizes that are looked at, also those not played through."""
    found = (scenario_at(problem, values, sizes) for sizes in _sizes(problem))
    return tuple(dict.fromkeys(scenario for scenario in found if scenario is not None))


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
        grid = _triple([max(1, expr.evaluate(known)) for expr in launch.grid])
        block = _triple([max(1, expr.evaluate(known)) for expr in launch.block])
        parameters = tuple((name, SizeExpr("", node).evaluate(known)) for name, node in values.items())
    except Undefined:
        return None
    return Scenario(tuple(sizes.items()), parameters, grid, block)


def _triple(values: list[int]) -> Triple:
    x, y, z = [*values, 1, 1, 1][:3]
    return x, y, z


class Unknown(Exception):
    """An expression has no number here: it reads memory, or a name that has none."""


def number_of(expr: Expr, values: Mapping[str, int], depth: int = 0) -> int:
    """The value of integer arithmetic, as C computes it without overflow."""
    if depth > 200:
        raise Unknown
    d = depth + 1
    match expr:
        case Number(value=int(value)):
            return value
        case Name(name=name) if name in values:
            return values[name]
        case Cast(value=value):
            return number_of(value, values, d)
        case SizeOf(type=type_):
            size = 8 if type_.is_pointer else byte_size(type_.base)
            if size is not None:
                return size
        case Unary(op=op, operand=operand) if op in ("-", "+", "!", "~"):
            return unary(op, number_of(operand, values, d))
        case Binary(op="&&", left=left, right=right):
            return int(bool(number_of(left, values, d)) and bool(number_of(right, values, d)))
        case Binary(op="||", left=left, right=right):
            return int(bool(number_of(left, values, d)) or bool(number_of(right, values, d)))
        case Binary(op=op, left=left, right=right) if op != ",":
            found = binary(op, number_of(left, values, d), number_of(right, values, d))
            if found is not None:
                return found
        case Ternary(condition=condition, yes=yes, no=no):
            return number_of(yes if number_of(condition, values, d) else no, values, d)
        case Call(function="min" | "umin", args=(left, right)):
            return min(number_of(left, values, d), number_of(right, values, d))
        case Call(function="max" | "umax", args=(left, right)):
            return max(number_of(left, values, d), number_of(right, values, d))
    raise Unknown
