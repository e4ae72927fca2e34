"""A program run with the library inside that watches it. Its output is its own."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict, Unpack

from tunesmith.capture import building
from tunesmith.capture.collecting import collect, counters_in, folders_made, traces_in
from tunesmith.capture.folder import read_capture
from tunesmith.capture.records import CAPTURE, RAW, Capture, CapturedProgram
from tunesmith.capture.trace import RawTrace
from tunesmith.errors import BadInput, DeviceMissing
from tunesmith.run.files import explained, remove_tree
from tunesmith.text import counted, one_line, redacted

INJECTION = "CUDA_INJECTION64_PATH"
CAPTURES = "tunesmith-captures"  # where captures go unless somebody says otherwise
_POLL = 0.5  # seconds
_PATIENCE = 10.0  # seconds a program has to end when it is asked to
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class CaptureWish:
    """What is looked at, and how much of it."""

    keep: tuple[str, ...] = ()  # kernels whose memory is kept around launches
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


def wish_of(**wish: Unpack[WishedCapture]) -> CaptureWish:
    usual = CaptureWish()
    return CaptureWish(
        tuple(wish.get("keep", ())),
        wish.get("keep_launches", usual.keep_launches),
        wish.get("keep_bytes", usual.keep_bytes),
        wish.get("launches", usual.launches),
        wish.get("shapes", usual.shapes),
        wish.get("exact", usual.exact),
    )


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
    with explained("make the capture's folder", out):
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


def watch(
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
        library = building.build(folder)
        told = settings_for(folder, wish, building.cupti_paths(command[0]))
        started = datetime.now(UTC).isoformat(timespec="seconds")
        begun = time.monotonic()
        code = _run(command, {**os.environ, **told, INJECTION: str(library)}, folder, note)
        seconds = time.monotonic() - begun
        words = tuple(one_line(redacted(word), 2000) for word in command)
        program = CapturedProgram(words, started, seconds, code)
        traces, notes = traces_in(folder)
        check_seen(traces, f"the program ended with {code_text(code)}, and")
        note("putting together what was seen")
        return CapturedRun(
            folder, collect(folder, program, traces, [*notes, *_ending(code), *_exactness(wish)])
        )
    finally:
        (folder / building.LIBRARY).unlink(missing_ok=True)
        if not (folder / CAPTURE).exists() and not any((folder / RAW).iterdir()):
            remove_tree(folder)


def load(folder: Path | None) -> CapturedRun:
    """A capture that is there, by default the newest here. Where nobody was left to put it together, that is
    done now."""
    chosen = folder if folder is not None else _newest()
    if not (chosen / CAPTURE).is_file() and (traces := traces_in(chosen))[0]:
        check_seen(traces[0], "this capture broke off, and the program")
        program = CapturedProgram((), "", 0.0, None)
        broken = "the capture broke off: of the program no more is known than its traces tell"
        return CapturedRun(chosen, collect(chosen, program, traces[0], [*traces[1], broken]))
    return CapturedRun(chosen, read_capture(chosen))


def _newest() -> Path:
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


def _ending(code: int | None) -> list[str]:
    return [f"the program ended with {code_text(code)}"] if code else []


def _exactness(wish: CaptureWish) -> list[str]:
    if not wish.exact:
        return []
    return [
        "PyTorch ran without its caching allocator: extents are those of tensors, host times are not usual"
    ]


def _run(
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
            note(f"{shown}: {counted(launches, 'launch', 'launches')} so far")
            if asked and time.monotonic() - asked > _PATIENCE:
                process.kill()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGKILL if asked else signal.SIGTERM)
            asked = time.monotonic()
