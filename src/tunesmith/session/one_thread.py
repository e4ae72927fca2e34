"""Linear algebra has one thread while a run searches: idle ones spin beside what builds and measures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

_LOCK = Lock()
_limits: Any = None
_inside = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """For libraries that are loaded by now. It is one setting of the process: what there was before the first
    run comes back with the end of the last."""
    global _limits, _inside
    from threadpoolctl import threadpool_limits  # which few commands need

    with _LOCK:
        _inside += 1
        if _inside == 1:
            _limits = threadpool_limits(1)
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if _inside == 0:
                _limits.restore_original_limits()
