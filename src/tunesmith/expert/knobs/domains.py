"""The values that a knob is tried at: around today's, by its role."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tunesmith.problem.template import Remedy

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
    found = {value for value in _around(role, today, bounds) if bounds.least <= value <= bounds.most}
    if bounds.powers_only and _is_power(today):
        found = {value for value in found if _is_power(value)}
    return tuple(sorted({*found, today}))


def _around(role: Role, today: int, bounds: Bounds) -> Iterable[int]:
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


def remedies(role: Role, name: str, today: int, *, is_shared: bool) -> list[tuple[Remedy, str]]:
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
