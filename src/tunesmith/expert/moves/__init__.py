"""The moves, in files by subject: what turns choices of a kernel into parameters of a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tunesmith.expert.moves.compiler import (
    bake_sizes,
    bounds_text,
    cap_registers,
    cheapen_divisions,
    fast_text,
    flags_text,
    registers_text,
    set_launch_bounds,
    tune_build_flags,
    unroll_loops,
    unroll_text,
    use_fast_forms,
    use_reciprocals,
)
from tunesmith.expert.moves.convert import use_conversions
from tunesmith.expert.moves.knobs import open_knobs
from tunesmith.expert.moves.launch import drop_fills, fuse_loops, overlap_launches, resize_block
from tunesmith.expert.moves.memory import (
    block_registers,
    drop_redundant_loops,
    hint_caches,
    keep_rows_in_registers,
    prefetch_ring,
    restrict_pointers,
    tile_accesses,
)
from tunesmith.expert.moves.move import TURNS, Context, Move
from tunesmith.expert.moves.sharing import (
    assign_lanes,
    batch_items,
    group_tasks,
    make_persistent,
    split_tasks,
    unflatten_rows,
    vectorize_accesses,
)
from tunesmith.expert.moves.text_edits import LocalDraft
from tunesmith.expert.read.model import TemplateDraft
from tunesmith.problem.default_rules import usual_name
from tunesmith.problem.template import Remedy

__all__ = [
    "AFTERWARDS", "LOCAL_MOVES", "MOVES", "ORDER", "OWN_TEXT", "PARAMETERS", "REMEDIES", "SHARING",
    "STAY_OPEN", "Context", "Move", "exclusive_moves", "in_words", "is_of",
]  # fmt: skip

# In the order in which they are applied: later ones state conditions on what earlier ones chose.
MOVES: tuple[Move[TemplateDraft], ...] = (
    *(drop_fills, drop_redundant_loops, unflatten_rows, fuse_loops, assign_lanes, group_tasks),
    *(vectorize_accesses, batch_items, split_tasks, keep_rows_in_registers, tile_accesses),
    *(use_conversions, use_reciprocals, use_fast_forms, cheapen_divisions, hint_caches, make_persistent),
    *(block_registers, prefetch_ring, overlap_launches, bake_sizes),
    *(unroll_loops, set_launch_bounds, cap_registers, tune_build_flags),
)
LOCAL_MOVES: tuple[Move[LocalDraft], ...] = (
    *(resize_block, open_knobs, restrict_pointers, unroll_text),
    *(fast_text, bounds_text, registers_text, flags_text),
)
_EVERY: tuple[Move[Any], ...] = (*MOVES, *LOCAL_MOVES)
# By name, in the order in which they are applied. A move on the model and one on the text may share a name:
# those have the same parameters.
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    move.name: tuple(name for name, _ in move.parameters) for move in _EVERY
}
REMEDIES: Mapping[str, tuple[Remedy, ...]] = {
    name: tuple(dict.fromkeys(remedy for move in _EVERY if move.name == name for remedy in move.remedies))
    for name in PARAMETERS
}
# Values of these hang together: searched one after the other they would mislead.
SHARING = tuple(move.name for move in _EVERY if move.turn == "sharing")
AFTERWARDS = tuple(move.name for move in _EVERY if move.turn == "afterwards")  # not in the first round
STAY_OPEN = tuple(move.name for move in _EVERY if move.stays_open)  # in every round
# With nothing else known.
ORDER = tuple(dict.fromkeys(m.name for m in sorted(_EVERY, key=lambda move: TURNS.index(move.turn))))
# Of a kernel that can be read these make a template by themselves: the rest would replace the text they edit.
OWN_TEXT = (open_knobs.name,)
_ON_MODEL = {move.name for move in MOVES} - {move.name for move in LOCAL_MOVES}


def exclusive_moves(available: Sequence[str]) -> tuple[str, ...]:
    """Of the moves that apply to a kernel those that go with no other."""
    is_read = not _ON_MODEL.isdisjoint(available)
    return tuple(name for name in available if is_read and name in OWN_TEXT)


def in_words(name: str) -> str:
    """A move with what it does: the beginning of its own sentence."""
    about = next((move.about for move in _EVERY if move.name == name), "")
    first = about.split(":")[0].rstrip(".")
    return f"{name} ({first[0].lower()}{first[1:]})" if first else name


def is_of(move: str, parameter: str) -> bool:
    """Whether a parameter of a template is the move's; those of knobs end with names of the source."""
    names = PARAMETERS.get(move, ())
    is_knob = move == open_knobs.name and parameter.startswith(f"{names[0]}_")
    return is_knob or usual_name(parameter)[0] in names
