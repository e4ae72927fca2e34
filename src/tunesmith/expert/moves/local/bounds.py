"""`__launch_bounds__` on a kernel that has none: the compiler learns how large blocks are, how many fit."""

from __future__ import annotations

from math import prod

from tunesmith.core.expr import Undefined
from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice
from tunesmith.expert.moves.local.port import Edit, LocalDraft, add, one_at_a_time
from tunesmith.expert.moves.port import Context, Refused


class LocalBounds:
    name = "bounds"
    remedies = (Remedy.LAUNCH_BOUNDS,)
    parameters = ("BOUNDS",)

    def apply(self, draft: LocalDraft, context: Context) -> LocalDraft | Refused:
        if context.language == "opencl":
            return Refused("OpenCL C has no launch bounds")
        if draft.site.has_bounds:
            return Refused(f"{draft.site.name} has __launch_bounds__ already (line {draft.site.line})")
        block = draft.choice("BLOCK")
        threads = block.name if block is not None else str(largest_block(draft, context))
        parameter, word = context.macro("BOUNDS"), context.macro("LAUNCH_BOUNDS")
        most = context.device.limits.threads_per_sm or 2048
        return add(
            draft,
            self,
            Choice(parameter, (0, 1, 2, 4), 0, "blocks that must fit on a multiprocessor; 0: not said"),
            edits=(Edit(draft.site.marker_end, f" {word}"),),
            preamble=(
                f"#if {parameter}",
                f"#define {word} __launch_bounds__({threads}, {parameter})",
                "#else",
                f"#define {word}",
                "#endif",
            ),
            prefer=[
                ("bounds_fit", f"{parameter} * {threads} <= {most}"),
                *one_at_a_time(draft, parameter, 0),
            ],
            answers=((Remedy.LAUNCH_BOUNDS, f"{parameter} > 0"),),
        )


def largest_block(draft: LocalDraft, context: Context) -> int:
    """Threads of a block at any size: its own number where it is one, else what the device allows."""
    most = 1
    for launch in draft.launches:
        try:
            most = max(most, prod(e.evaluate({}) for e in launch.launch.block))
        except Undefined:  # it depends on sizes
            return context.device.limits.max_threads
    return most
