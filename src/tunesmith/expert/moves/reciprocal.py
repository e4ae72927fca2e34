"""Multiplication by a reciprocal in place of divisions by one number: a parameter, judged by the oracle."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.finishing import with_wide
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.moves.reading import fast_forms


class Reciprocal:
    name = "reciprocal"
    remedies = (Remedy.RECIPROCAL, Remedy.HOIST_INVARIANTS)
    parameters = ("RECIP",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        if not fast_forms(draft.kernel, context.language).by_invariants:
            return Refused("no float is divided by what is the same for a whole loop")
        name = context.macro("RECIP")
        note = "divisions by one number: 0 as they are, 1 products, 2 products set right by their remainder"
        return extend(
            draft,
            self,
            {"reciprocal": Choice(name, (0, 1, 2), 0, note, categorical=True)},
            prefer=with_wide(draft, context, name),
            answers=[(Remedy.RECIPROCAL, f"{name} > 0"), (Remedy.HOIST_INVARIANTS, f"{name} > 0")],
        )
