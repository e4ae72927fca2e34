"""Commands of the user's, run in the repository with a deadline; what they print goes to a file."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tunesmith.text import one_line

_POLL = 0.5  # seconds
_PATIENCE = 5.0  # seconds a command has to end when it is asked to
_TAIL = 4000  # bytes that are looked at for people
MOST_OUTPUT = 64 << 20


@dataclass(frozen=True)
class CommandEnd:
    command: str
    code: int | None  # None: it ran past its deadline
    seconds: float
    log: Path

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def output(self) -> str:
        with open(self.log, "rb") as file:
            return file.read(MOST_OUTPUT).decode(errors="replace")

    @property
    def fault(self) -> str:
        """How it ended, with its last line."""
        lines = [line for line in _tail(self.log).splitlines() if line.strip()]
        last = f": {one_line(lines[-1], 200)}" if lines else ""
        if self.code is None:
            return f"ran past its deadline of {self.seconds:.0f} s{last}"
        how = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"ended with {how}{last}"


def run_command(
    command: str,
    folder: Path,
    log: Path,
    timeout: float,
    note: Callable[[str], None],
    environment: Mapping[str, str] | None = None,
) -> CommandEnd:
    """By a shell, in a session of its own: nothing of it is left when this returns."""
    with open(log, "wb") as out:
        begun = time.perf_counter()
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        ended: list[float] = []

        def wait() -> None:  # without polling, which would count its own steps
            process.wait()
            ended.append(time.perf_counter())

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        try:
            while waiting.is_alive() and time.perf_counter() - begun < timeout:
                waiting.join(min(_POLL, max(0.0, timeout - (time.perf_counter() - begun))))
                note(f"{one_line(command, 60)}: {time.perf_counter() - begun:.0f} s")
            is_late = waiting.is_alive()
        finally:
            _end(process.pid, waiting)
        seconds = (ended[0] if ended else time.perf_counter()) - begun
        return CommandEnd(command, None if is_late else process.returncode, seconds, log)


def _end(group: int, waiting: threading.Thread) -> None:
    """Whatever of it still runs, also what it left behind."""
    for kind, patience in ((signal.SIGTERM, _PATIENCE if waiting.is_alive() else 0.0), (signal.SIGKILL, 1.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, kind)
        waiting.join(patience)


def _tail(log: Path) -> str:
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
