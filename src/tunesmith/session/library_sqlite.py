"""The user's own library: one SQLite file. What a folder of an older version holds is taken in once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

from tunesmith.errors import BadInput
from tunesmith.run.files import explained, open_plain
from tunesmith.session.library_store import PATIENCE, Mode, Note, Row, Statements, Values, pauses

if TYPE_CHECKING:
    from tunesmith.run.lessons import KernelLessons
    from tunesmith.run.library import LibraryEntry

T = TypeVar("T")
FILE = "library.sqlite"
BUSY = 5.0  # seconds that SQLite itself waits for a lock
ELSEWHERE = "another library with library_dir"


class SqliteDatabase:
    is_shared = False
    byte_type = "BLOB"
    has_table = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"

    def __init__(self, folder: Path, note: Note, patience: float = PATIENCE) -> None:
        self.where = str(folder)
        self._folder, self._note, self._patience = folder, note, patience
        self._path = folder / FILE
        self._connection: sqlite3.Connection | None = None
        self._not_written: BadInput | None = None  # why what is read is a copy, or for reading alone
        self._lock = RLock()

    @property
    def is_there(self) -> bool:
        """Also where something else is in its way: whoever asks is to know."""
        in_the_way = self._folder.exists() and not self._folder.is_dir()
        return self._connection is not None or in_the_way or self._can_be_read

    @property
    def _can_be_read(self) -> bool:
        return self._path.exists() or any(self._folder.glob("*.json"))

    def inherited(self) -> tuple[Iterable[LibraryEntry], Iterable[KernelLessons]]:
        if not any(self._folder.glob("*.json")) and not (self._folder / "lessons").is_dir():
            return (), ()
        from tunesmith.session.library_folder import read_folder

        return read_folder(self._folder, self._note)

    def transaction(self, work: Callable[[Statements], T], mode: Mode = "read") -> T:
        with self._lock:
            for again in pauses(self._patience):
                try:
                    connection = self._connected()
                    if self._not_written is not None and mode in ("write", "alone"):
                        raise self._not_written
                    return self._tried(connection, work, mode)
                except sqlite3.OperationalError as error:
                    if not (again and error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)):
                        raise self._told(error) from error
                except sqlite3.Error as error:
                    raise self._told(error) from error
        raise AssertionError("the last try returns or raises")

    def _tried(self, connection: sqlite3.Connection, work: Callable[[Statements], T], mode: Mode) -> T:
        connection.execute("BEGIN" if mode == "read" else "BEGIN IMMEDIATE")
        try:
            found = work(_SqliteStatements(connection))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return found

    def _connected(self) -> sqlite3.Connection:
        """Where nothing can be written, what is there can still be read."""
        if self._connection is None:
            own = {"timeout": BUSY, "isolation_level": None, "check_same_thread": False}
            try:
                with explained("open the library", self._path, instead=ELSEWHERE):
                    self._folder.mkdir(parents=True, exist_ok=True)
                    os.close(open_plain(self._path, os.O_RDWR | os.O_CREAT))
                connection = sqlite3.connect(self._path, **own)  # type: ignore[call-overload]
            except BadInput as error:
                if not self._can_be_read:
                    raise
                self._not_written = error
                # Of an older folder that cannot be written, a copy in memory is read.
                name = f"{self._path.resolve().as_uri()}?mode=ro" if self._path.exists() else ":memory:"
                connection = sqlite3.connect(name, uri=True, **own)  # type: ignore[call-overload]
            connection.execute("PRAGMA foreign_keys = ON")
            self._connection = connection
        return self._connection

    def _told(self, error: sqlite3.Error) -> BadInput:
        fault, hint = (
            f"the library cannot be used: {error}",
            "see that it can be written, and that there is room",
        )
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            hint = "restore it from a copy, or move it away: then a new one is made"
        elif "locked" in str(error):
            hint = "another process holds it: try again when that has ended"
        return BadInput(fault, where=str(self._path), hint=hint)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


class _SqliteStatements:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Values = ()) -> list[Row]:
        return self._connection.execute(sql, tuple(values)).fetchall()

    def change(self, sql: str, values: Values = ()) -> int:
        return self._connection.execute(sql, tuple(values)).rowcount

    def change_each(self, sql: str, rows: Sequence[Values]) -> int:
        return self._connection.executemany(sql, rows).rowcount if rows else 0
