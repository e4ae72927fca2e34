"""Going on with a run, from its journal, as far as this machine can take it; and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith import casting, delivering, library, machine, registry, strategies
from tunesmith.caches import CeilingsCache, SqliteCache
from tunesmith.config import RunConfig
from tunesmith.core.candidates import Templates
from tunesmith.core.codec import decode
from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput, DeviceMissing, Interrupted, WaitingForModel
from tunesmith.core.events import Started
from tunesmith.core.library import LibraryTemplate
from tunesmith.core.ports import Listener, write_down
from tunesmith.core.problem import Problem
from tunesmith.core.report import Report
from tunesmith.core.reporting import build_report
from tunesmith.core.state import State, fold
from tunesmith.core.talking import Talking
from tunesmith.machine import Here
from tunesmith.problems import KEPT, PROMPT, reload, spec_of, templates_of
from tunesmith.store import FileJournal, RunFolder


@dataclass(frozen=True)
class Finished:
    report: Report
    folder: Path
    go_on: str  # what to type, where it is not finished
    missing: DeviceMissing | WaitingForModel | None = None  # why it goes no further here
    library: tuple[str, ...] = ()  # what has become of its templates there


def execute(folder: RunFolder, config: RunConfig, listener: Listener, here: Here | None = None) -> Finished:
    """Do what is left of a run whose folder we hold, and let go of it."""
    try:
        _record(folder, config)  # a folder that cannot be written is told of before anybody is asked
        return _go_on(folder, config, listener, here)
    except WaitingForModel as waiting:
        go_on = f"then go on with: {folder.go_on}"
        hint = f"{waiting.hint}; {go_on}" if waiting.hint else go_on
        return _standing(folder, WaitingForModel(waiting.message, hint=hint, awaits=waiting.awaits))
    except DeviceMissing as missing:
        finished = _standing(folder, missing)
        if finished.report.so_far is None:
            raise  # there is nothing to show beside it
        return finished
    except KeyboardInterrupt as error:
        go_on = f"go on with: {folder.go_on}"
        raise Interrupted("interrupted; nothing is lost", where=str(folder.path), hint=go_on) from error
    finally:
        try:
            _record(folder, config)
        finally:
            folder.unlock()


def _standing(folder: RunFolder, why: DeviceMissing | WaitingForModel) -> Finished:
    """Of a run that goes no further here: the report as it is, and the best template as a file."""
    state = fold(folder.journal().read())
    delivering.keep_unfinished(folder, reload(folder, state.started)[0], state)
    return Finished(delivering.as_it_stands(folder), folder.path, folder.go_on, why)


def _record(folder: RunFolder, config: RunConfig) -> None:
    """By the journal: what was said before this process began is in it as well."""
    if config.record:
        casting.record(Path(config.record), fold(folder.journal().read()))


def _go_on(folder: RunFolder, config: RunConfig, listener: Listener, here: Here | None) -> Finished:
    journal = folder.journal()
    state = fold(journal.read())
    templates = templates_of(folder, state)
    problem, started = templates.problem, state.started
    assert started is not None, "a run that can be read has begun"
    if len(state.primed) < started.priors:
        raise BadInput(
            "this run was killed before it had begun",
            where=str(folder.path),
            hint="start it again with the same command",
        )
    if state.stopped is not None:
        journal.close()
        folder.remove_scratch()  # which a process leaves that is killed after its last event
        return _delivered(folder, problem, templates, state, config)
    cast = _cast(folder, started, config, listener)
    state = _talked(casting.talking(problem, templates, state, cast), state, journal, listener)
    scratch = folder.fresh_scratch()
    try:
        spec = spec_of(folder, started)
        here = machine.look(spec, scratch) if here is None else replace(here, spec=spec)
        place = machine.place_for(state, problem, templates, here, config.builders, scratch, listener.note)
        if place.attached is not None:
            state = write_down(place.attached, state, journal, listener)
        templates = templates.on(place.device)
        talk = casting.talking(problem, templates, state, cast)
        run = _Run(problem, templates, place.device, spec, scratch, config, journal, listener, talk)
        if place.missing:
            hint = f"go on where there is one: {folder.go_on}"
            state = run.survey(state)
            delivering.keep_unfinished(folder, problem, state)
            surveyed = delivering.with_place(folder, problem, build_report(problem, state))
            return Finished(surveyed, folder.path, folder.go_on, DeviceMissing(place.missing, hint=hint))
        state = run.search(state)
    finally:
        journal.close()
        folder.remove_scratch()
    return _delivered(folder, problem, templates, state, config)


def _delivered(
    folder: RunFolder, problem: Problem, templates: Templates, state: State, config: RunConfig
) -> Finished:
    report = delivering.deliver(folder, problem, templates, state)
    told = library.keep_winners(config, folder, problem, templates, state)
    return Finished(report, folder.path, folder.go_on, library=tuple(told))


def _cast(folder: RunFolder, started: Started, config: RunConfig, listener: Listener) -> casting.Cast:
    files, settings = dict(started.files), started.settings
    named = ((role, f"{PROMPT}{role}") for role in strategies.roles_of(settings.strategy))
    prompts = {role: folder.get(files[name]).decode() for role, name in named if name in files}
    kept = [folder.get(digest) for name, digest in files.items() if name.startswith(KEPT)]
    return casting.Cast(
        settings.models,
        prompts,
        folder.path,
        config.wait,
        config.reply_seconds,
        listener.say,
        strategy=settings.strategy,
        kept=decode(kept[0], LibraryTemplate) if kept else None,
    )


def _talked(talk: Talking, state: State, journal: FileJournal, listener: Listener) -> State:
    """What is open with a model comes first, and what follows from it: for that no device need be here."""
    if state.open_request is None:
        return state
    while (said := talk.next_event(state)) is not None:
        state = write_down(said, state, journal, listener)
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
        ceilings = use_cache or settings.ceilings
        kept = CeilingsCache(Path(self.config.cache_dir), self.listener.note) if ceilings else None
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
