"""The move `reciprocal`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import all_loops, fast_forms
from tunesmith.problem.template import Remedy


def _places(draft: TemplateDraft, context: Context) -> str:
    count = fast_forms(draft.kernel, context.language).by_invariants
    return f"{count} of the divisors in {all_loops(draft, context)}"


@move(
    "reciprocal",
    needs="a division by what is the same for a loop",
    turn="anywhere",
    remedies=(Remedy.RECIPROCAL, Remedy.HOIST_INVARIANTS),
    places=_places,
    RECIP="divisions by one number: 1: products; 2: products set right",
)
def reciprocal(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Multiplication by a reciprocal in place of divisions by one number: a parameter, judged as any."""
    if not fast_forms(draft.kernel, context.language).by_invariants:
        return "no float is divided by what is the same for a whole loop"
    return extend(draft, "reciprocal", ParameterChoice(name, (0, 1, 2), 0, categorical=True))
