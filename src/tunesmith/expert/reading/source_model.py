"""What a kernel source says about its kernels and how it launches them, as plain values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tunesmith.csource.nodes import Language
from tunesmith.csource.types import PRIMITIVE, canonical

Space = Literal["global", "local", "constant"]


@dataclass(frozen=True)
class KernelParameter:
    """One kernel parameter. `written` and `read` are None where the body hides what it does with it."""

    name: str
    type: str  # as written, without address space and restrict: "const float4*"
    base: str  # the type alone: "float4"
    element: str | None  # in the problem file's vocabulary; None when only the user knows
    vector: int  # elements per base type: 4 for float4
    pointer: bool
    const: bool
    space: Space | None
    restrict: bool
    written: bool | None
    read: bool | None


@dataclass(frozen=True)
class KernelSignature:
    name: str
    namespace: str  # "" or "a::b"
    template_params: tuple[str, ...]
    parameters: tuple[KernelParameter, ...]
    line: int
    launch_bounds: tuple[str, ...] | None = None
    reqd_work_group_size: tuple[str, ...] | None = None
    dynamic_shared: bool = False  # the body uses shared memory whose size the launch gives
    conditional: bool = False  # an #if inside the header: the parameters are those of its first branch
    definitions: int = 1  # more than one: the same name again, under another #if or as a specialisation

    @property
    def qualified_name(self) -> str:
        return f"{self.namespace}::{self.name}" if self.namespace else self.name


@dataclass(frozen=True)
class LaunchSite:
    """One launch in host code. Geometry and arguments are C expressions, dim3 already taken apart."""

    kernel: str
    template_args: str | None
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared: str | None
    arguments: tuple[str, ...]
    line: int
    settled: tuple[tuple[str, str], ...]  # local variables with one value, and that value
    local: frozenset[str]  # every local name: it hides a constant of the file
    changed: frozenset[str]  # local names that take more than one value


@dataclass(frozen=True)
class SourceModel:
    kernels: tuple[KernelSignature, ...]
    launches: tuple[LaunchSite, ...]
    constants: tuple[tuple[str, str], ...]  # file-level constants and simple macros, as C expressions


_BOTH = {
    "float": "float32", "double": "float64", "half": "float16", "bool": "uint8",
    "char": "int8", "signed char": "int8", "int8_t": "int8",
    "unsigned char": "uint8", "uint8_t": "uint8",
    "short": "int16", "int16_t": "int16", "unsigned short": "uint16", "uint16_t": "uint16",
    "int": "int32", "int32_t": "int32", "unsigned int": "uint32", "uint32_t": "uint32",
    "long": "int64", "int64_t": "int64", "unsigned long": "uint64", "uint64_t": "uint64",
    "long long": "int64", "unsigned long long": "uint64", "size_t": "uint64", "ptrdiff_t": "int64",
}  # fmt: skip
_CUDA = {
    "__half": "float16", "_Float16": "float16", "half_t": "float16", "Half": "float16",
    "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16", "hip_bfloat16": "bfloat16",
    "__hip_bfloat16": "bfloat16", "bfloat16_t": "bfloat16", "BFloat16": "bfloat16", "__bf16": "bfloat16",
    "__nv_fp8_e4m3": "float8_e4m3", "__nv_fp8_e5m2": "float8_e5m2",
    "__hip_fp8_e4m3": "float8_e4m3", "__hip_fp8_e5m2": "float8_e5m2",
    "longlong": "int64", "ulonglong": "uint64",
}  # fmt: skip
_PAIRS = {
    "half2": "float16", "__half2": "float16", "__nv_bfloat162": "bfloat16", "nv_bfloat162": "bfloat16",
    "__hip_bfloat162": "bfloat16",
}  # fmt: skip
_VECTOR = re.compile(r"(u?char|u?short|u?int|u?long|u?longlong|half|float|double)(2|3|4|8|16)")
TYPE_WORDS = PRIMITIVE | {"half"}


def elements_of(base: str, language: Language) -> tuple[str | None, int]:
    """The element type of `base`, or None when it has none of ours, and how many elements `base` holds."""
    name = base.split("::")[-1].strip()  # a namespace in front says nothing of ours
    plain = _plain(name, language)
    if plain is not None:
        return plain, 1
    if language != "opencl" and name in _PAIRS:
        return _PAIRS[name], 2
    match = _VECTOR.fullmatch(name)
    if match is not None:
        element = _plain(match[1], language)
        return (element, int(match[2])) if element is not None else (None, 1)
    return None, 1


def _plain(name: str, language: Language) -> str | None:
    name = canonical(name, "opencl")
    if name in _BOTH:
        return _BOTH[name]
    return None if language == "opencl" else _CUDA.get(name)
