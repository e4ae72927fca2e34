"""What of a template is searched on a device: its legal configurations that can fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import prod

import numpy as np

from tunesmith.errors import BadInput
from tunesmith.problem.device import Device, Limits
from tunesmith.problem.problem import Launch, Problem
from tunesmith.problem.template import Template
from tunesmith.space.configset import ConfigSet
from tunesmith.space.expr import Expr, unparse, vector
from tunesmith.space.expr.nodes import Arithmetic, Compare, CompareOp, Node, Num
from tunesmith.space.params import Param
from tunesmith.space.space import Constraint, Space

_MOST_TRIED = 1 << 20  # combinations; a constraint over more of them is kept unseen
_AXES = ("x", "y", "z")


def hardware_constraints(template: Template, limits: Limits) -> tuple[Constraint, ...]:
    """One for each limit that some configuration would break, as far as parameters and device decide it.

    A limit that no configuration breaks is left out: as a constraint it would tie parameters together, and
    these would have to be listed in all their combinations.
    """
    params = {param.name: param for param in template.space.params}
    several = len(template.launches) > 1
    found: dict[Node, Constraint] = {}
    for number, launch in enumerate(template.launches, 1):
        suffix = f" of launch {number}" if several else ""
        for what, expr in _limits(launch, limits):
            bound = expr.bind(limits.names())
            if bound.names <= params.keys() and _can_break(bound, params):
                found.setdefault(bound.tree, Constraint(f"device: {what}{suffix}", bound))
    return tuple(found.values())


def _limits(launch: Launch, limits: Limits) -> Iterator[tuple[str, Expr]]:
    sides = [expr.tree for expr in launch.block]
    threads = reduce(lambda a, b: Arithmetic("*", a, b), sides)
    yield "threads per block", _between(1, threads, limits.max_threads)
    for axis, side, most in zip(_AXES, sides, limits.max_block, strict=False):
        yield f"block axis {axis}", _between(1, side, most)
    if launch.shared is not None:
        yield "shared memory per block", _between(0, launch.shared.tree, limits.shared)


def _between(low: int, value: Node, high: int) -> Expr:
    links: tuple[tuple[CompareOp, Node], ...] = (("<=", value), ("<=", Num(high)))
    tree = Compare(Num(low), links)
    return Expr(unparse(tree), tree)


def _can_break(expr: Expr, params: Mapping[str, Param]) -> bool:
    read = [params[name] for name in sorted(expr.names)]
    if prod(len(param.values) for param in read) > _MOST_TRIED:
        return True
    return not bool(vector.holds(expr, _columns(read)).all())


def _columns(read: Sequence[Param]) -> dict[str, vector.Ints | int]:
    """The parameters' values, each along an axis of its own; single ones take none."""
    single: dict[str, vector.Ints | int] = {p.name: p.values[0] for p in read if len(p.values) == 1}
    several = [param for param in read if len(param.values) > 1]
    mesh = np.ix_(*(np.array(param.values, dtype=np.int64) for param in several))
    return single | {param.name: values for param, values in zip(several, mesh, strict=True)}


def configs_of(problem: Problem, template: Template, device: Device) -> ConfigSet:
    """What is searched: the legal configurations, without those that no build could make fit the device."""
    space, sizes, known = template.space, [w.as_dict() for w in problem.workloads], device.limits.names()
    limits = hardware_constraints(template, device.limits)
    fitting = replace(space, constraints=space.constraints + limits)
    try:
        found = fitting.configs(sizes, known)
    except BadInput:
        # The device may tie together parameters that the template leaves apart, until there are more
        # combinations than can be listed. Then trying finds out.
        found = space.configs(sizes, known)
    if len(found):
        return found
    if not limits or _is_empty(space, sizes, known):
        fault = f"the template's constraints leave no configuration on {device.name}"
        raise BadInput(fault, where=template.path, hint="widen a parameter or loosen a constraint")
    # Each limit by itself, or else all of them together.
    alone = [(limit, replace(space, constraints=(*space.constraints, limit))) for limit in limits]
    fatal = [limit for limit, one in alone if _is_empty(one, sizes, known)]
    broken = "; ".join(f"{c.name.removeprefix('device: ')}, {c.expr.text}" for c in fatal or limits)
    fault = f"no configuration of the template fits {device.name}, which demands: {broken}"
    hint = "give its parameters smaller values, or name another device with --device"
    raise BadInput(fault, where=template.path, hint=hint)


def _is_empty(space: Space, sizes: Sequence[dict[str, int]], known: dict[str, int]) -> bool:
    try:
        return not len(space.configs(sizes, known))
    except BadInput:  # too many to list
        return False
