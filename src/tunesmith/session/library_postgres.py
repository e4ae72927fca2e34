"""A team's library: PostgreSQL, by psycopg. Its password is in no message."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import RLock, Timer
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote

from tunesmith.errors import BadInput
from tunesmith.session.library_store import PATIENCE, Mode, Row, Statements, Values, pauses
from tunesmith.text import one_line, redacted

if TYPE_CHECKING:
    from tunesmith.run.lessons import KernelLessons
    from tunesmith.run.library import LibraryEntry

try:
    import psycopg
    from psycopg import conninfo, errors
except ImportError as error:  # also where psycopg is there, and libpq is not
    hint = "pip install 'tunesmith[postgres]'"
    raise BadInput(f"a library in PostgreSQL needs psycopg: {one_line(str(error))}", hint=hint) from error

T = TypeVar("T")
SECRET = ("password", "sslpassword")
# A server or a network that says nothing is given up after this; a URL may say otherwise.
DEADLINES = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
DEADLINE = 20.0  # seconds of a transaction of somebody who has no patience; of others twice their patience
WRITERS_LOCK = 0x74756E65736D6974  # any number, for all who write
TOO_BUSY = (
    *("40001", "40P01", "55P03", "57P03", "53300", "53400"),  # conflict, deadlock, lock, starting, too many
    *("57P01", "57P02", "08000", "08003", "08006", "57014"),  # shut down, crashed, gone, took too long
)
SPELT = "write it as postgresql://USER@HOST/DATABASE, with %40 for @, %2F for / and %3A for : in a password"


class PostgresDatabase:
    is_shared = True
    byte_type = "BYTEA"
    # Not by to_regclass: it may say what was so before we waited for who made the table.
    has_table = "SELECT count(*) FROM pg_catalog.pg_class WHERE relname = ? AND pg_table_is_visible(oid)"
    is_there = True

    def __init__(self, url: str, patience: float = PATIENCE, waits_for_server: bool = False) -> None:
        try:
            said = conninfo.conninfo_to_dict(url)
        except psycopg.Error as error:
            # What libpq says of a URL may repeat any part of it.
            why = "" if "@" in url or "password" in url else f": {one_line(str(error))}"
            raise BadInput(f"library is no URL that PostgreSQL's client can read{why}", hint=SPELT) from None
        # A password with such a character in it ends too early, and its rest would be shown as a name.
        parts = [str(said.get(name) or "") for name in ("host", "hostaddr", "dbname", "user")]
        if any("@" in part for part in parts) or not re.fullmatch(r"[0-9,]*", str(said.get("port") or "")):
            fault = "library is no URL: a port that is no number, or an @ where a password should have ended"
            raise BadInput(fault, hint=SPELT)
        self._known = [str(said[name]) for name in SECRET if said.get(name)]
        self.where = shown(said)
        self._said = {**DEADLINES, "application_name": "tunesmith", **said}
        self._patience, self._deadline = patience, max(DEADLINE, 2 * patience)
        # One that was there may come again; one that never was is waited for where that is asked for.
        self._waits_for_server, self._was_reached = waits_for_server, False
        self._connection: psycopg.Connection[Row] | None = None
        self._lock = RLock()

    def inherited(self) -> tuple[Iterable[LibraryEntry], Iterable[KernelLessons]]:
        return (), ()

    def transaction(self, work: Callable[[Statements], T], mode: Mode = "read") -> T:
        """What was sent when a connection broke may have been done or not: `work` may be done twice."""
        with self._lock:
            for again in pauses(self._patience):
                try:
                    return self._tried(work, mode)
                except psycopg.Error as error:
                    lost = self._connection is None or self._connection.closed or self._connection.broken
                    is_awaited = self._was_reached or (self._waits_for_server and not _to_mend(error))
                    passing = error.sqlstate in TOO_BUSY or (lost and is_awaited)
                    if lost:
                        self.close()
                    if not (again and passing):
                        raise self._told(error) from error
        raise AssertionError("the last try returns or raises")

    def _tried(self, work: Callable[[Statements], T], mode: Mode) -> T:
        if self._connection is None:
            # Nothing is prepared, so that a pool between us may hand out any of its connections.
            self._connection = psycopg.connect(**self._said, prepare_threshold=None)
            self._was_reached = True
        with _ended_after(self._connection, self._deadline + 5), self._connection.transaction():
            # Whoever has waited for the lock sees what was written meanwhile.
            kind = "READ ONLY" if mode == "read" else "READ WRITE"
            most = round(1000 * self._deadline)
            limits = f"SET LOCAL statement_timeout = {most}; SET LOCAL lock_timeout = {most // 2}"
            self._connection.execute(f"SET TRANSACTION ISOLATION LEVEL READ COMMITTED, {kind}; {limits}")
            if mode in ("alone", "migrate"):
                self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (WRITERS_LOCK,))
            return work(_PostgresStatements(self._connection))

    def _told(self, error: psycopg.Error) -> BadInput:
        text = one_line(_without(str(error), self._known).removeprefix("connection failed: ")) or "no answer"
        fault, hint = f"the library cannot be used: {text}", _to_mend(error)
        away = error.sqlstate in TOO_BUSY or not self._was_reached or self._connection is None
        if not hint and away:
            hint = "see that the server runs and can be reached: pg_isready -d URL; then try again"
        return BadInput(fault, where=self.where, hint=hint or "see the log of the server, then try again")

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with contextlib.suppress(psycopg.Error):
                    connection.close()


@contextlib.contextmanager
def _ended_after(connection: psycopg.Connection[Row], seconds: float) -> Iterator[None]:
    """A server that hangs answers no question for its deadlines: the connection is cut from this side."""

    def cut() -> None:
        with (
            contextlib.suppress(OSError, psycopg.Error),
            socket.socket(fileno=os.dup(connection.fileno())) as own,
        ):
            own.shutdown(socket.SHUT_RDWR)

    timer = Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _to_mend(error: psycopg.Error) -> str:
    """What somebody must do before it can work; empty: it may work when it is tried again."""
    code, said = error.sqlstate or "", str(error)
    if isinstance(error, errors.InsufficientPrivilege) or code == "25006":
        return "ask who owns the database for the right to create, read and write in its schema"
    if "password" in said or code == "28P01":
        return "say it by PGPASSFILE, PGPASSWORD or in the URL"
    if "pg_hba.conf" in said and ("SSL encryption" in said or "no encryption" not in said):
        return "ask who runs the server to let this role in from this host"
    if any(word in said for word in ("SSL", "certificate", "no encryption")):
        return "see sslmode and sslrootcert in the URL"
    if "does not exist" in said or code in ("3D000", "28000"):
        return "name a database and a role that are there: createdb NAME, createuser NAME"
    return ""


class _PostgresStatements:
    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Values = ()) -> list[Row]:
        found: list[Row] = self._connection.execute(_spelt(sql), values).fetchall()
        return found

    def change(self, sql: str, values: Values = ()) -> int:
        return int(self._connection.execute(_spelt(sql), values or None).rowcount)

    def change_each(self, sql: str, rows: Sequence[Values]) -> int:
        if not rows:
            return 0
        with self._connection.cursor() as cursor:
            cursor.executemany(_spelt(sql), rows)
            return int(cursor.rowcount)


def _spelt(sql: str) -> str:
    """Ours have no question mark and no per cent sign but for values."""
    return sql.replace("?", "%s")


def shown(said: dict[str, Any]) -> str:
    """The URL as people may see it: who, where, which; nothing else of it."""
    who = f"{quote(str(said['user']))}@" if said.get("user") else ""
    host = str(said.get("host") or said.get("hostaddr") or said.get("service") or "")
    port = f":{said['port']}" if said.get("port") else ""
    return f"postgresql://{who}{quote(host, safe=',:[]')}{port}/{quote(str(said.get('dbname') or ''))}"


def _without(text: str, secrets: Iterable[str]) -> str:
    """Also those that are short: this text is about a connection, and not a line too many is lost."""
    for secret in secrets:
        for spelling in {secret, quote(secret), quote(secret, safe=""), unquote(secret)}:
            if spelling:
                text = text.replace(spelling, "…")
    return redacted(text)
