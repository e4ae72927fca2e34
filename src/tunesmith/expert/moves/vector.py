"""Wide loads and stores: a thread takes VEC neighbours at once, in accesses of up to 16 bytes.

Proved on the model: the access moves by one element (or by whole packs) from index to index and happens in
every turn. Taken from the contract: how arrays are aligned, that they do not overlap, and which sizes VEC
must divide, which the writer makes the template's `require`. What does not qualify stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.model.kernel import Choice, Draft
from tunesmith.expert.moves.lanes import term
from tunesmith.expert.moves.packing import index_bytes, legal_vectors, packs_in, widest_vector
from tunesmith.expert.moves.port import Context, Refused, extend
from tunesmith.expert.moves.shape import is_map, loops, shape_of


class Vector:
    name = "vector"
    remedies = (Remedy.WIDE_ACCESS, Remedy.COALESCE)
    parameters = ("VEC",)

    def apply(self, draft: Draft, context: Context) -> Draft | Refused:
        if not loops(draft.kernel):
            return Refused("there is no loop over neighbours to take several of at once")
        name = context.macro("VEC")
        found = widest_vector(draft, context, name)
        if isinstance(found, str):
            return Refused(found)
        most, plan = found
        every = Choice(
            name, tuple(v for v in (1, 2, 4, 8, 16) if v <= most), 1, "elements in one load or store"
        )
        legal = {v for values in legal_vectors(draft, context, every) for v in values} | {1}
        if legal == {1}:
            return Refused("rows are no whole number of vectors at any workload, or start at odd places")
        values = tuple(v for v in every.values if v in legal)
        widest = max(index_bytes(pack, plan) for pack in packs_in(plan))
        lanes, extent = draft.schedule.lanes, shape_of(draft, context).extent
        prefer = []
        if lanes is not None and extent and not context.on_cpu:
            # In place of the weaker one, of lanes alone.
            draft = replace(draft, prefer=tuple(p for p in draft.prefer if p[0] != "no_idle_lanes"))
            prefer.append(("no_idle_lanes", f"{lanes.name} * {name} < 2 * {term(extent)}"))
        if lanes is not None and context.on_cpu and not is_map(draft.kernel):
            # A vector has the unit to itself; work-items would take turns, and wait to join their totals.
            prefer.append(("lanes_or_vectors", f"{lanes.name} == 1 or {name} == 1"))
        return extend(
            draft,
            self,
            {"vector": replace(every, values=values)},
            prefer=prefer,
            answers=[(Remedy.WIDE_ACCESS, f"{name} * {widest} >= 16")],
        )
