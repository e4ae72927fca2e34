"""NVIDIA's driver through cuda.bindings, loaded on use: every answer checked; devices, and their clocks."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from tunesmith.backends.cuda.architectures import PLATFORM, allocation_units
from tunesmith.backends.port import LaunchFailed, OutOfMemory, Unsupported
from tunesmith.problem.device import Device, Limits


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
        raise Unsupported(f"the NVIDIA driver does not start: {words(bindings, status)}")
    return bindings


def checked(answer: tuple[Any, ...]) -> Any:
    """What a driver call returned, without its status; a bad status is raised as what it means."""
    status = answer[0]
    if int(status) != 0:
        cu = driver()
        text = words(cu, status)
        if status == cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise OutOfMemory(text)
        raise LaunchFailed(text)
    return answer[1] if len(answer) == 2 else answer[1:]


def words(cu: Any, status: Any) -> str:
    name, text = (cu.cuGetErrorName(status), cu.cuGetErrorString(status))
    known = [part[1].decode() for part in (name, text) if int(part[0]) == 0 and part[1]]
    return ": ".join(known) or f"CUDA error {int(status)}"


OLDEST_DRIVER = 13000  # what the bindings speak; a driver of the same major version runs newer builds too


def describe_all() -> tuple[Device, ...]:
    cu = driver()
    version = int(checked(cu.cuDriverGetVersion()))
    if version < OLDEST_DRIVER:
        raise Unsupported(
            f"the NVIDIA driver is for CUDA {_dotted(version)}, older than the toolkit: kernels are built "
            f"for CUDA {_dotted(OLDEST_DRIVER)}. Install a newer driver"
        )
    return tuple(_describe(number, version) for number in range(int(checked(cu.cuDeviceGetCount()))))


def _describe(number: int, version: int) -> Device:
    cu = driver()
    handle = checked(cu.cuDeviceGet(number))

    def get(name: str) -> int:
        attribute: Any = getattr(cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(checked(cu.cuDeviceGetAttribute(attribute, handle)))

    memory = int(checked(cu.cuDeviceTotalMem(handle)))
    capability = 10 * get("COMPUTE_CAPABILITY_MAJOR") + get("COMPUTE_CAPABILITY_MINOR")
    # Kilohertz and bits; two transfers a cycle.
    bandwidth = 2e3 * get("MEMORY_CLOCK_RATE") * get("GLOBAL_MEMORY_BUS_WIDTH") / 8
    return Device(
        backend="cuda",
        id=str(number),
        name=checked(cu.cuDeviceGetName(256, handle)).partition(b"\0")[0].decode(errors="replace"),
        platform=PLATFORM,
        driver=f"CUDA {_dotted(version)}",
        kind="gpu",
        inspects=True,
        limits=Limits(
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
        ),
    )


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


# Power cap, hardware slowdown, both kinds of heat, power brake. Idle and chosen clocks are no throttling.
THROTTLED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


class Throttling:
    def __init__(self, number: int) -> None:
        self._library, self._handle = _open(number)

    def now(self) -> bool | None:
        """None where nobody can say."""
        if self._library is None:
            return None
        reasons = ctypes.c_ulonglong()
        if self._library.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle, ctypes.byref(reasons)):
            return None
        return bool(reasons.value & THROTTLED)


def _open(number: int) -> tuple[Any, ctypes.c_void_p]:
    cu = driver()
    handle = ctypes.c_void_p()
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None, handle
    # By bus address: the two libraries may number devices differently.
    bus = checked(cu.cuDeviceGetPCIBusId(32, checked(cu.cuDeviceGet(number)))).partition(b"\0")[0]
    if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(handle)):
        return None, handle
    return library, handle
