"""Names to objects. The one place that constructs backends, searchers, labs and loops, and wires them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tunesmith import config as settings
from tunesmith.core.errors import BadInput, DeviceMissing

if TYPE_CHECKING:
    from tunesmith.core.device import Device
    from tunesmith.core.events import Settings, Started
    from tunesmith.core.outcome import Outcome
    from tunesmith.core.ports import Backend, Journal, Lab, Listener, ResultCache, Searcher
    from tunesmith.core.problem import Problem
    from tunesmith.core.space import ConfigSet
    from tunesmith.core.template import Template
    from tunesmith.lab.bench import Bench
    from tunesmith.lab.lab import LocalLab
    from tunesmith.lab.process import WorkerProcess
    from tunesmith.loop import Loop

BACKENDS = ("opencl", "fake", "replay")
BACKEND_OF = {"opencl": "opencl", "fake": "fake"}  # what runs a language when the user does not say
SEARCHERS = ("default", "exhaustive", "random", "refine")
LIST_SECONDS = 60.0


def backend(spec: str) -> Backend:
    """The backend called `name` or `name:argument`."""
    name, _, argument = spec.partition(":")
    if name == "opencl":
        from tunesmith.backends.opencl import OpenCLBackend

        return OpenCLBackend()
    if name == "fake":
        from tunesmith.backends.fake import FakeBackend

        return FakeBackend()
    if name == "replay":
        from tunesmith.backends.replay import ReplayBackend

        return ReplayBackend(argument)
    raise AssertionError(backend_name(spec))


def backend_name(spec: str) -> str:
    name, _, argument = spec.partition(":")
    if name not in BACKENDS:
        raise BadInput(
            f"unknown backend {name!r}; known are {', '.join(BACKENDS)}",
            hint="leave --backend out: the kernel's language has its own",
        )
    if argument and name != "replay":
        raise BadInput(f"only the replay backend takes a file, got {spec!r}", hint=f"write --backend {name}")
    return name


def backend_for(language: str, wanted: str | None) -> str:
    """The backend to use for a kernel's language, or why there is none."""
    if wanted is None:
        if language not in BACKEND_OF:
            raise BadInput(
                f"this version runs {', '.join(BACKEND_OF)} kernels, this one is {language}",
                hint="see what is usable here with: tunesmith doctor",
            )
        return BACKEND_OF[language]
    name = backend_name(wanted)
    languages = {"replay": ("fake",)}.get(name, (name,))
    if language not in languages:
        raise BadInput(
            f"backend {name} runs {', '.join(languages)} kernels, this one is {language}",
            hint="leave --backend out: the kernel's language has its own",
        )
    return wanted


def bench_for(spec: str) -> Bench:
    from tunesmith.lab.bench import Bench

    return Bench(backend(spec))


def searcher(name: str) -> Searcher:
    from tunesmith.search.exhaustive import Exhaustive
    from tunesmith.search.random import Random
    from tunesmith.search.refine import Refine

    known: dict[str, type[Searcher]] = {s.name: s for s in (Exhaustive, Random, Refine)}
    known["default"] = Refine
    if name not in known:
        raise BadInput(
            f"unknown search {name!r}; known are {', '.join(SEARCHERS)}",
            hint="choose one of these, or leave --search out",
        )
    return known[name]()


def worker_spawner(spec: str, scratch: Path) -> Callable[[str], WorkerProcess]:
    """Makes worker processes; the argument says what for, and shows in the process list."""
    from tunesmith.lab.process import WorkerProcess

    write_linker_stubs(scratch / "lib")
    name, _, path = spec.partition(":")
    absolute = f"{name}:{Path(path).absolute()}" if path else spec
    environment = settings.worker_environment(scratch)

    def spawn(purpose: str) -> WorkerProcess:
        command = [sys.executable, "-P", "-m", "tunesmith.worker", absolute, purpose]
        return WorkerProcess(command, environment, scratch)

    return spawn


def write_linker_stubs(folder: Path) -> None:
    """Empty archives of the names PoCL links with, found last: real ones win where there are any."""
    from tunesmith.store import explained

    with explained("write temporary files", folder):
        folder.mkdir(exist_ok=True)
        for name in ("gcc", "gcc_s", "c"):
            (folder / f"lib{name}.a").write_bytes(b"!<arch>\n")


def list_devices(spec: str, scratch: Path) -> tuple[Device, ...]:
    """Asked in a worker, because a broken driver may take its process along."""
    from tunesmith.core.messages import Devices, Failed, ListDevices
    from tunesmith.lab.process import WorkerDied, WorkerTimedOut

    if backend_name(spec) == "replay":
        backend(spec)  # a bad recording is told of here, in its own words, not as the end of a worker
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
    """The device with that id, or the only one whose name or platform contains the text; else the first."""
    if not devices:
        raise DeviceMissing(
            f"the {backend_name} backend sees no device", hint="see what is missing with: tunesmith doctor"
        )
    if wanted is None:
        # A CPU through PoCL is the embedded default; anything else is the user's choice.
        return next((d for d in devices if d.finishes_compiling_at_launch), devices[0])
    exact = [d for d in devices if d.id == wanted]
    close = exact or [d for d in devices if wanted.lower() in f"{d.platform} {d.name}".lower()]
    if len(close) != 1:
        listed = "; ".join(f"{d.id} = {d.name} ({d.platform})" for d in devices)
        fault = "matches more than one device" if close else "matches no device"
        raise DeviceMissing(
            f"--device {wanted!r} {fault}; there are: {listed}",
            hint=f"give the id, for example: --device {devices[0].id}",
        )
    return close[0]


def lab(
    problem: Problem,
    device: Device,
    spec: str,
    scratch: Path,
    *,
    seed: int,
    builders: int,
    cache: ResultCache | None = None,
    known: Iterable[Outcome] = (),
    progress: Callable[[str], None] = lambda _text: None,
) -> LocalLab:
    from tunesmith.lab.lab import LabSettings, LocalLab

    spawn = worker_spawner(spec, scratch)
    return LocalLab(
        problem, device, spawn, LabSettings(seed, builders), cache=cache, known=known, progress=progress
    )


def configs_of(problem: Problem, template: Template, device: Device) -> ConfigSet:
    sizes = [w.as_dict() for w in problem.workloads]
    found = template.space.configs(sizes, device.limits.names())
    if not len(found):
        raise BadInput(
            f"the template's constraints leave no configuration on {device.name}",
            where=template.path,
            hint="widen a parameter or loosen a constraint; device limits count as well",
        )
    return found


def loop(
    problem: Problem,
    template: Template,
    started: Started,
    own_lab: Lab,
    journal: Journal,
    listener: Listener,
) -> Loop:
    from tunesmith.expert.planner import GivenTemplate
    from tunesmith.loop import Loop

    chosen: Settings = started.settings
    return Loop(
        problem=problem,
        template=template,
        configs=configs_of(problem, template, started.device),
        settings=chosen,
        lab=own_lab,
        searcher=searcher(chosen.search),
        planner=GivenTemplate(),
        journal=journal,
        listener=listener,
    )
