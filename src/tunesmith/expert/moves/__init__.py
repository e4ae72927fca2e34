"""The moves, one file each: what turns performance choices of a kernel into parameters of a template."""

from __future__ import annotations

from collections.abc import Mapping

from tunesmith.expert.model.kernel import TemplateDraft
from tunesmith.expert.moves.arithmetic import Bake, Divide, Fast, Reciprocal
from tunesmith.expert.moves.convert import Convert
from tunesmith.expert.moves.local import LOCAL_MOVES
from tunesmith.expert.moves.port import Context, Move, NotApplicable
from tunesmith.expert.moves.rows import Redundant, Rows
from tunesmith.expert.moves.settings import Bounds, FlagsMove, Registers, Unroll
from tunesmith.expert.moves.sharing import Beside, LanesMove, Persistent, Split, Tasks
from tunesmith.expert.moves.vectors import Hints, Items, Keep, Vector
from tunesmith.problem.template import Remedy

__all__ = ["LOCAL_MOVES", "MOVES", "PARAMETERS", "REMEDIES", "Context", "Move", "NotApplicable"]

# In the order in which they are applied: later ones state conditions on what earlier ones chose.
MOVES: tuple[Move[TemplateDraft], ...] = (
    Redundant(),
    Rows(),
    Beside(),
    LanesMove(),
    Tasks(),
    Vector(),
    Items(),
    Split(),
    Keep(),
    Convert(),
    Reciprocal(),
    Fast(),
    Divide(),
    Hints(),
    Persistent(),
    Bake(),
    Unroll(),
    Bounds(),
    Registers(),
    FlagsMove(),
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
