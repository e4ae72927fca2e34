"""The Python interface of studies: `bench`, `diff` and `compare`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from tunesmith.api import (
    OtherSettings,
    PathName,
    ProblemLike,
    RunLike,
    load_run,
    path_of,
    problem_of,
    report_of,
    settings,
)
from tunesmith.base.errors import BadInput
from tunesmith.base.interrupts import interrupted_once
from tunesmith.run.config import Budget
from tunesmith.run.report import Report
from tunesmith.session.problems import LoadedProblem as Problem
from tunesmith.session.progress import ListenerLike, listener_of

if TYPE_CHECKING:
    from tunesmith.plugins.studies.bench_calls import BenchResult
    from tunesmith.plugins.studies.difference import RunDifference
    from tunesmith.plugins.studies.run import Compared


def bench(
    run: RunLike | None = None, *, seconds: float = 600.0, listener: ListenerLike | None = None
) -> BenchResult:
    """Original and tuned timed where they are called, by default of the newest run; at most `seconds`.

    For CUDA: eager PyTorch, torch.compile and a CUDA graph; for OpenCL: PyOpenCL. The host's cost is apart.
    """
    from tunesmith.plugins.studies import bench_calls

    found = load_run(run)
    if not found.result.finished:
        fault = "this run is not finished, so nothing can be called yet"
        raise BadInput(fault, where=str(found.folder), hint=f"go on with: {found.resume_command}")
    with interrupted_once():
        return bench_calls.bench_run(found.folder, listener_of(listener), seconds, settings().sandbox)


def diff(before: RunLike | Report, after: RunLike | Report, *others: RunLike | Report) -> RunDifference:
    """Finished runs of one problem, workload by workload, each against the first. A path is a run's folder or
    its report.json."""
    from tunesmith.plugins.studies.difference import compare_reports

    return compare_reports([report_of(one) for one in (before, after, *others)])


def compare(
    problems: ProblemLike | Sequence[ProblemLike],
    *,
    strategies: str | Sequence[str] | None = None,
    repeats: int = 3,
    device: str | None = None,
    budget: int | Budget | None = None,
    model: str | None = None,
    listener: ListenerLike | None = None,
    out: PathName | None = None,
    **others: Unpack[OtherSettings],
) -> Compared:
    """Compare strategies on the same problems with the same budget, repeatedly; docs/compare.md says how."""
    from tunesmith.plugins.studies import run as comparison

    config = settings(device=device, budget=budget, model=model, **others)
    named = comparison.USUAL if strategies is None else strategies
    arms = named if isinstance(named, str) else ",".join(named)
    several = [problems] if isinstance(problems, Problem | str | os.PathLike) else problems
    loaded = [problem_of(problem) for problem in several]
    if not loaded:
        raise BadInput("no problem is given", hint="pass the path of a problem.toml, or several")
    with interrupted_once():
        return comparison.start_comparison(loaded, arms, repeats, config, path_of(out), listener_of(listener))


def resume_comparison(
    folder: PathName, *, listener: ListenerLike | None = None, wait: bool | None = None,
    record: str | None = None, sandbox: str | None = None, model: str | None = None,
) -> Compared:  # fmt: skip
    """Go on with a comparison as it was planned. `model`: its own, of one that was not begun here."""
    from tunesmith.plugins.studies import run as comparison

    with interrupted_once():
        return comparison.continue_comparison(
            Path(folder),
            settings(wait=wait, record=record, sandbox=sandbox, model=model),
            listener_of(listener),
        )
