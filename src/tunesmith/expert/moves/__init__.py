"""The moves, one file each: what turns performance choices of a kernel into parameters of a template."""

from __future__ import annotations

from collections.abc import Mapping

from tunesmith.core.profile.remedies import Remedy
from tunesmith.expert.moves.bake import Bake
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
from tunesmith.expert.moves.registers import Registers
from tunesmith.expert.moves.split import Split
from tunesmith.expert.moves.tasks import Tasks
from tunesmith.expert.moves.unroll import Unroll
from tunesmith.expert.moves.vector import Vector

__all__ = ["LOCAL_MOVES", "MOVES", "PARAMETERS", "REMEDIES", "Context", "Move", "Refused"]

# In the order in which they are applied: later ones state conditions on what earlier ones chose.
MOVES: tuple[Move, ...] = (
    Lanes(),
    Tasks(),
    Vector(),
    Items(),
    Split(),
    Keep(),
    Hints(),
    Fast(),
    Reciprocal(),
    Divide(),
    Persistent(),
    Convert(),
    Bake(),
    Unroll(),
    Bounds(),
    Registers(),
    Flags(),
)


def _joined(of: str) -> Mapping[str, tuple[str, ...]]:
    """By name, over the moves on the model and those on the text, some of which share a name."""
    found: dict[str, dict[str, None]] = {}
    for move in (*MOVES, *LOCAL_MOVES):
        found.setdefault(move.name, {}).update(dict.fromkeys(getattr(move, of)))
    return {name: tuple(values) for name, values in found.items()}


REMEDIES: Mapping[str, tuple[Remedy, ...]] = {
    name: tuple(Remedy(r) for r in values) for name, values in _joined("remedies").items()
}
PARAMETERS: Mapping[str, tuple[str, ...]] = _joined("parameters")
