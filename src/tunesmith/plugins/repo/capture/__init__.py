"""Running programs: which kernels they launch, with what, how long these take, and what tuning could give.

The package is also what `tunesmith.capture()` calls, because a package takes its name in the one above it.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, **named: Any) -> Any:
        from tunesmith.plugins.repo.capture.capture import seen_launches

        return seen_launches(**named)


sys.modules[__name__].__class__ = _CallablePackage
