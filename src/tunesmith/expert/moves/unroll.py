"""Unrolling of the loops inside a body, which every thread runs for itself."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.csource.nodes import For
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.moves.reading import inner_loops
from tunesmith.expert.writing.sites import counted

SHORT = 16  # turns: such a loop is unrolled whole by the writer


class Unroll:
    name = "unroll"
    remedies = (Remedy.UNROLL, Remedy.ITEMS_IN_FLIGHT)
    parameters = ("UNROLL",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        found = inner_loops(draft.kernel)
        if not found:
            return Refused("no thread runs a loop of its own inside a turn")
        if all(loop.unroll is not None or is_short(loop) for loop in found):
            return Refused("every inner loop has a pragma of its own, or is short and unrolled whole anyway")
        name = context.macro("UNROLL")
        # PoCL's compiler refuses 0, which CUDA's takes for "as you like".
        values = (1, 2, 4, 8) if context.language == "opencl" else (0, 1, 2, 4, 8)
        return extend(
            draft,
            self,
            {
                "unroll": Choice(
                    name, values, values[0], "turns of an inner loop at once; 0: as the compiler likes"
                )
            },
            answers=[(Remedy.UNROLL, f"{name} > 1"), (Remedy.ITEMS_IN_FLIGHT, f"{name} > 1")],
        )


def is_short(loop: For) -> bool:
    count = counted(loop)
    return count is not None and count[1] <= SHORT
