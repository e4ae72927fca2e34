"""The moves, one file each: what turns performance choices of a kernel into parameters of a template."""

from __future__ import annotations

from collections.abc import Mapping

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.moves.bake import Bake
from tunesmith.expert.moves.beside import Beside
from tunesmith.expert.moves.bounds import Bounds
from tunesmith.expert.moves.convert import Convert
from tunesmith.expert.moves.divide import Divide
from tunesmith.expert.moves.fast import Fast
from tunesmith.expert.moves.flags import Flags
from tunesmith.expert.moves.hints import Hints
from tunesmith.expert.moves.items import Items
from tunesmith.expert.moves.keep import Keep
from tunesmith.expert.moves.lanes import Lanes
from tunesmith.expert.moves.local import LOCAL_MOVES
from tunesmith.expert.moves.persistent import Persistent
from tunesmith.expert.moves.port import Context, Move, Refused
from tunesmith.expert.moves.reciprocal import Reciprocal
from tunesmith.expert.moves.redundant import Redundant
from tunesmith.expert.moves.registers import Registers
from tunesmith.expert.moves.rows import Rows
from tunesmith.expert.moves.split import Split
from tunesmith.expert.moves.tasks import Tasks
from tunesmith.expert.moves.unroll import Unroll
from tunesmith.expert.moves.vector import Vector

__all__ = ["LOCAL_MOVES", "MOVES", "PARAMETERS", "REMEDIES", "Context", "Move", "Refused"]

# In the order in which they are applied: later ones state conditions on what earlier ones chose.
MOVES: tuple[Move, ...] = (
    Redundant(),
    Rows(),
    Beside(),
    Lanes(),
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
    Flags(),
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
