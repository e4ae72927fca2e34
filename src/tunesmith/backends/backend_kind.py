"""What is known of a backend: one value for each, defined in the backend's own folder, which is loaded when
it is asked for. Drivers, compilers and their bindings are loaded on use."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tunesmith.backends.port import Backend, Counting
    from tunesmith.problem.device import Device
    from tunesmith.problem.languages import SourceLanguage
    from tunesmith.profiles.facts import Instructions
    from tunesmith.run.ports import OwnAuthor

ReadInstructions = Callable[[bytes, str], "tuple[Instructions | None, str]"]
ListDevices = Callable[[], "tuple[Device, ...]"]


@dataclass(frozen=True)
class DoctorFinding:
    """Something `tunesmith doctor` looked at, and the one command that enables what is not usable."""

    what: str
    usable: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class CeilingKernels:
    """Kernels that measure what a device can do at best, as files beside the kind's own module."""

    file: str
    half: str  # the file with half precision
    lanes: Mapping[str, int]  # numbers that a thread works on at once, by kind
    items: tuple[int, ...]  # vectors that a thread of its copies and reads takes


@dataclass(frozen=True)
class TuningFlags:
    """Build flags that a template may have with a parameter as their value, {}; empty where there is none."""

    register_cap: str = ""  # registers of a thread, at most
    register_level: str = ""  # how hard the assembler saves registers


@dataclass(frozen=True)
class Toolchain:
    """The compilers of a backend that has a choice of them."""

    compilers: Callable[[], tuple[tuple[str, str], ...]]  # name and version, the preferred one first
    none_here: str
    how_to_install: Callable[[str], str]
    lacks: Callable[[str, str], bool]  # compiler and log: it failed for want of what another compiler has
    advice: Callable[[Collection[str]], str]  # then; given the names of those here


@dataclass(frozen=True)
class BackendKind:
    name: str
    languages: tuple[SourceLanguage, ...]
    make: Callable[[str], Backend]  # given what follows the colon in `name:argument`
    extra: str = ""  # of pip, which brings what it needs
    from_file: bool = False  # the argument is a file that holds its device: a recording
    plays_absent: bool = False  # `name:absent` is its device as if it were elsewhere
    # What doctor says of it; devices are listed in a process of their own.
    check: Callable[[ListDevices], list[DoctorFinding]] = lambda _devices: []
    # Variables of its workers, given those inherited. Files that they name may be written into the scratch
    # folder, where everything lands that a worker writes by itself.
    environment: Callable[[Path, Mapping[str, str]], Mapping[str, str]] = lambda _scratch, _inherited: {}
    # The device to build for where none is here.
    absent_device: Callable[[str | None], Device | None] = lambda _wanted: None
    architecture: Callable[[Device], str] = lambda _device: ""  # of a device, as users name it
    is_architecture: Callable[[Device, str], bool] = lambda _device, _wanted: False
    toolchain: Toolchain | None = None  # None: there is no choice
    flags: TuningFlags = TuningFlags()
    # The command that compiles kernels with the host's part in one file; None: they are delivered without.
    host_command: Callable[[Sequence[str], Device], str] | None = None
    no_profiles: str = ""  # why a search has no profile to be steered by
    no_counters: str = "this backend reads no hardware counters"
    counting: Callable[[Sequence[str], Mapping[str, str], Path], Counting] | None = None
    instructions: ReadInstructions | None = None  # reads the machine code of a build
    ceilings: CeilingKernels | None = None
    author: Callable[[], OwnAuthor] | None = None  # None: the expert reads its kernels

    @property
    def install(self) -> str:
        return f"pip install 'tunesmith[{self.extra}]'" if self.extra else ""


def has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package it is in
        return False


def module_finding(name: str, purpose: str, fix: str) -> DoctorFinding:
    if has_module(name):
        return DoctorFinding(name, True, purpose)
    return DoctorFinding(name, False, f"not installed: {purpose} needs it", fix)


def system_package(package: str, apt: str = "") -> str:
    """The command that installs it here."""
    for tool, command in (
        ("apt-get", "apt-get install"),
        ("dnf", "dnf install"),
        ("pacman", "pacman -S"),
        ("apk", "apk add"),
        ("zypper", "zypper install"),
        ("brew", "brew install"),
    ):
        if shutil.which(tool):
            return f"{command} {apt if apt and tool == 'apt-get' else package}"
    return f"install {package} with your system's package manager"
