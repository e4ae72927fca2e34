"""`--workers FILE`: the hosts whose workers a run uses, and what those offer it."""

from __future__ import annotations

import hashlib
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tunesmith import backends
from tunesmith.backends import messages as m
from tunesmith.backends.port import Counting
from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.lab.judge.sanitize import SanitizerTools, sanitizer_tools_there
from tunesmith.lab.process import WorkerDied, WorkerTimedOut
from tunesmith.plugins.hosts.transport import WAIT, RemoteWorkers, StartWorker
from tunesmith.run.config import RunConfig
from tunesmith.run.protection import AUTO
from tunesmith.session.place import Spawn, WorkerSource

EXAMPLE = '[[worker]]\nname = "gpu1"\ncommand = "ssh gpu1 tunesmith worker"'
KEYS = ("name", "command", "device", "wait", "measures")
LIST_SECONDS = 60.0


@dataclass(frozen=True)
class WorkerEntry:
    """One `[[worker]]`."""

    name: str
    command: tuple[str, ...]
    device: str | None = None  # which of those there, or several; --device says otherwise
    wait: float = WAIT  # seconds for it to answer, and to come back when it was lost
    measures: bool = True  # False: it only builds


class HostWorkers(RemoteWorkers):
    """The workers of one entry, for a session: a `WorkerSource`."""

    def __init__(self, entry: WorkerEntry, note: Callable[[str], None]) -> None:
        super().__init__(entry.name, entry.command, note, entry.wait)
        self.device, self.measures = entry.device, entry.measures
        self._sanitizers: dict[tuple[str, str], SanitizerTools | str] = {}

    @property
    def arrivals(self) -> SimpleQueue[WorkerSource] | None:
        return None

    def spawner(self, spec: str, scratch: Path, sandbox: str) -> Spawn:
        """The file of a backend goes along, where it is not there yet; folders are made there."""
        del scratch
        name, _, path = spec.partition(":")
        file, digest = b"", ""
        if backends.find_backend_kind(spec).from_file:
            file = Path(path).read_bytes()
            digest = hashlib.sha256(file).hexdigest()
        return lambda purpose: self.worker(StartWorker(name, purpose, sandbox, digest), file)

    def sanitizers(self, spec: str, scratch: Path, sandbox: str) -> SanitizerTools | str:
        """Asked once: the lab of each of its devices wants to know."""
        if (spec, sandbox) not in self._sanitizers:
            kind, spawn = backends.find_backend_kind(spec), self.spawner(spec, scratch, sandbox)
            self._sanitizers[spec, sandbox] = sanitizer_tools_there(kind, spawn, sandbox)
        return self._sanitizers[spec, sandbox]

    def counting(self, spec: str, scratch: Path, sandbox: str) -> Counting:
        from tunesmith.lab.device_tools import counting_there  # which few runs need

        return counting_there(backends.find_backend_kind(spec), self.spawner(spec, scratch, sandbox), sandbox)

    def compilers(self, spec: str) -> tuple[tuple[str, str], ...]:
        worker = self.spawner(spec, Path(), AUTO)("devices")
        try:
            reply, _ = worker.request(m.ListCompilers(), deadline=LIST_SECONDS)
        except (WorkerDied, WorkerTimedOut) as error:
            fault = f"worker {self.name!r} does not say which compilers it has: {error}"
            raise DeviceMissing(fault) from error
        finally:
            worker.kill()
        if isinstance(reply, m.Failed):
            raise DeviceMissing(reply.message)
        assert isinstance(reply, m.Compilers)
        return reply.found


@contextmanager
def connected_hosts(config: RunConfig, note: Callable[[str], None]) -> Iterator[tuple[HostWorkers, ...]]:
    """The hosts of `--workers` that answer."""
    entries = read_hosts(Path(config.workers))
    with reachable_hosts([HostWorkers(entry, note) for entry in entries], note) as hosts:
        yield hosts


@contextmanager
def reachable_hosts(
    hosts: Sequence[HostWorkers], note: Callable[[str], None]
) -> Iterator[tuple[HostWorkers, ...]]:
    """Those that answer, of several; DeviceMissing where none does that measures."""
    # Hosts are closed before threads that still wait for them are joined.
    with ThreadPoolExecutor(len(hosts)) as threads, ExitStack() as until:
        for host in hosts:
            until.callback(host.close)
        tried = [(host, threads.submit(host.connect)) for host in hosts]
        there: list[HostWorkers] = []
        missing: list[DeviceMissing] = []
        for host, answer in tried:
            try:
                note(f"worker {host.name!r} is on {answer.result().host}")
                there.append(host)
            except DeviceMissing as error:
                missing.append(error)
        if not any(host.measures for host in there):
            raise missing[0]
        for one in missing:
            note(f"{one.message}; the run does without it")
        yield tuple(there)


def read_hosts(path: Path) -> tuple[WorkerEntry, ...]:
    where = str(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        hint = f"write there, e.g.:\n{EXAMPLE}"
        raise BadInput(f"cannot be read: {error}", where=where, hint=hint) from error
    entries = table.get("worker")
    if set(table) != {"worker"} or not isinstance(entries, list) or not entries:
        found = ", ".join(table) or "nothing"
        raise BadInput(f"one [[worker]] is needed; there is {found}", where=where, hint=f"e.g.:\n{EXAMPLE}")
    read = tuple(_read_worker_entry(entry, where) for entry in entries)
    for name, count in Counter(entry.name for entry in read).items():
        if count > 1:
            fault = f"{count} workers are called {name!r}; outcomes could not say which was meant"
            raise BadInput(fault, where=where, hint="give each a name of its own")
    if not any(entry.measures for entry in read):
        raise BadInput("no worker measures", where=where, hint="take measures = false out of one")
    return tuple(sorted(read, key=lambda entry: not entry.measures))


def _read_worker_entry(table: object, where: str) -> WorkerEntry:
    hint = f"e.g.:\n{EXAMPLE}"
    if not isinstance(table, Mapping):
        raise BadInput("[[worker]] is a table", where=where, hint=hint)
    if unknown := [key for key in table if key not in KEYS]:
        fault = f"[[worker]] has the key {unknown[0]!r}; known are {', '.join(KEYS)}"
        raise BadInput(fault, where=where, hint=hint)
    name, command, device = table.get("name"), table.get("command"), table.get("device")
    if not isinstance(name, str) or not name or not name.isprintable():
        raise BadInput(f"name must be a text, got {name!r}", where=where, hint=hint)
    if isinstance(command, str):
        try:
            command = shlex.split(command)
        except ValueError as error:
            raise BadInput(f"command cannot be read: {error}", where=where, hint=hint) from error
    if not isinstance(command, list) or not command or not all(isinstance(c, str) and c for c in command):
        fault = f"command must be a text or a list of texts, got {table.get('command')!r}"
        raise BadInput(fault, where=where, hint=hint)
    if any("\0" in word for word in command):
        fault = f"command has a NUL character, which no program can be given; got {table.get('command')!r}"
        raise BadInput(fault, where=where, hint=hint)
    if device is not None and not isinstance(device, str):
        raise BadInput(f"device must be a text, got {device!r}", where=where, hint="as for --device")
    wait = table.get("wait", WAIT)
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 < wait <= 1e6:
        raise BadInput(f"wait must be seconds above 0, got {wait!r}", where=where, hint=hint)
    measures = table.get("measures", True)
    if not isinstance(measures, bool):
        fault = f"measures must be true, or false where it only builds, got {measures!r}"
        raise BadInput(fault, where=where, hint=hint)
    return WorkerEntry(name, tuple(command), device, float(wait), measures)
