"""The two interfaces to a CUDA device that delivered C++ is written for, and the code that each needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import resources


def resource(name: str) -> str:
    return resources.files("tunesmith.deliver").joinpath(name).read_text("utf-8")


@dataclass(frozen=True)
class CudaApi:
    status: str
    success: str
    invalid: str
    no_image: str
    stream: str
    handle: str  # what a kernel is known by
    no_device: str  # the error where no device is current; empty: it can do without
    includes: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def fixed(self) -> str:
        """What every program needs that launches through it."""
        return "\n".join(map(resource, ("arithmetic.cuh", "launch_checks.h", *self.files)))


_STANDARD = ("atomic", "cstdint", "cstdio", "mutex")
RUNTIME = CudaApi(
    "cudaError_t", "cudaSuccess", "cudaErrorInvalidValue", "cudaErrorNoKernelImageForDevice",
    "cudaStream_t", "const void*", "",
    ("cuda_runtime.h", *_STANDARD), ("launch_runtime.cuh", "embedded_runtime.cuh", "embedded_kernel.h"),
)  # fmt: skip
DRIVER = CudaApi(
    "CUresult", "CUDA_SUCCESS", "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "CUstream", "CUkernel", "CUDA_ERROR_INVALID_CONTEXT",
    ("cuda.h", *_STANDARD), ("driver_linked.h", "launch_driver.h", "embedded_kernel.h"),
)  # fmt: skip
# The same, for programs that must load where there is no driver: it is looked for at the first call.
DRIVER_AT_RUN_TIME = replace(
    DRIVER,
    includes=(*DRIVER.includes, "dlfcn.h"),
    files=("driver_at_run_time.h", "launch_driver.h", "embedded_kernel.h"),
)
