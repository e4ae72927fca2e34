"""Whether this machine has an OpenCL device; asked in a worker, because a broken driver may abort."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

from tunesmith import registry
from tunesmith.core.errors import TunesmithError


@cache
def has_opencl() -> bool:
    with tempfile.TemporaryDirectory() as scratch:
        try:
            return bool(registry.list_devices("opencl", Path(scratch)))
        except TunesmithError:
            return False


needs_opencl = pytest.mark.skipif(not has_opencl(), reason="no OpenCL device here")
