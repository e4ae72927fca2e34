"""What of CUDA is usable on this machine, and the one command that enables what is not."""

from __future__ import annotations

import ctypes
import sys

from tunesmith.backends.cuda import ncu, nvcc, nvrtc, toolkit
from tunesmith.backends.cuda.devices import OLDEST_DRIVER
from tunesmith.backends.port import DoctorFinding, ListDevices, Unsupported, has_module, module_finding
from tunesmith.errors import TunesmithError

INSTALL = "pip install 'tunesmith[cuda]'"
DRIVERS = "from https://www.nvidia.com/drivers"
TOOLKIT = "NVIDIA's CUDA toolkit, from https://developer.nvidia.com/cuda-downloads"
A_GPU = "a GPU that nvidia-smi -L lists; a container sees one if it is started with --gpus all"


def findings(devices: ListDevices) -> list[DoctorFinding]:
    """Building needs a compiler and its headers; checking and timing need the driver and a device too."""
    driver = _nvidia_driver()
    here = [_device(devices), *_counters()] if driver.usable else []
    small = module_finding("ml_dtypes", "comparing bfloat16 and float8", INSTALL)
    return [driver, *here, *_nvrtc(), _nvcc(), small]


def _counters() -> list[DoctorFinding]:
    """Where there is no driver there is nothing to count. Neither is run: that takes seconds."""
    what, program = "Nsight Compute (ncu)", ncu.find_ncu()
    missing = DoctorFinding(what, False, "not found: profiles do without hardware counters", TOOLKIT)
    found = DoctorFinding(what, True, program) if program else missing
    allowed, why = ncu.may_count()
    fix = ncu.LET_IN if allowed is False else ""
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
    if version.value < OLDEST_DRIVER:
        oldest = f"CUDA {OLDEST_DRIVER // 1000}"
        detail += f", older than {oldest}: CUDA kernels can be built, and cannot run"
        return DoctorFinding("NVIDIA driver", False, detail, f"a driver for {oldest} or newer, {DRIVERS}")
    return DoctorFinding("NVIDIA driver", True, detail)


def _device(devices: ListDevices) -> DoctorFinding:
    try:
        found = devices()
    except TunesmithError as error:
        fix = A_GPU if has_module("cuda.bindings") else INSTALL
        return DoctorFinding("CUDA device", False, str(error), fix)
    if not found:
        return DoctorFinding("CUDA device", False, "the driver sees no device", A_GPU)
    names = "; ".join(f"{d.name} (sm_{d.limits.capability})" for d in found)
    return DoctorFinding("CUDA device", True, names)


def _nvrtc() -> list[DoctorFinding]:
    """NVRTC and, where it is there, the headers that kernels include."""
    try:
        version = nvrtc.version()
    except Unsupported as error:
        return [DoctorFinding("NVRTC", False, str(error), INSTALL)]
    folders = toolkit.header_folders(None, version)
    detail = ", ".join(map(str, folders)) or "none found: kernels cannot include cuda_fp16.h and the like"
    return [
        DoctorFinding("NVRTC", True, ".".join(map(str, version))),
        DoctorFinding("CUDA headers", bool(folders), detail, "" if folders else INSTALL),
    ]


def _nvcc() -> DoctorFinding:
    version = nvcc.version()
    if version is not None:
        return DoctorFinding("nvcc", True, f"{version}, {toolkit.find_nvcc()}")
    detail = "not found: only sources that include the host's C++ headers need it"
    return DoctorFinding("nvcc", False, detail, TOOLKIT)
