"""A program run with the library inside that watches it. Its output is its own."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TypedDict, Unpack

from tunesmith.backends import port
from tunesmith.base.errors import BadInput, DeviceMissing, TunesmithError
from tunesmith.base.files import explain_disk_errors, remove_tree
from tunesmith.base.text import first_line, format_count, one_line, redact_secrets
from tunesmith.plugins.repo.capture.ranking import RankedKernel, rank_kernels
from tunesmith.plugins.repo.capture.records import CAPTURE, RAW, Capture, CapturedProgram, read_capture
from tunesmith.plugins.repo.capture.trace import (
    RawTrace,
    collect_capture,
    counters_in,
    folders_made,
    traces_in,
)
from tunesmith.run.config import COMPILERS, passed_on

LIBRARY = "watch.so"
_SOURCES = Path(__file__).parent / "native"
_FLAGS = ("-O2", "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,defs")
_COMPILERS = ("cc", "gcc", "clang", "g++")
_BUILD_SECONDS = 180


def build_watcher(folder: Path) -> Path:
    """The library's path; a sentence where it cannot be built."""
    if not sys.platform.startswith("linux"):
        raise DeviceMissing("programs are captured on Linux alone", hint="run it where the GPU is")
    target = folder / LIBRARY
    source = str(_SOURCES / "watch.c")
    command = [*_find_c_compiler(), *_FLAGS, "-o", str(target), source, "-ldl", "-lpthread"]
    compile_library(command, target, "watches", "CC")
    return target


def compile_library(command: Sequence[str], target: Path, does: str, variable: str) -> None:
    """By a compiler of the host's; a sentence where it cannot be built. `does`: what it is for."""
    # Libraries for other purposes, which the environment names, are not those that it needs.
    clean = {name: value for name, value in passed_on(COMPILERS).items() if name != "LIBRARY_PATH"}
    fault = f"{command[0]} does not build the library that {does}"
    try:
        ended = subprocess.run(
            command, env=clean, capture_output=True, text=True, errors="replace", timeout=_BUILD_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadInput(f"{fault}: {error}") from error
    if ended.returncode != 0 or not target.is_file():
        hint = f"name another compiler in the variable {variable}"
        raise BadInput(f"{fault}: {first_line(ended.stderr)}", hint=hint)


def find_compiler(variable: str, names: Sequence[str]) -> str | None:
    """The one that the variable names, else the first that is here."""
    named = filter(None, (os.environ.get(variable), *names))
    return next(filter(None, map(shutil.which, named)), None)


def _find_c_compiler() -> Sequence[str]:
    if (found := find_compiler("CC", _COMPILERS)) is not None:
        return (found, "-x", "c") if Path(found).name == "g++" else (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-P", "-m", "ziglang", "cc")
    fault = "no C compiler is here, and the library that watches is built by one"
    raise BadInput(fault, hint="install gcc or clang, or: pip install ziglang")


def cupti_paths(program: str) -> list[str]:
    """Where CUPTI may lie: with the program's own Python, with ours, in a toolkit."""
    patterns = (f"{glob.escape(str(folder))}/libcupti.so.*[0-9]" for folder in _cupti_folders(program))
    found = (sorted(glob.glob(one), key=_library_version, reverse=True) for one in patterns)
    return list(dict.fromkeys(chain.from_iterable(found)))


def _library_version(path: str) -> tuple[int, ...]:
    numbers = path.rpartition(".so.")[2].split(".")
    return tuple(int(part) if part.isdigit() else 0 for part in numbers)


def _cupti_folders(program: str) -> Iterator[Path]:
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


EXACT = "PyTorch ran without its caching allocator: extents are those of tensors, host times are not usual"
INJECTION = "CUDA_INJECTION64_PATH"
CAPTURES = "tunesmith-captures"  # where captures go unless somebody says otherwise
_POLL = 0.5  # seconds
_PATIENCE = 10.0  # seconds a program has to end when it is asked to
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class CaptureWish:
    """What is looked at, and how much of it."""

    keep: Sequence[str] = ()  # kernels whose memory is kept around launches
    keep_launches: int = 8  # different ones, of all of these
    keep_bytes: int = 1 << 30
    launches: int = 1_000_000  # whose arguments are looked at, in a process
    shapes: int = 64  # launches of a kernel that are told apart
    exact: bool = False  # PyTorch without its caching allocator


class WishedCapture(TypedDict, total=False):
    """The same, as the Python interface takes it."""

    keep: Sequence[str]
    keep_launches: int
    keep_bytes: int
    launches: int
    shapes: int
    exact: bool


@dataclass(frozen=True)
class CapturedRun:
    folder: Path
    capture: Capture


def new_folder(out: Path | None, command: Sequence[str]) -> Path:
    """An empty one: what is there is not touched."""
    if out is None:
        name = next((Path(word).stem for word in command if word.endswith(".py")), "")
        name = name or (Path(command[0]).name if command else "python")
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        stem = "".join(_NAME.findall(name))[:60].lstrip(".-") or "program"
        out = Path(CAPTURES) / f"{stem}-{stamp}"
    with explain_disk_errors("make the capture's folder", out):
        if out.exists() and any(out.iterdir()):
            fault = "something is there, and a capture takes a folder of its own"
            raise BadInput(fault, where=str(out), hint="choose another folder with --out")
        folders_made(out)
    return out.resolve()


def settings_for(folder: Path, wish: CaptureWish, cupti: Sequence[str]) -> dict[str, str]:
    """Variables that tell the library what to do."""
    told = {
        "TUNESMITH_WATCH_FOLDER": str(folder / RAW),
        "TUNESMITH_WATCH_CUPTI": ":".join(path for path in cupti if ":" not in path),
        "TUNESMITH_WATCH_CLASSES": str(wish.shapes),
        "TUNESMITH_WATCH_LAUNCHES": str(wish.launches),
        "TUNESMITH_WATCH_KEEP": "\n".join(kept_name(name) for name in wish.keep),
        "TUNESMITH_WATCH_KEEP_BYTES": str(wish.keep_bytes),
        "TUNESMITH_WATCH_KEEP_LAUNCHES": str(wish.keep_launches),
    }
    return told | ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"} if wish.exact else {})


def kept_name(name: str) -> str:
    """What of a kernel's name is in the mangled one too: `ns::scale<float>(…)` is known by `scale`."""
    plain = re.split(r"[<(]", name.strip().removeprefix("void "))[0]
    last = plain.rpartition("::")[2].strip()
    if not re.fullmatch(r"[A-Za-z_]\w*", last):
        raise BadInput(f"not a kernel's name: {name!r}", hint="name it as the capture lists it")
    return last


def watch_program(
    command: Sequence[str],
    wish: CaptureWish,
    out: Path | None = None,
    note: Callable[[str], None] = lambda _text: None,
) -> CapturedRun:
    """Run it to its end, and put together what it did. `note` is told how far it has come."""
    if not command:
        fault = "there is no program to run"
        raise BadInput(fault, hint="name it after two dashes: tunesmith capture -- python bench.py")
    if other := os.environ.get(INJECTION):
        fault = f"{INJECTION} is set already: {other} watches programs here"
        raise BadInput(fault, hint=f"unset {INJECTION}")
    folder = new_folder(out, command)
    try:
        library = build_watcher(folder)
        told = settings_for(folder, wish, cupti_paths(command[0]))
        started = datetime.now(UTC).isoformat(timespec="seconds")
        begun = time.monotonic()
        code = _run_watched(command, {**os.environ, **told, INJECTION: str(library)}, folder, note)
        seconds = time.monotonic() - begun
        words = tuple(one_line(redact_secrets(word), 2000) for word in command)
        program = CapturedProgram(words, started, seconds, code)
        traces, notes = traces_in(folder)
        check_seen(traces, f"the program ended with {code_text(code)}, and")
        notes += [f"the program ended with {code_text(code)}"] if code else []
        notes += [EXACT] if wish.exact else []
        note("putting together what was seen")
        return CapturedRun(folder, collect_capture(folder, program, traces, notes))
    finally:
        (folder / LIBRARY).unlink(missing_ok=True)
        if not (folder / CAPTURE).exists() and not any((folder / RAW).iterdir()):
            remove_tree(folder)


def load_captured_run(folder: Path | None) -> CapturedRun:
    """A capture that is there, by default the newest here. Where nobody was left to put it together, that is
    done now."""
    chosen = folder if folder is not None else _newest_capture()
    if not (chosen / CAPTURE).is_file() and (traces := traces_in(chosen))[0]:
        check_seen(traces[0], "this capture broke off, and the program")
        program = CapturedProgram((), "", 0.0, None)
        broken = "the capture broke off: of the program no more is known than its traces tell"
        return CapturedRun(chosen, collect_capture(chosen, program, traces[0], [*traces[1], broken]))
    return CapturedRun(chosen, read_capture(chosen))


def _newest_capture() -> Path:
    found = [path.parent for path in Path(CAPTURES).glob(f"*/{CAPTURE}")]
    if not found:
        fault = f"there is no capture in {CAPTURES} yet"
        raise BadInput(fault, hint="make one: tunesmith capture -- PROGRAM")
    return max(found, key=lambda path: (path / CAPTURE).stat().st_mtime_ns)


def code_text(code: int | None) -> str:
    if code is None:
        return "no exit code"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def check_seen(traces: Sequence[RawTrace], after: str) -> None:
    """A sentence where nothing was seen, and why."""
    if not traces:
        fault = f"{after} launched nothing on a GPU: no process of it initialised CUDA's driver"
        hint = "does it run on the CPU, or is there no NVIDIA driver? see: tunesmith doctor"
        raise DeviceMissing(fault, hint=hint)
    if any(trace.classes for trace in traces):
        return
    said = [one_line(note) for trace in traces for note in trace.notes]
    if any("libcupti" in note for note in said):
        hint = "pip install nvidia-cuda-cupti (of the driver's CUDA version), or install the CUDA toolkit"
        raise DeviceMissing("CUPTI, through which launches are seen, is not here", hint=hint)
    if said:
        raise DeviceMissing(f"{after} nothing could be watched: {said[0]}", hint="see docs/capture.md")
    raise DeviceMissing(f"{after} used CUDA, but launched no kernel", hint="does it do its work there?")


def _run_watched(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, note: Callable[[str], None]
) -> int:
    """Its exit code. Ctrl-C reaches the program too, and what it did until then is put together."""
    shown = one_line(shlex.join(command), 60)
    try:
        process = subprocess.Popen(command, env=dict(environment))
    except OSError as error:
        fault = f"cannot run {command[0]}: {error.strerror or error}"
        raise BadInput(fault, hint="name a program, as a shell would find it") from error
    asked = 0.0
    while True:
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_POLL)
            launches = sum(counters.launches for counters in counters_in(folder))
            note(f"{shown}: {format_count(launches, 'launch', 'launches')} so far")
            if asked and time.monotonic() - asked > _PATIENCE:
                process.kill()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGKILL if asked else signal.SIGTERM)
            asked = time.monotonic()


# -- The launches of this very process, seen from inside: `with tunesmith.capture() as seen:`.


BEFORE = (
    "seen from inside: of modules that were loaded before, the images are not known; to have them, run the "
    "program with: tunesmith capture -- PROGRAM"
)


class SeenLaunches:
    """A context: what this process launches inside it. Afterwards `capture` has what was seen."""

    def __init__(self, wish: CaptureWish, out: Path | None = None) -> None:
        self._wish, self._out = wish, out
        self._capture: Capture | None = None
        self._library: ctypes.CDLL | None = None
        self.folder = Path()

    @property
    def capture(self) -> Capture:
        if self._capture is None:
            raise BadInput("nothing is known before the block ends", hint="ask after the `with` block")
        return self._capture

    def ranking(self) -> list[RankedKernel]:
        """What could be tuned, and what that would give."""
        return rank_kernels(self.capture)

    def __enter__(self) -> SeenLaunches:
        if self._library is not None:
            raise BadInput("this capture has begun already", hint="make another: tunesmith.capture()")
        self.folder = new_folder(self._out, ())
        path = build_watcher(self.folder)
        told = settings_for(self.folder, self._wish, cupti_paths(sys.executable))
        before = {name: os.environ.get(name) for name in told}
        os.environ.update(told)
        try:
            self._library = ctypes.CDLL(str(path))
            self._started, self._begun = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
            self._watches = bool(self._library.tunesmith_watch_start())
        finally:
            for name in told:
                os.environ.pop(name, None)
            os.environ.update({name: value for name, value in before.items() if value is not None})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What was seen is written also where the block failed; its own error goes on."""
        assert self._library is not None
        self._library.tunesmith_watch_stop()
        program = CapturedProgram((), self._started, time.monotonic() - self._begun, None)
        traces, notes = traces_in(self.folder)
        try:
            check_seen(traces, "this block")
            self._capture = collect_capture(self.folder, program, traces, [*notes, BEFORE])
        except Exception:
            if error is None:
                raise
        finally:
            (self.folder / LIBRARY).unlink(missing_ok=True)


def seen_launches(
    *, out: str | os.PathLike[str] | None = None, **wish: Unpack[WishedCapture]
) -> SeenLaunches:
    """What this process launches while the context lasts; `out` is the folder."""
    return SeenLaunches(CaptureWish(**wish), Path(out) if out is not None else None)


# -- Whether programs can be captured here: a compiler, the driver, CUPTI, and the library inside a process.


WHAT = "capturing programs"
_EXAMINE_SECONDS = 60
_NO_DRIVER = 3
# The driver loads the library that watches when it is initialised: no kernel is needed for that.
_PROGRAM = f"""
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit({_NO_DRIVER})
sys.exit(0 if cuda.cuInit(0) == 0 else {_NO_DRIVER})
"""


def examine_capture() -> port.DoctorFinding:
    """A tiny program is watched, in a folder that goes again."""
    with tempfile.TemporaryDirectory(prefix="tunesmith-capture-") as scratch:
        folder = Path(scratch)
        folders_made(folder)
        try:
            library = build_watcher(folder)
        except TunesmithError as error:
            return port.DoctorFinding(WHAT, False, error.message, error.hint or "")
        return _probe_capture(folder, library)


def _probe_capture(folder: Path, library: Path) -> port.DoctorFinding:
    if other := os.environ.get(INJECTION):
        return port.DoctorFinding(WHAT, False, f"{INJECTION} is set: {other} watches programs here already")
    told = settings_for(folder, CaptureWish(), cupti_paths(sys.executable))
    environment = {**os.environ, **told, INJECTION: str(library)}
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-c", _PROGRAM],
            env=environment,
            capture_output=True,
            timeout=_EXAMINE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return port.DoctorFinding(WHAT, False, f"a watched program does not end well: {one_line(str(error))}")
    if ended.returncode == _NO_DRIVER:
        return port.DoctorFinding(WHAT, False, "a C compiler is here, an NVIDIA driver with a device is not")
    traces, _ = traces_in(folder)
    if not traces:
        return port.DoctorFinding(WHAT, False, f"the driver does not load the library that {INJECTION} names")
    said = [one_line(note) for trace in traces for note in trace.notes]
    if any("libcupti" in note for note in said):
        fix = "pip install nvidia-cuda-cupti (of the driver's CUDA version)"
        return port.DoctorFinding(WHAT, False, "driver and compiler are here, CUPTI is not", fix)
    if said:
        return port.DoctorFinding(WHAT, False, said[0])
    return port.DoctorFinding(WHAT, True, "compiler, driver and CUPTI are here, and a program was watched")
