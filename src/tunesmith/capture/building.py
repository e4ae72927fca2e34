"""The library that watches from inside a process, built by the host's compiler into the capture's folder."""

from __future__ import annotations

import glob
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tunesmith.errors import BadInput, DeviceMissing
from tunesmith.run.config import COMPILERS, passed_on
from tunesmith.text import first_line

LIBRARY = "watch.so"
_SOURCES = Path(__file__).parent / "native"
_FLAGS = ("-O2", "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,defs")
_COMPILERS = ("cc", "gcc", "clang", "g++")
_SECONDS = 120


def build(folder: Path) -> Path:
    """The library's path; a sentence where it cannot be built."""
    if not sys.platform.startswith("linux"):
        raise DeviceMissing("programs are captured on Linux alone", hint="run it where the GPU is")
    compiler = _compiler()
    target = folder / LIBRARY
    command = [*compiler, *_FLAGS, "-o", str(target), str(_SOURCES / "watch.c"), "-ldl", "-lpthread"]
    # Libraries for other purposes, which the environment names, are not those that it needs.
    clean = {name: value for name, value in passed_on(COMPILERS).items() if name != "LIBRARY_PATH"}
    try:
        ended = subprocess.run(
            command, env=clean, capture_output=True, text=True, errors="replace", timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadInput(f"{compiler[0]} does not build the library that watches: {error}") from error
    if ended.returncode != 0 or not target.is_file():
        fault = f"{compiler[0]} does not build the library that watches: {first_line(ended.stderr)}"
        raise BadInput(fault, hint="name another compiler in the variable CC")
    return target


def _compiler() -> Sequence[str]:
    named = os.environ.get("CC", "")
    if named and (found := shutil.which(named)):
        return (found,)
    for name in _COMPILERS:
        if found := shutil.which(name):
            return (found, "-x", "c") if name == "g++" else (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-P", "-m", "ziglang", "cc")
    fault = "no C compiler is here, and the library that watches is built by one"
    raise BadInput(fault, hint="install gcc or clang, or: pip install ziglang")


def cupti_paths(program: str) -> list[str]:
    """Where CUPTI may lie: with the program's own Python, with ours, in a toolkit."""
    return list(dict.fromkeys(path for folder in _folders(program) for path in _libraries(folder)))


def _libraries(folder: Path) -> list[str]:
    return sorted(glob.glob(f"{glob.escape(str(folder))}/libcupti.so.*[0-9]"), key=_version, reverse=True)


def _version(path: str) -> tuple[int, ...]:
    numbers = path.rpartition(".so.")[2].split(".")
    return tuple(int(part) if part.isdigit() else 0 for part in numbers)


def _folders(program: str) -> Iterator[Path]:
    found = shutil.which(program)
    roots = [Path(path) for path in sys.path if path.endswith("-packages")]
    if found is not None:
        beside = Path(found).parent.parent / "lib"
        roots = [*beside.glob("python3*/site-packages"), *beside.glob("python3*/dist-packages"), *roots]
    roots += [Path(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    for root in roots:
        yield from (root / "nvidia" / name / "lib" for name in ("cu13", "cuda_cupti"))
    kits = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    kits += sorted(glob.glob("/usr/local/cuda-*"), reverse=True)
    for kit in dict.fromkeys(kits):
        if kit:
            yield Path(kit) / "extras" / "CUPTI" / "lib64"
            yield from (Path(kit) / name for name in ("lib64", "lib", "targets/x86_64-linux/lib"))
    yield from (Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib/aarch64-linux-gnu"), Path("/usr/lib64"))
