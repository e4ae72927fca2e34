"""Backends, found by name: one folder each, which defines its `KIND`, and one line in `base.plugins`."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from tunesmith import __version__
from tunesmith.base import plugins
from tunesmith.base.errors import BadInput
from tunesmith.problem import device as languages

if TYPE_CHECKING:
    from tunesmith.backends.port import Backend, BackendKind, ReadInstructions, Toolchain
    from tunesmith.problem.device import Device

ABSENT = "absent"  # `fake:absent`: a simulated device as if it were elsewhere; builds work, nothing runs
OWN_BACKEND = "leave --backend out: the kernel's language has its own"


languages.found_by(lambda: [language for kind in backend_kinds() for language in kind.languages])


@cache
def _kind_or_fault(name: str) -> BackendKind | BadInput:
    from tunesmith.backends.port import BackendKind  # which all of them load

    return plugins.load_or_fault("backends", name, BackendKind)


def _load_kind(name: str) -> BackendKind:
    found = _kind_or_fault(name)
    if isinstance(found, BadInput):
        raise found
    return found


def _sound_kinds(names: Iterable[str]) -> Iterator[BackendKind]:
    """Without those that cannot be used: one bad plugin does not end what others are asked for."""
    for name in names:
        found = _kind_or_fault(name)
        if not isinstance(found, BadInput):
            yield found


def backend_kinds() -> tuple[BackendKind, ...]:
    return tuple(_sound_kinds(plugins.plugin_names("backends")))


def unusable_backends() -> list[tuple[str, BadInput]]:
    """The names of installed ones that are no backends, and why."""
    looks = [(name, _kind_or_fault(name)) for name in plugins.plugin_names("backends")]
    return [(name, fault) for name, fault in looks if isinstance(fault, BadInput)]


def find_backend_kind(spec: str) -> BackendKind:
    """Of the backend called `name` or `name:argument`."""
    name, _, argument = spec.partition(":")
    if not plugins.is_known("backends", name):
        known = ", ".join(plugins.plugin_names("backends"))
        raise BadInput(f"unknown backend {name!r}; known are {known}", hint=OWN_BACKEND)
    found = _load_kind(name)
    if argument and not found.from_file and not (found.plays_absent and argument == ABSENT):
        takers = " and ".join(k.name for k in backend_kinds() if k.from_file)
        words = f"only the {takers} backend takes a file, got {spec!r}"
        raise BadInput(words, hint=f"write --backend {name}")
    return found


def make_backend(spec: str) -> Backend:
    return find_backend_kind(spec).make(spec.partition(":")[2])


def kind_for(language: str) -> BackendKind | None:
    """The backend that runs a language unless another is named: the one of its own name, or the first."""
    first = [name for name in plugins.our_names("backends") if name == language]
    found = _sound_kinds(chain(first, plugins.plugin_names("backends")))
    return next((k for k in found if not k.from_file and language in _kind_language_names(k)), None)


def kind_of(device: Device, language: str) -> BackendKind | None:
    """The backend of a device, where it runs the language."""
    found = _load_kind(device.backend) if plugins.is_known("backends", device.backend) else None
    return found if found is not None and language in _kind_language_names(found) else None


def runs_untimed(language: str) -> bool:
    """Whether all that runs a language here is a stand-in that times nothing."""
    kind = kind_for(language)
    return kind is not None and kind.untimed


def backend_for(language: str, wanted: str | None) -> str:
    """The backend to use for a kernel's language, or why there is none."""
    if wanted is None:
        kind = kind_for(language)
        if kind is None:
            runs = ", ".join(dict.fromkeys(name for k in backend_kinds() for name in _kind_language_names(k)))
            words = f"this version runs {runs} kernels, this one is {language}"
            raise BadInput(words, hint="see what is usable here with: tunesmith doctor")
        return kind.name
    found = find_backend_kind(wanted)
    if language not in _kind_language_names(found):
        words = (
            f"backend {found.name} runs {', '.join(_kind_language_names(found))} kernels, "
            f"this one is {language}"
        )
        raise BadInput(words, hint=OWN_BACKEND)
    return wanted


def _kind_language_names(kind: BackendKind) -> tuple[str, ...]:
    return tuple(language.name for language in kind.languages)


def plays_absent(spec: str) -> bool:
    return find_backend_kind(spec).plays_absent and spec.partition(":")[2] == ABSENT


def absent_device(spec: str, wanted: str | None) -> Device | None:
    """The device to build for where none is here; None for backends that cannot build without one."""
    if plays_absent(spec):
        return replace(make_backend(spec).devices()[0], absent=True)
    return find_backend_kind(spec).absent_device(wanted)


def spec_of(device: Device) -> str:
    """How a device's backend is named again, also one that only played to be elsewhere."""
    kind = find_backend_kind(device.backend)
    return f"{kind.name}:{ABSENT}" if device.absent and kind.plays_absent else kind.name


def list_compilers(spec: str) -> tuple[tuple[str, str], ...] | None:
    """Name and version of each compiler here, the preferred one first; None where there is no choice."""
    toolchain = find_toolchain(spec)
    return toolchain.compilers() if toolchain is not None else None


def find_toolchain(spec: str) -> Toolchain | None:
    return find_backend_kind(spec).toolchain


def instructions_reader(spec: str) -> ReadInstructions:
    """What tells the instructions of a build, or why nobody can."""
    kind = find_backend_kind(spec)
    if kind.instructions is not None:
        return kind.instructions
    return lambda _binary, _entry: (None, f"Tunesmith does not read the machine code of {kind.name} builds")


def ceilings_text(backend: str, file: str) -> str:
    """A source of a backend's own, from its folder."""
    from importlib import resources  # no worker asks for it

    return resources.files(plugins.module_of("backends", backend)).joinpath(file).read_text(encoding="utf-8")


def package_versions(*kinds: BackendKind) -> tuple[tuple[str, str], ...]:
    """Of this program, the machine's system, and the packages that backends rest on."""
    from importlib import metadata  # which reads e-mail headers: no worker asks

    found = [("tunesmith", __version__), ("python", platform.python_version())]
    found.append(("system", platform.platform()))
    for package in ("numpy", "ml_dtypes", *(package for kind in kinds for package in kind.packages)):
        with suppress(metadata.PackageNotFoundError):
            found.append((package, metadata.version(package)))
    return tuple(found)
