"""Sizes and parameters as people read them: each name with its value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Pairs = Mapping[str, int] | Iterable[tuple[str, int]]


def named_values(values: Pairs, between: str = " ") -> str:
    """`rows=64 d=1024`; in a sentence rather with commas between."""
    pairs = values.items() if isinstance(values, Mapping) else values
    return between.join(f"{name}={value}" for name, value in pairs)
