"""Compilers and programs as tests of exports call them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

# Our tests put empty libraries into LIBRARY_PATH for PoCL, and a linker would take libc from among them.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("LIBRARY_PATH", "CUDAARCHS")}


def ran(
    command: Sequence[object], folder: Path | None = None, timeout: float = 110, **more: str
) -> subprocess.CompletedProcess[str]:
    """`more`: variables of its environment. What fails ends the test with its words."""
    got = failing(command, folder, timeout, **more)
    assert got.returncode == 0, got.stdout[-2000:] + got.stderr[-4000:]
    return got


def failing(
    command: Sequence[object], folder: Path | None = None, timeout: float = 110, **more: str
) -> subprocess.CompletedProcess[str]:
    """The same where it may fail."""
    how = {"cwd": folder, "env": {**ENVIRONMENT, **more}, "timeout": timeout, "check": False}
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **how)  # type: ignore[call-overload,no-any-return]
