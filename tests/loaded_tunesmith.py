"""A process that has loaded the whole program and forks itself for each command: what tests start by the
hundred need not load it each time. What depends on how a process starts uses `running.start`.

The server that a command forks its workers from is forked too, where it would find the same libraries. The
argument is a text that is carried out once all is loaded.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import pkgutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence

import typer

import tunesmith
from tunesmith.base.errors import BadInput
from tunesmith.lab import process
from tunesmith.lab.worker import main as worker

# What few commands need and takes long: clients of models, the agents' server and the pages'.
NOT_LOADED = (
    *("tunesmith.__main__", "tunesmith.agents.hosted", "tunesmith.agents.hosted", "tunesmith.plugins.mcp."),
    "tunesmith.plugins.watch.server",
)


def at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """What says which libraries and modules a process finds."""
    return {name: value for name, value in environment.items() if name.startswith(("LD_", "PYTHONPATH"))}


OWN = at_start(os.environ)


class ForkedServer:
    """As `subprocess.Popen` speaks of it."""

    def __init__(self, environment: Mapping[str, str], requests: socket.socket) -> None:
        self._code: int | None = None
        self.pid = os.fork()
        if self.pid:
            return
        try:
            os.setsid()
            os.dup2(requests.fileno(), 0)
            with open(os.devnull, "wb") as nothing:
                os.dup2(nothing.fileno(), 1)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            os.chdir("/")
            os.environ.clear()
            os.environ.update(environment)
            sys.argv[1:] = [process.SERVE]
            tempfile.tempdir = None  # of its own environment, not of what it was forked from
            worker.main()
        finally:
            os._exit(1)

    def wait(self, timeout: float | None = None) -> int:
        end = time.monotonic() + (timeout or 3600.0)
        while self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                raise subprocess.TimeoutExpired([], timeout or 0.0)
            else:
                time.sleep(0.002)
        return self._code

    def kill(self) -> None:
        os.kill(self.pid, 9)


class ServerOfWorkers(process.ForkServer):
    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        # With a grammar of tree-sitter in the process PoCL crashes as it starts: then a fresh one serves.
        if at_start(environment) != OWN or any(name.startswith("tree_sitter_") for name in sys.modules):
            super().__init__(command, environment)
            return
        self._lock = threading.Lock()
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._process = ForkedServer(environment, theirs)  # type: ignore[assignment]


def main() -> None:
    for module in pkgutil.walk_packages(tunesmith.__path__, "tunesmith."):
        if not module.name.startswith(NOT_LOADED):
            try:
                importlib.import_module(module.name)
            except (ImportError, BadInput):
                pass  # of an extra that is not here
    process.ForkServer = ServerOfWorkers  # type: ignore[misc]
    exec(sys.argv.pop())
    from tunesmith.cli import app

    # The same for every command: what they are, and what is loaded, which is no garbage.
    typer.main.get_command = functools.cache(typer.main.get_command)
    typer.main.get_command(app.app)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 50)  # in all that is forked from it: short runs, few circles
    process.run_fork_server(app.main, idle=None)


if __name__ == "__main__":
    main()
