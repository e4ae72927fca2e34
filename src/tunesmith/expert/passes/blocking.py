"""The move `blocking`: tiling with registers."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.access import index_bytes, planned
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import is_alone, loops, named_arrays, shape_of
from tunesmith.expert.writing.plan import WritingPlan
from tunesmith.problem.template import Remedy

COUNTS = (1, 2, 4, 8)
SHORT = 1024  # elements: of a longer row a team has several turns to load ahead


def _places(draft: TemplateDraft, context: Context) -> str:
    found = planned(draft, context, blocking=ParameterChoice(context.macro("BLOCKED"), (1, 2), 1))
    if isinstance(found, str) or found.blocking.task is None:
        return ""
    same = [p.array for each in found.all_loops for p in each.packs if found.blocking.is_same(p)]
    shared = f"; the same for all: {named_arrays(same)}" if same else ""
    return f"tasks along {found.blocking.task.name}{shared}"


@move(
    "blocking",
    needs="loops that go equally far for neighbouring tasks; loads that are the same for these or overlap, "
    "or rows of 1024 elements or fewer; a GPU, CUDA or HIP",
    turn="afterwards",
    remedies=(Remedy.ITEMS_IN_FLIGHT, Remedy.ROWS_PER_BLOCK, Remedy.HOIST_INVARIANTS),
    places=_places,
    BLOCKED="neighbouring tasks that a team takes at once",
)
def blocking(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Register blocking: a team takes several neighbouring tasks, and loads what they read alike once.

    Of several indices of the tasks it is the one along which most loads are the same (a norm's weights, a
    bias, the vector of a product) or overlap (the rows of a stencil). Every step is done for all tasks of the
    team before the next one, which is right because tasks do not depend on each other; loops must go equally
    far for all of them. Rows that overlap are a table in registers, and loads that only some turns make are
    taken from there where it has them. The last team may lack tasks; where only the grid tells how many there
    are, BLOCKED must divide their number (`require`).
    """
    if is_alone(draft.kernel):
        return "there is one task in all: it has no neighbours"
    if context.on_cpu or context.language == "opencl":
        return "a CPU has too few registers for a tile, and its caches hold what tasks read alike"
    if not draft.kernel.tasks:
        return "the whole grid works on one task: it has no neighbours"
    if not loops(draft.kernel) or "lanes" not in draft.schedule:
        return "no loop is shared among threads"
    choice = ParameterChoice(name, COUNTS, 1)
    plan = planned(draft, context, blocking=choice)
    if isinstance(plan, str):
        return plan
    extents = shape_of(draft, context).extents
    if not plan.blocking.alike and max(extents, default=SHORT + 1) > SHORT:
        return "neighbouring tasks read nothing alike, and their rows are long enough to load ahead in"
    own, alike = _loaded(plan)
    return extend(draft, "blocking", choice, own=own, alike=alike)


def _loaded(plan: WritingPlan) -> tuple[int, int]:
    """Bytes that a thread has under way in the busiest loop: of each task, and what tasks share."""
    own, shared = 0, 0
    for loop in plan.all_loops:
        loads = [pack for pack in loop.packs if pack.loads and pack.width]
        tables = plan.blocking.tables(loads)
        each = sum(index_bytes(table.first, plan) for table in tables)
        same = sum(index_bytes(pack, plan) for pack in loads if plan.blocking.is_same(pack))
        same += sum(index_bytes(table.first, plan) * table.span for table in tables)
        own, shared = max((own, shared), (each, same))
    return own, shared
