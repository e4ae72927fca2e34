"""`tunesmith worker`: the other end of a command of `--workers`. It starts workers as a lab here would,
sandboxed and each in its own folder, and hands on what they are asked and answer. It keeps their deadlines:
what a frame took to come here is not their time."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import select
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tunesmith import __version__, backends
from tunesmith.backends import messages as m
from tunesmith.errors import TunesmithError, bug_text
from tunesmith.lab.fork_server import start_in_folder, worker_command
from tunesmith.lab.process import WorkerDied, WorkerProcess, WorkerTimedOut
from tunesmith.lab.remote import (
    HOST_MESSAGES,
    HOST_REPLIES,
    ByteStream,
    EndedWorker,
    Greeting,
    KeepFile,
    StartWorker,
    StopWorker,
    call_parts,
    disagreement,
    message_parts,
    read_call,
)
from tunesmith.problem import codec
from tunesmith.run.protection import MODES
from tunesmith.session.workplace import (
    machine_digest,
    temporary_scratch,
    usable_cores,
    worker_environment,
)

IDLE = 3600.0  # seconds without a request after which nobody will ask any more
MOST_WORKERS = 1024  # at once


@dataclass
class _HostedWorker:
    process: WorkerProcess
    has_answered: bool = False


class WorkerHost:
    """Workers by number, each asked by one thread at a time."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._lock = threading.Lock()
        self._workers: dict[int, _HostedWorker] = {}
        self._stopped: set[int] = set()  # also before they began
        self._files: dict[str, Path] = {}

    def answer(self, number: int, frame: codec.Frame) -> Sequence[bytes]:
        """The parts of the reply's frame."""
        try:
            return self._answer(number, frame)
        except Exception as error:
            is_foreseen = isinstance(error, TunesmithError | WorkerDied | OSError)
            return message_parts(EndedWorker("died", str(error) if is_foreseen else bug_text(error)))

    def _answer(self, number: int, frame: codec.Frame) -> Sequence[bytes]:
        kind = codec.tag_of(frame.json)
        if kind not in HOST_MESSAGES:
            return self._hand_on(number, frame)
        match codec.decode_tagged(frame.json, HOST_MESSAGES):
            case KeepFile() if frame.blobs:
                self._keep(frame.blobs[0])
                return message_parts(m.Done())
            case StartWorker() as wanted:
                return message_parts(self._start(number, wanted))
            case StopWorker():
                self._stop(number)
                return message_parts(m.Done())
        raise codec.Malformed(f"{kind}, which is not asked here")

    def close(self) -> None:
        with self._lock:
            numbers = list(self._workers)
        for number in numbers:
            self._stop(number)

    def _keep(self, data: bytes) -> None:
        digest = hashlib.sha256(data).hexdigest()
        path = self._scratch / digest
        path.write_bytes(data)
        self._files[digest] = path

    def _start(self, number: int, wanted: StartWorker) -> m.Done | EndedWorker:
        worker = self._worker(wanted)
        with self._lock:
            if number in self._stopped or number in self._workers:
                return EndedWorker("died", "it was ended before it began")
            self._workers[number] = _HostedWorker(worker)
        worker.ensure_started()
        return m.Done()

    def _worker(self, wanted: StartWorker) -> WorkerProcess:
        kind = backends.kind(wanted.backend)
        if wanted.sandbox not in MODES or not wanted.purpose.isalpha():
            raise codec.Malformed("a worker that nobody here knows")
        spec = kind.name
        if kind.from_file and wanted.digest:
            if wanted.digest not in self._files:
                raise codec.Malformed(f"a file with the digest {wanted.digest[:12]!r} did not come")
            spec = f"{kind.name}:{self._files[wanted.digest]}"
        start = start_in_folder(lambda folder: worker_environment(spec, folder, wanted.sandbox))
        return WorkerProcess(worker_command(spec, wanted.purpose), {}, self._scratch, start)

    def _stop(self, number: int) -> None:
        with self._lock:
            self._stopped.add(number)
            worker = self._workers.pop(number, None)
        if worker is not None:
            worker.process.close()

    def _hand_on(self, number: int, frame: codec.Frame) -> Sequence[bytes]:
        worker = self._workers.get(number)
        if worker is None or (worker.has_answered and not worker.process.alive):
            return message_parts(EndedWorker("died before it was asked"))
        try:
            reply = worker.process.exchange(frame.json, frame.blobs, frame.deadline)
            worker.has_answered = True
            if codec.tag_of(reply.json) in HOST_REPLIES:
                raise codec.Malformed("a reply that only its host gives")
            return codec.frame_parts(reply.json, reply.blobs)
        except WorkerTimedOut as error:
            ended = EndedWorker("timed out", str(error))
        except codec.Malformed as error:
            worker.process.kill()
            ended = EndedWorker("died", f"spoke nonsense: {error}")
        except (WorkerDied, OSError, ValueError) as error:  # the last two: it was stopped meanwhile
            ended = EndedWorker("died", str(error))
        return message_parts(ended)


def host_greeting() -> Greeting:
    return Greeting("host", __version__, socket.gethostname(), machine_digest(), cores=usable_cores())


class _PatientReads(io.FileIO):
    """A descriptor that has ended also where nothing comes for so long that nothing will."""

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        return super().readinto(buffer) if select.select([self], [], [], IDLE)[0] else 0


class _Serving:
    """A host on a stream."""

    def __init__(self, host: WorkerHost, writes: int) -> None:
        self._host, self._writes = host, writes
        self._writing = threading.Lock()

    def run(self, source: ByteStream) -> str:
        """Until the lab is gone; why."""
        ours = host_greeting()
        self._write(call_parts(0, 0, message_parts(ours)))
        with ThreadPoolExecutor(MOST_WORKERS) as threads, contextlib.closing(self._host):
            try:
                while (found := read_call(source)) is not None:
                    if found[0]:
                        threads.submit(self._respond, *found)
                        continue
                    theirs = codec.decode_tagged(found[2].json, {Greeting.__name__: Greeting})
                    if fault := disagreement(ours, theirs):
                        return fault
            except codec.Malformed as error:
                return f"it spoke nonsense: {error}"
        return "it has ended"

    def _respond(self, call: int, worker: int, frame: codec.Frame) -> None:
        self._write(call_parts(call, worker, self._host.answer(worker, frame)))

    def _write(self, parts: Sequence[bytes]) -> None:
        with self._writing, contextlib.suppress(OSError):  # a lab that is gone asks no more either
            for part in parts:
                view = memoryview(part)
                while view:
                    view = view[os.write(self._writes, view) :]


def serve() -> str:
    """On the standard streams, which nothing else uses from here on; why it ended."""
    reads, writes = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    with temporary_scratch() as scratch, io.BufferedReader(_PatientReads(reads), 1 << 16) as source:
        try:
            return _Serving(WorkerHost(scratch), writes).run(source)
        except KeyboardInterrupt:
            return "it was told to end"
