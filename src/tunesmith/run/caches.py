"""What the user's runs share: timings of earlier ones in SQLite, and what devices can do at best."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tunesmith.problem.codec import Malformed, decode, encode
from tunesmith.problem.device import Device
from tunesmith.profiles.facts import Ceilings
from tunesmith.profiles.roofline import is_sound
from tunesmith.run.outcome import Timing
from tunesmith.run.store import write_whole

CEILINGS_FORMAT = 1  # counts changes of how ceilings are measured or written


class SqliteCache:
    """Timings of earlier runs, shared by all runs of this user. Losing it costs time, never truth."""

    def __init__(self, path: Path, note: Callable[[str], None]) -> None:
        self._note = note
        self._connection: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Opened in one thread, used by the one that evaluates, closed when that has ended.
            self._connection = sqlite3.connect(
                path, timeout=10, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, timing BLOB NOT NULL)"
            )
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def get(self, key: str) -> Timing | None:
        row = self._execute("SELECT timing FROM results WHERE key = ?", (key,))
        if not row:
            return None
        try:
            return decode(bytes(row[0][0]), Timing)
        except Malformed:
            return None  # written by another version: as good as absent

    def put(self, key: str, timing: Timing) -> None:
        self._execute("INSERT OR REPLACE INTO results VALUES (?, ?)", (key, encode(timing)))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _execute(self, sql: str, values: tuple[object, ...]) -> list[tuple[bytes]]:
        if self._connection is None:
            return []
        try:
            return list(self._connection.execute(sql, values))
        except sqlite3.Error as error:
            self._give_up(error)
            return []

    def _give_up(self, error: Exception) -> None:
        self._note(f"going on without the result cache: {error}")
        self.close()


@dataclass(frozen=True)
class _CeilingsFile:
    format: int
    device: str  # for people: the file is called after the device's key
    driver: str
    ceilings: Ceilings
    notes: tuple[str, ...] = ()


class CeilingsCache:
    """What devices were measured to do at best, one file for each. Losing one costs seconds, never truth."""

    def __init__(self, folder: Path, note: Callable[[str], None] = lambda _text: None) -> None:
        self._folder = folder
        self._note = note

    def get(self, device: Device) -> tuple[Ceilings, tuple[str, ...]] | None:
        """None: never measured, damaged, or measured in another way than today."""
        try:
            file = self._file(device)
            kept, changed = decode(file.read_bytes(), _CeilingsFile), file.stat().st_mtime
        except (OSError, Malformed):
            return None
        if kept.format != CEILINGS_FORMAT or not is_sound(kept.ceilings):
            return None
        day = kept.ceilings.measured_on or datetime.fromtimestamp(changed, UTC).date().isoformat()
        return replace(kept.ceilings, measured_on=day), kept.notes

    def put(self, device: Device, ceilings: Ceilings, notes: tuple[str, ...] = ()) -> None:
        kept = _CeilingsFile(CEILINGS_FORMAT, device.name, device.driver, ceilings, notes)
        target = self._file(device)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, encode(kept), shared=True)
        except OSError as error:
            self._note(f"the ceilings are not kept: {error.strerror or error}")

    def _file(self, device: Device) -> Path:
        return self._folder / "ceilings" / f"{device.key}.json"
