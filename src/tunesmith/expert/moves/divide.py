"""Cheaper index division: the integer divisions of a loop by what does not change in it."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.finishing import with_wide
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.moves.reading import index_divisions


class Divide:
    name = "divide"
    remedies = (Remedy.CHEAP_DIVISION,)
    parameters = ("DIVIDE",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        if context.language == "opencl":
            return Refused("cheaper divisions are known for cuda and hip alone")
        if not index_divisions(draft.kernel):
            return Refused("no index is divided by a number that only the call knows")
        name = context.macro("DIVIDE")
        note = "index divisions: 1: shifts, divisors are powers of two; 2: products with a reciprocal"
        return extend(
            draft,
            self,
            {"divide": Choice(name, (0, 1, 2), 0, note)},
            prefer=with_wide(draft, context, name),
            answers=[(Remedy.CHEAP_DIVISION, f"{name} > 0")],
        )
