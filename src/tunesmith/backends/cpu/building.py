"""A unit to a library for the host: the kernels, a table of them, and what runs their threads."""

from __future__ import annotations

import platform
import posixpath
import re
import struct
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from tunesmith.backends import messages, port
from tunesmith.backends.cpu import implied
from tunesmith.backends.cpu.compilers import GNU, HostCompiler, named
from tunesmith.backends.cpu.source import host_text, unknown, with_entries
from tunesmith.backends.cpu.statics import apart, shared_arrays
from tunesmith.backends.cpu.symbols import PRINTS, check_object
from tunesmith.backends.cuda import entries as cuda_entries
from tunesmith.backends.cuda.flags import read_flags
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.languages import HIP
from tunesmith.problem.template import plain_name
from tunesmith.text import digest_of

RUNTIME, WATCHER, POISON = "tunesmith_runtime.cpp", "tunesmith_watch.cpp", "tunesmith_poison.h"
# Headers of CUDA that bring nothing but what every kernel has.
_FORWARDED = (
    *("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "cuda_pipeline.h", "cuda_pipeline_primitives.h"),
    *("device_functions.h", "device_launch_parameters.h", "vector_types.h", "vector_functions.h"),
    *(
        "sm_30_intrinsics.h",
        "sm_20_intrinsics.h",
        "math_functions.h",
        "assert.h",
        "cassert",
        "driver_types.h",
    ),
)
_DEEP = (
    "own/1/2/3/4/5/6"  # so deep that a spelling may climb a few folders and still be in a place of our own
)
_COMMON = (
    *("-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-fno-exceptions", "-fsigned-char"),
    *("-fno-rtti", "-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-fno-math-errno"),
    # Some distributions check every longjmp, and abort at one to another thread's stack.
    *("-U_FORTIFY_SOURCE", "-fno-threadsafe-statics"),
)
_PLAIN = ("-O2", "-fwrapv")
# Every access by a call, whose address tells the line; nothing inlined, so that a caller's line is known too.
WATCHED = (
    *("-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-gdwarf-4", "-fsanitize=thread"),
    "-fsanitize=signed-integer-overflow,alignment,bounds,float-cast-overflow",
)
_PT_TLS = 7
_NO_HEADER = re.compile(
    r"^(\S[^:\n]*):(\d+):\d+: fatal error: (?:'([^'\n]+)' file not found|([^:\n]+): No such file)",
    re.MULTILINE,
)


def build(unit: messages.Unit, device: Device, watched: bool = False) -> port.KernelBinary:
    cuda_entries.check_entries(unit)
    compiler, own = named(device.driver), plain_name(unit.path)
    kind = compiler.told(WATCHED) if watched else _PLAIN
    flags = [*_COMMON, *compiler.fills, *kind, *_language(unit, device, watched)]
    with tempfile.TemporaryDirectory(prefix="tunesmith-cpu-") as name:
        folder = Path(name)
        _lay_out(folder, unit)
        (folder / own).write_text(with_entries(host_text(unit.source, own), unit.entries))
        # A stranger's text has no assembly left, and can paste none together.
        before = ("tunesmith_cpu.h", *((POISON,) if unit.vetted else ()))
        included = [word for name in before for word in ("-include", name)]
        places = ("-Iheaders", f"-I{_DEEP}", *included, "-x", "c++")
        made = ("-S", "-o", "kernel.s") if watched else ("-c", "-o", "kernel.o")
        try:
            compile_clamped(compiler, flags, [*places, own], made, folder)
        except port.BuildFailed as error:
            raise port.BuildFailed(_words(unit, str(error))) from None
        if watched:
            assembly = folder / "kernel.s"
            # Bytes of the kernel's data need be no text.
            assembly.write_text(apart(assembly.read_text("latin-1")), "latin-1")
            compiler.run(["-c", "-gdwarf-4", "kernel.s", "-o", "kernel.o"], folder)
        check_object((folder / "kernel.o").read_bytes(), watched, frozenset() if unit.vetted else PRINTS)
        for file, data in runtime(compiler, device.limits.warp, watched).items():
            (folder / file).write_bytes(data)
        objects = ["kernel.o", *runtime(compiler, device.limits.warp, watched)]
        stripped = () if watched else ("-s",)
        compiler.run([*objects, *compiler.links, *stripped, "-o", "kernel.so"], folder)
        data = (folder / "kernel.so").read_bytes()
    taken = sum(one.nbytes for one in shared_arrays(data)) if watched else max(0, _thread_local(data) - 1)
    resources_used = Resources(shared=taken, max_threads=device.limits.max_threads)
    return port.KernelBinary(data, digest_of(data, repr(unit.entries)), resources_used)


def compile_clamped(
    compiler: HostCompiler, flags: Sequence[str], source: Sequence[str], made: Sequence[str], folder: Path
) -> None:
    """Floats become integers as on a GPU, also where the text does not spell it. What has none of that
    is compiled once."""
    plainly = [*flags, "-w", *source, *made]
    try:
        log = compiler.run([*flags, implied.WARNING, *source, *made], folder)
    except port.BuildFailed:
        compiler.run(plainly, folder)  # its words without warnings
        return
    if implied.TOLD not in log:
        return
    file, kind = folder / "kernel.ii", ("-x", "c++", "kernel.ii")
    ranges = implied.GNU_RANGES if compiler.name == GNU else implied.CLANG_RANGES
    try:
        compiler.run([*flags, "-w", "-E", *source, "-o", file.name], folder)
        text = file.read_text("latin-1")
        file.write_text(implied.unmarked(text), "latin-1")
        log = compiler.run([*flags, implied.WARNING, *ranges, *kind, *compiler.looks], folder)
    except port.BuildFailed:  # it does not tell ranges: what is compiled already stays
        return
    told = implied.conversions(text, log)
    # In a template the type that is wanted need not be the only one that fits.
    for some in (told, [one for one in told if not one.is_generic]):
        file.write_text(implied.mended(text, some), "latin-1")
        try:
            compiler.run([*flags, "-w", *kind, *made], folder)
            return
        except port.BuildFailed:
            continue
    compiler.run(plainly, folder)


def _language(unit: messages.Unit, device: Device, watched: bool) -> list[str]:
    """The standard, and what the language's own compilers define."""
    defined = [f"-DTUNESMITH_WARP={device.limits.warp}", *(("-DTUNESMITH_WATCH=1",) if watched else ())]
    if unit.language == HIP.name:
        defined += contraction(not watched)
        own = ["-D__HIPCC__=1", "-D__HIP_PLATFORM_AMD__=1", "-D__HIP_DEVICE_COMPILE__=1"]
        standard = next((flag for flag in unit.flags if flag.startswith("-std=")), "-std=c++17")
    else:
        capability = device.limits.capability or 90
        standard = next(
            (flag for flag in read_flags(unit.flags, capability).common if flag.startswith("--std=")), ""
        )
        standard = standard.removeprefix("-") or "-std=c++17"
        # Watched, equal sums in two places are to be equal: two threads may then write them both.
        fused = not watched and "--fmad=false" not in read_flags(unit.flags, capability).common
        defined += contraction(fused)
        own = ["-D__CUDACC__=1", f"-D__CUDA_ARCH__={capability * 10}", "-D__CUDACC_VER_MAJOR__=13"]
    # Templates of entries take functions as arguments, which C++17 brought.
    standard = re.sub(r"c\+\+(?:11|14|0x|1y)$", "c++17", standard)
    return [standard, *defined, *own]


def contraction(wanted: bool) -> list[str]:
    """GPUs join a product and a sum into one rounding; here where the processor can."""
    if not wanted or not _fuses():
        return ["-ffp-contract=off"]
    return ["-ffp-contract=fast", *(("-mfma",) if platform.machine() in ("x86_64", "AMD64") else ())]


@cache
def _fuses() -> bool:
    if platform.machine() in ("x86_64", "AMD64"):
        try:
            return (
                re.search(r"^flags\s*:.*\bfma\b", Path("/proc/cpuinfo").read_text(), re.MULTILINE) is not None
            )
        except OSError:
            return False
    return platform.machine() == "aarch64"


def _lay_out(folder: Path, unit: messages.Unit) -> None:
    for name, text in headers().items():
        file = folder / "headers" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / _DEEP).mkdir(parents=True)
    for spelling, text in unit.headers:
        place = posixpath.normpath(f"{_DEEP}/{spelling}")
        if not place.startswith("own/"):
            raise port.BuildFailed(f'the header "{spelling}" lies too far from the source that includes it')
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(host_text(text, spelling))


@cache
def headers() -> dict[str, str]:
    """Name -> text, of all that kernels can include."""
    root = resources.files("tunesmith.backends.cpu").joinpath("headers")
    with resources.as_file(root) as folder:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        found = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}
    return {**dict.fromkeys(_FORWARDED, '#pragma once\n#include "tunesmith_cpu.h"\n'), **found}


@cache
def runtime(compiler: HostCompiler, warp: int, watched: bool) -> dict[str, bytes]:
    """Objects by their names, compiled once in a process."""
    sources = (RUNTIME, *((WATCHER,) if watched else ()))
    defined = [f"-DTUNESMITH_WARP={warp}", *(("-DTUNESMITH_WATCH=1",) if watched else ())]
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory(prefix="tunesmith-cpu-") as name:
        folder = Path(name)
        for source in headers():
            if source.startswith("tunesmith_"):
                (folder / source).write_text(headers()[source])
        for source in sources:
            words = ("-std=c++17", "-O2", "-w", *_COMMON, *defined, "-c", source, "-o", f"{source}.o")
            compiler.run(words, folder)
            found[f"{source}.o"] = (folder / f"{source}.o").read_bytes()
    return found


def _words(unit: messages.Unit, log: str) -> str:
    """The compiler's, or which of CUDA's headers is not here, or what is wrong with an entry's name where
    nothing else is."""
    for file, line, *names in _NO_HEADER.findall(log):
        if re.search(rf"#\s*include\s*<{re.escape(name := ''.join(names))}>", log):
            return f"{file}:{line}: {unknown(f'the header <{name}>')}"
    errors = re.findall(r"^(\S[^:\n]*):(\d+):\d+: (?:fatal )?error: (.*)$", log, re.MULTILINE)
    if errors and all(file == "the entries" for file, _, _ in errors):
        _, line, words = errors[0]
        first = next(n for n, text in enumerate(with_entries("", ()).splitlines(), -1) if "[] = {" in text)
        number = int(line) - first - 1
        entry = unit.entries[number] if 0 <= number < len(unit.entries) else ", ".join(unit.entries)
        return cuda_entries.no_such_kernel(unit, entry, words)
    return log


def _thread_local(library: bytes) -> int:
    """Bytes of thread-local memory, which is where shared memory of fixed sizes lies."""
    if library[:5] != b"\x7fELF\x02":
        raise port.BuildFailed("the compiler gives no library for a 64-bit system")
    (start,) = struct.unpack_from("<Q", library, 32)
    size, count = struct.unpack_from("<HH", library, 54)
    for at in range(start, start + size * count, size):
        (kind,) = struct.unpack_from("<I", library, at)
        if kind == _PT_TLS:
            return int(struct.unpack_from("<Q", library, at + 40)[0])
    return 0
