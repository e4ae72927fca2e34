"""Several tasks to a block, side by side: rows too short for a block, or a warp for each row."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.lanes import nearest
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.moves.shape import shape_of

COUNTS = (1, 2, 4, 8, 16, 32, 64)
ON_CPU = (1, 4, 16, 64)
LEAST_THREADS = (
    64  # smaller blocks leave a multiprocessor's threads unused: there are 32 blocks to it at most
)
MOST_THREADS = 512  # larger blocks of many rows only wait for each other's end


class Tasks:
    name = "tasks"
    remedies = (Remedy.ROWS_PER_BLOCK, Remedy.WARP_PER_ROW, Remedy.BLOCK_SIZE, Remedy.MORE_BLOCKS)
    parameters = ("TASKS",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        kernel, lanes = draft.kernel, draft.schedule.lanes
        if not kernel.tasks:
            return Refused("the whole grid works on one task: there are none to put side by side")
        shape = shape_of(draft, context)
        name, limits = context.macro("TASKS"), context.device.limits
        if lanes is None or lanes.values == (1,):  # a task is one thread's work
            widths = (1, 8, 32, 64, 128, 256) if context.on_cpu else (32, 64, 128, 256, 512, 1024)
            values = tuple(v for v in widths if v <= limits.max_threads)
            choice = Choice(
                name, values, nearest(values, shape.tasks_in_block), "tasks to a block, one a thread"
            )
            return extend(
                draft, self, {"tasks": choice}, answers=[(Remedy.BLOCK_SIZE, f"{name} != {choice.default}")]
            )
        fewest = min(lanes.values)
        counts = ON_CPU if context.on_cpu else COUNTS
        most = max(1, (limits.max_threads if context.on_cpu else MOST_THREADS) // fewest)
        values = tuple(v for v in counts if v <= most)
        default = nearest(values, max(shape.threads, default=lanes.default) // lanes.default)
        prefer = []
        if not context.on_cpu:
            least = min(LEAST_THREADS, limits.max_threads)
            prefer.append(("enough_threads", f"{lanes.name} * {name} >= {least}"))
            prefer.append(("short_rows", f"{name} == 1 or {lanes.name} * {name} <= {MOST_THREADS}"))
        return extend(
            draft,
            self,
            {"tasks": Choice(name, values, default, "tasks to a block")},
            prefer=prefer,
            answers=[(Remedy.ROWS_PER_BLOCK, f"{name} > 1"), (Remedy.MORE_BLOCKS, f"{name} == 1")],
        )
