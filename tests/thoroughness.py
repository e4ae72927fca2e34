"""How much is tried: `make test` tries a part of what `make test-long` does."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

THOROUGH = bool(os.environ.get("TUNESMITH_THOROUGH_TESTS"))


def examples(count: int = 100, **more: Any) -> settings:
    """Of a property: `count` examples, or a tenth of them, the same each time."""
    fewer = {"max_examples": count if THOROUGH else max(10, count // 10), "derandomize": not THOROUGH}
    return settings(**fewer, deadline=None, **more)


settings.register_profile("tests", examples())
settings.load_profile("tests")
