"""How the machine code of a build is read: as counts, or as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tunesmith.profiles.facts import Instructions

# Of a build and an entry: what it consists of; or why that is not known.
ReadInstructions = Callable[[bytes, str], tuple[Instructions | None, str]]


@dataclass(frozen=True)
class ReadListing:
    """Reads the machine code that lines of a source became; `flags` make a build tell its lines."""

    flags: tuple[str, ...]
    # Of a build, an entry, and the first and last line: lines of text; or why there are none.
    read: Callable[[bytes, str, tuple[int, int]], tuple[list[str], str]]
