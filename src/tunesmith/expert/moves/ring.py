"""The move that copies chunks of a loop into shared memory ahead of their turn; `writing/ring` prints it."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.moves.port import Context, extend, move, product
from tunesmith.expert.moves.shape import loops, shape_of, term
from tunesmith.expert.moves.vectors import planned, with_wide
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.ring import LEAST_CAPABILITY, kinds
from tunesmith.problem.template import Remedy

STAGES = (0, 2, 3, 4)
THREADS = 1024  # of a multiprocessor for which rings must leave room
SHARED = 228 << 10  # bytes of one, where the device does not say


@move("ring", (Remedy.ITEMS_IN_FLIGHT, Remedy.STAGE_IN_SHARED), "STAGES")
def ring(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Asynchronous copies into a ring in shared memory: STAGES chunks of a loop are under way while one is
    worked on, and take no registers.

    Proved on the model: the loop reads neighbours, in every turn, of an array that the kernel never writes.
    Taken from the contract: no other array overlaps it, and its alignment. Copies have 4, 8 or 16 bytes, so
    the writer requires vectors of as many.
    """
    schedule = draft.schedule
    if context.language != "cuda" or context.on_cpu:
        return "only CUDA's GPUs copy into shared memory while threads go on"
    if context.device.limits.capability < LEAST_CAPABILITY:
        return f"asynchronous copies need sm_{LEAST_CAPABILITY}, and this is {_called(context)}"
    if not loops(draft.kernel):
        return "there is no loop whose next chunk could be copied ahead"
    if schedule.lanes is None:
        return "no loop is shared among threads"
    choice = ParameterChoice(name, STAGES, 0, "chunks copied ahead into shared memory; 0: loads")
    plan = planned(draft, context, ring=choice)
    if isinstance(plan, str):
        return plan
    if plan.is_flat and schedule.persistent is None:
        return "every block takes one chunk: there is no next one to copy ahead"
    own = kinds(plan)
    if not own:
        return f"no loop reads neighbours of an array that is only read, in pieces of 4 bytes{_narrow(plan)}"
    shape = shape_of(draft, context)
    least = min(schedule.lanes.values)
    if not plan.is_flat and shape.extents and max(shape.extents) <= 2 * least:
        return f"a row is done in two turns at most: it has {max(shape.extents)} elements"
    taken = product(schedule.lanes, schedule.vector, schedule.items)
    prefer = with_wide(draft, context, name)
    if plan.is_flat and schedule.persistent is not None:
        blocks = f"{schedule.persistent.name} * device.sms"
        if shape.extent:
            prefer.append(("chunks_ahead", f"{name} == 0 or 2 * {taken} * {blocks} < {term(shape.extent)}"))
    elif shape.extent:
        prefer.append(("chunks_ahead", f"{name} == 0 or 2 * {taken} < {term(shape.extent)}"))
    each = sum(kind.bytes * count for kind, count in own.items())
    room = (context.device.limits.shared_per_sm or SHARED) // THREADS
    of_thread = f"{product(schedule.vector, schedule.items)} * {each}"
    prefer.append(("room_for_rings", f"{name} * {of_thread} <= {room}"))
    if schedule.load_hint is not None:
        prefer.append(("copied_or_hinted", f"{name} == 0 or {schedule.load_hint.name} == 0"))
    answers = [(Remedy.ITEMS_IN_FLIGHT, f"{name} > 0"), (Remedy.STAGE_IN_SHARED, f"{name} > 0")]
    return extend(draft, "ring", choice, prefer, answers)


def _called(context: Context) -> str:
    return context.device.architecture or "a device that does not say what it is"


def _narrow(plan: WritingPlan) -> str:
    return "" if plan.draft.schedule.vector is not None else "; without vectors pieces are single elements"
