"""CUDA devices as the driver describes them."""

from __future__ import annotations

from typing import Any

from tunesmith.backends.cuda.architectures import PLATFORM
from tunesmith.backends.cuda.driver import checked, driver
from tunesmith.core.backend import Unsupported
from tunesmith.core.device import Device, Limits

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
            capability=10 * get("COMPUTE_CAPABILITY_MAJOR") + get("COMPUTE_CAPABILITY_MINOR"),
            registers_per_block=get("MAX_REGISTERS_PER_BLOCK"),
            registers_per_sm=get("MAX_REGISTERS_PER_MULTIPROCESSOR"),
            shared_per_sm=get("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
            shared_reserved=get("RESERVED_SHARED_MEMORY_PER_BLOCK"),
            threads_per_sm=get("MAX_THREADS_PER_MULTIPROCESSOR"),
            blocks_per_sm=get("MAX_BLOCKS_PER_MULTIPROCESSOR"),
        ),
    )


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
