"""What the CUDA compilers here define of their own accord, asked of them.

nvcc lists its macros. NVRTC has no such list: a small program holds, as text, what each name in question is.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tunesmith.backends.cuda import nvcc, nvrtc
from tunesmith.backends.cuda.compile import compilers
from tunesmith.backends.cuda.entries import Refused
from tunesmith.backends.cuda.flags import STANDARD, Flags, read_flags
from tunesmith.backends.cuda.hip_sources import PLATFORM, flags_of
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed, Unsupported
from tunesmith.csource.predefined import TELL_VERSION, Predefined, assumed, listed, sorted_out
from tunesmith.problem.device import Device
from tunesmith.problem.problem import Kernel

_PROBE = "tunesmith_macro_"
_ANSWER = re.compile(rf"\b{_PROBE}(\d+)\[\d+\] = \{{([\d, ]+)\}}")


def predefined(kernel: Kernel, device: Device, names: Sequence[str]) -> tuple[Predefined, ...]:
    """Of these names, as each compiler that may build the kernel for the device has them."""
    capability = device.limits.capability
    given = PLATFORM if kernel.language == "hip" else ()
    try:
        flags = read_flags(flags_of(kernel), capability)
    except BuildFailed as error:
        return (assumed("cuda", capability, f"the flags are not understood ({error})"),)
    found: list[Predefined] = []
    asked = tuple(sorted({*names, *TELL_VERSION}))
    chosen = [pair for pair in compilers() if kernel.compiler in ("", pair[0])]
    for compiler, version in chosen:
        standard = next((f for f in flags.common if f.startswith("--std=")), STANDARD)
        who = f"{compiler} {version}, {standard.removeprefix('--std=')}, {flags.architecture}"
        try:
            found.append(sorted_out((*_asked(compiler, flags, asked), *given), who))
        except (Refused, Unsupported) as error:
            first = (str(error).strip().splitlines() or ["it failed"])[0]
            found.append(assumed("cuda", capability, f"{compiler} {version} does not tell ({first})"))
    missing = f"there is no {kernel.compiler or 'compiler'} here"
    return tuple(found) or (assumed("cuda", capability, missing),)


@lru_cache(maxsize=64)
def _asked(compiler: str, flags: Flags, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    if compiler == "nvrtc":
        return _of_nvrtc(flags, names)
    return tuple(pair for pair in _of_nvcc(flags) if pair[0].partition("(")[0] in names)


@lru_cache(maxsize=16)
def _of_nvcc(flags: Flags) -> tuple[tuple[str, str], ...]:
    with tempfile.TemporaryDirectory(prefix="tunesmith-nvcc-") as name:
        return listed(nvcc.macros(flags, Path(name)))


def _of_nvrtc(flags: Flags, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    lines = ["#define TUNESMITH_TEXT(x) #x", "#define TUNESMITH_WORDS(x) TUNESMITH_TEXT(x)"]
    for number, name in enumerate(names):
        words = f'">" TUNESMITH_WORDS({name})'
        own = f'extern "C" __device__ const char {_PROBE}{number}[] = {words};'
        lines += [f"#ifdef {name}", own, "#endif"]
    unit = Unit("macros.cu", "\n".join(lines) + "\n", "cuda", (), ())
    virtual = replace(flags, architecture=flags.architecture.replace("sm_", "compute_"))
    ptx = nvrtc.compile_unit(unit, virtual).ptx.decode(errors="replace")
    found = []
    for number, codes in _ANSWER.findall(ptx):
        text = bytes(int(code) for code in codes.split(",")).rstrip(b"\0").decode(errors="replace")
        found.append((names[int(number)], text.removeprefix(">").strip()))
    return tuple(sorted(found))
