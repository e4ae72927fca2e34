"""CUDA as a backend: builds here, devices and launches through the driver, each loaded on use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tunesmith.backends.backend_kind import BackendKind, CeilingKernels, late
from tunesmith.problem.languages import CUDA

if TYPE_CHECKING:
    from tunesmith.backends.backend_kind import Toolchain
    from tunesmith.backends.messages import Unit
    from tunesmith.backends.port import KernelBinary, Session
    from tunesmith.problem.device import Device


class CudaBackend:
    name = "cuda"

    def devices(self) -> tuple[Device, ...]:
        from tunesmith.backends.cuda.driver import describe_all

        return describe_all()

    def build(self, unit: Unit, device: Device) -> KernelBinary:
        from tunesmith.backends.cuda.compile import build

        return build(unit, device)

    def open(self, device: Device) -> Session:
        from tunesmith.backends.cuda.session import CudaSession

        return CudaSession(device)


def _environment(scratch: Path, _inherited: Mapping[str, str]) -> dict[str, str]:
    # NVRTC keeps what it has compiled where there is a driver, and the next time says nothing of spills.
    return {"CUDA_CACHE_PATH": str(scratch / "nv"), "CUDA_CACHE_DISABLE": "1"}


def _is_architecture(device: Device, wanted: str) -> bool:
    from tunesmith.backends.cuda.architectures import capability_named

    return device.limits.capability > 0 and capability_named(wanted) == device.limits.capability


def _toolchain() -> Toolchain:
    from tunesmith.backends.cuda.compile import TOOLCHAIN

    return TOOLCHAIN


KIND = BackendKind(
    name="cuda",
    languages=(CUDA,),
    make=lambda _argument: CudaBackend(),
    extra="cuda",
    check=late("tunesmith.backends.cuda.doctor", "findings"),
    environment=_environment,
    absent_device=late("tunesmith.backends.cuda.architectures", "absent_device"),
    architecture=lambda device: f"sm_{device.limits.capability}" if device.limits.capability else "",
    is_architecture=_is_architecture,
    toolchain=_toolchain,
    counting=late("tunesmith.backends.cuda.ncu", "NcuCounting"),
    instructions=late("tunesmith.backends.cuda.disassembly", "instructions_of"),
    ceilings=CeilingKernels("ceilings.cu", "ceilings_fp16.cu", {"fp32": 16, "fp16": 32}, (1, 4)),
)
