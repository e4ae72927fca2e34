"""Whether kernels can be built for the host here: by a plugin, which need not be installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest


def _can_build() -> bool:
    if sys.platform != "linux" or find_spec("tunesmith.plugins") is None:
        return False
    from tunesmith.plugins.cpu_device.build import find_compilers

    return bool(find_compilers())


needs_cpu = pytest.mark.skipif(not _can_build(), reason="there is no C++ compiler for the cpu device")
