"""Unroll pragmas on the kernel's inner loops."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice
from tunesmith.expert.moves.local.port import Edit, LocalDraft, add
from tunesmith.expert.moves.port import Context, Refused


class LocalUnroll:
    name = "unroll"
    remedies = (Remedy.UNROLL, Remedy.ITEMS_IN_FLIGHT)
    parameters = ("UNROLL",)

    def apply(self, draft: LocalDraft, context: Context) -> LocalDraft | Refused:
        loops = [loop for loop in draft.site.inner_loops if not loop.marked]
        if not loops:
            return Refused(f"{draft.site.name} has no inner loop without a pragma of its own")
        parameter = context.macro("UNROLL")
        pragma = f"\n#if {parameter}\n#pragma unroll {parameter}\n#endif\n"
        return add(
            draft,
            self,
            Choice(parameter, (0, 1, 2, 4, 8), 0, "turns of an inner loop at once; 0: as it is"),
            edits=tuple(Edit(loop.at, pragma) for loop in loops),
            answers=((Remedy.UNROLL, f"{parameter} > 1"), (Remedy.ITEMS_IN_FLIGHT, f"{parameter} > 1")),
        )
