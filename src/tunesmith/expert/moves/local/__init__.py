"""The local moves, in the order in which they are applied."""

from __future__ import annotations

from tunesmith.expert.moves.local.block import LocalBlock
from tunesmith.expert.moves.local.bounds import LocalBounds
from tunesmith.expert.moves.local.fast import LocalFast
from tunesmith.expert.moves.local.flags import LocalFlags
from tunesmith.expert.moves.local.port import LocalDraft, LocalMove, start
from tunesmith.expert.moves.local.registers import LocalRegisters
from tunesmith.expert.moves.local.restrict import Restrict
from tunesmith.expert.moves.local.site import Site, find_site
from tunesmith.expert.moves.local.text import template_text
from tunesmith.expert.moves.local.unroll import LocalUnroll

__all__ = ["LOCAL_MOVES", "LocalDraft", "LocalMove", "Site", "find_site", "start", "template_text"]

LOCAL_MOVES: tuple[LocalMove, ...] = (
    LocalBlock(),
    Restrict(),
    LocalUnroll(),
    LocalFast(),
    LocalBounds(),
    LocalRegisters(),
    LocalFlags(),
)
