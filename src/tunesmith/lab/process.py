"""A worker process seen from outside: requests with deadlines, and its whole group killed when one passes."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple, NoReturn, Protocol

from tunesmith.backends import messages as m
from tunesmith.backends.messages import REPLY_TYPES, Built, Failed, Reply, Request
from tunesmith.base.codec import (
    Frame,
    Malformed,
    decode_tagged,
    encode_tagged,
    frame_parts,
    make_ready,
    read_frame,
)
from tunesmith.base.errors import TunesmithError
from tunesmith.base.files import check_room, explain_disk_errors
from tunesmith.base.text import end_of_process, redact_secrets, truncate_text
from tunesmith.lab.disturbance import processor_ticks
from tunesmith.run.config import secret_values
from tunesmith.run.protection import Protection

# Workers are forked from a process that has loaded what they need: milliseconds, not half a second.
IDLE = 10.0  # seconds without a child after which a server ends
START = 60.0  # seconds for a server to load what it needs, on a busy machine
SERVE = "--fork-server"
# Purposes of workers: what a tool starts, and who starts such a tool.
PROFILED, SANITIZED, INTERPRETED, TOOLS = "profile", "sanitize", "interpret", "tools"
WORKER = (sys.executable, "-P", "-m", "tunesmith.lab.worker.main")
# Variables that act when a process starts, or when one of the libraries is loaded that a server has loaded.
AT_START = ("LD_", "PYTHON", "OPENBLAS", "OMP_", "MKL_", "MALLOC_", "GLIBC_")
_NUMBER = struct.Struct("<i")
_NEWS = struct.Struct("<ci")  # of a child: STARTED and its process id, or ENDED and its exit status
STARTED, ENDED = b"s", b"e"


class ChildProcess(Protocol):
    """What a worker's owner needs of it."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, negative where a signal ended it; subprocess.TimeoutExpired."""

    def end(self) -> None:
        """Kill it, and all that it started."""

    def close(self) -> None:
        """From now on its process id may be another's."""


class LocalChild:
    """A process of this machine, which leads a group."""

    pid: int

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


Streams = tuple[int, int, int]


class CommandProcess(LocalChild, subprocess.Popen[bytes]):
    """A process of its own command."""

    def close(self) -> None:
        self.wait()


class _WithFolder(LocalChild):
    """A process, and a folder that goes when it does."""

    def __init__(self, process: ChildProcess, folder: Path) -> None:
        self.pid = process.pid
        self._process, self._folder = process, folder

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int:
        return self._process.wait(timeout)

    def close(self) -> None:
        self._process.close()
        try:
            shutil.rmtree(self._folder, ignore_errors=True)
        except RecursionError:  # folders in folders without end
            subprocess.run(["rm", "-rf", "--", self._folder], env={"PATH": os.defpath}, check=False)


def start_command(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None, streams: Streams
) -> ChildProcess:
    return CommandProcess(command, -1, None, *streams, env=environment, cwd=folder, start_new_session=True)


def start_worker(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None, streams: Streams
) -> ChildProcess:
    """Forks what `worker_command` names; starts the command where no server can be had."""
    key = tuple(sorted((name, value) for name, value in environment.items() if name.startswith(AT_START)))
    for _ in range(2 if sys.platform == "linux" else 0):  # one that is there may have ended, having been idle
        with _servers_lock:
            if key not in _servers:
                _servers[key] = ForkServer([*WORKER, SERVE], environment)
            server = _servers[key]
        try:
            return server.start(command[len(WORKER) :], environment, folder, streams)
        except ChildProcessError:
            break  # the command says why
        except OSError:
            with _servers_lock:
                if _servers.get(key) is server:
                    del _servers[key]
            server.close()
    return start_command(command, environment, folder, streams)


def start_in_folder(environment: Callable[[Path], Mapping[str, str]]) -> Callable[..., ChildProcess]:
    """Starts workers as `start_worker`, each in a new folder of the one it is given, with the environment of
    that."""

    def start(
        command: Sequence[str], _: Mapping[str, str], folder: Path | None, streams: Streams
    ) -> ChildProcess:
        created = Path(tempfile.mkdtemp(prefix="worker-", dir=folder))
        return _WithFolder(start_worker(command, environment(created), created, streams), created)

    return start


def worker_command(spec: str, purpose: str) -> list[str]:
    """`purpose` shows in the process list where the command is started and not forked."""
    return [*WORKER, spec, purpose]


class ForkedProcess(LocalChild):
    """A child of the server, which keeps its process id from being used again until `close`."""

    def __init__(self, pid: int, status: socket.socket) -> None:
        self.pid = pid
        self._status = status
        self._code: int | None = None

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None:
            ready, _, _ = select.select([self._status], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired([], timeout or 0.0)
            data = self._status.recv(_NEWS.size)
            # A server that is gone has taken its children along.
            self._code = _NEWS.unpack(data)[1] if len(data) == _NEWS.size else -signal.SIGKILL
        return self._code

    def close(self) -> None:
        self._status.close()


class ForkServer:
    """A process whose command calls `serve`, seen from outside. It ends with us, however we end."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                cwd="/",
                env=environment,
                start_new_session=True,
            )

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path | None, streams: Streams
    ) -> ForkedProcess:
        """A child with these as its standard streams. OSError where the server is gone or does not answer,
        ChildProcessError where only the child has ended before it began."""
        status, theirs = socket.socketpair()
        request = json.dumps([list(arguments), dict(environment), os.path.abspath(folder or ".")]).encode()
        try:
            with theirs, self._lock:
                socket.send_fds(self._requests, [_NUMBER.pack(len(request))], [*streams, theirs.fileno()])
                self._requests.sendall(request)
            ready, _, _ = select.select([status], [], [], START)
            data = status.recv(_NEWS.size) if ready else b""
            if len(data) != _NEWS.size:
                raise OSError("the fork server does not answer")
        except BaseException:  # also an interrupt: half a request may have been sent
            self._requests.close()
            status.close()
            raise
        news, number = _NEWS.unpack(data)
        if news != STARTED:
            status.close()
            raise ChildProcessError(f"the child ended before it began: {number}")
        return ForkedProcess(number, status)

    def close(self) -> None:
        self._requests.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # it hangs; its workers die with it
            self._process.kill()
            self._process.wait()


_servers: dict[tuple[tuple[str, str], ...], ForkServer] = {}
_servers_lock = threading.Lock()
atexit.register(lambda: list(map(ForkServer.close, _servers.values())))  # whoever ends leaves none behind
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_servers.clear)  # they are our parent's


def run_fork_server(run: Callable[[], None], idle: float | None = IDLE) -> NoReturn:
    """Forks a child for each request on standard input, which calls `run` with the arguments, environment,
    folder and streams of the request; until the other end is closed, or `idle` seconds without a child."""
    requests = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is our owner's to handle
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    children: dict[int, socket.socket] = {}
    ended: set[int] = set()
    while True:
        waiting = [requests.fileno(), woken, *(status.fileno() for status in children.values())]
        ready, _, _ = select.select(waiting, [], [], None if children else idle)
        if not ready:
            os._exit(0)
        if woken in ready:
            os.read(woken, 1 << 12)
        _tend_children(children, ended, ready)
        if requests.fileno() in ready:
            request = _receive_fork_request(requests)
            if request is None:
                for pid in children:
                    _kill_process_group(pid)
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                for other in (requests, *children.values()):
                    other.close()
                for descriptor in (null, woken, wake):
                    os.close(descriptor)
                _run_child(run, request)
            for descriptor in request.streams:
                os.close(descriptor)
            children[pid] = request.status


def _tend_children(children: dict[int, socket.socket], ended: set[int], ready: Sequence[int]) -> None:
    """Tell the owners of those that have ended, and be rid of those that their owners have let go."""
    for pid, status in list(children.items()):
        if pid not in ended and (code := _exit_code(pid)) is not None:
            ended.add(pid)
            with contextlib.suppress(OSError):  # its owner may be gone
                status.sendall(_NEWS.pack(ENDED, code))
        if status.fileno() in ready:
            _kill_process_group(pid)
            children.pop(pid).close()
            ended.discard(pid)


class ForkRequest(NamedTuple):
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    streams: list[int]
    status: socket.socket


def _receive_fork_request(requests: socket.socket) -> ForkRequest | None:
    try:
        size, descriptors, _, _ = socket.recv_fds(requests, _NUMBER.size, 4)
        if len(size) < _NUMBER.size:
            return None
        words = requests.recv(_NUMBER.unpack(size)[0], socket.MSG_WAITALL)
        arguments, environment, folder = json.loads(words)
    except (OSError, ValueError):
        return None  # the other end died in the middle of a request
    *streams, status = descriptors
    return ForkRequest(arguments, environment, folder, streams, socket.socket(fileno=status))


def _run_child(run: Callable[[], None], request: ForkRequest) -> NoReturn:
    """The life of a child."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        for descriptor, stream in enumerate(request.streams):
            os.dup2(stream, descriptor)
            os.close(stream)
        os.environ.clear()
        os.environ.update(request.environment)
        os.chdir(request.folder)
        sys.argv[1:] = request.arguments
        # Only now, so that whoever kills our process group kills all we shall start.
        request.status.sendall(_NEWS.pack(STARTED, os.getpid()))
        request.status.close()
        run()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for output in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                output.flush()
        os._exit(code)


def _exit_code(pid: int) -> int | None:
    """How it ended, as subprocess counts; it stays a zombie, so that its process id is not used again."""
    info = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if info is None:
        return None
    return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status


def _kill_process_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


STDERR_BYTES = 1 << 16
MOMENT = 0.1  # seconds
# What each request is answered with; each but the first may also fail.
REPLIES: Mapping[type[Request], type[Reply]] = {
    m.TellProtection: Protection,
    m.ListDevices: m.Devices,
    m.ListCompilers: m.Compilers,
    m.Build: m.Built,
    m.Open: m.Done,
    m.Load: m.Done,
    m.LaunchOnce: m.Done,
    m.RunBare: m.Done,
    m.RunCase: m.Ran,
    m.StoreCase: m.Judged,
    m.CheckCase: m.Judged,
    m.CheckCases: m.AllJudged,
    m.JudgeOutputs: m.Judged,
    m.TimeRuns: m.Timed,
    m.TimeAll: m.AllTimed,
    m.CountClusters: m.ClustersHeld,
    m.Refer: m.Expected,
    m.CompareOutputs: m.OutputCompared,
    m.FindTools: m.ToolsFound,
    m.RunUnder: m.EndedTool,
    m.CountLaunches: m.Counted,
}


class WorkerDied(Exception):
    """The process ended, or spoke nonsense, while a request was open."""


class WorkerTimedOut(Exception):
    """The deadline passed; the process group has been killed."""


class WorkerReplaced(Exception):
    """The worker that was meant died between two requests, or the way to it was lost (then the words say so);
    nothing was asked of the new one."""


class RequestDeadline:
    """The seconds that a worker has. Where this process itself did not run for a while, because the machine
    stood still, that counts as a moment: the worker did not run either, and has done nothing wrong. So does
    the share of its processors that a virtual machine is not given."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._seen = time.monotonic()
        self._ticks: tuple[int, int] | None = None

    def waits_for(self, to_read: Sequence[int] = (), to_write: Sequence[int] = ()) -> bool:
        """Until one of them is ready; false when the seconds are over."""
        while True:
            ready = select.select(to_read, to_write, [], max(0.0, min(self._left, MOMENT)))
            is_over = self._left <= 0.0
            now = time.monotonic()
            passed = min(now - self._seen, 2 * MOMENT)
            self._left -= passed * self._given() if passed > MOMENT / 2 else passed
            self._seen = now
            if any(ready):
                return True
            if is_over:
                return False

    def _given(self) -> float:
        """The share of the processors' time that this machine had since the last moment, a tenth at least."""
        before, self._ticks = self._ticks, processor_ticks()
        if before is None:
            return 1.0
        every, stolen = (now - then for now, then in zip(self._ticks, before, strict=True))
        return max(0.1, 1.0 - stolen / every) if every > 0 else 1.0


def _is_expected_reply(request: Request, reply: Reply, blobs: Sequence[bytes]) -> bool:
    if isinstance(reply, Failed):
        return not isinstance(request, m.TellProtection)
    return isinstance(reply, REPLIES[type(request)]) and (bool(blobs) or not isinstance(reply, Built))


_making_ready = threading.Lock()


class WorkerProcess:
    """Started by a command on first use, so that the same protocol reaches a device anywhere."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | None = None,
        start: Callable[..., ChildProcess] = start_command,
    ) -> None:
        with _making_ready:
            make_ready(REPLY_TYPES.values())
        self._command = list(command)
        self._start_process = start
        self._folder = folder  # where it starts: not among the user's files
        self._environment = dict(environment)
        self._process: ChildProcess | None = None
        self._streams: list[IO[bytes]] = []  # our ends: what it reads, says and prints
        self._stderr = bytearray()
        self._drain: threading.Thread | None = None
        self._closed = False
        self.generation = 0  # counts starts, so that callers know when a worker has forgotten everything

    def request(
        self, request: Request, blobs: Sequence[bytes] = (), *, deadline: float, generation: int | None = None
    ) -> tuple[Reply, tuple[bytes, ...]]:
        """Send one request and wait for its reply, `deadline` seconds at most. With a `generation`, only to
        that worker: what a later one was never told it cannot answer."""
        self.ensure_started()  # one that died since the last reply died of nothing in this request
        if generation is not None and generation != self.generation:
            raise WorkerReplaced
        frame = self.exchange(encode_tagged(request), blobs, deadline)
        try:
            reply = decode_tagged(frame.json, REPLY_TYPES)
        except Malformed as error:
            raise WorkerDied(self._post_mortem(f"spoke nonsense: {error}")) from error
        if isinstance(reply, Failed) and reply.what in ("build", "internal"):
            self._refuse_full_disk()
        if isinstance(reply, Failed):
            reply = replace(reply, message=redact_secrets(reply.message, secret_values()))
        elif isinstance(reply, Built):
            reply = replace(reply, log=redact_secrets(reply.log, secret_values()))
        if isinstance(reply, Failed) and reply.what == "internal":
            words = f"a worker failed inside Tunesmith: {reply.message}"
            raise TunesmithError(words, hint="please report it; the run can be resumed")
        if not _is_expected_reply(request, reply, frame.blobs):
            asked, said = type(request).__name__, type(reply).__name__
            raise WorkerDied(self._post_mortem(f"spoke nonsense: {said} in reply to {asked}"))
        return reply, frame.blobs

    def exchange(self, json: bytes, blobs: Sequence[bytes], deadline: float) -> Frame:
        """Send the frame of a request and wait for that of its reply, whatever is in them."""
        patience = RequestDeadline(deadline)
        try:
            for part in frame_parts(json, blobs, deadline):
                self._write(part, patience)
            frame = read_frame(lambda n: self._read(n, patience))
        except (WorkerTimedOut, KeyboardInterrupt):
            self.kill()
            raise
        except BrokenPipeError as error:
            raise WorkerDied(self._post_mortem()) from error
        except Malformed as error:
            raise WorkerDied(self._post_mortem(f"spoke nonsense: {error}")) from error
        if frame is None:
            raise WorkerDied(self._post_mortem())
        return frame

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def ensure_started(self) -> None:
        if self._closed:
            raise WorkerDied("the lab is closing")
        if not self.alive:
            self.kill()
            self._start()

    def close(self) -> None:
        """End it for good: whoever asks again hears that it died."""
        self._closed = True
        self.kill()

    def kill(self) -> None:
        """End the process and everything it started."""
        process, self._process = self._process, None
        if process is None:
            return
        process.end()
        process.wait()
        process.close()
        if self._drain:
            self._drain.join(timeout=5)
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.close()

    def _start(self) -> None:
        self._stderr.clear()
        (stdin, write), (read, stdout), (printed, stderr) = os.pipe(), os.pipe(), os.pipe()
        self._streams = [os.fdopen(write, "wb", 0), os.fdopen(read, "rb", 0), os.fdopen(printed, "rb", 0)]
        theirs = stdin, stdout, stderr
        try:
            process = self._start_process(self._command, self._environment, self._folder, theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        os.set_blocking(write, False)
        os.set_blocking(read, False)
        drain = threading.Thread(target=self._drain_stderr, args=(printed,), daemon=True)
        drain.start()
        self._drain, self._process = drain, process
        if self._closed:  # by another thread, which may have seen no process to kill
            self.kill()
            raise WorkerDied("the lab is closing")
        self.generation += 1

    def _drain_stderr(self, descriptor: int) -> None:
        """Keep the last words, drop the rest: a kernel may print without end."""
        while True:
            try:
                data = os.read(descriptor, 1 << 16)
            except OSError:
                return
            if not data:
                return
            self._stderr += data
            del self._stderr[:-STDERR_BYTES]

    def _write(self, data: bytes, patience: RequestDeadline) -> None:
        descriptor = self._streams[0].fileno()
        view = memoryview(data)
        while view:
            if not patience.waits_for(to_write=[descriptor]):
                raise WorkerTimedOut("the worker did not take the request in time")
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(descriptor, view[: 1 << 20]) :]

    def _read(self, size: int, patience: RequestDeadline) -> bytes:
        descriptor = self._streams[1].fileno()
        data = bytearray()
        while len(data) < size:
            if not patience.waits_for(to_read=[descriptor]):
                raise WorkerTimedOut("the deadline passed")
            try:
                chunk = os.read(descriptor, min(size - len(data), 1 << 20))
            except BlockingIOError:
                continue
            if not chunk:
                break
            data += chunk
        return bytes(data)

    def _refuse_full_disk(self) -> None:
        """A compiler that fails where nothing can be written has said nothing about the kernel."""
        scratch = Path(self._environment.get("TMPDIR", ""))
        if scratch.is_absolute():
            with explain_disk_errors("write there, as compilers must", scratch):
                check_room(scratch)

    def _post_mortem(self, otherwise: str = "closed its end") -> str:
        """How it ended, or what it did otherwise, in words, with the last it printed."""
        process = self._process
        if process is None:  # by another thread, since it was asked
            return "it was ended"
        try:
            code = process.wait(timeout=2)
            how = end_of_process(code)
        except subprocess.TimeoutExpired:
            how = otherwise
        self.kill()
        self._refuse_full_disk()
        printed = redact_secrets(self._stderr.decode(errors="replace"), secret_values())
        last_words = printed.strip().splitlines()[-8:]
        return "; ".join([how, *(truncate_text(line.strip(), 300) for line in last_words)])
