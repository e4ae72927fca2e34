"""A worker process seen from outside: requests with deadlines, and its whole group killed when one passes."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from tunesmith.backends import messages as m
from tunesmith.backends.messages import REPLY_TYPES, Built, Failed, Reply, Request
from tunesmith.errors import TunesmithError
from tunesmith.lab.fork_server import ChildProcess, start_command
from tunesmith.lab.processor_waits import processor_ticks
from tunesmith.problem.codec import (
    Frame,
    Malformed,
    decode_tagged,
    encode_tagged,
    frame_parts,
    make_ready,
    read_frame,
)
from tunesmith.run.config import secrets
from tunesmith.run.files import check_room, explained
from tunesmith.run.protection import Protection
from tunesmith.text import cut, end_of_process, redacted

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


class Patience:
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


def _answers(request: Request, reply: Reply, blobs: Sequence[bytes]) -> bool:
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
            reply = replace(reply, message=redacted(reply.message, secrets()))
        elif isinstance(reply, Built):
            reply = replace(reply, log=redacted(reply.log, secrets()))
        if isinstance(reply, Failed) and reply.what == "internal":
            words = f"a worker failed inside Tunesmith: {reply.message}"
            raise TunesmithError(words, hint="please report it; the run can be resumed")
        if not _answers(request, reply, frame.blobs):
            asked, said = type(request).__name__, type(reply).__name__
            raise WorkerDied(self._post_mortem(f"spoke nonsense: {said} in reply to {asked}"))
        return reply, frame.blobs

    def exchange(self, json: bytes, blobs: Sequence[bytes], deadline: float) -> Frame:
        """Send the frame of a request and wait for that of its reply, whatever is in them."""
        patience = Patience(deadline)
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

    def _write(self, data: bytes, patience: Patience) -> None:
        descriptor = self._streams[0].fileno()
        view = memoryview(data)
        while view:
            if not patience.waits_for(to_write=[descriptor]):
                raise WorkerTimedOut("the worker did not take the request in time")
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(descriptor, view[: 1 << 20]) :]

    def _read(self, size: int, patience: Patience) -> bytes:
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
            with explained("write there, as compilers must", scratch):
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
        printed = redacted(self._stderr.decode(errors="replace"), secrets())
        last_words = printed.strip().splitlines()[-8:]
        return "; ".join([how, *(cut(line.strip(), 300) for line in last_words)])
