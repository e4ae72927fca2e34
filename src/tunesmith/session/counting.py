"""What reads hardware counters on this machine."""

from __future__ import annotations

from tunesmith import backends
from tunesmith.backends.port import Counting, NoCounting
from tunesmith.lab.fork_server import worker_command
from tunesmith.run.protection import REQUIRED
from tunesmith.session.workplace import Workplace


def make_counting(place: Workplace) -> Counting:
    """What reads hardware counters there, or says why nothing does."""
    kind = backends.kind(place.spec)
    if kind.counting is None:
        return NoCounting(kind.no_counters)
    if place.sandbox == REQUIRED:
        return NoCounting("--sandbox required: what counts speaks over the network with what it counts")
    return kind.counting(worker_command(kind.name, "profile"), place.environment(), place.scratch)
