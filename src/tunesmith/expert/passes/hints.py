"""The move `hints`."""

from __future__ import annotations

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.access import packs_in, planned
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import loops, named_arrays
from tunesmith.problem.template import Remedy


def _places(draft: TemplateDraft, context: Context) -> str:
    found = planned(draft, context)
    return "" if isinstance(found, str) else named_arrays(p.array for p in packs_in(found))


@move(
    "hints",
    needs="plain accesses to neighbours",
    turn="anywhere",
    remedies=(Remedy.CACHE_HINTS,),
    places=_places,
    LOAD="1: loads leave L1 alone; 2: loads are evicted first",
    STORE="1: results are evicted first, or go past the cache",
)
def hints(draft: TemplateDraft, context: Context, load: str, store: str) -> TemplateDraft | str:
    """Cache hints: loads and stores that tell the caches what is used once."""
    if not loops(draft.kernel):
        return "there is no loop whose accesses could carry a hint"
    plan = planned(draft, context)
    packs = () if isinstance(plan, str) else packs_in(plan)
    if not packs:
        return "no access is a plain one of neighbours, in every turn of its loop"
    choices: dict[str, ParameterChoice] = {}
    if any(p.loads for p in packs) and context.language != "opencl":
        choices["load_hint"] = ParameterChoice(load, (0, 1, 2), 0, categorical=True)
    if any(p.stores for p in packs):
        note = f"1: results {'go past the cache' if context.language == 'opencl' else 'are evicted first'}"
        choices["store_hint"] = ParameterChoice(store, (0, 1), 0, note, categorical=True)
    return extend(draft, "hints", choices) if choices else "no hint of the language applies to its accesses"
