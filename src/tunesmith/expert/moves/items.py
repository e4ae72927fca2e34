"""Several packs of a thread in flight: all are loaded before the first is used."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.lanes import term
from tunesmith.expert.moves.packing import loaded_bytes
from tunesmith.expert.moves.port import Context, Refused, extend, product
from tunesmith.expert.moves.shape import has_sums, loops, shape_of

MOST_BYTES = 256  # of a thread's loads under way: 64 registers, a quarter of what it can have
ON_CPU = 1024  # half of the widest vector registers


class Items:
    name = "items"
    remedies = (Remedy.ITEMS_IN_FLIGHT, Remedy.UNROLL)
    parameters = ("ITEMS",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        kernel, schedule = draft.kernel, draft.schedule
        if not loops(kernel):
            return Refused("there is no loop of which several turns could be under way")
        name = context.macro("ITEMS")
        shape = shape_of(draft, context)
        each, most = loaded_bytes(draft, context), ON_CPU if context.on_cpu else MOST_BYTES
        taken = f"{product(schedule.vector)} * {name}"
        prefer = [("loads_under_way", f"{taken} * {each} <= {most}")] if each else []
        if schedule.lanes is not None and shape.extent:
            reach = f"{product(schedule.lanes, schedule.vector)} * {name}"
            prefer.append(("no_idle_items", f"{name} == 1 or {reach} < 2 * {term(shape.extent)}"))
        if context.on_cpu and has_sums(kernel) and shape.lanes > 1:
            # The longer a sum, the more roundings are in it. With half of the original's sums the oracle lets
            # results pass, with a quarter it did not.
            sums = f"{product(schedule.lanes, schedule.vector)} * {name}"
            prefer.append(("enough_sums", f"2 * {sums} >= {shape.lanes}"))
        values = (1, 4, 16) if context.on_cpu else (1, 2, 4)
        return extend(
            draft,
            self,
            {"items": Choice(name, values, 1, "vectors a thread has under way at once")},
            prefer=prefer,
            answers=[(Remedy.ITEMS_IN_FLIGHT, f"{name} > 1"), (Remedy.UNROLL, f"{name} > 1")],
        )
