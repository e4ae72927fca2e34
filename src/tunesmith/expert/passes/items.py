"""The move `items`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.access import loaded_bytes
from tunesmith.expert.passes.port import Context, extend, move, product
from tunesmith.expert.passes.shape import all_loops, has_sums, loops, shape_of, term
from tunesmith.problem.template import Remedy

MOST_BYTES = 256  # of a thread's loads under way: 64 registers, a quarter of what it can have
MOST_ON_CPU = 1024  # half of the widest vector registers


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
    shape = shape_of(draft, context)
    each, most = loaded_bytes(draft, context), MOST_ON_CPU if context.on_cpu else MOST_BYTES
    taken = f"{product(schedule, 'vector')} * {name}"
    prefer = [("loads_under_way", f"{taken} * {each} <= {most}")] if each else []
    reach = f"{product(schedule, 'lanes', 'vector')} * {name}"
    if "lanes" in schedule and shape.extent:
        prefer.append(("no_idle_items", f"{name} == 1 or {reach} < 2 * {term(shape.extent)}"))
    if context.on_cpu and has_sums(kernel) and shape.lanes > 1:
        # The longer a sum, the more roundings are in it. With half of the original's sums the oracle lets
        # results pass, with a quarter it did not.
        prefer.append(("enough_sums", f"2 * {reach} >= {shape.lanes}"))
    values = (1, 4, 16) if context.on_cpu else (1, 2, 4)
    choice = ParameterChoice(name, values, 1, "vectors a thread has under way at once")
    answers = [(Remedy.ITEMS_IN_FLIGHT, f"{name} > 1"), (Remedy.UNROLL, f"{name} > 1")]
    return extend(draft, "items", choice, prefer, answers)
