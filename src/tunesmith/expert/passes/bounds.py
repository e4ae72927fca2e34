"""The move `bounds`, on the model and on the text."""

from __future__ import annotations

from math import prod

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.local_draft import Edit, LocalDraft, add
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.settings import switched
from tunesmith.problem.template import Remedy
from tunesmith.space.expr import Undefined


@move(
    "bounds",
    needs="CUDA or HIP",
    turn="compiler",
    remedies=(Remedy.LAUNCH_BOUNDS,),
    BOUNDS="blocks that must fit on a multiprocessor at once; HIP: waves on a SIMD",
)
def bounds(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """`__launch_bounds__`: the compiler learns the block's size, and how many blocks must fit."""
    if context.language == "hip":  # amdgpu_waves_per_eu
        return extend(draft, "bounds", ParameterChoice(name, (1, 2, 4, 8), 1))
    if context.language != "cuda":
        return f"{context.language} has no bound on blocks to a compute unit"
    return extend(draft, "bounds", ParameterChoice(name, (1, 2, 4), 1))


@move(
    "bounds",
    needs="kernels that have them; OpenCL",
    turn="compiler",
    remedies=(Remedy.LAUNCH_BOUNDS,),
    BOUNDS="blocks that must fit on a multiprocessor; 0: not said",
)
def bounds_text(draft: LocalDraft, context: Context, name: str) -> LocalDraft | str:
    """`__launch_bounds__` on a kernel that has none: it tells the compiler how large blocks are."""
    if context.language == "opencl":
        return "OpenCL C has no launch bounds"
    if draft.site.has_bounds:
        return f"{draft.site.name} has __launch_bounds__ already (line {draft.site.line})"
    block = draft.choice(context.macro("BLOCK"))
    threads = block.name if block is not None else str(largest_block(draft, context))
    word = context.macro("LAUNCH_BOUNDS")
    return add(
        draft,
        "bounds",
        ParameterChoice(name, (0, 1, 2, 4), 0),
        edits=(Edit(draft.site.marker_end, f" {word}"),),
        preamble=switched(name, word, f"__launch_bounds__({threads}, {name})"),
        blocks=((context.number, threads),),
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
