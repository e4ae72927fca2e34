"""CUDA as a backend: builds here, devices and launches through the driver, each loaded on use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tunesmith.backends.backend_kind import (
    BackendKind,
    CeilingKernels,
    DoctorFinding,
    ListDevices,
    ReadInstructions,
)
from tunesmith.problem.languages import CUDA

if TYPE_CHECKING:
    from tunesmith.backends.backend_kind import Toolchain
    from tunesmith.backends.counting import Counting
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


def _check(devices: ListDevices) -> list[DoctorFinding]:
    from tunesmith.backends.cuda.doctor import findings

    return findings(devices)


def _environment(scratch: Path, _inherited: Mapping[str, str]) -> dict[str, str]:
    # NVRTC keeps what it has compiled where there is a driver, and the next time says nothing of spills.
    return {"CUDA_CACHE_PATH": str(scratch / "nv"), "CUDA_CACHE_DISABLE": "1"}


def _absent_device(wanted: str | None) -> Device:
    from tunesmith.backends.cuda.architectures import absent_device

    return absent_device(wanted)


def _architecture(device: Device) -> str:
    return f"sm_{device.limits.capability}" if device.limits.capability else ""


def _is_architecture(device: Device, wanted: str) -> bool:
    from tunesmith.backends.cuda.architectures import capability_named

    return device.limits.capability > 0 and capability_named(wanted) == device.limits.capability


def _toolchain() -> Toolchain:
    from tunesmith.backends.cuda.compile import TOOLCHAIN

    return TOOLCHAIN


def _counting(worker: Sequence[str], environment: Mapping[str, str], scratch: Path) -> Counting:
    from tunesmith.backends.cuda.ncu import NcuCounting

    return NcuCounting(tuple(worker), environment, scratch)


def _instructions() -> ReadInstructions:
    from tunesmith.backends.cuda.disassembly import instructions_of

    return instructions_of


KIND = BackendKind(
    name="cuda",
    languages=(CUDA,),
    make=lambda _argument: CudaBackend(),
    extra="cuda",
    check=_check,
    environment=_environment,
    absent_device=_absent_device,
    architecture=_architecture,
    is_architecture=_is_architecture,
    toolchain=_toolchain,
    counting=_counting,
    instructions=_instructions,
    ceilings=CeilingKernels("ceilings.cu", "ceilings_fp16.cu", {"fp32": 16, "fp16": 32}, (1, 4)),
)
