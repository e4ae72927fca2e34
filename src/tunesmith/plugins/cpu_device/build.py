"""A unit to a library for the host: the kernels, a table of them, and what runs their threads."""

from __future__ import annotations

import importlib.util
import os
import platform
import posixpath
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from tunesmith.backends import binaries, messages, port
from tunesmith.backends.binaries import ElfSection
from tunesmith.backends.cuda import cubin as cuda_entries
from tunesmith.backends.cuda.flags import read_flags
from tunesmith.base.text import digest_of
from tunesmith.plugins.cpu_device import source as implied
from tunesmith.plugins.cpu_device.source import host_text, unknown_message, with_entries
from tunesmith.problem.device import HIP, Device, Resources
from tunesmith.problem.template import plain_name
from tunesmith.problem.vetting.device_words import split_word_set
from tunesmith.run.config import passed_on

# Compilers for the host that kernels can be built with: g++, clang++, or the clang of PyPI's `ziglang`.
GNU, CLANG, ZIG = "g++", "clang++", "zig"
THREADS = "-fsanitize=thread"
INSTALL = "pip install 'tunesmith[cpu]'"
SECONDS = 100.0
_VERSION = re.compile(r"\b(\d+\.\d+(?:\.\d+)?)\b")
# Whatever else is set would be a flag that no file mentions: CPATH, LIBRARY_PATH.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")


@dataclass(frozen=True)
class HostCompiler:
    name: str
    version: str
    command: tuple[str, ...]
    seconds: float = SECONDS  # for one run

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".strip()

    @property
    def links(self) -> tuple[str, ...]:
        """What a library is linked with. zig would first build a whole C++ library: the process that loads a
        kernel has all that one needs."""
        if self.name == ZIG:
            return ("-shared", "-nostdlib", "-Wl,--build-id=none")
        return ("-shared", "-static-libgcc", "-nostartfiles", "-Wl,--build-id=none", "-lm")

    @property
    def fills(self) -> tuple[str, ...]:
        """What gives locals that nobody has set one content, the same in every launch."""
        knows = self.name == ZIG or int(self.version.partition(".")[0]) >= (12 if self.name == GNU else 8)
        return ("-ftrivial-auto-var-init=pattern",) if knows else ()

    @property
    def looks(self) -> tuple[str, ...]:
        """How a text is read for what is said of it. Without a file to make zig would build its libraries."""
        return ("-c", "-o", "looked.o") if self.name == ZIG else ("-fsyntax-only",)

    def told(self, flags: Sequence[str]) -> list[str]:
        """Flags as it takes them. zig would build the libraries behind a sanitizer, which we do not use: the
        compiler inside it is told of them."""
        if self.name != ZIG:
            return list(flags)
        inner = ("-Xclang", "-fsanitize=signed-integer-overflow,alignment,array-bounds,float-cast-overflow")
        own = [word for flag in flags for word in (("-Xclang", flag) if flag == THREADS else (flag,))]
        kept = [word for word in own if not word.startswith("-fsanitize=") or word == THREADS]
        recover = ("-Xclang", inner[1].replace("-fsanitize=", "-fsanitize-recover="))
        return [*kept, "-fno-sanitize=undefined", *inner, *recover]

    def run(self, words: Sequence[str], folder: Path) -> str:
        """What it says; BuildFailed with its words where it refuses."""
        kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        # zig says nothing of what it has compiled before: it is to know nothing but this folder.
        place = str(folder / "zig")
        caches = {"ZIG_GLOBAL_CACHE_DIR": place, "ZIG_LOCAL_CACHE_DIR": place}
        environment = {**kept, "LC_ALL": "C", **(caches if self.name == ZIG else {})}
        command = [*self.command, *words]
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, input=b"", capture_output=True, timeout=self.seconds
            )
        except subprocess.TimeoutExpired as error:
            raise port.BuildFailed(f"{self.title} did not end within {self.seconds:.0f} s") from error
        except OSError as error:
            raise port.Unsupported(f"{self.title} does not start: {error.strerror}") from error
        said = done.stderr.decode(errors="replace")
        if done.returncode:
            raise port.BuildFailed(said.strip() or f"{self.title} gives no reason")
        return said


@cache
def find_compilers() -> tuple[HostCompiler, ...]:
    """Those that are here, the preferred one first."""
    programs = [(name, os.path.realpath(path)) for name in (GNU, CLANG) if (path := shutil.which(name))]
    found = [HostCompiler(name, _query_version((path,)), (path,)) for name, path in programs]
    zig = importlib.util.find_spec("ziglang")
    if zig is not None and zig.origin is not None:
        program = str(Path(zig.origin).with_name("zig"))
        found.append(HostCompiler(ZIG, _query_version((program,), "version"), (program, "c++")))
    return tuple(one for one in found if one.version)


def compiler_by_title(title: str) -> HostCompiler:
    """The one that a device was described with; Unsupported where it is not here."""
    for one in find_compilers():
        if one.title == title:
            return one
    here = ", ".join(one.title for one in find_compilers()) or "none"
    raise port.Unsupported(f"the device was described with {title}, here there is: {here}")


def _query_version(command: tuple[str, ...], question: str = "--version") -> str:
    """As 12.2.0; empty where it does not run."""
    try:
        done = subprocess.run(
            [*command, question], env=passed_on(), capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = done.stdout.decode(errors="replace").splitlines()
    # g++ (Debian 12.2.0-14) 12.2.0: the last of its first line is its own.
    found = _VERSION.findall(lines[0]) if lines else []
    return found[-1] if found and done.returncode == 0 else ""


# Shared memory of fixed sizes in a library for the host: where each array lies, and room between them.
GAP = 64  # bytes behind each array, that belong to none
_THREAD_LOCAL = 6  # STT_TLS
_OURS = "__tunesmith"
_SECTION = re.compile(r"\s*\.(?:section\s+(\S+?)(?:,.*)?|(text|data|bss|tbss)\b.*)")
_ROOM = re.compile(r"\s*\.zero\s+\d+\s*")
_INSIDE = re.compile(r"E(\d+)(\w+)$")  # of a mangled name: what stands last, within a function


@dataclass(frozen=True)
class SharedArray:
    start: int  # in thread-local memory
    nbytes: int
    name: str  # as the compiler has it

    @property
    def title(self) -> str:
        """With the user's own name, as far as it can be read."""
        for found in (_INSIDE.search(self.name), re.search(r"^_ZL?(\d+)(\w+)$", self.name)):
            if found is not None and len(found[2]) >= int(found[1]):
                return f"the shared array {found[2][: int(found[1])]}"
        return "a shared array"


def pad_thread_locals(assembly: str) -> str:
    """An assembly with room behind everything that is thread local."""
    lines, inside = list[str](), False
    for line in assembly.split("\n"):
        if (found := _SECTION.fullmatch(line)) is not None:
            name = found[1] or f".{found[2]}"
            inside = name.strip('"').startswith(".tbss")
        lines.append(line)
        if inside and _ROOM.fullmatch(line):
            lines.append(f"\t.zero\t{GAP}")
    return "\n".join(lines)


def shared_arrays(library: bytes) -> tuple[SharedArray, ...]:
    """Of a library that is not stripped."""
    found = {
        SharedArray(symbol.value, symbol.size, symbol.name)
        for symbol in binaries.read_symbols(binaries.read_sections(library), binaries.SYMTAB)
        if symbol.type == _THREAD_LOCAL and symbol.size and symbol.section and _OURS not in symbol.name
    }
    return tuple(sorted(found, key=lambda one: one.start))


# What a kernel's object asks of the process that loads it: arithmetic and our runtime, nothing else.
#
# Read before anything is loaded: initialisers would run as soon as a library is.
_ONE = split_word_set(
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 "
    "fabs fdim floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint llround log "
    "log10 log1p log2 logb lrint lround modf nan nearbyint nextafter pow remainder remquo rint round "
    "roundeven scalbln scalbn sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn "
)
_MATH = frozenset(f"{name}{kind}" for name in _ONE for kind in ("", "f"))
_MEMORY = frozenset(("memcpy", "memmove", "memset", "memcmp", "bcmp", "strlen"))
_PLACES = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim"))
_LINKER = frozenset(("_GLOBAL_OFFSET_TABLE_", "__tls_get_addr", "__dso_handle"))
# Of compilers: arithmetic that a processor lacks, atomics, what a sanitizer calls; and our runtime's own.
_KNOWN = re.compile(
    r"__tunesmith_\w+|__tsan_\w+|__ubsan_handle_\w+"
    r"|__u?(?:div|mod|divmod)[dt]i[34]|__(?:mul|ashl|ashr|lshr|neg)[dt]i[23]|__mulo[dt]i4|__mulv[dt]i3"
    r"|__(?:popcount|clz|ctz|ffs|parity|bswap)[sdt]i2|__powi[sd]f2|__(?:mul|div)[sd]c3"
    r"|__(?:extend|trunc)[a-z]f[a-z]f2|__(?:fix|fixuns)[a-z]f[sdt]i|__float(?:un)?[sdt]i[a-z]f"
    r"|__gnu_(?:h2f|f2h|d2h)_ieee"
    r"|__aarch64_(?:cas|swp|ldadd|ldset|ldclr|ldeor)\d+_\w+"
    r"|__atomic_(?:load|store|exchange|compare_exchange|(?:fetch_)?(?:add|sub|and|or|xor|nand)(?:_fetch)?)_\d+"
)
PRINTS = frozenset(("printf", "puts", "putchar"))  # CUDA's printf, and what compilers make of it
_INITIALISERS = re.compile(r"\.(?:pre)?init_array\b.*|\.fini_array\b.*|\.[cd]tors\b.*|\.init|\.fini")
_FIRST, _LAST, _BEFORE = 14, 15, 16  # types of sections
_CHOSEN_AT_LOAD = 10  # a symbol whose address a function of the library gives


def check_object(data: bytes, watched: bool, also: frozenset[str] = frozenset()) -> None:
    """BuildFailed where a kernel calls what it may not, or would run before it is launched. A watched build
    has one initialiser of the compiler's."""
    try:
        if not data.startswith(binaries.HEAD):
            raise ValueError("not of a 64-bit little-endian system")
        sections = binaries.read_sections(data)
        faults = list(_symbol_faults(sections, also))
    except (struct.error, IndexError, ValueError) as error:
        raise port.BuildFailed("the compiler gives no object that can be read") from error
    types = (_FIRST, _LAST, _BEFORE)
    first = sum(one.size for one in sections if _INITIALISERS.fullmatch(one.name) or one.type in types)
    if first > (8 if watched else 0):
        faults.append("a kernel may not have what runs before it is launched: a constructor or initialiser")
    if faults:
        raise port.BuildFailed("\n".join(faults))


def _symbol_faults(sections: Sequence[ElfSection], also: frozenset[str]) -> Iterator[str]:
    for symbol in binaries.read_symbols(sections, binaries.SYMTAB):
        name, is_defined = symbol.name, symbol.section != 0
        if symbol.type == _CHOSEN_AT_LOAD or (is_defined and name in ("_init", "_fini")):
            yield f"a kernel may not define {name}, which runs before it is launched"
        elif not is_defined and name and not _is_known(name) and name not in also:
            yield f"a kernel may not call {name}: it is neither arithmetic nor CUDA's own"


def _is_known(name: str) -> bool:
    names = (_MATH, _MEMORY, _PLACES, _LINKER)
    return any(name in known for known in names) or _KNOWN.fullmatch(name) is not None


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
# So deep that a spelling may climb a few folders and still be in a place of our own.
_DEEP = "own/1/2/3/4/5/6"
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


def build_host_library(unit: messages.Unit, device: Device, watched: bool = False) -> port.KernelBinary:
    cuda_entries.check_entries(unit)
    compiler, own = compiler_by_title(device.driver), plain_name(unit.path)
    kind = compiler.told(WATCHED) if watched else _PLAIN
    flags = [*_COMMON, *compiler.fills, *kind, *_language_flags(unit, device, watched)]
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
            raise port.BuildFailed(_explain_build_log(unit, str(error))) from None
        if watched:
            assembly = folder / "kernel.s"
            # Bytes of the kernel's data need be no text.
            assembly.write_text(pad_thread_locals(assembly.read_text("latin-1")), "latin-1")
            compiler.run(["-c", "-gdwarf-4", "kernel.s", "-o", "kernel.o"], folder)
        check_object((folder / "kernel.o").read_bytes(), watched, frozenset() if unit.vetted else PRINTS)
        runtime = compile_runtime(compiler, device.limits.warp, watched)
        for file, data in runtime.items():
            (folder / file).write_bytes(data)
        stripped = () if watched else ("-s",)
        compiler.run(["kernel.o", *runtime, *compiler.links, *stripped, "-o", "kernel.so"], folder)
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
        file.write_text(implied.strip_markers(text), "latin-1")
        log = compiler.run([*flags, implied.WARNING, *ranges, *kind, *compiler.looks], folder)
    except port.BuildFailed:  # it does not tell ranges: what is compiled already stays
        return
    told = implied.read_conversions(text, log)
    # In a template the type that is wanted need not be the only one that fits.
    for some in (told, [one for one in told if not one.is_generic]):
        file.write_text(implied.wrap_conversions(text, some), "latin-1")
        try:
            compiler.run([*flags, "-w", *kind, *made], folder)
            return
        except port.BuildFailed:
            continue
    compiler.run(plainly, folder)


def _language_flags(unit: messages.Unit, device: Device, watched: bool) -> list[str]:
    """The standard, and what the language's own compilers define."""
    defined = [f"-DTUNESMITH_WARP={device.limits.warp}", *(("-DTUNESMITH_WATCH=1",) if watched else ())]
    if unit.language == HIP.name:
        defined += contraction_flags(not watched)
        macros = ["-D__HIPCC__=1", "-D__HIP_PLATFORM_AMD__=1", "-D__HIP_DEVICE_COMPILE__=1"]
        standard = next((flag for flag in unit.flags if flag.startswith("-std=")), "-std=c++17")
    else:
        capability = device.limits.capability or 90
        given = read_flags(unit.flags, capability).common
        standard = next((flag for flag in given if flag.startswith("--std=")), "--std=c++17")[1:]
        # Watched, equal sums in two places are to be equal: two threads may then write them both.
        defined += contraction_flags(not watched and "--fmad=false" not in given)
        macros = ["-D__CUDACC__=1", f"-D__CUDA_ARCH__={capability * 10}", "-D__CUDACC_VER_MAJOR__=13"]
    # Templates of entries take functions as arguments, which C++17 brought.
    standard = re.sub(r"c\+\+(?:11|14|0x|1y)$", "c++17", standard)
    return [standard, *defined, *macros]


def contraction_flags(wanted: bool) -> list[str]:
    """GPUs join a product and a sum into one rounding; here where the processor can."""
    if not wanted or not _has_fma():
        return ["-ffp-contract=off"]
    return ["-ffp-contract=fast", *(("-mfma",) if platform.machine() in ("x86_64", "AMD64") else ())]


@cache
def _has_fma() -> bool:
    if platform.machine() in ("x86_64", "AMD64"):
        try:
            text = Path("/proc/cpuinfo").read_text()
        except OSError:
            return False
        return re.search(r"^flags\s*:.*\bfma\b", text, re.MULTILINE) is not None
    return platform.machine() == "aarch64"


def _lay_out(folder: Path, unit: messages.Unit) -> None:
    for name, text in host_headers().items():
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
def host_headers() -> dict[str, str]:
    """Name -> text, of all that kernels can include."""
    root = resources.files("tunesmith.plugins.cpu_device").joinpath("headers")
    with resources.as_file(root) as folder:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        found = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}
    return {**dict.fromkeys(_FORWARDED, '#pragma once\n#include "tunesmith_cpu.h"\n'), **found}


@cache
def compile_runtime(compiler: HostCompiler, warp: int, watched: bool) -> dict[str, bytes]:
    """Objects by their names, compiled once in a process."""
    sources = (RUNTIME, *((WATCHER,) if watched else ()))
    defined = [f"-DTUNESMITH_WARP={warp}", *(("-DTUNESMITH_WATCH=1",) if watched else ())]
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory(prefix="tunesmith-cpu-") as name:
        folder = Path(name)
        for source in host_headers():
            if source.startswith("tunesmith_"):
                (folder / source).write_text(host_headers()[source])
        for source in sources:
            words = ("-std=c++17", "-O2", "-w", *_COMMON, *defined, "-c", source, "-o", f"{source}.o")
            compiler.run(words, folder)
            found[f"{source}.o"] = (folder / f"{source}.o").read_bytes()
    return found


def _explain_build_log(unit: messages.Unit, log: str) -> str:
    """The compiler's, or which of CUDA's headers is not here, or what is wrong with an entry's name where
    nothing else is."""
    for file, line, *names in _NO_HEADER.findall(log):
        if re.search(rf"#\s*include\s*<{re.escape(name := ''.join(names))}>", log):
            return f"{file}:{line}: {unknown_message(f'the header <{name}>')}"
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
