"""What a user can ask for: draft and check a problem, start a run, resume it, report on it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from tunesmith import __version__, casting, delivering, earlier, machine, registry
from tunesmith.config import RunConfig
from tunesmith.core.candidates import Templates
from tunesmith.core.device import Device
from tunesmith.core.dialogue import ROLES, Role
from tunesmith.core.errors import BadInput, DeviceMissing, Interrupted, TunesmithError, WaitingForModel
from tunesmith.core.events import Primed, Settings, Started
from tunesmith.core.ports import Listener
from tunesmith.core.problem import Problem
from tunesmith.core.report import Report, build_report
from tunesmith.core.space.feasible import configs_of
from tunesmith.core.state import State, apply, fold
from tunesmith.core.talking import Talking
from tunesmith.core.template import Template
from tunesmith.deliver.report import report_json, report_markdown
from tunesmith.machine import Here, temporary_scratch
from tunesmith.problems import RECORDING, TEMPLATE, keep, load_problem, load_template, reload
from tunesmith.store import (
    CeilingsCache,
    FileJournal,
    FolderTexts,
    RunFolder,
    SqliteCache,
    newest_run,
    resume_command,
)

UNLIMITED = 256  # spaces up to this size have no budget unless the user sets one
DEFAULT_EVALS = 200
MODEL_ROUNDS = 8  # refactorings, where models decide on them
PROMPT = "prompt:"  # among a run's files: the words for a role
SEVERAL_EVALS = 400  # where templates are written as the run goes on: of all of them together
LISTED = ("cuda", "opencl", "fake")  # replay has the device of its recording
PACKAGES = (
    "numpy",
    "ml_dtypes",
    "pyopencl",
    "pocl-binary-distribution",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
)


@dataclass(frozen=True)
class Finished:
    report: Report
    folder: Path
    missing: DeviceMissing | WaitingForModel | None = None  # why it goes no further here


@dataclass(frozen=True)
class Checked:
    problem: Problem
    device: Device
    cases: int
    feasible: int | None  # configurations of the template, where one was given
    missing: DeviceMissing | None = None  # why the kernel was built and not run


def start(
    problem_path: Path,
    template_path: Path | None,
    config: RunConfig,
    out: Path | None,
    listener: Listener,
    prior_runs: Sequence[Path] = (),
) -> Finished:
    """`prior_runs`: earlier runs to begin from; with none, those in the user's folder of runs that fit."""
    problem, files = load_problem(problem_path)
    template = load_template(template_path, problem, files) if template_path is not None else None
    prompts = _prompts(config, template)
    spec = registry.backend_for(problem.kernel.language, config.backend)
    registry.searcher(config.search)
    with temporary_scratch() as scratch:
        here = machine.look(spec, scratch)
        device = machine.choose_device(here, config.device)
        feasible = len(configs_of(problem, template, device)) if template is not None else None
        compiler = machine.choose_compiler(problem, template, device, spec, scratch, listener.note)
    primed: tuple[Primed, ...] = ()
    if config.prior or prior_runs:
        primed = earlier.priors(Path(config.runs), prior_runs, problem, template, device, listener.note)
    folder = RunFolder.create(out) if out else RunFolder.create_next(Path(config.runs), problem.name)
    try:
        stored = keep(folder, problem, files, template)
        stored |= {f"{PROMPT}{role}": folder.put(text.encode()) for role, text in prompts.items()}
        if spec.startswith("replay:"):
            stored[RECORDING] = folder.put(Path(spec.partition(":")[2]).read_bytes())
        started = Started(
            problem=problem.name,
            files=tuple(stored.items()),
            template=TEMPLATE + template.path if template is not None else "",
            backend=spec.partition(":")[0],
            device=device,
            settings=_settings(config, device, feasible),
            versions=versions(),
            compiler=compiler,
            priors=len(primed),
        )
        journal = folder.journal()
        state = apply(State(), journal.append(started))
        for prior in primed:
            record = journal.append(prior)
            state = apply(state, record)
            listener.event(record, state)
        journal.close()
    except BaseException:
        folder.discard()
        folder.unlock()
        raise
    return _execute(folder, config, listener, here)


def _prompts(config: RunConfig, template: Template | None) -> dict[Role, str]:
    if config.model and template is not None:
        raise BadInput(
            "with --template the template is given, and nothing is left for a model to write",
            hint="leave out --template or --model",
        )
    casting.prepare(config.model)
    return casting.prompts_for(config.model, config.prompts)


def _settings(config: RunConfig, device: Device, feasible: int | None) -> Settings:
    """`feasible` is None where templates are still to be written."""
    evals = config.evals
    if evals is None and config.time is None:
        if feasible is None:
            evals = SEVERAL_EVALS
        elif feasible > UNLIMITED and config.search != "exhaustive":
            evals = DEFAULT_EVALS
    return Settings(
        search=config.search,
        evals=evals,
        seconds=config.time,
        seed=config.seed,
        ahead=registry.built_ahead(device, registry.builder_count(device, config.builders)),
        use_cache=config.cache,
        prune=config.prune,
        steer=config.steer,
        profile="counters" if config.counters else "static",
        models=config.model,
        rounds=config.rounds if config.rounds is not None or not config.model else MODEL_ROUNDS,
        tokens=config.tokens,
        dollars=config.money,
    )


def resume(run: Path | None, config: RunConfig, listener: Listener) -> Finished:
    folder = RunFolder.open(run or newest_run(Path(config.runs)))
    folder.lock()
    return _execute(folder, config, listener)


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
    folder = RunFolder.open(run or newest_run(Path(config.runs)))
    state = fold(folder.journal().read())
    problem, template = reload(folder, state.started)
    templates = Templates(problem, state.device, template, FolderTexts(folder))
    names = delivering.file_names(problem, templates, state)
    built = build_report(problem, state, names, templates=templates)
    return Finished(delivering.with_place(folder, problem, built), folder.path)


def check(problem_path: Path, template_path: Path | None, config: RunConfig, listener: Listener) -> Checked:
    problem, files = load_problem(problem_path)
    template = load_template(template_path, problem, files) if template_path is not None else None
    spec = registry.backend_for(problem.kernel.language, config.backend)
    with temporary_scratch() as scratch:
        here = machine.look(spec, scratch)
        device = machine.choose_device(here, config.device)
        feasible = len(configs_of(problem, template, device)) if template is not None else None
        compiler = machine.choose_compiler(problem, template, device, spec, scratch, listener.note)
        if device.absent:
            built = f"{problem.name} builds with {compiler}" if compiler else f"{problem.name} builds"
            missing = DeviceMissing(
                f"{built} for {device.name}, which is not here to check it on: {here.trouble}",
                hint="run the same command where one is, or see what is missing with: tunesmith doctor",
            )
            return Checked(problem, device, 0, feasible, missing)
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
            return Checked(problem, device, lab.check(), feasible)
        finally:
            lab.close()


def devices(wanted: str | None) -> tuple[list[Device], list[str]]:
    """Every device of the backends usable here, and why the others are not."""
    with temporary_scratch() as scratch:
        looks = [machine.look(spec, scratch) for spec in ([wanted] if wanted else LISTED)]
    found = [device for here in looks for device in here.devices]
    troubles = [here.trouble for here in looks if here.trouble]
    if wanted and not found:
        raise DeviceMissing("; ".join(troubles), hint=machine.DOCTOR)
    return found, troubles


def rendered(finished: Finished, form: str) -> bytes:
    return report_json(finished.report) if form == "json" else report_markdown(finished.report).encode()


def _execute(folder: RunFolder, config: RunConfig, listener: Listener, here: Here | None = None) -> Finished:
    """Do what is left of a run whose folder we hold, and let go of it."""
    try:
        _record(folder, config)  # a folder that cannot be written is told of before anybody is asked
        return _go_on(folder, config, listener, here)
    except WaitingForModel as waiting:
        go_on = f"then go on with: {resume_command(folder.path)}"
        hint = f"{waiting.hint}; {go_on}" if waiting.hint else go_on
        return _standing(folder, config, WaitingForModel(waiting.message, hint=hint))
    except DeviceMissing as missing:
        finished = _standing(folder, config, missing)
        if finished.report.so_far is None:
            raise  # there is nothing to show beside it
        return finished
    except KeyboardInterrupt as error:
        go_on = f"go on with: {resume_command(folder.path)}"
        raise Interrupted("interrupted; nothing is lost", where=str(folder.path), hint=go_on) from error
    finally:
        try:
            _record(folder, config)
        finally:
            folder.unlock()


def _standing(folder: RunFolder, config: RunConfig, why: DeviceMissing | WaitingForModel) -> Finished:
    """Of a run that goes no further here: the report as it is, and the best template as a file."""
    state = fold(folder.journal().read())
    delivering.keep_so_far(folder, reload(folder, state.started)[0], state)
    return replace(report(folder.path, config), missing=why)


def _record(folder: RunFolder, config: RunConfig) -> None:
    """By the journal: what was said before this process began is in it as well."""
    if config.record:
        casting.record(Path(config.record), fold(folder.journal().read()))


def _go_on(folder: RunFolder, config: RunConfig, listener: Listener, here: Here | None) -> Finished:
    journal = folder.journal()
    state = fold(journal.read())
    problem, template = reload(folder, state.started)
    assert state.started is not None
    if len(state.primed) < state.started.priors:
        raise BadInput(
            "this run was killed before it had begun",
            where=str(folder.path),
            hint="start it again with the same command",
        )
    texts = FolderTexts(folder)
    templates = Templates(problem, state.device, template, texts)
    if state.stopped is not None:
        journal.close()
        folder.remove_scratch()  # which a process leaves that is killed after its last event
        return Finished(delivering.deliver(folder, problem, templates, state), folder.path)
    started = state.started
    cast = _cast(folder, started, config, listener)
    state = _talked(casting.talking(problem, templates, state, cast), state, journal, listener)
    scratch = folder.fresh_scratch()
    try:
        spec = _spec(folder, started)
        here = machine.look(spec, scratch) if here is None else replace(here, spec=spec)
        place = machine.place_for(state, problem, templates, here, config.builders, scratch, listener.note)
        if place.attached is not None:
            record = journal.append(place.attached)
            state = apply(state, record)
            listener.event(record, state)
        templates = Templates(problem, place.device, template, texts)
        talk = casting.talking(problem, templates, state, cast)
        run = _Run(problem, templates, place.device, spec, scratch, config, journal, listener, talk)
        if place.missing:
            hint = f"go on where there is one: {resume_command(folder.path)}"
            state = run.survey(state)
            delivering.keep_so_far(folder, problem, state)
            surveyed = delivering.with_place(folder, problem, build_report(problem, state))
            return Finished(surveyed, folder.path, DeviceMissing(place.missing, hint=hint))
        state = run.search(state)
    finally:
        journal.close()
        folder.remove_scratch()
    return Finished(delivering.deliver(folder, problem, templates, state), folder.path)


def _cast(folder: RunFolder, started: Started, config: RunConfig, listener: Listener) -> casting.Cast:
    files = dict(started.files)
    prompts = {
        role: folder.get(files[f"{PROMPT}{role}"]).decode() for role in ROLES if f"{PROMPT}{role}" in files
    }
    models = started.settings.models
    return casting.Cast(models, prompts, folder.path, config.wait, config.reply_seconds, listener.note)


def _talked(talk: Talking, state: State, journal: FileJournal, listener: Listener) -> State:
    """What is open with a model comes first, and what follows from it: for that no device need be here."""
    if state.open_request is None:
        return state
    while (said := talk.next_event(state)) is not None:
        record = journal.append(said)
        state = apply(state, record)
        listener.event(record, state)
    return state


@dataclass(frozen=True)
class _Run:
    """What both ways to go on with a run need."""

    problem: Problem
    templates: Templates
    device: Device
    spec: str
    scratch: Path
    config: RunConfig
    journal: FileJournal
    listener: Listener
    talk: Talking

    def search(self, state: State) -> State:
        settings = state.settings
        use_cache = settings.use_cache and self.config.cache
        cache = SqliteCache(self.config.cache_file, self.listener.note) if use_cache else None
        kept = CeilingsCache(Path(self.config.cache_dir), self.listener.note) if use_cache else None
        try:
            lab = registry.lab(
                self.problem,
                self.device,
                self.spec,
                self.scratch,
                seed=settings.seed,
                builders=registry.builder_count(self.device, self.config.builders),
                compiler=state.compiler,
                cache=cache,
                known=[*([state.baseline.outcome] if state.baseline else []), *state.outcomes],
                progress=self.listener.note,
                ceilings=kept,
                counters=settings.profile == "counters",
                extra=state.extended.cases if state.extended else (),
            )
            loop = registry.loop(
                self.problem, self.templates, settings, lab, self.journal, self.listener, self.talk
            )
            try:
                if settings.steer:
                    lab.prepare_profiles()  # the clock of the journal starts when the loop reads it
                return loop.run()
            finally:
                lab.close()
        finally:
            if cache is not None:
                cache.close()

    def survey(self, state: State) -> State:
        count = registry.builder_count(self.device, self.config.builders)
        builders = registry.builders(self.spec, self.scratch, self.device, count, state.compiler)
        try:
            return registry.survey(
                self.problem,
                self.templates,
                state.settings,
                self.device,
                builders,
                self.journal,
                self.listener,
                self.talk,
            ).run()
        finally:
            builders.close()


def _spec(folder: RunFolder, started: Started) -> str:
    recording = dict(started.files).get(RECORDING)
    return (
        f"{started.backend}:{(folder.path / 'objects' / recording).resolve()}"
        if recording
        else started.backend
    )


def versions() -> tuple[tuple[str, str], ...]:
    found = [
        ("tunesmith", __version__),
        ("python", platform.python_version()),
        ("system", platform.platform()),
    ]
    for package in PACKAGES:
        try:
            found.append((package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)
