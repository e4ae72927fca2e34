"""Does it reach the operator? Original and tuned timed where they are called, in a process of its own."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith import backends
from tunesmith.errors import BadInput, DeviceMissing, TunesmithError
from tunesmith.problem.codec import Malformed, decode
from tunesmith.run.ports import Listener
from tunesmith.run.protection import AUTO
from tunesmith.session import calling
from tunesmith.session.workplace import isolated_command, worker_environment

DEADLINE = 600.0  # seconds
# Inductor's other processes would speak over memory that is shared, which the sandbox has not.
IN_THE_SANDBOX = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
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
class FailedWay:
    """A way of calling that could not be timed; without a name, none of them could."""

    way: str
    why: str


@dataclass(frozen=True)
class BenchedWorkload:
    name: str
    sizes: dict[str, int]
    verified: float | None  # the kernel's own speed-up, by the run; None: the original serves
    ways: tuple[BenchedWay, ...]
    notes: tuple[str, ...] = ()
    failed: tuple[FailedWay, ...] = ()


@dataclass(frozen=True)
class BenchResult:
    problem: str
    device: str
    workloads: tuple[BenchedWorkload, ...]
    notes: tuple[str, ...] = ()
    version: int = 1


@dataclass(frozen=True)
class BenchMessage:
    """A line of the worker's: one of these. What is `missing`, what `failed` and `done` are the last."""

    progress: str = ""
    start: BenchResult | None = None  # without workloads, which follow
    workload: BenchedWorkload | None = None
    missing: str = ""
    failed: str = ""
    done: bool = False


def notes_of(name: str, verified: float | None, ways: tuple[BenchedWay, ...]) -> tuple[str, ...]:
    """Where a kernel's win does not reach whoever calls it. The last way has the least overhead."""
    if verified is None:
        return (f"{name}: the original serves, there is no win to reach anybody",)
    if not ways:
        return ()
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


def bench(folder: Path, listener: Listener, deadline: float = DEADLINE, sandbox: str = AUTO) -> BenchResult:
    """Of a run that has ended. DeviceMissing where its device, or what calls it, is not here. What was timed
    before the time was up, or before something broke, is the result, with a note."""
    dispatch = calling.dispatch_in(folder, calling.delivered_files(folder))
    spec = backends.backend_for(dispatch.language, None)
    with tempfile.TemporaryDirectory(prefix="tunesmith-bench-") as scratch:
        environment = {**worker_environment(spec, Path(scratch), sandbox), **IN_THE_SANDBOX}
        command = isolated_command("tunesmith.session.bench_worker", spec, folder.resolve())
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, env=environment, cwd=scratch
            ) as worker,
        ):
            late = threading.Timer(deadline, worker.kill)
            late.start()
            try:
                assert worker.stdout is not None
                told = _followed(worker.stdout, listener)
            finally:
                expired = not late.is_alive()
                late.cancel()
                worker.kill()
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()[-_WORDS:]
    return _result(told, f"took longer than {deadline:.0f} s and was ended" if expired else "", said)


def _followed(lines: Iterable[bytes], listener: Listener) -> list[BenchMessage]:
    """All but the progress, until the last."""
    told: list[BenchMessage] = []
    for line in lines:
        try:
            message = decode(line, BenchMessage)
        except Malformed:  # a library that prints
            continue
        if message.progress:
            listener.note(message.progress)
            continue
        told.append(message)
        if message.missing or message.failed or message.done:
            break
    return told


def _result(told: Sequence[BenchMessage], late: str, said: str) -> BenchResult:
    """`late`: that it was ended, where it was; `said`: the last words of a process that ended by itself."""
    last = told[-1] if told else BenchMessage()
    if last.missing:
        hint = "run the same command on the run's device; to tune for another: tunesmith retune RUN"
        raise DeviceMissing(last.missing, hint=hint)
    start = next((message.start for message in told if message.start is not None), None)
    timed = tuple(message.workload for message in told if message.workload is not None)
    has_ways = any(workload.ways for workload in timed)
    if start is not None and last.done and (has_ways or not any(w.failed for w in timed)):
        return replace(start, workloads=timed)
    if not late and last.done:
        failed = next(workload.failed[0] for workload in timed if workload.failed)
        last = replace(last, failed=f"{failed.way}: {failed.why}" if failed.way else failed.why)
    why = late or f"failed: {last.failed or said or 'the process that timed ended without a word'}"
    if start is not None and has_ways:
        note = f"this is not all: timing {why}"
        return replace(start, workloads=timed, notes=(*start.notes, note))
    if late:
        raise BadInput(f"timing {why}", hint="give it more time with --seconds")
    raise TunesmithError(f"timing {why}")
