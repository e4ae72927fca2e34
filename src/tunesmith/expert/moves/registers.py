"""A cap on registers: more threads on a multiprocessor, at the risk of spills."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.finishing import one_at_a_time
from tunesmith.expert.moves.local.registers import CAPS, NO_CAP
from tunesmith.expert.moves.port import Context, Refused, extend


class Registers:
    name = "registers"
    remedies = (Remedy.REGISTER_CAP,)
    parameters = ("REGS",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        if context.language != "cuda":
            return Refused(f"no flag caps registers in {context.language}")
        if any("maxrregcount" in flag for flag in context.problem.kernel.flags):
            return Refused("the problem's own flags cap registers already")
        name = context.macro("REGS")
        prefer = one_at_a_time(draft, context, name, NO_CAP)
        if draft.schedule.persistent is not None:
            prefer.append(("regs_persist", f"{name} == {NO_CAP} or {draft.schedule.persistent.name} == 0"))
        return extend(
            draft,
            self,
            {"registers": Choice(name, CAPS, NO_CAP, "registers of a thread, at most")},
            prefer=prefer,
            answers=[(Remedy.REGISTER_CAP, f"{name} < {NO_CAP}")],
        )
