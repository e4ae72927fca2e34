"""A cap on registers for the whole file: more threads on a multiprocessor, at the risk of spills."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice
from tunesmith.expert.moves.local.port import LocalDraft, add, one_at_a_time
from tunesmith.expert.moves.port import Context, Refused

CAPS = (32, 64, 128, 255)
NO_CAP = 255  # all that a thread can have


class LocalRegisters:
    name = "registers"
    remedies = (Remedy.REGISTER_CAP,)
    parameters = ("REGS",)

    def apply(self, draft: LocalDraft, context: Context) -> LocalDraft | Refused:
        if context.language != "cuda":
            return Refused(f"no flag caps registers in {context.language}")
        if any("maxrregcount" in flag for flag in context.problem.kernel.flags):
            return Refused("the problem's own flags cap registers already")
        parameter = context.macro("REGS")
        return add(
            draft,
            self,
            Choice(parameter, CAPS, NO_CAP, "registers of a thread, at most"),
            flags=(f"-maxrregcount={{{parameter}}}",),
            prefer=one_at_a_time(draft, parameter, NO_CAP),
            answers=((Remedy.REGISTER_CAP, f"{parameter} < {NO_CAP}"),),
        )
