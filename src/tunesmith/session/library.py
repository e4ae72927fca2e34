"""The library as runs and commands use it: what it has for a kernel, and what a run leaves there."""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
import shlex
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from tunesmith.base import plugins
from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import BadInput, TunesmithError, bug_text
from tunesmith.base.files import explain_disk_errors, open_plain, write_new
from tunesmith.base.text import format_count, sha256_hex
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run.candidates import Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Primed
from tunesmith.run.folder import CERTIFICATE, JOURNAL, RunFolder
from tunesmith.run.library import (
    ENTRY_FORMAT,
    LESSONS_FORMAT,
    NAME,
    KernelLessons,
    LibraryEntry,
    LibraryQuery,
    Provenance,
    RunRecord,
    TimedConfig,
    entries_of,
    foreign_entry,
    foreign_lessons,
    foreign_record,
    foreign_timings,
    format_library_notes,
    is_for_problem,
    kernel_digest,
    lessons_of,
    merge_entries,
    merge_lessons,
    primed_from,
    rank_entries,
    record_of,
    signature_of,
    timings_of,
    with_past,
)
from tunesmith.run.state import State
from tunesmith.session.problems import problem_texts, texts_of

if TYPE_CHECKING:
    from tunesmith.run.library import Library


T = TypeVar("T")
Note = Callable[[str], None]
Row = tuple[Any, ...]
FILE = "library.sqlite"
SCHEMA = 1
BUSY_SECONDS = 5.0  # that SQLite itself waits for a lock
ELSEWHERE = "another library with library_dir"
LARGEST = 16 << 20  # bytes of an entry; what is larger is none of ours
MAX, MAX_BYTES = 1000, 256 << 20  # of entries or runs that are read at once
MAX_TIMINGS, LARGEST_TIMING = 20_000, 64 << 10  # of a run; bytes of one
BATCH = 500  # timings of one transaction
PATIENCE = 30.0  # seconds in which a transaction that others hold up is tried again
LONGEST_KEY = 200  # characters that something is found by; what is found is then compared in full
LIST = "see what there is with: tunesmith library"
ANYTHING = LibraryQuery()

TABLES = (
    "CREATE TABLE entries (name TEXT PRIMARY KEY, operator TEXT NOT NULL, kernel TEXT NOT NULL,"
    " device TEXT NOT NULL, document BLOB NOT NULL)",
    "CREATE INDEX entries_found ON entries (kernel, device)",
    "CREATE INDEX entries_operator ON entries (operator)",
    "CREATE TABLE lessons (name TEXT PRIMARY KEY, document BLOB NOT NULL)",
    "CREATE TABLE texts (digest TEXT PRIMARY KEY, text BLOB NOT NULL)",
    "CREATE TABLE runs (id TEXT PRIMARY KEY, operator TEXT NOT NULL, kernel TEXT NOT NULL,"
    " device TEXT NOT NULL, date TEXT NOT NULL, document BLOB NOT NULL)",
    "CREATE INDEX runs_found ON runs (kernel, device)",
    "CREATE INDEX runs_operator ON runs (operator)",
    "CREATE TABLE timings (run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, key TEXT NOT NULL,"
    " template TEXT NOT NULL, verdict TEXT NOT NULL, document BLOB NOT NULL, PRIMARY KEY (run, key))",
    f"PRAGMA user_version = {SCHEMA}",
)


class SqliteLibrary:
    """`run/library.Library` in a file."""

    def __init__(self, folder: Path, patience: float = PATIENCE) -> None:
        self.where = str(folder)
        self._folder, self._path, self._patience = folder, folder / FILE, patience
        self._connection: sqlite3.Connection | None = None
        self._not_written: BadInput | None = None  # why the file is open for reading alone
        self._lock = RLock()

    @property
    def is_shared(self) -> bool:
        """Whether others may have written to it."""
        return any(map(_is_written_by_others, (self._folder, self._path)))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    # -- the file -----------------------------------------------------------------------------------------

    @property
    def _is_there(self) -> bool:
        """Also where something else is in its way: whoever asks is to know."""
        in_the_way = self._folder.exists() and not self._folder.is_dir()
        return self._connection is not None or in_the_way or self._path.exists()

    def _read(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        if not self._is_there:
            return []
        return self._retry_transaction(
            lambda library: library.execute(sql, tuple(values)).fetchall(), "BEGIN"
        )

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return self._retry_transaction(work, "BEGIN IMMEDIATE")

    def _retry_transaction(self, work: Callable[[sqlite3.Connection], T], begin: str) -> T:
        """All of it or nothing; done again from its beginning where others were in the way."""
        with self._lock:
            for is_last in _retry_attempts(self._patience):
                try:
                    library = self._open_connection()
                    if self._not_written is not None and begin != "BEGIN":
                        raise self._not_written
                    return _run_transaction(library, work, begin)
                except sqlite3.Error as error:
                    code = getattr(error, "sqlite_errorcode", None)
                    if is_last or code not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                        raise self._explain_error(error) from error
        raise AssertionError("the last try returns or raises")

    def _open_connection(self) -> sqlite3.Connection:
        """Where nothing can be written, what is there can still be read."""
        if self._connection is not None:
            return self._connection
        options = {"timeout": BUSY_SECONDS, "isolation_level": None, "check_same_thread": False}
        try:
            with explain_disk_errors("open the library", self._path, instead=ELSEWHERE):
                self._folder.mkdir(parents=True, exist_ok=True)
                os.close(open_plain(self._path, os.O_RDWR | os.O_CREAT))
            connection = sqlite3.connect(self._path, **options)  # type: ignore[call-overload]
        except BadInput as error:
            if not self._path.exists():
                raise
            self._not_written = error
            name = f"{self._path.resolve().as_uri()}?mode=ro"
            connection = sqlite3.connect(name, uri=True, **options)  # type: ignore[call-overload]
        connection.execute("PRAGMA foreign_keys = ON")
        self._prepare_tables(connection)
        self._connection = connection
        return self._connection

    def _prepare_tables(self, library: sqlite3.Connection) -> None:
        def create(library: sqlite3.Connection) -> None:
            if not _schema_of(library):  # two at once: the second finds it done
                for sql in TABLES:
                    library.execute(sql)

        found = _schema_of(library)
        if not found:
            _run_transaction(library, create, "BEGIN IMMEDIATE")
        elif found != SCHEMA:
            fault = f"the library has schema {found}, this version of Tunesmith knows schema {SCHEMA}"
            hint = f"install the version that wrote it, or choose {ELSEWHERE}"
            raise BadInput(fault, where=self.where, hint=hint)

    def _explain_error(self, error: sqlite3.Error) -> BadInput:
        hint = "see that it can be written, and that there is room"
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            hint = "restore it from a copy, or move it away: then a new one is made"
        elif "locked" in str(error):
            hint = "another process holds it: try again when that has ended"
        return BadInput(f"the library cannot be used: {error}", where=str(self._path), hint=hint)

    # -- templates that won -------------------------------------------------------------------------------

    def entries(self, note: Note = lambda _text: None, query: LibraryQuery = ANYTHING) -> list[LibraryEntry]:
        rows = self._read(*_select_statement("entries", "name", "name", query))
        found: list[LibraryEntry] = []
        for name, document in rows:
            try:
                found.append(self._entry(name, document))
            except BadInput as error:
                note(f"passed over in the library: {error}")
        if len(rows) == MAX:
            note(f"of the library's templates the first {MAX} are looked at: say which are meant")
        wanted = (("problem", query.operator), ("kernel", query.kernel), ("device", query.device))
        return [e for e in found if all(not value or getattr(e, key) == value for key, value in wanted)]

    def get(self, name: str) -> LibraryEntry:
        rows = self._read("SELECT document FROM entries WHERE name = ?", (_check_entry_name(name),))
        if not rows:
            raise self._missing(name)
        return self._entry(name, rows[0][0])

    def __contains__(self, name: str) -> bool:
        sql = "SELECT 1 FROM entries WHERE name = ?"
        return bool(NAME.fullmatch(name)) and bool(self._read(sql, (name,)))

    def add(self, entry: LibraryEntry) -> None:
        def work(library: sqlite3.Connection) -> None:
            sql = "SELECT name, document FROM entries WHERE kernel = ? ORDER BY name LIMIT ?"
            others: list[LibraryEntry] = []
            for name, document in library.execute(sql, (_column_key(entry.kernel), MAX)).fetchall():
                with contextlib.suppress(BadInput):  # what cannot be read is no past of this
                    others.append(self._entry(name, document, as_written=True))
            new = with_past(entry, others)
            same = next((other for other in others if other.name == new.name), None)
            new = new if same is None else merge_entries(new, same)
            _upsert(library, "entries", "name", (new.name, *_keys_of(new), encode_json(new)))

        _check_entry_name(entry.name)
        self._write(work)

    def remove(self, name: str) -> None:
        sql = "DELETE FROM entries WHERE name = ?"
        _check_entry_name(name)
        if name not in self or not self._write(lambda library: library.execute(sql, (name,)).rowcount):
            raise self._missing(name)

    def _entry(self, name: str, document: bytes, as_written: bool = False) -> LibraryEntry:
        where = f"{self.where}: {name}"
        try:
            entry = decode_json(bytes(document), LibraryEntry, "library entry")
            if entry.format == ENTRY_FORMAT and entry.name == name:
                if not self.is_shared:
                    return entry
                found = foreign_entry(entry)
                return replace(found, author=entry.author) if as_written else found
        except Malformed as error:
            hint = f"remove it: tunesmith library remove {name}"
            raise BadInput(f"cannot be read: {error}", where=where, hint=hint) from error
        got = f"format {entry.format}, name {entry.name!r}"
        fault = f"not an entry of format {ENTRY_FORMAT} under its own name: {got}"
        raise BadInput(fault, where=where, hint="use the version of Tunesmith that wrote it, or remove it")

    def _missing(self, name: str) -> BadInput:
        return BadInput(f"there is no {name!r} in the library", where=self.where, hint=LIST)

    # -- what did not pay ---------------------------------------------------------------------------------

    def lessons(self, note: Note = lambda _text: None) -> list[KernelLessons]:
        found: list[KernelLessons] = []
        sql = f"SELECT name, document FROM lessons ORDER BY name LIMIT {MAX}"
        for name, document in self._read(sql):
            try:
                found.append(self._decode_lessons(document))
            except Malformed as error:
                note(f"passed over in the library: lessons {name}: {error}")
        return [one for one in found if one.format == LESSONS_FORMAT]

    def learn(self, new: KernelLessons) -> None:
        def work(library: sqlite3.Connection) -> None:
            merged = new
            sql = "SELECT document FROM lessons WHERE name = ?"
            for (document,) in library.execute(sql, (new.name,)).fetchall():
                with contextlib.suppress(Malformed):  # what cannot be read is written anew
                    merged = merge_lessons(new, self._decode_lessons(document))
            _upsert(library, "lessons", "name", (merged.name, encode_json(merged)))

        self._write(work)

    def _decode_lessons(self, document: bytes) -> KernelLessons:
        found = decode_json(bytes(document), KernelLessons, "lessons")
        return foreign_lessons(found) if self.is_shared else found

    # -- what runs measured -------------------------------------------------------------------------------

    def runs(self, note: Note = lambda _text: None, query: LibraryQuery = ANYTHING) -> list[RunRecord]:
        found: list[RunRecord] = []
        for id, document in self._read(*_select_statement("runs", "id", "date DESC, id", query)):
            try:
                run = decode_json(bytes(document), RunRecord, "run of the library")
            except Malformed as error:
                note(f"passed over in the library: run {id}: {error}")
                continue
            found.append(foreign_record(run) if self.is_shared else run)
        return found

    def timings(self, run: str) -> list[TimedConfig]:
        """Those that can be read."""
        found: list[TimedConfig] = []
        sql = "SELECT document FROM timings WHERE run = ? AND length(document) <= ?"
        for (document,) in self._read(f"{sql} ORDER BY key LIMIT ?", (run, LARGEST_TIMING, MAX_TIMINGS)):
            with contextlib.suppress(Malformed):
                found.append(decode_json(bytes(document), TimedConfig))
        return foreign_timings(found) if self.is_shared else found

    def timing_counts(self) -> dict[str, int]:
        """Of each run."""
        return dict(self._read("SELECT run, count(*) FROM timings GROUP BY run"))

    def count(self) -> int:
        """Templates that won."""
        return sum(number for (number,) in self._read("SELECT count(*) FROM entries"))

    def record(self, run: RunRecord, timings: Sequence[TimedConfig], texts: Mapping[str, str]) -> int:
        """What is said last of the run itself counts: one that was stored unfinished may have ended. Each
        batch stands alone, whatever is taken out meanwhile, and all write in one order."""
        about = (run.id, *_keys_of(run), _column_key(run.provenance.date), encode_json(run))
        named = sorted((digest, text.encode(errors="surrogatepass")) for digest, text in texts.items())
        each = "INSERT INTO timings VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        ordered = sorted(timings, key=lambda one: one.key)

        def store_batch(batch: Sequence[TimedConfig]) -> int:
            rows = [
                (run.id, t.key, t.template, "failed" if t.score is None else "ok", encode_json(t))
                for t in batch
            ]

            def work(library: sqlite3.Connection) -> int:
                _upsert(library, "runs", "id", about)
                library.executemany("INSERT INTO texts VALUES (?, ?) ON CONFLICT DO NOTHING", named)
                return library.executemany(each, rows).rowcount if rows else 0

            return self._write(work)

        return sum(
            store_batch(ordered[start : start + BATCH]) for start in range(0, len(ordered) or 1, BATCH)
        )

    def prune(self, before: str) -> int:
        def work(library: sqlite3.Connection) -> int:
            removed = library.execute("DELETE FROM runs WHERE date < ?", (before,)).rowcount
            used = "SELECT template FROM timings"
            library.execute(f"DELETE FROM texts WHERE digest NOT IN ({used})")
            return removed

        return self._write(work) if self._is_there else 0


def _select_statement(table: str, name: str, order: str, query: LibraryQuery) -> tuple[str, list[object]]:
    """The statement that finds names and documents, as many as memory holds, and its values."""
    named = {"operator": query.operator, "kernel": query.kernel, "device": query.device}
    given = {column: _column_key(value) for column, value in named.items() if value}
    wanted = " AND ".join(("length(document) <= ?", *(f"{column} = ?" for column in given)))
    total = f"sum(length(document)) OVER (ORDER BY {order}) AS total"
    inner = f"SELECT *, {total} FROM {table} WHERE {wanted}"
    sql = f"SELECT {name}, document FROM ({inner}) AS found WHERE total <= ? ORDER BY {order} LIMIT ?"
    return sql, [LARGEST, *given.values(), MAX_BYTES, MAX]


def _upsert(library: sqlite3.Connection, table: str, key: str, values: tuple[str | bytes, ...]) -> None:
    """A row whose last column is its document, which alone is changed where there is one of that key."""
    marks = ", ".join("?" * len(values))
    sql = f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET document"
    library.execute(f"{sql} = excluded.document", values)


def _keys_of(found: LibraryEntry | RunRecord) -> tuple[str, str, str]:
    return _column_key(found.problem), _column_key(found.kernel), _column_key(found.device)


def _column_key(text: str) -> str:
    """As a column holds it, which every database takes: by it something is found, no more."""
    return text.replace("\0", "").encode(errors="replace").decode()[:LONGEST_KEY]


def _check_entry_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise BadInput(f"{name!r} cannot be a name in the library", hint=LIST)
    return name


def _is_written_by_others(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return found.st_uid != os.geteuid() or bool(found.st_mode & 0o022)


def _schema_of(library: sqlite3.Connection) -> int:
    return int(library.execute("PRAGMA user_version").fetchone()[0])


def _run_transaction(library: sqlite3.Connection, work: Callable[[sqlite3.Connection], T], begin: str) -> T:
    library.execute(begin)
    try:
        found = work(library)
        library.execute("COMMIT")
    except BaseException:
        if library.in_transaction:
            library.execute("ROLLBACK")
        raise
    return found


def _retry_attempts(patience: float) -> Iterator[bool]:
    """Waits longer and longer between two tries; whether one is the last."""
    wait, end = 0.05, time.monotonic() + patience
    while time.monotonic() + wait < end:
        yield False
        time.sleep(wait)
        wait = min(2 * wait, 2.0)
    yield True


ASKED_AGAIN = 60.0  # seconds after which a library that could not be used is asked again
LOOKED_AT, USED = 40, 3  # runs
_unusable: dict[str, float] = {}  # libraries that could not be used, and until when they are let alone


# -- opening -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_library(config: RunConfig, patience: float = PATIENCE) -> Iterator[Library]:
    """In a folder, or what a plugin has at the URL of another scheme."""
    place = config.library_dir
    scheme, mark, _ = place.partition("://")
    if mark and not plugins.is_known("libraries", scheme):
        hint = "name a folder, or install a plugin that opens it"
        raise BadInput(f"nothing here opens a library at {scheme}://, as library_dir says", hint=hint)
    library: Library
    if mark:
        library = plugins.load_plugin("libraries", scheme)(place, patience)
    else:
        library = SqliteLibrary(Path(place), patience)
    try:
        yield library
    finally:
        library.close()


def is_on(config: RunConfig) -> bool:
    return config.library and bool(config.library_dir)


def consult_library(config: RunConfig, say: Note, ask: Callable[[Library], T], otherwise: T) -> T:
    """What a library says to a run, which goes on without it: that is said once, and not tried at every
    step."""
    place = config.library_dir
    if not is_on(config) or time.monotonic() < _unusable.get(place, 0.0):
        return otherwise
    try:
        with open_library(config, patience=0.0) as library:
            return ask(library)
    except TunesmithError as error:
        _unusable[place] = time.monotonic() + ASKED_AGAIN
        then = f" ({error.hint})" if error.hint else ""
        say(f"going on without the library: {error}{then}")
    except Exception as error:  # whatever others have written into it, the run goes on
        _unusable[place] = time.monotonic() + ASKED_AGAIN
        say(f"going on without the library, by a bug in Tunesmith: {bug_text(error)}")
    return otherwise


def library_status(config: RunConfig) -> tuple[bool, str, str]:
    """For the doctor: whether it can be used, in words, and what would mend it."""
    if not config.library:
        return True, "switched off", ""
    try:
        with open_library(config, patience=0.0) as library:
            return True, f"{library.where}, {format_count(library.count(), 'template')}", ""
    except TunesmithError as error:
        return False, str(error), error.hint or ""


# -- what it has for a kernel --------------------------------------------------------------------------------


def matching_entries(library: Library, problem: Problem, note: Note) -> list[LibraryEntry]:
    """Templates of this very kernel, the best first."""
    found = library.entries(note, LibraryQuery(kernel=kernel_digest(problem)))
    return rank_entries([entry for entry in found if is_for_problem(entry, problem)], problem)


def similar_entries(library: Library, problem: Problem, note: Note) -> list[LibraryEntry]:
    """Templates of the same operator, called in the same way, whose text was another."""
    found = library.entries(note, LibraryQuery(operator=problem.name))
    return rank_entries([entry for entry in found if entry.signature == signature_of(problem)], problem)


def lessons_for(problem: Problem, device: str, config: RunConfig, say: Note) -> str:
    """What earlier runs teach whoever plans; empty with --no-library."""

    def ask(library: Library) -> str:
        return format_library_notes(
            problem, device, library.entries(say, LibraryQuery()), library.lessons(say)
        )

    return consult_library(config, say, ask, "")


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
    with open_library(config) as library:
        found = matching_entries(library, problem, say)
        if not found and (found := similar_entries(library, problem, say)):
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
    return lambda here: consult_library(config, say, lambda library: ask(library, here), nothing)


# -- what a run leaves there ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class StoredRun:
    run: str
    timings: int  # that it has
    new: int  # of these, those that the library did not have
    names: tuple[str, ...]  # of its templates that won

    def lines(self, where: str) -> list[str]:
        found = f"{format_count(self.timings, 'timing')} in {where}, {self.new} of them new"
        return [*(f"stored as {name}" for name in self.names), found]


def keep_run(
    config: RunConfig, folder: RunFolder, problem: Problem, templates: Templates, state: State
) -> list[str]:
    """What is said of the library when a run is delivered. It may fail, the run may not."""
    if state.started is None or not (state.settings.library and is_on(config)):
        return []
    later = f"; put it in later: tunesmith library add {shlex.quote(str(folder.path))}"
    try:
        with open_library(config) as library:
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
    with explain_disk_errors("read the run", folder.path):
        files = problem_texts(texts_of(folder, state.started))
        date = datetime.fromtimestamp(journal.stat().st_mtime, UTC).isoformat(timespec="seconds")
        certificate = folder.path / CERTIFICATE
        digest = sha256_hex(certificate.read_bytes()) if certificate.is_file() else ""
    said = Provenance(date, _user_name(), platform.node(), folder.path.resolve().name, digest)
    record, (timings, texts) = record_of(problem, state, said), timings_of(problem, state, templates)
    new = library.record(record, timings, texts) if timings else 0
    # A path says something here alone.
    origin = record.about if library.is_shared else str(folder.path.resolve())
    won = entries_of(problem, state, templates, files, date, origin)
    for entry in won:
        library.add(replace(entry, run=record.id, certificate=digest))
    has_drafts = state.stopped is not None and any(c.drafted for c in state.candidates)
    if has_drafts and (learned := lessons_of(problem, state, date)) is not None:
        library.learn(learned)
    return StoredRun(record.id, len(timings), new, tuple(entry.name for entry in won))


def add_run(library: Library, path: Path) -> StoredRun:
    """A run by its folder, whatever it was told of libraries; of one that has not ended, what it measured."""
    from tunesmith.session.problems import refuse_broken, state_and_templates

    folder = RunFolder.open(path)
    state, templates = state_and_templates(folder)
    refuse_broken(state, path)
    return store_run(library, folder, templates.problem, templates, state)


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        return str(os.getuid())


def export_template(entry: LibraryEntry, out: Path) -> list[Path]:
    """The template as a file, and its own headers beside it; never over anything that is there."""
    for name, _ in entry.headers:
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts:
            raise BadInput(f"the template includes {name!r}, which lies outside its own folder")
    files = {out: entry.template} | {out.parent / name: text for name, text in entry.headers}
    there = [str(path) for path in files if os.path.lexists(path)]
    if there:
        raise BadInput(f"{', '.join(there)} would be overwritten", hint="choose another name with --out")
    with explain_disk_errors("write the template", out, instead="another file with --out"):
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_new(path, text.encode())
    return list(files)
