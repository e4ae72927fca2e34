"""HIP sources for NVIDIA's GPUs: HIP's own headers are given in small, and what is left is CUDA.

Names are the headers' business. What is no name (clang's vector types, flags) is said differently here, line
by line, so that the compiler's words fit the user's file. What is AMD's alone the compiler refuses by name.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from importlib import resources

from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BuildFailed
from tunesmith.problem.languages import HIP
from tunesmith.problem.problem import Kernel
from tunesmith.problem.template_source import includes

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
    headers = (*unit.headers, *(pair for pair in _headers() if pair[0] not in given))
    source = _AMD_ATTRIBUTE.sub("", _VECTOR.sub(_own_vector, unit.source))
    if all(spelling != FIRST for spelling, _ in includes(source)):  # hiprtc has it of its own accord
        source = f'#include <{FIRST}>\n#line 1 "{unit.path}"\n{source}'
    return replace(unit, language="cuda", source=source, headers=headers, flags=_flags(unit.flags))


def flags_of(kernel: Kernel) -> tuple[str, ...]:
    """A kernel's own, in CUDA's words."""
    return _flags(kernel.flags) if kernel.language == HIP.name else kernel.flags


def _own_vector(found: re.Match[str]) -> str:
    return f"typedef {_SHORT[found[1]]}{found[3]} {found[2]};"


def _flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    spelled: list[str] = []
    for flag in flags:
        pattern, own = next(((p, own) for p, own in _FLAGS if p.fullmatch(flag)), (None, None))
        if pattern is None:
            raise BuildFailed(
                f"the flag {flag!r} means nothing to NVIDIA's compilers, for which HIP is built here"
            )
        if own is not None:
            spelled.append(pattern.sub(own, flag))
    return tuple(spelled)


@cache
def _headers() -> tuple[tuple[str, str], ...]:
    files = resources.files(__package__).joinpath("hip_headers").iterdir()
    read = {f"hip/{file.name}": file.read_text(encoding="utf-8") for file in files}
    return tuple(sorted(read.items()))
