"""What a user can ask of runs: check a problem, start a run, resume it, report on it; and see the devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith import backends, delivering, earlier, library, machine, registry, roles, strategies
from tunesmith.config import RunConfig
from tunesmith.core.device import Device
from tunesmith.core.errors import DeviceMissing, Interrupted, TunesmithError
from tunesmith.core.events import Primed
from tunesmith.core.ports import Listener
from tunesmith.core.problem import Problem
from tunesmith.core.space.feasible import configs_of
from tunesmith.deliver.report import report_json, report_markdown
from tunesmith.going_on import Finished, execute
from tunesmith.machine import temporary_scratch
from tunesmith.problems import Files, load_problem, load_template
from tunesmith.starting import Subject, begin
from tunesmith.store import RunFolder, newest_run


@dataclass(frozen=True)
class Checked:
    problem: Problem
    device: Device
    cases: int
    feasible: int | None  # configurations of the template, where one was given
    missing: DeviceMissing | None = None  # why the kernel was built and not run
    notes: tuple[str, ...] = ()  # on the launch


def start(
    problem: Problem,
    files: Files,
    template_path: Path | None,
    config: RunConfig,
    out: Path | None,
    listener: Listener,
    prior_runs: Sequence[Path] = (),
    from_library: bool = False,
) -> Finished:
    """`prior_runs`: earlier runs to begin from; with none, those in the user's folder of runs that fit."""
    template = load_template(template_path, problem, files) if template_path is not None else None
    strategies.check(config, template is not None, bool(prior_runs), from_library)
    kept = library.to_begin_from(problem, template, config, listener.note) if from_library else ()

    def priors(device: Device) -> tuple[Primed, ...]:
        if not (config.prior and config.strategy == "template") and not prior_runs:
            return ()
        return earlier.priors(Path(config.runs), prior_runs, problem, template, device, listener.note)

    return begin(Subject(problem, files, template, kept=kept), config, out, listener, priors)


def resume(run: Path | None, config: RunConfig, listener: Listener) -> Finished:
    folder = RunFolder.open(run or newest_run(Path(config.runs)), config.wait)
    folder.lock()
    return execute(folder, config, listener)


def resume_one(run: Path, config: RunConfig, listener: Listener) -> Finished | TunesmithError:
    """One of several: what stops it does not stop the others. A recording of each has a folder of its own."""
    record = str(Path(config.record) / run.resolve().name) if config.record else ""
    try:
        return resume(run, replace(config, record=record), listener)
    except Interrupted:
        raise
    except TunesmithError as error:
        return error


def report(run: Path | None, config: RunConfig) -> Finished:
    """The report of a run as it stands, finished or not; nothing is changed."""
    folder = RunFolder.open(run or newest_run(Path(config.runs)), config.wait)
    return Finished(delivering.as_it_stands(folder), folder.path, folder.go_on)


def check(problem_path: Path, template_path: Path | None, config: RunConfig, listener: Listener) -> Checked:
    problem, files = load_problem(problem_path)
    template = load_template(template_path, problem, files) if template_path is not None else None
    spec = backends.backend_for(problem.kernel.language, config.backend)
    with temporary_scratch() as scratch:
        here = machine.look(spec, scratch)
        device = machine.choose_device(here, config.device)
        feasible = len(configs_of(problem, template, device)) if template is not None else None
        compiler = machine.choose_compiler(problem, template, device, spec, scratch, listener.note)
        notes = roles.launch_notes(problem, device)
        if device.absent:
            built = f"{problem.name} builds with {compiler}" if compiler else f"{problem.name} builds"
            missing = DeviceMissing(
                f"{built} for {device.name}, which is not here to check it on: {here.trouble}",
                hint="run the same command where one is, or see what is missing with: tunesmith doctor",
            )
            return Checked(problem, device, 0, feasible, missing, notes)
        lab = registry.lab(
            problem,
            device,
            spec,
            scratch,
            seed=config.seed,
            builders=1,
            compiler=compiler,
            progress=listener.note,
        )
        try:
            return Checked(problem, device, lab.check(), feasible, notes=notes)
        finally:
            lab.close()


def devices(wanted: str | None) -> tuple[list[Device], list[str]]:
    """Every device of the backends usable here, and why the others are not."""
    with temporary_scratch() as scratch:
        specs = [wanted] if wanted else [kind.name for kind in backends.kinds() if not kind.from_file]
        looks = [machine.look(spec, scratch) for spec in specs]
    found = [device for here in looks for device in here.devices]
    troubles = [here.trouble for here in looks if here.trouble]
    if wanted and not found:
        raise DeviceMissing("; ".join(troubles), hint=machine.DOCTOR)
    return found, troubles


def rendered(finished: Finished, form: str) -> bytes:
    return report_json(finished.report) if form == "json" else report_markdown(finished.report).encode()
