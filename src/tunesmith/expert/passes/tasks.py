"""The move `tasks`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import is_alone, named_tasks, nearest, shape_of
from tunesmith.problem.template import Remedy

COUNTS = (1, 2, 4, 8, 16, 32, 64)
COUNTS_ON_CPU = (1, 4, 16, 64)
MOST_THREADS = 512  # larger blocks of many rows only wait for each other's end


@move(
    "tasks",
    needs="tasks",
    turn="sharing",
    remedies=(Remedy.ROWS_PER_BLOCK, Remedy.WARP_PER_ROW, Remedy.BLOCK_SIZE, Remedy.MORE_BLOCKS),
    places=named_tasks,
    TASKS="tasks to a block",
)
def tasks(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Several tasks to a block, side by side: rows too short for a block, or a warp for each row."""
    kernel, lanes = draft.kernel, draft.schedule.get("lanes")
    if not kernel.tasks:
        return "the whole grid works on one task: there are none to put side by side"
    if is_alone(kernel):
        return "there is one task in all: a block has no other to take beside it"
    shape = shape_of(draft, context)
    limits = context.device.limits
    if lanes is None or lanes.values == (1,):  # a task is one thread's work
        widths = (1, 8, 32, 64, 128, 256) if context.on_cpu else (32, 64, 128, 256, 512, 1024)
        values = tuple(v for v in widths if v <= limits.max_threads)
        default = nearest(values, max(1, max(shape.threads, default=shape.lanes) // max(1, shape.lanes)))
        return extend(
            draft, "tasks", ParameterChoice(name, values, default, "tasks to a block, one a thread")
        )
    fewest = min(lanes.values)
    counts = COUNTS_ON_CPU if context.on_cpu else COUNTS
    most = max(1, (limits.max_threads if context.on_cpu else MOST_THREADS) // fewest)
    values = tuple(v for v in counts if v <= most)
    default = nearest(values, max(shape.threads, default=lanes.default) // lanes.default)
    return extend(draft, "tasks", ParameterChoice(name, values, default))
