"""HIP builds: by hiprtc where AMD's runtime is, by clang anywhere; flags are those of both."""

from __future__ import annotations

import re
from collections.abc import Collection

from tunesmith.backends.hip import clang, hiprtc
from tunesmith.backends.hip.architectures import ARCHITECTURES, AmdArchitecture
from tunesmith.backends.hip.code_object import TABLE, CodeObject, pack, resources_of
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, KernelBinary, Toolchain, Unsupported
from tunesmith.problem.device import Device
from tunesmith.text import digest_of

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


def compilers() -> tuple[tuple[str, str], ...]:
    """Name and version of each compiler that is here, the quickest first."""
    found = [("hiprtc", version)] if (version := hiprtc.version()) else []
    own = clang.tools()
    return (*found, *(() if isinstance(own, str) else (("clang", own.version),)))


def read_flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Without those that mean nothing to one code object; anything unknown is refused."""
    for flag in flags:
        if not _ALLOWED.fullmatch(flag) and not _DROPPED.fullmatch(flag):
            raise BuildFailed(f"the flag {flag!r} is not one that shapes a HIP kernel: see docs/hip.md")
    return tuple(flag for flag in flags if _ALLOWED.fullmatch(flag))


def build(unit: Unit, device: Device) -> KernelBinary:
    for entry in unit.entries:
        if not _ENTRY.fullmatch(entry):
            raise BuildFailed(f"an entry is the name of a kernel as in C++, got {entry!r}")
    own = ARCHITECTURES[device.target]
    options = read_flags(unit.flags)
    chosen = unit.compiler or next((name for name, _ in compilers()), "")
    if chosen == "hiprtc":
        data, symbols, log = hiprtc.compile_unit(unit, options, own)
        code = CodeObject(data)
    elif chosen == "clang":
        data, log = _by_clang(unit, options, own)
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


def _by_clang(unit: Unit, options: tuple[str, ...], own: AmdArchitecture) -> tuple[bytes, str]:
    try:
        return clang.compile_unit(unit, options, own)
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
    missing = clang.tools()
    return f"hiprtc comes with ROCm and hip-python; for clang, {missing if isinstance(missing, str) else ''}"


def _how_to_install(compiler: str) -> str:
    if compiler == "hiprtc":
        return "install ROCm, and its bindings with: pip install 'tunesmith[hip]'"
    found = clang.tools()
    return found if isinstance(found, str) else f"it is here: {found.program}"


def _advice(here: Collection[str]) -> str:
    then = "say compiler = 'clang' in [kernel]" if "clang" in here else _how_to_install("clang")
    return f"hiprtc has no headers of the host's C++ library: {then}, or include only what device code needs"


TOOLCHAIN = Toolchain(
    compilers=compilers,
    none_here="there is no HIP compiler here, neither hiprtc nor clang with ROCm's device libraries",
    how_to_install=_how_to_install,
    lacks=lambda compiler, log: compiler == "hiprtc" and "file not found" in log,
    advice=_advice,
)
