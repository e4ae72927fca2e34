"""The move `divide`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import all_loops, index_divisions
from tunesmith.problem.template import Remedy


def _places(draft: TemplateDraft, context: Context) -> str:
    return f"{index_divisions(draft.kernel)} of the divisions in {all_loops(draft, context)}"


@move(
    "divide",
    needs="integer division of a loop's index by what only the call knows; for shifts a power of two, "
    "for products an index times divisor below 2^32 (both `require`); CUDA and HIP",
    turn="anywhere",
    remedies=(Remedy.CHEAP_DIVISION,),
    places=_places,
    DIVIDE="1: shifts, divisors are powers of two; 2: products with a reciprocal",
)
def divide(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Cheaper index division: the integer divisions of a loop by what does not change in it."""
    if context.language == "opencl":
        return "cheaper divisions are known for cuda and hip alone"
    if not index_divisions(draft.kernel):
        return "no index is divided by a number that only the call knows"
    return extend(draft, "divide", ParameterChoice(name, (0, 1, 2), 0))
