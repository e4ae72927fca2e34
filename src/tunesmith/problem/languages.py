"""The languages kernels are written in: what a source, a launch and a build of each may have.

A backend names the languages that it runs. One that no backend runs can still be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from tunesmith.errors import BadInput
from tunesmith.problem.device import Device, Limits

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
    example: str = ".cu"  # the ending of the examples that models are shown
    assumed: Device | None = None  # that its kernels are read and written for where no backend runs them
    open_for_nan: tuple[str, ...] = ()  # functions whose result for NaN is any implementation's own
    is_c_family: bool = True  # can be read as code; else only the backend's own author reads its kernels


CUDA = SourceLanguage(
    "cuda",
    "CUDA",
    (".cu", ".cuh"),
    about="C++17 unless flags say otherwise",
    compilers=("nvrtc", "nvcc"),
    reads_headers=True,
)
_MI300X = Limits(
    max_threads=1024, max_block=(1024, 1024, 1024), max_grid=((1 << 31) - 1, 65535, 65535), shared=64 << 10,
    sms=304, warp=64, llc=256 << 20, memory=192 << 30, max_allocation=192 << 30, alignment=256,
)  # fmt: skip
_ASSUMED = Device("hip", "assumed", "AMD Instinct MI300X (assumed)", "HIP", "", "gpu", _MI300X, absent=True)
HIP = SourceLanguage("hip", "HIP", (".hip",), reads_headers=True, assumed=_ASSUMED)
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
    example=".cl",
    open_for_nan=("max", "min"),
)
# Of the simulated device, for tests and offline trials.
FAKE = SourceLanguage(
    "fake", "fake", (".fake",), self_contained=True, launch_words=(), local_arguments=True, is_c_family=False
)

_HIP_HEADER = re.compile(r"#\s*include\s*[<\"]hip/")
_C_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl")
_MARKS = (
    (_HIP_HEADER, HIP.name),
    (re.compile(r"\b__global__\b"), CUDA.name),
    (re.compile(r"\b__kernel\b"), OPENCL.name),
)
_STANDARD = {language.name: language for language in (CUDA, HIP, OPENCL, FAKE)}
_finders: list[Callable[[], Iterable[SourceLanguage]]] = []


def found_by(finder: Callable[[], Iterable[SourceLanguage]]) -> None:
    """Who knows of further languages; asked when all are wanted, or one that is not standard."""
    _finders.append(finder)


def known() -> tuple[SourceLanguage, ...]:
    further = {language.name: language for finder in _finders for language in finder()}
    return tuple({**_STANDARD, **further}.values())


def _standard_first() -> Iterator[SourceLanguage]:
    yield from _STANDARD.values()
    yield from known()


def exists(name: str) -> bool:
    return any(language.name == name for language in _standard_first())


def named(name: str) -> SourceLanguage:
    """The language of that name; one that nobody knows has no rules of its own."""
    unknown = SourceLanguage(name, name, (), is_c_family=False)
    return next((language for language in _standard_first() if language.name == name), unknown)


def of_suffix(suffix: str) -> SourceLanguage | None:
    """The language whose files have that ending."""
    return next((language for language in _standard_first() if suffix in language.suffixes), None)


def all_suffixes(*, c_family: bool = False) -> list[str]:
    """Of all languages, or of those of the C family alone."""
    return [suffix for one in known() if one.is_c_family or not c_family for suffix in one.suffixes]


def is_source_name(file_name: str) -> bool:
    """Whether the name promises a source of the C family."""
    language = of_suffix(PurePath(file_name).suffix.lower())
    return language is not None and language.is_c_family


def language_of(file_name: str, text: str = "") -> str:
    """The language of the C family that a file's name promises, or its text where the name leaves it open:
    programs for HIP are called `.cu` and `.cpp`, too."""
    suffix = PurePath(file_name).suffix.lower()
    language = of_suffix(suffix)
    if language is not None and language.is_c_family:
        return HIP.name if language is CUDA and _HIP_HEADER.search(text) else language.name
    if suffix in _C_SUFFIXES and (marked := [name for mark, name in _MARKS if mark.search(text)]):
        return marked[0]
    endings = ", ".join(sorted(all_suffixes(c_family=True)))
    fault = f"the name of a kernel source must end in {endings}; got {suffix or 'no ending'!r}"
    hint = "rename the file, or give the file that holds the kernel itself"
    raise BadInput(fault, hint=hint, where=file_name)
