"""The library that swaps launches, built by the host's compiler for LD_PRELOAD, and what it counted."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from tunesmith.errors import BadInput, DeviceMissing
from tunesmith.run.config import COMPILERS, passed_on
from tunesmith.text import first_line

LIBRARY = "swap.so"
FOLDER_VARIABLE = "TUNESMITH_SWAP_FOLDER"
PRELOAD = "LD_PRELOAD"
_FLAGS = (
    "-x", "c++", "-O2", "-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-exceptions",
    "-fno-rtti", "-fno-threadsafe-statics", "-w",
)  # fmt: skip
# A program brings its own C++ library, which may be newer than the one here: this one needs none.
_LINKED = ("-nodefaultlibs", "-Wl,-z,defs", "-ldl", "-lpthread", "-lc", "-lgcc")
_COMPILERS = ("c++", "g++", "clang++")
_SECONDS = 180
_MARK = b"SWAP0001"
_MOST_FILES = 10_000


@dataclass(frozen=True)
class SwapCounts:
    """Of all processes of a program. `launches`: of any kernel; `ours`: of the one that is swapped."""

    processes: int = 0  # that asked for CUDA's driver
    launches: int = 0
    ours: int = 0
    swapped: int = 0
    recorded: int = 0  # of these, into a graph: it may be launched any number of times
    unverified: int = 0  # the original ran: sizes, values, memory or device are not as they were verified
    parameters: int = 0  # of the same name, with other parameters
    attributes: int = 0  # launched with an attribute that a tuned launch would not have
    refused: int = 0  # the driver did not load or launch the tuned kernel
    nodes: int = 0  # that the program put into a graph itself
    untold: int = 0  # of kernels whose names the driver, older than CUDA 12.4, does not tell

    @property
    def left(self) -> int:
        """Launches of the kernel that the original served."""
        return self.ours - self.swapped


def build_library(text: str, folder: Path) -> Path:
    """The library's path; a sentence where it cannot be built."""
    if not sys.platform.startswith("linux"):
        raise DeviceMissing("launches are swapped on Linux alone", hint="run it where the GPU is")
    compiler = _compiler()
    source, target = folder / "swap.cpp", folder / LIBRARY
    source.write_text(text, encoding="utf-8")
    command = [*compiler, *_FLAGS, "-o", str(target), str(source), *_LINKED]
    # Libraries for other purposes, which the environment names, are not those that it needs.
    clean = {name: value for name, value in passed_on(COMPILERS).items() if name != "LIBRARY_PATH"}
    try:
        ended = subprocess.run(
            command, env=clean, capture_output=True, text=True, errors="replace", timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadInput(f"{compiler[0]} does not build the library that swaps launches: {error}") from error
    if ended.returncode != 0 or not target.is_file():
        fault = f"{compiler[0]} does not build the library that swaps launches: {first_line(ended.stderr)}"
        raise BadInput(fault, hint="name another compiler in the variable CXX", where=str(source))
    return target


def _compiler() -> Sequence[str]:
    named = os.environ.get("CXX", "")
    if named and (found := shutil.which(named)):
        return (found,)
    for name in _COMPILERS:
        if found := shutil.which(name):
            return (found,)
    fault = "no C++ compiler is here, and the library that swaps launches is built by one"
    raise BadInput(fault, hint="install g++ or clang")


def swapping(library: Path, counts: Path) -> dict[str, str]:
    """Variables for a program whose launches are swapped. It may have libraries of its own to load first."""
    others = os.environ.get(PRELOAD, "")
    return {PRELOAD: f"{library}:{others}" if others else str(library), FOLDER_VARIABLE: str(counts)}


def counts_in(folder: Path) -> SwapCounts:
    """What the processes of a program counted; files that are not whole are of processes that just began."""
    names = [field.name for field in fields(SwapCounts)][1:]
    form = struct.Struct(f"<8sQ{len(names)}Q")
    sums = [0] * len(names)
    processes = 0
    for path in sorted(folder.glob("*.counts"))[:_MOST_FILES]:
        data = path.read_bytes()
        if len(data) < form.size or not data.startswith(_MARK):
            continue
        processes += 1
        sums = [a + b for a, b in zip(sums, form.unpack_from(data)[2:], strict=True)]
    return SwapCounts(processes, *sums)
