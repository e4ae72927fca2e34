"""What reads hardware counters on this machine."""

from __future__ import annotations

from pathlib import Path

from tunesmith import backends
from tunesmith.backends.port import Counting, NoCounting
from tunesmith.lab.fork_server import worker_command
from tunesmith.run.protection import AUTO, REQUIRED
from tunesmith.session.machine import worker_environment


def make_counting(spec: str, scratch: Path, sandbox: str = AUTO) -> Counting:
    """What reads hardware counters there, or says why nothing does."""
    kind = backends.kind(spec)
    if kind.counting is None:
        return NoCounting(kind.no_counters)
    if sandbox == REQUIRED:
        return NoCounting("--sandbox required: what counts speaks over the network with what it counts")
    environment = worker_environment(spec, scratch, sandbox)
    return kind.counting(worker_command(kind.name, "profile"), environment, scratch)
