"""From what processes left in a capture's folder to `capture.json` and the files it names."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tunesmith.backends.cuda.cubin import Cubin
from tunesmith.capture.assemble import FoundCode, FoundImage, StoredFiles, assemble
from tunesmith.capture.demangle import demangled
from tunesmith.capture.folder import read_sized, write_capture
from tunesmith.capture.records import ARRAYS, IMAGES, RAW, Capture, CapturedProgram, ModuleImage
from tunesmith.capture.trace import RawTrace, TraceCounters, read_counters, read_trace
from tunesmith.problem.codec import Malformed
from tunesmith.run.files import NotPlain, explained, open_plain, read_plain

_FILE = re.compile(r"(?P<trace>\d+(?:-\d+)?)-(?P<what>image|kept)-(?P<number>\d+)\.bin")
_MOST_SOURCES = 16
_COUNTERS = 256  # bytes, more than a trace's header has
# Headers that every module includes.
_OF_CUDA = re.compile(r"(?:^|/)(?:cuda|crt|cooperative_groups|sm_\d|device_|vector_|texture|surface|math_)")


def counters_in(folder: Path) -> list[TraceCounters]:
    """How far the processes have come."""
    found = []
    for path in sorted((folder / RAW).glob("*.trace")):
        try:
            counters = read_counters(read_plain(path, _COUNTERS))
        except OSError:
            continue  # a process is only making it
        if counters is not None:
            found.append(counters)
    return found


def traces_in(folder: Path) -> tuple[list[RawTrace], list[str]]:
    """With notes on those that are none."""
    traces, notes = [], []
    for path in sorted((folder / RAW).glob("*.trace")):
        try:
            found = read_trace(path.stem, read_sized(path))
        except NotPlain as error:
            found = None
            notes.append(f"{path.name} is left out: {error.strerror}")
        if found is not None:
            traces.append(found)
        else:
            notes.append(f"{path.name} is no trace, and left out")
    return traces, notes


def collect(
    folder: Path, program: CapturedProgram, traces: Sequence[RawTrace], notes: Sequence[str] = ()
) -> Capture:
    """Everything put together and written; files in `raw` that are used get their places, others go."""
    names = {function.name for trace in traces for function in trace.functions if function.name}
    with explained("put the capture together", folder):
        files = _stored(folder, names)
        capture = assemble(program, traces, files, demangled, notes)
    write_capture(folder, capture)
    return capture


def _stored(folder: Path, names: Iterable[bytes]) -> StoredFiles:
    images: dict[tuple[str, int], FoundImage] = {}
    arrays: dict[tuple[str, int], str] = {}
    wanted = frozenset(names)
    for path in sorted((folder / RAW).glob("*.bin")):
        named = _FILE.fullmatch(path.name)
        if named is None:
            continue
        key = named["trace"], int(named["number"])
        try:
            digest = _digest(path)
            if named["what"] == "kept":
                arrays[key] = digest
                _moved(path, folder / ARRAYS / f"{digest}.bin")
            elif (found := found_image(read_sized(path), digest, wanted)) is not None:
                images[key] = found
                _moved(path, folder / found.image.file)
            else:
                path.unlink()
        except NotPlain:
            continue
    return StoredFiles(images, arrays)


def _digest(path: Path) -> str:
    """Of a file that may be larger than memory."""
    with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _moved(path: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    path.replace(target)


def found_image(data: bytes, digest: str, names: Iterable[bytes]) -> FoundImage | None:
    """None where none of these kernels is in it."""
    inside = [name for name in names if name in data]
    if not inside:
        return None
    if not data.startswith(b"\x7fELF"):
        text = data.lstrip()[:400]
        kind = "ptx" if text.startswith((b"//", b".version")) else "bin"
        return FoundImage(ModuleImage(digest, kind, len(data)))
    try:
        cubin = Cubin(data)
    except Malformed:
        return FoundImage(ModuleImage(digest, "bin", len(data)))
    kernels = {
        symbol: FoundCode(cubin.kernel_digest(symbol), cubin.kernels[symbol].parameters)
        for symbol in (name.decode(errors="replace") for name in inside)
        if symbol in cubin.kernels
    }
    if not kernels:
        return None
    return FoundImage(ModuleImage(digest, "cubin", len(data)), kernels, sources_of(cubin))


def sources_of(cubin: Cubin) -> tuple[str, ...]:
    """Files that its line tables name, without CUDA's own headers."""
    own = [name for name in cubin.source_names() if not _OF_CUDA.search(name)]
    return tuple(sorted(own, key=lambda name: not name.endswith((".cu", ".py")))[:_MOST_SOURCES])


def folders_made(folder: Path) -> None:
    for name in (RAW, IMAGES, ARRAYS):
        (folder / name).mkdir(parents=True, exist_ok=True)
