"""The Python interface, on which the command line stands: docs/python.md shows it with examples.

Settings that are not named in a call come from the environment and `tunesmith.toml`, as for a command.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypedDict, Unpack

from tunesmith.base.errors import BadInput, TunesmithError
from tunesmith.base.interrupts import interrupted_once
from tunesmith.problem.device import Device
from tunesmith.run.config import Budget as Budget
from tunesmith.run.config import RunConfig, resolve_config
from tunesmith.run.events import Primed
from tunesmith.run.folder import JOURNAL, RunFolder, newest_run
from tunesmith.run.journal import ALONE
from tunesmith.run.report import Report as Report
from tunesmith.session import certify, runs
from tunesmith.session.certify import CertificateCheck
from tunesmith.session.problems import LoadedProblem as Problem
from tunesmith.session.problems import load_template
from tunesmith.session.progress import ListenerLike, listener_of
from tunesmith.session.progress import ProgressUpdate as ProgressUpdate
from tunesmith.session.result import Run, as_it_stands

if TYPE_CHECKING:
    from tunesmith.profiles.facts import ProfilePage
    from tunesmith.session.check import (
        CheckedProblem,
        ExplainedKernel,
        ExplainedSource,
        FoundDevices,
        TemplateMade,
    )
    from tunesmith.session.result import Exported


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
    found = resolve_config({**others, **options})
    if not found.effort:
        return found
    from tunesmith.agents.models import with_effort

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


def report_of(given: RunLike | Report) -> tuple[Report, str]:
    """Its report, and what it is called. A path is a run's folder or its report.json, which is read where
    the journal is not beside it."""
    if isinstance(given, Report):
        return given, given.problem
    if isinstance(given, Run):
        return given.result, str(given.folder)
    path = Path(given)
    found = certify.read_report(path) if path.is_file() else None
    folder = path if found is None else path.parent
    if found is not None and not (folder / JOURNAL).is_file():
        return replace(found, unproven=found.unproven or ALONE), str(path)
    return as_it_stands(RunFolder.open(folder, resolve_config({}).wait)).result, str(path)


# -- one kernel -----------------------------------------------------------------------------------------


def tune(
    problem: ProblemLike,
    *,
    template: PathName | None = None,
    device: str | None = None,
    budget: int | Budget | None = None,
    model: str | None = None,
    listener: ListenerLike | None = None,
    out: PathName | None = None,
    prior_runs: Sequence[PathName] = (),
    from_library: bool = False,
    **others: Unpack[OtherSettings],
) -> Run:
    """Make templates of the kernel, search them on the device and deliver the verified winners.

    With `template` that one is searched, and nothing is written. A `budget` that is a number counts
    configurations. `out` is the run's folder; `prior_runs` are folders of earlier ones, or T4 files. Ctrl-C
    raises `Interrupted`, and `resume` goes on.
    """
    from tunesmith.session import library, roles
    from tunesmith.session import retune as retuning

    if prior_runs and others.get("prior") is False:
        fault = (
            f"prior=False (--no-prior) ignores earlier runs, and --prior-run {prior_runs[0]} names one to use"
        )
        raise BadInput(fault, hint="leave out one of the two")
    config = settings(device=device, budget=budget, model=model, **others)
    loaded, listening, earlier = problem_of(problem), listener_of(listener), tuple(map(Path, prior_runs))
    definition, files = loaded
    if template is None and not from_library and isinstance(problem, str | os.PathLike):
        for line in retuning.format_library_offers(definition, os.fspath(problem), config, listening.say):
            listening.say(line)
    given = load_template(Path(template), definition, files) if template is not None else None
    roles.check_strategy_config(config, given is not None, bool(earlier), from_library)
    stored = library.to_begin_from(definition, given, config, listening.say) if from_library else ()
    measured = retuning.measured_files(earlier)

    def priors(chosen: Device) -> tuple[Primed, ...]:
        if not (config.prior and config.strategy == "template") and not earlier:
            return ()
        by_others = library.stored_priors(definition, given, chosen, config, listening.say)
        return retuning.priors_of(
            *(Path(config.runs), earlier, definition, given, chosen, listening.note),
            measured=measured,
            stored=by_others,
        )

    about = runs.RunInput(loaded, given, library=stored, measured=retuning.names_of(measured))
    with interrupted_once():
        return runs.begin_run(about, config, path_of(out), listening, priors)


def retune(
    target: RunLike,
    *,
    problem: ProblemLike | None = None,
    workloads: PathName | None = None,
    device: str | None = None,
    budget: int | Budget | None = None,
    listener: ListenerLike | None = None,
    out: PathName | None = None,
    **others: Unpack[OtherSettings],
) -> Run:
    """Search a stored template again, with no model: another device, another driver, other sizes.

    `target` is a run, a template file (with its `problem`) or a name in the library; `workloads` a TOML file
    whose tables take the place of the problem's.
    """
    from tunesmith.session import retune as retuning

    config = settings(device=device, budget=budget, model="", **others)
    named = os.fspath(target.folder if isinstance(target, Run) else target)
    with interrupted_once():
        return retuning.retune(
            named,
            config,
            listener_of(listener),
            problem=problem_of(problem) if problem is not None else None,
            workloads=path_of(workloads),
            out=path_of(out),
        )


def check(
    problem: ProblemLike,
    *,
    template: PathName | None = None,
    device: str | None = None,
    listener: ListenerLike | None = None,
    sanitize: bool = False,
    **others: Unpack[OtherSettings],
) -> CheckedProblem:
    """Build the problem's kernel and prove it right over the contract's edges; KernelWrong if not.
    `sanitize`: also watch it for faults that results need not show."""
    from tunesmith.session.check import check_problem

    config = settings(device=device, **others)
    with interrupted_once():
        return check_problem(problem_of(problem), path_of(template), config, listener_of(listener), sanitize)


def explain(
    problem: ProblemLike, *, device: str | None = None, backend: str | None = None
) -> ExplainedKernel:
    """What the expert reads in a kernel, and which moves apply to it. Nothing is built or run."""
    from tunesmith.session.check import explain_kernel

    return explain_kernel(problem_of(problem).definition, settings(device=device, backend=backend))


def explain_file(
    kernel_file: PathName,
    *,
    entry: str | None = None,
    defines: Mapping[str, str | int] | None = None,
    device: str | None = None,
    backend: str | None = None,
) -> ExplainedSource:
    """The same of every kernel of a source before there is a problem, or of the one that `entry` names.

    `defines` are macros that the build gives the source. Sizes are made up; nothing is built or run.
    """
    from tunesmith.session.check import explain_source, given_defines

    given = given_defines([f"{name}={value}" for name, value in (defines or {}).items()])
    return explain_source(Path(kernel_file), entry, given, settings(device=device, backend=backend))


def write_template(
    problem: ProblemLike,
    *,
    moves: Sequence[str] | None = None,
    out: PathName | None = None,
    device: str | None = None,
    backend: str | None = None,
    to: str | None = None,
    template: PathName | None = None,
) -> TemplateMade:
    """The expert's, with all moves that apply or those named; `to` another language, also of one given."""
    from tunesmith.session.check import make_template, template_in

    definition, config = problem_of(problem).definition, settings(device=device, backend=backend)
    if to is not None:
        return template_in(definition, config, to, path_of(template), path_of(out))
    wanted = tuple(moves) if moves is not None else None
    return make_template(definition, config, wanted, path_of(out))


def profile(
    target: ProblemLike | Run,
    *,
    template: PathName | None = None,
    config: Mapping[str, int] | str | None = None,
    workloads: Sequence[str] = (),
    counters: bool = True,
    remeasure: bool = False,
    device: str | None = None,
    backend: str | None = None,
    listener: ListenerLike | None = None,
    out: PathName | None = None,
) -> ProfilePage:
    """How far a kernel is from what its device can do, why, and what to do about it.

    `target` is a problem, with or without a template, or a run; `config` sets parameters of the template, or
    of that of the run's winner, the rest have their defaults. `out` is the folder for the plot.
    """
    from tunesmith.session import profile as profiling

    values = " ".join(f"{k}={v}" for k, v in config.items()) if isinstance(config, Mapping) else config
    resolved = settings(device=device, backend=backend)
    run = target.folder if isinstance(target, Run) else None
    if isinstance(target, str | os.PathLike) and (Path(target) / JOURNAL).is_file():
        run = Path(target)
    if run is not None:
        given = {"template": template, "backend": backend, "device": device}
        if flags := [flag for flag, value in given.items() if value is not None]:
            raise BadInput(
                f"a run has its own template, backend and device: {' and '.join(flags)} "
                f"{'goes' if len(flags) == 1 else 'go'} with a problem",
                where=str(run),
                hint="leave them out, or name the problem instead of the run",
            )
        looked_at = profiling.of_run(run, values)
    else:
        assert not isinstance(target, Run)
        looked_at = profiling.of_problem(problem_of(target), path_of(template), values, resolved)
    with interrupted_once():
        return profiling.profile_target(
            looked_at,
            resolved,
            listener_of(listener),
            workloads=workloads,
            counters=counters,
            remeasure=remeasure,
            out=path_of(out),
        )


def devices(backend: str | None = None) -> FoundDevices:
    """The devices that kernels can run on."""
    from tunesmith.session.check import find_devices

    return find_devices(backend)


# -- runs that are there --------------------------------------------------------------------------------


def load_run(run: RunLike | None = None) -> Run:
    """A run as it stands, finished or not, by default the newest here; nothing is changed."""
    if isinstance(run, Run):
        return run
    config = resolve_config({})
    return as_it_stands(RunFolder.open(path_of(run) or newest_run(Path(config.runs)), config.wait))


def resume(
    run: RunLike | None = None,
    *,
    listener: ListenerLike | None = None,
    wait: bool | None = None,
    record: str | None = None,
    sandbox: str | None = None,
    workers: str | None = None,
    ray: str | None = None,
    model: str | None = None,
) -> Run:
    """Go on with a run that was interrupted, exactly where it was; by default with the newest here. `model`:
    the run's own, of one that was not begun here."""
    config = settings(wait=wait, record=record, sandbox=sandbox, workers=workers, ray=ray, model=model)
    folder = run.folder if isinstance(run, Run) else path_of(run)
    with interrupted_once():
        return runs.resume(folder or newest_run(Path(config.runs)), config, listener_of(listener))


def resume_all(
    folders: Sequence[PathName],
    *,
    listener: ListenerLike | None = None,
    model: str | None = None,
    **others: Unpack[OtherSettings],
) -> list[Run | TunesmithError]:
    """Go on with several runs; what stops one does not stop the others. Each has its own folder to record."""
    config = settings(model=model, **others)
    ended: list[Run | TunesmithError] = []
    for folder in map(Path, folders):
        record = str(Path(config.record) / folder.resolve().name) if config.record else ""
        try:
            with interrupted_once():
                ended.append(runs.resume(folder, replace(config, record=record), listener_of(listener)))
        except TunesmithError as error:
            ended.append(error)
    return ended


def verify(
    certificate: RunLike,
    *,
    rerun: bool = False,
    device: str | None = None,
    listener: ListenerLike | None = None,
) -> CertificateCheck:
    """Whether what a run's certificate claims holds: by its files, or judged again on this machine."""
    path = certificate.folder if isinstance(certificate, Run) else Path(certificate)
    with interrupted_once():
        found = settings(device=device)
        return certify.verify_certificate(path, found, listener_of(listener), rerun=rerun)


def export(
    run: RunLike | Sequence[RunLike] | None = None, *, to: str, out: PathName | None = None
) -> Exported:
    """What a run delivered, by default the newest, as `tunesmith export` writes it. Several runs of one
    problem, each on another kind of device, become one artefact."""
    from tunesmith.deliver import target_named
    from tunesmith.session import result

    several = list(run) if isinstance(run, Sequence) and not isinstance(run, str) else [run]
    try:
        runs = [load_run(one) for one in several]
    except BadInput:
        target_named(to)  # a target that is not there is said first, without the languages of runs
        raise
    return result.export_runs(runs, to, path_of(out))
