"""The moves: what turns performance choices of a kernel into parameters of a template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tunesmith.expert.model.kernel import TemplateDraft
from tunesmith.expert.moves import instructions, local_moves, sharing, vectors
from tunesmith.expert.moves.blocking import blocking
from tunesmith.expert.moves.knobs import knobs
from tunesmith.expert.moves.local_draft import LocalDraft
from tunesmith.expert.moves.port import Context, Move
from tunesmith.problem.template import Remedy

__all__ = ["LOCAL_MOVES", "MOVES", "PARAMETERS", "REMEDIES", "Context", "Move", "is_of"]

# In the order in which they are applied: later ones state conditions on what earlier ones chose.
MOVES: tuple[Move[TemplateDraft], ...] = (
    *(sharing.redundant, sharing.rows, sharing.beside, sharing.lanes, sharing.tasks),
    *(vectors.vector, vectors.items, sharing.split, vectors.keep, blocking),
    *(instructions.convert, instructions.reciprocal, instructions.fast, instructions.divide),
    *(vectors.hints, sharing.persistent),
    *(instructions.bake, instructions.unroll, instructions.bounds),
    *(instructions.registers, instructions.flags),
)
LOCAL_MOVES: tuple[Move[LocalDraft], ...] = (
    *(local_moves.block, knobs, local_moves.restrict, local_moves.unroll, local_moves.fast),
    *(local_moves.bounds, local_moves.registers, local_moves.flags),
)
_EVERY: tuple[Move[Any], ...] = (*MOVES, *LOCAL_MOVES)
# By name, in the order in which they are applied. A move on the model and one on the text may share a name:
# those have the same parameters.
PARAMETERS: Mapping[str, tuple[str, ...]] = {move.name: move.parameters for move in _EVERY}
REMEDIES: Mapping[str, tuple[Remedy, ...]] = {
    name: tuple(dict.fromkeys(remedy for move in _EVERY if move.name == name for remedy in move.remedies))
    for name in PARAMETERS
}


def is_of(move: str, parameter: str) -> bool:
    """Whether a parameter of a template is the move's; those of knobs end with names of the source."""
    own = PARAMETERS.get(move, ())
    return parameter.rstrip("_") in own or (move == knobs.name and parameter.startswith(f"{own[0]}_"))
