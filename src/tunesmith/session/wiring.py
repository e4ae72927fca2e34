"""Workers of a backend on this machine, and what is made of them: builders, runners, counters and labs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tunesmith import backends
from tunesmith.backends.port import Counting, NoCounting
from tunesmith.lab.builders import Builders
from tunesmith.lab.ceilings import KeptCeilings
from tunesmith.lab.lab import LabSettings, LocalLab
from tunesmith.lab.process import WorkerProcess
from tunesmith.lab.runner import Runner
from tunesmith.problem.cases import ExtraCase
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.run import config as settings
from tunesmith.run.outcome import Outcome
from tunesmith.run.ports import ResultCache
from tunesmith.run.store import explained

LEAST_AHEAD = 8
NO_COUNTERS = "a search does without, unless it is told --counters"


def worker_spawner(spec: str, scratch: Path) -> Callable[[str], WorkerProcess]:
    """Makes worker processes; the argument says what for, and shows in the process list."""
    name, _, path = spec.partition(":")
    absolute = f"{name}:{Path(path).absolute()}" if backends.kind(spec).from_file else name
    environment = worker_environment(spec, scratch)
    return lambda purpose: WorkerProcess(_worker(absolute, purpose), environment, scratch)


def _worker(spec: str, purpose: str) -> list[str]:
    return [sys.executable, "-P", "-m", "tunesmith.lab.worker", spec, purpose]


def worker_environment(spec: str, scratch: Path) -> dict[str, str]:
    """What every worker sees, and what those of the backend do."""
    own = settings.worker_environment(scratch)
    with explained("write temporary files", scratch):
        return {**own, **backends.kind(spec).environment(scratch, own)}


def builder_count(device: Device, wanted: int) -> int:
    """Parallel builds: as many as the user says, else one for each core.

    Beside a device of its own one core is left free: it feeds the device, and draws and judges its data.
    An absent one has nothing to be fed with.
    """
    cores = os.cpu_count() or 1
    return wanted or (cores if device.is_host or device.absent else max(1, cores - 1))


def built_ahead(device: Device, builders: int) -> int:
    """Enough that no builder waits while a GPU measures; none where it would disturb the measurement."""
    return 0 if device.is_host else max(LEAST_AHEAD, 2 * builders)


def builders(spec: str, scratch: Path, device: Device, count: int, compiler: str) -> Builders:
    """`compiler` is a name, with or without its version."""
    spawn = worker_spawner(spec, scratch)
    return Builders(lambda: spawn("build"), device, count, compiler=compiler.partition(" ")[0])


def runner(spec: str, scratch: Path, device: Device) -> Runner:
    return Runner(worker_spawner(spec, scratch)("device"), device)


def counting(spec: str, scratch: Path) -> Counting:
    """What reads hardware counters there, or says why nothing does."""
    kind = backends.kind(spec)
    if kind.counting is None:
        return NoCounting(kind.no_counters)
    return kind.counting(_worker(kind.name, "profile"), worker_environment(spec, scratch), scratch)


def lab(
    problem: Problem,
    device: Device,
    spec: str,
    scratch: Path,
    *,
    settings: LabSettings,
    cache: ResultCache | None = None,
    known: Iterable[Outcome] = (),
    progress: Callable[[str], None] = lambda _text: None,
    ceilings: KeptCeilings | None = None,
    counters: bool = False,
    extra: Sequence[ExtraCase] = (),
) -> LocalLab:
    """`extra` are cases that a tester added; `ceilings` is where those of the device are kept; `counters`:
    profiles of the search have them too."""
    missing, onlooker = _no_profiles(spec, device, ceilings), None
    if not missing:
        from tunesmith.lab.profiling import Onlooker

        counted = counting(spec, scratch) if counters else NoCounting(NO_COUNTERS)
        reader = backends.instructions_reader(spec)
        onlooker = Onlooker(problem, device, counted, reader, ceilings, settings.seed, progress)
    return LocalLab(
        problem,
        device,
        worker_spawner(spec, scratch),
        settings,
        cache=cache,
        known=known,
        progress=progress,
        onlooker=onlooker,
        no_profiles=missing,
        extra=extra,
    )


def _no_profiles(spec: str, device: Device, ceilings: KeptCeilings | None) -> str:
    """Why a search here has no profile to begin from; empty where it has."""
    if backends.kind(spec).no_profiles:
        return backends.kind(spec).no_profiles
    # There machine code is not read, and to measure ceilings takes longer than many a search.
    if device.is_host and (ceilings is None or ceilings.get(device) is None):
        return f"the ceilings of {device.name} are not known; tunesmith profile measures them"
    return ""
