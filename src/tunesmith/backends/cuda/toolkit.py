"""Where CUDA's own headers and nvcc lie: beside the wheels, or in a toolkit."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from pathlib import Path

from tunesmith.problem.template import find_includes

_VERSION = re.compile(rb"#\s*define\s+(?:CUDART_VERSION|CUDA_VERSION)\s+(\d+)")
USUAL_PLACE = Path("/usr/local/cuda")
CORE_LIBRARIES = "cccl"  # a folder of their own from CUDA 13 on; the runtime's wheel comes without
_A_HEADER = "cuda_fp16.h"  # a folder without it has no headers for kernels


def header_folders(nvrtc: str | None, version: tuple[int, int]) -> tuple[Path, ...]:
    """CUDA's headers for an NVRTC of that version, and the C++ core libraries' where they are. One set, never
    a mixture: headers speak to the compiler they were written with. The ones beside `nvrtc`, the library
    loaded, come first; others only where they are closer to its version, or as close and with the C++ core
    libraries that these lack."""
    found = [folder for folder in _candidate_header_folders(nvrtc) if (folder / _A_HEADER).is_file()]
    if not found:
        return ()
    best = min(
        dict.fromkeys(found),
        key=lambda folder: (
            _version_distance(_version_of(folder), version),
            not (folder / CORE_LIBRARIES).is_dir(),
        ),
    )
    libraries = best / CORE_LIBRARIES
    return (best, libraries) if libraries.is_dir() else (best,)


def find_program(name: str, first: Iterable[Path] = (), last: Iterable[Path] = ()) -> str | None:
    """The first of PATH, CUDA_HOME, CUDA_PATH and the usual place that has one; `first` and `last` are paths
    to try before and after these."""
    places = (*first, shutil.which(name), *(root / "bin" / name for root in _toolkit_roots()), *last)
    return next((str(place) for place in places if place and os.access(place, os.X_OK)), None)


def find_nvcc() -> str | None:
    return find_program("nvcc")


def cuda_folders() -> Iterator[Path]:
    """What a compiler here reads beside what lies in the usual places: its toolkit, wherever that is."""
    yield from _toolkit_roots()
    if (nvcc := shutil.which("nvcc")) is not None:
        yield Path(nvcc).resolve().parent.parent


def in_wheels(folder: str) -> list[Path]:
    """Folders of that name in NVIDIA's wheels, the newest first."""
    spec = importlib.util.find_spec("nvidia")  # a namespace that the wheels share
    places = spec.submodule_search_locations or () if spec else ()
    return [found for place in places for found in sorted(Path(place).glob(f"cu*/{folder}"), reverse=True)]


def _candidate_header_folders(nvrtc: str | None) -> Iterator[Path]:
    if nvrtc:
        library = Path(nvrtc)
        yield from (folder / "include" for folder in (library.parent.parent, library.resolve().parent.parent))
    yield from in_wheels("include")
    yield from (root / "include" for root in _toolkit_roots())
    if (nvcc := shutil.which("nvcc")) is not None:
        yield Path(nvcc).resolve().parent.parent / "include"


def _toolkit_roots() -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    yield USUAL_PLACE


def _version_of(folder: Path) -> tuple[int, int] | None:
    for name in ("cuda_runtime_api.h", "cuda.h"):
        try:
            found = _VERSION.search((folder / name).read_bytes())
        except OSError:
            continue
        if found:
            return int(found[1]) // 1000, int(found[1]) % 1000 // 10
    return None


def _version_distance(version: tuple[int, int] | None, wanted: tuple[int, int]) -> int:
    if version is None:
        return 1000
    return 100 * abs(version[0] - wanted[0]) + abs(version[1] - wanted[1])


Headers = tuple[tuple[str, str], ...]

# Those of a line or none; others are files.
_SHORT = {
    "stdbool.h": "",
    "stdio.h": "",
    "stdlib.h": "#include <stddef.h>\n",
    "cassert": "#include <assert.h>\n",
    "cfloat": "#include <float.h>\n",
    "climits": "#include <limits.h>\n",
    "cstddef": "#include <stddef.h>\nnamespace std { using ::size_t; using ::ptrdiff_t; }\n",
    "cstdio": "namespace std { using ::printf; }\n",
    "cstdlib": "#include <cstddef>\nnamespace std { using ::abs; }\n",
}
_OVERLAPPING = {"cudaGridDependencySynchronize", "cudaTriggerProgrammaticLaunchCompletion"}
_DEFINED = re.compile(r"#[ \t]*define[ \t]+(\w+)")
_CONSTANT = re.compile(r"^#define (\w+) .*\n", re.MULTILINE)


def standard_headers(source: str, given: Headers) -> Headers:
    """What of the standard these texts include and nobody has given: spelling and text."""
    known = {spelling for spelling, _ in given}
    found: dict[str, str] = {}
    queue = [source, *(text for _, text in given)]
    queue += [f"#include <{name}>" for name in pre_included(source, given)]
    while queue:
        for spelling, _ in find_includes(queue.pop()):
            if spelling in _small_header_texts() and spelling not in known and spelling not in found:
                found[spelling] = _small_header_texts()[spelling]
                queue.append(found[spelling])
    return tuple(found.items())


def pre_included(source: str, given: Headers) -> tuple[str, ...]:
    """Headers that nvcc would have put in front of a source's first line, where a text makes use of them."""
    known = {spelling for spelling, _ in given}
    texts = "\n".join([source, *(text for _, text in given)])
    words = set(re.findall(r"\b\w+\b", texts)) - set(_DEFINED.findall(texts))
    implied = {
        "math.h": set(_DEFINED.findall(_small_header_texts()["math.h"])),
        "cuda_device_runtime_api.h": _OVERLAPPING,
    }
    return tuple(name for name, names in implied.items() if name not in known and names & words)


@cache
def _small_header_texts() -> dict[str, str]:
    """A constant of theirs gives way to what is defined under its name already."""
    files = resources.files(__package__).joinpath("headers").iterdir()
    read = {file.name: file.read_text(encoding="utf-8") for file in files}
    return _SHORT | {name: _CONSTANT.sub(r"#ifndef \1\n\g<0>#endif\n", text) for name, text in read.items()}
