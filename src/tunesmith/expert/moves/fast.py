"""Fast intrinsics in place of library functions and divisions: a parameter, judged by the oracle."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.finishing import with_wide
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.moves.reading import fast_forms


class Fast:
    name = "fast"
    remedies = (Remedy.FAST_INTRINSICS, Remedy.FP32_LITERALS)
    parameters = ("FAST",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        if "use_fast_math" in " ".join(context.problem.kernel.flags):
            return Refused("-use_fast_math is among the problem's flags: the intrinsics are used already")
        found = fast_forms(draft.kernel, context.language).functions
        if not found:
            return Refused("no function or division of floats has a fast form here")
        name = context.macro("FAST")
        return extend(
            draft,
            self,
            {"fast": Choice(name, (0, 1), 0, f"1: fast forms of {', '.join(found)}")},
            prefer=with_wide(draft, context, name),
            answers=[(Remedy.FAST_INTRINSICS, f"{name} == 1")],
        )
