"""Sizes as constants of a build: which parameters of the kernel, and how they read in its code."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tunesmith.core.expr import unparse
from tunesmith.expert.c.nodes import Parameter
from tunesmith.expert.c.walk import names_in
from tunesmith.expert.model.affine import is_integer
from tunesmith.expert.writing.plan import Plan


@dataclass(frozen=True)
class Size:
    parameter: Parameter
    macro: str
    value: str  # over sizes
    given: str  # what the parameter is called now


@dataclass(frozen=True)
class Baked:
    """Integer parameters that say how long rows are and where they start; how many there are stays open."""

    switch: str = ""
    sizes: tuple[Size, ...] = ()

    @classmethod
    def of(cls, plan: Plan) -> Baked:
        choice = plan.draft.schedule.bake
        if choice is None:
            return cls()
        counts: set[str] = set()
        for task in plan.kernel.tasks:
            counts |= names_in(task.extent)
        lengths: set[str] = set()
        for loop in plan.all_loops:
            lengths |= names_in(loop.each.stop) | names_in(loop.each.start) | names_in(loop.each.body)
        found: list[Size] = []
        for parameter in plan.kernel.function.parameters:
            node = plan.sizes.arguments.get(parameter.name)
            if node is None or not is_integer(parameter.type) or parameter.name not in lengths:
                continue
            if plan.is_flat or (parameter.name in counts and len(plan.kernel.tasks) == 1):
                continue
            macro = plan.names.fresh(f"{parameter.name.upper()}_CONST")
            found.append(Size(parameter, macro, unparse(node), plan.names.fresh(f"{parameter.name}_given")))
        return cls(choice.name, tuple(found))

    def parameter(self, parameter: Parameter) -> Parameter:
        for size in self.sizes:
            if size.parameter.name == parameter.name:
                return replace(parameter, name=size.given)
        return parameter

    def lines(self) -> list[str]:
        return [
            f"const {s.parameter.type.base} {s.parameter.name} = {s.macro} ? {s.macro} : {s.given};"
            for s in self.sizes
        ]

    def defaults(self) -> list[str]:
        return [line for s in self.sizes for line in (f"#ifndef {s.macro}", f"#define {s.macro} 0", "#endif")]

    def declared(self) -> list[tuple[str, str]]:
        """For the template's [defines]."""
        return [(s.macro, f"{s.value} if {self.switch} else 0") for s in self.sizes]
