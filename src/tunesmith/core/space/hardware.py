"""What a device forbids before anything is built, as constraints beside the template's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from math import prod

import numpy as np

from tunesmith.core.device import Limits
from tunesmith.core.expr import Expr, unparse, vector
from tunesmith.core.expr.nodes import Arithmetic, Compare, CompareOp, Node, Num
from tunesmith.core.problem import Launch
from tunesmith.core.space.params import Param
from tunesmith.core.space.space import Constraint
from tunesmith.core.template import Template

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
