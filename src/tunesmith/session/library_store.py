"""The library in a database: one schema and one set of statements, for SQLite and PostgreSQL."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from tunesmith.errors import BadInput
from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.run.library import (
    FORMAT,
    NAME,
    UNSAID,
    LibraryEntry,
    LibraryQuery,
    RunRecord,
    TimedConfig,
    united,
    with_author,
    with_past,
)

if TYPE_CHECKING:
    from tunesmith.run.lessons import KernelLessons

T = TypeVar("T")
Note = Callable[[str], None]
Values = Sequence[object]
Row = tuple[Any, ...]
# The last two: no other writer of templates or of the schema meanwhile.
Mode = Literal["read", "write", "alone", "migrate"]
LARGEST = 16 << 20  # bytes of an entry; what is larger is none of ours
MOST, MOST_BYTES = 1000, 256 << 20  # of entries or runs that are read at once
MOST_TIMINGS, LARGEST_TIMING = 20_000, 64 << 10  # of a run; bytes of one
BATCH = 500  # timings of one transaction
PATIENCE = 30.0  # seconds in which a transaction that others hold up is tried again
LONGEST_KEY = 200  # characters that something is found by; what is found is then compared in full
LIST = "see what there is with: tunesmith library"
ANYTHING = LibraryQuery()

# Numbered from 1. What has been released is never changed: a change is a new one at the end.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE tunesmith_entries (name TEXT PRIMARY KEY, operator TEXT NOT NULL, kernel TEXT NOT NULL,"
        " device TEXT NOT NULL, document {bytes} NOT NULL)",
        "CREATE INDEX tunesmith_entries_found ON tunesmith_entries (kernel, device)",
        "CREATE INDEX tunesmith_entries_operator ON tunesmith_entries (operator)",
        "CREATE TABLE tunesmith_lessons (name TEXT PRIMARY KEY, document {bytes} NOT NULL)",
    ),
    (
        "CREATE TABLE tunesmith_texts (digest TEXT PRIMARY KEY, text {bytes} NOT NULL)",
        "CREATE TABLE tunesmith_runs (id TEXT PRIMARY KEY, operator TEXT NOT NULL, kernel TEXT NOT NULL,"
        " device TEXT NOT NULL, date TEXT NOT NULL, document {bytes} NOT NULL)",
        "CREATE INDEX tunesmith_runs_found ON tunesmith_runs (kernel, device)",
        "CREATE INDEX tunesmith_runs_operator ON tunesmith_runs (operator)",
        "CREATE TABLE tunesmith_timings (run TEXT NOT NULL REFERENCES tunesmith_runs (id) ON DELETE CASCADE,"
        " key TEXT NOT NULL, template TEXT NOT NULL, verdict TEXT NOT NULL, document {bytes} NOT NULL,"
        " PRIMARY KEY (run, key))",
    ),
)
LATEST = len(MIGRATIONS)


class Statements(Protocol):
    """Inside a transaction. Values stand for question marks."""

    def rows(self, sql: str, values: Values = ()) -> list[Row]: ...
    def change(self, sql: str, values: Values = ()) -> int:
        """How many rows."""
        ...

    def change_each(self, sql: str, rows: Sequence[Values]) -> int: ...


class Database(Protocol):
    where: str
    is_shared: bool
    byte_type: str
    has_table: str  # a statement: whether there is a table of that name

    @property
    def is_there(self) -> bool:
        """Whether there is anything to read, or to take in."""
        ...

    def transaction(self, work: Callable[[Statements], T], mode: Mode = "read") -> T:
        """All of it or nothing; done again from its beginning where others were in the way."""
        ...

    def inherited(self) -> tuple[Iterable[LibraryEntry], Iterable[KernelLessons]]:
        """What a database that is new takes in."""
        ...

    def close(self) -> None: ...


class SqlLibrary:
    """`run/ports.Library` over either database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.where, self.is_shared = database.where, database.is_shared
        self._is_checked = False

    def close(self) -> None:
        self._database.close()

    # -- the schema ---------------------------------------------------------------------------------------

    def migrate(self) -> tuple[int, int]:
        """Two at once: the second finds it done."""
        before = self._database.transaction(self._migrated, "migrate")
        self._is_checked = True
        return before, LATEST

    def version(self) -> int:
        return self._database.transaction(self._version)

    def _version(self, statements: Statements) -> int:
        if not statements.rows(self._database.has_table, ("tunesmith_schema",))[0][0]:
            return 0
        return int(statements.rows("SELECT max(version) FROM tunesmith_schema")[0][0] or 0)

    def _migrated(self, statements: Statements) -> int:
        before = self._version(statements)
        if before == 0:
            columns = "version INTEGER PRIMARY KEY, applied TEXT NOT NULL"
            statements.change(f"CREATE TABLE IF NOT EXISTS tunesmith_schema ({columns})")
        self._refuse_newer(before)
        for number, changes in enumerate(MIGRATIONS, 1):
            if number <= before:
                continue
            for sql in changes:
                statements.change(sql.replace("{bytes}", self._database.byte_type))
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            statements.change("INSERT INTO tunesmith_schema VALUES (?, ?)", (number, now))
        if before == 0:
            entries, lessons = self._database.inherited()
            for entry in entries:
                self._put(statements, entry)
            for one in lessons:
                self._put_lessons(statements, one)
        return before

    def _refuse_newer(self, version: int) -> None:
        if version > LATEST:
            fault = (
                f"the library has schema {version}, this version of Tunesmith knows schemas up to {LATEST}"
            )
            raise BadInput(
                fault, where=self.where, hint="install the version that others use, or a newer one"
            )

    def _check(self) -> None:
        if self._is_checked:
            return
        found = self.version()
        self._refuse_newer(found)
        if 0 < found < LATEST and self.is_shared:
            fault = f"the library has schema {found}, this version of Tunesmith needs {LATEST}"
            hint = "once everybody who shares it has this version: tunesmith library migrate"
            raise BadInput(fault, where=self.where, hint=hint)
        if found < LATEST:
            self.migrate()
        self._is_checked = True

    def _read(self, sql: str, values: Values = ()) -> list[Row]:
        if not self._database.is_there:
            return []
        self._check()
        return self._database.transaction(lambda statements: statements.rows(sql, values))

    def _write(self, work: Callable[[Statements], T], mode: Mode = "write") -> T:
        self._check()
        return self._database.transaction(work, mode)

    # -- templates that won -------------------------------------------------------------------------------

    def entries(self, note: Note = lambda _text: None, query: LibraryQuery = ANYTHING) -> list[LibraryEntry]:
        rows = self._read(*_found("tunesmith_entries", "name", "name", query))
        found: list[LibraryEntry] = []
        for name, document in rows:
            try:
                found.append(self._entry(name, document))
            except BadInput as error:
                note(f"passed over in the library: {error}")
        if len(rows) == MOST:
            note(f"of the library's templates the first {MOST} are looked at: say which are meant")
        wanted = (("problem", query.operator), ("kernel", query.kernel), ("device", query.device))
        return [e for e in found if all(not value or getattr(e, key) == value for key, value in wanted)]

    def get(self, name: str) -> LibraryEntry:
        rows = self._read("SELECT document FROM tunesmith_entries WHERE name = ?", (_checked(name),))
        if not rows:
            raise self._missing(name)
        return self._entry(name, rows[0][0])

    def __contains__(self, name: str) -> bool:
        sql = "SELECT 1 FROM tunesmith_entries WHERE name = ?"
        return bool(NAME.fullmatch(name)) and bool(self._read(sql, (name,)))

    def add(self, entry: LibraryEntry) -> None:
        def work(statements: Statements) -> None:
            sql = "SELECT name, document FROM tunesmith_entries WHERE kernel = ? ORDER BY name LIMIT ?"
            others: list[LibraryEntry] = []
            for name, document in statements.rows(sql, (_key(entry.kernel), MOST)):
                with contextlib.suppress(BadInput):  # what cannot be read is no past of this
                    others.append(self._entry(name, document, as_written=True))
            own = with_past(entry, others)
            same = next((other for other in others if other.name == own.name), None)
            self._put(statements, own if same is None else united(own, same))

        _checked(entry.name)
        self._write(work, "alone")

    def remove(self, name: str) -> None:
        sql = "DELETE FROM tunesmith_entries WHERE name = ?"
        _checked(name)
        if name not in self or not self._write(lambda statements: statements.change(sql, (name,))):
            raise self._missing(name)

    def _put(self, statements: Statements, entry: LibraryEntry) -> None:
        sql = "INSERT INTO tunesmith_entries VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET document"
        keys = (_key(entry.problem), _key(entry.kernel), _key(entry.device))
        statements.change(f"{sql} = excluded.document", (entry.name, *keys, encode(entry)))

    def _entry(self, name: str, document: bytes, as_written: bool = False) -> LibraryEntry:
        where = f"{self.where}: {name}"
        try:
            entry = decode(bytes(document), LibraryEntry, "library entry")
            if entry.format in (UNSAID, FORMAT) and entry.name == name:
                entry = with_author(entry)
                if not self.is_shared:
                    return entry
                from tunesmith.run.foreign import foreign_entry

                found = foreign_entry(entry)
                return replace(found, author=entry.author) if as_written else found
        except Malformed as error:
            hint = f"remove it: tunesmith library remove {name}"
            raise BadInput(f"cannot be read: {error}", where=where, hint=hint) from error
        got = f"format {entry.format}, name {entry.name!r}"
        fault = f"not an entry of format {FORMAT} under its own name: {got}"
        raise BadInput(fault, where=where, hint="use the version of Tunesmith that wrote it, or remove it")

    def _missing(self, name: str) -> BadInput:
        return BadInput(f"there is no {name!r} in the library", where=self.where, hint=LIST)

    # -- what did not pay ---------------------------------------------------------------------------------

    def lessons(self, note: Note = lambda _text: None) -> list[KernelLessons]:
        from tunesmith.run.lessons import FORMAT as LESSONS_FORMAT

        found: list[KernelLessons] = []
        sql = f"SELECT name, document FROM tunesmith_lessons ORDER BY name LIMIT {MOST}"
        for name, document in self._read(sql):
            try:
                found.append(self._lessons(document))
            except Malformed as error:
                note(f"passed over in the library: lessons {name}: {error}")
        return [one for one in found if one.format == LESSONS_FORMAT]

    def learn(self, new: KernelLessons) -> None:
        from tunesmith.run.lessons import together

        def work(statements: Statements) -> None:
            own = new
            sql = "SELECT document FROM tunesmith_lessons WHERE name = ?"
            for (document,) in statements.rows(sql, (new.name,)):
                with contextlib.suppress(Malformed):  # what cannot be read is written anew
                    own = together(new, self._lessons(document))
            self._put_lessons(statements, own)

        self._write(work, "alone")

    def _put_lessons(self, statements: Statements, one: KernelLessons) -> None:
        sql = "INSERT INTO tunesmith_lessons VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET document"
        statements.change(f"{sql} = excluded.document", (one.name, encode(one)))

    def _lessons(self, document: bytes) -> KernelLessons:
        from tunesmith.run.lessons import KernelLessons

        found = decode(bytes(document), KernelLessons, "lessons")
        if not self.is_shared:
            return found
        from tunesmith.run.foreign import foreign_lessons

        return foreign_lessons(found)

    # -- what runs measured -------------------------------------------------------------------------------

    def runs(self, note: Note = lambda _text: None, query: LibraryQuery = ANYTHING) -> list[RunRecord]:
        found: list[RunRecord] = []
        for id, document in self._read(*_found("tunesmith_runs", "id", "date DESC, id", query)):
            try:
                run = decode(bytes(document), RunRecord, "run of the library")
            except Malformed as error:
                note(f"passed over in the library: run {id}: {error}")
                continue
            if self.is_shared:
                from tunesmith.run.foreign import foreign_record

                run = foreign_record(run)
            found.append(run)
        return found

    def timings(self, run: str) -> list[TimedConfig]:
        """Those that can be read."""
        found: list[TimedConfig] = []
        sql = "SELECT document FROM tunesmith_timings WHERE run = ? AND length(document) <= ?"
        for (document,) in self._read(f"{sql} ORDER BY key LIMIT ?", (run, LARGEST_TIMING, MOST_TIMINGS)):
            with contextlib.suppress(Malformed):
                found.append(decode(bytes(document), TimedConfig))
        if not self.is_shared:
            return found
        from tunesmith.run.foreign import foreign_timings

        return foreign_timings(found)

    def timing_counts(self) -> dict[str, int]:
        """Of each run."""
        return dict(self._read("SELECT run, count(*) FROM tunesmith_timings GROUP BY run"))

    def count(self) -> int:
        """Templates that won."""
        return sum(number for (number,) in self._read("SELECT count(*) FROM tunesmith_entries"))

    def record(self, run: RunRecord, timings: Sequence[TimedConfig], texts: Mapping[str, str]) -> int:
        """What is said last of the run itself counts: one that was stored unfinished may have ended. Each
        batch stands alone, whatever is taken out meanwhile, and all write in one order."""
        keys = (_key(run.problem), _key(run.kernel), _key(run.device), _key(run.provenance.date))
        about = "INSERT INTO tunesmith_runs VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET document"
        named = sorted((digest, text.encode(errors="surrogatepass")) for digest, text in texts.items())
        each = "INSERT INTO tunesmith_timings VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        ordered = sorted(timings, key=lambda one: one.key)

        def store(batch: Sequence[TimedConfig]) -> int:
            rows = [
                (run.id, t.key, t.template, "failed" if t.score is None else "ok", encode(t)) for t in batch
            ]

            def work(statements: Statements) -> int:
                statements.change(f"{about} = excluded.document", (run.id, *keys, encode(run)))
                statements.change_each(
                    "INSERT INTO tunesmith_texts VALUES (?, ?) ON CONFLICT DO NOTHING", named
                )
                return statements.change_each(each, rows)

            return self._write(work, "alone")

        return sum(store(ordered[start : start + BATCH]) for start in range(0, len(ordered) or 1, BATCH))

    def prune(self, before: str) -> int:
        def work(statements: Statements) -> int:
            removed = statements.change("DELETE FROM tunesmith_runs WHERE date < ?", (before,))
            used = "SELECT template FROM tunesmith_timings"
            statements.change(f"DELETE FROM tunesmith_texts WHERE digest NOT IN ({used})")
            return removed

        return self._write(work, "alone") if self._database.is_there else 0


def _found(table: str, name: str, order: str, query: LibraryQuery) -> tuple[str, list[object]]:
    """The statement that finds names and documents, as many as memory holds, and its values."""
    named = {"operator": query.operator, "kernel": query.kernel, "device": query.device}
    given = {column: _key(value) for column, value in named.items() if value}
    wanted = " AND ".join(("length(document) <= ?", *(f"{column} = ?" for column in given)))
    total = f"sum(length(document)) OVER (ORDER BY {order}) AS total"
    inner = f"SELECT *, {total} FROM {table} WHERE {wanted}"
    sql = f"SELECT {name}, document FROM ({inner}) AS found WHERE total <= ? ORDER BY {order} LIMIT ?"
    return sql, [LARGEST, *given.values(), MOST_BYTES, MOST]


def _key(text: str) -> str:
    """As a column holds it, which every database takes: by it something is found, no more."""
    return text.replace("\0", "").encode(errors="replace").decode()[:LONGEST_KEY]


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise BadInput(f"{name!r} cannot be a name in the library", hint=LIST)
    return name


def pauses(patience: float) -> Iterator[bool]:
    """Waits longer and longer between two tries; whether there will be another."""
    wait, end = 0.05, time.monotonic() + patience
    while time.monotonic() + wait < end:
        yield True
        time.sleep(wait)
        wait = min(2 * wait, 2.0)
    yield False
