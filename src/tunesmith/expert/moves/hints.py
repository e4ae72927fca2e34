"""Cache hints: loads and stores that tell the caches what is used once."""

from __future__ import annotations

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.finishing import with_wide
from tunesmith.expert.moves.packing import packs_in, planned
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.moves.shape import loops


class Hints:
    name = "hints"
    remedies = (Remedy.CACHE_HINTS,)
    parameters = ("LOAD", "STORE")

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        if not loops(draft.kernel):
            return Refused("there is no loop whose accesses could carry a hint")
        plan = planned(draft, context)
        packs = () if isinstance(plan, str) else packs_in(plan)
        if not packs:
            return Refused("no access is a plain one of neighbours, in every turn of its loop")
        load, store = context.macro("LOAD"), context.macro("STORE")
        choices: dict[str, Choice] = {}
        answers: list[tuple[str, str]] = []
        prefer: list[tuple[str, str]] = []
        if any(p.loads for p in packs) and context.language != "opencl":
            choices["load_hint"] = Choice(
                load, (0, 1, 2), 0, "1: loads leave L1 alone; 2: loads are evicted first", categorical=True
            )
            answers.append((Remedy.CACHE_HINTS, f"{load} > 0"))
            prefer += with_wide(draft, context, load)
        if any(p.stores for p in packs):
            note = (
                "1: results are evicted first"
                if context.language != "opencl"
                else "1: results go past the cache"
            )
            choices["store_hint"] = Choice(store, (0, 1), 0, note, categorical=True)
            answers.append((Remedy.CACHE_HINTS, f"{store} > 0"))
            prefer += with_wide(draft, context, store)
        if len(choices) == 2:
            prefer.append(("hints_agree", f"{load} == 0 or {store} == {load} // 2"))
        if not choices:
            return Refused("no hint of the language applies to its accesses")
        return extend(draft, self, choices, prefer=prefer, answers=answers)
