"""What a kernel source says about its kernels and how it launches them, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Space = Literal["global", "local", "constant"]


@dataclass(frozen=True)
class Parameter:
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
    parameters: tuple[Parameter, ...]
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
