"""clang as a program: HIP sources to code objects on a machine without AMD's runtime or a GPU.

It takes clang with its AMDGPU target and lld, ROCm's device libraries (bitcode), and HIP's headers: packages
of distributions, or together in /opt/rocm. What the libraries do for a GPU is decided by constants; those are
given here, so that libraries older than the GPU serve as well.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from tunesmith.backends.hip.architectures import AmdArchitecture
from tunesmith.backends.hip.code_object import TABLE
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, Unsupported, system_package
from tunesmith.backends.tool_process import answer_of
from tunesmith.problem.template import plain_name
from tunesmith.run.config import passed_on

_SECONDS = 120
OLDEST = 15  # the first to know gfx1100 and raw outputs; gfx942 takes 17
LIBRARIES = ("ocml", "ockl", "opencl", "hip")  # the last two only in older releases
_ROOTS = ("ROCM_PATH", "HIP_PATH")
VARIABLES = (*_ROOTS, "LD_LIBRARY_PATH")
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


def _roots() -> Iterator[Path]:
    own = passed_on(VARIABLES)
    yield from (Path(own[name]) for name in _ROOTS if own.get(name))
    yield from (Path("/opt/rocm"), Path("/usr"))


def folders() -> Iterator[Path]:
    """What a compiler here reads, beside what lies in the usual places."""
    return (root for root in _roots() if root != Path("/usr"))


def _programs() -> Iterator[str]:
    for root in _roots():
        for folder in (root / "llvm" / "bin", root / "lib" / "llvm" / "bin", *_versioned(root / "lib")):
            if os.access(folder / "clang++", os.X_OK):
                yield str(folder / "clang++")


def _versioned(folder: Path) -> list[Path]:
    """/usr/lib/llvm-19/bin, the newest first."""
    found = [
        (int(m[1]), path) for path in folder.glob("llvm-*") if (m := re.fullmatch(r"llvm-(\d+)", path.name))
    ]
    return [path / "bin" for _, path in sorted(found, reverse=True)]


@cache
def tools() -> ClangTools | str:
    """Those that are here, or what is missing, with the packages that bring it."""
    known = ((path, _version(path)) for path in _programs())
    program = next((pair for pair in known if int(pair[1].partition(".")[0] or 0) >= OLDEST), None)
    bitcode = next((folder for folder in _bitcode() if (folder / "ocml.bc").is_file()), None)
    headers = next((r / "include" for r in _roots() if (r / "include/hip/hip_runtime.h").is_file()), None)
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


def _bitcode() -> Iterator[Path]:
    for root in _roots():
        yield root / "amdgcn" / "bitcode"
        yield root / "lib" / "amdgcn" / "bitcode"
        yield from root.glob("lib*/*/amdgcn/bitcode")
        yield from root.glob("lib/clang/*/lib/amdgcn/bitcode")
        yield from root.glob("lib/llvm*/lib/clang/*/lib/amdgcn/bitcode")


def _version(program: str) -> str:
    found = re.search(r"clang version (\d+(?:\.\d+)*)", answer_of(program, "--version", passed_on(VARIABLES)))
    return found[1] if found else ""


def compile_unit(unit: Unit, options: tuple[str, ...], own: AmdArchitecture) -> tuple[bytes, str]:
    """The code object with a table of its entries, and what the compiler said."""
    found = tools()
    if isinstance(found, str):
        raise Unsupported(found)
    with tempfile.TemporaryDirectory(prefix="tunesmith-clang-") as name:
        folder = Path(name)
        _write_headers(folder / "headers", unit)
        source = f"{plain_name(unit.path).removesuffix('.hip')}.hip"
        (folder / source).write_bytes((unit.source + _table_of(unit)).encode(errors="surrogatepass"))
        fast = int("-ffast-math" in options)
        wave64 = int("-mwavefrontsize64" in options or own.wave == 64)
        exact = int("-fhip-fp32-correctly-rounded-divide-sqrt" in options or not fast)
        controls = _CONTROLS.format(isa=own.isa, wave64=wave64, fast=fast, exact=exact)
        (folder / "controls.h").write_text(controls)
        linked = [found.bitcode / f"{library}.bc" for library in LIBRARIES]
        command = [
            *(found.program, "-x", "hip", "--cuda-device-only", f"--offload-arch={own.name}", "-O3"),
            *("-nogpulib", "-nogpuinc", "--no-gpu-bundle-output", "-std=c++17", *options),
            *("-Wno-ignored-attributes", "-Wno-unused-command-line-argument", "-fno-caret-diagnostics"),
            *("-include", "__clang_hip_runtime_wrapper.h", "-include", "controls.h"),
            *("-I", "headers", *_read_from(found.headers)),
            *(part for path in linked if path.is_file() for part in _linked(path)),
            *("-c", "-o", "unit.hsaco", source),
        ]
        return _run(command, folder)


def _read_from(headers: Path) -> tuple[str, ...]:
    """A folder that every compiler reads has its place behind C++'s own headers, which go on to C's there."""
    return () if headers == Path("/usr/include") else ("-isystem", str(headers))


def _linked(path: Path) -> tuple[str, ...]:
    return ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(path))


def _run(command: list[str], folder: Path) -> tuple[bytes, str]:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**passed_on(VARIABLES), "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"clang took more than {_SECONDS} s") from None
    log = done.stderr.decode(errors="replace").strip()
    if done.returncode != 0:
        raise BuildFailed(log or f"clang ended with status {done.returncode}")
    return (folder / "unit.hsaco").read_bytes(), log


def _table_of(unit: Unit) -> str:
    """That instantiates templates, and tells each entry's symbol."""
    lines = "".join(f"(const void*)({entry}),\n" for entry in unit.entries)
    head = f'extern "C" __device__ __attribute__((used)) const void* {TABLE}[] = '
    return f'\n#line 1 "{TABLE}"\n{head}{{\n{lines}}};\n'


def _write_headers(folder: Path, unit: Unit) -> None:
    folder.mkdir(parents=True)
    for spelling, text in unit.headers:
        path = PurePosixPath(spelling)
        if path.is_absolute() or ".." in path.parts or not path.name:
            raise BuildFailed(
                f'clang gets its headers in a folder of their own, which "{spelling}" leaves: include it by '
                "a path below one of the folders in `include`"
            )
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode(errors="surrogatepass"))
