"""What a template changed in the text it goes on from, bounded: nobody reads a thousand lines of it."""

from __future__ import annotations

from difflib import unified_diff

MOST_LINES = 160
LONGEST_LINE = 200
MOST_COMPARED = 4000  # lines: beyond it a comparison takes too long


def changes(before: str, after: str, name_before: str, name_after: str) -> tuple[str, ...]:
    """A unified diff; the last line says what is left out."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > MOST_COMPARED:
        return (f"… {len(old)} lines before, {len(new)} after: too many to compare",)
    found = list(unified_diff(old, new, name_before, name_after, lineterm="", n=2))
    shown = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…" for line in found[:MOST_LINES]]
    left = len(found) - len(shown)
    return (*shown, f"… {left} more lines") if left else tuple(shown)
