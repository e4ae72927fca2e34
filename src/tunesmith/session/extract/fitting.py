"""Expressions over sizes fitted to numbers that were seen: the simplest that gives every one of them.

`rows`, `rows * d`, `rows * (d // 2)`, `ceildiv(n, 256)`: candidates are tried in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement

from tunesmith.space.expr import Undefined, parse

_FACTORS = (2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_BLOCKS = (256, 128, 512, 1024, 64, 32, 16, 8, 4, 2)
_MOST_NAMES = 8
Column = Sequence[int]  # a number for each launch that was seen


def fit(target: Column, sizes: Mapping[str, Column], *, constant_first: bool = False) -> str | None:
    """The simplest expression over sizes whose value is `target` at every launch; None: there is none.

    `constant_first`: a number that never changes is taken for itself, as of blocks, not for a size that it
    happens to be equal to.
    """
    if not target:
        return None
    constant = str(target[0]) if len(set(target)) == 1 else None
    if constant is not None and (constant_first or target[0] in (0, 1)):
        return constant
    return next((text for text in _candidates(sizes) if _gives(text, sizes, target)), constant)


def fit_extent(limits: Column, sizes: Mapping[str, Column], grain: int = 1) -> str | None:
    """The same where what was seen is rounded up to a multiple of `grain`, as allocators do."""
    if not limits or any(limit <= 0 for limit in limits):
        return None
    for text in _candidates(sizes):
        values = _values(text, sizes, len(limits))
        if values is not None and all(
            value == limit or (0 < value < limit and -(-value // grain) * grain == limit)
            for value, limit in zip(values, limits, strict=True)
        ):
            return text
    return None


def _candidates(sizes: Mapping[str, Column]) -> Iterator[str]:
    """The simplest first; of two that are alike the one whose sizes change."""
    names = sorted(sizes, key=lambda name: (len(set(sizes[name])) == 1, list(sizes).index(name)))[
        :_MOST_NAMES
    ]
    yield from names
    for one, other in combinations(names, 2):
        yield f"{one} * {other}"
    for one in names:
        yield from (f"{one} * {factor}" for factor in _FACTORS)
        yield from (f"{one} // {factor}" for factor in _FACTORS)
    for one in names:
        yield from (f"ceildiv({one}, {block})" for block in _BLOCKS)
        yield f"{one} + 1"
        yield f"{one} - 1"
    for one, other in combinations(names, 2):
        yield f"{one} + {other}"
        yield f"{one} - {other}"
        yield f"{other} - {one}"
        yield f"{one} // {other}"
        yield f"{other} // {one}"
        yield f"ceildiv({one}, {other})"
        yield f"ceildiv({other}, {one})"
    for one, other in combinations(names, 2):
        for factor in _FACTORS[:4]:
            yield f"{one} * {other} * {factor}"
            yield f"{one} * ({other} // {factor})"
            yield f"{other} * ({one} // {factor})"
        yield from (f"ceildiv({one} * {other}, {block})" for block in _BLOCKS)
    for three in combinations(names, 3):
        yield " * ".join(three)
    for three in combinations_with_replacement(names, 3):
        if len(set(three)) > 1:
            yield f"({three[0]} + {three[1]}) * {three[2]}"
    for three in combinations(names, 3):
        yield from (f"ceildiv({' * '.join(three)}, {block})" for block in _BLOCKS)
    for four in combinations(names, 4):
        yield " * ".join(four)
    for one in names:
        for least in (1024, 512, 256, 128, 64, 32):
            yield f"min({one}, {least})"
            yield from (f"min({one} // {factor}, {least})" for factor in _FACTORS[:4])
            yield f"min(round_up({one}, 32), {least})"


def _gives(text: str, sizes: Mapping[str, Column], target: Column) -> bool:
    return _values(text, sizes, len(target)) == list(target)


def _values(text: str, sizes: Mapping[str, Column], count: int) -> list[int] | None:
    expr = parse(text)
    used = expr.names
    found = []
    for at in range(count):
        try:
            found.append(expr.evaluate({name: sizes[name][at] for name in used}))
        except Undefined:
            return None
    return found
