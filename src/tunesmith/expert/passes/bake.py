"""The move `bake`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.access import planned
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.writing.rules import Baked
from tunesmith.problem.template import Remedy


def _places(draft: TemplateDraft, context: Context) -> str:
    found = planned(draft, context, bake=ParameterChoice(context.macro("BAKE"), (0, 1), 0))
    return "" if isinstance(found, str) else ", ".join(s.parameter.name for s in Baked.of(found).sizes)


@move(
    "bake",
    needs="a row's length or stride is an argument that follows from sizes",
    turn="compiler",
    remedies=(Remedy.BAKE_SIZES, Remedy.CHEAP_DIVISION, Remedy.UNROLL),
    places=_places,
    BAKE="1: sizes are constants, with a build for each workload",
)
def bake(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Sizes as constants of the build: one build for each workload's sizes, the original for all others."""
    choice = ParameterChoice(name, (0, 1), 0)
    plan = planned(draft, context, bake=choice)
    if isinstance(plan, str):
        return plan
    if not Baked.of(plan).sizes:
        return "no length or stride of a row is an argument that follows from the problem's sizes"
    return extend(draft, "bake", choice)
