"""Loops left out that only store again what an earlier loop of the task has stored.

That every element they store has been stored before is proved on the model; that the values are the same is
not, so the whole template stands or falls with the oracle. There is no parameter: without the loop the rest
of the kernel may be shared otherwise, and nobody wants it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Draft, Each, Repeat, Step, When
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.moves.shape import loops


class Redundant:
    name = "redundant"
    remedies = (Remedy.ROW_IN_REGISTERS,)
    parameters = ()

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        found = [loop for loop in loops(draft.kernel) if loop.again]
        if not found or any(loop.totals for loop in found):
            return Refused("no loop only stores again what an earlier one has stored")
        if context.problem.accuracy.reference is None and not context.problem.accuracy.deterministic:
            return Refused(
                "without a reference and with results that vary nobody could tell whether it was needed"
            )
        steps = _without(draft.kernel.steps)
        return extend(replace(draft, kernel=replace(draft.kernel, steps=steps)), self, {})


def _without(steps: Sequence[Step]) -> tuple[Step, ...]:
    kept: list[Step] = []
    for step in steps:
        match step:
            case Each(again=True):
                continue
            case When(then=then, otherwise=otherwise):
                kept.append(replace(step, then=_without(then), otherwise=_without(otherwise)))
            case Repeat(body=body):
                kept.append(replace(step, body=_without(body)))
            case _:
                kept.append(step)
    return tuple(kept)
