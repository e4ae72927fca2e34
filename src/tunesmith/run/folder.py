"""What runs leave on disk: the run folder, and what all runs of a user share."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import re
import secrets
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import BadInput
from tunesmith.base.files import (
    AGAIN,
    explain_disk_errors,
    is_locked,
    open_plain,
    read_plain,
    remove_partial,
    remove_tree,
    take_lock,
    write_whole,
)
from tunesmith.base.text import digest_of, sha256_hex
from tunesmith.problem.device import Device
from tunesmith.profiles.facts import Ceilings
from tunesmith.profiles.roofline import is_sound
from tunesmith.run import events
from tunesmith.run import journal as chain
from tunesmith.run.events import InstructionKind, RunInstruction
from tunesmith.run.journal import decode_line, encode_record, with_long_texts, without_long_texts
from tunesmith.run.outcome import Timing

JOURNAL, OBJECTS, SCRATCH, LOCK = "journal.jsonl", "objects", "scratch", "lock"
CERTIFICATE = "certificate.json"
PLAN = "compare.json"  # of a comparison, which has its runs below it
FLEET = "fleet.json"  # of a fleet, alike
DAMAGED = "restore the folder from a copy, or start a new run"


def resume_command(folder: Path, wait: bool = True, *, compared: bool | None = None) -> str:
    """What to type to go on with a run, a comparison or a fleet: nobody is made to `wait` who has not."""
    if (folder / FLEET).is_file():
        return f"tunesmith fleet {shlex.quote(str(folder))}"
    is_compared = (folder / PLAN).exists() if compared is None else compared
    command = f"tunesmith {'compare --resume' if is_compared else 'resume'} {shlex.quote(str(folder))}"
    return command if wait else f"{command} --no-wait"


def has_begun(folder: Path) -> bool:
    """Whether there is a run: one killed before its first event was written never began."""
    try:
        return b"\n" in read_plain(folder / JOURNAL)
    except OSError:
        return False


class RunFolder:
    """One run's folder, held by one process at a time. Nothing in it names an absolute path.
    `wait`: whether who works in it waits for replies, and should when going on."""

    def __init__(self, path: Path, wait: bool = True) -> None:
        self.path, self.wait = path, wait
        self.elsewhere = ""  # options that say where its workers are
        self._lock: int | None = None

    @property
    def go_on(self) -> str:
        """What to type."""
        return resume_command(self.path, self.wait) + self.elsewhere

    @staticmethod
    def create(path: Path, wait: bool = True) -> RunFolder:
        """A folder of the user's choice: new, empty, or begun by us without getting anywhere."""
        with explain_disk_errors("create the run folder", path, instead="another folder with --out"):
            path.mkdir(parents=True, exist_ok=True)
            there = {item.name for item in path.iterdir()}
        if has_begun(path):
            hint = f"go on with it: {resume_command(path, wait)}; or choose another folder with --out"
            raise BadInput("this folder already holds a run", where=str(path), hint=hint)
        if strange := sorted(there - {JOURNAL, OBJECTS, SCRATCH, LOCK}):
            fault = f"a run's folder must be new or empty, this one holds {', '.join(strange[:4])}"
            hint = f"choose another folder: --out {shlex.quote(str(path / 'run'))}"
            raise BadInput(fault, where=str(path), hint=hint)
        return RunFolder(path, wait)._begin()

    @staticmethod
    def create_next(root: Path, problem: str, wait: bool = True) -> RunFolder:
        """The first free `<problem>-<n>` below the root, also when several runs begin at once."""
        taken = [_run_number(p.name, problem) for p in root.glob(f"{problem}-*")] if root.is_dir() else []
        for number in itertools.count(max([0, *taken]) + 1):
            path = root / f"{problem}-{number}"
            with explain_disk_errors("create the run folder", path, instead="another folder with --out"):
                root.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    path.mkdir()
                    return RunFolder(path, wait)._begin()
        raise AssertionError("there is always a next number")

    def _begin(self) -> RunFolder:
        with explain_disk_errors("create the run folder", self.path, instead="another folder with --out"):
            (self.path / OBJECTS).mkdir(exist_ok=True)
        self.lock()
        return self

    def discard(self) -> None:
        """Take back a run that has not begun, so that its name and its room are free again."""
        (self.path / JOURNAL).unlink(missing_ok=True)
        remove_tree(self.path / OBJECTS)
        (self.path / LOCK).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a folder that was there before us may hold something else
            self.path.rmdir()

    @staticmethod
    def open(path: Path, wait: bool = True) -> RunFolder:
        is_compared = (path / PLAN).is_file() and not (path / JOURNAL).exists()
        if is_compared or (path / FLEET).is_file():
            fault = f"this is the folder of a {'comparison' if is_compared else 'fleet'}, not of a run"
            hint = f"go on with it: {resume_command(path, wait)}; or name one of its runs, in {path / 'runs'}"
            raise BadInput(fault, where=str(path), hint=hint)
        if not (path / JOURNAL).is_file():
            no_run = "this is not a run folder: it has no journal.jsonl"
            fault = no_run if path.is_dir() else "there is no such run folder"
            hint = "name the folder that tune has written, or none for the newest run here"
            raise BadInput(fault, where=str(path), hint=hint)
        return RunFolder(path, wait)

    def lock(self) -> None:
        with explain_disk_errors("lock the run folder", self.path, instead="a copy of the folder"):
            descriptor = open_plain(self.path / LOCK, os.O_RDWR | os.O_CREAT)
            try:
                take_lock(descriptor)
            except BlockingIOError as error:
                holder = os.read(descriptor, 20).decode(errors="replace")
                os.close(descriptor)
                who = f"process {holder}" if holder.isdecimal() else "another process"
                fault = f"{who} is working in this run folder"
                hint = "wait for it to end, or start a new run with --out"
                raise BadInput(fault, where=str(self.path), hint=hint) from error
            except OSError:  # some network file systems have no locks
                os.close(descriptor)
                raise
            with contextlib.suppress(OSError):  # on a full disk nobody is told who holds it
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
        self._lock = descriptor
        for folder in (self.path, self.path / OBJECTS):
            remove_partial(folder)

    def held_for(self) -> float | None:
        """Seconds since a process that holds it took it or wrote its journal; None: nobody holds it."""
        if not is_locked(self.path / LOCK):
            return None
        there = [path for name in (LOCK, JOURNAL) if (path := self.path / name).exists()]
        return max(0.0, time.time() - max(path.stat().st_mtime for path in there))

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def put(self, data: bytes) -> str:
        digest = digest_of(data)
        if not (self.path / OBJECTS / digest).exists():
            self.write(f"{OBJECTS}/{digest}", data)
        return digest

    def get(self, digest: str) -> bytes:
        name = f"{OBJECTS}/{digest[:12]}…"
        if not digest.isalnum():  # it may come from a journal that somebody changed
            raise BadInput(f"{digest[:12]!r} is no digest", where=str(self.path), hint=DAMAGED)
        try:
            data = read_plain(self.path / OBJECTS / digest)
        except OSError as error:
            fault = f"the run folder has lost its file {name}: {error.strerror}"
            raise BadInput(fault, where=str(self.path), hint=DAMAGED) from error
        if digest_of(data) != digest:
            fault = f"the file {name} in the run folder has been changed"
            raise BadInput(fault, where=str(self.path), hint=DAMAGED)
        return data

    def holds(self, name: str, digest: str) -> bool:
        """Whether the file of that name is the one with this digest."""
        try:
            return digest_of(read_plain(self.path / name)) == digest
        except OSError:
            return False

    def write(self, name: str, data: bytes) -> None:
        begun = (self.path / JOURNAL).exists()
        with explain_disk_errors("write", self.path / name, self.go_on if begun else AGAIN):
            write_whole(self.path / name, data)

    def replace_folder(self, name: str, files: dict[str, bytes]) -> None:
        """Write a folder of files beside the journal, all of it or nothing."""
        target, fresh = self.path / name, self.path / f"{name}.new"
        with explain_disk_errors("write the results", target, self.go_on):
            remove_tree(fresh)
            fresh.mkdir()
            for file, data in files.items():
                (fresh / file).parent.mkdir(parents=True, exist_ok=True)
                self.write(f"{fresh.name}/{file}", data)
            remove_tree(target)
            fresh.rename(target)

    def fresh_scratch(self) -> Path:
        """A folder for what may be lost; whatever an earlier process left there goes."""
        scratch = self.path / SCRATCH
        with explain_disk_errors("make a scratch folder", scratch, self.go_on):
            remove_tree(scratch)
            scratch.mkdir()
        return scratch.resolve()

    def remove_scratch(self) -> None:
        remove_tree(self.path / SCRATCH)

    def journal_head(self) -> chain.ChainHead:
        with explain_disk_errors("read the journal", self.path / JOURNAL):
            return chain.head_of(read_plain(self.path / JOURNAL))

    def journal(self, clock: Callable[[], float] = time.monotonic) -> FileJournal:
        return FileJournal(self.path / JOURNAL, clock, FolderTexts(self), self.wait)


class FolderTexts:
    """Texts that a run keeps among its files."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def put(self, text: str) -> str:
        return self._folder.put(text.encode(errors="surrogatepass"))

    def get(self, digest: str) -> str:
        return self._folder.get(digest).decode(errors="surrogatepass")


@contextlib.contextmanager
def pause_gc() -> Iterator[None]:
    """While much is made that stays: asked after every few hundred objects, the collector of what is no
    longer used would look at all of it again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class FileJournal:
    """Append-only lines of JSON, each on disk before anyone acts on it; a torn last line is dropped.

    Long texts go to `texts` before the line that names them; without it they stay in the line.
    """

    def __init__(
        self, path: Path, clock: Callable[[], float], texts: FolderTexts | None = None, wait: bool = True
    ) -> None:
        self._path = path
        self._clock = clock
        self._texts = texts
        self._wait = wait
        self._start = clock()
        self._number = 0
        self._head = chain.FIRST
        self._elapsed = 0.0
        self._descriptor: int | None = None

    def read(self) -> Iterator[events.Recorded]:
        with pause_gc():
            records = list(self._records())
        self._number = len(records)
        self._elapsed = records[-1].at if records else 0.0
        self.restart_clock()
        return iter(records)

    def restart_clock(self) -> None:
        """What has passed since the last event is no time of the run."""
        self._start = self._clock()

    def append(self, event: events.Event) -> events.Recorded:
        """As it will be read: a run that goes on and one that is resumed believe the same."""
        if self._descriptor is None:
            self._descriptor = self._open_after_last_whole_line()
        now = self._clock()
        self._elapsed, self._start = self._elapsed + now - self._start, now
        record = events.Recorded(self._number, round(self._elapsed, 3), event)
        then = resume_command(self._path.parent, self._wait) if self._number else AGAIN
        with explain_disk_errors("write the journal", self._path, then):
            kept = without_long_texts(event, self._texts.put) if self._texts is not None else event
            line = encode_record(replace(record, event=kept), self._head)
            data = line + b"\n"
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        self._number += 1
        self._head = sha256_hex(line)
        return self._with_texts(decode_line(line)[0])

    def _with_texts(self, record: events.Recorded) -> events.Recorded:
        if self._texts is not None and isinstance(record.event, events.Requested | events.Replied):
            return replace(record, event=with_long_texts(record.event, self._texts.get))
        return record

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _records(self) -> Iterator[events.Recorded]:
        if not self._path.exists():
            return
        with explain_disk_errors("read the journal", self._path):
            lines = read_plain(self._path).split(b"\n")[:-1]  # what follows the last newline is torn or empty
        found: list[tuple[events.Recorded, str]] = []
        for number, line in enumerate(lines):
            try:
                found.append(decode_line(line))
                if found[-1][0].number != number:
                    raise Malformed(f"event {found[-1][0].number} stands in place {number}")
            except Malformed as error:
                where = f"{self._path}:{number + 1}"
                raise BadInput(f"the journal is damaged: {error}", where=where, hint=DAMAGED) from error
        ended = bool(found) and isinstance(found[-1][0].event, events.Stopped)
        fault = chain.chain_fault(lines, [before for _, before in found])
        if fault is None or not chain.is_broken(fault.reason):
            fault = self._certificate_fault(lines, ended) or fault
        for record, _ in found:
            record = self._with_texts(record)
            if fault is not None and record.number >= fault.place:
                record = replace(record, fault=fault.reason)
            yield record

    def _certificate_fault(self, lines: list[bytes], ended: bool) -> chain.ChainFault | None:
        """Why these are not the lines of the certificate that lies beside them."""
        with contextlib.suppress(OSError):
            named = chain.head_in(read_plain(self._path.with_name(CERTIFICATE)))
            return chain.certificate_mismatch(named, lines, ended) if named is not None else None
        return None

    def _open_after_last_whole_line(self) -> int:
        with explain_disk_errors("open the journal", self._path):
            descriptor = open_plain(self._path, os.O_RDWR | os.O_CREAT)
            data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            os.ftruncate(descriptor, data.rfind(b"\n") + 1)
            os.lseek(descriptor, 0, os.SEEK_END)
        self._head = chain.head_of(data).head
        return descriptor


def newest_run(root: Path) -> Path:
    runs = [p.parent for p in root.glob(f"*/{JOURNAL}") if has_begun(p.parent)] if root.is_dir() else []
    if not runs:
        raise BadInput(f"there is no run in {root} yet", hint="start one: tunesmith tune PROBLEM")
    return max(runs, key=lambda p: (p / JOURNAL).stat().st_mtime_ns)


def _run_number(name: str, problem: str) -> int:
    tail = name[len(problem) + 1 :]
    return int(tail) if tail.isdecimal() else 0


CEILINGS_FORMAT = 1  # counts changes of how ceilings are measured or written


class SqliteCache:
    """Timings of earlier runs, shared by all runs of this user. Losing it costs time, never truth."""

    def __init__(self, path: Path, note: Callable[[str], None]) -> None:
        self._note = note
        self._connection: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(open_plain(path, os.O_RDWR | os.O_CREAT))
            # Opened in one thread, used by the one that evaluates, closed when that has ended.
            self._connection = sqlite3.connect(
                path, timeout=10, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            table = "results (key TEXT PRIMARY KEY, timing BLOB NOT NULL)"
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def get(self, key: str) -> Timing | None:
        row = self._execute_query("SELECT timing FROM results WHERE key = ?", (key,))
        if not row:
            return None
        try:
            return decode_json(bytes(row[0][0]), Timing)
        except Malformed:
            return None  # written by another version: as good as absent

    def put(self, key: str, timing: Timing) -> None:
        self._execute_query("INSERT OR REPLACE INTO results VALUES (?, ?)", (key, encode_json(timing)))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _execute_query(self, sql: str, values: tuple[object, ...]) -> list[tuple[bytes]]:
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
            stored, changed = decode_json(read_plain(file), _CeilingsFile), file.stat().st_mtime
        except (OSError, Malformed):
            return None
        if stored.format != CEILINGS_FORMAT or not is_sound(stored.ceilings):
            return None
        day = stored.ceilings.measured_on or datetime.fromtimestamp(changed, UTC).date().isoformat()
        return replace(stored.ceilings, measured_on=day), stored.notes

    def put(self, device: Device, ceilings: Ceilings, notes: tuple[str, ...] = ()) -> None:
        stored = _CeilingsFile(CEILINGS_FORMAT, device.name, device.driver, ceilings, notes)
        target = self._file(device)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, encode_json(stored))
        except OSError as error:
            self._note(f"the ceilings are not stored: {error.strerror or error}")

    def _file(self, device: Device) -> Path:
        return self._folder / "ceilings" / f"{device.key}.json"


INBOX = "inbox"  # in a run's folder
LONGEST_HINT = 1000  # characters
MAX_WAITING = 64  # instructions that may lie there
_LONGEST_FILE = 8 * LONGEST_HINT
_NAME = re.compile(r"[0-9]{20}-[0-9a-f]{8}\.json")


@dataclass(frozen=True)
class _InstructionFile:
    what: InstructionKind
    text: str = ""


class FolderInbox:
    """What whoever watches a run asks of it: files, each written whole and taken away when it is in the
    journal. Killed in between, the run finds the file again, and by its name that it is in the journal. Names
    sort by the time at which they were written."""

    def __init__(self, run: Path) -> None:
        self._folder = run / INBOX

    def put(self, what: InstructionKind, text: str = "") -> str:
        """On disk when it returns."""
        self._folder.mkdir(exist_ok=True)
        id_ = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
        write_whole(self._folder / f"{id_}.json", encode_json(_InstructionFile(what, text[:LONGEST_HINT])))
        return id_

    def waiting(self) -> tuple[RunInstruction, ...]:
        """In the order in which they were written; what is none is taken away. The run looks between any two
        steps, so an inbox that nobody has used costs one system call."""
        try:
            names = sorted(filter(_NAME.fullmatch, os.listdir(self._folder)))
        except OSError:
            return ()
        found = []
        for name in names[:MAX_WAITING]:
            try:
                given = decode_json(read_plain(self._folder / name, _LONGEST_FILE), _InstructionFile)
            except (OSError, Malformed):
                self.drop(name.removesuffix(".json"))
            else:
                text = given.text[:LONGEST_HINT]
                found.append(RunInstruction(name.removesuffix(".json"), given.what, text))
        return tuple(found)

    def drop(self, id: str) -> None:
        if not _NAME.fullmatch(f"{id}.json"):
            return  # of what was never a file
        try:
            (self._folder / f"{id}.json").unlink(missing_ok=True)
        except OSError:
            return  # a folder of that name, or a disk that cannot be written: its id is in the journal
