"""Where the tools of a sanitizer run: on this machine, or on the host of the device, by a worker that runs no
kernel itself.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from tunesmith.backends.messages import (
    Counted,
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
from tunesmith.backends.port import BackendKind, Counting, NoCounting, SanitizerKind
from tunesmith.base.errors import TunesmithError
from tunesmith.base.text import one_line, redact_secrets, strip_controls, truncate_text
from tunesmith.lab.process import (
    PROFILED,
    TOOLS,
    WorkerDied,
    WorkerProcess,
    WorkerReplaced,
    WorkerTimedOut,
    worker_command,
)
from tunesmith.profiles.facts import ALL, Counters
from tunesmith.run.config import secret_values
from tunesmith.run.protection import REQUIRED

MAX_OUTPUT = 4 << 20
BESIDE_SECONDS = 30.0  # for a worker elsewhere to begin and to answer, beside what the tool may take
FIND_SECONDS = 60.0
LONGEST_NAME = 300
NO_ANSWER = (WorkerDied, WorkerReplaced, WorkerTimedOut)
Spawn = Callable[[str], WorkerProcess]


class SanitizerHost(Protocol):
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
                how = (self.environment, Path(folder), log, end, seconds, MAX_OUTPUT)
                return run_under(self.kind.program, command, self.worker, [(what, tuple(blobs))], *how)
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
            reply = ask_tool_worker(
                self.spawn, RunUnder(tool, what, seconds), blobs, seconds + BESIDE_SECONDS
            )
        except NO_ANSWER as error:
            return EndedTool(1, "", "", fault=f"{self.name} could not be run there: {error}")
        if isinstance(reply, EndedTool):
            return replace(reply, log=reply.log[:MAX_OUTPUT], stderr=reply.stderr[-MAX_OUTPUT:])
        return EndedTool(1, "", "", fault=f"{self.name} could not be run there: {_refusal_reason(reply)}")


def ask_tool_worker(spawn: Spawn, request: Request, blobs: Sequence[bytes], seconds: float) -> Reply:
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
    sanitizer = kind.sanitizer
    if sanitizer is None:
        return kind.no_sanitizer
    program = sanitizer.find()
    if program is None:
        return sanitizer.missing
    if missing := why_no_sanitizer(kind, sandbox):
        return missing
    worker = worker_command(kind.name, "sanitize" if sanitizer.sockets else "interpret")
    return ToolsHere(sanitizer, program, worker, environment(), scratch)


def tools_there(kind: BackendKind, spawn: Spawn, sandbox: str) -> ToolsThere | str:
    """Those of a host whose workers `spawn` starts; DeviceMissing where it is lost."""
    if missing := why_no_sanitizer(kind, sandbox):
        return missing
    try:
        reply = ask_tool_worker(spawn, FindTools(), (), FIND_SECONDS)
    except NO_ANSWER as error:
        return f"its host does not say which sanitizer it has: {error}"
    if not isinstance(reply, ToolsFound):
        return f"its host does not say which sanitizer it has: {_refusal_reason(reply)}"
    if reply.missing:
        return truncate_text(strip_controls(reply.missing), LONGEST_NAME)
    return ToolsThere(truncate_text(strip_controls(reply.name), LONGEST_NAME), spawn)


def why_no_sanitizer(kind: BackendKind, sandbox: str) -> str:
    """Whatever the machine has."""
    if kind.sanitizer is None:
        return kind.no_sanitizer
    if kind.sanitizer.sockets and sandbox == REQUIRED:
        return f"--sandbox required: {kind.sanitizer.program} speaks over the network with what it watches"
    return ""


def answer_tool_request(kind: BackendKind, request: Request, blobs: Sequence[bytes]) -> Reply:
    """What the worker of a host answers: it starts the tool, which starts a worker in the sandbox."""
    scratch, sandbox = Path(os.environ["TMPDIR"]), os.environ.get("TUNESMITH_SANDBOX", "")
    if isinstance(request, CountLaunches):
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


def _refusal_reason(reply: Reply) -> str:
    return reply.message if isinstance(reply, Failed) else f"it answered with {type(reply).__name__}"


# What a host says it has counted is data: it is bounded, and what no profiler prints is no counter.
SECONDS = 150.0  # for what counts there: it gives up by itself before that
LONGEST_WHY = 600
MAX_LEFT_OUT = 200
LONGEST_METRIC = 200
READ = 16  # times what is kept of a host's words
MAX_SHARE = 10.0  # peaks are at another clock than the launch
MAX_RATIO = 1e4
MAX_SUM = 1e18
_SUMS = ("dram_read", "dram_written", "shared_wavefronts", "shared_conflicts")
_RATIOS = ("eligible_warps", "load_sectors", "store_sectors")
# Their parts may come from different replays of a launch: more than a whole is printed, and means nothing.
_WHOLES = {
    "occupancy": 1,
    "sm_active": 1,
    "l2_hits": 1,
    "local_sectors": 1,
    "load_bytes_per_sector": 32,
    "store_bytes_per_sector": 32,
}
_MAX = {
    **dict.fromkeys(_SUMS, MAX_SUM),
    **dict.fromkeys(_RATIOS, MAX_RATIO),
    **{name: MAX_SHARE * whole for name, whole in _WHOLES.items()},
    "threads_per_instruction": 32 * ALL,
}


@dataclass
class CountingThere:
    """By a worker for each workload, of the host of the device."""

    spawn: Spawn
    seconds: float = SECONDS
    _lasting: Counted | None = field(default=None, init=False)  # what will not be otherwise next time

    def count(self, what: CountLaunches, binary: bytes) -> Counted:
        if self._lasting is None:
            found = self._asked(what, binary)
            if not found.lasting:
                return found
            self._lasting = found
        return self._lasting

    def _asked(self, what: CountLaunches, binary: bytes) -> Counted:
        try:
            return sanitize_counted(
                ask_tool_worker(self.spawn, what, (binary,), self.seconds + BESIDE_SECONDS)
            )
        except (*NO_ANSWER, TunesmithError) as error:
            too_slow = isinstance(error, WorkerTimedOut)  # and so it would be the next time
            return Counted(
                None, f"its host counts nothing: {_sanitize_foreign_text(str(error))}", lasting=too_slow
            )


def counting_here(kind: BackendKind, environment: Mapping[str, str], scratch: Path, sandbox: str) -> Counting:
    """What reads the counters of a backend, with the environment of its workers, or says why nothing does."""
    if kind.counting is None or why_no_counters(kind, sandbox):
        return NoCounting(why_no_counters(kind, sandbox))
    return kind.counting(worker_command(kind.name, PROFILED), environment, scratch)


def counting_there(kind: BackendKind, spawn: Spawn, sandbox: str) -> Counting:
    """The same on the host whose workers `spawn` starts. What that has is known when it has counted."""
    missing = why_no_counters(kind, sandbox)
    return NoCounting(missing) if missing else CountingThere(spawn)


def why_no_counters(kind: BackendKind, sandbox: str) -> str:
    """Whatever the machine has."""
    if kind.counting is None:
        return kind.no_counters
    if sandbox == REQUIRED:
        return "--sandbox required: what counts speaks over the network with what it counts"
    return ""


def sanitize_counted(reply: Reply) -> Counted:
    """What a host has answered, as it may be repeated and judged by."""
    if isinstance(reply, Failed):
        return Counted(None, f"its host counts nothing: {_sanitize_foreign_text(reply.message)}")
    if not isinstance(reply, Counted):
        return Counted(None, f"its host counts nothing: it answered with {type(reply).__name__}")
    if reply.counters is None:
        return Counted(None, _sanitize_foreign_text(reply.why_not), lasting=reply.lasting)
    if fault := find_impossible_counter(reply.counters):
        return Counted(None, f"its host counted what cannot be: {fault}")
    left_out = tuple(_sanitize_foreign_text(name, LONGEST_METRIC) for name in reply.left_out[:MAX_LEFT_OUT])
    return Counted(without_excess(reply.counters), "", left_out)


def without_excess(counters: Counters) -> Counters:
    """Without what is more than a whole. That says nothing of the others."""
    excess: dict[str, None] = {
        name: None for name, whole in _WHOLES.items() if (getattr(counters, name) or 0.0) > ALL * whole
    }
    return Counters(**(vars(counters) | excess))


def find_impossible_counter(counters: Counters) -> str:
    """The first number that no profiler prints, with what it may be at most; empty: there is none."""
    for counter in fields(counters):
        value = getattr(counters, counter.name)
        if counter.name == "stalls":
            continue
        most = _MAX.get(counter.name, MAX_SHARE)
        if value is not None and not _is_within_limit(value, most):
            return f"{counter.name} is {value:g}, which is 0 to {most:g}"
    if (counters.shared_conflicts or 0.0) > ALL * (counters.shared_wavefronts or math.inf):
        return "more conflicts in shared memory than accesses to it"
    return _impossible_stalls(counters.stalls)


def _impossible_stalls(stalls: Sequence[tuple[str, float]]) -> str:
    for reason, share in stalls:
        if not _is_within_limit(share, ALL):
            return f"of the time warps waited {share:g} for {reason}, which is 0 to 1"
    if len({reason for reason, _ in stalls}) < len(stalls):
        return "it names a reason why warps waited twice"
    if sum(share for _, share in stalls) > ALL:
        return "warps waited for longer than they were there"
    return ""


def _is_within_limit(value: float, most: float) -> bool:
    return math.isfinite(value) and 0 <= value <= most


def _sanitize_foreign_text(text: str, most: int = LONGEST_WHY) -> str:
    """Far more is read than is kept, so that no part of a secret is left at the cut."""
    return one_line(redact_secrets(text[: READ * most], secret_values()), most) or "no reason given"
