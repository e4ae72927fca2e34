"""One session of a run: begun or taken up from its journal, carried as far as this machine can, delivered."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tunesmith import backends
from tunesmith.errors import BadInput, DeviceMissing, Interrupted, WaitingForModel
from tunesmith.lab import sanitizing
from tunesmith.lab.builders import BuildSurveyor
from tunesmith.lab.lab import SEED_BITS, LabSettings, LocalLab
from tunesmith.lab.serving import BinaryStore
from tunesmith.problem.codec import encode
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, configs_of
from tunesmith.run import trust
from tunesmith.run.budget import KERNEL_ROUNDS, SEVERAL_EVALS
from tunesmith.run.candidates import Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Primed, Protected, Settings, Started
from tunesmith.run.inbox import FolderInbox
from tunesmith.run.library import LibraryEntry, LibraryTemplate, ranked
from tunesmith.run.loop import Loop
from tunesmith.run.ports import Inbox, Listener, write_down
from tunesmith.run.state import State, apply, protections
from tunesmith.run.store import JOURNAL, CeilingsCache, FileJournal, FolderTexts, RunFolder, SqliteCache
from tunesmith.run.talking import STOPPED, Talking
from tunesmith.search import check_name, searcher
from tunesmith.session import certificates, library, machine, problems
from tunesmith.session.problems import LoadedProblem
from tunesmith.session.run_result import Run, as_it_stands, deliver
from tunesmith.session.strategies import casting, wishes
from tunesmith.session.workplace import WorkerSource, Workplace, one_thread

if TYPE_CHECKING:
    from tunesmith.lab.pool import LabPool
    from tunesmith.session.several import Post

UNLIMITED = 256  # spaces up to this size have no budget unless the user sets one
DEFAULT_EVALS = 200
MODEL_ROUNDS = 8  # refactorings, where models decide on them
Priors = Callable[[Device], tuple[Primed, ...]]
Sources = Sequence[WorkerSource]
Known = tuple[machine.LocalDevices, Templates, "tuple[Post, ...]"] | None


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


def begin(
    given: RunInput, config: RunConfig, out: Path | None, listener: Listener, priors: Priors = no_priors
) -> Run:
    """`priors`: what is known of templates like it, for the device that is chosen."""
    with machine.workers_of(config, listener.say) as sources:
        return _begun(given, config, out, listener, priors, sources)


def _begun(
    given: RunInput,
    config: RunConfig,
    out: Path | None,
    listener: Listener,
    priors: Priors,
    sources: Sources,
) -> Run:
    problem, template = given.problem.definition, given.template
    if template is not None and given.authors.get(""):
        template = replace(template, is_foreign=True)
    prompts = casting.checked_prompts(config, template, listener.note)
    if config.plain and not casting.is_for_expert(problem):
        fault = f"--plain rewrites a kernel for the expert, which does not read {problem.kernel.language}"
        raise BadInput(fault, hint="leave out --plain")
    check_name(config.search)
    with machine.temporary_scratch() as scratch:
        place, local, wanted = machine.place_to_time(problem.kernel.language, config, scratch, sources[0])
        spec = place.spec
        device = machine.choose_device(local, wanted)
        feasible = len(configs_of(problem, template, device)) if template is not None else None
        compiler = machine.choose_compiler(problem, template, device, place, listener.note)
        posts = _several(config, sources, place, compiler) if not device.absent else ()
        watched = sanitizing.note_of(place.sanitizers(), config.sandbox, device)
    notes = (*casting.launch_notes(problem, device), watched)
    for note in (*notes, *local.notes):
        listener.say(f"note: {note}")
    primed = priors(device)
    entries = ranked(given.library, problem, device.name)[:1]
    if config.prior:
        primed += tuple(Primed(f"{e.name} of the library, on {e.device}", e.rows, e.best) for e in entries)
    runs, wait = Path(config.runs), config.wait
    folder = RunFolder.create(out, wait) if out else RunFolder.create_next(runs, problem.name, wait)
    try:
        stored = problems.keep(folder, *given.problem, template)
        stored |= {f"{problems.PROMPT}{role}": folder.put(text.encode()) for role, text in prompts.items()}
        learned = library.lessons_for(problem, device.name, config, listener.say) if prompts else ""
        stored |= {problems.LESSONS: folder.put(learned.encode())} if learned else {}
        beside = {own: folder.put(other.source.encode()) for own, other in given.beside.items()}
        stored |= {f"{problems.BESIDE}{own}": digest for own, digest in beside.items()}
        stored |= {f"{problems.LIBRARY}{e.name}": folder.put(encode(LibraryTemplate.of(e))) for e in entries}
        stored |= {f"{problems.MEASURED}{n}": folder.put(t.encode()) for n, t in given.measured.items()}
        if spec.startswith("replay:"):
            stored[problems.RECORDING] = folder.put(Path(spec.partition(":")[2]).read_bytes())
        started = Started(
            problem=problem.name,
            files=tuple(stored.items()),
            template=problems.TEMPLATE + template.path if template is not None else "",
            backend=spec.partition(":")[0],
            device=device,
            settings=_settings(config, device, feasible, sources, posts),
            versions=backends.versions(backends.kind(spec)),
            compiler=compiler,
            priors=len(primed),
            origin=given.origin,
            notes=notes,
            salt=secrets.randbits(SEED_BITS),
            protection=local.protection,
            authors=tuple(given.authors.items()),
            weights=tuple((w.name, w.weight) for w in problem.workloads),
        )
        journal = folder.journal()
        state = apply(State(), journal.append(started))
        if config.model and _reaches_further(config.model):
            trust.remember_begun(folder.path / JOURNAL)
        for prior in primed:
            state = write_down(prior, state, journal, listener)
        journal.close()
    except BaseException:
        folder.discard()
        folder.unlock()
        raise
    templates = Templates(problem, device, template, FolderTexts(folder), beside, given.authors)
    return _execute(folder, config, listener, sources, (local, templates, posts))


def _several(
    config: RunConfig,
    sources: Sources,
    place: Workplace,
    compiler: str,
    state: State | None = None,
    say: Callable[[str], None] = lambda _words: None,
) -> tuple[Post, ...]:
    """The devices that are meant, where they are several; else nothing."""
    if not (config.workers or config.ray or config.device or (state is not None and state.enlisted)):
        return ()
    from tunesmith.session import several  # which few runs need

    return several.posts_for(config, sources, place, compiler, state, say)


def _settings(
    config: RunConfig,
    device: Device,
    feasible: int | None,
    sources: Sources,
    posts: Sequence[Post] = (),
) -> Settings:
    """`feasible` is None where templates are still to be written."""
    builders = machine.builder_count(device, config.builders, sources[0])
    if posts:
        from tunesmith.session.several import builders_at  # which few runs need

        builders = max(len(posts), sum(builders_at(posts, config.builders, sources).values()))
    evals = config.evals
    if evals is None and config.time is None and config.device_seconds is None:
        if feasible is None:
            evals = SEVERAL_EVALS if config.strategy == "template" else None
        elif feasible > UNLIMITED and config.search != "exhaustive":
            evals = DEFAULT_EVALS
    rounds = config.rounds
    if rounds is None and config.model:
        rounds = MODEL_ROUNDS if config.strategy == "template" else KERNEL_ROUNDS
    return Settings(
        search=config.search,
        evals=evals,
        seconds=config.time,
        seed=config.seed,
        ahead=machine.built_ahead(device, builders),
        use_cache=config.cache,
        prune=config.prune,
        steer=config.steer,
        profile="counters" if config.counters else "static",
        models=config.model,
        rounds=rounds,
        device_seconds=config.device_seconds,
        moves=wishes.moves_named(config.moves),
        checks_best=True,
        tokens=config.tokens,
        dollars=config.money,
        strategy=wishes.named(config.strategy),
        linear=config.linear,
        library=config.library,
        ceilings=config.ceilings,
        plain=config.plain,
    )


# -- going on -------------------------------------------------------------------------------------------


def resume(path: Path, config: RunConfig, listener: Listener) -> Run:
    folder = RunFolder.open(path, config.wait)
    with machine.workers_of(config, listener.say) as sources:
        folder.lock()
        return _execute(folder, config, listener, sources, None)


def _execute(
    folder: RunFolder, config: RunConfig, listener: Listener, sources: Sources, known: Known = None
) -> Run:
    """Do what is left of a run whose folder we hold, and let go of it. What was read already is not read
    again."""
    folder.elsewhere = config.elsewhere
    for note in config.notes:
        listener.say(f"note: {note}")
    try:
        _record(folder, config)  # a folder that cannot be written is told of before anybody is asked
        return _continue(folder, config, listener, sources, known)
    except WaitingForModel as waiting:
        go_on = f"then go on with: {folder.go_on}"
        hint = f"{waiting.hint}; {go_on}" if waiting.hint else go_on
        return as_it_stands(folder, WaitingForModel(waiting.message, hint=hint, awaits=waiting.awaits))
    except DeviceMissing as missing:
        hint = missing.hint or f"go on where it is: {folder.go_on}"
        gone = DeviceMissing(missing.message, hint=hint, where=missing.where)
        run = as_it_stands(folder, gone)
        if run.result.so_far is None:
            raise gone from missing  # there is nothing to show beside it
        return run
    except KeyboardInterrupt as error:
        hint = f"go on with: {folder.go_on}"
        how = str(error) or "interrupted"
        raise Interrupted(f"{how}; nothing is lost", where=str(folder.path), hint=hint) from error
    finally:
        try:
            _record(folder, config)
        finally:
            folder.unlock()


def _record(folder: RunFolder, config: RunConfig) -> None:
    """By the journal: what was said before this process began is in it as well."""
    if config.record:
        casting.record(Path(config.record), problems.state_of(folder))


def _continue(
    folder: RunFolder, config: RunConfig, listener: Listener, sources: Sources, known: Known
) -> Run:
    local, templates, posts = known or (None, None, ())
    journal = folder.journal()
    records = list(journal.read())  # by the journal that goes on from there
    if templates is None:
        state, templates = problems.state_and_templates(folder, records)
    else:
        state = problems.state_of(folder, records)
    problems.refuse_broken(state, folder.path)
    problem, started = templates.problem, state.started
    assert started is not None, "a run that can be read has begun"
    if len(state.primed) < started.priors:
        hint = "start it again with the same command"
        raise BadInput("this run was killed before it had begun", where=str(folder.path), hint=hint)
    if state.stopped is not None:
        journal.close()
        folder.remove_scratch()  # which a process leaves that is killed after its last event
        return deliver(folder, templates, state, config)
    if known is None and started.settings.models != config.model and (models := started.settings.models):
        asked = {"model": models} if _reaches_further(models) else {}
        trust.refuse_strangers(folder.path / JOURNAL, asked, f"give --model {shlex.quote(models)}, or ")
    if started.settings.drafts > 1:
        fault = f"this run was begun with {started.settings.drafts} drafts a round, and a round has one"
        raise BadInput(fault, where=str(folder.path), hint="start it again")
    certificates.take_back(folder)
    inbox = FolderInbox(folder.path)
    if (waiting := inbox.waiting()) or state.instructed:
        from tunesmith.run.instructions import going_on  # which few runs need

        for told in going_on(waiting, state):
            state = write_down(told, state, journal, listener)
            inbox.drop(told.id)
    cast = replace(casting.of_run(folder, started, config, listener), inbox=inbox)
    if state.open_request is not None:  # first, and what follows from it: for that no device need be here
        talk = casting.talking(problem, templates, state, cast)
        while (said := talk.next_event(state)) is not None:
            state = write_down(said, state, journal, listener)
    scratch = folder.fresh_scratch()
    try:
        spec = problems.spec_of(folder, started)
        at = Workplace(spec, scratch, config.sandbox, sources[0])
        if local is None and len(sources) > 1:
            from tunesmith.session.several import still_there

            sources = still_there(config, sources, at, state, listener.say)
            at = replace(at, source=sources[0])
        if local is None:
            local = machine.look(at)
            for note in local.notes:
                listener.say(f"note: {note}")
        local = replace(local, spec=spec)
        if local.protection and (had := protections(state)) and local.protection != had[-1]:
            state = write_down(Protected(local.protection), state, journal, listener)
        own = (config.builders, at, listener.note)
        place = machine.place_for(state, problem, templates, local, *own)
        if place.attached is not None:
            state = write_down(place.attached, state, journal, listener)
        posts = tuple(post.at(at) for post in posts)
        if not (posts or place.missing):
            posts = _several(config, sources, at, state.compiler, state, listener.say)
        if posts:
            from tunesmith.session.several import enlisted

            posts, state = enlisted(posts, state, journal, listener)
            place = replace(place, device=posts[0].device)
        templates = templates.on(place.device)
        talk = casting.talking(problem, templates, state, cast)
        own_parts = (problem, templates, place.device, at, config, journal, listener, talk)
        active = ActiveRun(*own_parts, folder, inbox, posts, sources)
        if place.missing:
            gone = DeviceMissing(place.missing, hint=f"go on where there is one: {folder.go_on}")
            return as_it_stands(folder, active.survey(state, gone))
        state = active.search(state)
        if state.stopped is None:
            raise KeyboardInterrupt(STOPPED)
    finally:
        journal.close()
        folder.remove_scratch()
    return deliver(folder, templates, state, config)


@dataclass(frozen=True)
class ActiveRun:
    """What both ways to go on with a run need."""

    problem: Problem
    templates: Templates
    device: Device
    place: Workplace
    config: RunConfig
    journal: FileJournal
    listener: Listener
    talk: Talking
    store: BinaryStore | None = None
    inbox: Inbox | None = None
    posts: tuple[Post, ...] = ()  # where several devices measure
    sources: Sources = ()

    def search(self, state: State) -> State:
        settings = state.settings
        use_cache = settings.use_cache and self.config.cache
        with ExitStack() as opened:
            cache = SqliteCache(self.config.cache_file, self.listener.note) if use_cache else None
            if cache is not None:
                opened.callback(cache.close)
            host = None
            if sanitizing.is_watched_twice(self.device):
                from tunesmith.session.stand_in import stand_in  # which only GPUs need

                host = stand_in().watch_for(self.problem, self.device, self.place.scratch, self.place.sandbox)
                if host is not None:
                    opened.callback(host.close)
            compiler, salt = state.compiler.partition(" ")[0], state.started.salt if state.started else 0
            builders = self._builder_count()
            own_lab = LabSettings(settings.seed, builders, compiler, salt, settings.seconds)
            known = [*([state.baseline.outcome] if state.baseline else []), *state.outcomes]
            note, folder = self.listener.note, Path(self.config.cache_dir)
            stored = CeilingsCache(folder, note) if use_cache or settings.ceilings else None
            options: dict[str, Any] = {"progress": note, "ceilings": stored, "store": self.store}
            options |= {"beside": host, "counters": settings.profile == "counters"}
            options["extra"] = state.extended.cases if state.extended else ()
            lab: LocalLab | LabPool
            if self.posts:
                from tunesmith.session.several import make_pool  # which few runs need

                own = (self.config, self.problem, self.posts, own_lab, known, self.sources)
                lab = make_pool(*own, state.compiler, self.listener.say, **options)
            else:
                options |= {"settings": own_lab, "cache": cache, "known": known}
                lab = machine.make_lab(self.problem, self.device, self.place, **options)
            opened.callback(lab.close)
            for source in self.sources:
                opened.callback(source.close)  # first: threads of the lab may wait for one that is lost
            # The built-in authors leave values out, and heed no words beyond that.
            about = (self.problem, self.templates, settings, lab, searcher(settings.search))
            loop = Loop(*about, self.talk, self.journal, self.listener, False, self.inbox, False)
            if settings.steer:
                lab.prepare_profiles()  # the clock of the journal starts when the loop reads it
            opened.enter_context(one_thread())
            return loop.run()

    def survey(self, state: State, missing: DeviceMissing) -> DeviceMissing:
        """What can be done without the device; what then is missing, in words."""
        from tunesmith.run.surveying import Survey  # which few runs need
        from tunesmith.session.stand_in import stand_in

        own = (self.device, self._builder_count(), state.compiler)
        talks = (self.talk, self.journal, self.listener)
        salt = state.started.salt if state.started else 0
        lab = LabSettings(state.settings.seed, self._builder_count(), salt=salt)
        place = (self.place.scratch, lab, self.place.sandbox)
        about = (self.problem, self.device, *place, self.listener.note)
        with (
            closing(machine.make_builders(self.place, *own)) as builders,
            closing(stand_in().rehearsal(*about)) as rehearsal,
        ):
            surveyor = BuildSurveyor(self.problem, self.device, builders)
            parts = (self.problem, self.templates, state.settings, surveyor, searcher("random"))
            state = Survey(*parts, *talks, rehearse=rehearsal).run()
        return rehearsal.told(missing, state)

    def _builder_count(self) -> int:
        return machine.builder_count(self.device, self.config.builders, self.place.source)


def _reaches_further(models: str) -> bool:
    from tunesmith.models import reaching  # which a run without models need not load

    return bool(reaching(models))
