"""Whether this machine has an OpenCL device; asked in a worker, because a broken driver may abort."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tunesmith.backends.opencl import pocl_environment
from tunesmith.base.errors import TunesmithError
from tunesmith.problem.device import Device
from tunesmith.session import place


def show_unpacked_pocl() -> None:
    """Lets this process see the PoCL that set-up unpacked: it is too late for LD_LIBRARY_PATH, so the
    libraries are loaded beforehand, each as soon as those that it needs are."""
    os.environ.update(pocl_environment(Path(sys.prefix), os.environ))
    # Not by the links: PoCL looks for its data beside the path it was loaded from.
    libraries = {link.resolve() for link in Path(sys.prefix, "pocl", "lib").glob("*.so*")}
    while libraries and (loaded := {library for library in libraries if _loads(library)}):
        libraries -= loaded


def _loads(library: Path) -> bool:
    try:
        ctypes.CDLL(str(library))
    except OSError:
        return False
    return True


@cache
def opencl_platforms() -> tuple[str, ...]:
    """Their names with the driver's version, each once; none where there is no device."""
    show_unpacked_pocl()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            found = place.list_devices(place.WorkerSite("opencl", Path(scratch)))
        except TunesmithError:
            return ()
    return tuple(dict.fromkeys(map(platform_of, found)))


def platform_of(device: Device) -> str:
    """Two releases of PoCL have the same name."""
    return f"{device.platform} {device.driver.rpartition('; ')[2]}"


def has_opencl() -> bool:
    return bool(opencl_platforms())


needs_opencl = pytest.mark.skipif(not has_opencl(), reason="no OpenCL device here")
