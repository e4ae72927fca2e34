"""Whether kernels can be built for the host here."""

from __future__ import annotations

import sys

import pytest

from tunesmith.plugins.cpu_device.build import find_compilers

needs_cpu = pytest.mark.skipif(
    sys.platform != "linux" or not find_compilers(), reason="there is no C++ compiler for the cpu device"
)
