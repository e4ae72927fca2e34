"""Beside a GPU: what runs there is watched on the host's processor too, where it can be built for that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith import backends
from tunesmith.errors import BadInput
from tunesmith.lab.builders import Builders, BuiltCode
from tunesmith.lab.measuring import LaunchPlans, Original
from tunesmith.lab.memory import Verdict
from tunesmith.lab.sanitizing import Sanitizing, is_watched_twice, sanitizer_tools
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Variant, original
from tunesmith.run.sanitized import Sanitized
from tunesmith.session import machine, standing_in
from tunesmith.session.stand_in import DeviceStandIn
from tunesmith.session.standing_in import CPU, device_like, unknown_in
from tunesmith.text import first_line


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
        own = original(self.problem)
        return self._of(own, lambda _code, sanitizing: sanitizing.of_original(own, seed))

    def close(self) -> None:
        if not isinstance(self._parts, str):
            builders, sanitizing = self._parts
            builders.close()
            sanitizing.close()

    def _of(self, variant: Variant, look: Callable[[BuiltCode, Sanitizing], Sanitized]) -> Sanitized:
        """Where the original cannot be built there is nothing to compare a kernel's faults with."""
        with self._turn:
            return self._looked(variant, look)

    def _looked(self, variant: Variant, look: Callable[[BuiltCode, Sanitizing], Sanitized]) -> Sanitized:
        found = self._opened()
        if isinstance(found, str):
            return Sanitized(absent=(("", found),))
        builders, sanitizing = found
        for one in (original(self.problem, self.problem.workloads[0].as_dict()), variant):
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
            place = machine.Workplace(CPU, self.scratch, self.sandbox)
            here = machine.look(place)
            own, kind = device_like(self.device, here), backends.kind(CPU)
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

    times_none = standing_in.TIMES_NONE
    build_alone = standing_in.BUILD_ALONE
    is_wanted = staticmethod(standing_in.is_wanted)
    backend_of = staticmethod(standing_in.backend_of)
    place_to_time = staticmethod(standing_in.place_to_time)
    choose_device = staticmethod(standing_in.choose_device)
    in_place_of = staticmethod(standing_in.in_place_of)
    unknown_in = staticmethod(standing_in.unknown_in)
    unknown_of = staticmethod(standing_in.unknown_of)
    rehearsal = standing_in.HostRehearsal
    watch_for = staticmethod(watch_for)


PROCESSOR = Processor()
