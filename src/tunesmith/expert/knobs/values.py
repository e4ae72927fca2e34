"""The values that a knob is tried at: around today's, by its role.

Blocks may be as long as a row up to a number, `min(d, 1024)`: the number is a choice, the row is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tunesmith.expert.knobs.find import evaluate_node
from tunesmith.problem.template import Remedy
from tunesmith.space.expr import Arithmetic, FunctionCall, Node, Num, operands_of_node
from tunesmith.space.space import substitute_trees

Role = Literal["threads", "blocks", "tile", "depth", "unroll", "resident", "switch", "pad"]

FACTORS = ((1, 4), (1, 2), (1, 1), (2, 1), (4, 1))
BETWEEN = ((3, 4), (3, 2))  # for threads, where nothing asks for a power of two
UNROLLED = (1, 2, 4, 8, 16)
RESIDENT = (1, 2, 3, 4, 6, 8)
PADDING = (0, 1, 2, 4)
LARGEST = 1 << 16
ABOUT: dict[Role, str] = {
    "threads": "threads of a block along an axis",
    "blocks": "blocks of the grid along an axis",
    "tile": "what a block takes at a time",
    "depth": "an extent of loops or arrays",
    "unroll": "turns of a loop at once",
    "resident": "blocks that must fit on a multiprocessor",
    "switch": "0 or 1",
    "pad": "elements between rows of a shared array",
}


@dataclass(frozen=True)
class Bounds:
    """What is known of a knob beside its value."""

    most: int = LARGEST
    least: int = 1
    powers_only: bool = False
    warp: int = 0  # of threads, which may be one and a half times as many as well; 0: of anything else


def values_of(role: Role, today: int, bounds: Bounds) -> tuple[int, ...]:
    """In ascending order, today's among them."""
    found = {value for value in _nearby_values(role, today, bounds) if bounds.least <= value <= bounds.most}
    if bounds.powers_only and _is_power(today):
        found = {value for value in found if _is_power(value)}
    return tuple(sorted({*found, today}))


def _nearby_values(role: Role, today: int, bounds: Bounds) -> Iterable[int]:
    match role:
        case "unroll":
            return UNROLLED
        case "resident":
            return RESIDENT
        case "pad":
            return PADDING
        case "switch":
            return (0, 1)
    found = {today * up // down for up, down in FACTORS if today * up % down == 0}
    if today < 4:
        found |= {1, 2, 4}
    if role == "threads" and bounds.warp and not bounds.powers_only:
        more = {today * up // down for up, down in BETWEEN if today * up % down == 0}
        found |= {value for value in more if value % bounds.warp == 0}
    return found


def _is_power(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def knob_remedies(role: Role, name: str, today: int, *, is_shared: bool) -> list[tuple[Remedy, str]]:
    """What values of a knob may answer."""
    found: list[tuple[Remedy, str]] = []
    match role:
        case "threads":
            found += [(Remedy.BLOCK_SIZE, f"{name} != {today}")]
        case "blocks":
            found += [(Remedy.MORE_BLOCKS, f"{name} > {today}")]
        case "tile":
            found += [(Remedy.MORE_BLOCKS, f"{name} < {today}"), (Remedy.ROWS_PER_BLOCK, f"{name} > {today}")]
        case "depth":
            found += [(Remedy.ITEMS_IN_FLIGHT, f"{name} > {today}")]
        case "unroll":
            found += [(Remedy.UNROLL, f"{name} > 1")]
        case "resident":
            found += [(Remedy.LAUNCH_BOUNDS, f"{name} != {today}")]
        case "pad":
            found += [(Remedy.PAD_SHARED, f"{name} != {today}")]
    if is_shared and role in ("threads", "tile", "depth"):
        found.append((Remedy.LESS_SHARED, f"{name} < {today}"))
    return found


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
    return substitute_trees(node, dict.fromkeys(_capping_calls(node, key), key))


def _capping_calls(node: Node, key: Node) -> Iterator[FunctionCall]:
    if isinstance(node, FunctionCall) and node.function == "min" and key in node.args:
        yield node
    for child in operands_of_node(node):
        yield from _capping_calls(child, key)


def cap_values(
    key: Node, today: int, nodes: Iterable[Node], workloads: Sequence[Mapping[str, int]], bounds: Bounds
) -> tuple[int, ...]:
    """Values of a cap that the workloads come to, today's among them; in whole warps, as long as today's is.

    Where rows are shorter than today's cap, it is the longest of them that values are found around."""
    capped = [one for node in nodes for one in _capping_calls(node, key)]
    rests = [tuple(arg for arg in one.args if arg != key) for one in capped]
    longest = max((_minimum_at_sizes(rest, sizes) for rest in rests for sizes in workloads), default=today)
    top = min(today, longest)
    found = {value for value in values_of("threads", top, bounds) if value <= top or top == today}
    if bounds.warp and today % bounds.warp == 0:
        found = {value for value in found if value % bounds.warp == 0}
    seen: dict[tuple[int, ...], int] = {}
    for value in (today, *sorted(found)):
        extents = tuple(min(value, _minimum_at_sizes(rest, sizes)) for rest in rests for sizes in workloads)
        seen.setdefault(extents, value)
    return tuple(sorted(seen.values()))


def _minimum_at_sizes(nodes: Iterable[Node], sizes: Mapping[str, int]) -> int:
    """Of these at some sizes; what is not known there bounds nothing."""
    known = [value for node in nodes if (value := evaluate_node(node, sizes)) is not None]
    return min(known, default=1 << 30)


def is_cap(key: Node, nodes: Iterable[Node]) -> bool:
    return any(True for node in nodes for _ in _capping_calls(node, key))
