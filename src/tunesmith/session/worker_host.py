"""`tunesmith worker`: the other end of a command of `--workers`. It starts workers as a lab here would,
sandboxed and each in its own folder, and carries what they read and say."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith import __version__, backends
from tunesmith.errors import TunesmithError
from tunesmith.lab.exchange import PacketExchange
from tunesmith.lab.fork_server import ChildProcess, start_in_folder, worker_command
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
from tunesmith.run.protection import MODES
from tunesmith.session.workplace import (
    machine_digest,
    temporary_scratch,
    usable_cores,
    worker_environment,
)

LAST_WORDS = 1 << 13  # bytes
LARGEST_FILE = 1 << 32
END_SECONDS = 5.0  # for what a worker has said last to be read
_DIGEST = frozenset("0123456789abcdef")
Start = Callable[..., ChildProcess]


@dataclass
class _HostedWorker:
    process: ChildProcess
    drain: threading.Thread
    printed: bytearray
    ended: float | None = None  # when it was seen to have ended


@dataclass
class _ComingFile:
    digest: str
    nbytes: int
    path: Path


@dataclass
class WorkerHost:
    """By the thread of its exchange alone."""

    exchange: PacketExchange
    scratch: Path
    hello: Hello
    fault: str = ""  # why the two do not fit
    _greeted: bool = False
    _workers: dict[int, _HostedWorker] = field(default_factory=dict)
    _starting: set[int] = field(default_factory=set)
    _threads: list[threading.Thread] = field(default_factory=list)  # that start them
    _waiting: dict[int, OpenWorker] = field(default_factory=dict)  # for their files
    _coming: dict[int, _ComingFile] = field(default_factory=dict)
    _files: dict[str, Path] = field(default_factory=dict)

    def run(self) -> str:
        """Until the lab is gone; why."""
        self.exchange.on_packet, self.exchange.on_tick = self._take, self._look_after
        self.exchange.on_source_end = lambda _channel: self._look_after()
        self.exchange.on_drained = self._arrived
        self.exchange.send(said(PacketKind.HELLO, self.hello))
        try:
            return self.exchange.run()
        finally:
            for thread in self._threads:
                thread.join()
            for worker in self._workers.values():
                worker.process.end()
            for worker in self._workers.values():
                worker.process.wait()
                worker.process.close()

    def _take(self, packet: Packet) -> None:
        if not self._greeted:
            self.fault = disagreement(self.hello, greeting(packet))
            if self.fault:
                self.exchange.stop(self.fault)
            self._greeted = True
        elif packet.kind is PacketKind.OPEN:
            self._open(packet.channel, heard(packet, OpenWorker))
        elif packet.kind is PacketKind.KILL:
            self._kill(packet.channel)
        else:
            raise Malformed(f"{packet.kind.name}, which only a host sends")

    def _open(self, channel: int, wanted: OpenWorker) -> None:
        if channel in self.exchange.channels or channel in self._waiting:
            raise Malformed(f"channel {channel} is open already")
        if wanted.digest and not (len(wanted.digest) == 64 and _DIGEST.issuperset(wanted.digest)):
            raise Malformed("a digest that is none")
        if not wanted.backend:
            self._receive(channel, wanted)
        elif wanted.digest and wanted.digest not in self._files:
            self.exchange.expect(channel)
            self._waiting[channel] = wanted
            if wanted.digest not in {one.digest for one in self._coming.values()}:
                self.exchange.send(Packet(PacketKind.NEED, channel, wanted.digest.encode()))
        else:
            self._start(channel, wanted)

    def _start(self, channel: int, wanted: OpenWorker) -> None:
        """Apart: the first of its kind takes seconds, in which others are served and the lab hears of us."""
        try:
            how = _worker(wanted, self._files.get(wanted.digest))
        except TunesmithError as error:
            self.exchange.detach(channel)
            self.exchange.send(said(PacketKind.ENDED, EndedWorker(1, str(error)), channel))
            return
        if channel not in self.exchange.channels:
            self.exchange.expect(channel)
        self._starting.add(channel)
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._threads.append(threading.Thread(target=self._start_apart, args=(channel, *how), daemon=True))
        self._threads[-1].start()

    def _start_apart(self, channel: int, start: Start, command: Sequence[str]) -> None:
        """By a thread of its own."""
        mine, theirs = list[int](), list[int]()
        try:
            for reads, writes in (os.pipe(), os.pipe(), os.pipe()):
                theirs.append(writes if theirs else reads)
                mine.append(reads if mine else writes)
            process = start(command, {}, self.scratch, tuple(theirs))
        except (TunesmithError, OSError) as error:
            for descriptor in mine:
                os.close(descriptor)
            words = EndedWorker(1, str(error))
            self.exchange.post(lambda: self._bury_unborn(channel, words))
            return
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        if not self.exchange.post(lambda: self._started(channel, process, mine)):
            _end_unused(process, mine)

    def _started(self, channel: int, process: ChildProcess, mine: Sequence[int]) -> None:
        if channel not in self._starting:  # it was killed before it began
            _end_unused(process, mine)
            return
        self._starting.remove(channel)
        printed = bytearray()
        drain = threading.Thread(target=_listen, args=(mine[2], printed), daemon=True)
        drain.start()
        self._workers[channel] = _HostedWorker(process, drain, printed)
        self.exchange.join(channel, mine[1], mine[0])

    def _bury_unborn(self, channel: int, ended: EndedWorker) -> None:
        if channel in self._starting:
            self._starting.remove(channel)
            self.exchange.detach(channel)
            self.exchange.send(said(PacketKind.ENDED, ended, channel))

    def _look_after(self) -> None:
        for channel, worker in list(self._workers.items()):
            if worker.process.poll() is None:
                continue
            if worker.ended is None:
                worker.process.end()  # all that it started
                worker.ended = time.monotonic()
            ends = self.exchange.channels.get(channel)
            if ends is None or ends.source is None or time.monotonic() - worker.ended > END_SECONDS:
                self._bury(channel, worker)

    def _kill(self, channel: int) -> None:
        if (worker := self._workers.get(channel)) is not None:
            worker.process.end()
            self._bury(channel, worker)
        elif channel in self._starting:
            self._bury_unborn(channel, EndedWorker(-signal.SIGKILL))
        elif self._waiting.pop(channel, None) is not None:
            self.exchange.detach(channel)
            self.exchange.send(said(PacketKind.ENDED, EndedWorker(-signal.SIGKILL), channel))

    def _bury(self, channel: int, worker: _HostedWorker) -> None:
        code = worker.process.wait()
        worker.drain.join(timeout=1)
        worker.process.close()
        del self._workers[channel]
        self.exchange.detach(channel)
        words = bytes(worker.printed[-LAST_WORDS:]).decode(errors="replace")
        self.exchange.send(said(PacketKind.ENDED, EndedWorker(code, words), channel))

    # -- files ------------------------------------------------------------------------------------------

    def _receive(self, channel: int, wanted: OpenWorker) -> None:
        asked = {one.digest for one in self._waiting.values()}
        if wanted.digest not in asked or not 0 <= wanted.nbytes <= LARGEST_FILE:
            raise Malformed("a file that nobody asked for, or one that is too large")
        path = self.scratch / f"coming-{channel}"
        sink = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._coming[channel] = _ComingFile(wanted.digest, wanted.nbytes, path)
        self.exchange.attach(channel, None, sink)

    def _arrived(self, channel: int) -> None:
        """It is what its digest says, or nobody is started with it."""
        if (file := self._coming.pop(channel, None)) is None:
            return
        self.exchange.detach(channel)
        with open(file.path, "rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        if found == file.digest:
            self._files[found] = file.path.replace(self.scratch / found)
        else:
            file.path.unlink()
        for waiting, wanted in list(self._waiting.items()):
            if wanted.digest != file.digest:
                continue
            del self._waiting[waiting]
            if found == file.digest:
                self._start(waiting, wanted)
                continue
            words = f"a file came with the digest {found[:12]} and not {file.digest[:12]}, as it should"
            self.exchange.detach(waiting)
            self.exchange.send(said(PacketKind.ENDED, EndedWorker(1, words), waiting))


def _worker(wanted: OpenWorker, file: Path | None) -> tuple[Start, list[str]]:
    """How it is started, and what."""
    kind = backends.kind(wanted.backend)
    if wanted.sandbox not in MODES or not wanted.purpose.isalpha():
        raise Malformed("a worker that nobody here knows")
    spec = f"{kind.name}:{file}" if kind.from_file and file is not None else kind.name
    start = start_in_folder(lambda own: worker_environment(spec, own, wanted.sandbox))
    return start, worker_command(spec, wanted.purpose)


def _end_unused(process: ChildProcess, mine: Sequence[int]) -> None:
    process.end()
    process.wait()
    process.close()
    for descriptor in mine:
        os.close(descriptor)


def _listen(descriptor: int, printed: bytearray) -> None:
    """Keep the last words, drop the rest."""
    with contextlib.suppress(OSError):
        while data := os.read(descriptor, 1 << 16):
            printed += data
            del printed[:-LAST_WORDS]
    os.close(descriptor)


def own_hello() -> Hello:
    return Hello("host", __version__, socket.gethostname(), machine_digest(), cores=usable_cores())


def serve() -> str:
    """On the standard streams, which nothing else uses from here on; why it ended."""
    reads, writes = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    with temporary_scratch() as scratch:
        host = WorkerHost(PacketExchange(reads, writes), scratch, own_hello())
        try:
            why = host.run()
        except KeyboardInterrupt:
            why = "it was told to end"
    return why
