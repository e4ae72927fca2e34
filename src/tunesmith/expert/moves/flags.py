"""What the assembler may be asked: how hard it should try to save registers."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.finishing import one_at_a_time
from tunesmith.expert.moves.local.flags import AS_TODAY
from tunesmith.expert.moves.port import Context, Refused, extend


class Flags:
    name = "flags"
    remedies = (Remedy.COMPILER_FLAGS,)
    parameters = ("LEVEL",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        if context.language != "cuda":
            return Refused(f"no build flag of {context.language} takes a number that tunes")
        name = context.macro("LEVEL")
        flag = f"-Xptxas=--register-usage-level={{{name}}}"
        return extend(
            replace(draft, build_flags=(*draft.build_flags, flag)),
            self,
            {"flags": Choice(name, (0, AS_TODAY, 10), AS_TODAY, "how hard ptxas saves registers")},
            prefer=one_at_a_time(draft, context, name, AS_TODAY),
            answers=[(Remedy.COMPILER_FLAGS, f"{name} != {AS_TODAY}")],
        )
