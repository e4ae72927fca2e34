"""What a call of the interface is given: settings, problems and runs, and what they may be named by."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, TypedDict, Unpack

from tunesmith.errors import BadInput
from tunesmith.run.chain import ALONE
from tunesmith.run.config import Budget, RunConfig, resolve
from tunesmith.run.report import Report
from tunesmith.run.store import JOURNAL, RunFolder, newest_run
from tunesmith.session import certificates
from tunesmith.session.problems import LoadedProblem as Problem
from tunesmith.session.run_result import Run, as_it_stands

PathName: TypeAlias = str | os.PathLike[str]
ProblemLike: TypeAlias = Problem | PathName  # also the path of problem.toml, or of its folder
RunLike: TypeAlias = Run | PathName  # also a run's folder


class OtherSettings(TypedDict, total=False):
    """Settings that a call may name too; None is as good as not named."""

    backend: str | None  # its name (a recording: NAME:FILE); by default the language's own
    search: str | None  # default, exhaustive, random, evolution or tpe
    seed: int | None
    cache: bool | None  # use timings of earlier runs
    prune: bool | None  # leave out what its build condemns
    steer: bool | None  # look first where the diagnosis points
    counters: bool | None  # diagnose with hardware counters
    prior: bool | None  # begin from what earlier runs found
    strategy: str | None  # template, rewrite or single
    linear: bool | None
    moves: str | None  # the expert's, that models are told of: usual, all or none
    plain: bool | None  # have a model rewrite the kernel plainly first, for the expert to read
    wait: bool | None  # for replies to a mailbox
    prompts: str | None
    record: str | None
    reply_seconds: float | None
    effort: str | None  # of models behind a network: low, medium or high
    library: bool | None  # keep winning templates in the library
    library_dir: str | None
    runs: str | None  # the folder that run folders are made in
    cache_dir: str | None
    ceilings: bool | None  # use those stored of the device even without the cache
    builders: int | None
    sandbox: str | None  # of workers: auto, required or off
    workers: str | None  # a file that says how to reach those of other hosts
    ray: str | None  # the address of a Ray cluster whose workers are used


def settings(
    *,
    device: str | None = None,
    budget: int | Budget | None = None,
    model: str | None = None,
    **others: Unpack[OtherSettings],
) -> RunConfig:
    """Everything resolved once: the call, then the environment, then `tunesmith.toml`, then defaults."""
    limits = budget if isinstance(budget, Budget) else Budget(evals=budget)
    if isinstance(limits.evals, bool) or not isinstance(limits.evals, int | None):
        fault = f"a budget is a whole number of configurations, or a Budget; got {budget!r}"
        raise BadInput(fault, hint="pass e.g. budget=50, or budget=Budget(seconds=60)")
    options = {"time": limits.seconds, "money": limits.dollars, "device": device, "model": model}
    options |= {name: getattr(limits, name) for name in ("evals", "rounds", "tokens", "device_seconds")}
    found = resolve({**others, **options})
    if not found.effort:
        return found
    from tunesmith.models import with_effort

    return replace(found, model=with_effort(found.model, found.effort))


def problem_of(given: ProblemLike) -> Problem:
    if isinstance(given, Problem):
        return given
    if isinstance(given, str | os.PathLike):
        return Problem.load(given)
    raise BadInput(
        f"a problem is a path, or made by Problem.load or Problem.build; got {given!r}",
        hint="pass the path of problem.toml or of its folder",
    )


def path_of(given: PathName | None) -> Path | None:
    return Path(given) if given is not None else None


def run_folder_of(target: ProblemLike | Run) -> Path | None:
    if isinstance(target, Run):
        return target.folder
    if isinstance(target, str | os.PathLike) and (Path(target) / JOURNAL).is_file():
        return Path(target)
    return None


def report_of(given: RunLike | Report) -> tuple[Report, str]:
    """Its report, and what it is called. A path is a run's folder or its report.json, which is read where
    the journal is not beside it."""
    if isinstance(given, Report):
        return given, given.problem
    if isinstance(given, Run):
        return given.result, str(given.folder)
    path = Path(given)
    found = certificates.read_report(path) if path.is_file() else None
    folder = path if found is None else path.parent
    if found is not None and not (folder / JOURNAL).is_file():
        return replace(found, unproven=found.unproven or ALONE), str(path)
    return as_it_stands(RunFolder.open(folder, resolve({}).wait)).result, str(path)


def loaded_run(given: RunLike | None) -> Run:
    """As it stands, finished or not, by default the newest here."""
    if isinstance(given, Run):
        return given
    config = resolve({})
    return as_it_stands(RunFolder.open(path_of(given) or newest_run(Path(config.runs)), config.wait))
