"""For benchmarks whose processes are the parallelism: each of them computes with one thread."""

from __future__ import annotations

import os
import sys

LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def one_thread() -> None:
    """NumPy asks when it is loaded, which it is by now: so the command begins again, unless somebody has
    said how many threads there are."""
    missing = {name: "1" for name in LIMITS if name not in os.environ}
    if missing:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **missing})
