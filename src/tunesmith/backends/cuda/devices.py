"""NVIDIA's GPUs: as the driver describes them, loaded on use and every answer checked; or from their data
sheets, so that kernels can be built for one that is not here. Where a driver can be asked, it is.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from tunesmith.backends.port import DeviceLost, LaunchFailed, OutOfMemory, Unsupported
from tunesmith.base.errors import BadInput
from tunesmith.problem.device import AllocationUnits, Clock, Device, Limits


@cache
def driver() -> Any:
    """The bindings of an initialised driver, or Unsupported with the reason there is none."""
    try:
        from cuda.bindings import driver as bindings
    except ImportError as error:
        raise Unsupported(f"cuda-bindings cannot be loaded: {error}") from error
    try:
        (status,) = bindings.cuInit(0)
    except (RuntimeError, OSError) as error:  # how the bindings say that libcuda.so.1 is not there
        raise Unsupported("there is no NVIDIA driver: libcuda cannot be loaded") from error
    if status == bindings.CUresult.CUDA_ERROR_NO_DEVICE:
        raise Unsupported("the NVIDIA driver sees no device")
    if status != bindings.CUresult.CUDA_SUCCESS:
        raise Unsupported(f"the NVIDIA driver does not start: {driver_error_text(bindings, status)}")
    return bindings


_LOST = tuple(  # what no kernel can cause
    f"CUDA_ERROR_{name}"
    for name in ("NO_DEVICE", "DEVICE_UNAVAILABLE", "ECC_UNCORRECTABLE", "NVLINK_UNCORRECTABLE")
)


def check_cuda(answer: tuple[Any, ...]) -> Any:
    """What a driver call returned, without its status; a bad status is raised as what it means."""
    status = answer[0]
    if int(status) != 0:
        cu = driver()
        text = driver_error_text(cu, status)
        if status == cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise OutOfMemory(text)
        if getattr(status, "name", "") in _LOST:
            raise DeviceLost(text)
        raise LaunchFailed(text)
    return answer[1] if len(answer) == 2 else answer[1:]


def driver_error_text(cu: Any, status: Any) -> str:
    name, text = (cu.cuGetErrorName(status), cu.cuGetErrorString(status))
    known = [part[1].decode() for part in (name, text) if int(part[0]) == 0 and part[1]]
    return ": ".join(known) or f"CUDA error {int(status)}"


OLDEST_DRIVER = 13000  # what the bindings speak; a driver of the same major version runs newer builds too


def describe_all() -> tuple[Device, ...]:
    cu = driver()
    version = int(check_cuda(cu.cuDriverGetVersion()))
    if version < OLDEST_DRIVER:
        raise Unsupported(
            f"the NVIDIA driver is for CUDA {_format_cuda_version(version)}, older than the "
            "toolkit: kernels are built "
            f"for CUDA {_format_cuda_version(OLDEST_DRIVER)}. Install a newer driver"
        )
    return tuple(
        _describe_cuda_device(number, version) for number in range(int(check_cuda(cu.cuDeviceGetCount())))
    )


def _describe_cuda_device(number: int, version: int) -> Device:
    cu = driver()
    handle = check_cuda(cu.cuDeviceGet(number))

    def get(name: str) -> int:
        attribute: Any = getattr(cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(check_cuda(cu.cuDeviceGetAttribute(attribute, handle)))

    return Device(
        backend="cuda",
        id=str(number),
        name=check_cuda(cu.cuDeviceGetName(256, handle)).partition(b"\0")[0].decode(errors="replace"),
        platform=PLATFORM,
        driver=f"CUDA {_format_cuda_version(version)}",
        kind="gpu",
        inspects=True,
        limits=_cuda_limits(handle, get),
    )


def _cuda_limits(handle: Any, get: Callable[[str], int]) -> Limits:
    memory = int(check_cuda(driver().cuDeviceTotalMem(handle)))
    capability = 10 * get("COMPUTE_CAPABILITY_MAJOR") + get("COMPUTE_CAPABILITY_MINOR")
    # Kilohertz and bits; two transfers a cycle.
    bandwidth = 2e3 * get("MEMORY_CLOCK_RATE") * get("GLOBAL_MEMORY_BUS_WIDTH") / 8
    return Limits(
        max_threads=get("MAX_THREADS_PER_BLOCK"),
        max_block=(get("MAX_BLOCK_DIM_X"), get("MAX_BLOCK_DIM_Y"), get("MAX_BLOCK_DIM_Z")),
        max_grid=(get("MAX_GRID_DIM_X"), get("MAX_GRID_DIM_Y"), get("MAX_GRID_DIM_Z")),
        shared=get("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        sms=get("MULTIPROCESSOR_COUNT"),
        warp=get("WARP_SIZE"),
        llc=get("L2_CACHE_SIZE"),
        memory=memory,
        max_allocation=memory,
        alignment=1,
        pin_bandwidth=bandwidth or None,
        capability=capability,
        registers_per_block=get("MAX_REGISTERS_PER_BLOCK"),
        registers_per_sm=get("MAX_REGISTERS_PER_MULTIPROCESSOR"),
        shared_per_sm=get("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        shared_reserved=get("RESERVED_SHARED_MEMORY_PER_BLOCK"),
        threads_per_sm=get("MAX_THREADS_PER_MULTIPROCESSOR"),
        blocks_per_sm=get("MAX_BLOCKS_PER_MULTIPROCESSOR"),
        units=allocation_units(capability),
    )


def uuid_of(number: int) -> str:
    """Which card it is, whatever number it has there."""
    return bytes(check_cuda(driver().cuDeviceGetUuid(check_cuda(driver().cuDeviceGet(number)))).bytes).hex()


def _format_cuda_version(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


# Power cap, hardware slowdown, both kinds of heat, power brake. Idle and chosen clocks are no throttling.
THROTTLED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


def is_throttled(number: int) -> bool | None:
    """Whether that device's clock is being held down right now; None where nobody can say."""
    library, handle = _open_nvml(number)
    reasons = ctypes.c_ulonglong()
    if library is None or library.nvmlDeviceGetCurrentClocksThrottleReasons(handle, ctypes.byref(reasons)):
        return None
    return bool(reasons.value & THROTTLED)


def neighbours_of(number: int) -> str:
    """How many processes have that device open for computing, this one too, in words."""
    library, handle = _open_nvml(number)
    count = ctypes.c_uint(0)
    list_processes = getattr(library, "nvmlDeviceGetComputeRunningProcesses_v3", None)
    if list_processes is None or list_processes(handle, ctypes.byref(count), None) not in (0, NVML_TOO_SMALL):
        return ""
    return f"NVML counts {count.value} processes on the device" if count.value > 1 else ""


NVML_TOO_SMALL = 7  # there is no room for the list, whose length is told
CLOCKS = {"SM": 1, "memory": 2}  # as NVML numbers them


def clocks_of(number: int) -> tuple[Clock, ...]:
    """How fast that device runs right now, and may at most; empty where nobody can say."""
    library, handle = _open_nvml(number)
    found = []
    for part, kind in CLOCKS.items() if library is not None else ():
        now, most = ctypes.c_uint(), ctypes.c_uint()
        if library.nvmlDeviceGetClockInfo(handle, kind, ctypes.byref(now)):
            continue
        is_limited = library.nvmlDeviceGetMaxClockInfo(handle, kind, ctypes.byref(most)) == 0
        found.append(Clock(part, now.value, most.value if is_limited else None))
    return tuple(found)


@cache
def _open_nvml(number: int) -> tuple[Any, ctypes.c_void_p]:
    cu = driver()
    handle = ctypes.c_void_p()
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None, handle
    # By bus address: the two libraries may number devices differently.
    bus = check_cuda(cu.cuDeviceGetPCIBusId(32, check_cuda(cu.cuDeviceGet(number)))).partition(b"\0")[0]
    if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(handle)):
        return None, handle
    return library, handle


PLATFORM = "NVIDIA CUDA"
KIB, MIB, GB = 1 << 10, 1 << 20, 10**9
REGISTERS = 65536
DEFAULT = "H200"


@dataclass(frozen=True)
class Architecture:
    """What all GPUs of one compute capability have in common."""

    shared: int  # KiB of shared memory per block, when asked for
    shared_per_sm: int  # KiB
    shared_reserved: int  # KiB the system takes from every block
    threads_per_sm: int
    blocks_per_sm: int
    example: str  # the GPU that stands for it where only the capability is named


@dataclass(frozen=True)
class Gpu:
    name: str  # as the driver calls it
    capability: int
    sms: int
    llc: int  # MiB of L2 cache
    memory: int  # GB
    bandwidth: int  # GB/s


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
ARCHITECTURES = {
    75: Architecture(64, 64, 0, 1024, 16, "T4"),
    80: Architecture(163, 164, 1, 2048, 32, "A100"),
    86: Architecture(99, 100, 1, 1536, 16, "A10"),
    87: Architecture(163, 164, 1, 1536, 16, "Orin"),
    89: Architecture(99, 100, 1, 1536, 24, "L40S"),
    90: Architecture(227, 228, 1, 2048, 32, "H200"),
    100: Architecture(227, 228, 1, 2048, 32, "B200"),
    103: Architecture(227, 228, 1, 2048, 32, "B300"),
    120: Architecture(99, 100, 1, 1536, 24, "RTX 5090"),
    121: Architecture(99, 100, 1, 1536, 24, "GB10"),
}

GPUS = {
    "T4": Gpu("Tesla T4", 75, 40, 4, 16, 320),
    "A100": Gpu("NVIDIA A100-SXM4-80GB", 80, 108, 40, 80, 2039),
    "A10": Gpu("NVIDIA A10", 86, 72, 6, 24, 600),
    "Orin": Gpu("Orin", 87, 16, 4, 64, 204),
    "L4": Gpu("NVIDIA L4", 89, 58, 48, 24, 300),
    "L40S": Gpu("NVIDIA L40S", 89, 142, 96, 48, 864),
    "RTX 4090": Gpu("NVIDIA GeForce RTX 4090", 89, 128, 72, 24, 1008),
    "H100": Gpu("NVIDIA H100 80GB HBM3", 90, 132, 50, 80, 3350),
    "H200": Gpu("NVIDIA H200", 90, 132, 50, 141, 4800),
    "GH200": Gpu("NVIDIA GH200 480GB", 90, 132, 50, 96, 4000),
    "B200": Gpu("NVIDIA B200", 100, 148, 126, 180, 8000),
    "B300": Gpu("NVIDIA B300", 103, 148, 126, 270, 8000),
    "RTX 5090": Gpu("NVIDIA GeForce RTX 5090", 120, 170, 96, 32, 1792),
    "GB10": Gpu("NVIDIA GB10", 121, 48, 24, 128, 273),
}

_CAPABILITY = re.compile(r"(?:sm_?|compute_?)?(\d{2,3})[af]?|(\d{1,2})\.(\d)")


def absent_device(wanted: str | None) -> Device:
    """A GPU by name ("H200", "nvidia h200") or by its architecture ("sm_90", "90"); None: the usual one."""
    text = DEFAULT if wanted is None else wanted
    capability = capability_named(text)
    if capability in ARCHITECTURES:
        return _absent_cuda_device(f"sm_{capability}", GPUS[ARCHITECTURES[capability].example])
    short = _by_name(text)
    if short is None:
        raise BadInput(
            f"no CUDA device is here, and none is known as {text!r}",
            hint=f"write one of {', '.join(GPUS)}, or {', '.join(f'sm_{n}' for n in ARCHITECTURES)}",
        )
    return _absent_cuda_device(short, GPUS[short])


def capability_named(text: str) -> int | None:
    """90 for "sm_90", "sm_90a", "90" and "9.0", whether such GPUs are known or not."""
    found = _CAPABILITY.fullmatch(text.strip().lower())
    return int(found[1] or found[2] + found[3]) if found else None


def is_architecture(device: Device, wanted: str) -> bool:
    return device.limits.capability > 0 and capability_named(wanted) == device.limits.capability


def allocation_units(capability: int) -> AllocationUnits:
    """By the rules of NVIDIA's occupancy calculator."""
    return AllocationUnits(shared=128 if capability >= 80 else 256)


def _by_name(text: str) -> str | None:
    wanted = _short_gpu_name(text)
    return next(
        (
            s
            for s, gpu in GPUS.items()
            if wanted and wanted in (_short_gpu_name(s), _short_gpu_name(gpu.name))
        ),
        None,
    )


def _short_gpu_name(name: str) -> str:
    """Without what people leave out: the maker, the family, blanks and dashes."""
    return re.sub(r"nvidia|geforce|tesla|rtx|[^a-z0-9]", "", name.lower())


def _absent_cuda_device(short: str, gpu: Gpu) -> Device:
    architecture = ARCHITECTURES[gpu.capability]
    return Device(
        backend="cuda",
        id=f"absent:{short}",
        name=gpu.name,
        platform=PLATFORM,
        driver="",
        kind="gpu",
        absent=True,
        inspects=True,
        limits=Limits(
            max_threads=1024,
            max_block=(1024, 1024, 64),
            max_grid=((1 << 31) - 1, 65535, 65535),
            shared=architecture.shared * KIB,
            sms=gpu.sms,
            warp=32,
            llc=gpu.llc * MIB,
            memory=gpu.memory * GB,
            max_allocation=gpu.memory * GB,
            alignment=1,
            pin_bandwidth=gpu.bandwidth * 1e9,
            capability=gpu.capability,
            registers_per_block=REGISTERS,
            registers_per_sm=REGISTERS,
            shared_per_sm=architecture.shared_per_sm * KIB,
            shared_reserved=architecture.shared_reserved * KIB,
            threads_per_sm=architecture.threads_per_sm,
            blocks_per_sm=architecture.blocks_per_sm,
            units=allocation_units(gpu.capability),
        ),
    )
