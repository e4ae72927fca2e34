"""How far a launch must come for a reading to hold, and what stops a reading: a reason and its line."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.csource.nodes import Expr


class OutOfReach(Exception):
    """The kernel cannot be read as tasks and steps; caught by `lift`, which makes a `Beyond` of it."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(frozen=True)
class Reach:
    """An index that the source bounds: the launch must come to every value below the bound.

    `count` is how many values it comes to, over gridDim and blockDim. Where a loop `goes_on` by as many,
    these are only the values it starts from.
    """

    name: str
    bound: Expr
    count: Expr
    goes_on: bool = False
