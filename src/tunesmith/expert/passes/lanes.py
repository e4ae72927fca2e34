"""The move `lanes`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.access import widest_vector
from tunesmith.expert.passes.port import Context, extend, move, told
from tunesmith.expert.passes.shape import LoopShape, all_loops, loops, named_tasks, nearest, shape_of
from tunesmith.problem.template import Remedy

WIDTHS = (32, 64, 128, 192, 256, 384, 512, 768, 1024)
PARTS = (4, 8, 16)  # of a warp, for rows that a warp would not be busy with
SHORT = 1024  # elements: such a row may do with a part of a warp
WARP = 32
TURNS = (1, 2, 4)
MOST_EVEN = 4
ON_CPU = (1, 8, 64)  # a CPU runs a group's work-items one after the other
_SHARED = (Remedy.BLOCK_SIZE, Remedy.WARP_PER_ROW, Remedy.SHUFFLE_REDUCTION, Remedy.SHARE_SERIAL_WORK)


def _places(draft: TemplateDraft, context: Context) -> str:
    return "; ".join(filter(None, [named_tasks(draft, context), all_loops(draft, context)]))


@move(
    "lanes",
    needs="a loop to share; else one thread to a task",
    turn="sharing",
    remedies=_SHARED,
    places=_places,
    stays_open=True,
    LANES="threads to a task",
)
def lanes(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """How many threads share a task: a whole block, a warp, a part of a warp, or one thread alone.

    Values go up to one turn of the longest row, in parts of a warp where rows are short, with widths that
    make a row a few whole turns. The default is as near to the original's own launch as that allows.
    """
    shape = shape_of(draft, context)
    named = {"row": shape.extent, "beside": shape.beside, "rows": shape.tasks}
    draft = told(draft, **named if draft.kernel.tasks else {"elements": shape.extent})
    draft = told(draft, kind="cpu") if context.on_cpu else draft
    if not loops(draft.kernel):  # the writer has to know: a task is one thread's work
        return extend(draft, "lanes", ParameterChoice(name, (1,), 1))
    answers = [(Remedy.SHARE_SERIAL_WORK, f"{name} > 1")] if draft.kernel.team == "thread" else []
    most = widest_vector(draft, context, "VEC")
    values = _domain(shape, context, 1 if isinstance(most, str) else most[0])
    choice = ParameterChoice(name, values, nearest(values, shape.lanes))
    return extend(draft, "lanes", choice, answers=answers)


def _domain(shape: LoopShape, context: Context, vector: int) -> tuple[int, ...]:
    most = context.device.limits.max_threads
    if context.on_cpu:
        return tuple(sorted(v for v in {*ON_CPU, shape.lanes} if v <= most))
    reach = max(shape.extents, default=most)
    parts = PARTS if shape.extents and reach <= SHORT else ()
    # One value beyond the row is of use: that is where a row is one turn.
    widths = [v for v in WIDTHS if v <= most]
    fitting = {v for v in widths if v < reach} | set([v for v in widths if v >= reach][:1])
    own = {shape.lanes} if shape.lanes % WARP == 0 and shape.lanes <= max(fitting) else set()
    return (*(p for p in parts if p < reach), *sorted(fitting | own | _even(shape, vector, most)))


def _even(shape: LoopShape, vector: int, most: int) -> set[int]:
    """Widths with which a row of vectors is a few whole turns, with no thread idle in the last."""
    found: list[int] = []
    for extent in sorted(set(shape.extents)):
        for turns in TURNS:
            width = -(-extent // (vector * turns * WARP)) * WARP
            if 2 * WARP <= width <= most and width not in (*WIDTHS, *found):
                found.append(width)
    return set(found[:MOST_EVEN])
