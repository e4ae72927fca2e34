"""How the machine code of a build is read: as counts."""

from __future__ import annotations

from collections.abc import Callable

from tunesmith.profiles.facts import Instructions

# Of a build and an entry: what it consists of; or why that is not known.
ReadInstructions = Callable[[bytes, str], tuple[Instructions | None, str]]
