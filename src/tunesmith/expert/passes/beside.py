"""The move `beside`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import loops, runs_of
from tunesmith.problem.template import Remedy


@move(
    "beside",
    needs="loops in a row that total and keep nothing, neither of which touches an array that the other "
    "writes; a GPU",
    turn="sharing",
    remedies=(Remedy.ITEMS_IN_FLIGHT, Remedy.MORE_BLOCKS),
    BESIDE="1: loops that do not depend on each other run side by side",
)
def beside(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Independent loops of a task side by side: one loop over all their indices, shared among the task's
    threads.

    Proved on the model: the loops start at 0, total nothing and keep nothing for each other, and neither
    touches an array that the other writes (which arrays may overlap is in the contract). One after the
    other, the second loop's loads come after the first loop's stores, a memory's latency later, and each
    leaves threads idle in its last turn; side by side all loads are under way at once, and a split task has
    more blocks.

    Loops that are alike but for their arrays and sizes (query and key) get one body, and addresses that are
    chosen; others a branch. With SPLIT every block has one turn, so there is no loop, and loads that wait for
    nothing go ahead of those that wait for another's result.
    """
    kernel = draft.kernel
    if context.on_cpu:
        return "a CPU runs a group's work-items one after the other: nothing waits"
    if len(loops(kernel)) < 2:
        return "a task is one loop: there is no other to run beside it"
    if not kernel.tasks:
        return "the loops are spread over the whole grid already"
    if not runs_of(kernel, context):
        return "no two loops in a row stand alone: they total something, or touch what the other writes"
    return extend(draft, "beside", ParameterChoice(name, (0, 1), 0))
