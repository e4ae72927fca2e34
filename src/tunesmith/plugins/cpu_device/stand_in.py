"""The host's processor in the place of a GPU that is not here: kernels are checked there, none is timed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tunesmith import backends
from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.base.text import first_line
from tunesmith.lab.build import Builders, BuiltCode
from tunesmith.lab.judge.sanitize import Sanitizing, is_watched_twice, sanitizer_tools
from tunesmith.lab.lab import LabSettings, LocalLab
from tunesmith.lab.measure import LaunchPlans, Original
from tunesmith.lab.memory import Verdict
from tunesmith.problem import device
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, Variant, original_variant
from tunesmith.run.candidates import NextRehearsal
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Sanitized
from tunesmith.run.outcome import NOT_TIMED, Rehearsed
from tunesmith.run.state import State
from tunesmith.session import place as machine
from tunesmith.session.place import DeviceStandIn, RunRehearsal

CPU = "cpu"
TIMES_NONE = "the cpu device checks kernels and times none"
BUILD_ALONE = "without --device cpu the check proves that it builds for a GPU, and says what it leaves open"
_PROVE = "prove the kernel right with: tunesmith check PROBLEM"
_UNKNOWN = "the cpu device does not know"  # as its builds say


def _runs(language: str) -> bool:
    """Whether kernels in this language run on the processor."""
    return language in [known.name for known in backends.find_backend_kind(CPU).languages]


def is_wanted(language: str, config: RunConfig) -> bool:
    """Whether the user names it, as a backend or as the device."""
    if config.backend is not None:
        return config.backend == CPU
    return (config.device or "").partition("-")[0] == CPU and _runs(language)


def backend_of(language: str, config: RunConfig) -> str:
    """The backend to check kernels with."""
    return CPU if is_wanted(language, config) else backends.backend_for(language, config.backend)


def place_to_time(
    language: str, config: RunConfig, scratch: Path
) -> tuple[machine.WorkerSite, machine.LocalDevices, str | None]:
    """Where kernels are timed, the devices there and the name of the wanted one: where that is the cpu device
    there are none, and what can be done without is done."""
    if is_wanted(language, config):
        own = backends.kind_for(language)
        if own is None or own.name == CPU:
            fault = f"{TIMES_NONE}, and this version runs {language} kernels nowhere else"
            raise DeviceMissing(fault, hint=_PROVE)
        place = machine.WorkerSite(own.name, scratch, config.sandbox)
        here = machine.find_local_devices(place)
        return place, replace(here, devices=(), trouble=TIMES_NONE), None
    spec = backends.backend_for(language, config.backend)
    if spec == CPU:
        raise DeviceMissing(f"this version times no {language} kernels: {TIMES_NONE}", hint=_PROVE)
    place = machine.WorkerSite(spec, scratch, config.sandbox)
    return place, machine.find_local_devices(place), config.device


def choose_device(language: str, here: machine.LocalDevices, wanted: str | None) -> Device:
    """Of the processor's own descriptions the one whose warps are as wide as the language's."""
    if here.spec != CPU or not here.devices or (wanted not in (None, CPU)):
        return machine.choose_device(here, wanted)
    assumed = device.find_language(language).assumed
    warp = assumed.limits.warp if assumed is not None else here.devices[0].limits.warp
    return next((one for one in here.devices if one.limits.warp == warp), here.devices[0])


def device_like(absent: Device, here: machine.LocalDevices) -> Device | None:
    """The processor with the limits of the device that is not here; None where it cannot stand in."""
    if not _runs(absent.backend):
        return None
    own = next((d for d in here.devices if d.limits.warp == absent.limits.warp), None)
    if own is None:
        return None
    memory, most = own.limits.memory, own.limits.max_allocation
    return replace(own, limits=replace(absent.limits, llc=0, memory=memory, max_allocation=most))


def in_place_of(absent: Device, scratch: Path, sandbox: str) -> tuple[Device, machine.WorkerSite] | None:
    """The same, looked for here, and where its workers are."""
    place = machine.WorkerSite(CPU, scratch, sandbox)
    found = device_like(absent, machine.find_local_devices(place))
    return (found, place) if found is not None else None


def unknown_in(words: str) -> str:
    """What a build names that only this device lacks: no fault of the kernel's; empty where there is none."""
    return next((line for line in words.splitlines() if _UNKNOWN in line), "")


def unknown_of(problem: Problem) -> str:
    """What a kernel's text has that this device does not know, by reading alone; else empty."""
    if not _runs(problem.kernel.language):
        return ""
    from tunesmith.backends import port
    from tunesmith.plugins.cpu_device.source import host_text

    try:
        host_text(problem.kernel.text, problem.kernel.path)
    except port.BuildFailed as fault:
        return unknown_in(str(fault))
    return ""


@dataclass
class HostRehearsal(RunRehearsal):
    """The laboratory is made when it is first needed."""

    problem: Problem
    absent: Device
    scratch: Path
    settings: LabSettings
    sandbox: str
    progress: Callable[[str], None]
    _lab: LocalLab | None = None
    _device: Device | None = None
    _looked: bool = False

    def __call__(self, template: Template | None, wanted: NextRehearsal | None) -> Rehearsed | None:
        lab = self._opened()
        if lab is None or self._device is None:
            return None
        config = wanted.config if wanted is not None else None
        what, left = "the original" if wanted is None else "the template", wanted.left if wanted else 0
        of = f" ({left} to go at the gate)" if wanted is not None and (left or not wanted.whole) else ""
        self.progress(f"checking {what}{of} on {self._device.name}, where nothing is timed")
        started = time.monotonic()
        try:
            found = lab.rehearse(template, config, wanted is None or wanted.whole)
            unknown = unknown_in(found.verdict.detail) if wanted is None or wanted.whole else ""
        except BadInput as error:
            if not (unknown := unknown_in(error.message)):
                raise
        if unknown:
            self.progress(f"{what} is not checked here: {unknown}")
            return None
        verdict, spent = found.verdict, time.monotonic() - started
        said = (verdict.status, found.cases, verdict.detail, found.watched)
        return Rehearsed(config, self._device.name, *said, spent, left)

    def told(self, missing: DeviceMissing, state: State) -> DeviceMissing:
        if not any(one.cases for one in state.rehearsed) or self._is_turned_away(state):
            return missing
        return DeviceMissing(f"{missing.message}; {NOT_TIMED}", hint=missing.hint, where=missing.where)

    def _is_turned_away(self, state: State) -> bool:
        """Whether the last that was tried is wrong: a draft by its gate, what was given by its default."""
        tried = [one.config for one in state.rehearsed if one.config is not None]
        if not tried:
            return False
        last = tried[-1].candidate
        first = next(one for one in state.rehearsed if one.config and one.config.candidate == last)
        return first.convicts or (bool(last) and state.candidate(last).rejected is not None)

    def close(self) -> None:
        if self._lab is not None:
            self._lab.close()

    def _opened(self) -> LocalLab | None:
        if self._looked:
            return self._lab
        self._looked = True
        if not _runs(self.absent.backend):
            return None
        place = machine.WorkerSite(CPU, self.scratch, self.sandbox)
        here = machine.find_local_devices(place)
        self._device = device_like(self.absent, here)
        if self._device is None:
            self.progress(f"nothing is checked here: {here.trouble}")
            return None
        own = replace(self.settings, compiler="")
        self._lab = machine.make_lab(self.problem, self._device, place, settings=own, progress=self.progress)
        return self._lab


# Beside a GPU: what runs there is watched on the host's processor too, where it can be built for that.


def watch_for(problem: Problem, device: Device, scratch: Path, sandbox: str) -> HostWatch | None:
    """None where the processor never stands in for such a device."""
    return HostWatch(problem, device, scratch, sandbox) if is_watched_twice(device) else None


@dataclass
class HostWatch:
    """Beside a GPU, or several: kernels that run there under the processor's own watch, one at a time.
    Builders are made when they are first needed."""

    problem: Problem
    device: Device
    scratch: Path
    sandbox: str
    _parts: tuple[Builders, Sanitizing] | str = ""  # or why there are none
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, variant: Variant, seed: int) -> Sanitized:
        """What a kernel has that the original has not."""
        return self._of(variant, lambda code, own: own.look_at_gate(code, variant, seed))

    def of_original(self, seed: int) -> Sanitized:
        own = original_variant(self.problem)
        return self._of(own, lambda _code, sanitizing: sanitizing.of_original(own, seed))

    def close(self) -> None:
        if not isinstance(self._parts, str):
            builders, sanitizing = self._parts
            builders.close()
            sanitizing.close()

    def _of(self, variant: Variant, look: Callable[[BuiltCode, Sanitizing], Sanitized]) -> Sanitized:
        with self._turn:
            return self._look_at(variant, look)

    def _look_at(self, variant: Variant, look: Callable[[BuiltCode, Sanitizing], Sanitized]) -> Sanitized:
        """Where the original cannot be built there is nothing to compare a kernel's faults with."""
        found = self._opened()
        if isinstance(found, str):
            return Sanitized(absent=(("", found),))
        builders, sanitizing = found
        for one in (original_variant(self.problem, self.problem.workloads[0].as_dict()), variant):
            code = builders.start(one).result()
            if isinstance(code, Verdict):
                words = unknown_in(code.detail) or f"it is not built there: {first_line(code.detail)}"
                return Sanitized(absent=(("", words),))
        assert isinstance(code, BuiltCode)
        try:
            return look(code, sanitizing)
        except BadInput as error:  # it builds for the GPU
            return Sanitized(absent=(("", unknown_in(error.message) or error.message),))

    def _opened(self) -> tuple[Builders, Sanitizing] | str:
        if not self._parts:
            place = machine.WorkerSite(CPU, self.scratch, self.sandbox)
            here = machine.find_local_devices(place)
            own, kind = device_like(self.device, here), backends.find_backend_kind(CPU)
            if own is None:
                self._parts = here.trouble or f"the cpu device does not stand in for {self.device.name}"
                return self._parts
            builders = machine.make_builders(place, own, 1, "")
            plans = LaunchPlans(self.problem, own)
            tools = sanitizer_tools(kind, place.environment, self.scratch, self.sandbox)
            about = (self.problem, own, plans, Original(self.problem, builders, plans))
            self._parts = (builders, Sanitizing(*about, tools))
        return self._parts


class Processor(DeviceStandIn):
    """The host's, in the place of GPUs: the functions of this plugin as the core knows them."""

    times_none = TIMES_NONE
    build_alone = BUILD_ALONE
    is_wanted = staticmethod(is_wanted)
    backend_of = staticmethod(backend_of)
    place_to_time = staticmethod(place_to_time)
    choose_device = staticmethod(choose_device)
    in_place_of = staticmethod(in_place_of)
    unknown_in = staticmethod(unknown_in)
    unknown_of = staticmethod(unknown_of)
    rehearsal = HostRehearsal
    watch_for = staticmethod(watch_for)


PROCESSOR = Processor()
