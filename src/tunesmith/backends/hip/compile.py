"""HIP builds: by hiprtc where AMD's runtime is, by clang anywhere; flags are those of both."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from tunesmith.backends.binaries import write_headers
from tunesmith.backends.hip.code_object import (
    ARCHITECTURES,
    TABLE,
    AmdArchitecture,
    CodeObject,
    pack,
    resources_of,
)
from tunesmith.backends.hip.devices import check_hiprtc, load_hiprtc
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, KernelBinary, Toolchain, Unsupported, system_package
from tunesmith.backends.tool_process import answer_of
from tunesmith.base.text import digest_of
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Kernel
from tunesmith.problem.template import plain_name
from tunesmith.run.config import passed_on
from tunesmith.source.preprocess import Predefined, assume_predefined, parse_macro_dump, sorted_out

# clang takes its AMDGPU target and lld, ROCm's device libraries (bitcode), and HIP's headers: packages of
# distributions, or together in /opt/rocm. What the libraries do for a GPU is decided by constants; those are
# given here, so that libraries older than the GPU serve as well.
_COMPILE_SECONDS = 120
OLDEST = 15  # the first to know gfx1100 and raw outputs; gfx942 takes 17
LIBRARIES = ("ocml", "ockl", "opencl", "hip")  # the last two only in older releases
_ROOTS = ("ROCM_PATH", "HIP_PATH")
VARIABLES = (*_ROOTS, "LD_LIBRARY_PATH")
_LINK_BITCODE = ("-Xclang", "-mlink-builtin-bitcode", "-Xclang")  # and the file
# What the device libraries ask: see "Control Variables" in their documentation.
_CONTROLS = """\
#define TUNESMITH_CONTROL(type, name, value) extern "C" __attribute__((constant)) const type name = value;
TUNESMITH_CONTROL(int, __oclc_ISA_version, {isa})
TUNESMITH_CONTROL(int, __oclc_ABI_version, 500)
TUNESMITH_CONTROL(unsigned char, __oclc_wavefrontsize64, {wave64})
TUNESMITH_CONTROL(unsigned char, __oclc_finite_only_opt, {fast})
TUNESMITH_CONTROL(unsigned char, __oclc_unsafe_math_opt, {fast})
TUNESMITH_CONTROL(unsigned char, __oclc_daz_opt, 0)
TUNESMITH_CONTROL(unsigned char, __oclc_correctly_rounded_sqrt32, {exact})
#undef TUNESMITH_CONTROL
"""


@dataclass(frozen=True)
class ClangTools:
    program: str
    version: str
    bitcode: Path
    headers: Path


def _rocm_roots() -> Iterator[Path]:
    variables = passed_on(VARIABLES)
    yield from (Path(variables[name]) for name in _ROOTS if variables.get(name))
    yield from (Path("/opt/rocm"), Path("/usr"))


def rocm_folders() -> Iterator[Path]:
    """What a compiler here reads, beside what lies in the usual places."""
    return (root for root in _rocm_roots() if root != Path("/usr"))


def _clang_programs() -> Iterator[str]:
    for root in _rocm_roots():
        for folder in (
            root / "llvm" / "bin",
            root / "lib" / "llvm" / "bin",
            *_versioned_llvm_folders(root / "lib"),
        ):
            if os.access(folder / "clang++", os.X_OK):
                yield str(folder / "clang++")


def _versioned_llvm_folders(folder: Path) -> list[Path]:
    """/usr/lib/llvm-19/bin, the newest first."""
    found = [
        (int(m[1]), path) for path in folder.glob("llvm-*") if (m := re.fullmatch(r"llvm-(\d+)", path.name))
    ]
    return [path / "bin" for _, path in sorted(found, reverse=True)]


@cache
def tools() -> ClangTools | str:
    """Those that are here, or what is missing, with the packages that bring it."""
    known = ((path, _clang_version(path)) for path in _clang_programs())
    program = next((pair for pair in known if int(pair[1].partition(".")[0] or 0) >= OLDEST), None)
    bitcode = next((folder for folder in _bitcode_folders() if (folder / "ocml.bc").is_file()), None)
    headers = next(
        (r / "include" for r in _rocm_roots() if (r / "include/hip/hip_runtime.h").is_file()), None
    )
    if program is not None and bitcode is not None and headers is not None:
        return ClangTools(*program, bitcode, headers)
    wanted = (
        (program, f"clang {OLDEST} or newer with lld", "clang lld", "clang-19 lld-19"),
        (bitcode, "ROCm's device libraries", "rocm-device-libs", "rocm-device-libs"),
        (headers, "HIP's headers", "hip-devel", "libamdhip64-dev"),
    )
    missing = [(what, package, apt) for found, what, package, apt in wanted if found is None]
    packages, apt = (" ".join(names) for names in list(zip(*missing, strict=True))[1:])
    return f"what is missing is {', '.join(what for what, _, _ in missing)}: {system_package(packages, apt)}"


def _bitcode_folders() -> Iterator[Path]:
    for root in _rocm_roots():
        yield root / "amdgcn" / "bitcode"
        yield root / "lib" / "amdgcn" / "bitcode"
        yield from root.glob("lib*/*/amdgcn/bitcode")
        yield from root.glob("lib/clang/*/lib/amdgcn/bitcode")
        yield from root.glob("lib/llvm*/lib/clang/*/lib/amdgcn/bitcode")


def _clang_version(program: str) -> str:
    found = re.search(r"clang version (\d+(?:\.\d+)*)", answer_of(program, "--version", passed_on(VARIABLES)))
    return found[1] if found else ""


def compile_by_clang(unit: Unit, options: tuple[str, ...], chip: AmdArchitecture) -> tuple[bytes, str]:
    """The code object with a table of its entries, and what the compiler said."""
    found = tools()
    if isinstance(found, str):
        raise Unsupported(found)
    with tempfile.TemporaryDirectory(prefix="tunesmith-clang-") as name:
        folder = Path(name)
        write_headers(folder / "headers", unit.headers, "clang", lambda path: ".." in path.parts)
        source = f"{plain_name(unit.path).removesuffix('.hip')}.hip"
        (folder / source).write_bytes((unit.source + _table_of(unit)).encode(errors="surrogatepass"))
        fast = int("-ffast-math" in options)
        wave64 = int("-mwavefrontsize64" in options or chip.wave == 64)
        exact = int("-fhip-fp32-correctly-rounded-divide-sqrt" in options or not fast)
        controls = _CONTROLS.format(isa=chip.isa, wave64=wave64, fast=fast, exact=exact)
        (folder / "controls.h").write_text(controls)
        linked = [found.bitcode / f"{library}.bc" for library in LIBRARIES]
        command = [
            *(found.program, "-x", "hip", "--cuda-device-only", f"--offload-arch={chip.name}", "-O3"),
            *("-nogpulib", "-nogpuinc", "--no-gpu-bundle-output", "-std=c++17", *options),
            *("-Wno-ignored-attributes", "-Wno-unused-command-line-argument", "-fno-caret-diagnostics"),
            *("-include", "__clang_hip_runtime_wrapper.h", "-include", "controls.h"),
            *("-I", "headers", *_read_from(found.headers)),
            *(part for path in linked if path.is_file() for part in (*_LINK_BITCODE, str(path))),
            *("-c", "-o", "unit.hsaco", source),
        ]
        return _run_clang(command, folder)


def _read_from(headers: Path) -> tuple[str, ...]:
    """A folder that every compiler reads has its place behind C++'s own headers, which go on to C's there."""
    return () if headers == Path("/usr/include") else ("-isystem", str(headers))


def _run_clang(command: list[str], folder: Path) -> tuple[bytes, str]:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**passed_on(VARIABLES), "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMPILE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"clang took more than {_COMPILE_SECONDS} s") from None
    log = done.stderr.decode(errors="replace").strip()
    if done.returncode != 0:
        raise BuildFailed(log or f"clang ended with status {done.returncode}")
    return (folder / "unit.hsaco").read_bytes(), log


def _table_of(unit: Unit) -> str:
    """That instantiates templates, and tells each entry's symbol."""
    lines = "".join(f"(const void*)({entry}),\n" for entry in unit.entries)
    head = f'extern "C" __device__ __attribute__((used)) const void* {TABLE}[] = '
    return f'\n#line 1 "{TABLE}"\n{head}{{\n{lines}}};\n'


def hiprtc_version() -> str:
    """As 7.2; empty where there is none."""
    try:
        major, minor = check_hiprtc(load_hiprtc().hiprtcVersion())
    except Unsupported:
        return ""
    return f"{int(major)}.{int(minor)}"


def compile_by_hiprtc(
    unit: Unit, options: tuple[str, ...], chip: AmdArchitecture
) -> tuple[bytes, dict[str, str], str]:
    """The code object, each entry's symbol, and what the compiler said."""
    rtc = load_hiprtc()
    headers = [text.encode(errors="surrogatepass") for _, text in unit.headers]
    names = [spelling.encode(errors="surrogatepass") for spelling, _ in unit.headers]
    source = unit.source.encode(errors="surrogatepass")
    program = check_hiprtc(
        rtc.hiprtcCreateProgram(source, plain_name(unit.path).encode(), len(headers), headers, names)
    )
    try:
        for entry in unit.entries:
            check_hiprtc(rtc.hiprtcAddNameExpression(program, entry.encode()))
        given = [f"--offload-arch={chip.name}".encode(), *(option.encode() for option in options)]
        (status,) = rtc.hiprtcCompileProgram(program, len(given), given)
        said = _fetch_hiprtc_bytes(program, rtc.hiprtcGetProgramLogSize, rtc.hiprtcGetProgramLog)
        log = said.rstrip(b"\0").decode(errors="replace").strip()
        if int(status) != 0:
            raise BuildFailed(log or f"hiprtc refuses {unit.path} without a word")
        symbols = {}
        for entry in unit.entries:
            name = check_hiprtc(rtc.hiprtcGetLoweredName(program, entry.encode()))
            symbols[entry] = name.decode() if isinstance(name, bytes) else str(name)
        return _fetch_hiprtc_bytes(program, rtc.hiprtcGetCodeSize, rtc.hiprtcGetCode), symbols, log
    finally:
        rtc.hiprtcDestroyProgram(program)


def _fetch_hiprtc_bytes(program: Any, size_of: Any, get: Any) -> bytes:
    size = int(check_hiprtc(size_of(program)))
    data = bytearray(size)
    if size:
        check_hiprtc(get(program, data))
    return bytes(data)


COMPILERS = ("hiprtc", "clang")
_ENTRY = re.compile(r"[A-Za-z_][\w:]*(?:<[\w\s:,<>*+\-()]*>)?")
_DEFINED = re.compile(
    r"__global__[^;{]*?\bvoid\s+(?:(?:__launch_bounds__\s*\([^)]*\)|__attribute__\s*\(\([^;{]*?\)\))\s*)*(\w+)\s*\("
)
# Flags that shape device code.
_ALLOWED = re.compile(
    r"-O[0-3]|--?std=(?:c|gnu)\+\+\d\d|-ffast-math|-fno-fast-math|-fgpu-flush-denormals-to-zero"
    r"|-f(?:no-)?hip-fp32-correctly-rounded-divide-sqrt|-ffp-contract=(?:on|off|fast|fast-honor-pragmas)"
    r"|-m(?:no-)?unsafe-fp-atomics|-m(?:no-)?cumode|-m(?:no-)?wavefrontsize64|-f(?:no-)?unroll-loops|-w"
)
_DROPPED = re.compile(r"--offload-arch=[\w:+-]+|-g|-fPIC|-Wall|-Wno-[\w-]+|--?amdgpu-target=[\w:+-]+")


def hip_compilers() -> tuple[tuple[str, str], ...]:
    """Name and version of each compiler that is here, the quickest first."""
    found = [("hiprtc", version)] if (version := hiprtc_version()) else []
    clang = tools()
    return (*found, *(() if isinstance(clang, str) else (("clang", clang.version),)))


def read_flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Without those that mean nothing to one code object; anything unknown is refused."""
    for flag in flags:
        if not _ALLOWED.fullmatch(flag) and not _DROPPED.fullmatch(flag):
            raise BuildFailed(f"the flag {flag!r} is not one that shapes a HIP kernel: see docs/hip.md")
    return tuple(flag for flag in flags if _ALLOWED.fullmatch(flag))


def build_code_object(unit: Unit, device: Device) -> KernelBinary:
    for entry in unit.entries:
        if not _ENTRY.fullmatch(entry):
            raise BuildFailed(f"an entry is the name of a kernel as in C++, got {entry!r}")
    chip = ARCHITECTURES[device.target]
    options = read_flags(unit.flags)
    chosen = unit.compiler or next((name for name, _ in hip_compilers()), "")
    if chosen == "hiprtc":
        data, symbols, log = compile_by_hiprtc(unit, options, chip)
        code = CodeObject(data)
    elif chosen == "clang":
        data, log = _by_clang(unit, options, chip)
        code = CodeObject(data)
        symbols = dict(zip(unit.entries, code.listed(len(unit.entries)), strict=False))
    else:
        raise Unsupported(f"there is no HIP compiler here: {none_here()}")
    for entry in unit.entries:
        if symbols.get(entry) not in code.kernels:
            raise BuildFailed(_no_such_kernel(unit, entry, "that is no __global__ function"))
    return KernelBinary(
        data=pack(symbols, data),
        code_digest=digest_of(code.code_digest(), repr(unit.entries), code.target),
        resources=resources_of(code, symbols),
        log=log,
    )


def _by_clang(unit: Unit, options: tuple[str, ...], chip: AmdArchitecture) -> tuple[bytes, str]:
    try:
        return compile_by_clang(unit, options, chip)
    except BuildFailed as error:
        faults = re.findall(r"^([^\s:]+):(\d+):\d+: (?:fatal )?error: (.*)$", str(error), re.MULTILINE)
        if faults and all(file == TABLE for file, _, _ in faults):
            _, line, words = faults[0]
            entry = unit.entries[min(max(int(line) - 2, 0), len(unit.entries) - 1)]
            raise BuildFailed(_no_such_kernel(unit, entry, words)) from None
        raise


def _no_such_kernel(unit: Unit, entry: str, words: str) -> str:
    names = ", ".join(dict.fromkeys(_DEFINED.findall(unit.source)))
    return f"{unit.path} has no kernel called {entry!r} ({words}); it defines {names or 'none'}"


def none_here() -> str:
    missing = tools()
    return f"hiprtc comes with ROCm and hip-python; for clang, {missing if isinstance(missing, str) else ''}"


def _how_to_install(compiler: str) -> str:
    if compiler == "hiprtc":
        return "install ROCm, and its bindings with: pip install 'tunesmith[hip]'"
    found = tools()
    return found if isinstance(found, str) else f"it is here: {found.program}"


def _hiprtc_advice(here: Collection[str]) -> str:
    then = "say compiler = 'clang' in [kernel]" if "clang" in here else _how_to_install("clang")
    return f"hiprtc has no headers of the host's C++ library: {then}, or include only what device code needs"


TOOLCHAIN = Toolchain(
    compilers=hip_compilers,
    none_here="there is no HIP compiler here, neither hiprtc nor clang with ROCm's device libraries",
    how_to_install=_how_to_install,
    lacks=lambda compiler, log: compiler == "hiprtc" and "file not found" in log,
    advice=_hiprtc_advice,
)


ASSUMED_ARCHITECTURE = "gfx942"  # of the device that HIP kernels are read for
_MACRO_SECONDS = 60


def hip_predefined_macros(kernel: Kernel, device: Device, names: Sequence[str]) -> tuple[Predefined, ...]:
    architecture = device.target or ASSUMED_ARCHITECTURE
    program = shutil.which("hipcc")
    if program is None:
        return (assume_predefined("hip", why="there is no hipcc here"),)
    standard = tuple(flag for flag in kernel.flags if re.fullmatch(r"--?std=[\w+]+", flag))
    told = _query_hipcc_macros(program, standard, architecture)
    if not told:
        return (assume_predefined("hip", why="hipcc does not tell"),)
    asked = [pair for pair in told if pair[0].partition("(")[0] in names]
    return (sorted_out(asked, " ".join(("hipcc,", *standard, architecture))),)


@lru_cache(maxsize=16)
def _query_hipcc_macros(
    program: str, standard: tuple[str, ...], architecture: str
) -> tuple[tuple[str, str], ...]:
    options = ("-x", "hip", "--cuda-device-only", f"--offload-arch={architecture}", "-E", "-dM")
    with tempfile.TemporaryDirectory(prefix="tunesmith-hipcc-") as folder:
        (Path(folder) / "macros.hip").write_text("")
        try:
            done = subprocess.run(
                [program, *standard, *options, "macros.hip"],
                cwd=folder,
                env=passed_on(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_MACRO_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return ()
    return parse_macro_dump(done.stdout.decode(errors="replace")) if done.returncode == 0 else ()
