"""The move `keep`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.access import kept_bytes, planned
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import loops, named_arrays, named_loops
from tunesmith.problem.template import Remedy

KEPT = (1, 2, 3, 4, 6, 8, 16)


def _places(draft: TemplateDraft, context: Context) -> str:
    found = planned(draft, context, keep=ParameterChoice(context.macro("KEEP"), (0, 1), 0))
    if isinstance(found, str):
        return ""
    row = [loop for loop in found.all_loops if loop.in_row]
    kept = [pack.array for loop in row for pack in loop.packs if pack.key in loop.kept]
    return named_arrays(kept) + f"; {named_loops(loop.each for loop in row)}"


@move(
    "keep",
    needs="a later loop over the same range that reads the same elements; a GPU",
    turn="sharing",
    remedies=(Remedy.ROW_IN_REGISTERS, Remedy.LESS_SHARED, Remedy.PAD_SHARED),
    places=_places,
    KEEP="vectors of its row a thread keeps in registers; 0: none",
)
def keep(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """A row kept in registers between passes: what a later loop reads again is loaded once.

    Proved on the model: a later loop runs over the same range and reads what an earlier one read or handed
    on in shared memory, at the same place. A thread then holds KEEP vectors of its row, which must be all of
    it.
    """
    if context.on_cpu:
        return "a CPU has too few registers for a row; its cache holds it as well"
    if "lanes" not in draft.schedule:
        return "no loop is shared among threads"
    choice = ParameterChoice(name, (0, *KEPT), 0)
    again = _read_again(draft, context, choice)
    if isinstance(again, str):
        return again
    tasks = draft.schedule.get("tasks")
    return extend(draft, "keep", choice, kept=again, tasks=tasks.default if tasks is not None else "")


def _read_again(draft: TemplateDraft, context: Context, choice: ParameterChoice) -> int | str:
    """Bytes to keep for one index of a row, or why there is nothing to keep."""
    if len(loops(draft.kernel)) < 2:
        return "there is one loop over the row only: nothing is read again"
    plan = planned(draft, context, keep=choice)
    if isinstance(plan, str):
        return plan
    if not plan.keeps:
        return "no later loop over the same range reads what an earlier one has read, element by element"
    return kept_bytes(plan)
