"""Workers of another host, which a command reaches: `ssh HOST tunesmith worker`, or any that leads there.

Over its standard streams go the frames that a worker here reads and writes; before each stand the number of
the call and that of the worker. A command that is lost is started again, and what was under way is asked
again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import os
import select
import shlex
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tunesmith import __version__, backends
from tunesmith.backends import messages as m
from tunesmith.base import codec
from tunesmith.base.errors import DeviceMissing, TunesmithError, bug_text
from tunesmith.base.text import end_of_process, redact_secrets, truncate_text
from tunesmith.lab.process import (
    WorkerDied,
    WorkerProcess,
    WorkerReplaced,
    WorkerTimedOut,
    start_in_folder,
    worker_command,
)
from tunesmith.run.config import secret_values
from tunesmith.run.protection import MODES
from tunesmith.session.place import machine_digest, temporary_scratch, usable_cores, worker_environment

PROTOCOL = 5
WAIT = 120.0  # seconds for a host to answer, and to come back
SILENCE = 120.0  # seconds beyond a deadline after which nobody is there any more: a network may stall
START_SECONDS = 60.0  # for a host to start a worker, or to keep a file
WORKER_END_SECONDS = 30.0  # in which a worker that is to end has ended
CLOSE_SECONDS = 5.0  # in which a command ends when there is nothing more for it
MOMENT = 1.0  # seconds between two looks whether somebody is still there
SAY_AGAIN = 10.0  # seconds
QUIET = 30.0  # seconds in which nothing was heard, before people are told
LONGEST_PAUSE = 15.0
LONGEST_WORDS = 3000
LAST_WORDS = 1 << 13  # bytes
LOSSES = 3  # of the way to a worker, in one request, after which it is not tried again
WHEN_BACK = "what was measured is kept: `tunesmith resume` goes on when it is there again"
_HEAD = struct.Struct(">4sII")  # magic, number of the call, number of the worker; 0: none
_MAGIC = b"TSW2"


@dataclass(frozen=True)
class Greeting:
    """First, both ways."""

    role: Literal["lab", "host"]
    tunesmith: str  # its version
    host: str = ""  # what the machine calls itself
    machine: str = ""  # a digest that another machine does not have
    protocol: int = PROTOCOL
    cores: int = 0  # of the machine, that may be used


@dataclass(frozen=True)
class KeepFile:
    """Blob 0, for workers to be started with. Reply: Done."""


@dataclass(frozen=True)
class StartWorker:
    """Reply: Done or EndedWorker."""

    backend: str  # its name; `name:absent` too
    purpose: str
    sandbox: str
    digest: str = ""  # of the file that the backend is made from


@dataclass(frozen=True)
class StopWorker:
    """Reply: Done, when it and all that it started are gone."""


@dataclass(frozen=True)
class EndedWorker:
    """In reply to whatever a worker was asked: it has ended."""

    how: Literal["died", "timed out", "died before it was asked"]
    words: str = ""


@dataclass(frozen=True)
class LostHost:
    """From whoever leads to a host: nothing more will come, and why."""

    words: str


HOST_MESSAGES = {kind.__name__: kind for kind in (Greeting, KeepFile, StartWorker, StopWorker)}
HOST_REPLIES = {kind.__name__: kind for kind in (Greeting, LostHost, EndedWorker)}
DONE = codec.encode_tagged(m.Done())
codec.make_ready([*HOST_MESSAGES.values(), *HOST_REPLIES.values()])


def message_parts(message: object) -> list[bytes]:
    return codec.frame_parts(codec.encode_tagged(message))


def call_parts(call: int, worker: int, parts: Sequence[bytes]) -> list[bytes]:
    """A frame for a worker, or of one, as pieces to be written in order."""
    return [_HEAD.pack(_MAGIC, call, worker), *parts]


class ByteStream(Protocol):
    """As a `BufferedReader`."""

    def peek(self, size: int = 0, /) -> bytes: ...
    def read(self, size: int, /) -> bytes: ...


def read_call(source: ByteStream) -> tuple[int, int, codec.Frame] | None:
    """The next frame, with the numbers of its call and its worker; None when the stream ended cleanly.
    Malformed at the first byte that cannot be right."""
    first = source.peek()
    if not first:
        return None
    if not _MAGIC.startswith(first[: len(_MAGIC)]):
        raise codec.Malformed(f"not a frame: {first[:64]!r}")
    head = source.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise codec.Incomplete("the stream ended inside a frame")
    magic, call, worker = _HEAD.unpack(head)
    if magic != _MAGIC:
        raise codec.Malformed(f"not a frame: {head!r}")
    frame = codec.read_frame(source.read)
    if frame is None:
        raise codec.Incomplete("the stream ended inside a frame")
    return call, worker, frame


def greeting_mismatch(ours: Greeting, theirs: Greeting) -> str:
    """Why the two cannot work together, in a sentence; empty: they can."""
    if theirs.role == ours.role:
        return f"it greets as a {theirs.role}, as we do: the command sends back what it is sent"
    if (theirs.protocol, theirs.tunesmith) == (ours.protocol, ours.tunesmith):
        return ""
    here = f"Tunesmith {ours.tunesmith} (protocol {ours.protocol})"
    return f"it is Tunesmith {theirs.tunesmith} (protocol {theirs.protocol}), and this is {here}"


class ConnectionLost(Exception):
    """The way to a worker, or the worker between two requests: nobody knows what became of what was asked."""


class Channel(Protocol):
    """A stream of bytes to a host and back."""

    @property
    def reads(self) -> int:
        """A descriptor, which belongs to whoever reads it."""

    @property
    def writes(self) -> int:
        """A descriptor, to wait for."""

    def write(self, data: memoryview) -> int:
        """As much as there is room for; BlockingIOError where there is none."""

    def close(self) -> str:
        """How it ended, and what was said last. What is read ends too. It may be closed already."""


class CommandChannel:
    def __init__(self, title: str, command: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        try:
            self.process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
            )
        except OSError as error:
            fault = f"{title} cannot be started: {command[0]}: {error.strerror}"
            raise DeviceMissing(fault, hint="correct its command: the first word is a program") from error
        assert self.process.stdin
        assert self.process.stdout
        self.reads, self.writes = os.dup(self.process.stdout.fileno()), self.process.stdin.fileno()
        self.process.stdout.close()
        os.set_blocking(self.writes, False)
        self._printed = bytearray()
        self._drain = threading.Thread(target=self._listen, daemon=True)
        self._drain.start()

    def write(self, data: memoryview) -> int:
        return os.write(self.writes, data)

    def close(self) -> str:
        """Its input ends, and so does it; one that does not is killed."""
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        how = ""
        try:
            how = end_of_process(self.process.wait(CLOSE_SECONDS))
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._drain.join(timeout=1)
        printed = redact_secrets(self._printed.decode(errors="replace"), secret_values())
        last = printed.strip().splitlines()[-4:]
        return "; ".join(filter(None, [how, *(truncate_text(line.strip(), 300) for line in last)]))

    def _listen(self) -> None:
        """Keep the last words, drop the rest."""
        assert self.process.stderr
        with self.process.stderr as stderr, contextlib.suppress(OSError, ValueError):
            while data := os.read(stderr.fileno(), 1 << 16):
                self._printed += data
                del self._printed[:-LAST_WORDS]


class Connection:
    """One run of the command, from the greeting until it is lost."""

    def __init__(self, title: str, channel: Channel, silence: float, note: Callable[[str], None]) -> None:
        self.greeting: Greeting | None = None
        self.fault = ""  # why the two do not fit: to try again is no use
        self.is_other_version = False
        self.lost = ""
        self._title, self._channel, self._silence, self._note = title, channel, silence, note
        self._calls: dict[int, Future[codec.Frame]] = {}
        self._numbers = itertools.count(1)  # of calls
        self.workers = itertools.count(1)  # their numbers
        self._files: set[str] = set()  # by digest: what it has
        self._files_lock, self._calls_lock, self._sending = (threading.Lock() for _ in range(3))
        self._why = ""  # it ends, as soon as whoever uses it notices
        self._over, self._greeted = threading.Event(), threading.Event()
        self._heard = self._noted = time.monotonic()
        self._ours = Greeting("lab", __version__)
        self._thread = threading.Thread(target=self._listen, name="connection", daemon=True)
        self._thread.start()
        with contextlib.suppress(ConnectionLost):  # `lost` says so
            self._send(call_parts(0, 0, message_parts(self._ours)))

    def greets(self, seconds: float) -> bool:
        """Whether it has greeted, or is lost, by then."""
        return self._greeted.wait(seconds)

    def is_usable(self) -> bool:
        """False once all that is to be said of its end is known."""
        if self._why:
            self._over.wait()
        return not self.lost

    def drop(self, why: str) -> None:
        """As if it were lost; returns when it is."""
        self._why = self._why or why
        with self._sending:
            how = self._channel.close()
            self.lost = self.lost or "; ".join(filter(None, [self._why, how]))
        with self._calls_lock:
            self._over.set()
            waiting, self._calls = self._calls, {}
        for one in waiting.values():
            one.set_exception(ConnectionLost(self._loss_message()))
        self._greeted.set()

    def call(
        self,
        worker: int,
        json: bytes,
        blobs: Sequence[bytes] = (),
        deadline: float = START_SECONDS,
        silence: float | None = None,
    ) -> codec.Frame:
        """The reply of a worker. That the deadline passes is for the host to say, which knows what the worker
        had of it; only where nothing is heard long after it does the connection count as lost."""
        number, reply, waited = next(self._numbers), Future[codec.Frame](), 0.0
        longest = deadline + (self._silence if silence is None else silence)
        with self._calls_lock:
            if self._over.is_set():
                raise ConnectionLost(self._loss_message())
            self._calls[number] = reply
        self._send(call_parts(number, worker, codec.frame_parts(json, blobs, deadline)))
        while True:
            try:
                return reply.result(timeout=MOMENT)
            except TimeoutError:
                waited += MOMENT
            if waited > longest:
                self.drop(f"nothing was heard from it for {waited:.0f} s")
            now = time.monotonic()
            if waited > QUIET and min(now - self._heard, now - self._noted) > QUIET:
                self._noted = now
                self._note(f"waiting for {self._title}: nothing heard for {now - self._heard:.0f} s")

    def keep_file(self, digest: str, data: bytes) -> None:
        """Have the host keep it, where it does not have it yet."""
        with self._files_lock:
            if digest not in self._files:
                self.expect_done(self.call(0, codec.encode_tagged(KeepFile()), [data]))
                self._files.add(digest)

    def stop(self, worker: int) -> None:
        """It is gone when this returns."""
        with contextlib.suppress(ConnectionLost):
            stopped = self.call(
                worker, codec.encode_tagged(StopWorker()), deadline=WORKER_END_SECONDS, silence=0.0
            )
            self.expect_done(stopped)

    def expect_done(self, reply: codec.Frame) -> None:
        if reply.json != DONE:
            self.drop(f"it spoke nonsense: not the reply to what it was asked: {reply.json[:64]!r}")
            raise ConnectionLost(self._loss_message())

    def _loss_message(self) -> str:
        self._over.wait()
        return f"{self._title} was lost: {self.lost}"

    def _send(self, parts: Sequence[bytes]) -> None:
        try:
            with self._sending:
                why = self._write(parts)
        except OSError as error:
            self._thread.join(CLOSE_SECONDS)  # which may hear why
            why = f"the connection broke: {error.strerror}"
        if why:
            self.drop(why)
            raise ConnectionLost(self._loss_message())

    def _write(self, parts: Sequence[bytes]) -> str:
        """Why not all of it could be written; empty: it was."""
        for part in parts:
            view, waited = memoryview(part), 0.0
            while view and not self._why:
                if select.select([], [self._channel.writes], [], MOMENT)[1]:
                    with contextlib.suppress(BlockingIOError):
                        view, waited = view[self._channel.write(view[: 1 << 20]) :], 0.0
                elif (waited := waited + MOMENT) > self._silence:
                    return f"it took nothing of what it is sent for {waited:.0f} s"
        return self._why

    def _listen(self) -> None:
        why = "it has ended"
        try:
            with open(self._channel.reads, "rb") as source:
                while (found := read_call(source)) is not None:
                    self._heard = time.monotonic()
                    self._take_frame(found[0], found[2])
        except ConnectionLost as lost:
            why = str(lost)
        except codec.Incomplete:
            why = "the connection ended inside a frame"
        except codec.Malformed as error:
            why = f"it spoke nonsense: {error}"
        except OSError as error:
            why = f"the connection broke: {error.strerror}"
        self.drop(why)

    def _take_frame(self, number: int, frame: codec.Frame) -> None:
        if number == 0:
            found = codec.decode_tagged(frame.json, HOST_REPLIES)
            if isinstance(found, LostHost):
                raise ConnectionLost(_clean_words(found.words))
            if not isinstance(found, Greeting) or self.greeting is not None:
                raise codec.Malformed(f"{type(found).__name__}, of no worker")
            self.fault = greeting_mismatch(self._ours, found)
            self.is_other_version = bool(self.fault) and found.role != self._ours.role
            if self.fault:
                raise ConnectionLost(self.fault)
            self.greeting = found
            self._greeted.set()
        elif self.greeting is None:
            raise codec.Malformed("a reply before a greeting")
        else:
            with self._calls_lock:
                reply = self._calls.pop(number, None)
            if reply is not None:
                reply.set_result(frame)


class RemoteWorker(WorkerProcess):
    """A worker of another host, as its owner sees it."""

    def __init__(self, host: RemoteWorkers, wanted: StartWorker, file: bytes) -> None:
        super().__init__([], {})
        self._host, self._wanted, self._file = host, wanted, file
        self._at: tuple[Connection, int] | None = None  # its number there

    def request(
        self,
        request: m.Request,
        blobs: Sequence[bytes] = (),
        *,
        deadline: float,
        generation: int | None = None,
    ) -> tuple[m.Reply, tuple[bytes, ...]]:
        """As of one here. Where the way to it is lost, nothing is known of the request: it is asked again."""
        for _ in range(LOSSES):
            try:
                return super().request(request, blobs, deadline=deadline, generation=generation)
            except ConnectionLost as error:
                if self._closed:
                    raise WorkerDied("the lab is closing") from error
                if generation is not None:
                    raise WorkerReplaced(str(error)) from error
                lost = str(error)
        raise DeviceMissing(f"{lost} ({LOSSES} times while it was asked the same)")

    def exchange(self, json: bytes, blobs: Sequence[bytes], deadline: float) -> codec.Frame:
        at = self._at
        if at is None:  # ended by another thread, since it was asked
            raise WorkerDied("it was ended")
        try:
            frame = at[0].call(at[1], json, blobs, deadline)
        except KeyboardInterrupt:
            self.kill()
            raise
        if (ended := _decode_ended_worker(frame)) is None:
            return frame
        self.kill()
        if ended.how == "timed out":
            raise WorkerTimedOut(ended.words)
        raise (WorkerDied if ended.how == "died" else ConnectionLost)(ended.words)

    @property
    def alive(self) -> bool:
        return self._at is not None and self._at[0].is_usable()

    def kill(self) -> None:
        at, self._at = self._at, None
        if at is not None:
            at[0].stop(at[1])

    def _start(self) -> None:
        for _ in range(LOSSES):
            try:
                self._start_there(self._host.connected())
                break
            except ConnectionLost as error:
                self.kill()
                lost = str(error)
        else:
            raise DeviceMissing(f"{lost} ({LOSSES} times while a worker was started)")
        if self._closed:  # by another thread, which may have seen none to end
            self.kill()
            raise WorkerDied("the lab is closing")
        self.generation += 1

    def _start_there(self, connection: Connection) -> None:
        if self._wanted.digest:
            connection.keep_file(self._wanted.digest, self._file)
        self._at = connection, next(connection.workers)
        reply = connection.call(self._at[1], codec.encode_tagged(self._wanted))
        if (ended := _decode_ended_worker(reply)) is not None:
            raise WorkerDied(self._post_mortem(ended.words))
        connection.expect_done(reply)

    def _post_mortem(self, otherwise: str = "closed its end") -> str:
        self.kill()
        return otherwise


def _decode_ended_worker(reply: codec.Frame) -> EndedWorker | None:
    try:
        found = codec.decode_tagged(reply.json, {EndedWorker.__name__: EndedWorker})
    except codec.Malformed:  # it is something else; whoever reads it says what may be wrong with it
        return None
    return EndedWorker(found.how, _clean_words(found.words))


def _clean_words(words: str) -> str:
    return truncate_text(redact_secrets(words, secret_values()), LONGEST_WORDS)


class RemoteWorkers:
    """The host of an entry of `--workers`, as long as a session needs it."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        note: Callable[[str], None],
        wait: float = WAIT,
        silence: float = SILENCE,
    ) -> None:
        self.name, self._command, self._note = name, list(command), note
        self._wait, self._silence = wait, silence
        self._title = f"worker {name!r}"
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._connection: Connection | None = None
        self._first: Greeting | None = None
        self.gone = ""  # why it does not come back: it was waited for

    @property
    def host(self) -> str:
        return self._first.host if self._first is not None else ""

    @property
    def machine(self) -> str:
        return self._first.machine if self._first is not None else ""

    @property
    def cores(self) -> int:
        return max(1, self._first.cores) if self._first is not None else 1

    def connect(self) -> Greeting:
        """DeviceMissing where it cannot be reached, or is of another version."""
        found = self.connected().greeting
        assert found is not None
        return found

    def identity(self, device: str) -> str:
        """Of a device there, as outcomes carry it."""
        return f"{self.name} ({self.host}) {device}"

    def worker(self, wanted: StartWorker, file: bytes = b"") -> WorkerProcess:
        """`file` is what `wanted.digest` is of."""
        return RemoteWorker(self, wanted, file)

    def close(self) -> None:
        self._closing.set()
        with self._lock:
            if self._connection is not None:
                self._connection.drop("the run is over")

    def connected(self) -> Connection:
        """One that is usable; DeviceMissing where the host does not come back."""
        with self._lock:
            if self._closing.is_set():
                raise WorkerDied("the lab is closing")
            if self._connection is not None and self._connection.is_usable():
                return self._connection
            if self.gone:
                raise DeviceMissing(self.gone, hint=WHEN_BACK)
            if self._connection is not None:
                self._note(f"{self._title} was lost, and is tried again: {self._connection.lost}")
            try:
                self._connection = self._reached(is_first=self._first is None)
            except DeviceMissing as error:
                self.gone = error.message
                raise
            return self._connection

    def _open_channel(self) -> Channel:
        return CommandChannel(self._title, self._command)

    def _reached(self, *, is_first: bool) -> Connection:
        until, pause = time.monotonic() + self._wait, 1.0
        while True:
            made = Connection(self._title, self._open_channel(), self._silence, self._note)
            while not made.greets(SAY_AGAIN if time.monotonic() + SAY_AGAIN < until else 1.0):
                self._note(f"waiting for {self._title} to answer")
                if time.monotonic() > until or self._closing.is_set():
                    made.drop(f"no answer within {self._wait:.0f} s")
            if not made.lost:
                self._check_same(made)
                return made
            fault = f"{self._title} cannot be used" if made.fault else f"{self._title} cannot be reached"
            if made.fault or is_first or self.gone or time.monotonic() + pause > until:
                raise DeviceMissing(f"{fault}: {self.gone or made.lost}", hint=self._hint(made))
            self._note(f"waiting for {self._title}: {made.lost}")
            if self._closing.wait(pause):
                raise WorkerDied("the lab is closing")
            pause = min(2 * pause, LONGEST_PAUSE)

    def _check_same(self, made: Connection) -> None:
        found = made.greeting
        assert found is not None
        if self._first is None:
            self._first = found
        elif found.machine != self._first.machine:
            made.drop("it is another machine")
            fault = f"{self._title} was on {self._first.host} and is now on {found.host}, another machine"
            raise DeviceMissing(fault)

    def _hint(self, made: Connection) -> str | None:
        if made.is_other_version:
            return f"install the same there: pip install tunesmith=={__version__}"
        return f"try it in a shell, where it must print a few bytes and wait: {shlex.join(self._command)}"


# `tunesmith worker`: the other end of a command of `--workers`. It starts workers as a lab here would,
# sandboxed and each in its own folder, and hands on what they are asked and answer. It keeps their deadlines:
# what a frame took to come here is not their time.
IDLE = 3600.0  # seconds without a request after which nobody will ask any more
MAX_WORKERS = 1024  # at once


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
            return self._answer_frame(number, frame)
        except Exception as error:
            is_foreseen = isinstance(error, TunesmithError | WorkerDied | OSError)
            return message_parts(EndedWorker("died", str(error) if is_foreseen else bug_text(error)))

    def _answer_frame(self, number: int, frame: codec.Frame) -> Sequence[bytes]:
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
        kind = backends.find_backend_kind(wanted.backend)
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
        with ThreadPoolExecutor(MAX_WORKERS) as threads, contextlib.closing(self._host):
            try:
                while (found := read_call(source)) is not None:
                    if found[0]:
                        threads.submit(self._answer_call, *found)
                        continue
                    theirs = codec.decode_tagged(found[2].json, {Greeting.__name__: Greeting})
                    if fault := greeting_mismatch(ours, theirs):
                        return fault
            except codec.Malformed as error:
                return f"it spoke nonsense: {error}"
        return "it has ended"

    def _answer_call(self, call: int, worker: int, frame: codec.Frame) -> None:
        self._write(call_parts(call, worker, self._host.answer(worker, frame)))

    def _write(self, parts: Sequence[bytes]) -> None:
        with self._writing, contextlib.suppress(OSError):  # a lab that is gone asks no more either
            for part in parts:
                view = memoryview(part)
                while view:
                    view = view[os.write(self._writes, view) :]


def serve_standard_streams() -> str:
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
