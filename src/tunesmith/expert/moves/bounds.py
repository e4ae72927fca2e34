"""`__launch_bounds__`: the compiler learns the block's size, and how many blocks must fit."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.finishing import one_at_a_time
from tunesmith.expert.moves.port import Context, Refused, extend, product


class Bounds:
    name = "bounds"
    remedies = (Remedy.LAUNCH_BOUNDS,)
    parameters = ("BOUNDS",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        if context.language != "cuda":
            return Refused(f"{context.language} has no bound on blocks to a compute unit")
        name, schedule = context.macro("BOUNDS"), draft.schedule
        threads = product(schedule.lanes, schedule.tasks)
        most = context.device.limits.threads_per_sm or 2048
        prefer = [("bounds_fit", f"{name} == 1 or {name} * {threads} <= {most}")]
        if schedule.persistent is not None:
            prefer.append(("bounds_persist", f"{name} == 1 or {schedule.persistent.name} == 0"))
        prefer += one_at_a_time(draft, context, name, 1)
        return extend(
            draft,
            self,
            {"bounds": Choice(name, (1, 2, 4), 1, "blocks that must fit on a multiprocessor at once")},
            prefer=prefer,
            answers=[(Remedy.LAUNCH_BOUNDS, f"{name} > 1")],
        )
