"""The move `items`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.access import loaded_bytes
from tunesmith.expert.passes.port import Context, extend, move, product
from tunesmith.expert.passes.shape import all_loops, has_sums, loops, shape_of
from tunesmith.problem.template import Remedy


@move(
    "items",
    needs="a loop",
    turn="sharing",
    remedies=(Remedy.ITEMS_IN_FLIGHT, Remedy.UNROLL),
    places=all_loops,
    ITEMS="vectors a thread has under way at once",
)
def items(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Several packs of a thread in flight: all are loaded before the first is used."""
    kernel, schedule = draft.kernel, draft.schedule
    if not loops(kernel):
        return "there is no loop of which several turns could be under way"
    shape, prefer = shape_of(draft, context), []
    if context.on_cpu and has_sums(kernel) and shape.lanes > 1:
        # The longer a sum, the more roundings are in it. With half of the original's sums the oracle lets
        # results pass, with a quarter it did not.
        reach = f"{product(schedule, 'lanes', 'vector')} * {name}"
        prefer.append(("enough_sums", f"2 * {reach} >= {shape.lanes}"))
    values = (1, 4, 16) if context.on_cpu else (1, 2, 4)
    loaded = loaded_bytes(draft, context) or ""
    return extend(draft, "items", ParameterChoice(name, values, 1), prefer, loaded=loaded)
