"""The moves: what turns performance choices of a kernel into parameters of a template."""

from __future__ import annotations

from collections.abc import Mapping

from tunesmith.expert.model.kernel import TemplateDraft
from tunesmith.expert.moves import arithmetic, rows, settings, sharing, vectors
from tunesmith.expert.moves.convert import convert
from tunesmith.expert.moves.local import LOCAL_MOVES
from tunesmith.expert.moves.port import Context, Move
from tunesmith.problem.template import Remedy

__all__ = ["LOCAL_MOVES", "MOVES", "PARAMETERS", "REMEDIES", "Context", "Move"]

# In the order in which they are applied: later ones state conditions on what earlier ones chose.
MOVES: tuple[Move[TemplateDraft], ...] = (
    *(rows.redundant, rows.rows, sharing.beside, sharing.lanes, sharing.tasks),
    *(vectors.vector, vectors.items, sharing.split, vectors.keep, convert),
    *(arithmetic.reciprocal, arithmetic.fast, arithmetic.divide, vectors.hints, sharing.persistent),
    *(arithmetic.bake, settings.unroll, settings.bounds, settings.registers, settings.flags),
)


def _remedies() -> Mapping[str, tuple[Remedy, ...]]:
    """By name, over the moves on the model and those on the text, some of which share a name."""
    found = {move.name: move.remedies for move in MOVES}
    for move in LOCAL_MOVES:
        found[move.name] = tuple(dict.fromkeys((*found.get(move.name, ()), *move.remedies)))
    return found


REMEDIES = _remedies()
# In the order in which they are applied; those of one name have the same parameters.
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    **{move.name: move.parameters for move in MOVES},
    **{move.name: move.parameters for move in LOCAL_MOVES},
}
