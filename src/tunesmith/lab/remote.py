"""Workers of another host, which a command reaches: `ssh HOST tunesmith worker`, or any that leads there. One
connection carries them all. It is made again when it is lost, and what was under way is asked again."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tunesmith import __version__
from tunesmith.errors import DeviceMissing
from tunesmith.lab.exchange import SILENCE, PacketExchange
from tunesmith.lab.fork_server import Streams
from tunesmith.lab.process import STDERR_BYTES, WorkerDied, WorkerProcess
from tunesmith.lab.wire import (
    EndedWorker,
    Hello,
    OpenWorker,
    Packet,
    PacketKind,
    disagreement,
    greeting,
    heard,
    said,
)
from tunesmith.problem.codec import Malformed
from tunesmith.run.config import secrets
from tunesmith.text import cut, end_of_process, redacted

WAIT = 120.0  # seconds for a host to answer, and to come back
END_SECONDS = 30.0  # in which a worker that is to end has ended
CLOSE_SECONDS = 5.0  # in which a command ends when there is nothing more for it
SAY_AGAIN = 10.0  # seconds
LONGEST_PAUSE = 15.0
WHEN_BACK = "what was measured is kept: `tunesmith resume` goes on when it is there again"


class RemoteProcess:
    """A worker of another host, as its owner sees it."""

    pid = 0  # nobody here can signal it

    def __init__(self, connection: Connection, channel: int, stderr: int) -> None:
        self._connection = connection
        self._channel = channel
        self._stderr = stderr
        self._over = threading.Event()
        self._code: int | None = None
        self.lost = ""
        self.clock: Callable[[], float] | None = lambda: connection.exchange.clock

    def poll(self) -> int | None:
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        if not self._over.wait(END_SECONDS if timeout is None else timeout):
            if timeout is not None:
                raise subprocess.TimeoutExpired([], timeout)
            self._connection.drop(f"a worker did not end within {END_SECONDS:.0f} s")
            self._over.wait()
        assert self._code is not None
        return self._code

    def end(self) -> None:
        self._connection.post(lambda: self._connection.exchange.send(Packet(PacketKind.KILL, self._channel)))

    def close(self) -> None:
        self._connection.post(lambda: self._connection.forget(self._channel))

    def ended(self, code: int, printed: str = "", lost: str = "") -> None:
        """By the thread of the connection, once."""
        if self._code is not None:
            return
        os.set_blocking(self._stderr, False)
        with contextlib.suppress(OSError):
            os.write(self._stderr, printed.encode(errors="replace")[-STDERR_BYTES:])
        os.close(self._stderr)
        self.lost = lost
        self._code = code
        self._over.set()


class Connection:
    """One run of the command, from the greeting until it is lost."""

    def __init__(self, title: str, command: Sequence[str], silence: float, note: Callable[[str], None]):
        self.hello: Hello | None = None
        self.fault = ""  # why the two do not fit: to try again is no use
        self.is_other_version = False
        self.lost = ""
        self._title, self._note = title, note
        self._numbers = itertools.count(1)
        self._workers: dict[int, RemoteProcess] = {}
        self._files: dict[str, Path] = {}  # by digest: what may be asked for
        self._greeted = threading.Event()
        self._told = 0.0
        self._printed = bytearray()
        self._ours = Hello("lab", __version__)
        try:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
            )
        except OSError as error:
            fault = f"{title} cannot be started: {command[0]}: {error.strerror}"
            raise DeviceMissing(fault, hint="correct its command: the first word is a program") from error
        assert self._process.stdin and self._process.stdout and self._process.stderr
        own = (self._process.stdout.fileno(), self._process.stdin.fileno())
        self.exchange = PacketExchange(*own, silence)
        self.exchange.on_packet, self.exchange.on_tick = self._take, self._tick
        self.exchange.send(said(PacketKind.HELLO, self._ours))
        self._drain = threading.Thread(
            target=self._listen, args=(self._process.stderr.fileno(),), daemon=True
        )
        self._thread = threading.Thread(target=self._run, name="connection", daemon=True)
        self._drain.start()
        self._thread.start()

    def greets(self, seconds: float) -> bool:
        """Whether it has greeted, or is lost, by then."""
        return self._greeted.wait(seconds)

    def post(self, step: Callable[[], None]) -> bool:
        return self.exchange.post(step)

    def is_usable(self) -> bool:
        """False once all that is to be said of its end is known."""
        if self.exchange.is_over:
            self._thread.join()
        return not self.lost

    def open(self, wanted: OpenWorker, file: Path | None, streams: Streams) -> RemoteProcess | None:
        """None where it is lost. `streams` stay the caller's."""
        channel = next(self._numbers)
        source, sink, stderr = map(os.dup, streams)
        process = RemoteProcess(self, channel, stderr)

        def step() -> None:
            if file is not None:
                self._files[wanted.digest] = file
            self._workers[channel] = process
            self.exchange.send(said(PacketKind.OPEN, wanted, channel))
            self.exchange.attach(channel, source, sink)

        if self.post(step):
            return process
        for descriptor in (source, sink, stderr):
            os.close(descriptor)
        return None

    def forget(self, channel: int) -> None:
        self._workers.pop(channel, None)
        self.exchange.detach(channel)

    def drop(self, why: str) -> None:
        """As if it were lost; returns when it is."""
        self.post(lambda: self.exchange.stop(why))
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _take(self, packet: Packet) -> None:
        if self.hello is None:
            theirs = greeting(packet)
            self.fault = disagreement(self._ours, theirs)
            self.is_other_version = bool(self.fault) and theirs.role != self._ours.role
            if self.fault:
                self.exchange.stop(self.fault)
            self.hello = theirs
            self._greeted.set()
        elif packet.kind is PacketKind.ENDED:
            found = heard(packet, EndedWorker)
            self.exchange.finish(packet.channel)
            if (worker := self._workers.get(packet.channel)) is not None:
                worker.ended(found.code, found.printed)
        elif packet.kind is PacketKind.NEED:
            self._send_file(packet.body.decode(errors="replace"))
        else:
            raise Malformed(f"{packet.kind.name}, which only a lab sends")

    def _send_file(self, digest: str) -> None:
        """Only what a worker was asked to be started with: the host reads nothing else of ours."""
        if (path := self._files.get(digest)) is None:
            raise Malformed("it asks for a file that was not offered")
        channel = next(self._numbers)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        wanted = OpenWorker(digest=digest, nbytes=os.fstat(descriptor).st_size)
        self.exchange.send(said(PacketKind.OPEN, wanted, channel))
        self.exchange.attach(channel, descriptor, None)

    def _tick(self) -> None:
        if self.exchange.silent < SAY_AGAIN / 2 or self.hello is None:
            self._told = 0.0
        elif self.exchange.silent - self._told >= SAY_AGAIN / 2:
            self._told = self.exchange.silent + SAY_AGAIN / 2
            self._note(f"waiting for {self._title}: nothing heard for {self.exchange.silent:.0f} s")

    def _run(self) -> None:
        why = self.exchange.run()
        assert self._process.stdin and self._process.stdout and self._process.stderr
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # so that it ends, and ends its workers
        how = ""
        try:
            code = self._process.wait(CLOSE_SECONDS)
            how = end_of_process(code)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._drain.join(timeout=1)
        with contextlib.suppress(OSError):
            self._process.stderr.close()
        last = redacted(self._printed.decode(errors="replace"), secrets()).strip().splitlines()[-4:]
        self.lost = "; ".join(filter(None, [why, how, *(cut(line.strip(), 300) for line in last)]))
        for worker in list(self._workers.values()):
            worker.ended(-signal.SIGKILL, lost=f"{self._title} was lost: {self.lost}")
        self._greeted.set()

    def _listen(self, descriptor: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(descriptor, 1 << 16):
                self._printed += data
                del self._printed[:-STDERR_BYTES]


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
        self._first: Hello | None = None
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

    def connect(self) -> Hello:
        """DeviceMissing where it cannot be reached, or is of another version."""
        found = self._connected().hello
        assert found is not None
        return found

    def identity(self, device: str) -> str:
        """Of a device there, as outcomes carry it."""
        return f"{self.name} ({self.host}) {device}"

    def worker(self, wanted: OpenWorker, file: Path | None = None) -> WorkerProcess:
        """`file` is what `wanted.digest` is of."""

        def start(_command: object, _environment: object, _folder: object, streams: Streams) -> RemoteProcess:
            while True:
                made = self._connected().open(wanted, file, streams)
                if made is not None:
                    return made

        return WorkerProcess([], {}, None, start)

    def close(self) -> None:
        self._closing.set()
        with self._lock:
            if self._connection is not None:
                self._connection.drop("the run is over")

    def _connected(self) -> Connection:
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

    def _reached(self, *, is_first: bool) -> Connection:
        until, pause = time.monotonic() + self._wait, 1.0
        while True:
            made = Connection(self._title, self._command, self._silence, self._note)
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
        found = made.hello
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
