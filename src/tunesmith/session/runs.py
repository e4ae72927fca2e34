"""One session of a run: begun or taken up from its journal, carried as far as this machine can, delivered."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tunesmith import backends
from tunesmith.base.codec import encode_json
from tunesmith.base.errors import BadInput, DeviceMissing, Interrupted, WaitingForModel
from tunesmith.lab.build import BuildSurveyor
from tunesmith.lab.judge import sanitize
from tunesmith.lab.lab import SEED_BITS, LabSettings, LocalLab
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, configs_of
from tunesmith.run import trust
from tunesmith.run.budget import KERNEL_ROUNDS, SEVERAL_EVALS
from tunesmith.run.candidates import Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.events import MovesOffered, Primed, Protected, Role, Settings, Started
from tunesmith.run.folder import (
    JOURNAL,
    CeilingsCache,
    FileJournal,
    FolderInbox,
    FolderTexts,
    RunFolder,
    SqliteCache,
)
from tunesmith.run.library import LibraryEntry, LibraryTemplate, rank_entries
from tunesmith.run.loop import Loop
from tunesmith.run.ports import Inbox, Lab, Listener, RunLog
from tunesmith.run.stages import World
from tunesmith.run.state import State, apply_record, run_protections
from tunesmith.run.talk import STOPPED, ModelDialogue
from tunesmith.search import check_name, load_searcher
from tunesmith.session import certify, library, problems, roles
from tunesmith.session import place as machine
from tunesmith.session.place import DeviceSlot, Place, WorkerSite, WorkerSource, one_thread
from tunesmith.session.problems import LoadedProblem
from tunesmith.session.result import Run, deliver_run, run_of

if TYPE_CHECKING:
    from tunesmith.lab.pool import LabPool

UNLIMITED = 256  # spaces up to this size have no budget unless the user sets one
DEFAULT_EVALS = 200
MODEL_ROUNDS = 8  # refactorings, where models decide on them
Priors = Callable[[Device], tuple[Primed, ...]]
Sources = Sequence[WorkerSource]


# -- beginning ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunInput:
    """What a run is about, as it was read."""

    problem: LoadedProblem
    template: Template | None = None  # None: still to be written
    beside: Mapping[str, Template] = field(default_factory=dict)  # given too, by the names they go by
    origin: str = ""  # what it searches again
    library: Sequence[LibraryEntry] = ()  # it begins from the one that suits the device
    authors: Mapping[str, str] = field(default_factory=dict)  # of given ones that a model once wrote
    measured: Mapping[str, str] = field(default_factory=dict)  # files of earlier measurements, name -> text


def no_priors(_device: Device) -> tuple[Primed, ...]:
    """For runs that begin from nothing."""
    return ()


def begin_run(
    given: RunInput, config: RunConfig, out: Path | None, listener: Listener, priors: Priors = no_priors
) -> Run:
    """`priors`: what is known of templates like it, for the device that is chosen."""
    with machine.workers_of(config, listener.say) as sources:
        folder, place, templates = _write_beginning(given, config, out, listener, priors, sources)
        return _go_on(folder, config, listener, sources, place, templates)


def _write_beginning(
    given: RunInput, config: RunConfig, out: Path | None, listener: Listener, priors: Priors, sources: Sources
) -> tuple[RunFolder, Place, Templates]:
    """A new folder that can be resumed, and what that would find out again."""
    problem, template = given.problem.definition, given.template
    if template is not None and given.authors.get(""):
        template = replace(template, is_foreign=True)
        given = replace(given, template=template)
    prompts = roles.checked_prompts(config, template, listener.note)
    if config.plain and not roles.is_for_expert(problem):
        fault = f"--plain rewrites a kernel for the expert, which does not read {problem.kernel.language}"
        raise BadInput(fault, hint="leave out --plain")
    check_name(config.search)
    place, feasible, notes = _choose_place(problem, template, config, sources, listener)
    primed = priors(place.device)
    entries = rank_entries(given.library, problem, place.device.name)[:1]
    if config.prior:
        primed += tuple(Primed(f"{e.name} of the library, on {e.device}", e.rows, e.best) for e in entries)
    runs, wait = Path(config.runs), config.wait
    folder = RunFolder.create(out, wait) if out else RunFolder.create_next(runs, problem.name, wait)
    try:
        say, spec = listener.say, place.workers.spec
        learned = library.lessons_for(problem, place.device.name, config, say) if prompts else ""
        stored = _store_inputs(folder, given, prompts, learned, entries, spec)
        started = Started(
            problem=problem.name,
            files=tuple(stored.items()),
            template=problems.TEMPLATE + template.path if template is not None else "",
            backend=spec.partition(":")[0],
            device=place.device,
            settings=_resolve_run_settings(config, place, feasible),
            versions=backends.package_versions(backends.find_backend_kind(spec)),
            compiler=place.compiler,
            priors=len(primed),
            origin=given.origin,
            notes=notes,
            salt=secrets.randbits(SEED_BITS),
            protection=place.here.protection,
            authors=tuple(given.authors.items()),
            weights=tuple((w.name, w.weight) for w in problem.workloads),
        )
        journal = folder.journal()
        log = RunLog(journal, apply_record(State(), journal.append(started)), listener)
        if config.model and _reaches_further(config.model):
            trust.remember_begun(folder.path / JOURNAL)
        for prior in primed:
            log.write(prior)
        journal.close()
    except BaseException:
        folder.discard()
        folder.unlock()
        raise
    beside = {name: stored[f"{problems.BESIDE}{name}"] for name in given.beside}
    templates = Templates(problem, place.device, template, FolderTexts(folder), beside, given.authors)
    return folder, place, templates


def _choose_place(
    problem: Problem, template: Template | None, config: RunConfig, sources: Sources, listener: Listener
) -> tuple[Place, int | None, tuple[str, ...]]:
    """Where a run begins, how many configurations a given template has there, and what the report says."""
    with machine.temporary_scratch() as scratch:
        workers, here, wanted = machine.place_to_time(problem.kernel.language, config, scratch, sources[0])
        device = machine.choose_device(here, wanted)
        feasible = len(configs_of(problem, template, device)) if template is not None else None
        compiler = machine.choose_compiler(problem, template, device, workers, listener.note)
        place = Place(workers, here, device, compiler, tuple(sources))
        if not device.absent:
            place = replace(place, posts=_posts_of_devices(config, place))
        watched = sanitize.note_of(workers.sanitizers(), config.sandbox, device)
    notes = (*roles.launch_notes(problem, device), watched)
    for note in (*notes, *here.notes):
        listener.say(f"note: {note}")
    return place, feasible, notes


def _store_inputs(
    folder: RunFolder,
    given: RunInput,
    prompts: Mapping[Role, str],
    learned: str,
    entries: Sequence[LibraryEntry],
    spec: str,
) -> dict[str, str]:
    """All that a run needs to go on elsewhere; name -> digest."""
    texts = {f"{problems.PROMPT}{role}": text for role, text in prompts.items()}
    texts |= {problems.LESSONS: learned} if learned else {}
    texts |= {f"{problems.BESIDE}{name}": other.source for name, other in given.beside.items()}
    texts |= {f"{problems.LIBRARY}{e.name}": encode_json(LibraryTemplate.of(e)).decode() for e in entries}
    texts |= {f"{problems.MEASURED}{name}": text for name, text in given.measured.items()}
    stored = problems.store_texts(folder, *given.problem, given.template)
    stored |= {name: folder.put(text.encode()) for name, text in texts.items()}
    if spec.startswith("replay:"):
        stored[problems.RECORDING] = folder.put(Path(spec.partition(":")[2]).read_bytes())
    return stored


def _posts_of_devices(config: RunConfig, place: Place, run: OpenRun | None = None) -> tuple[DeviceSlot, ...]:
    """The devices that are meant, where they are several; else nothing. `run`: of one that goes on."""
    if not (config.workers or config.ray or config.device or (run is not None and run.state.enlisted)):
        return ()
    from tunesmith.session import multi_device  # which few runs need

    chosen = (config, place.sources, place.workers)
    if run is None:
        return multi_device.posts_for(*chosen, place.compiler)
    return multi_device.posts_for(*chosen, run.state.compiler, run.state, run.listener.say)


def _resolve_run_settings(config: RunConfig, place: Place, feasible: int | None) -> Settings:
    """`feasible` is None where templates are still to be written."""
    builders = place.builders(config.builders)
    if place.posts:
        from tunesmith.session.multi_device import builders_at  # which few runs need

        builders = sum(builders_at(place.posts, config.builders, place.sources).values())
        builders = max(len(place.posts), builders)
    limits = config.limits
    if limits.leaves_search_open and feasible is None:
        limits = replace(limits, evals=SEVERAL_EVALS if config.strategy == "template" else None)
    elif limits.leaves_search_open and config.search != "exhaustive" and (feasible or 0) > UNLIMITED:
        limits = replace(limits, evals=DEFAULT_EVALS)
    if limits.rounds is None and config.model:
        limits = replace(limits, rounds=MODEL_ROUNDS if config.strategy == "template" else KERNEL_ROUNDS)
    return Settings(
        **asdict(limits),
        search=config.search,
        seed=config.seed,
        ahead=machine.built_ahead(place.device, builders),
        use_cache=config.cache,
        prune=config.prune,
        steer=config.steer,
        profile="counters" if config.counters else "static",
        models=config.model,
        moves=cast(MovesOffered, config.moves),
        checks_best=True,
        strategy=roles.parse_strategy(config.strategy),
        linear=config.linear,
        library=config.library,
        ceilings=config.ceilings,
        plain=config.plain,
    )


# -- going on -------------------------------------------------------------------------------------------


@dataclass
class OpenRun(RunLog):
    """A run that goes on here: what its journal comes to, and whatever is written from here on."""

    journal: FileJournal
    folder: RunFolder
    templates: Templates  # on the device in force

    @property
    def started(self) -> Started:
        assert self.state.started is not None, "a run that can be read has begun"
        return self.state.started


def open_run(folder: RunFolder, listener: Listener, templates: Templates | None = None) -> OpenRun:
    """The only fold of its journal: where events are written, the state has them."""
    journal = folder.journal()
    state, templates = problems.state_and_templates(folder, list(journal.read()), templates)
    return OpenRun(journal, state, listener, folder, templates)


def resume(path: Path, config: RunConfig, listener: Listener) -> Run:
    folder = RunFolder.open(path, config.wait)
    with machine.workers_of(config, listener.say) as sources:
        folder.lock()
        return _go_on(folder, config, listener, sources)


def _go_on(
    folder: RunFolder,
    config: RunConfig,
    listener: Listener,
    sources: Sources,
    place: Place | None = None,
    templates: Templates | None = None,
) -> Run:
    """Do what is left of a run whose folder we hold, and let go of it. `place` and `templates`: of one that
    begins."""
    folder.elsewhere = config.elsewhere
    for note in config.notes:
        listener.say(f"note: {note}")
    try:
        run = open_run(folder, listener, templates)
        _record_dialogue(run, config)  # a folder that cannot be written is told of before anybody is asked
        try:
            return _continue_run(run, config, sources, place)
        finally:
            _record_dialogue(run, config)
    except KeyboardInterrupt as error:
        how, hint = str(error) or "interrupted", f"go on with: {folder.go_on}"
        raise Interrupted(f"{how}; nothing is lost", where=str(folder.path), hint=hint) from error
    finally:
        folder.unlock()


def _record_dialogue(run: OpenRun, config: RunConfig) -> None:
    """By the journal: what was said before this process began is in it as well."""
    if config.record:
        roles.write_recording(Path(config.record), run.state)


def _continue_run(run: OpenRun, config: RunConfig, sources: Sources, place: Place | None) -> Run:
    _refuse_what_cannot_go_on(run, config, is_new=place is not None)
    if run.state.stopped is not None:
        run.folder.remove_scratch()  # which a process leaves that is killed after its last event
        return deliver_run(run.folder, run.templates, run.state, config)
    go_on = run.folder.go_on
    try:
        gone = _advance_run(run, config, sources, place)
    except WaitingForModel as waiting:
        hint = f"{waiting.hint}; then go on with: {go_on}" if waiting.hint else f"then go on with: {go_on}"
        return _as_far_as_it_went(run, WaitingForModel(waiting.message, hint=hint, awaits=waiting.awaits))
    except DeviceMissing as missing:
        hint = missing.hint or f"go on where it is: {go_on}"
        gone = DeviceMissing(missing.message, hint=hint, where=missing.where)
        found = _as_far_as_it_went(run, gone)
        if found.result.so_far is None:
            raise gone from missing  # there is nothing to show beside it
        return found
    if gone is not None:
        return _as_far_as_it_went(run, gone)
    return deliver_run(run.folder, run.templates, run.state, config)


def _as_far_as_it_went(run: OpenRun, missing: DeviceMissing | WaitingForModel) -> Run:
    return run_of(run.folder, run.templates.on(run.state.device), run.state, missing)


def _refuse_what_cannot_go_on(run: OpenRun, config: RunConfig, is_new: bool) -> None:
    journal, settings = run.folder.path / JOURNAL, run.state.settings
    problems.refuse_broken(run.state, run.folder.path)
    if len(run.state.primed) < run.started.priors:
        hint = "start it again with the same command"
        raise BadInput("this run was killed before it had begun", where=str(run.folder.path), hint=hint)
    if run.state.stopped is not None:
        return
    if not is_new and settings.models != config.model and settings.models:
        asked = {"model": settings.models} if _reaches_further(settings.models) else {}
        trust.refuse_strangers(journal, asked, f"give --model {shlex.quote(settings.models)}, or ")
    if settings.drafts > 1:
        fault = f"this run was begun with {settings.drafts} drafts a round, and a round has one"
        raise BadInput(fault, where=str(run.folder.path), hint="start it again")


def _advance_run(
    run: OpenRun, config: RunConfig, sources: Sources, place: Place | None
) -> DeviceMissing | None:
    """To its end, or as far as that goes without the device: then what is missing."""
    certify.take_back(run.folder)
    inbox = FolderInbox(run.folder.path)
    if inbox.waiting() or run.state.instructed:
        from tunesmith.run.talk import refuse_old_stops  # which few runs need

        refuse_old_stops(run, inbox)
    cast = replace(roles.of_run(run.folder, run.started, config, run.listener), inbox=inbox)
    problem = run.templates.problem
    try:
        if run.state.open_request is not None:  # first, and what follows: for that no device need be here
            talk = roles.create_talking(problem, run.templates, run.state, cast)
            while (said := talk.next_event(run.state)) is not None:
                run.write(said)
        place = _prepare_place(run, config, sources, place)
        run.templates = run.templates.on(place.device)
        talk = roles.create_talking(problem, run.templates, run.state, cast)
        return run_loop(run, place, config, talk, inbox)
    finally:
        run.journal.close()
        run.folder.remove_scratch()


def _prepare_place(run: OpenRun, config: RunConfig, sources: Sources, place: Place | None) -> Place:
    """Where the run goes on, in the scratch folder that it has there; what is new of it is written down."""
    spec, scratch = problems.spec_of(run.folder, run.started), run.folder.fresh_scratch()
    if place is None:
        workers = WorkerSite(spec, scratch, config.sandbox, sources[0])
        if len(sources) > 1:
            from tunesmith.session.multi_device import still_there

            sources = still_there(config, sources, workers, run.state, run.listener.say)
            workers = replace(workers, source=sources[0])
        place = Place(workers, machine.find_local_devices(workers), run.state.device, sources=tuple(sources))
        for note in place.here.notes:
            run.listener.say(f"note: {note}")
    place = place.at(spec, scratch)
    protection = place.here.protection
    if protection and (had := run_protections(run.state)) and protection != had[-1]:
        run.write(Protected(protection))
    place = machine.attach_run(place, run.state, run.templates, config.builders, run.listener.note)
    if place.attached is not None:
        run.write(place.attached)
    if not (place.posts or place.missing):
        place = replace(place, posts=_posts_of_devices(config, place, run))
    if place.posts:
        from tunesmith.session.multi_device import enlist_posts

        posts = enlist_posts(place.posts, run)
        place = replace(place, posts=posts, device=posts[0].device)
    return place


def run_loop(
    run: OpenRun, place: Place, config: RunConfig, talk: ModelDialogue, inbox: Inbox | None = None
) -> DeviceMissing | None:
    """To the end of the run; without its device as far as that goes: then what is missing."""
    problem, settings = run.templates.problem, run.state.settings
    rehearsal: machine.RunRehearsal | None = None
    lab: Lab
    with ExitStack() as opened:
        if place.missing:
            from tunesmith.lab.lab import OfflineLab  # which few runs need

            workers, count = place.workers, place.builders(config.builders)
            drawn = LabSettings(settings.seed, count, salt=run.started.salt)
            about = (problem, place.device, workers.scratch, drawn, workers.sandbox, run.listener.note)
            rehearsal = opened.enter_context(closing(machine.stand_in().rehearsal(*about)))
            builders = machine.make_builders(workers, place.device, count, run.state.compiler)
            lab = OfflineLab(BuildSurveyor(problem, place.device, builders), place.missing)
            opened.callback(lab.close)
            chosen = load_searcher("random")
        else:
            lab = _lab_of(run, place, config, opened)
            chosen = load_searcher(settings.search)
            opened.enter_context(one_thread())
        # The built-in authors leave values out, and heed no words beyond that.
        world = World(problem, run.templates, lab, chosen, talk, inbox, heeds_words=False)
        if rehearsal is not None:
            world.rehearse = rehearsal
        run.journal.restart_clock()
        loop = Loop(world, run)
        loop.run()
    if run.state.stopped is not None:
        return None
    if rehearsal is None or loop.blocked == STOPPED:
        raise KeyboardInterrupt(STOPPED)
    hint = f"go on where there is one: {run.folder.go_on}"
    return rehearsal.told(DeviceMissing(place.missing, hint=hint), run.state)


def _lab_of(run: OpenRun, place: Place, config: RunConfig, opened: ExitStack) -> LocalLab | LabPool:
    """What the run needs of it beside the clock, such as the device's ceilings, is measured by then."""
    problem, state, settings = run.templates.problem, run.state, run.state.settings
    use_cache, note = settings.use_cache and config.cache, run.listener.note
    cache = SqliteCache(config.cache_file, note) if use_cache else None
    if cache is not None:
        opened.callback(cache.close)
    host = None
    if sanitize.is_watched_twice(place.device):
        where = (place.device, place.workers.scratch, place.workers.sandbox)
        host = machine.stand_in().watch_for(problem, *where)
    if host is not None:
        opened.callback(host.close)
    compiler = state.compiler.partition(" ")[0]
    drawn = (settings.seed, place.builders(config.builders), compiler, run.started.salt)
    lab_settings = LabSettings(*drawn, settings.seconds)
    known = [*([state.baseline.outcome] if state.baseline else []), *state.outcomes]
    stored = CeilingsCache(Path(config.cache_dir), note) if use_cache or settings.ceilings else None
    options: machine.LabOptions = {
        "progress": note,
        "ceilings": stored,
        "counters": settings.profile == "counters",
        "extra": state.extended.cases if state.extended else (),
        "store": run.folder,
        "beside": host,
    }
    lab: LocalLab | LabPool
    if place.posts:
        from tunesmith.session.multi_device import make_pool  # which few runs need

        lab = make_pool(config, problem, place, lab_settings, known, run.listener.say, options)
    else:
        parts = (problem, place.device, place.workers)
        lab = machine.make_lab(*parts, settings=lab_settings, cache=cache, known=known, **options)
    opened.callback(lab.close)
    for source in place.sources:
        opened.callback(source.close)  # first: threads of the lab may wait for one that is lost
    if settings.steer:
        lab.prepare_profiles()
    return lab


def _reaches_further(models: str) -> bool:
    from tunesmith.agents.models import external_models  # which a run without models need not load

    return bool(external_models(models))
