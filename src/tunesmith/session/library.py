"""The library as runs and commands use it: what it has for a kernel, and what a run leaves there."""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from tunesmith.base import plugins
from tunesmith.errors import BadInput, TunesmithError, bug_text
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run.candidates import Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Primed
from tunesmith.run.files import explained, write_new
from tunesmith.run.library import (
    LibraryEntry,
    LibraryQuery,
    Provenance,
    entries_of,
    kernel_digest,
    matches,
    primed_from,
    ranked,
    record_of,
    signature_of,
    timings_of,
)
from tunesmith.run.state import State
from tunesmith.run.store import CERTIFICATE, JOURNAL, RunFolder
from tunesmith.session.library_store import PATIENCE, Note, SqliteLibrary
from tunesmith.session.problems import problem_texts, texts_of
from tunesmith.text import counted, sha256

if TYPE_CHECKING:
    from tunesmith.run.lessons import Library

T = TypeVar("T")
ASKED_AGAIN = 60.0  # seconds after which a library that could not be used is asked again
LOOKED_AT, USED = 40, 3  # runs
_unusable: dict[str, float] = {}  # libraries that could not be used, and until when they are let alone


# -- opening -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(config: RunConfig, patience: float = PATIENCE) -> Iterator[Library]:
    """In a folder, or what a plugin has at the URL of another scheme."""
    place = config.library_dir
    scheme, mark, _ = place.partition("://")
    if mark and not plugins.is_known("libraries", scheme):
        hint = "name a folder, or install a plugin that opens it"
        raise BadInput(f"nothing here opens a library at {scheme}://, as library_dir says", hint=hint)
    library: Library
    if mark:
        library = plugins.load("libraries", scheme)(place, patience)
    else:
        library = SqliteLibrary(Path(place), patience)
    try:
        yield library
    finally:
        library.close()


def is_on(config: RunConfig) -> bool:
    return config.library and bool(config.library_dir)


def consult(config: RunConfig, say: Note, ask: Callable[[Library], T], otherwise: T) -> T:
    """What a library says to a run, which goes on without it: that is said once, and not tried at every
    step."""
    place = config.library_dir
    if not is_on(config) or time.monotonic() < _unusable.get(place, 0.0):
        return otherwise
    try:
        with opened(config, patience=0.0) as library:
            return ask(library)
    except TunesmithError as error:
        _unusable[place] = time.monotonic() + ASKED_AGAIN
        then = f" ({error.hint})" if error.hint else ""
        say(f"going on without the library: {error}{then}")
    except Exception as error:  # whatever others have written into it, the run goes on
        _unusable[place] = time.monotonic() + ASKED_AGAIN
        say(f"going on without the library, by a bug in Tunesmith: {bug_text(error)}")
    return otherwise


def finding(config: RunConfig) -> tuple[bool, str, str]:
    """For the doctor: whether it can be used, in words, and what would mend it."""
    if not config.library:
        return True, "switched off", ""
    try:
        with opened(config, patience=0.0) as library:
            return True, f"{library.where}, {counted(library.count(), 'template')}", ""
    except TunesmithError as error:
        return False, str(error), error.hint or ""


# -- what it has for a kernel --------------------------------------------------------------------------------


def matching(library: Library, problem: Problem, note: Note) -> list[LibraryEntry]:
    """Templates of this very kernel, the best first."""
    found = library.entries(note, LibraryQuery(kernel=kernel_digest(problem)))
    return ranked([entry for entry in found if matches(entry, problem)], problem)


def alike(library: Library, problem: Problem, note: Note) -> list[LibraryEntry]:
    """Templates of the same operator, called in the same way, whose text was another."""
    found = library.entries(note, LibraryQuery(operator=problem.name))
    return ranked([entry for entry in found if entry.signature == signature_of(problem)], problem)


def lessons_for(problem: Problem, device: str, config: RunConfig, say: Note) -> str:
    """What earlier runs teach whoever plans; empty with --no-library."""
    from tunesmith.run.lessons import told

    def ask(library: Library) -> str:
        return told(problem, device, library.entries(say, LibraryQuery()), library.lessons(say))

    return consult(config, say, ask, "")


def to_begin_from(
    problem: Problem, template: Template | None, config: RunConfig, say: Note
) -> Sequence[LibraryEntry]:
    """Templates of the library that a run may begin from; where there is none, or it may not, why."""
    if template is not None:
        hint = "leave out --template or --from-library"
        raise BadInput("the template is given (--template), and none is taken from the library", hint=hint)
    if not config.library:
        hint = "leave one of them out"
        raise BadInput("the library is switched off, and --from-library needs it", hint=hint)
    with opened(config) as library:
        found = matching(library, problem, say)
        if not found and (found := alike(library, problem, say)):
            say(f"the library has no template of this text of {problem.name}: one of another text is tried")
    if not found:
        fault = f"the library has no template of {problem.name}'s kernel"
        hint = "leave --from-library out: the run keeps there what it finds"
        raise BadInput(fault, where=library.where, hint=hint)
    alone = [entry for entry in found if not entry.headers]  # a round's template is one text
    if not alone:
        fault = f"{found[0].name} of the library has headers of its own, and a round's template cannot"
        raise BadInput(fault, hint=f"search it by itself: tunesmith retune {found[0].name} --problem PROBLEM")
    return alone


def stored_priors(
    problem: Problem, template: Template | None, device: Device, config: RunConfig, say: Note
) -> Callable[[Collection[str]], list[tuple[bool, Primed]]]:
    """What others' runs found, in a library that is shared: of the same code first, then of the same
    operator; each with whether its device was another. The user's own are found in the folder of runs: what
    was tuned elsewhere on this machine, for whatever purpose, is no prior unless it is named."""

    def ask(library: Library, here: Collection[str]) -> list[tuple[bool, Primed]]:
        if not library.is_shared:
            return []
        kernel, signature = kernel_digest(problem), signature_of(problem)
        runs = library.runs(say, LibraryQuery(kernel=kernel))
        runs += library.runs(say, LibraryQuery(operator=problem.name))
        wanted = {run.id: run for run in runs if run.signature == signature and run.id not in here}
        nearest = sorted(wanted.values(), key=lambda run: (run.kernel != kernel, run.device != device.name))
        found: list[tuple[bool, Primed]] = []
        for run in nearest[:LOOKED_AT]:
            primed = primed_from(run, library.timings(run.id), problem, template, device.name)
            if primed is not None:
                found.append((run.device != device.name, primed))
            if len(found) == USED:
                break
        return found

    nothing: list[tuple[bool, Primed]] = []
    return lambda here: consult(config, say, lambda library: ask(library, here), nothing)


# -- what a run leaves there ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class StoredRun:
    run: str
    timings: int  # that it has
    new: int  # of these, those that the library did not have
    names: tuple[str, ...]  # of its templates that won

    def lines(self, where: str) -> list[str]:
        found = f"{counted(self.timings, 'timing')} in {where}, {self.new} of them new"
        return [*(f"stored as {name}" for name in self.names), found]


def keep_run(
    config: RunConfig, folder: RunFolder, problem: Problem, templates: Templates, state: State
) -> list[str]:
    """What is said of the library when a run is delivered. It may fail, the run may not."""
    if state.started is None or not (state.settings.library and is_on(config)):
        return []
    later = f"; put it in later: tunesmith library add {shlex.quote(str(folder.path))}"
    try:
        with opened(config) as library:
            stored = store_run(library, folder, problem, templates, state)
    except TunesmithError as error:
        return [f"not stored: {error}{later}"]
    except Exception as error:
        return [f"not stored, by a bug in Tunesmith: {bug_text(error)}"]
    return stored.lines(library.where)[: None if library.is_shared else len(stored.names)]


def store_run(
    library: Library, folder: RunFolder, problem: Problem, templates: Templates, state: State
) -> StoredRun:
    """Its timings; of one that has ended its templates that won, and what did not pay. The same once more
    changes nothing."""
    assert state.started is not None
    journal = folder.path / JOURNAL
    with explained("read the run", folder.path):
        files = problem_texts(texts_of(folder, state.started))
        date = datetime.fromtimestamp(journal.stat().st_mtime, UTC).isoformat(timespec="seconds")
        certificate = folder.path / CERTIFICATE
        digest = sha256(certificate.read_bytes()) if certificate.is_file() else ""
    said = Provenance(date, _who(), platform.node(), folder.path.resolve().name, digest)
    record, (timings, texts) = record_of(problem, state, said), timings_of(problem, state, templates)
    new = library.record(record, timings, texts) if timings else 0
    # A path says something here alone.
    origin = record.about if library.is_shared else str(folder.path.resolve())
    won = entries_of(problem, state, templates, files, date, origin)
    for entry in won:
        library.add(replace(entry, run=record.id, certificate=digest))
    if state.stopped is not None and any(c.drafted for c in state.candidates):
        from tunesmith.run.lessons import lessons_of

        if (learned := lessons_of(problem, state, date)) is not None:
            library.learn(learned)
    return StoredRun(record.id, len(timings), new, tuple(entry.name for entry in won))


def add_run(library: Library, path: Path) -> StoredRun:
    """A run by its folder, whatever it was told of libraries; of one that has not ended, what it measured."""
    from tunesmith.session.problems import refuse_broken, state_and_templates

    folder = RunFolder.open(path)
    state, templates = state_and_templates(folder)
    refuse_broken(state, path)
    return store_run(library, folder, templates.problem, templates, state)


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        return str(os.getuid())


def export(entry: LibraryEntry, out: Path) -> list[Path]:
    """The template as a file, and its own headers beside it; never over anything that is there."""
    for name, _ in entry.headers:
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts:
            raise BadInput(f"the template includes {name!r}, which lies outside its own folder")
    files = {out: entry.template} | {out.parent / name: text for name, text in entry.headers}
    there = [str(path) for path in files if os.path.lexists(path)]
    if there:
        raise BadInput(f"{', '.join(there)} would be overwritten", hint="choose another name with --out")
    with explained("write the template", out, instead="another file with --out"):
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_new(path, text.encode())
    return list(files)
