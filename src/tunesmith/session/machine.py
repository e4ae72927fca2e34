"""What this machine offers a run: the device, the compiler, and how a run moves from one to another."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from tunesmith import backends
from tunesmith.backends.messages import Devices, Failed, ListDevices, TellProtection
from tunesmith.backends.port import Counting, NoCounting, Toolchain
from tunesmith.errors import BadInput, DeviceMissing
from tunesmith.lab.ceilings import CeilingsStore, why_no_profiles
from tunesmith.lab.fork_server import start_in_folder, worker_command
from tunesmith.lab.lab import LabSettings, LocalLab
from tunesmith.lab.memory import Verdict
from tunesmith.lab.process import WorkerDied, WorkerProcess, WorkerTimedOut
from tunesmith.lab.runner import COMPILER_CRASHED, COMPILER_SLOW, Builders, Runner
from tunesmith.lab.sanitizing import Beside, sanitizer_tools
from tunesmith.lab.serving import BinaryShelf, BinaryStore
from tunesmith.problem.cases import ExtraCase
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, Variant, builds_of, configs_of, original
from tunesmith.run import config as settings
from tunesmith.run.candidates import Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Attached
from tunesmith.run.files import explained
from tunesmith.run.outcome import Outcome
from tunesmith.run.ports import ResultCache
from tunesmith.run.protection import AUTO, NEEDED, REQUIRED, Protection
from tunesmith.run.state import State
from tunesmith.run.survey import still_unable
from tunesmith.space.params import Config

if TYPE_CHECKING:
    from tunesmith.session.hosts import HostWorkers

Over = Optional["HostWorkers"]  # the host whose workers are meant; None: this machine
DOCTOR = "see what is missing with: tunesmith doctor"
UNPROTECTED = "see whether they do without it: --sandbox off"
LIST_SECONDS = 60.0


@dataclass(frozen=True)
class LocalDevices:
    """The devices of one backend where its workers are, or why there is none."""

    spec: str
    devices: tuple[Device, ...]
    trouble: str = ""
    protection: Protection | None = None  # of workers
    over: Over = None  # the host they are of; None: this machine

    @property
    def notes(self) -> tuple[str, ...]:
        return (self.protection.sentence,) if self.protection is not None else ()


def look(spec: str, scratch: Path, sandbox: str = AUTO, over: Over = None) -> LocalDevices:
    """What is here, or where `over` leads; DeviceMissing where the sandbox that is required is not."""
    if backends.kind(spec).from_file:
        backends.backend(spec)  # a bad recording is reported as such, not as the end of a worker
    held = protection(spec, scratch, sandbox, over)
    try:
        devices = list_devices(spec, scratch, sandbox, over)
    except DeviceMissing as error:
        if over is not None:
            raise
        return LocalDevices(spec, (), error.message, held)
    trouble = "" if devices else f"the {spec.partition(':')[0]} backend sees no device"
    if over is not None and trouble:
        raise DeviceMissing(f"{trouble} where worker {over.name!r} is, on {over.host}")
    return LocalDevices(spec, devices, trouble, held, over)


def protection(spec: str, scratch: Path, sandbox: str = AUTO, over: Over = None) -> Protection:
    """What is in force in workers, by one of them, which loads no driver."""
    # One that lacks what is required would end before it could say so.
    worker = worker_spawner(spec, scratch, AUTO if sandbox == REQUIRED else sandbox, over)("devices")
    try:
        held, _ = worker.request(TellProtection(), deadline=LIST_SECONDS)
    except (WorkerTimedOut, WorkerDied) as error:
        raise DeviceMissing(
            f"workers cannot start here: {error}", hint=f"{DOCTOR}, or {UNPROTECTED}"
        ) from error
    finally:
        worker.kill()
    assert isinstance(held, Protection)
    if sandbox == REQUIRED and (missing := held.missing(NEEDED)):
        why = "; ".join(f"{layer.name}: {layer.detail}" for layer in missing)
        fault = f"--sandbox required needs network and files kept from workers, and here they are not: {why}"
        raise DeviceMissing(fault, hint=f"{DOCTOR}, or take what there is with --sandbox auto")
    return held


def choose_device(local: LocalDevices, wanted: str | None) -> Device:
    """One that is here; else, where kernels can be built without one, the description of one that is not."""
    if local.devices:
        return pick_device(local.devices, wanted)
    absent = backends.absent_device(local.spec, wanted)
    if absent is None:
        raise DeviceMissing(local.trouble, hint=DOCTOR)
    return absent


def elsewhere(config: RunConfig, note: Callable[[str], None]) -> AbstractContextManager[HostWorkers | None]:
    """The host that `--workers` names, as long as it is needed; None: workers are of this machine."""
    if not config.workers:
        return nullcontext()
    from tunesmith.session.hosts import connected  # which few runs need

    return connected(config, note)


def place_to_time(
    language: str, config: RunConfig, scratch: Path, over: Over = None
) -> tuple[str, LocalDevices, str | None]:
    """The backend that times, its devices here, or where `over` leads, and the name of the wanted one."""
    if over is not None:
        spec = backends.backend_for(language, config.backend)
        return spec, look(spec, scratch, config.sandbox, over), config.device or over.device
    if (config.backend or config.device or "").startswith("cpu") or backends.runs_untimed(language):
        from tunesmith.session import standing_in

        return standing_in.place_to_time(language, config, scratch)
    spec = backends.backend_for(language, config.backend)
    return spec, look(spec, scratch, config.sandbox), config.device


def list_devices(spec: str, scratch: Path, sandbox: str = AUTO, over: Over = None) -> tuple[Device, ...]:
    """Asked in a worker, because a broken driver may take its process along."""
    if backends.plays_absent(spec):
        return ()
    worker = worker_spawner(spec, scratch, sandbox, over)("devices")
    name = spec.partition(":")[0]
    try:
        reply, _ = worker.request(ListDevices(), deadline=LIST_SECONDS)
    except WorkerTimedOut as error:
        slow = f"the {name} driver did not answer within {LIST_SECONDS:.0f} s"
        raise DeviceMissing(slow, hint="see what is wrong with: tunesmith doctor") from error
    except WorkerDied as error:
        raise DeviceMissing(f"the {name} backend cannot start here: {error}", hint=DOCTOR) from error
    finally:
        worker.kill()
    if isinstance(reply, Failed):
        raise DeviceMissing(reply.message, hint=DOCTOR)
    assert isinstance(reply, Devices)
    return reply.devices


def pick_device(devices: Sequence[Device], wanted: str | None) -> Device:
    """The device with that id, or the only one whose name, platform or architecture contains the text; with
    no text, the first."""
    if wanted is None:
        # A CPU through PoCL is the embedded default; anything else is the user's choice.
        return next((d for d in devices if d.finishes_compiling_at_launch), devices[0])
    close = [d for d in devices if d.id == wanted]
    close = close or [d for d in devices if backends.kind(d.backend).is_architecture(d, wanted)]
    if not close:
        named = ((d, f"{d.platform} {d.name} {d.architecture}".lower()) for d in devices)
        close = [d for d, own in named if wanted.lower() in own]
    if len(close) != 1:
        every = "; ".join(f"{d.id} = {d.name} ({d.platform})" for d in devices)
        fault = "matches more than one device" if close else "matches no device"
        hint = f"give the id as the device, for example: --device {devices[0].id}"
        raise DeviceMissing(f"device {wanted!r} {fault}; there are: {every}", hint=hint)
    return close[0]


# -- compilers ------------------------------------------------------------------------------------------


def choose_compiler(
    problem: Problem,
    template: Template | None,
    device: Device,
    spec: str,
    scratch: Path,
    note: Callable[[str], None],
    sandbox: str = AUTO,
    over: Over = None,
) -> str:
    """Name and version of the first compiler there that takes the original and the template.

    One for both sides, or compilers would be compared instead of kernels. Empty where a backend has only one,
    which is tried here only if the device is absent: elsewhere the check of the original tries it.
    """
    toolchain = backends.toolchain(spec)
    if toolchain is None and not device.absent:
        return ""
    known = compilers(spec, over) if toolchain is not None else ()
    failed: list[tuple[Variant, Verdict, str]] = []
    for name, version in _candidates(problem, known, toolchain):
        compiler = f"{name} {version}".strip()
        note(f"building the original with {compiler or 'the compiler'}")
        builders = make_builders(spec, scratch, device, 2, name, sandbox, over)
        try:
            builds = [(v, builders.start(v)) for v in _probes(problem, template, device)]
            done = [(variant, future.result()) for variant, future in builds]
        finally:
            builders.close()
        refused = [(variant, code) for variant, code in done if isinstance(code, Verdict)]
        if not refused:
            if device.absent:  # elsewhere the check of the original tells
                from tunesmith.session.compiler_faults import refuse_over_limits  # which few runs need

                refuse_over_limits(problem, device, dict(done))
            return compiler
        failed.append((*refused[0], compiler))
    from tunesmith.session.compiler_faults import blame

    raise blame(problem, failed, toolchain, dict(known))


def compilers(spec: str, over: Over) -> tuple[tuple[str, str], ...]:
    """Of a backend, here or where `over` leads."""
    return (backends.compilers(spec) or ()) if over is None else over.compilers(spec)


def _candidates(
    problem: Problem, known: Sequence[tuple[str, str]], toolchain: Toolchain | None
) -> Sequence[tuple[str, str]]:
    if toolchain is None:
        return [("", "")]
    if not known:
        raise DeviceMissing(toolchain.none_here, hint=toolchain.how_to_install(""))
    wanted = problem.kernel.compiler
    chosen = [pair for pair in known if not wanted or pair[0] == wanted]
    if not chosen:
        fault = f"the problem asks for compiler = {wanted!r}, here there is: {listed(known)}"
        raise BadInput(fault, hint=f"{toolchain.how_to_install(wanted)}, or take compiler out of [kernel]")
    return chosen


def _probes(problem: Problem, template: Template | None, device: Device) -> list[Variant]:
    """The original and one configuration, the default if it may run on the device."""
    found = [original(problem, problem.workloads[0].as_dict())]
    if device.absent:
        found = [build.variant for build in builds_of(problem, None, None)]
    if template is not None:
        configs = configs_of(problem, template, device)
        config = template.default if template.default in configs else configs[0]
        allowed = [
            build.variant
            for build in builds_of(problem, template.on(device), config)
            if any(build.variant.allows({**w.as_dict(), **device.limits.names()}) for w in build.workloads)
        ]
        found += allowed[:1]
    return found


def listed(compilers: Sequence[tuple[str, str]]) -> str:
    return ", ".join(" ".join(pair) for pair in compilers) or "none"


# -- a run that goes on here ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a run goes on."""

    device: Device
    missing: str  # why nothing can be measured here; empty: it can
    attached: Attached | None = None  # to be written down first, where anything is new


def place_for(
    state: State,
    problem: Problem,
    templates: Templates,
    local: LocalDevices,
    builders: int,
    scratch: Path,
    note: Callable[[str], None],
    sandbox: str = AUTO,
) -> Place:
    """`builders` is what the user says of parallel builds; 0: nothing."""
    device, missing = _device_for(state.device, local)
    compiler, known = state.compiler, compilers(local.spec, local.over)
    if compiler and tuple(compiler.split(" ", 1)) not in known:
        if state.baseline is not None:
            fault = f"what this run has timed was built with {compiler}; here there is: {listed(known)}"
            raise DeviceMissing(fault, hint="resume it where that compiler is, or start a new run here")
        own = (device, local.spec, scratch, note, sandbox, local.over)
        compiler = choose_compiler(problem, templates.given, *own)
    if device.absent == state.device.absent and compiler == state.compiler:
        return Place(device, missing)
    unable: tuple[Config, ...] = ()
    if not device.absent and compiler == state.compiler:
        accidents = (COMPILER_CRASHED, COMPILER_SLOW)
        unable = still_unable(problem, templates.lookup(state), state.surveyed, device, accidents)
    ahead = built_ahead(device, builder_count(device, builders))
    return Place(device, missing, Attached(device, compiler, ahead, unable))


def _device_for(wanted: Device, local: LocalDevices) -> tuple[Device, str]:
    """The run's own device or, where it had none, one of the same kind; else why there is none."""
    if backends.kind(wanted.backend).from_file:
        return wanted, ""
    if not wanted.absent:
        return _same_device(wanted, local), ""
    kind = (wanted.backend, wanted.limits.capability)
    fitting = [d for d in local.devices if (d.backend, d.limits.capability) == kind]
    if fitting:
        return next((d for d in fitting if d.name == wanted.name), fitting[0]), ""
    others = "; ".join(d.name for d in local.devices)
    return wanted, f"{wanted.name} is not here: {f'there is {others}' if others else local.trouble}"


def _same_device(wanted: Device, local: LocalDevices) -> Device:
    same = [d for d in local.devices if d.key == wanted.key]
    if not same:
        found = "; ".join(f"{d.name} with {d.limits.sms} units ({d.driver})" for d in local.devices)
        own = f"{wanted.name} with {wanted.limits.sms} units ({wanted.driver})"
        fault = f"this run belongs to {own}; {f'here there is: {found}' if found else local.trouble}"
        raise DeviceMissing(fault, hint="resume it where that device is, or start a new run here")
    return next((d for d in same if d.id == wanted.id), same[0])


@contextmanager
def temporary_scratch() -> Iterator[Path]:
    with explained("make a temporary folder", Path("$TMPDIR"), instead="another place with TMPDIR=DIR"):
        temporary = tempfile.TemporaryDirectory(prefix="tunesmith-", ignore_cleanup_errors=True)
    with temporary as name:
        yield Path(name)


# -- workers, and what is made of them: builders, runners, counters and labs --------------------------------


LEAST_AHEAD = 8
NO_COUNTERS = "a search does without, unless it is told --counters"


def worker_spawner(
    spec: str, scratch: Path, sandbox: str = AUTO, over: Over = None
) -> Callable[[str], WorkerProcess]:
    """Makes worker processes; the argument says what for, and shows in the process list. Each has a folder of
    its own in `scratch`, as long as it lives: what one leaves there reaches no other."""
    if over is not None:
        return over.spawner(spec, sandbox)
    name, _, path = spec.partition(":")
    absolute = f"{name}:{Path(path).absolute()}" if backends.kind(spec).from_file else name
    environment = worker_environment(spec, scratch, sandbox)
    start = start_in_folder(lambda own: worker_environment(spec, own, sandbox))
    return lambda purpose: WorkerProcess(worker_command(absolute, purpose), environment, scratch, start)


def worker_environment(spec: str, scratch: Path, sandbox: str = AUTO) -> dict[str, str]:
    """What every worker sees, and what those of the backend do."""
    kind = backends.kind(spec)
    own = settings.worker_environment(scratch, kind.inherits, sandbox)
    with explained("write temporary files", scratch):
        return {**own, **kind.environment(scratch, own)}


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


def make_builders(
    spec: str,
    scratch: Path,
    device: Device,
    count: int,
    compiler: str,
    sandbox: str = AUTO,
    over: Over = None,
) -> Builders:
    """`compiler` is a name, with or without its version."""
    spawn = worker_spawner(spec, scratch, sandbox, over)
    return Builders(lambda: spawn("build"), device, count, compiler=compiler.partition(" ")[0])


def make_runner(spec: str, scratch: Path, device: Device, sandbox: str = AUTO) -> Runner:
    return Runner(worker_spawner(spec, scratch, sandbox)("device"), device)


def make_lab(
    problem: Problem,
    device: Device,
    spec: str,
    scratch: Path,
    *,
    settings: LabSettings,
    cache: ResultCache | None = None,
    known: Iterable[Outcome] = (),
    progress: Callable[[str], None] = lambda _text: None,
    ceilings: CeilingsStore | None = None,
    counters: bool = False,
    extra: Sequence[ExtraCase] = (),
    sandbox: str = AUTO,
    store: BinaryStore | None = None,
    beside: Beside | None = None,
    over: Over = None,
) -> LocalLab:
    """`store` is where binaries go that are delivered, `ceilings` where those of the device do; `extra` are
    cases that a tester added; `counters`: profiles of the search have them too."""
    if fault := problem.beyond(device.limits.names()):
        raise BadInput(fault, hint=f"change the workload, or the contract; the device is {device.name}")
    missing, onlooker = why_no_profiles(backends.kind(spec).no_profiles, device, ceilings), None
    if not missing:
        from tunesmith.lab.profiling import Onlooker

        counted: Counting = NoCounting(NO_COUNTERS)
        if counters:
            from tunesmith.session.counting import make_counting  # which few runs need

            counted = make_counting(spec, scratch, sandbox)
        reader = backends.instructions_reader(spec)
        onlooker = Onlooker(problem, device, counted, reader, ceilings, settings.seed, progress)
    own = (lambda: worker_environment(spec, scratch, sandbox), scratch, sandbox)
    watching = sanitizer_tools(backends.kind(spec), *own) if over is None else over.no_tools
    return LocalLab(
        problem,
        device,
        worker_spawner(spec, scratch, sandbox, over),
        settings,
        cache=cache,
        known=known,
        progress=progress,
        onlooker=onlooker,
        no_profiles=missing,
        extra=extra,
        sanitizers=watching,
        beside=beside,
        shelf=BinaryShelf(backends.kind(spec).portable, store),
        no_calls="a recording has no times of other sizes" if backends.kind(spec).from_file else "",
        listing=backends.kind(spec).listing,
        identity=over.identity(device.id) if over is not None else "",
    )
