"""Names to objects. The one place that constructs backends, searchers, labs and loops, and wires them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tunesmith import config as settings
from tunesmith.core.errors import BadInput, DeviceMissing

if TYPE_CHECKING:
    from tunesmith.core.backend import Backend
    from tunesmith.core.candidates import Templates
    from tunesmith.core.device import Device
    from tunesmith.core.events import ExtraCase, Settings
    from tunesmith.core.outcome import Outcome
    from tunesmith.core.ports import Journal, Lab, Listener, ResultCache, Searcher
    from tunesmith.core.problem import Problem
    from tunesmith.core.profile.counting import Counting
    from tunesmith.core.talking import Talking
    from tunesmith.lab.bench import Bench
    from tunesmith.lab.builders import Builders
    from tunesmith.lab.ceilings import KeptCeilings
    from tunesmith.lab.lab import LocalLab
    from tunesmith.lab.process import WorkerProcess
    from tunesmith.lab.profiling import ReadInstructions
    from tunesmith.lab.runner import Runner
    from tunesmith.loop import Loop
    from tunesmith.survey import Survey

BACKENDS = ("cuda", "opencl", "fake", "replay")
BACKEND_OF = {"cuda": "cuda", "opencl": "opencl", "fake": "fake"}  # what runs a language by default
ABSENT_FAKE = "fake:absent"  # the simulated device as if it were elsewhere: builds work, nothing runs
SEARCHERS = ("default", "exhaustive", "random", "evolution", "tpe")
LIST_SECONDS = 60.0
LEAST_AHEAD = 8
NO_COUNTERS = "a search does without, unless it is told --counters"


def backend(spec: str) -> Backend:
    """The backend called `name` or `name:argument`."""
    name, _, argument = spec.partition(":")
    if name == "cuda":
        from tunesmith.backends.cuda.backend import CudaBackend

        return CudaBackend()
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
    if argument and name != "replay" and spec != ABSENT_FAKE:
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
    from tunesmith.search.default import Default
    from tunesmith.search.evolution import Evolution
    from tunesmith.search.exhaustive import Exhaustive
    from tunesmith.search.focused import Focused
    from tunesmith.search.random import Random
    from tunesmith.search.tpe import Tpe

    known: dict[str, type[Searcher]] = {s.name: s for s in (Default, Exhaustive, Random, Evolution, Tpe)}
    if name not in known:
        raise BadInput(
            f"unknown search {name!r}; known are {', '.join(SEARCHERS)}",
            hint="choose one of these, or leave --search out",
        )
    return Focused(known[name]())


def worker_spawner(spec: str, scratch: Path) -> Callable[[str], WorkerProcess]:
    """Makes worker processes; the argument says what for, and shows in the process list."""
    from tunesmith.lab.process import WorkerProcess

    write_linker_stubs(scratch / "lib")
    name, _, path = spec.partition(":")
    absolute = f"{name}:{Path(path).absolute()}" if name == "replay" else name
    environment = settings.worker_environment(scratch)
    if name == "opencl":
        from tunesmith.backends import opencl_pocl

        environment |= opencl_pocl.environment(Path(sys.prefix))

    def spawn(purpose: str) -> WorkerProcess:
        command = [sys.executable, "-P", "-m", "tunesmith.worker", absolute, purpose]
        return WorkerProcess(command, environment, scratch)

    return spawn


def write_linker_stubs(folder: Path) -> None:
    """Empty archives of the names PoCL links with, found last: real ones win where there are any."""
    from tunesmith.store import explained

    with explained("write temporary files", folder):
        folder.mkdir(exist_ok=True)
        for name in ("gcc", "gcc_s", "c", "m"):
            (folder / f"lib{name}.a").write_bytes(b"!<arch>\n")


def list_devices(spec: str, scratch: Path) -> tuple[Device, ...]:
    """Asked in a worker, because a broken driver may take its process along."""
    from tunesmith.core.messages import Devices, Failed, ListDevices
    from tunesmith.lab.process import WorkerDied, WorkerTimedOut

    if spec == ABSENT_FAKE:
        return ()
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
    """The device with that id, or the only one whose name, platform or architecture contains the text; with
    no text, the first."""
    if not devices:
        raise DeviceMissing(
            f"the {backend_name} backend sees no device", hint="see what is missing with: tunesmith doctor"
        )
    if wanted is None:
        # A CPU through PoCL is the embedded default; anything else is the user's choice.
        return next((d for d in devices if d.finishes_compiling_at_launch), devices[0])
    exact = [d for d in devices if d.id == wanted]
    close = exact or _of_architecture(devices, wanted)
    close = close or [d for d in devices if wanted.lower() in _described(d)]
    if len(close) != 1:
        listed = "; ".join(f"{d.id} = {d.name} ({d.platform})" for d in devices)
        fault = "matches more than one device" if close else "matches no device"
        raise DeviceMissing(
            f"--device {wanted!r} {fault}; there are: {listed}",
            hint=f"give the id, for example: --device {devices[0].id}",
        )
    return close[0]


def _of_architecture(devices: Sequence[Device], wanted: str) -> list[Device]:
    from tunesmith.backends.cuda.architectures import capability_named

    capability = capability_named(wanted)
    return [d for d in devices if capability and d.limits.capability == capability]


def _described(device: Device) -> str:
    architecture = f" sm_{device.limits.capability}" if device.limits.capability else ""
    return f"{device.platform} {device.name}{architecture}".lower()


def absent_device(spec: str, wanted: str | None) -> Device | None:
    """The device to build for where none is here; None for backends that cannot build without one."""
    if spec == ABSENT_FAKE:
        from tunesmith.backends.fake import FakeBackend

        return replace(FakeBackend().devices()[0], absent=True)
    if backend_name(spec) == "cuda":
        from tunesmith.backends.cuda.architectures import absent_device as describe

        return describe(wanted)
    return None


def compilers(spec: str) -> tuple[tuple[str, str], ...] | None:
    """Name and version of each compiler here, the preferred one first; None where there is no choice."""
    if backend_name(spec) == "cuda":
        from tunesmith.backends.cuda.compile import compilers as here

        return here()
    return None


def needs_host_headers(log: str) -> bool:
    """Whether a compiler failed for want of the host's own headers, which only a whole toolkit brings."""
    from tunesmith.backends.cuda.compile import needs_host_headers as judged

    return judged(log)


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
    from tunesmith.core.profile.counting import NoCounting
    from tunesmith.lab.lab import LabSettings, LocalLab
    from tunesmith.lab.onlooker import Onlooker

    missing = _no_profiles(spec, device, ceilings)
    counted = counting(spec, scratch) if counters else NoCounting(NO_COUNTERS)
    reader = instructions_reader(spec)
    return LocalLab(
        problem,
        device,
        worker_spawner(spec, scratch),
        LabSettings(seed, builders, compiler.partition(" ")[0]),
        cache=cache,
        known=known,
        progress=progress,
        onlooker=None if missing else Onlooker(problem, device, counted, reader, ceilings, seed, progress),
        no_profiles=missing,
        extra=extra,
    )


def _no_profiles(spec: str, device: Device, ceilings: KeptCeilings | None) -> str:
    """Why a search here has no profile to be steered by; empty where it has."""
    if backend_name(spec) in ("fake", "replay"):
        return "a simulated device has nothing to profile"
    # There machine code is not read, and to measure ceilings takes longer than many a search.
    if device.is_host and (ceilings is None or ceilings.get(device) is None):
        return f"the ceilings of {device.name} are not known; tunesmith profile measures them"
    return ""


def runner(spec: str, scratch: Path, device: Device) -> Runner:
    from tunesmith.lab.runner import Runner

    return Runner(worker_spawner(spec, scratch)("device"), device)


def counting(spec: str, scratch: Path) -> Counting:
    """What reads hardware counters there, or says why nothing does."""
    from tunesmith.core.profile.counting import NoCounting

    name = backend_name(spec)
    if name == "cuda":
        from tunesmith.backends.cuda.ncu import NcuCounting

        command = (sys.executable, "-P", "-m", "tunesmith.worker", name, "profile")
        return NcuCounting(command, settings.worker_environment(scratch), scratch)
    if name == "opencl":
        return NoCounting("OpenCL has no counters that are the same on every device")
    return NoCounting("a simulated device has no counters")


def instructions_reader(spec: str) -> ReadInstructions:
    """What tells the instructions of a build, or why nobody can."""
    name = backend_name(spec)
    if name == "cuda":
        from tunesmith.backends.cuda.instructions import instructions_of

        return instructions_of
    return lambda _binary, _entry: (None, f"Tunesmith does not read the machine code of {name} builds")


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
    from tunesmith.core.talking import Talking
    from tunesmith.loop import Loop
    from tunesmith.roles import roles

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
    from tunesmith.lab.surveyor import Surveyor
    from tunesmith.survey import Survey

    return Survey(
        problem=problem,
        templates=templates,
        settings=settings,
        surveyor=Surveyor(problem, device, own_builders),
        searcher=searcher("random"),
        talk=talk,
        journal=journal,
        listener=listener,
    )
