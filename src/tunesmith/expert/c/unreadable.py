"""What goes wrong while a source is read: a construct out of reach, or nesting beyond any real kernel's."""

from __future__ import annotations

MAX_DEPTH = 200  # of the tree; every walker stays far below Python's own limit with it


class Unreadable(Exception):
    """Why a part of the source was not understood, in words; `line` 0 where it has none."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class TooDeep(Unreadable):
    def __init__(self, line: int = 0) -> None:
        super().__init__(f"it is nested more than {MAX_DEPTH} levels deep; shorten the expression", line)
