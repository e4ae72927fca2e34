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
        if not index_divisions(draft.kernel):
            return Refused("no index is divided by a number that only the call knows")
        name = context.macro("DIVIDE")
        return extend(
            draft,
            self,
            {"divide": Choice(name, (0, 1), 0, "1: index divisions by a precomputed reciprocal")},
            prefer=with_wide(draft, context, name),
            answers=[(Remedy.CHEAP_DIVISION, f"{name} == 1")],
        )
