"""A row kept in registers between passes: what a later loop reads again is loaded once.

Proved on the model: a later loop runs over the same range and reads what an earlier one read or handed on in
shared memory, at the same place. A thread then holds KEEP vectors of its row, which must be all of it.
"""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.lanes import term
from tunesmith.expert.moves.packing import index_bytes, is_widest, planned
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.moves.shape import loops, shape_of

COUNTS = (1, 2, 3, 4, 6, 8, 16)
REGISTERS = 65536  # of a multiprocessor
OTHERS = 32  # registers of a thread for everything but its row


class Keep:
    name = "keep"
    remedies = (Remedy.ROW_IN_REGISTERS, Remedy.LESS_SHARED, Remedy.PAD_SHARED)
    parameters = ("KEEP",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        kernel, schedule = draft.kernel, draft.schedule
        if context.on_cpu:
            return Refused("a CPU has too few registers for a row; its cache holds it as well")
        if schedule.lanes is None:
            return Refused("no loop is shared among threads")
        name = context.macro("KEEP")
        choice = Choice(name, (0, *COUNTS), 0, "vectors of its row a thread keeps in registers; 0: none")
        again = _kept_bytes(draft, context, choice)
        if isinstance(again, str):
            return Refused(again)
        lanes, extent = schedule.lanes.name, shape_of(draft, context).extent
        vector = schedule.vector.name if schedule.vector else "1"
        tasks = schedule.tasks.name if schedule.tasks else "1"
        per_thread = f"{name} * {vector} * {again} // 4 + {OTHERS}"
        registers = context.device.limits.registers_per_sm or REGISTERS
        prefer = [("registers", f"{lanes} * {tasks} * ({per_thread}) <= {registers}")]
        if extent:
            prefer.append(
                ("no_idle_part", f"{name} <= 1 or {lanes} * {vector} * ({name} - 1) < {term(extent)}")
            )
        if schedule.vector is not None and (widest := is_widest(draft, context)):
            half = max(schedule.vector.values) // 2
            also = "" if f"{vector} >= {half}" in widest else f"{vector} == {half} or "
            prefer.append(("wide_if_kept", f"{name} == 0 or {also}{widest}"))
        if schedule.tasks is not None:
            prefer.append(("kept_if_several", f"{name} > 0 or {tasks} <= {schedule.tasks.default}"))
        answers = [(Remedy.ROW_IN_REGISTERS, f"{name} > 0"), (Remedy.ITEMS_IN_FLIGHT, f"{name} > 1")]
        if kernel.kept:
            answers.append((Remedy.LESS_SHARED, f"{name} > 0"))
        return extend(draft, self, {"keep": choice}, prefer=prefer, answers=answers)


def _kept_bytes(draft: Draft, context: Context, choice: Choice) -> int | str:
    """Bytes to keep for one index of a row, or why there is nothing to keep."""
    if len(loops(draft.kernel)) < 2:
        return "there is one loop over the row only: nothing is read again"
    plan = planned(draft, context, {"keep": choice})
    if isinstance(plan, str):
        return plan
    if not plan.keeps:
        return "no later loop over the same range reads what an earlier one has read, element by element"
    sizes = {
        pack.key: index_bytes(pack, plan)
        for group in plan.keeps
        for loop in group.loops
        for pack in loop.packs
        if pack.key in group.shared
    }
    return sum(sizes.values())
