"""Independent loops of a task side by side: one loop over all their indices, shared among the task's threads.

Proved on the model: the loops start at 0, total nothing and keep nothing for each other, and neither touches
an array that the other writes (which arrays may overlap is in the contract). One after the other, the second
loop's loads come after the first loop's stores, a memory's latency later, and each leaves threads idle in its
last turn; side by side all loads are under way at once, and a split task has more blocks.
"""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.moves.shape import loops, runs_of


class Beside:
    name = "beside"
    remedies = (Remedy.ITEMS_IN_FLIGHT, Remedy.MORE_BLOCKS)
    parameters = ("BESIDE",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        kernel = draft.kernel
        if context.on_cpu:
            return Refused("a CPU runs a group's work-items one after the other: nothing waits")
        if len(loops(kernel)) < 2:
            return Refused("a task is one loop: there is no other to run beside it")
        if not kernel.tasks:
            return Refused("the loops are spread over the whole grid already")
        if not runs_of(kernel, context):
            return Refused(
                "no two loops in a row stand alone: they total something, or touch what the other writes"
            )
        name = context.macro("BESIDE")
        note = "1: loops that do not depend on each other run side by side"
        return extend(
            draft,
            self,
            {"beside": Choice(name, (0, 1), 0, note)},
            answers=[(Remedy.ITEMS_IN_FLIGHT, f"{name} == 1"), (Remedy.MORE_BLOCKS, f"{name} == 1")],
        )
