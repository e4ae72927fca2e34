"""A comparison of strategies as it is answered: what its runs say together, and what keeps it waiting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tunesmith.cli.mcp.answers import ArmAnswer, ComparedAnswer, foreign, foreign_lines
from tunesmith.cli.mcp.mailbox import check_models, check_run
from tunesmith.deliver.compared import limits
from tunesmith.deliver.comparing import schedule
from tunesmith.deliver.comparison import RUNS
from tunesmith.errors import WaitingForModel
from tunesmith.run.store import PLAN, RunFolder, begun
from tunesmith.session.comparison import Compared, read_plan


def check_comparison(folder: Path, permitted: Sequence[str]) -> str:
    """The models of one that somebody else may have planned, and of its runs, which lie in its folder."""
    if not (folder / PLAN).is_file():
        return ""  # whoever goes on with it says what is missing
    plan = read_plan(RunFolder(folder))
    check_models(plan.model, permitted)
    for item in schedule(plan):
        path = folder / RUNS / item.place
        if begun(path):
            check_run(path, permitted)
    return plan.model


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
    waiting = tuple(str(path) for path, error in found.troubles if isinstance(error, WaitingForModel))
    told = limits(result)
    lines = [
        *map(_arm_line, arms),
        *told,
        *troubles,
        f"the whole report: {found.folder / 'compare.md'}",
        *(f"{path} waits for an answer" for path in waiting),
        *([f"next: {_next_step(found, waiting)}"] if troubles else []),
    ]
    told_lines = foreign_lines(told), troubles, runs, foreign_lines(lines)
    return ComparedAnswer(str(found.folder), arms, *told_lines, waiting)


def _next_step(found: Compared, waiting: Sequence[str]) -> str:
    go_on = f"go on with compare, resume={found.folder}"
    if not waiting:
        return go_on
    return f"for each run that waits read its request with next_request, answer it with reply; then {go_on}"


def _arm_line(arm: ArmAnswer) -> str:
    head = f"{arm.strategy} at {arm.problem}: {arm.runs} of {arm.planned} runs count"
    if arm.mean is None:
        return head
    span = f" ({arm.interval[0]:.2f} to {arm.interval[1]:.2f})" if arm.interval is not None else ""
    worst = f", the worst {arm.worst:.2f}×" if arm.worst is not None else ""
    return f"{head}, {arm.successes} of them faster; mean {arm.mean:.2f}×{span}, verified{worst}"
