"""The move `redundant`."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.expert.model.kernel import Each, TemplateDraft, map_steps
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import loops, named_loops
from tunesmith.problem.template import Remedy


@move(
    "redundant",
    needs="a loop that only stores elements which an earlier loop of the task has stored",
    turn="sharing",
    remedies=(Remedy.ROW_IN_REGISTERS,),
    places=lambda draft, _: named_loops(each for each in loops(draft.kernel) if each.again),
)
def redundant(draft: TemplateDraft, context: Context) -> TemplateDraft | str:
    """Loops left out that only store again what an earlier loop of the task has stored.

    That every element they store has been stored before is proved on the model; that the values are the same
    is not, so the whole template stands or falls with the oracle. There is no parameter: without the loop
    the rest of the kernel may be shared otherwise, and nobody wants it back.
    """
    found = [loop for loop in loops(draft.kernel) if loop.again]
    if not found or any(loop.totals for loop in found):
        return "no loop only stores again what an earlier one has stored"
    if context.problem.accuracy.reference is None and not context.problem.accuracy.deterministic:
        return "without a reference and with results that vary nobody could tell whether it was needed"
    steps = map_steps(
        draft.kernel.steps, lambda step: None if isinstance(step, Each) and step.again else step
    )
    return extend(replace(draft, kernel=replace(draft.kernel, steps=steps)), "redundant", {})
