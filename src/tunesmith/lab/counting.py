"""What reads hardware counters: on this machine, or on the host of the device, by a worker that runs no
kernel itself. What a host says is data: it is bounded, and what no profiler prints is no counter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tunesmith.backends.messages import Counted, CountLaunches, Failed, Reply
from tunesmith.backends.port import BackendKind, Counting, NoCounting
from tunesmith.errors import TunesmithError
from tunesmith.lab.fork_server import PROFILED, worker_command
from tunesmith.lab.process import WorkerTimedOut
from tunesmith.lab.tool_runs import BESIDE_SECONDS, NO_ANSWER, Spawn, ask
from tunesmith.profiles.counters import ALL, Counters
from tunesmith.run.config import secrets
from tunesmith.run.protection import REQUIRED
from tunesmith.text import one_line, redacted

SECONDS = 150.0  # for what counts there: it gives up by itself before that
LONGEST_WHY = 600
MOST_LEFT_OUT = 200
LONGEST_METRIC = 200
READ = 16  # times what is kept of a host's words
MOST_SHARE = 10.0  # peaks are at another clock than the launch
MOST_RATIO = 1e4
MOST_SUM = 1e18
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
_MOST = {
    **dict.fromkeys(_SUMS, MOST_SUM),
    **dict.fromkeys(_RATIOS, MOST_RATIO),
    **{name: MOST_SHARE * whole for name, whole in _WHOLES.items()},
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
            return checked(ask(self.spawn, what, (binary,), self.seconds + BESIDE_SECONDS))
        except (*NO_ANSWER, TunesmithError) as error:
            too_slow = isinstance(error, WorkerTimedOut)  # and so it would be the next time
            return Counted(None, f"its host counts nothing: {_foreign(str(error))}", lasting=too_slow)


def counting_here(kind: BackendKind, environment: Mapping[str, str], scratch: Path, sandbox: str) -> Counting:
    """What reads the counters of a backend, with the environment of its workers, or says why nothing does."""
    if kind.counting is None or why_not(kind, sandbox):
        return NoCounting(why_not(kind, sandbox))
    return kind.counting(worker_command(kind.name, PROFILED), environment, scratch)


def counting_there(kind: BackendKind, spawn: Spawn, sandbox: str) -> Counting:
    """The same on the host whose workers `spawn` starts. What that has is known when it has counted."""
    missing = why_not(kind, sandbox)
    return NoCounting(missing) if missing else CountingThere(spawn)


def why_not(kind: BackendKind, sandbox: str) -> str:
    """Whatever the machine has."""
    if kind.counting is None:
        return kind.no_counters
    if sandbox == REQUIRED:
        return "--sandbox required: what counts speaks over the network with what it counts"
    return ""


def checked(reply: Reply) -> Counted:
    """What a host has answered, as it may be repeated and judged by."""
    if isinstance(reply, Failed):
        return Counted(None, f"its host counts nothing: {_foreign(reply.message)}")
    if not isinstance(reply, Counted):
        return Counted(None, f"its host counts nothing: it answered with {type(reply).__name__}")
    if reply.counters is None:
        return Counted(None, _foreign(reply.why_not), lasting=reply.lasting)
    if fault := impossible(reply.counters):
        return Counted(None, f"its host counted what cannot be: {fault}")
    left_out = tuple(_foreign(name, LONGEST_METRIC) for name in reply.left_out[:MOST_LEFT_OUT])
    return Counted(without_excess(reply.counters), "", left_out)


def without_excess(counters: Counters) -> Counters:
    """Without what is more than a whole. That says nothing of the others."""
    excess: dict[str, Any] = {
        name: None for name, whole in _WHOLES.items() if (getattr(counters, name) or 0.0) > ALL * whole
    }
    return replace(counters, **excess)


def impossible(counters: Counters) -> str:
    """The first number that no profiler prints, with what it may be at most; empty: there is none."""
    for own in fields(counters):
        value = getattr(counters, own.name)
        if own.name == "stalls":
            continue
        most = _MOST.get(own.name, MOST_SHARE)
        if value is not None and not _within(value, most):
            return f"{own.name} is {value:g}, which is 0 to {most:g}"
    if (counters.shared_conflicts or 0.0) > ALL * (counters.shared_wavefronts or math.inf):
        return "more conflicts in shared memory than accesses to it"
    return _impossible_stalls(counters.stalls)


def _impossible_stalls(stalls: Sequence[tuple[str, float]]) -> str:
    for reason, share in stalls:
        if not _within(share, ALL):
            return f"of the time warps waited {share:g} for {reason}, which is 0 to 1"
    if len({reason for reason, _ in stalls}) < len(stalls):
        return "it names a reason why warps waited twice"
    if sum(share for _, share in stalls) > ALL:
        return "warps waited for longer than they were there"
    return ""


def _within(value: float, most: float) -> bool:
    return math.isfinite(value) and 0 <= value <= most


def _foreign(text: str, most: int = LONGEST_WHY) -> str:
    """Far more is read than is kept, so that no part of a secret is left at the cut."""
    return one_line(redacted(text[: READ * most], secrets()), most) or "no reason given"
