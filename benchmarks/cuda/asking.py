"""Asks `tunesmith` as a user does, as a process, for what it says as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Failed(SystemExit):
    """It ended with another code than 0: what it was asked, the code, and its last words."""

    def __init__(self, words: Sequence[str], code: int, stderr: str) -> None:
        super().__init__(f"tunesmith {' '.join(words)} ended with {code}:\n{stderr[-4000:]}")
        self.stderr = stderr


def environment_with(src: Path | None) -> dict[str, str]:
    """In which `tunesmith` is the one in this `src` folder; None: the one that is running."""
    environment = dict(os.environ)
    if src is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(src), environment.get("PYTHONPATH", "")])
    return environment


def ask(
    words: Sequence[str], environment: Mapping[str, str] | None = None, within: float | None = None
) -> dict[str, Any]:
    """subprocess.TimeoutExpired where it takes more than `within` seconds."""
    ended = subprocess.run(
        [sys.executable, "-m", "tunesmith", *words, "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=within,
    )
    if ended.returncode != 0:
        raise Failed(words, ended.returncode, ended.stderr)
    told: dict[str, Any] = json.loads(ended.stdout)
    return told
