"""Small fleets: plans without files, and outcomes of their cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tunesmith.plugins.fleet.plan import (
    FleetAuthor,
    FleetDevice,
    FleetPlan,
    FleetProblem,
    load_plan,
    store_plan,
)
from tunesmith.plugins.fleet.record import CellEnded, CellStanding, How, VerifiedCell
from tunesmith.run.folder import RunFolder


def plan(
    weights: Sequence[float] = (1.0, 1.0), devices: Sequence[FleetDevice] = (), hours: float = 1.0
) -> FleetPlan:
    problems = tuple(FleetProblem(f"p{n}", str(n), weight, ()) for n, weight in enumerate(weights))
    return FleetPlan(hours, problems, tuple(devices) or (FleetDevice("gpu"),), (FleetAuthor("expert"),))


def standing(
    seconds: float = 0.0, best: float = 1.0, evaluations: int = 4, **more: float | None
) -> CellStanding:
    return CellStanding(seconds, seconds, evaluations, best, **more)  # type: ignore[arg-type]


def verified(speedup: float = 2.0) -> VerifiedCell:
    return VerifiedCell(speedup, (0.9 * speedup, 1.1 * speedup), 1.5, "a winner")


def ended(cell: str, how: How, seconds: float = 0.0, slot: str = "gpu/here/0", **more: object) -> CellEnded:
    own = {"standing": standing(seconds), **more}
    return CellEnded(cell, slot, how, **own)  # type: ignore[arg-type]


def planned(plan_file: Path, folder: Path) -> Path:
    """A fleet that nobody has begun to run."""
    (folder / "objects").mkdir(parents=True)
    found, stored = load_plan(plan_file)
    store_plan(RunFolder(folder), found, stored, plan_file.read_text())
    return folder
