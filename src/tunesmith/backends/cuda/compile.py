"""CUDA builds: the compilers that are here, and a source to a binary by one of them, without a driver."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from tunesmith.backends.binaries import write_headers
from tunesmith.backends.cuda import cubin as entries
from tunesmith.backends.cuda.cubin import (
    Compiled,
    Cubin,
    Refused,
    no_such_kernel,
    resources_of,
    without_chatter,
)
from tunesmith.backends.cuda.flags import STANDARD, Flags, read_flags
from tunesmith.backends.cuda.toolkit import find_nvcc, header_folders, pre_included, standard_headers
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, KernelBinary, Toolchain, Unsupported
from tunesmith.backends.tool_process import answer_of
from tunesmith.base.text import digest_of
from tunesmith.problem.device import HIP, Device
from tunesmith.problem.problem import Kernel
from tunesmith.problem.template import find_includes, plain_name
from tunesmith.source.preprocess import (
    TELL_VERSION,
    Predefined,
    assume_predefined,
    parse_macro_dump,
    sorted_out,
)

# nvcc is for sources that need the host's headers, which NVRTC does not have. The source goes to PTX with a
# table of its entries behind it. That instantiates templates, and the PTX tells each entry's symbol. The
# table is then taken out, because a kernel whose address is taken is compiled in another way, and what is
# left goes to a cubin: the two steps that nvcc itself takes. No host code is compiled.
TABLE = "__tunesmith_entries"
_TABLE = re.compile(rf"^\s*(?:\.visible )?\.global [^;]*\b{TABLE}\[\d+\] = \{{([^}}]*)\}};", re.MULTILINE)
# Headers lie so deep that a spelling may climb a few folders and still be in a place of our own.
_OWN, _DEEP = "headers", "1/2/3/4/5/6"
_HEADERS = f"{_OWN}/{_DEEP}"
# Whatever else is set would be a flag that no file mentions: NVCC_APPEND_FLAGS, CPATH.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "NVCC_CCBIN")


@cache
def nvcc_version() -> str | None:
    """As 13.0.88; None where there is no nvcc that runs."""
    text = _ask_nvcc("--version")
    found = re.search(r"\bV(\d+(?:\.\d+)+)", text)
    return found[1] if found else None


@cache
def nvcc_architectures() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\bsm_(\d+)\b", _ask_nvcc("--list-gpu-code")))


def compile_by_nvcc(unit: Unit, flags: Flags) -> Compiled:
    program = find_nvcc()
    if program is None:
        raise Unsupported("nvcc is not here: install NVIDIA's CUDA toolkit and put nvcc on the PATH")
    with tempfile.TemporaryDirectory(prefix="tunesmith-nvcc-") as name:
        folder = Path(name)
        write_headers(folder / _HEADERS, unit.headers, "nvcc", _leaves_folder)
        source = f"{plain_name(unit.path).removesuffix('.cu')}.cu"
        (folder / source).write_bytes((unit.source + _table_of(unit)).encode(errors="surrogatepass"))
        options = [*flags.nvcc, "-Wno-deprecated-gpu-targets"]
        first = _run_nvcc(
            program, [*options, f"-I{_HEADERS}", "-ptx", "-o", "with-table.ptx", source], folder
        )
        ptx = (folder / "with-table.ptx").read_text(encoding="utf-8", errors="surrogateescape")
        table = _TABLE.search(ptx)
        if table is None:
            raise RuntimeError(f"nvcc {nvcc_version()} leaves no table of entries in its PTX")
        symbols = dict(zip(unit.entries, (symbol.strip() for symbol in table[1].split(",")), strict=True))
        for entry, symbol in symbols.items():
            if not re.search(rf"\.entry\s+{re.escape(symbol)}\s*\(", ptx):
                raise BuildFailed(no_such_kernel(unit, entry, "that is a function, not a __global__ one"))
        without = ptx[: table.start()] + ptx[table.end() :]
        if flags.is_virtual:
            return Compiled(b"", symbols, first, without.encode(errors="surrogateescape"))
        (folder / "unit.ptx").write_text(without, encoding="utf-8", errors="surrogateescape")
        second = _run_nvcc(program, [*options, "-cubin", "-o", "unit.cubin", "unit.ptx"], folder)
        log = "\n".join(filter(None, (first, second)))
        return Compiled((folder / "unit.cubin").read_bytes(), symbols, log)


def dump_macros(flags: Flags, folder: Path) -> str:
    """All that are defined before a source's first line, as #define directives."""
    program = find_nvcc()
    if program is None:
        raise Unsupported("nvcc is not here")
    (folder / "macros.cu").write_text("")
    options = [*flags.nvcc, "-Wno-deprecated-gpu-targets", "-E", "-Xcompiler", "-dM"]
    return _run_nvcc(program, [*options, "macros.cu"], folder)


def _table_of(unit: Unit) -> str:
    """One entry a line, so that the line of a fault names the entry."""
    lines = "".join(f"(const void*)({entry}),\n" for entry in unit.entries)
    return f'\n#line 1 "{TABLE}"\nextern "C" __device__ const void* {TABLE}[] = {{\n{lines}}};\n'


def _leaves_folder(path: PurePosixPath) -> bool:
    """Whether it climbs out on its way, wherever it ends."""
    depth = len(PurePosixPath(_DEEP).parts)
    for part in path.parts[:-1]:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return path.name == ".."


def _run_nvcc(program: str, arguments: list[str], folder: Path) -> str:
    """What it prints. It stays in our process group, which is killed as a whole when a deadline passes."""
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env={**_nvcc_environment(), "HOME": str(folder), "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    log = re.sub(rf'(^|[\s"]){_HEADERS}/', r"\1", done.stdout.decode(errors="replace")).strip()
    if done.returncode != 0:
        raise Refused(log or f"nvcc ends with exit status {done.returncode}", TABLE, 2)
    return log


def _ask_nvcc(question: str) -> str:
    program = find_nvcc()
    return answer_of(program, question, _nvcc_environment()) if program is not None else ""


def _nvcc_environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8"}


NAME_MAP = "__nv_name_map"  # the file in which NVRTC finds fault with the name of an entry
_FIRST_NAME = 2  # the line of the first of them


@cache
def _load_nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise Unsupported(f"cuda-bindings cannot be loaded: {error}") from error
    try:
        nvrtc.nvrtcVersion()
    except (RuntimeError, OSError) as error:  # how the bindings say that the library is not there
        words = str(error).strip().partition("\n")[0]
        raise Unsupported(f"NVRTC cannot be loaded: {words}") from error
    return nvrtc


@cache
def nvrtc_version() -> tuple[int, int]:
    major, minor = _check_nvrtc(_load_nvrtc().nvrtcVersion())
    return int(major), int(minor)


@cache
def nvrtc_architectures() -> tuple[int, ...]:
    return tuple(int(number) for number in _check_nvrtc(_load_nvrtc().nvrtcGetSupportedArchs()))


def compile_by_nvrtc(unit: Unit, flags: Flags) -> Compiled:
    nvrtc = _load_nvrtc()
    given = (*unit.headers, *standard_headers(unit.source, unit.headers))
    headers = [text.encode(errors="surrogatepass") for _, text in given]
    names = [spelling.encode(errors="surrogatepass") for spelling, _ in given]
    source = unit.source.encode(errors="surrogatepass")
    program = _check_nvrtc(
        nvrtc.nvrtcCreateProgram(source, plain_name(unit.path).encode(), len(headers), headers, names)
    )
    try:
        options = [*flags.nvrtc, *(f"--include-path={f}" for f in _nvrtc_header_folders())]
        options += [f"--pre-include={name}" for name in pre_included(unit.source, unit.headers)]
        return _compile_with_nvrtc(program, unit, options, flags.is_virtual)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _compile_with_nvrtc(program: Any, unit: Unit, options: list[str], is_virtual: bool) -> Compiled:
    nvrtc = _load_nvrtc()
    for entry in unit.entries:
        _check_nvrtc(nvrtc.nvrtcAddNameExpression(program, entry.encode()))
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = _fetch_nvrtc_bytes(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
    text = _own_words(log.rstrip(b"\0").decode(errors="replace"))
    if int(status) != 0:
        words = _check_nvrtc(nvrtc.nvrtcGetErrorString(status)).decode()
        raise Refused(text or words, NAME_MAP, _FIRST_NAME)
    symbols = {
        entry: _check_nvrtc(nvrtc.nvrtcGetLoweredName(program, entry.encode())).decode()
        for entry in unit.entries
    }
    if is_virtual:
        ptx = _fetch_nvrtc_bytes(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX).rstrip(b"\0")
        return Compiled(b"", symbols, text, ptx)
    return Compiled(_fetch_nvrtc_bytes(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN), symbols, text)


def _own_words(log: str) -> str:
    """Without what NVRTC, to which no header is the system's, has against CUDA's own, and their path."""
    for folder in _nvrtc_header_folders():
        place = re.escape(f"{folder}{os.sep}")
        log = re.sub(rf"^{place}.*: warning .*\n(?:[ \t].*\n|\n)*", "", log, flags=re.MULTILINE)
        log = re.sub(rf"^{place}", "", log, flags=re.MULTILINE)
    return re.sub(r"^Remark: The warnings can be suppressed.*\n\n?", "", log, flags=re.MULTILINE).strip()


@cache
def _nvrtc_header_folders() -> tuple[Path, ...]:
    return header_folders(_nvrtc_library_path(), nvrtc_version())


def _nvrtc_library_path() -> str | None:
    """The path of the library that is loaded, where the bindings' own finder tells it."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return str(load_nvidia_dynamic_lib("nvrtc").abs_path)
    except (ImportError, RuntimeError, OSError):
        return None


def _fetch_nvrtc_bytes(program: Any, size_of: Any, get: Any) -> bytes:
    size = int(_check_nvrtc(size_of(program)))
    if size <= 1:
        # A lone zero. Python has one object for each single byte, and the bindings write into what they get.
        return b""
    data = b" " * size
    _check_nvrtc(get(program, data))
    return data


def _check_nvrtc(answer: tuple[Any, ...]) -> Any:
    """What a call returned, without its status. A bad one here is a broken machine, not a bad source."""
    if int(answer[0]) != 0:
        raise RuntimeError(f"NVRTC: {_load_nvrtc().nvrtcGetErrorString(answer[0])[1].decode()}")
    return answer[1] if len(answer) == 2 else answer[1:]


# HIP sources for NVIDIA's GPUs: HIP's own headers are given in small. What is no name (clang's vector types,
# flags) is said differently line by line, so that the compiler's words fit the user's file. What is AMD's
# alone the compiler refuses by name.
FIRST = "hip/hip_runtime.h"
# What the first of the headers defines.
PLATFORM = tuple(
    (f"__{name}__", "1") for name in ("HIP_PLATFORM_NVIDIA", "HIP", "HIPCC", "HIP_DEVICE_COMPILE")
)
_VECTOR = re.compile(
    r"\btypedef\s+(unsigned int|unsigned|int|float|unsigned short|short)\s+(\w+)\s+"
    r"__attribute__\(\(ext_vector_type\(([24])\)\)\);"
)
_SHORT = {
    "unsigned int": "uint", "unsigned": "uint", "unsigned short": "ushort",
    "int": "int", "float": "float", "short": "short",
}  # fmt: skip
_AMD_ATTRIBUTE = re.compile(r"__attribute__\(\(amdgpu_\w+\([^()]*\)\)\)")
# Flags of HIP's compilers as nvcc has them; None: it means nothing here.
_FLAGS: tuple[tuple[re.Pattern[str], str | None], ...] = (
    (re.compile(r"-ffast-math"), "-use_fast_math"),
    (re.compile(r"--?std=(c\+\+\d\d)"), r"-std=\1"),
    (re.compile(r"-fgpu-flush-denormals-to-zero"), "-ftz=true"),
    (re.compile(r"-ffp-contract=off"), "-fmad=false"),
    (re.compile(r"-ffp-contract=(?:on|fast|fast-honor-pragmas)|-O[0-3]|-w|-fno-fast-math"), None),
    (re.compile(r"--?(?:offload-arch|amdgpu-target)=[\w:+-]+|-m(?:no-)?(?:cumode|unsafe-fp-atomics)"), None),
    (re.compile(r"-f(?:no-)?(?:unroll-loops|hip-fp32-correctly-rounded-divide-sqrt)"), None),
    (re.compile(r"-mno-wavefrontsize64"), None),
)


def as_cuda(unit: Unit) -> Unit:
    """The unit in CUDA's words; one that is CUDA already as it is."""
    if unit.language != HIP.name:
        return unit
    given = {spelling for spelling, _ in unit.headers}
    headers = (*unit.headers, *(pair for pair in _hip_headers() if pair[0] not in given))
    source = _AMD_ATTRIBUTE.sub("", _VECTOR.sub(_own_vector, unit.source))
    if all(spelling != FIRST for spelling, _ in find_includes(source)):  # hiprtc has it of its own accord
        source = f'#include <{FIRST}>\n#line 1 "{unit.path}"\n{source}'
    return replace(
        unit, language="cuda", source=source, headers=headers, flags=_translate_hip_flags(unit.flags)
    )


def flags_of(kernel: Kernel) -> tuple[str, ...]:
    """A kernel's own, in CUDA's words."""
    return _translate_hip_flags(kernel.flags) if kernel.language == HIP.name else kernel.flags


def _own_vector(found: re.Match[str]) -> str:
    return f"typedef {_SHORT[found[1]]}{found[3]} {found[2]};"


def _translate_hip_flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    spelled: list[str] = []
    for flag in flags:
        pattern, spelling = next(((p, spelling) for p, spelling in _FLAGS if p.fullmatch(flag)), (None, None))
        if pattern is None:
            raise BuildFailed(
                f"the flag {flag!r} means nothing to NVIDIA's compilers, for which HIP is built here"
            )
        if spelling is not None:
            spelled.append(pattern.sub(spelling, flag))
    return tuple(spelled)


@cache
def _hip_headers() -> tuple[tuple[str, str], ...]:
    files = resources.files(__package__).joinpath("hip_headers").iterdir()
    read = {f"hip/{file.name}": file.read_text(encoding="utf-8") for file in files}
    return tuple(sorted(read.items()))


COMPILERS = {"nvrtc": compile_by_nvrtc, "nvcc": compile_by_nvcc}
NO_HOST = "NVRTC compiles device code alone, without the host's headers"

_HEADER = re.compile(r'(?:could not|cannot) open source file "([^"]+)"')
_HOST_ONLY = (
    (_HEADER, 'the header "{0}" is neither CUDA\'s own nor in a folder of `include`'),
    (re.compile(r"is not supported when compiling with NVRTC"), "a header wants a host compiler"),
    (re.compile(r"not allowed in JIT mode"), "the source has host functions"),
    (re.compile(r"requires --extended-lambda"), "the source has lambdas marked __device__"),
    (re.compile(r'identifier "(u?int\w*_t)" is undefined'), "{0} needs <cstdint>"),
    (re.compile(r'namespace "std" has no member "(\w+)"'), "std::{0} is the host library's"),
)
_NO_HOST_COMPILER = "Failed to preprocess host compiler properties"
_TOO_MUCH_SHARED = re.compile(
    r"Entry function '(\S+)' uses too much shared data \((0x\w+) bytes, (0x\w+) max\)"
)


def cuda_compilers() -> tuple[tuple[str, str], ...]:
    """Name and version of each compiler that is here, the quickest first."""
    found: list[tuple[str, str]] = []
    try:
        major, minor = nvrtc_version()
        found.append(("nvrtc", f"{major}.{minor}"))
    except Unsupported:
        pass
    if (version := nvcc_version()) is not None:
        found.append(("nvcc", version))
    return tuple(found)


def supported_architectures(compiler: str = "nvrtc") -> tuple[int, ...]:
    """Compute capabilities, 90 for sm_90, that the compiler here builds for."""
    return nvrtc_architectures() if compiler == "nvrtc" else nvcc_architectures()


def needs_host_headers(log: str) -> bool:
    """Whether a build by NVRTC failed for want of what only a host compiler has: nvcc may take the source."""
    return NO_HOST in log or _missing_host_feature(log) is not None


def build_cubin(unit: Unit, device: Device) -> KernelBinary:
    unit = as_cuda(unit)
    compiler = unit.compiler or _default_compiler()
    if compiler not in COMPILERS:
        raise Unsupported(f"CUDA has no compiler {compiler!r}: it is one of {', '.join(COMPILERS)}")
    entries.check_entries(unit)
    _check_text(unit)
    flags = read_flags(unit.flags, device.limits.capability)
    _check_architecture(compiler, device)
    try:
        compiled = COMPILERS[compiler](unit, flags)
    except entries.Refused as refused:
        raise BuildFailed(_explain_refusal(unit, refused, compiler)) from None
    return _make_cubin_binary(unit, compiled, device)


def _make_cubin_binary(unit: Unit, compiled: entries.Compiled, device: Device) -> KernelBinary:
    cubin = Cubin(compiled.cubin)
    for entry, symbol in compiled.symbols.items():
        if symbol not in cubin.kernels:
            raise BuildFailed(entries.no_such_kernel(unit, entry, "the compiler leaves no code of it"))
    symbols = [compiled.symbols[entry] for entry in unit.entries]
    return KernelBinary(
        data=entries.pack(compiled.symbols, compiled.cubin),
        # Whoever has loaded this code looks kernels up in it by these names.
        code_digest=digest_of(cubin.code_digest(symbols), repr(unit.entries)),
        resources=resources_of(cubin, compiled.symbols, compiled.log, device.limits),
        log=without_chatter(compiled.log),
    )


def _default_compiler() -> str:
    try:
        nvrtc_version()
        return "nvrtc"
    except Unsupported as error:
        if nvcc_version() is not None:
            return "nvcc"
        raise Unsupported(
            f"there is no CUDA compiler here: {error}, and there is no nvcc. Install NVRTC with "
            "pip install 'tunesmith[cuda]'"
        ) from error


def _check_text(unit: Unit) -> None:
    for name, text in ((unit.path, unit.source), *unit.headers):
        if "\0" in text:
            line = text[: text.index("\0")].count("\n") + 1
            words = "a source is text, got a zero byte: compilers stop reading there"
            raise BuildFailed(f"{name}({line}): {words}")


def _check_architecture(compiler: str, device: Device) -> None:
    known = supported_architectures(compiler)
    capability = device.limits.capability
    if known and capability not in known:
        named = f"{compiler} {dict(cuda_compilers()).get(compiler, '')}".strip()
        raise BuildFailed(
            f"{named} builds for {', '.join(f'sm_{n}' for n in known)}; {device.name} is sm_{capability}: "
            "install a version that builds for it, or choose another device with --device"
        )


def _explain_refusal(unit: Unit, refused: entries.Refused, compiler: str) -> str:
    log = without_chatter(refused.log)
    if (fault := entries.entry_fault(unit, refused)) is not None:
        return fault
    lacking = _missing_host_feature(log)
    if lacking is None and "std::" in log and standard_headers(unit.source, unit.headers):
        lacking = "the standard's headers are given to NVRTC in small, without what the source needs of them"
    if compiler == "nvrtc" and lacking is not None:
        return f'{lacking}. {NO_HOST}: build with compiler = "nvcc"\n{log}'
    if _NO_HOST_COMPILER in log:
        return f"nvcc needs a host compiler: install g++, or name one in NVCC_CCBIN\n{log}"
    if (shared := _TOO_MUCH_SHARED.search(log)) is not None:
        got, most = int(shared[2], 16), int(shared[3], 16)
        return (
            f"{shared[1]}: __shared__ arrays of a fixed size take at most {most} bytes together, got {got}: "
            f"declare them extern __shared__ and give their size as the launch's `shared`\n{log}"
        )
    return log


def _missing_host_feature(log: str) -> str | None:
    """What a source has that NVRTC has not; None where that is not what is wrong."""
    for pattern, words in _HOST_ONLY:
        if (found := pattern.search(log)) is not None:
            return words.format(*found.groups())
    return None


def _how_to_install(compiler: str) -> str:
    if compiler == "nvcc":
        return "install NVIDIA's CUDA toolkit and put nvcc on the PATH"
    return "install it with: pip install 'tunesmith[cuda]'"


def _nvrtc_advice(here: Collection[str]) -> str:
    then = "say compiler = 'nvcc' in [kernel]" if "nvcc" in here else _how_to_install("nvcc")
    return f"NVRTC has no headers of the host's C++ library: {then}, or include only what device code needs"


TOOLCHAIN = Toolchain(
    compilers=cuda_compilers,
    none_here="there is no CUDA compiler here, neither NVRTC nor nvcc",
    how_to_install=_how_to_install,
    lacks=lambda compiler, log: compiler == "nvrtc" and needs_host_headers(log),
    advice=_nvrtc_advice,
)


# nvcc lists its macros. NVRTC has no such list: a small program holds, as text, what each name in question
# is.
_PROBE = "tunesmith_macro_"
_ANSWER = re.compile(rf"\b{_PROBE}(\d+)\[\d+\] = \{{([\d, ]+)\}}")


def cuda_predefined_macros(kernel: Kernel, device: Device, names: Sequence[str]) -> tuple[Predefined, ...]:
    """Of these names, as each compiler that may build the kernel for the device has them."""
    capability = device.limits.capability
    given = PLATFORM if kernel.language == "hip" else ()
    try:
        flags = read_flags(flags_of(kernel), capability)
    except BuildFailed as error:
        return (assume_predefined("cuda", capability, f"the flags are not understood ({error})"),)
    found: list[Predefined] = []
    asked = tuple(sorted({*names, *TELL_VERSION}))
    chosen = [pair for pair in cuda_compilers() if kernel.compiler in ("", pair[0])]
    for compiler, version in chosen:
        standard = next((f for f in flags.common if f.startswith("--std=")), STANDARD)
        who = f"{compiler} {version}, {standard.removeprefix('--std=')}, {flags.architecture}"
        try:
            found.append(sorted_out((*_query_macros(compiler, flags, asked), *given), who))
        except (Refused, Unsupported) as error:
            first = (str(error).strip().splitlines() or ["it failed"])[0]
            found.append(
                assume_predefined("cuda", capability, f"{compiler} {version} does not tell ({first})")
            )
    missing = f"there is no {kernel.compiler or 'compiler'} here"
    return tuple(found) or (assume_predefined("cuda", capability, missing),)


@lru_cache(maxsize=64)
def _query_macros(compiler: str, flags: Flags, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    if compiler == "nvrtc":
        return _of_nvrtc(flags, names)
    return tuple(pair for pair in _of_nvcc(flags) if pair[0].partition("(")[0] in names)


@lru_cache(maxsize=16)
def _of_nvcc(flags: Flags) -> tuple[tuple[str, str], ...]:
    with tempfile.TemporaryDirectory(prefix="tunesmith-nvcc-") as name:
        return parse_macro_dump(dump_macros(flags, Path(name)))


def _of_nvrtc(flags: Flags, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    lines = ["#define TUNESMITH_TEXT(x) #x", "#define TUNESMITH_WORDS(x) TUNESMITH_TEXT(x)"]
    for number, name in enumerate(names):
        words = f'">" TUNESMITH_WORDS({name})'
        probe = f'extern "C" __device__ const char {_PROBE}{number}[] = {words};'
        lines += [f"#ifdef {name}", probe, "#endif"]
    unit = Unit("macros.cu", "\n".join(lines) + "\n", "cuda", (), ())
    virtual = replace(flags, architecture=flags.architecture.replace("sm_", "compute_"))
    ptx = compile_by_nvrtc(unit, virtual).ptx.decode(errors="replace")
    found = []
    for number, codes in _ANSWER.findall(ptx):
        text = bytes(int(code) for code in codes.split(",")).rstrip(b"\0").decode(errors="replace")
        found.append((names[int(number)], text.removeprefix(">").strip()))
    return tuple(sorted(found))
