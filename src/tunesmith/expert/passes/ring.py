"""The move `ring`; `writing/ring` has the code it prints and what that requires."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.access import planned
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import loops, named_arrays, named_loops, shape_of
from tunesmith.expert.writing.bulk import BULK_CAPABILITY, WARP, bulked
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.expert.writing.ring import LEAST_CAPABILITY, kinds, ringed
from tunesmith.problem.template import Remedy

STAGES = (0, 2, 3, 4)


def _places(draft: TemplateDraft, context: Context) -> str:
    found = planned(draft, context, ring=ParameterChoice(context.macro("STAGES"), (0, 2), 0))
    if isinstance(found, str):
        return ""
    copied = [(loop.each, packs) for loop in found.all_loops if (packs := ringed(found, loop))]
    arrays = named_arrays(pack.array for _, packs in copied for pack in packs)
    return f"{arrays}; {named_loops(each for each, _ in copied)}"


@move(
    "ring",
    needs="neighbours of an array that the kernel never writes, in pieces of 4, 8 or 16 bytes (`require`); "
    "several turns to a row, or blocks that go on; CUDA, sm_80",
    turn="afterwards",
    remedies=(Remedy.ITEMS_IN_FLIGHT, Remedy.STAGE_IN_SHARED),
    places=_places,
    STAGES="chunks copied ahead into shared memory; 0: loads",
    BULK="1: one thread sends for a team's whole chunk",
)
def ring(draft: TemplateDraft, context: Context, name: str, runs: str) -> TemplateDraft | str:
    """Asynchronous copies into a ring in shared memory: chunks of a loop are under way in no registers.

    Proved on the model: the loop reads neighbours, in every turn, of an array that the kernel never writes.
    Taken from the contract: no other array overlaps it, and its alignment. Each thread sends for its own
    packs of later chunks (`cp.async`), waits for the oldest, and reads its own slots; there is no barrier.
    The first chunks of a loop are sent for before the totals of the loop ahead of it are joined, unless they
    depend on these. Slots are one thread's in all loops of the kernel, and those of a warp lie side by side.
    With BULK (sm_90) a team's chunk comes in one bulk copy to each array, which a barrier in shared memory
    counts; the last of its threads to have read a chunk sends for the next one into its place. It needs whole
    warps, chunks that lie in one piece, and 16 bytes (`require`); the ragged end stays with plain loads.
    What several tasks read (weights) goes through L1, the rest past it. `KEEP`, `SPLIT`,
    `BESIDE` and `BLOCKED` are excluded (`require`).
    """
    schedule = draft.schedule
    if context.language != "cuda" or context.on_cpu:
        return "only CUDA's GPUs copy into shared memory while threads go on"
    if context.device.limits.capability < LEAST_CAPABILITY:
        return f"asynchronous copies need sm_{LEAST_CAPABILITY}, and this is {_called(context)}"
    if not loops(draft.kernel):
        return "there is no loop whose next chunk could be copied ahead"
    if "lanes" not in schedule:
        return "no loop is shared among threads"
    if "tile" in schedule:
        return "what would be copied ahead goes through tiles"
    choice = ParameterChoice(name, STAGES, 0)
    plan = planned(draft, context, ring=choice)
    if isinstance(plan, str):
        return plan
    if plan.is_flat and "persistent" not in schedule:
        return "every block takes one chunk: there is no next one to copy ahead"
    own = kinds(plan)
    if not own:
        return f"no loop reads neighbours of an array that is only read, in pieces of 4 bytes{_narrow(plan)}"
    shape = shape_of(draft, context)
    least = min(schedule["lanes"].values)
    if not plan.is_flat and shape.extents and max(shape.extents) <= 2 * least:
        return f"a row is done in two turns at most: it has {max(shape.extents)} elements"
    choices = {"ring": choice}
    sent = any(bulked(plan, loop) for loop in plan.all_loops)
    of_warps = any(lanes % WARP == 0 for lanes in schedule["lanes"].values)
    if context.device.limits.capability >= BULK_CAPABILITY and sent and of_warps:
        choices["bulk"] = ParameterChoice(runs, (0, 1), 0, categorical=True)
    copied = sum(kind.bytes * count for kind, count in own.items())
    return extend(draft, "ring", choices, copied=copied, piece=min(kind.bytes for kind in own))


def _called(context: Context) -> str:
    return context.device.architecture or "a device that does not say what it is"


def _narrow(plan: WritingPlan) -> str:
    return "" if "vector" in plan.draft.schedule else "; without vectors pieces are single elements"
