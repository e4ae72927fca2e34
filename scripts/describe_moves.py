"""The moves in words, from what their own files say: `python -m scripts.describe_moves docs/expert.md`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tunesmith.expert.moves import LOCAL_MOVES, MOVES, Move


def table(moves: Sequence[Move[Any]]) -> str:
    """A row for each move: what it does and its parameters."""
    lines = ["| move | what it does | parameters |", "|---|---|---|"]
    for move in moves:
        choices = "; ".join(f"`{name}`, {note}" for name, note in move.parameters) or "none"
        lines.append(f"| `{move.name}` | {move.about.rstrip('.')} | {choices} |")
    return "\n".join(lines)


def up_to_date(page: str) -> str:
    """The page with every part between marks as the moves have it now."""
    shown = {move.name for move in MOVES}
    parts = {
        "moves": table(MOVES),
        "local moves": table([move for move in LOCAL_MOVES if move.name not in shown]),
    }
    for name, text in parts.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"the page has no place for {name}, between {begin!r} and {end!r}")
        page = f"{before}{begin}{text}{end}{after}"
    return page


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(up_to_date(file.read_text(encoding="utf-8")), encoding="utf-8")
