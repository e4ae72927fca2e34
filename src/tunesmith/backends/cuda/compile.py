"""CUDA builds: the compilers that are here, and a source to a binary by one of them, without a driver."""

from __future__ import annotations

import re
from collections.abc import Collection

from tunesmith.backends.cuda import entries, nvcc, nvrtc
from tunesmith.backends.cuda.cubin import Cubin, resources_of, without_chatter
from tunesmith.backends.cuda.flags import read_flags
from tunesmith.backends.cuda.hip_sources import as_cuda
from tunesmith.backends.cuda.toolkit import standard_headers
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, KernelBinary, Toolchain, Unsupported
from tunesmith.problem.device import Device
from tunesmith.text import digest_of

COMPILERS = {"nvrtc": nvrtc.compile_unit, "nvcc": nvcc.compile_unit}
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


def compilers() -> tuple[tuple[str, str], ...]:
    """Name and version of each compiler that is here, the quickest first."""
    found: list[tuple[str, str]] = []
    try:
        major, minor = nvrtc.version()
        found.append(("nvrtc", f"{major}.{minor}"))
    except Unsupported:
        pass
    if (version := nvcc.version()) is not None:
        found.append(("nvcc", version))
    return tuple(found)


def supported_architectures(compiler: str = "nvrtc") -> tuple[int, ...]:
    """Compute capabilities, 90 for sm_90, that the compiler here builds for."""
    return nvrtc.architectures() if compiler == "nvrtc" else nvcc.architectures()


def needs_host_headers(log: str) -> bool:
    """Whether a build by NVRTC failed for want of what only a host compiler has: nvcc may take the source."""
    return NO_HOST in log or _lacking(log) is not None


def build(unit: Unit, device: Device) -> KernelBinary:
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
        raise BuildFailed(_words(unit, refused, compiler)) from None
    return _binary(unit, compiled, device)


def _binary(unit: Unit, compiled: entries.Compiled, device: Device) -> KernelBinary:
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
        nvrtc.version()
        return "nvrtc"
    except Unsupported as error:
        if nvcc.version() is not None:
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
        named = f"{compiler} {dict(compilers()).get(compiler, '')}".strip()
        raise BuildFailed(
            f"{named} builds for {', '.join(f'sm_{n}' for n in known)}; {device.name} is sm_{capability}: "
            "install a version that builds for it, or choose another device with --device"
        )


def _words(unit: Unit, refused: entries.Refused, compiler: str) -> str:
    log = without_chatter(refused.log)
    if (fault := entries.entry_fault(unit, refused)) is not None:
        return fault
    lacking = _lacking(log)
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


def _lacking(log: str) -> str | None:
    """What a source has that NVRTC has not; None where that is not what is wrong."""
    for pattern, words in _HOST_ONLY:
        if (found := pattern.search(log)) is not None:
            return words.format(*found.groups())
    return None


def _how_to_install(compiler: str) -> str:
    if compiler == "nvcc":
        return "install NVIDIA's CUDA toolkit and put nvcc on the PATH"
    return "install it with: pip install 'tunesmith[cuda]'"


def _advice(here: Collection[str]) -> str:
    then = "say compiler = 'nvcc' in [kernel]" if "nvcc" in here else _how_to_install("nvcc")
    return f"NVRTC has no headers of the host's C++ library: {then}, or include only what device code needs"


TOOLCHAIN = Toolchain(
    compilers=compilers,
    none_here="there is no CUDA compiler here, neither NVRTC nor nvcc",
    how_to_install=_how_to_install,
    lacks=lambda compiler, log: compiler == "nvrtc" and needs_host_headers(log),
    advice=_advice,
)
