"""What stops a reading: a reason in words and the line it comes from."""

from __future__ import annotations


class OutOfReach(Exception):
    """The kernel cannot be read as tasks and steps; caught by `lift`, which makes a `Beyond` of it."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
