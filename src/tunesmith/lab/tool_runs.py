"""Where the tools of a sanitizer run: on this machine, or on the host of the device, by a worker that runs no
kernel itself."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from tunesmith.backends.messages import (
    CountLaunches,
    EndedTool,
    Failed,
    FindTools,
    Reply,
    Request,
    RunBare,
    RunUnder,
    ToolsFound,
)
from tunesmith.backends.port import BackendKind, SanitizerKind
from tunesmith.lab.fork_server import TOOLS, worker_command
from tunesmith.lab.process import WorkerDied, WorkerProcess, WorkerReplaced, WorkerTimedOut
from tunesmith.run.protection import REQUIRED
from tunesmith.text import cut, plain

MOST_OUTPUT = 4 << 20
BESIDE_SECONDS = 30.0  # for a worker elsewhere to begin and to answer, beside what the tool may take
FIND_SECONDS = 60.0
LONGEST_NAME = 300
NO_ANSWER = (WorkerDied, WorkerReplaced, WorkerTimedOut)
Spawn = Callable[[str], WorkerProcess]


class ToolPlace(Protocol):
    """Runs a worker under the tools of a sanitizer."""

    @property
    def name(self) -> str:
        """Of the program, with its version."""

    def run(self, tool: str, what: RunBare, blobs: Sequence[bytes], seconds: float) -> EndedTool:
        """Never raises for what the tool does: that is a sentence."""


@dataclass(frozen=True)
class ToolsHere:
    """`worker` is the command of a worker that reads requests from a file, without the names of the files."""

    kind: SanitizerKind
    program: str
    worker: Sequence[str]
    environment: Mapping[str, str]
    scratch: Path

    @cached_property
    def name(self) -> str:
        return f"{self.kind.program} {self.kind.version(self.program)}".strip()

    def run(self, tool: str, what: RunBare, blobs: Sequence[bytes], seconds: float) -> EndedTool:
        from tunesmith.backends.tool_process import run_under  # which few runs need

        end = time.monotonic() + seconds
        try:
            with tempfile.TemporaryDirectory(prefix="sanitize-", dir=self.scratch) as folder:
                log = Path(folder, "log")
                command = self.kind.command(self.program, tool, log)
                own = (self.environment, Path(folder), log, end, seconds, MOST_OUTPUT)
                return run_under(self.kind.program, command, self.worker, [(what, tuple(blobs))], *own)
        except OSError as error:
            return EndedTool(
                1, "", "", fault=f"{self.kind.program} could not be run: {error.strerror or error}"
            )


@dataclass(frozen=True)
class ToolsThere:
    """By a worker for each run, of the host of the device. What it says is data."""

    name: str
    spawn: Spawn

    def run(self, tool: str, what: RunBare, blobs: Sequence[bytes], seconds: float) -> EndedTool:
        try:
            reply = ask(self.spawn, RunUnder(tool, what, seconds), blobs, seconds + BESIDE_SECONDS)
        except NO_ANSWER as error:
            return EndedTool(1, "", "", fault=f"{self.name} could not be run there: {error}")
        if isinstance(reply, EndedTool):
            return replace(reply, log=reply.log[:MOST_OUTPUT], stderr=reply.stderr[-MOST_OUTPUT:])
        return EndedTool(1, "", "", fault=f"{self.name} could not be run there: {_refused(reply)}")


def ask(spawn: Spawn, request: Request, blobs: Sequence[bytes], seconds: float) -> Reply:
    """A worker for tools, of a host; NO_ANSWER where it gives none, DeviceMissing where the host is lost."""
    worker = spawn(TOOLS)
    try:
        return worker.request(request, blobs, deadline=seconds)[0]
    finally:
        worker.kill()


def tools_here(
    kind: BackendKind, environment: Callable[[], Mapping[str, str]], scratch: Path, sandbox: str
) -> ToolsHere | str:
    """Those of a backend, with the environment of its workers; or why there are none."""
    own = kind.sanitizer
    if own is None:
        return kind.no_sanitizer
    program = own.find()
    if program is None:
        return own.missing
    if missing := why_not(kind, sandbox):
        return missing
    worker = worker_command(kind.name, "sanitize" if own.sockets else "interpret")
    return ToolsHere(own, program, worker, environment(), scratch)


def tools_there(kind: BackendKind, spawn: Spawn, sandbox: str) -> ToolsThere | str:
    """Those of a host whose workers `spawn` starts; DeviceMissing where it is lost."""
    if missing := why_not(kind, sandbox):
        return missing
    try:
        reply = ask(spawn, FindTools(), (), FIND_SECONDS)
    except NO_ANSWER as error:
        return f"its host does not say which sanitizer it has: {error}"
    if not isinstance(reply, ToolsFound):
        return f"its host does not say which sanitizer it has: {_refused(reply)}"
    if reply.missing:
        return cut(plain(reply.missing), LONGEST_NAME)
    return ToolsThere(cut(plain(reply.name), LONGEST_NAME), spawn)


def why_not(kind: BackendKind, sandbox: str) -> str:
    """Whatever the machine has."""
    if kind.sanitizer is None:
        return kind.no_sanitizer
    if kind.sanitizer.sockets and sandbox == REQUIRED:
        return f"--sandbox required: {kind.sanitizer.program} speaks over the network with what it watches"
    return ""


def answer(kind: BackendKind, request: Request, blobs: Sequence[bytes]) -> Reply:
    """What the worker of a host answers: it starts the tool, which starts a worker in the sandbox."""
    scratch, sandbox = Path(os.environ["TMPDIR"]), os.environ.get("TUNESMITH_SANDBOX", "")
    if isinstance(request, CountLaunches):
        from tunesmith.lab.counting import counting_here  # which few runs need

        return counting_here(kind, dict(os.environ), scratch, sandbox).count(request, *blobs)
    found = tools_here(kind, lambda: dict(os.environ), scratch, sandbox)
    match request:
        case FindTools():
            return ToolsFound(missing=found) if isinstance(found, str) else ToolsFound(found.name)
        case RunUnder(tool, what, seconds) if not isinstance(found, str):
            return found.run(tool, what, blobs, seconds)
        case RunUnder():
            return Failed("unsupported", str(found))
    return Failed("unsupported", f"{type(request).__name__}: this worker runs tools and no kernels")


def _refused(reply: Reply) -> str:
    return reply.message if isinstance(reply, Failed) else f"it answered with {type(reply).__name__}"
