"""CUDA: sources to cubins through NVRTC or nvcc, kernels through NVIDIA's driver. Bindings load on use."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from pathlib import Path

from tunesmith.backends import port
from tunesmith.backends.cuda import compile, cubin, devices, flags, sass, toolkit, tools
from tunesmith.backends.cuda.session import CudaSession
from tunesmith.backends.messages import Unit
from tunesmith.backends.port import DoctorFinding
from tunesmith.base.errors import TunesmithError
from tunesmith.problem.device import CUDA, HIP, Device

DRIVERS = "from https://www.nvidia.com/drivers"
TOOLKIT = "NVIDIA's CUDA toolkit, from https://developer.nvidia.com/cuda-downloads"
A_GPU = "a GPU that nvidia-smi -L lists; a container sees one if it is started with --gpus all"


class CudaBackend:
    name = "cuda"

    def devices(self) -> tuple[Device, ...]:
        return devices.describe_all()

    def card(self, device: Device) -> str:
        return devices.uuid_of(int(device.id))

    def build(self, unit: Unit, device: Device) -> port.KernelBinary:
        return compile.build_cubin(unit, device)

    def open(self, device: Device) -> port.Session:
        return CudaSession(device)


def _cuda_worker_environment(scratch: Path, _inherited: Mapping[str, str]) -> dict[str, str]:
    # NVRTC keeps what it has compiled where there is a driver, and the next time says nothing of spills.
    return {"CUDA_CACHE_PATH": str(scratch / "nv"), "CUDA_CACHE_DISABLE": "1"}


def _check_cuda(list_devices: port.ListDevices) -> list[DoctorFinding]:
    """Building needs a compiler and its headers; checking and timing need the driver and a device too."""
    driver = _nvidia_driver()
    here = (
        [_check_cuda_device(list_devices), *_check_counters(), tools.SANITIZER.doctor()]
        if driver.usable
        else []
    )
    small = port.module_finding("ml_dtypes", "comparing bfloat16 and float8", KIND.install)
    return [driver, *here, *_check_nvrtc(), _check_nvcc(), small]


def _check_counters() -> list[DoctorFinding]:
    """Where there is no driver there is nothing to count. Neither is run: that takes seconds."""
    what, program = "Nsight Compute (ncu)", tools.find_ncu()
    missing = DoctorFinding(what, False, "not found: profiles do without hardware counters", TOOLKIT)
    found = DoctorFinding(what, True, program) if program else missing
    allowed, why = tools.may_count()
    fix = tools.LET_IN if allowed is False else ""
    return [found, DoctorFinding("hardware counters", allowed is not False, why, fix)]


def _nvidia_driver() -> DoctorFinding:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        detail = f"{name} is not there: CUDA kernels can be built, and cannot run"
        return DoctorFinding("NVIDIA driver", False, detail, f"NVIDIA's driver, {DRIVERS}")
    version = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    detail = f"for CUDA {version.value // 1000}.{version.value % 1000 // 10}"
    if version.value < devices.OLDEST_DRIVER:
        oldest = f"CUDA {devices.OLDEST_DRIVER // 1000}"
        detail += f", older than {oldest}: CUDA kernels can be built, and cannot run"
        return DoctorFinding("NVIDIA driver", False, detail, f"a driver for {oldest} or newer, {DRIVERS}")
    return DoctorFinding("NVIDIA driver", True, detail)


def _check_cuda_device(list_devices: port.ListDevices) -> DoctorFinding:
    try:
        found = list_devices()
    except TunesmithError as error:
        fix = A_GPU if port.has_module("cuda.bindings") else KIND.install
        return DoctorFinding("CUDA device", False, str(error), fix)
    if not found:
        return DoctorFinding("CUDA device", False, "the driver sees no device", A_GPU)
    names = "; ".join(f"{d.name} (sm_{d.limits.capability})" for d in found)
    return DoctorFinding("CUDA device", True, names)


def _check_nvrtc() -> list[DoctorFinding]:
    """NVRTC and, where it is there, the headers that kernels include."""
    try:
        version = compile.nvrtc_version()
    except port.Unsupported as error:
        return [DoctorFinding("NVRTC", False, str(error), KIND.install)]
    folders = toolkit.header_folders(None, version)
    detail = ", ".join(map(str, folders)) or "none found: kernels cannot include cuda_fp16.h and the like"
    return [
        DoctorFinding("NVRTC", True, ".".join(map(str, version))),
        DoctorFinding("CUDA headers", bool(folders), detail, "" if folders else KIND.install),
    ]


def _check_nvcc() -> DoctorFinding:
    version = compile.nvcc_version()
    if version is not None:
        return DoctorFinding("nvcc", True, f"{version}, {toolkit.find_nvcc()}")
    detail = "not found: only sources that include the host's C++ headers need it"
    return DoctorFinding("nvcc", False, detail, TOOLKIT)


KIND = port.BackendKind(
    name="cuda",
    languages=(CUDA, HIP),  # HIP through headers of ours
    make=lambda _argument: CudaBackend(),
    extra="cuda",
    packages=("cuda-bindings", "nvidia-cuda-nvrtc"),
    check=_check_cuda,
    environment=_cuda_worker_environment,
    inherits=("CUDA_*", "NVIDIA_*", "NVCC_*"),
    devices=("/dev/nvidia*",),
    readable=toolkit.cuda_folders,
    absent_device=devices.absent_device,
    is_architecture=devices.is_architecture,
    toolchain=compile.TOOLCHAIN,
    macros=compile.cuda_predefined_macros,
    flags=port.TuningFlags("--maxrregcount={}", "-Xptxas=--register-usage-level={}"),
    host_command=flags.host_command,
    counting=tools.NcuCounting,
    sanitizer=tools.SANITIZER,
    instructions=sass.instructions_of,
    portable=port.PortableForm("cubin", cubin.unpack, cubin.pack),
    ceilings=port.CeilingKernels("ceilings.cu", "ceilings_fp16.cu", {"fp32": 16, "fp16": 32}, (1, 4)),
)
