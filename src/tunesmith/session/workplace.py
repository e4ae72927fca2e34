"""Where a session's workers run: who starts them, this machine or another, and with which backend."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from tunesmith import backends
from tunesmith.lab.fork_server import start_in_folder, worker_command
from tunesmith.lab.process import WorkerProcess
from tunesmith.problem.device import Device
from tunesmith.run import config as settings
from tunesmith.run.files import explained
from tunesmith.run.protection import AUTO, Protection
from tunesmith.text import digest_of

if TYPE_CHECKING:
    from tunesmith.backends.port import Counting
    from tunesmith.lab.sanitizing import SanitizerTools

Spawn = Callable[[str], WorkerProcess]  # of what for, which shows in the process list


class WorkerSource(Protocol):
    """Whoever starts workers, of one machine.

    One that is elsewhere can be lost and come back. A process that was lost with it says so (`lost` of
    `ChildProcess`): what was asked is asked again, and starting another waits until it is back, or raises
    DeviceMissing. One that comes back as another machine does not come back.
    """

    @property
    def name(self) -> str:
        """As the user calls it; empty: this machine."""
        ...

    @property
    def host(self) -> str:
        """What the machine calls itself."""
        ...

    @property
    def machine(self) -> str:
        """A digest that another machine does not have."""
        ...

    @property
    def device(self) -> str | None:
        """Which of its devices is meant, as for --device, which wins."""
        ...

    @property
    def measures(self) -> bool:
        """False: it only builds."""
        ...

    @property
    def arrivals(self) -> SimpleQueue[WorkerSource] | None:
        """Others that come while the run goes on; None: none do."""
        ...

    @property
    def cores(self) -> int:
        """Those that may be used there."""
        ...

    @property
    def gone(self) -> str:
        """Why it will not come back: it was lost, and waited for. Empty: it is there, or may be again."""
        ...

    def identity(self, device: str) -> str:
        """Of a device there, as outcomes carry it; empty: it is of the machine that the run is on."""
        ...

    def spawner(self, spec: str, scratch: Path, sandbox: str) -> Spawn:
        """Each worker has a folder of its own, as long as it lives: what one leaves reaches no other."""
        ...

    def compilers(self, spec: str) -> tuple[tuple[str, str], ...]:
        """Name and version of those that a backend has there."""
        ...

    def sanitizers(self, spec: str, scratch: Path, sandbox: str) -> SanitizerTools | str:
        """What watches kernels of a backend there, or why nothing does."""
        ...

    def counting(self, spec: str, scratch: Path, sandbox: str) -> Counting:
        """What reads hardware counters of a backend there, or says why nothing does."""
        ...

    def close(self) -> None:
        """Nobody waits for it any more. It may be closed already."""
        ...


class ThisMachine:
    name = host = gone = ""
    device: str | None = None
    measures, arrivals = True, None

    @property
    def machine(self) -> str:
        return machine_digest()

    @property
    def cores(self) -> int:
        return usable_cores()

    def identity(self, device: str) -> str:
        del device
        return ""

    def spawner(self, spec: str, scratch: Path, sandbox: str) -> Spawn:
        name, _, path = spec.partition(":")
        absolute = f"{name}:{Path(path).absolute()}" if backends.kind(spec).from_file else name
        environment = worker_environment(spec, scratch, sandbox)
        start = start_in_folder(lambda folder: worker_environment(spec, folder, sandbox))
        return lambda purpose: WorkerProcess(worker_command(absolute, purpose), environment, scratch, start)

    def compilers(self, spec: str) -> tuple[tuple[str, str], ...]:
        return backends.compilers(spec) or ()

    def sanitizers(self, spec: str, scratch: Path, sandbox: str) -> SanitizerTools | str:
        from tunesmith.lab.sanitizing import sanitizer_tools  # which a host of workers does not need

        kind = backends.kind(spec)
        return sanitizer_tools(kind, lambda: worker_environment(spec, scratch, sandbox), scratch, sandbox)

    def counting(self, spec: str, scratch: Path, sandbox: str) -> Counting:
        from tunesmith.lab.counting import counting_here  # which few runs need

        where = (worker_environment(spec, scratch, sandbox), scratch, sandbox)
        return counting_here(backends.kind(spec), *where)

    def close(self) -> None:
        """Its workers end with whoever started them."""


HERE = ThisMachine()


@dataclass(frozen=True)
class Workplace:
    """Workers of one backend, somewhere."""

    spec: str  # the backend, with the file it is made from where it has one
    scratch: Path  # a folder of this machine
    sandbox: str = AUTO
    source: WorkerSource = HERE

    @property
    def is_here(self) -> bool:
        return self.source is HERE

    @cached_property
    def spawn(self) -> Spawn:
        return self.source.spawner(self.spec, self.scratch, self.sandbox)

    def compilers(self) -> tuple[tuple[str, str], ...]:
        return self.source.compilers(self.spec)

    def sanitizers(self) -> SanitizerTools | str:
        return self.source.sanitizers(self.spec, self.scratch, self.sandbox)

    def counting(self) -> Counting:
        return self.source.counting(self.spec, self.scratch, self.sandbox)

    def environment(self) -> dict[str, str]:
        """What workers see, where they are of this machine."""
        return worker_environment(self.spec, self.scratch, self.sandbox)


@dataclass(frozen=True)
class LocalDevices:
    """The devices of one backend where its workers are, or why there is none."""

    spec: str
    devices: tuple[Device, ...]
    trouble: str = ""
    protection: Protection | None = None  # of workers

    @property
    def notes(self) -> tuple[str, ...]:
        return (self.protection.sentence,) if self.protection is not None else ()


@dataclass(frozen=True)
class Post:
    """A device that measures, and where its worker is."""

    name: str  # as outcomes carry it
    device: Device
    place: Workplace
    card: str  # two workers of one card take turns


def usable_cores(root: Path = Path("/")) -> int:
    """Those that this process may use: affinity and control groups may leave it fewer than there are."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([there, *_quotas(root)]))


def _quotas(root: Path) -> Iterator[int]:
    """In cores, of the own control group and of those around it. What cannot be read limits nothing."""
    mounted = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        group = PurePosixPath(path.lstrip("/"))
        for part in (group, *group.parents):
            if number == "0" and not controllers:  # version 2
                quota, _, period = _read(mounted / part / "cpu.max").strip().partition(" ")
            elif "cpu" in controllers.split(","):
                folder = mounted / "cpu" / part
                quota, period = (_read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
            else:
                break
            if quota.isdecimal() and period.isdecimal() and int(period):
                yield -(-int(quota) // int(period))


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def machine_digest() -> str:
    """Of this machine: another has another."""
    file = Path("/etc/machine-id")
    number = file.read_text(errors="replace") if file.is_file() else ""
    return digest_of(socket.gethostname(), number)


def worker_environment(spec: str, scratch: Path, sandbox: str = AUTO) -> dict[str, str]:
    """What every worker sees, and what those of the backend do."""
    kind = backends.kind(spec)
    common = settings.worker_environment(scratch, kind.inherits, sandbox)
    with explained("write temporary files", scratch):
        return {**common, **kind.environment(scratch, common)}


def isolated_command(module: str, spec: str, *arguments: object) -> list[str]:
    """A program of ours that runs something of a problem, a run or a template for a backend. It is started in
    a scratch folder with `worker_environment`, and first calls `enter_sandbox`."""
    return [sys.executable, "-P", "-m", module, spec, *map(str, arguments)]


@contextmanager
def temporary_scratch() -> Iterator[Path]:
    with explained("make a temporary folder", Path("$TMPDIR"), instead="another place with TMPDIR=DIR"):
        temporary = tempfile.TemporaryDirectory(prefix="tunesmith-", ignore_cleanup_errors=True)
    with temporary as name:
        yield Path(name)


_THREADS_LOCK = Lock()
_thread_limits: Any = None
_runs_inside = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """While a run searches: idle threads of linear algebra spin beside what builds and measures. For what is
    loaded by now. It is one setting of the process: with the end of the last run the threads come back."""
    global _thread_limits, _runs_inside
    from threadpoolctl import threadpool_limits  # which few commands need

    with _THREADS_LOCK:
        _runs_inside += 1
        if _runs_inside == 1:
            _thread_limits = threadpool_limits(1)
    try:
        yield
    finally:
        with _THREADS_LOCK:
            _runs_inside -= 1
            if _runs_inside == 0:
                _thread_limits.restore_original_limits()
