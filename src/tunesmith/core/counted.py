"""A number with its noun."""

from __future__ import annotations


def counted(number: int | float, what: str, several: str = "") -> str:
    """`1 block`, `0.5 blocks`; of another plural `several` has the word: `2 replies`."""
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{shown} {what if number == 1 else several or f'{what}s'}"
