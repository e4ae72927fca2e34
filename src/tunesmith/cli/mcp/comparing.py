"""A comparison of strategies as it is answered: what its runs say together, and what keeps it waiting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tunesmith.cli.mcp.answers import ArmAnswer, ComparedAnswer, foreign, foreign_lines
from tunesmith.cli.mcp.mailbox import check_models
from tunesmith.deliver.compared import limits
from tunesmith.deliver.comparison import RUNS
from tunesmith.run.store import PLAN
from tunesmith.session.comparison import Compared, look


def check_comparison(folder: Path, permitted: Sequence[str]) -> None:
    """The models of one that somebody else may have planned."""
    if (folder / PLAN).is_file():  # else whoever goes on with it says what is missing
        check_models(look(folder)[0].model, permitted)


def compared_answer(found: Compared) -> ComparedAnswer:
    result = found.comparison
    arms = tuple(
        ArmAnswer(
            foreign(cell.problem),
            cell.arm,
            cell.counted,
            cell.planned,
            cell.successes,
            cell.mean,
            cell.least,
            cell.interval,
        )
        for cell in result.cells
    )
    troubles = foreign_lines([f"{folder.name}: {error}" for folder, error in found.troubles])
    runs = tuple(str(found.folder / RUNS / run.planned.place) for run in result.runs)
    told = limits(result)
    lines = [
        *map(_arm_line, arms),
        *told,
        *troubles,
        f"the whole report: {found.folder / 'compare.md'}",
        *([f"next: go on with compare, resume={found.folder}"] if troubles else []),
    ]
    return ComparedAnswer(str(found.folder), arms, foreign_lines(told), troubles, runs, foreign_lines(lines))


def _arm_line(arm: ArmAnswer) -> str:
    head = f"{arm.strategy} at {arm.problem}: {arm.runs} of {arm.planned} runs count"
    if arm.mean is None:
        return head
    span = f" ({arm.interval[0]:.2f} to {arm.interval[1]:.2f})" if arm.interval is not None else ""
    worst = f", the worst {arm.worst:.2f}×" if arm.worst is not None else ""
    return f"{head}, {arm.successes} of them faster; mean {arm.mean:.2f}×{span}, verified{worst}"
