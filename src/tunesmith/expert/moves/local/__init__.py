"""The local moves, in the order in which they are applied."""

from __future__ import annotations

from tunesmith.expert.moves.local import moves
from tunesmith.expert.moves.local.port import EditSite, LocalDraft, find_site, start, template_text
from tunesmith.expert.moves.port import Move

__all__ = ["LOCAL_MOVES", "EditSite", "LocalDraft", "find_site", "start", "template_text"]

LOCAL_MOVES: tuple[Move[LocalDraft], ...] = (
    *(moves.block, moves.restrict, moves.unroll, moves.fast, moves.bounds, moves.registers, moves.flags),
)
