"""Sizes as constants of the build: one build for each workload's sizes, the original for all others."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.finishing import with_wide
from tunesmith.expert.moves.packing import planned
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.writing.baking import Baked


class Bake:
    name = "bake"
    remedies = (Remedy.BAKE_SIZES, Remedy.CHEAP_DIVISION, Remedy.UNROLL)
    parameters = ("BAKE",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        name = context.macro("BAKE")
        choice = Choice(name, (0, 1), 0, "1: sizes are constants, with a build for each workload")
        plan = planned(draft, context, {"bake": choice})
        if isinstance(plan, str):
            return Refused(plan)
        if not Baked.of(plan).sizes:
            return Refused(
                "no length or stride of a row is an argument that follows from the problem's sizes"
            )
        prefer = with_wide(draft, context, name)
        if (divide := draft.schedule.divide) is not None:  # by a constant the compiler divides cheaply itself
            prefer.append(("bake_or_divide", f"{name} == 0 or {divide.name} == {divide.default}"))
        return extend(
            draft,
            self,
            {"bake": choice},
            prefer=prefer,
            answers=[(Remedy.BAKE_SIZES, f"{name} == 1"), (Remedy.CHEAP_DIVISION, f"{name} == 1")],
        )
