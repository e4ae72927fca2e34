"""Whether a GPU's clock is being held down, as NVIDIA's management library says."""

from __future__ import annotations

import ctypes
from typing import Any

from tunesmith.backends.cuda.driver import checked, driver

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
