"""Commands of the user's, run in the repository with a deadline; what they print goes to a file."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, TypedDict

from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.base.text import one_line
from tunesmith.plugins.repo.apply.gain import BenchMetric, BenchSeries, ForetoldGain, foretold_gain
from tunesmith.plugins.repo.capture.capture import code_text, compile_library, find_compiler
from tunesmith.plugins.repo.capture.records import read_capture
from tunesmith.session.result import Run

_POLL = 0.5  # seconds
_PATIENCE = 5.0  # seconds a command has to end when it is asked to
_TAIL = 4000  # bytes that are looked at for people
MAX_OUTPUT = 64 << 20


@dataclass(frozen=True)
class CommandEnd:
    command: str
    code: int | None  # None: it ran past its deadline
    seconds: float
    log: Path

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def output(self) -> str:
        with open(self.log, "rb") as file:
            return file.read(MAX_OUTPUT).decode(errors="replace")

    @property
    def fault(self) -> str:
        """How it ended, with its last line."""
        lines = [line for line in _read_log_tail(self.log).splitlines() if line.strip()]
        last = f": {one_line(lines[-1], 200)}" if lines else ""
        if self.code is None:
            return f"ran past its deadline of {self.seconds:.0f} s{last}"
        return f"ended with {code_text(self.code)}{last}"


def run_command(
    command: str,
    folder: Path,
    log: Path,
    timeout: float,
    note: Callable[[str], None],
    environment: Mapping[str, str] | None = None,
) -> CommandEnd:
    """By a shell, in a session of its own: nothing of it is left when this returns."""
    with open(log, "wb") as out:
        begun = time.perf_counter()
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        ended: list[float] = []

        def wait() -> None:  # without polling, which would count its own steps
            process.wait()
            ended.append(time.perf_counter())

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        try:
            while waiting.is_alive() and time.perf_counter() - begun < timeout:
                waiting.join(min(_POLL, max(0.0, timeout - (time.perf_counter() - begun))))
                note(f"{one_line(command, 60)}: {time.perf_counter() - begun:.0f} s")
            is_late = waiting.is_alive()
        finally:
            _end_process_group(process.pid, waiting)
        seconds = (ended[0] if ended else time.perf_counter()) - begun
        return CommandEnd(command, None if is_late else process.returncode, seconds, log)


def _end_process_group(group: int, waiting: threading.Thread) -> None:
    """Whatever of it still runs, also what it left behind."""
    for kind, patience in ((signal.SIGTERM, _PATIENCE if waiting.is_alive() else 0.0), (signal.SIGKILL, 1.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, kind)
        waiting.join(patience)


def _read_log_tail(log: Path) -> str:
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


# -- The library that swaps launches, built by the host's compiler for LD_PRELOAD, and what it counted.


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
_MARK = b"SWAP0001"
_MAX_FILES = 10_000


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
    if (compiler := find_compiler("CXX", _COMPILERS)) is None:
        fault = "no C++ compiler is here, and the library that swaps launches is built by one"
        raise BadInput(fault, hint="install g++ or clang")
    source, target = folder / "swap.cpp", folder / LIBRARY
    source.write_text(text, encoding="utf-8")
    command = [compiler, *_FLAGS, "-o", str(target), str(source), *_LINKED]
    compile_library(command, target, "swaps launches", "CXX")
    return target


def swap_environment(library: Path, counts: Path) -> dict[str, str]:
    """Variables for a program whose launches are swapped. It may have libraries of its own to load first."""
    others = os.environ.get(PRELOAD, "")
    return {PRELOAD: f"{library}:{others}" if others else str(library), FOLDER_VARIABLE: str(counts)}


def counts_in(folder: Path) -> SwapCounts:
    """What the processes of a program counted; files that are not whole are of processes that just began."""
    names = [field.name for field in fields(SwapCounts)][1:]
    form = struct.Struct(f"<8sQ{len(names)}Q")
    sums = [0] * len(names)
    processes = 0
    for path in sorted(folder.glob("*.counts"))[:_MAX_FILES]:
        data = path.read_bytes()
        if len(data) < form.size or not data.startswith(_MARK):
            continue
        processes += 1
        sums = [a + b for a, b in zip(sums, form.unpack_from(data)[2:], strict=True)]
    return SwapCounts(processes, *sums)


# -- What `tunesmith apply` is asked for, and what it gives.


Ending = Literal["applied", "dry run", "rolled back", "undone", "swapped", "swap failed"]


class WishedApply(TypedDict, total=False):
    """Options, as the command and the Python interface have them."""

    repo: str | os.PathLike[str] | None
    test: str | None
    bench: str | None
    build: str | None
    metric: str | None
    higher: bool
    rounds: int
    timeout: float
    capture: str | os.PathLike[str] | None
    force: bool
    dry_run: bool
    undo: bool
    swap: Sequence[str] | None  # a program whose launches are swapped; no file is touched
    kernel: str | None  # the original's name in that program


@dataclass(frozen=True)
class Applied:
    """What became of it. `fault`: why it was rolled back, or how the program failed with swapped launches."""

    run: str
    problem: str
    repository: str
    ending: Ending
    patch: str  # the file, which is kept
    diff: str
    files: tuple[str, ...]
    launches: tuple[str, ...]  # that ask for the tuned kernel first
    delivered: int
    winners: int
    notes: tuple[str, ...] = ()
    tested: tuple[float, ...] = ()  # seconds that tests took, before and after
    bench: BenchSeries | None = None
    foretold: ForetoldGain | None = None
    fault: str = ""
    counts: SwapCounts | None = None  # of the last run with swapped launches
    still_patched: tuple[str, ...] = ()  # rolled back but for these, which others changed meanwhile
    kernel: str = ""  # whose launches are swapped
    version: int = 1


def foretold_by(
    run: Run, kernel: str, capture: Path | None, metric: BenchMetric
) -> tuple[ForetoldGain | None, list[str]]:
    """What a capture of the program foretells; where it does not, why."""
    if capture is None:
        return None, ["nothing is foretold: no capture is known, name one with --capture"]
    try:
        seen = read_capture(capture)
    except BadInput as refused:
        return None, [f"nothing is foretold: {refused}"]
    workloads = [(workload.weight, workload.figure.shown) for workload in run.result.workloads]
    found = foretold_gain(seen, kernel, workloads, whole=not metric.pattern)
    if found is None:
        return None, ["nothing is foretold: the capture has no times of this kernel"]
    return found, []
