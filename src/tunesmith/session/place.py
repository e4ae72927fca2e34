"""What this machine offers a run: the device, the compiler, and how a run moves from one to another."""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from tunesmith import backends
from tunesmith.backends.messages import Devices, Failed, ListDevices, TellProtection
from tunesmith.backends.port import NoCounting, Toolchain
from tunesmith.base import plugins
from tunesmith.base.errors import BadInput, DeviceMissing, TunesmithError
from tunesmith.base.files import explain_disk_errors
from tunesmith.base.text import digest_of
from tunesmith.lab.build import COMPILER_CRASHED, COMPILER_SLOW, Builders, BuiltCode
from tunesmith.lab.judge.sanitize import Beside
from tunesmith.lab.lab import BinaryShelf, BinaryStore, LabSettings, LocalLab
from tunesmith.lab.memory import Verdict
from tunesmith.lab.process import WorkerDied, WorkerProcess, WorkerTimedOut, start_in_folder, worker_command
from tunesmith.lab.profile import CeilingsStore, why_no_profiles
from tunesmith.lab.runner import Runner
from tunesmith.problem.device import Device
from tunesmith.problem.plan import ExtraCase
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, Variant, builds_of, configs_of, original_variant
from tunesmith.run import config as settings
from tunesmith.run.candidates import NextRehearsal, Templates
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Attached, Sanitized
from tunesmith.run.outcome import Outcome, Rehearsed, judge_build
from tunesmith.run.ports import ResultCache
from tunesmith.run.protection import AUTO, NEEDED, REQUIRED, Protection
from tunesmith.run.report import still_unable
from tunesmith.run.state import State
from tunesmith.space.configset import Config

if TYPE_CHECKING:
    from tunesmith.backends.port import Counting
    from tunesmith.lab.judge.sanitize import SanitizerTools


Spawn = Callable[[str], WorkerProcess]  # of what for, which shows in the process list


class WorkerSource(Protocol):
    """Whoever starts workers, of one machine.

    One that is elsewhere can be lost and come back. A process that was lost with it says so (`lost` of
    `ChildProcess`): what was asked is asked again, and starting another waits until it is back, or raises
    DeviceMissing. One that comes back as another machine does not come back.
    """

    @property
    def name(self) -> str: ...  # as the user calls it; empty: this machine
    @property
    def host(self) -> str: ...  # what the machine calls itself
    @property
    def machine(self) -> str: ...  # a digest that another machine does not have
    @property
    def device(self) -> str | None: ...  # which of its devices is meant, as for --device, which wins
    @property
    def measures(self) -> bool: ...  # False: it only builds
    @property
    def arrivals(self) -> SimpleQueue[WorkerSource] | None: ...  # others that come while the run goes on
    @property
    def cores(self) -> int: ...  # those that may be used there
    @property
    def gone(self) -> str: ...  # why it will not come back; empty: it is there, or may be again

    def identity(self, device: str, /) -> str:
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

    def identity(self, _device: str) -> str:
        return ""

    def spawner(self, spec: str, scratch: Path, sandbox: str) -> Spawn:
        name, _, path = spec.partition(":")
        absolute = f"{name}:{Path(path).absolute()}" if backends.find_backend_kind(spec).from_file else name
        environment = worker_environment(spec, scratch, sandbox)
        start = start_in_folder(lambda folder: worker_environment(spec, folder, sandbox))
        return lambda purpose: WorkerProcess(worker_command(absolute, purpose), environment, scratch, start)

    def compilers(self, spec: str) -> tuple[tuple[str, str], ...]:
        return backends.list_compilers(spec) or ()

    def sanitizers(self, spec: str, scratch: Path, sandbox: str) -> SanitizerTools | str:
        from tunesmith.lab.judge.sanitize import sanitizer_tools  # which a host of workers does not need

        kind = backends.find_backend_kind(spec)
        return sanitizer_tools(kind, lambda: worker_environment(spec, scratch, sandbox), scratch, sandbox)

    def counting(self, spec: str, scratch: Path, sandbox: str) -> Counting:
        from tunesmith.lab.device_tools import counting_here  # which few runs need

        where = (worker_environment(spec, scratch, sandbox), scratch, sandbox)
        return counting_here(backends.find_backend_kind(spec), *where)

    def close(self) -> None:
        """Its workers end with whoever started them."""


HERE = ThisMachine()


@dataclass(frozen=True)
class WorkerSite:
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
class DeviceSlot:
    """A device that measures, and where its worker is."""

    name: str  # as outcomes carry it
    device: Device
    place: WorkerSite
    card: str  # two workers of one card take turns


def usable_cores(root: Path = Path("/")) -> int:
    """Those that this process may use: affinity and control groups may leave it fewer than there are."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([there, *_cpu_quotas(root)]))


def _cpu_quotas(root: Path) -> Iterator[int]:
    """In cores, of the own control group and of those around it. What cannot be read limits nothing."""
    mounted = root / "sys/fs/cgroup"
    for line in _read_proc_file(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        group = PurePosixPath(path.lstrip("/"))
        for part in (group, *group.parents):
            if number == "0" and not controllers:  # version 2
                quota, _, period = _read_proc_file(mounted / part / "cpu.max").strip().partition(" ")
            elif "cpu" in controllers.split(","):
                folder = mounted / "cpu" / part
                quota, period = (
                    _read_proc_file(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")
                )
            else:
                break
            if quota.isdecimal() and period.isdecimal() and int(period):
                yield -(-int(quota) // int(period))


def _read_proc_file(file: Path) -> str:
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
    kind = backends.find_backend_kind(spec)
    common = settings.worker_environment(scratch, kind.inherits, sandbox)
    with explain_disk_errors("write temporary files", scratch):
        return {**common, **kind.environment(scratch, common)}


def isolated_command(module: str, spec: str, *arguments: object) -> list[str]:
    """A program of ours that runs something of a problem, a run or a template for a backend. It is started in
    a scratch folder with `worker_environment`, and first calls `enter_sandbox`."""
    return [sys.executable, "-P", "-m", module, spec, *map(str, arguments)]


@contextmanager
def temporary_scratch() -> Iterator[Path]:
    with explain_disk_errors(
        "make a temporary folder", Path("$TMPDIR"), instead="another place with TMPDIR=DIR"
    ):
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


DOCTOR = "see what is missing with: tunesmith doctor"
UNPROTECTED = "see whether they do without it: --sandbox off"
LIST_SECONDS = 60.0


def find_local_devices(place: WorkerSite) -> LocalDevices:
    """What is there; DeviceMissing where the sandbox that is required is not."""
    spec = place.spec
    if backends.find_backend_kind(spec).from_file:
        backends.make_backend(spec)  # a bad recording is reported as such, not as the end of a worker
    held = worker_protection(place)
    try:
        devices = list_devices(place)
    except DeviceMissing as error:
        if not place.is_here:
            raise
        return LocalDevices(spec, (), error.message, held)
    trouble = "" if devices else f"the {spec.partition(':')[0]} backend sees no device"
    if trouble and not place.is_here:
        raise DeviceMissing(f"{trouble} where worker {place.source.name!r} is, on {place.source.host}")
    return LocalDevices(spec, devices, trouble, held)


def worker_protection(place: WorkerSite) -> Protection:
    """What is in force in workers, by one of them, which loads no driver."""
    # One that lacks what is required would end before it could say so.
    is_required = place.sandbox == REQUIRED
    worker = (replace(place, sandbox=AUTO) if is_required else place).spawn("devices")
    try:
        held, _ = worker.request(TellProtection(), deadline=LIST_SECONDS)
    except (WorkerTimedOut, WorkerDied) as error:
        raise DeviceMissing(
            f"workers cannot start here: {error}", hint=f"{DOCTOR}, or {UNPROTECTED}"
        ) from error
    finally:
        worker.kill()
    assert isinstance(held, Protection)
    if is_required and (missing := held.missing(NEEDED)):
        why = "; ".join(f"{layer.name}: {layer.detail}" for layer in missing)
        fault = f"--sandbox required needs network and files kept from workers, and here they are not: {why}"
        raise DeviceMissing(fault, hint=f"{DOCTOR}, or take what there is with --sandbox auto")
    return held


def choose_device(local: LocalDevices, wanted: str | None) -> Device:
    """One that is here; else, where kernels can be built without one, the description of one that is not."""
    if len(ids := device_ids(wanted)) > 1:
        fault = f"--device {wanted} names several devices, and this is done on one"
        raise BadInput(fault, hint=f"for example: --device {ids[0]}")
    if local.devices:
        return pick_device(local.devices, first_device(wanted, local.spec))
    absent = backends.absent_device(local.spec, wanted)
    if absent is None:
        raise DeviceMissing(local.trouble, hint=DOCTOR)
    return absent


def workers_of(
    config: RunConfig, note: Callable[[str], None]
) -> AbstractContextManager[tuple[WorkerSource, ...]]:
    """Of the hosts that `--workers` names or of the cluster of `--ray`, as long as they are needed, those
    that measure first; without either, of this machine."""
    if not config.ray and not config.workers:
        return nullcontext((HERE,))
    connect = plugins.load_plugin("places", "ray" if config.ray else "workers")
    found: AbstractContextManager[tuple[WorkerSource, ...]] = connect(config, note)
    return found


def place_to_time(
    language: str, config: RunConfig, scratch: Path, source: WorkerSource = HERE
) -> tuple[WorkerSite, LocalDevices, str | None]:
    """Where kernels are timed, the devices there, and the name of the wanted one."""
    is_untimed = (config.backend or config.device or "").startswith("cpu") or backends.runs_untimed(language)
    if source is HERE and is_untimed:
        found: tuple[WorkerSite, LocalDevices, str | None]
        found = plugins.load_plugin("stand_in", "cpu").place_to_time(language, config, scratch)
        return found
    place = WorkerSite(backends.backend_for(language, config.backend), scratch, config.sandbox, source)
    return place, find_local_devices(place), first_device(config.device or source.device, place.spec)


_RANGE = r"[0-9]{1,9}(?:-[0-9]{1,9})?"
_LISTED = re.compile(rf"(?:([a-z]+):)?({_RANGE}(?:,{_RANGE})*)")
MAX_DEVICES = 1024


def device_ids(wanted: str | None) -> tuple[str, ...]:
    """Of `0-7`, `0,2,5` or `cuda:0-7` each, as often as it is named; nothing of what is no such list."""
    found = _LISTED.fullmatch(wanted or "")
    ids: list[str] = []
    for part in found[2].split(",") if found else ():
        first, _, last = part.partition("-")
        if int(last or first) < int(first) or int(last or first) - int(first) + len(ids) >= MAX_DEVICES:
            fault = f"--device {wanted}: {part} is no range of up to {MAX_DEVICES} devices"
            raise BadInput(fault, hint="the smaller number first, for example: --device 0-7")
        ids += map(str, range(int(first), int(last or first) + 1))
    return tuple(ids)


def first_device(wanted: str | None, spec: str) -> str | None:
    """Of several the first; BadInput where they are of another backend."""
    found, name = _LISTED.fullmatch(wanted or ""), spec.partition(":")[0]
    if found and found[1] not in (None, name):
        fault = f"--device {wanted} names devices of {found[1]}, and the kernel is timed by {name}"
        raise BadInput(fault, hint=f"leave out {found[1]}:, or take --backend {found[1]}")
    return next(iter(device_ids(wanted)), wanted)


def list_devices(place: WorkerSite) -> tuple[Device, ...]:
    return ask_devices(place).devices


def ask_devices(place: WorkerSite) -> Devices:
    """Asked in a worker, because a broken driver may take its process along."""
    if backends.plays_absent(place.spec):
        return Devices(())
    worker = place.spawn("devices")
    name = place.spec.partition(":")[0]
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
    if strange := next((d for d in reply.devices if d.backend != name), None):
        fault = f"the {name} backend lists {strange.name} as a device of the backend {strange.backend!r}"
        raise DeviceMissing(fault, hint=f"in the plugin of {name}: make its devices with backend={name!r}")
    return reply


def pick_device(devices: Sequence[Device], wanted: str | None) -> Device:
    """The device with that id, or the only one whose name, platform or architecture contains the text; with
    no text, the first."""
    if wanted is None:
        # A CPU through PoCL is the embedded default; anything else is the user's choice.
        return next((d for d in devices if d.finishes_compiling_at_launch), devices[0])
    close = [d for d in devices if d.id == wanted]
    close = close or [d for d in devices if backends.find_backend_kind(d.backend).is_architecture(d, wanted)]
    if not close:
        named = ((d, f"{d.platform} {d.name} {d.architecture}".lower()) for d in devices)
        close = [d for d, words in named if wanted.lower() in words]
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
    place: WorkerSite,
    note: Callable[[str], None],
) -> str:
    """Name and version of the first compiler there that takes the original and the template.

    One for both sides, or compilers would be compared instead of kernels. Empty where a backend has only one,
    which is tried here only if the device is absent: elsewhere the check of the original tries it.
    """
    toolchain = backends.find_toolchain(place.spec)
    if toolchain is None and not device.absent:
        return ""
    known = place.compilers() if toolchain is not None else ()
    failed: list[tuple[Variant, Verdict, str]] = []
    for name, version in _compiler_choices(problem, known, toolchain):
        compiler = f"{name} {version}".strip()
        note(f"building the original with {compiler or 'the compiler'}")
        builders = make_builders(place, device, 2, name)
        try:
            builds = [(v, builders.start(v)) for v in _probe_variants(problem, template, device)]
            done = [(variant, future.result()) for variant, future in builds]
        finally:
            builders.close()
        refused = [(variant, code) for variant, code in done if isinstance(code, Verdict)]
        if not refused:
            if device.absent:  # elsewhere the check of the original tells
                refuse_over_limits(problem, device, dict(done))
            return compiler
        failed.append((*refused[0], compiler))

    raise pick_compile_error(problem, failed, toolchain, dict(known))


def _compiler_choices(
    problem: Problem, known: Sequence[tuple[str, str]], toolchain: Toolchain | None
) -> Sequence[tuple[str, str]]:
    if toolchain is None:
        return [("", "")]
    if not known:
        raise DeviceMissing(toolchain.none_here, hint=toolchain.how_to_install(""))
    wanted = problem.kernel.compiler
    chosen = [pair for pair in known if not wanted or pair[0] == wanted]
    if not chosen:
        fault = f"the problem asks for compiler = {wanted!r}, here there is: {format_compilers(known)}"
        raise BadInput(fault, hint=f"{toolchain.how_to_install(wanted)}, or take compiler out of [kernel]")
    return chosen


def _probe_variants(problem: Problem, template: Template | None, device: Device) -> list[Variant]:
    """The original and one configuration, the default if it may run on the device."""
    found = [original_variant(problem, problem.workloads[0].as_dict())]
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


def has_compiler(known: Sequence[tuple[str, str]], compiler: str) -> bool:
    """Whether it is there, by name and version."""
    name, _, version = compiler.partition(" ")
    return (name, version) in known


def format_compilers(compilers: Sequence[tuple[str, str]]) -> str:
    return ", ".join(" ".join(pair) for pair in compilers) or "none"


# -- where a session works ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a session builds and measures: made once, moved to the folder of the run once there is one."""

    workers: WorkerSite
    here: LocalDevices
    device: Device  # of the run; absent: the description of one that is not here
    compiler: str = ""  # name and version, where the backend has several
    sources: tuple[WorkerSource, ...] = (HERE,)  # those that measure first
    posts: tuple[DeviceSlot, ...] = ()  # where several devices measure
    missing: str = ""  # why nothing can be measured here; empty: it can
    attached: Attached | None = None  # to be written down first, where anything is new

    def at(self, spec: str, scratch: Path) -> Place:
        """The same for workers of another folder; `spec`: the backend as the run has it."""

        def move(workers: WorkerSite) -> WorkerSite:
            return replace(workers, spec=spec, scratch=scratch)

        here = replace(self.here, spec=spec)
        posts = tuple(replace(post, place=move(post.place)) for post in self.posts)
        return replace(self, workers=move(self.workers), here=here, posts=posts)

    def builders(self, wanted: int) -> int:
        """`wanted` is what the user says of parallel builds; 0: nothing."""
        return builder_count(self.device, wanted, self.workers.source)


def attach_run(
    place: Place, state: State, templates: Templates, builders: int, note: Callable[[str], None]
) -> Place:
    """For a run as it stands: on its own device or one of the kind, with its own compiler or, before anything
    is timed, another."""
    device, missing = _device_for(state.device, place.here)
    compiler, known = state.compiler, place.workers.compilers()
    if compiler and not has_compiler(known, compiler):
        if state.baseline is not None:
            fault = (
                f"what this run has timed was built with {compiler}; here there is: {format_compilers(known)}"
            )
            raise DeviceMissing(fault, hint="resume it where that compiler is, or start a new run here")
        compiler = choose_compiler(templates.problem, templates.given, device, place.workers, note)
    place = replace(place, device=device, compiler=compiler, missing=missing)
    if device.absent == state.device.absent and compiler == state.compiler:
        return place
    unable: tuple[Config, ...] = ()
    if not device.absent and compiler == state.compiler:
        accidents = (COMPILER_CRASHED, COMPILER_SLOW)
        lookup = templates.lookup(state)
        unable = still_unable(templates.problem, lookup, state.surveyed, device, accidents)
    ahead = built_ahead(device, place.builders(builders))
    return replace(place, attached=Attached(device, compiler, ahead, unable))


def _device_for(wanted: Device, local: LocalDevices) -> tuple[Device, str]:
    """The run's own device or, where it had none, one of the same kind; else why there is none."""
    if backends.find_backend_kind(wanted.backend).from_file:
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
        described = f"{wanted.name} with {wanted.limits.sms} units ({wanted.driver})"
        fault = f"this run belongs to {described}; {f'here there is: {found}' if found else local.trouble}"
        raise DeviceMissing(fault, hint="resume it where that device is, or start a new run here")
    return next((d for d in same if d.id == wanted.id), same[0])


# -- what checks kernels in the place of a device that is not here: a plugin; without it nothing does ------


class RunRehearsal:
    """Checks of a run whose device is absent."""

    def __call__(self, template: Template | None, wanted: NextRehearsal | None) -> Rehearsed | None:
        """KernelWrong where the original is; None where nothing can stand in."""
        return None

    def told(self, missing: DeviceMissing, state: State) -> DeviceMissing:
        """With what was found."""
        return missing

    def close(self) -> None:
        """Nothing was opened."""


class SecondWatch(Protocol):
    """Of what runs on a device, watched where faults show that it lets pass."""

    def __call__(self, variant: Variant, seed: int) -> Sanitized: ...
    def of_original(self, seed: int) -> Sanitized: ...
    def close(self) -> None: ...


class DeviceStandIn:
    times_none = ""  # what is said of a device that only checks
    build_alone = ""  # what to do where it does not know what a kernel uses

    def is_wanted(self, language: str, config: RunConfig) -> bool:
        """Whether the user names it, as a backend or as the device."""
        return False

    def backend_of(self, language: str, config: RunConfig) -> str:
        """The backend to check kernels with."""
        return backends.backend_for(language, config.backend)

    def choose_device(self, language: str, here: LocalDevices, wanted: str | None) -> Device:
        return choose_device(here, wanted)

    def in_place_of(self, absent: Device, scratch: Path, sandbox: str) -> tuple[Device, WorkerSite] | None:
        """With the limits of the device that is not here; None where it cannot stand in."""
        return None

    def unknown_in(self, words: str) -> str:
        """What a build names that only the stand-in lacks; empty where there is none."""
        return ""

    def unknown_of(self, problem: Problem) -> str:
        """What a kernel's text has that it does not know, by reading alone; else empty."""
        return ""

    def rehearsal(
        self,
        problem: Problem,
        absent: Device,
        scratch: Path,
        settings: LabSettings,
        sandbox: str,
        progress: Callable[[str], None],
    ) -> RunRehearsal:
        return RunRehearsal()

    def watch_for(self, problem: Problem, device: Device, scratch: Path, sandbox: str) -> SecondWatch | None:
        """None where nothing stands in for such a device."""
        return None


def stand_in() -> DeviceStandIn:
    name = next(plugins.plugin_names("stand_in"), None)
    found: DeviceStandIn = plugins.load_plugin("stand_in", name) if name is not None else DeviceStandIn()
    return found


# -- what is made of workers: builders, runners, counters and labs --------------------------------


LEAST_AHEAD = 8
NOTHING: Mapping[str, Any] = {}


class LabOptions(TypedDict, total=False):
    """What the labs of a run have alike, as `make_lab` takes it."""

    progress: Callable[[str], None]
    ceilings: CeilingsStore | None
    counters: bool
    extra: Sequence[ExtraCase]
    store: BinaryStore | None
    beside: Beside | None


NO_COUNTERS = "a search does without, unless it is told --counters"


def builder_count(device: Device, wanted: int, source: WorkerSource = HERE) -> int:
    """Parallel builds: as many as the user says, else one for each core.

    Beside a device of its own one core is left free: it feeds the device, and draws and judges its data.
    An absent one has nothing to be fed with.
    """
    cores = source.cores
    return wanted or (cores if device.is_host or device.absent else max(1, cores - 1))


def built_ahead(device: Device, builders: int) -> int:
    """Enough that no builder waits while a GPU measures; none where it would disturb the measurement."""
    return 0 if device.is_host else max(LEAST_AHEAD, 2 * builders)


def make_builders(place: WorkerSite, device: Device, count: int, compiler: str) -> Builders:
    """`compiler` is a name, with or without its version."""
    return Builders(lambda: place.spawn("build"), device, count, compiler=compiler.partition(" ")[0])


def make_runner(place: WorkerSite, device: Device) -> Runner:
    return Runner(place.spawn("device"), device)


def make_lab(
    problem: Problem,
    device: Device,
    place: WorkerSite,
    *,
    settings: LabSettings,
    cache: ResultCache | None = None,
    known: Iterable[Outcome] = (),
    progress: Callable[[str], None] = lambda _text: None,
    ceilings: CeilingsStore | None = None,
    counters: bool = False,
    extra: Sequence[ExtraCase] = (),
    store: BinaryStore | None = None,
    beside: Beside | None = None,
    identity: str | None = None,
    shared: Mapping[str, Any] = NOTHING,
    make: Callable[..., LocalLab] = LocalLab,
) -> LocalLab:
    """`store` is where binaries go that are delivered, `ceilings` where those of the device do; `extra` are
    cases that a tester added; `counters`: profiles of the search have them too. Of several devices each has
    its `identity`, and a lab of another `make` that has parts in common with the others, `shared`."""
    if fault := problem.beyond(device.limits.names()):
        raise BadInput(fault, hint=f"change the workload, or the contract; the device is {device.name}")
    kind = backends.find_backend_kind(place.spec)
    missing, onlooker = why_no_profiles(kind.no_profiles, device, ceilings), None
    if not missing:
        from tunesmith.lab.profile import ProfileSession

        counted = place.counting() if counters else NoCounting(NO_COUNTERS)
        reader = backends.instructions_reader(place.spec)
        onlooker = ProfileSession(problem, device, counted, reader, ceilings, settings.seed, progress)
    return make(
        problem,
        device,
        place.spawn,
        settings,
        cache=cache,
        known=known,
        progress=progress,
        onlooker=onlooker,
        no_profiles=missing,
        extra=extra,
        sanitizers=place.sanitizers(),
        beside=beside,
        shelf=BinaryShelf(kind.portable, store),
        no_calls="a recording has no times of other sizes" if kind.from_file else "",
        identity=place.source.identity(device.id) if identity is None else identity,
        **shared,
    )


def refuse_over_limits(problem: Problem, device: Device, done: Mapping[Variant, BuiltCode | Verdict]) -> None:
    for build in builds_of(problem, None, None):
        code = done[build.variant]
        resources = code.resources if isinstance(code, BuiltCode) else None
        refused = judge_build(problem, build, device, resources).refused
        if refused:
            raise BadInput(
                f"the kernel cannot run on {device.name} at workload {refused[0].workload}: "
                f"{refused[0].detail}",
                where=problem.kernel.path,
                hint="mend [launch] or the workload in problem.toml, or name another device with --device",
            )


def pick_compile_error(
    problem: Problem,
    failed: Sequence[tuple[Variant, Verdict, str]],
    toolchain: Toolchain | None,
    here: Mapping[str, str],
) -> TunesmithError:
    """The fault worth reading: not that of a compiler which only lacks headers, where another has them."""
    lacking = [f for f in failed if toolchain and toolchain.lacks(f[2].partition(" ")[0], f[1].detail)]
    variant, verdict, compiler = next((f for f in failed if f not in lacking), failed[-1])
    by = f" with {compiler}" if compiler else ""
    if verdict.detail.startswith(COMPILER_CRASHED):
        return TunesmithError(f"{verdict.detail}{f' ({compiler})' if compiler else ''}", hint=DOCTOR)
    hint = "mend the source, or the entry, flags, include and defines in problem.toml"
    if toolchain is not None and len(lacking) == len(failed):
        hint = toolchain.advice(here)
    elif variant.config is not None:
        hint = "mend the template: the compiler that builds the original must take it too"
    what = "the kernel" if variant.config is None else f"the template, at {variant.config},"
    where = problem.kernel.path if variant.config is None else variant.path
    return BadInput(f"{what} does not compile{by}:\n{verdict.detail}", where=where, hint=hint)
