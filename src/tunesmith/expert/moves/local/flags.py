"""What the assembler may be asked: how hard it should try to save registers."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice
from tunesmith.expert.moves.local.port import LocalDraft, add, one_at_a_time
from tunesmith.expert.moves.port import Context, Refused

AS_TODAY = 5  # ptxas's own default, of 0 to 10


class LocalFlags:
    name = "flags"
    remedies = (Remedy.COMPILER_FLAGS,)
    parameters = ("LEVEL",)

    def apply(self, draft: LocalDraft, context: Context) -> LocalDraft | Refused:
        if context.language != "cuda":
            return Refused(f"no build flag of {context.language} takes a number that tunes")
        parameter = context.macro("LEVEL")
        return add(
            draft,
            self,
            Choice(parameter, (0, AS_TODAY, 10), AS_TODAY, "how hard ptxas saves registers"),
            flags=(f"-Xptxas=--register-usage-level={{{parameter}}}",),
            prefer=one_at_a_time(draft, parameter, AS_TODAY),
            answers=((Remedy.COMPILER_FLAGS, f"{parameter} != {AS_TODAY}"),),
        )
