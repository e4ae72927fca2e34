"""A grid of as many blocks as the device holds, each going on to further work: no last wave."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.csource.walk import names_in
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.lanes import term
from tunesmith.expert.moves.port import Context, Refused, extend, product
from tunesmith.expert.moves.shape import shape_of

FEWEST_THREADS = 512  # on a multiprocessor: fewer cannot hide the latency of their loads


class Persistent:
    name = "persistent"
    remedies = (Remedy.PERSISTENT_GRID,)
    parameters = ("PERSIST",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        schedule = draft.schedule
        if context.on_cpu:
            return Refused("a CPU takes up work-groups as they come: there are no waves to fill")
        if any(name.startswith("gridDim") for task in draft.kernel.tasks for name in names_in(task.extent)):
            return Refused(
                "the kernel is not told how many tasks there are: no block could know when to stop"
            )
        shape = shape_of(draft, context)
        name = context.macro("PERSIST")
        threads = product(schedule.lanes, schedule.tasks)
        most = context.device.limits.threads_per_sm or 2048
        room = f"{FEWEST_THREADS} <= {name} * {threads} <= {most}"
        prefer = [("room_to_persist", f"{name} == 0 or {room}")]
        if draft.kernel.tasks:
            work, each = shape.tasks, product(schedule.tasks)
        else:
            work, each = shape.extent, product(schedule.lanes, schedule.vector, schedule.items)
        if work:
            prefer.append(
                ("many_to_go_on", f"{name} == 0 or {term(work)} >= 2 * {name} * {each} * device.sms")
            )
        note = "blocks to a multiprocessor that go on; 0: a block ends with its tasks"
        return extend(
            draft,
            self,
            {"persistent": Choice(name, (0, 1, 2, 4, 8), 0, note)},
            prefer=prefer,
            answers=[(Remedy.PERSISTENT_GRID, f"{name} > 0")],
        )
