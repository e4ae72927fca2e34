"""What checks kernels in the place of a device that is not here: a plugin. Without it nothing does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tunesmith import backends
from tunesmith.base import plugins
from tunesmith.base.errors import DeviceMissing
from tunesmith.lab.lab import LabSettings
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, Variant
from tunesmith.run.candidates import NextRehearsal
from tunesmith.run.config import RunConfig
from tunesmith.run.events import Sanitized
from tunesmith.run.outcome import Rehearsed
from tunesmith.run.state import State
from tunesmith.session import place
from tunesmith.session.place import Workplace


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

    def choose_device(self, language: str, here: place.LocalDevices, wanted: str | None) -> Device:
        return place.choose_device(here, wanted)

    def in_place_of(self, absent: Device, scratch: Path, sandbox: str) -> tuple[Device, Workplace] | None:
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
