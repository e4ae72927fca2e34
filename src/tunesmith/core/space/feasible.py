"""What of a template is searched on a device: its legal configurations that can fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput
from tunesmith.core.problem import Problem
from tunesmith.core.space.configset import ConfigSet
from tunesmith.core.space.hardware import hardware_constraints
from tunesmith.core.space.space import Space
from tunesmith.core.template import Template


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
        raise BadInput(
            f"the template's constraints leave no configuration on {device.name}",
            where=template.path,
            hint="widen a parameter or loosen a constraint",
        )
    # Each limit by itself, or else all of them together.
    alone = [(limit, replace(space, constraints=(*space.constraints, limit))) for limit in limits]
    fatal = [limit for limit, one in alone if _is_empty(one, sizes, known)]
    broken = "; ".join(f"{c.name.removeprefix('device: ')}, {c.expr.text}" for c in fatal or limits)
    raise BadInput(
        f"no configuration of the template fits {device.name}, which demands: {broken}",
        where=template.path,
        hint="give its parameters smaller values, or name another device with --device",
    )


def _is_empty(space: Space, sizes: Sequence[dict[str, int]], known: dict[str, int]) -> bool:
    try:
        return not len(space.configs(sizes, known))
    except BadInput:  # too many to list
        return False
