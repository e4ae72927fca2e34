"""NVIDIA's driver through cuda.bindings: loaded on use, every answer checked."""

from __future__ import annotations

from functools import cache
from typing import Any

from tunesmith.core.backend import LaunchFailed, OutOfMemory, Unsupported


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
