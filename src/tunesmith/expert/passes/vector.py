"""The move `vector`."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.expert.model.kernel import ParameterChoice, TemplateDraft
from tunesmith.expert.passes.access import index_bytes, packs_in, rules_of_sizes, widest_vector
from tunesmith.expert.passes.port import Context, extend, move
from tunesmith.expert.passes.shape import is_map, loops, named_arrays
from tunesmith.problem.template import Remedy
from tunesmith.space.expr import parse


def _places(draft: TemplateDraft, context: Context) -> str:
    found = widest_vector(draft, context, context.macro("VEC"))
    return "" if isinstance(found, str) else named_arrays(p.array for p in packs_in(found[1]))


@move(
    "vector",
    needs="an access to neighbours in every turn; an `align` that allows it; "
    "sizes that `VEC` divides (`require`)",
    turn="sharing",
    remedies=(Remedy.WIDE_ACCESS, Remedy.COALESCE),
    places=_places,
    VEC="elements in one load or store",
)
def vector(draft: TemplateDraft, context: Context, name: str) -> TemplateDraft | str:
    """Wide loads and stores: a thread takes VEC neighbours at once, in accesses of up to 16 bytes.

    Proved on the model: the access moves by one element (or by whole packs) from index to index and happens
    in every turn. Taken from the contract: how arrays are aligned, that they do not overlap, and which sizes
    VEC must divide, which the writer makes the template's `require`. What does not qualify stays as it is.

    Values go to 16 bytes of the narrowest type (64 on a CPU) and two accesses of the widest, as far as some
    workload allows them.
    """
    if not loops(draft.kernel):
        return "there is no loop over neighbours to take several of at once"
    found = widest_vector(draft, context, name)
    if isinstance(found, str):
        return found
    most, plan = found
    values = tuple(v for v in (1, 2, 4, 8, 16) if v <= most)
    every = ParameterChoice(name, values, 1)
    given = replace(draft, schedule=draft.schedule.having(vector=every))
    rules = [parse(text) for text in rules_of_sizes(given, context, every)]
    legal = {1} | {
        value
        for value in values
        for workload in context.problem.workloads
        if all(rule.holds({**workload.as_dict(), name: value}) for rule in rules)
    }
    if legal == {1}:
        return "rows are no whole number of vectors at any workload, or start at odd places"
    widest = max(index_bytes(pack, plan) for pack in packs_in(plan))
    lanes, prefer = draft.schedule.get("lanes"), []
    if lanes is not None and context.on_cpu and not is_map(draft.kernel):
        # A vector has the unit to itself; work-items would take turns, and wait to join their totals.
        prefer.append(("lanes_or_vectors", f"{lanes.name} == 1 or {name} == 1"))
    choice = replace(every, values=tuple(v for v in values if v in legal))
    return extend(draft, "vector", choice, prefer, element=widest)
