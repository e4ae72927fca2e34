"""CUDA: sources to cubins through NVRTC or nvcc, kernels through NVIDIA's driver. Bindings load on use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tunesmith.backends.cuda import compile, devices, doctor, flags, ncu, sass
from tunesmith.backends.cuda.session import CudaSession
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import BackendKind, CeilingKernels, KernelBinary, Session, TuningFlags
from tunesmith.problem.device import Device
from tunesmith.problem.languages import CUDA


class CudaBackend:
    name = "cuda"

    def devices(self) -> tuple[Device, ...]:
        return devices.describe_all()

    def build(self, unit: Unit, device: Device) -> KernelBinary:
        return compile.build(unit, device)

    def open(self, device: Device) -> Session:
        return CudaSession(device)


def _environment(scratch: Path, _inherited: Mapping[str, str]) -> dict[str, str]:
    # NVRTC keeps what it has compiled where there is a driver, and the next time says nothing of spills.
    return {"CUDA_CACHE_PATH": str(scratch / "nv"), "CUDA_CACHE_DISABLE": "1"}


KIND = BackendKind(
    name="cuda",
    languages=(CUDA,),
    make=lambda _argument: CudaBackend(),
    extra="cuda",
    check=doctor.findings,
    environment=_environment,
    absent_device=devices.absent_device,
    architecture=lambda device: f"sm_{device.limits.capability}" if device.limits.capability else "",
    is_architecture=devices.is_architecture,
    toolchain=compile.TOOLCHAIN,
    flags=TuningFlags("--maxrregcount={}", "-Xptxas=--register-usage-level={}"),
    host_command=flags.host_command,
    counting=ncu.NcuCounting,
    instructions=sass.instructions_of,
    ceilings=CeilingKernels("ceilings.cu", "ceilings_fp16.cu", {"fp32": 16, "fp16": 32}, (1, 4)),
)
