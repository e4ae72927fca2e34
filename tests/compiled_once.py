"""NVRTC makes the same code of the same unit and flags: tests in one process have each made once.

How it is asked, and what it refuses, is the subject of `tests/core/backends/cuda`, where nothing is kept.
"""

from __future__ import annotations

from functools import cache

from tunesmith.backends.cuda import compile as nvrtc
from tunesmith.backends.cuda.cubin import Compiled
from tunesmith.backends.cuda.flags import Flags
from tunesmith.backends.messages import Unit


@cache
def made_once(unit: Unit, flags: Flags) -> Compiled:
    return nvrtc.compile_by_nvrtc(unit, flags)
