"""The languages kernels are written in: what a source, a launch and a build of each may have.

A backend names the languages that it runs. One that no backend runs can still be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from tunesmith.core.errors import BadInput

LAUNCH_WORDS = ("shared", "cluster", "cooperative", "pdl")  # of [launch], beside grid and block


@dataclass(frozen=True)
class SourceLanguage:
    name: str
    title: str  # as people call it
    suffixes: tuple[str, ...]  # of its files
    about: str = ""  # what a writer should know of it
    compilers: tuple[str, ...] = ()  # that a problem may choose from
    reads_headers: bool = False  # the user's own are part of the problem
    self_contained: bool = False  # there are no include folders
    launch_words: tuple[str, ...] = LAUNCH_WORDS
    local_arguments: bool = False  # arguments of role local: shared memory by its size
    is_native: bool = False  # C, and its code may run in a process of the host
    flags: str = ""  # a pattern: the only build flags that a written template may have; empty: all
    allowed_flags: str = ""  # the same, in words
    is_c_family: bool = True  # can be read as code; else only the backend's own author reads its kernels

    def allows_flag(self, flag: str) -> bool:
        return not self.flags or re.fullmatch(self.flags, flag) is not None


CUDA = SourceLanguage(
    "cuda",
    "CUDA",
    (".cu", ".cuh"),
    about="C++17 unless flags say otherwise",
    compilers=("nvrtc", "nvcc"),
    reads_headers=True,
)
HIP = SourceLanguage("hip", "HIP", (".hip",))
OPENCL = SourceLanguage(
    "opencl",
    "OpenCL",
    (".cl",),
    about="OpenCL C",
    self_contained=True,
    launch_words=(),
    local_arguments=True,
    is_native=True,
    flags=r"-cl-[\w-]+(?:=[\w.{}]+)?",
    allowed_flags="those that begin with -cl-",
)
# Of the simulated device, for tests and offline trials.
FAKE = SourceLanguage(
    "fake",
    "fake",
    (".fake",),
    self_contained=True,
    launch_words=(),
    local_arguments=True,
    is_c_family=False,
)

_known = {language.name: language for language in (CUDA, HIP, OPENCL, FAKE)}


def known() -> tuple[SourceLanguage, ...]:
    return tuple(_known.values())


def named(name: str) -> SourceLanguage:
    """The language of that name; one that nobody knows has no rules of its own."""
    return _known.get(name) or SourceLanguage(name, name, (), is_c_family=False)


def by_suffix(*, c_family: bool = False) -> dict[str, str]:
    """Of all languages, or of those of the C family alone."""
    return {suffix: one.name for one in known() if one.is_c_family or not c_family for suffix in one.suffixes}


def is_source_name(file_name: str) -> bool:
    return PurePath(file_name).suffix.lower() in by_suffix(c_family=True)


def language_of(file_name: str) -> str:
    """The language of the C family that a file's name promises."""
    suffix = PurePath(file_name).suffix.lower()
    if is_source_name(file_name):
        return by_suffix()[suffix]
    raise BadInput(
        f"the name of a kernel source must end in {', '.join(sorted(by_suffix(c_family=True)))}; "
        f"got {suffix or 'no ending'!r}",
        hint="rename the file, or give the file that holds the kernel itself",
        where=file_name,
    )


def add(languages: Iterable[SourceLanguage]) -> None:
    """What a backend brings; the same ones again change nothing."""
    _known.update((language.name, language) for language in languages)
