"""Machine code as text: the disassembler that is here, run on a cubin under a deadline."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tunesmith.backends.cuda import toolkit
from tunesmith.backends.cuda.entries import unpack
from tunesmith.backends.cuda.sass import read_sass
from tunesmith.problem.codec import Malformed
from tunesmith.profiles.facts import Instructions

SECONDS = 20.0  # most kernels take one
MOST_TEXT = 64 << 20  # bytes; the longest kernels in use have a few million
HINT = "install one with pip install 'tunesmith[cuda]'"
# The second time without the analysis that names the targets of indirect jumps: it can fail.
_OPTIONS = {"nvdisasm": (("-c",), ("-c", "-ndf")), "cuobjdump": (("-sass",),)}
# Where a kernel's code begins, in the words of each tool; up to the next such line it is that kernel's.
_STARTS = re.compile(r"^\s*(?:\.section\s+\.text\.([^,\s\"]+)|Function : (\S+))", re.MULTILINE)
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Disassembly:
    """The text of each kernel's code by its symbol; or none, and why."""

    kernels: dict[str, str]
    fault: str = ""


def disassemble(cubin: bytes, tool: str | None = None, seconds: float = SECONDS) -> Disassembly:
    """`tool` is the path of nvdisasm or cuobjdump; None: the one that is here. The cubin is taken for
    hostile: the tool gets it in a folder of its own, without a shell, for so many seconds, and no more than
    so much of what it prints is read."""
    program = tool or find_disassembler()
    if program is None:
        return Disassembly({}, f"there is no disassembler here: {HINT}")
    found = Disassembly({}, "no options")
    for options in _OPTIONS.get(Path(program).name, _OPTIONS["nvdisasm"]):
        found = _run(program, options, cubin, seconds)
        if found.kernels:
            break
    return found


def split_kernels(text: str) -> dict[str, str]:
    """The part of each kernel, or of each function that has a section of its own."""
    found = list(_STARTS.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {m[1] or m[2]: text[m.end() : end] for m, end in zip(found, ends, strict=True)}


def find_disassembler() -> str | None:
    """NVIDIA's wheel first, since it is as new as the compiler beside it; then PATH and the toolkits."""
    wheels = [folder / "nvdisasm" for folder in toolkit.in_wheels("bin")]
    return toolkit.find_program("nvdisasm", first=wheels) or toolkit.find_program("cuobjdump")


def _run(program: str, options: tuple[str, ...], cubin: bytes, seconds: float) -> Disassembly:
    name = Path(program).name
    with tempfile.TemporaryDirectory(prefix="tunesmith-disassembly-") as folder:
        (Path(folder) / "code.cubin").write_bytes(cubin)
        try:
            process = subprocess.Popen(
                [program, *options, "code.cubin"],
                cwd=folder,
                env={k: os.environ[k] for k in _ENVIRONMENT if k in os.environ},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            return Disassembly({}, f"{name} does not start: {error.strerror}")
        text, expired = _read(process, seconds)
    if expired:
        return Disassembly({}, f"{name} took more than {seconds:g} s")
    if len(text) > MOST_TEXT:
        return Disassembly({}, f"{name} prints more than {MOST_TEXT} bytes")
    if process.returncode != 0:
        return Disassembly({}, f"{name} ends with exit status {process.returncode}")
    kernels = split_kernels(text.decode(errors="replace"))
    return Disassembly(kernels, "" if kernels else f"{name} finds no code")


def _read(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bool]:
    """What it prints, a byte more than it may at most, and whether its time ran out. It has ended then."""
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        process.kill()

    timer = threading.Timer(seconds, stop)
    timer.start()
    with process:
        assert process.stdout is not None
        text = process.stdout.read(MOST_TEXT + 1)
        if len(text) > MOST_TEXT:
            process.kill()
        process.wait()
    timer.cancel()
    return text, expired.is_set()


_disassemble_once = lru_cache(maxsize=8)(lambda cubin: disassemble(cubin))


def instructions_of(binary: bytes, entry: str) -> tuple[Instructions | None, str]:
    try:
        symbols, cubin = unpack(binary)
    except Malformed as error:
        return None, error.message
    found = _disassemble_once(cubin)
    if found.fault:
        return None, found.fault
    text = found.kernels.get(symbols.get(entry, ""))
    read = read_sass(text) if text else None
    return (read, "") if read is not None else (None, f"the disassembly has no code of {entry}")
