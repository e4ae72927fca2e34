"""Long work behind handles: a process each, which goes on while nobody waits, and can be ended."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.cli.mcp.answers import JobAnswer
from tunesmith.cli.mcp.worker import WorkLine, WorkOrder
from tunesmith.errors import BadInput
from tunesmith.problem.codec import Malformed, decode, encode

PATIENCE = 20.0  # seconds that work which was asked to end may take to clean up
_SAID = 12  # lines of progress that are kept
_KEPT = 64  # jobs that have ended


@dataclass
class Job:
    """One piece of work. Its process is told to end by closing its input."""

    handle: str
    order: WorkOrder
    process: subprocess.Popen[bytes]
    begun: float = field(default_factory=time.monotonic)
    said: deque[str] = field(default_factory=lambda: deque(maxlen=_SAID))
    lines: int = 0
    last: WorkLine = field(default_factory=WorkLine)  # the newest with figures
    ended: WorkLine | None = None
    seconds: float = 0.0
    is_stopped: bool = False

    @property
    def run(self) -> str:
        """The folder of its run, where it has one."""
        return self.order.out or "" if self.order.kind in ("tune", "compare") else self.order.target

    def listen(self) -> None:
        """To the end of its process; in a thread of its own."""
        assert self.process.stdout is not None
        for data in self.process.stdout:
            try:
                line = decode(data, WorkLine, "line of a worker")
            except Malformed:
                continue
            if line.ended:
                self._end(line)
                break
            self.last = line if line.evaluations or line.best is not None else self.last
            if line.text:
                self.said.append(line.text)
            self.lines += 1
        self.process.stdout.close()
        self.process.wait()
        self._close_input()
        if self.ended is None:
            died = f"the process of this work ended with {self.process.returncode} before it could say why"
            state = "cancelled" if self.is_stopped else "failed"
            self._end(WorkLine(ended=state, error=died, hint="go on with its run with the tool resume"))

    def _end(self, line: WorkLine) -> None:
        self.seconds = time.monotonic() - self.begun
        self.ended = line

    def stop(self) -> None:
        """As Ctrl-C would: a run keeps all that was measured and can be resumed."""
        self.is_stopped = True
        self._close_input()

    def _close_input(self) -> None:
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()

    def answer(self) -> JobAnswer:
        ended = self.ended or WorkLine()
        return JobAnswer(
            self.handle,
            self.order.kind,
            ended.ended or "running",
            round(self.seconds if self.ended else time.monotonic() - self.begun, 1),
            self.last.evaluations,
            self.last.best,
            tuple(self.said),
            ended.run,
            ended.checked,
            ended.profile,
            ended.error,
            ended.hint,
            ended.compared,
        )


@dataclass
class Jobs:
    """Those of one server. One has the device at a time: measured side by side they would disturb each
    other."""

    environment: Mapping[str, str] | None = None  # of their processes; None: ours
    program: tuple[str, ...] = ("-m", "tunesmith.cli.mcp.worker")
    _jobs: dict[str, Job] = field(default_factory=dict, init=False)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1), init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    # Its processes are nowhere where somebody's settings or modules lie.
    _nowhere: tempfile.TemporaryDirectory[str] = field(
        default_factory=lambda: tempfile.TemporaryDirectory(
            prefix="tunesmith-mcp-", ignore_cleanup_errors=True
        ),
        init=False,
    )

    @property
    def nowhere(self) -> str:
        return self._nowhere.name

    def start(self, order: WorkOrder) -> Job:
        with self._lock:
            for other in self._jobs.values():
                if other.ended is None:
                    fault = f"one piece of work has the device at a time, and {other.handle} is at work"
                    raise BadInput(fault, hint=f"wait for it: wait {other.handle}; or end it: cancel")
            process = subprocess.Popen(
                [sys.executable, "-P", *self.program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=self.nowhere,
                env=self.environment,
                start_new_session=True,
            )
            job = Job(f"{order.kind}-{next(self._numbers)}", order, process)
            assert process.stdin is not None
            process.stdin.write(encode(order) + b"\n")
            process.stdin.flush()
            self._jobs[job.handle] = job
            self._forget()
        threading.Thread(target=job.listen, daemon=True).start()
        return job

    def _forget(self) -> None:
        over = [handle for handle, job in self._jobs.items() if job.ended is not None]
        for handle in over[:-_KEPT]:
            del self._jobs[handle]

    def get(self, handle: str) -> Job:
        if handle not in self._jobs:
            known = ", ".join(self._jobs) or "none"
            hint = "look at a run by its folder: status with run; an unfinished one goes on with resume"
            raise BadInput(
                f"a handle is what tune and its like return; got {handle!r}, known: {known}", hint=hint
            )
        return self._jobs[handle]

    def of_run(self, folder: Path) -> Job | None:
        """The newest that is at work in this run."""
        own = [job for job in self._jobs.values() if job.ended is None and job.run == str(folder)]
        return own[-1] if own else None

    def close(self) -> None:
        """End all that is at work, and let it clean up."""
        at_work = [job for job in self._jobs.values() if job.ended is None]
        for job in at_work:
            job.stop()
        until = time.monotonic() + PATIENCE
        for job in at_work:
            try:
                job.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                job.process.terminate()
        self._nowhere.cleanup()
