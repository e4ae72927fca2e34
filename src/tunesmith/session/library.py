"""The user's library of templates: one JSON file for each, written by finished runs. What is read is data."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tunesmith.errors import BadInput, TunesmithError, bug_text
from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run.candidates import Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.files import explained, open_plain, read_plain, write_new, write_whole
from tunesmith.run.library import (
    FORMAT,
    NAME,
    UNSAID,
    LibraryEntry,
    entries_of,
    kernel_digest,
    matches,
    ranked,
    united,
    with_author,
    with_past,
)
from tunesmith.run.state import State
from tunesmith.run.store import JOURNAL, RunFolder
from tunesmith.session.problems import problem_texts, texts_of

if TYPE_CHECKING:
    from tunesmith.run.lessons import KernelLessons

SUFFIX = ".json"
LOCK = ".lock"
LESSONS = "lessons"  # a folder
LARGEST = 16 << 20  # bytes of an entry; what is larger is none of ours
LIST = "see what there is with: tunesmith library"

Note = Callable[[str], None]


class Library:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self, note: Note = lambda _text: None, kernel: str = "") -> list[LibraryEntry]:
        """All that can be read, by name; of the others it is said why. With a kernel's digest only those that
        have it somewhere in their text: nothing else is read further."""
        found: list[LibraryEntry] = []
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            name = path.name.removesuffix(SUFFIX)
            try:
                data = self._data(name)
                if kernel.encode() in data:
                    found.append(self._entry(name, data))
            except BadInput as error:
                note(f"passed over in the library: {error}")
        return found

    def get(self, name: str) -> LibraryEntry:
        return self._entry(name, self._data(name))

    def _data(self, name: str) -> bytes:
        path = self._file(name)
        try:
            data = read_plain(path, LARGEST + 1)
        except FileNotFoundError as error:
            raise BadInput(
                f"there is no {name!r} in the library", where=str(self.folder), hint=LIST
            ) from error
        except OSError as error:
            raise BadInput(f"cannot be read: {error.strerror or error}", where=str(path)) from error
        if len(data) > LARGEST:
            raise BadInput(f"larger than {LARGEST >> 20} MiB, so no entry of ours", where=str(path))
        return data

    def _entry(self, name: str, data: bytes) -> LibraryEntry:
        path = self._file(name)
        try:
            entry = decode(data, LibraryEntry, "library entry")
        except Malformed as error:
            hint = f"remove it: tunesmith library remove {name}"
            raise BadInput(f"cannot be read: {error}", where=str(path), hint=hint) from error
        if entry.format not in (UNSAID, FORMAT) or entry.name != name:
            got = f"format {entry.format}, name {entry.name!r}"
            hint = "use the version of Tunesmith that wrote it, or remove it"
            raise BadInput(
                f"not an entry of format {FORMAT} under its own name: {got}", where=str(path), hint=hint
            )
        return with_author(entry)

    def __contains__(self, name: str) -> bool:
        return bool(NAME.fullmatch(name)) and self._file(name).is_file()

    def add(self, entry: LibraryEntry) -> None:
        """Together with what is known here already, also when several runs end at once."""
        with self._alone():
            others = self.entries()
            own = with_past(entry, others)
            same = next((other for other in others if other.name == own.name), None)
            self.put(own if same is None else united(own, same))

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor = open_plain(self.folder / LOCK, os.O_RDWR | os.O_CREAT)
        try:
            with contextlib.suppress(OSError):  # some network file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def put(self, entry: LibraryEntry) -> None:
        """Whole or not at all, whoever else writes."""
        target = self._file(entry.name)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(target, encode(entry) + b"\n")

    def remove(self, name: str) -> None:
        if name not in self:
            raise BadInput(f"there is no {name!r} in the library", where=str(self.folder), hint=LIST)
        with explained("remove it", self._file(name), instead="another library"):
            self._file(name).unlink()

    def matching(self, problem: Problem, note: Note = lambda _text: None) -> list[LibraryEntry]:
        """Templates of this very kernel, the best first."""
        found = self.entries(note, kernel_digest(problem))
        return ranked([entry for entry in found if matches(entry, problem)], problem)

    def lessons(self, note: Note = lambda _text: None) -> list[KernelLessons]:
        """All that can be read; of the others it is said why."""
        from tunesmith.run.lessons import FORMAT as LESSONS_FORMAT

        found: list[KernelLessons] = []
        for path in sorted((self.folder / LESSONS).glob(f"*{SUFFIX}")):
            try:
                found.append(_read_lessons(path))
            except (OSError, Malformed) as error:
                note(f"passed over in the library: {path.name}: {error}")
        return [one for one in found if one.format == LESSONS_FORMAT]

    def learn(self, new: KernelLessons) -> None:
        """Beside what is known of the kernel on its device, also when several runs end at once."""
        from tunesmith.run.lessons import together

        with self._alone():
            path = self.folder / LESSONS / f"{new.name}{SUFFIX}"
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(OSError, Malformed):  # what cannot be read is written anew
                new = together(new, _read_lessons(path))
            write_whole(path, encode(new) + b"\n")

    def _file(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise BadInput(f"{name!r} cannot be a name in the library", hint=LIST)
        return self.folder / f"{name}{SUFFIX}"


def _read_lessons(path: Path) -> KernelLessons:
    from tunesmith.run.lessons import KernelLessons

    return decode(read_plain(path, LARGEST), KernelLessons, "lessons")


def lessons_for(problem: Problem, device: str, config: RunConfig, note: Note) -> str:
    """What earlier runs teach whoever plans; empty with --no-library."""
    if not (config.library and config.library_dir):
        return ""
    from tunesmith.run.lessons import told

    library = Library(Path(config.library_dir))
    try:
        return told(problem, device, library.entries(note), library.lessons(note))
    except OSError as error:
        note(f"the library cannot be read: {error.strerror or error}")
        return ""


def keep_winners(
    config: RunConfig, folder: RunFolder, problem: Problem, templates: Templates, state: State
) -> list[str]:
    """What is said of the library when a run is delivered. It may fail, the run may not."""
    if state.started is None or not (state.settings.library and config.library and config.library_dir):
        return []
    library = Library(Path(config.library_dir))
    try:
        files = problem_texts(texts_of(folder, state.started))
        ended = datetime.fromtimestamp((folder.path / JOURNAL).stat().st_mtime, UTC)
        date = ended.isoformat(timespec="seconds")
        stored = entries_of(problem, state, templates, files, date, str(folder.path.resolve()))
        for entry in stored:
            library.add(entry)
        if state.stopped is not None and any(c.drafted for c in state.candidates):
            from tunesmith.run.lessons import lessons_of

            if (learned := lessons_of(problem, state, date)) is not None:
                library.learn(learned)
    except OSError as error:
        return [f"not stored: {library.folder}: {error.strerror or error}"]
    except TunesmithError as error:
        return [f"not stored: {error}"]
    except Exception as error:
        return [f"not stored, by a bug in Tunesmith: {bug_text(error)}"]
    return [f"stored as {entry.name}" for entry in stored]


def to_begin_from(
    problem: Problem, template: Template | None, config: RunConfig, note: Note
) -> Sequence[LibraryEntry]:
    """Templates of the library that a run may begin from; where there is none, or it may not, why."""
    if template is not None:
        hint = "leave out --template or --from-library"
        raise BadInput("the template is given (--template), and none is taken from the library", hint=hint)
    if not config.library:
        hint = "leave one of them out"
        raise BadInput("the library is switched off, and --from-library needs it", hint=hint)
    library = Library(Path(config.library_dir))
    found = library.matching(problem, note)
    if not found:
        fault = f"the library has no template of {problem.name}'s kernel"
        hint = "leave --from-library out: the run keeps there what it finds"
        raise BadInput(fault, where=str(library.folder), hint=hint)
    alone = [entry for entry in found if not entry.headers]  # a round's template is one text
    if not alone:
        fault = f"{found[0].name} of the library has headers of its own, and a round's template cannot"
        raise BadInput(fault, hint=f"search it by itself: tunesmith retune {found[0].name} --problem PROBLEM")
    return alone


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
