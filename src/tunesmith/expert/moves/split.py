"""A task's elements spread over several blocks: few long rows still fill the device. For maps alone."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.lanes import term
from tunesmith.expert.moves.port import Context, Refused, extend, product
from tunesmith.expert.moves.shape import is_map, loops, shape_of


class Split:
    name = "split"
    remedies = (Remedy.SPLIT_ROWS, Remedy.MORE_BLOCKS)
    parameters = ("SPLIT",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        kernel, schedule = draft.kernel, draft.schedule
        if not is_map(kernel):
            totals = [total.name for loop in loops(kernel) for total in loop.totals]
            what = f"its total {totals[0]}" if totals else "what its loops hand on to each other"
            return Refused(f"a task has to stay in one block: {what} is known to its own threads alone")
        if not kernel.tasks or not loops(kernel):
            return Refused("the loop is spread over the whole grid already")
        if schedule.lanes is None:
            return Refused("a task is one thread's work")
        shape = shape_of(kernel, context)
        name = context.macro("SPLIT")
        prefer = []
        if schedule.tasks is not None:
            prefer.append(("split_rows_are_long", f"{name} == 0 or {schedule.tasks.name} == 1"))
        if shape.extent:
            taken = product(schedule.lanes, schedule.vector, schedule.items)
            prefer.append(("something_to_split", f"{name} == 0 or {taken} < {term(shape.extent)}"))
        return extend(
            draft,
            self,
            {"split": Choice(name, (0, 1), 0, "1: a task's elements are spread over several blocks")},
            prefer=prefer,
            answers=[(Remedy.SPLIT_ROWS, f"{name} == 1"), (Remedy.MORE_BLOCKS, f"{name} == 1")],
        )
