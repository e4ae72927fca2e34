"""Wires labs, workers and loops. Backends and searchers are found by name in their own packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tunesmith import backends
from tunesmith.errors import DeviceMissing
from tunesmith.run import config as settings

if TYPE_CHECKING:
    from tunesmith.backends.counting import Counting
    from tunesmith.lab.builders import Builders
    from tunesmith.lab.ceilings import KeptCeilings
    from tunesmith.lab.lab import LocalLab
    from tunesmith.lab.process import WorkerProcess
    from tunesmith.lab.runner import Runner
    from tunesmith.problem.cases import ExtraCase
    from tunesmith.problem.device import Device
    from tunesmith.problem.problem import Problem
    from tunesmith.run.candidates import Templates
    from tunesmith.run.events import Settings
    from tunesmith.run.loop import Loop
    from tunesmith.run.outcome import Outcome
    from tunesmith.run.ports import Journal, Lab, Listener, ResultCache
    from tunesmith.run.survey import Survey
    from tunesmith.run.talking import Talking

LIST_SECONDS = 60.0
LEAST_AHEAD = 8
NO_COUNTERS = "a search does without, unless it is told --counters"


def worker_spawner(spec: str, scratch: Path) -> Callable[[str], WorkerProcess]:
    """Makes worker processes; the argument says what for, and shows in the process list."""
    from tunesmith.lab.process import WorkerProcess

    name, _, path = spec.partition(":")
    absolute = f"{name}:{Path(path).absolute()}" if backends.kind(spec).from_file else name
    environment = worker_environment(spec, scratch)
    return lambda purpose: WorkerProcess(_worker(absolute, purpose), environment, scratch)


def _worker(spec: str, purpose: str) -> list[str]:
    return [sys.executable, "-P", "-m", "tunesmith.lab.worker", spec, purpose]


def worker_environment(spec: str, scratch: Path) -> dict[str, str]:
    """What every worker sees, and what those of the backend do."""
    from tunesmith.run.store import explained

    own = settings.worker_environment(scratch)
    with explained("write temporary files", scratch):
        return {**own, **backends.kind(spec).environment(scratch, own)}


def list_devices(spec: str, scratch: Path) -> tuple[Device, ...]:
    """Asked in a worker, because a broken driver may take its process along."""
    from tunesmith.backends.messages import Devices, Failed, ListDevices
    from tunesmith.lab.process import WorkerDied, WorkerTimedOut

    if backends.plays_absent(spec):
        return ()
    if backends.kind(spec).from_file:
        backends.backend(spec)  # a bad recording is reported as such, not as the end of a worker
    worker = worker_spawner(spec, scratch)("devices")
    name = spec.partition(":")[0]
    try:
        reply, _ = worker.request(ListDevices(), deadline=LIST_SECONDS)
    except WorkerTimedOut as error:
        raise DeviceMissing(
            f"the {name} driver did not answer within {LIST_SECONDS:.0f} s",
            hint="see what is wrong with: tunesmith doctor",
        ) from error
    except WorkerDied as error:
        raise DeviceMissing(
            f"the {name} backend cannot start here: {error}",
            hint="see what is missing with: tunesmith doctor",
        ) from error
    finally:
        worker.kill()
    if isinstance(reply, Failed):
        raise DeviceMissing(reply.message, hint="see what is missing with: tunesmith doctor")
    assert isinstance(reply, Devices)
    return reply.devices


def pick_device(devices: Sequence[Device], wanted: str | None, backend_name: str) -> Device:
    """The device with that id, or the only one whose name, platform or architecture contains the text; with
    no text, the first."""
    if not devices:
        raise DeviceMissing(
            f"the {backend_name} backend sees no device", hint="see what is missing with: tunesmith doctor"
        )
    if wanted is None:
        # A CPU through PoCL is the embedded default; anything else is the user's choice.
        return next((d for d in devices if d.finishes_compiling_at_launch), devices[0])
    close = [d for d in devices if d.id == wanted]
    close = close or [d for d in devices if backends.kind(d.backend).is_architecture(d, wanted)]
    close = close or [d for d in devices if wanted.lower() in _described(d)]
    if len(close) != 1:
        listed = "; ".join(f"{d.id} = {d.name} ({d.platform})" for d in devices)
        fault = "matches more than one device" if close else "matches no device"
        raise DeviceMissing(
            f"--device {wanted!r} {fault}; there are: {listed}",
            hint=f"give the id, for example: --device {devices[0].id}",
        )
    return close[0]


def _described(device: Device) -> str:
    architecture = backends.kind(device.backend).architecture(device)
    return f"{device.platform} {device.name} {architecture}".lower()


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
    from tunesmith.lab.builders import Builders

    spawn = worker_spawner(spec, scratch)
    return Builders(lambda: spawn("build"), device, count, compiler=compiler.partition(" ")[0])


def lab(
    problem: Problem,
    device: Device,
    spec: str,
    scratch: Path,
    *,
    seed: int,
    builders: int,
    compiler: str = "",
    cache: ResultCache | None = None,
    known: Iterable[Outcome] = (),
    progress: Callable[[str], None] = lambda _text: None,
    ceilings: KeptCeilings | None = None,
    counters: bool = False,
    extra: Sequence[ExtraCase] = (),
) -> LocalLab:
    """`extra` are cases that a tester added;
    `ceilings` is where those of the device are kept; `counters`: profiles of the search have them too."""
    from tunesmith.backends.counting import NoCounting
    from tunesmith.lab.lab import LabSettings, LocalLab

    missing, onlooker = _no_profiles(spec, device, ceilings), None
    if not missing:
        from tunesmith.backends.counting import NoCounting
        from tunesmith.lab.profiling import Onlooker

        counted = counting(spec, scratch) if counters else NoCounting(NO_COUNTERS)
        reader = backends.instructions_reader(spec)
        onlooker = Onlooker(problem, device, counted, reader, ceilings, seed, progress)
    return LocalLab(
        problem,
        device,
        worker_spawner(spec, scratch),
        LabSettings(seed, builders, compiler.partition(" ")[0]),
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


def runner(spec: str, scratch: Path, device: Device) -> Runner:
    from tunesmith.lab.runner import Runner

    return Runner(worker_spawner(spec, scratch)("device"), device)


def counting(spec: str, scratch: Path) -> Counting:
    """What reads hardware counters there, or says why nothing does."""
    from tunesmith.backends.counting import NoCounting

    kind = backends.kind(spec)
    if kind.counting is None:
        return NoCounting(kind.no_counters)
    return kind.counting(_worker(kind.name, "profile"), worker_environment(spec, scratch), scratch)


def loop(
    problem: Problem,
    templates: Templates,
    settings: Settings,
    own_lab: Lab,
    journal: Journal,
    listener: Listener,
    talk: Talking | None = None,
) -> Loop:
    """`talk` is who plans and who writes; by default the expert."""
    from tunesmith.run.loop import Loop
    from tunesmith.run.talking import Talking
    from tunesmith.search import searcher
    from tunesmith.strategies.strategies import roles

    return Loop(
        problem=problem,
        templates=templates,
        settings=settings,
        lab=own_lab,
        searcher=searcher(settings.search),
        talk=talk or Talking(problem, templates, *roles(problem, templates)),
        journal=journal,
        listener=listener,
        heeds_words=False,  # the built-in ones leave values out, and no more
    )


def survey(
    problem: Problem,
    templates: Templates,
    settings: Settings,
    device: Device,
    own_builders: Builders,
    journal: Journal,
    listener: Listener,
    talk: Talking,
) -> Survey:
    from tunesmith.lab.builders import BuildSurveyor
    from tunesmith.run.survey import Survey
    from tunesmith.search import searcher

    return Survey(
        problem=problem,
        templates=templates,
        settings=settings,
        surveyor=BuildSurveyor(problem, device, own_builders),
        searcher=searcher("random"),
        talk=talk,
        journal=journal,
        listener=listener,
    )
