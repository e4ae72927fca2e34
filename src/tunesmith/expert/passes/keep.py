"""The move `keep`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.access import is_widest, kept_bytes, planned
from tunesmith.expert.passes.port import Context, extend, move, product
from tunesmith.expert.passes.shape import loops, named_arrays, named_loops, shape_of, term
from tunesmith.problem.template import Remedy

KEPT = (1, 2, 3, 4, 6, 8, 16)
REGISTERS = 65536  # of a multiprocessor
OTHERS = 32  # registers of a thread for everything but its row


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
    kernel, schedule = draft.kernel, draft.schedule
    if context.on_cpu:
        return "a CPU has too few registers for a row; its cache holds it as well"
    if "lanes" not in schedule:
        return "no loop is shared among threads"
    choice = ParameterChoice(name, (0, *KEPT), 0, "vectors of its row a thread keeps in registers; 0: none")
    again = _read_again(draft, context, choice)
    if isinstance(again, str):
        return again
    lanes, extent = schedule["lanes"].name, shape_of(draft, context).extent
    vector, tasks = product(schedule, "vector"), product(schedule, "tasks")
    per_thread = f"{name} * {vector} * {again} // 4 + {OTHERS}"
    registers = context.device.limits.registers_per_sm or REGISTERS
    prefer = [("registers", f"{lanes} * {tasks} * ({per_thread}) <= {registers}")]
    if extent:
        prefer.append(("no_idle_part", f"{name} <= 1 or {lanes} * {vector} * ({name} - 1) < {term(extent)}"))
    if "vector" in schedule and (widest := is_widest(draft, context)):
        half = max(schedule["vector"].values) // 2
        also = "" if f"{vector} >= {half}" in widest else f"{vector} == {half} or "
        prefer.append(("wide_if_kept", f"{name} == 0 or {also}{widest}"))
    if "tasks" in schedule:
        prefer.append(("kept_if_several", f"{name} > 0 or {tasks} <= {schedule['tasks'].default}"))
    if "items" in schedule:
        prefer.append(("one_way_at_a_time", f"{name} == 0 or {schedule['items'].name} == 1"))
    answers = [(Remedy.ROW_IN_REGISTERS, f"{name} > 0"), (Remedy.ITEMS_IN_FLIGHT, f"{name} > 1")]
    if kernel.staged:
        answers.append((Remedy.LESS_SHARED, f"{name} > 0"))
    return extend(draft, "keep", choice, prefer, answers)


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
