"""Does it reach the operator? Original and tuned timed where they are called, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from tunesmith import backends
from tunesmith.errors import BadInput, DeviceMissing, TunesmithError
from tunesmith.problem.codec import Malformed, decode
from tunesmith.run.ports import Listener
from tunesmith.session import calling

DEADLINE = 600.0  # seconds
_WORDS = 2000  # of what a worker that failed has said


@dataclass(frozen=True)
class BenchedWay:
    """A way of calling. Times are microseconds a call; those of the host are until a call returns, with room
    in the launch queue."""

    way: str
    original_us: float
    tuned_us: float
    ratio: float  # original to tuned, the median of pairs taken in alternation
    interval: tuple[float, float]  # 95 %
    original_host_us: float
    tuned_host_us: float


@dataclass(frozen=True)
class BenchedWorkload:
    name: str
    sizes: dict[str, int]
    verified: float | None  # the kernel's own speed-up; None: the original serves
    ways: tuple[BenchedWay, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BenchResult:
    problem: str
    device: str
    workloads: tuple[BenchedWorkload, ...]
    notes: tuple[str, ...] = ()
    version: int = 1


@dataclass(frozen=True)
class BenchMessage:
    """A line of the worker's: one of these."""

    progress: str = ""
    missing: str = ""
    result: BenchResult | None = None


def notes_of(name: str, verified: float | None, ways: tuple[BenchedWay, ...]) -> tuple[str, ...]:
    """Where a kernel's win does not reach whoever calls it. The last way has the least overhead."""
    if verified is None:
        return (f"{name}: the original serves, there is no win to reach anybody",)
    kernel, notes = ways[-1], list[str]()
    saved = kernel.original_us - kernel.tuned_us
    for way in ways:
        if way.interval[0] > 1:
            continue
        if way.tuned_host_us >= kernel.tuned_us and 0 < saved < way.tuned_host_us:
            notes.append(
                f"{name}: the kernel's win of {saved:.1f} µs is smaller than the {way.tuned_host_us:.1f} µs "
                f"that the host needs for a call ({way.way}): it is not seen there"
            )
        else:
            notes.append(f"{name}: no gain is seen with {way.way}, {way.ratio:.2f}×")
    return tuple(notes)


def bench(folder: Path, listener: Listener, deadline: float = DEADLINE) -> BenchResult:
    """Of a run that has ended. DeviceMissing where its device, or what calls it, is not here."""
    dispatch = calling.dispatch_in(folder, calling.delivered_files(folder))
    kind = backends.kind_for(dispatch.language)
    with tempfile.TemporaryDirectory(prefix="tunesmith-bench-") as scratch:
        environment = dict(os.environ)
        if kind is not None:
            environment.update(kind.environment(Path(scratch), environment))
        command = [sys.executable, "-m", "tunesmith.session.bench_worker", str(folder.resolve())]
        with (
            open(Path(scratch) / "errors", "w+b") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment) as worker,
        ):
            late = threading.Timer(deadline, worker.kill)
            late.start()
            try:
                found = _followed(worker, listener)
            finally:
                expired = not late.is_alive()
                late.cancel()
                worker.kill()
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()[-_WORDS:]
    if found is not None and found.missing:
        raise DeviceMissing(found.missing, hint="run the same command where they are; see: tunesmith doctor")
    if found is None or found.result is None:
        if expired:
            hint = "give it more time with --seconds"
            raise BadInput(f"timing took longer than {deadline:.0f} s and was ended", hint=hint)
        raise TunesmithError(f"timing failed: {said or 'the process that timed ended without a word'}")
    return found.result


def _followed(worker: subprocess.Popen[bytes], listener: Listener) -> BenchMessage | None:
    assert worker.stdout is not None
    for line in worker.stdout:
        try:
            message = decode(line, BenchMessage)
        except Malformed:  # a library that prints
            continue
        if not message.progress:
            return message
        listener.note(message.progress)
    return None
