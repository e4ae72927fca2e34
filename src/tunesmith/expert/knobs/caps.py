"""Blocks that are as long as a row up to a number, `min(d, 1024)`: the number is a choice, the row is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tunesmith.expert.knobs.constant import evaluated
from tunesmith.expert.knobs.domains import Bounds, values_of
from tunesmith.space.grammar import Arithmetic, FunctionCall, Node, Num, children
from tunesmith.space.settled import substituted


def cap_of(node: Node) -> tuple[FunctionCall, int] | None:
    """The `min` of a size and a number that an extent is, or is made of by a factor; and the number."""
    match node:
        case FunctionCall("min", args):
            numbers = [arg.value for arg in args if isinstance(arg, Num)]
            if len(numbers) == 1 and numbers[0] > 1:
                return node, numbers[0]
        case FunctionCall("round_up" | "max", (inner, Num())) | Arithmetic("//" | "*", inner, Num()):
            return cap_of(inner)
        case FunctionCall("max", (Num(), inner)) | Arithmetic("*", Num(), inner):
            return cap_of(inner)
    return None


def without_cap(node: Node, key: Node) -> Node:
    """What an extent comes to at most: `min(d, KEY)` as KEY."""
    return substituted(node, dict.fromkeys(_capped(node, key), key))


def _capped(node: Node, key: Node) -> Iterator[FunctionCall]:
    if isinstance(node, FunctionCall) and node.function == "min" and key in node.args:
        yield node
    for child in children(node):
        yield from _capped(child, key)


def cap_values(
    key: Node, today: int, nodes: Iterable[Node], workloads: Sequence[Mapping[str, int]], bounds: Bounds
) -> tuple[int, ...]:
    """Values of a cap that the workloads come to, today's among them; in whole warps, as long as today's is.

    Where rows are shorter than today's cap, it is the longest of them that values are found around.
    """
    capped = [one for node in nodes for one in _capped(node, key)]
    rests = [tuple(arg for arg in one.args if arg != key) for one in capped]
    longest = max((_least(rest, sizes) for rest in rests for sizes in workloads), default=today)
    top = min(today, longest)
    found = {value for value in values_of("threads", top, bounds) if value <= top or top == today}
    if bounds.warp and today % bounds.warp == 0:
        found = {value for value in found if value % bounds.warp == 0}
    seen: dict[tuple[int, ...], int] = {}
    for value in (today, *sorted(found)):
        extents = tuple(min(value, _least(rest, sizes)) for rest in rests for sizes in workloads)
        seen.setdefault(extents, value)
    return tuple(sorted(seen.values()))


def _least(nodes: Iterable[Node], sizes: Mapping[str, int]) -> int:
    """Of these at some sizes; what is not known there bounds nothing."""
    known = [value for node in nodes if (value := evaluated(node, sizes)) is not None]
    return min(known, default=1 << 30)


def is_cap(key: Node, nodes: Iterable[Node]) -> bool:
    return any(True for node in nodes for _ in _capped(node, key))
