"""`--ray ADDRESS`: the workers of a Ray cluster. Each GPU is a place with an actor, which is called as a host
of `--workers` is; nodes without GPUs build. Nodes that come later are made use of, and one that goes is left
out."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tunesmith.errors import BadInput, DeviceMissing
from tunesmith.lab.remote import Channel, Connection
from tunesmith.run.config import RunConfig, secrets
from tunesmith.session.hosts import HostWorkers, WorkerEntry, reached
from tunesmith.session.ray_driver import LOCAL, ClusterPlace
from tunesmith.session.workplace import WorkerSource
from tunesmith.text import cut, redacted

START_SECONDS = 90.0  # for a cluster to answer, and to tell of its nodes
WAIT = 60.0  # for an actor to be placed, and to come back
END_SECONDS = 10.0
LONGEST_FOLDER = 70  # the name of a socket has 107 bytes at most
DRIVER = ("-m", "tunesmith.session.ray_driver")
HINT = "start one with: ray start --head; or use one of this machine alone with: --ray local"


class PlaceChannel:
    """To a place, by the driver's socket."""

    def __init__(self, path: Path, place: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(str(path))
            self._socket.sendall(f"{place}\n".encode())
        except OSError as error:
            self._socket.close()
            fault = f"the driver of the Ray cluster does not answer: {error.strerror}"
            raise DeviceMissing(fault) from error
        self.reads, self.writes = os.dup(self._socket.fileno()), self._socket.fileno()

    def write(self, data: memoryview) -> int:
        return self._socket.send(data, socket.MSG_DONTWAIT)

    def close(self) -> str:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        return ""


class RayWorkers(HostWorkers):
    """The workers of one place."""

    def __init__(self, place: ClusterPlace, cluster: RayCluster, note: Callable[[str], None]) -> None:
        super().__init__(WorkerEntry(place.name, (), wait=WAIT, measures=place.measures), note)
        self.place, self._cluster = place, cluster

    @property
    def cores(self) -> int:
        """Those that the cluster gives us there."""
        return max(1, self.place.cpus)

    @property
    def arrivals(self) -> queue.SimpleQueue[WorkerSource]:
        return self._cluster.arrivals

    def _open_channel(self) -> Channel:
        return PlaceChannel(self._cluster.socket, self.place.id)

    def _hint(self, made: Connection) -> str | None:
        """Nobody types the command that leads there."""
        if made.is_other_version:
            return super()._hint(made)
        address = self._cluster.address
        return "run the same command again" if address == LOCAL else f"see: ray status --address {address}"


class RayCluster:
    """The cluster at an address, by a process that is its driver."""

    def __init__(self, address: str, folder: Path, note: Callable[[str], None]) -> None:
        self.socket = folder / "ray"
        self.arrivals: queue.SimpleQueue[WorkerSource] = queue.SimpleQueue()  # not made use of yet
        self.address, self._note = address, note
        self._made: list[RayWorkers] = []
        self._fault = ""
        self._closing = False
        self._ready = threading.Event()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        command = [sys.executable, "-P", *DRIVER, address, str(self.socket)]
        pipe = subprocess.PIPE
        self._driver = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=self._errors, start_new_session=True
        )  # a Ctrl-C of ours is not its own: it ends with its input
        self._thread = threading.Thread(target=self._listen, name="ray", daemon=True)
        self._thread.start()

    def first(self) -> list[RayWorkers]:
        """Those there are; DeviceMissing where no cluster answers, or it has nothing to offer."""
        until, since = time.monotonic() + START_SECONDS, time.monotonic()
        while not self._ready.wait(5.0) and time.monotonic() < until:
            self._note(f"waiting for Ray at {self.address} for {time.monotonic() - since:.0f} s")
        if not self._ready.is_set():
            self._fault = f"nothing was heard within {START_SECONDS:.0f} s"
        if self._fault:
            raise DeviceMissing(
                f"the Ray cluster at {self.address!r} cannot be used: {self._fault}", hint=HINT
            )
        found: list[RayWorkers] = []
        while not self.arrivals.empty():
            one = self.arrivals.get()
            assert isinstance(one, RayWorkers)
            found.append(one)
        if not found:
            raise DeviceMissing(f"the Ray cluster at {self.address!r} has no GPU and no core", hint=HINT)
        # Who measures comes first: what all devices have in common is asked of it.
        return sorted(found, key=lambda one: not one.measures)

    def close(self) -> None:
        self._closing = True
        for one in self._made:
            one.close()
        assert self._driver.stdin is not None
        self._driver.stdin.close()
        try:
            self._driver.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._driver.kill()
            self._driver.wait()
        self._thread.join()
        self._errors.close()

    def _listen(self) -> None:
        assert self._driver.stdout is not None
        with self._driver.stdout as lines:
            for line in lines:
                try:
                    fact = json.loads(line)
                    self._take(fact)
                except (ValueError, TypeError, AttributeError) as error:
                    self._fault = f"its driver spoke nonsense: {error}"
        if not self._ready.is_set():
            self._fault = self._fault or self._last_words()
            self._ready.set()
        elif not self._closing:
            self._lose()

    def _lose(self) -> None:
        """Its driver is gone, and with it the way to every place: nobody need wait for one."""
        why = self._fault or "its driver has ended, as Ray has it where the head is gone"
        words = f"the Ray cluster at {self.address!r} was lost: {why}"
        for one in self._made:
            one.gone = words
        self._note(words)

    def _take(self, fact: dict[str, object]) -> None:
        if isinstance(fault := fact.get("fault"), str):
            self._fault = cut(redacted(fault, secrets()), 600)
        elif isinstance(table := fact.get("place"), dict):
            one = RayWorkers(ClusterPlace(**table), self, self._note)
            self._made.append(one)
            self.arrivals.put(one)
        elif "left" in fact:
            for one in self._made:
                if one.place.id == fact["left"]:
                    one.gone = "its node has left the cluster"  # nobody need wait for it
        if "ready" in fact:
            self._ready.set()

    def _last_words(self) -> str:
        self._errors.seek(0)
        printed = redacted(self._errors.read()[-4096:].decode(errors="replace"), secrets()).strip()
        return cut("; ".join(printed.splitlines()[-4:]) or "its driver ended", 600)


@contextmanager
def connected(config: RunConfig, note: Callable[[str], None]) -> Iterator[tuple[HostWorkers, ...]]:
    """Those places of the cluster that answer."""
    if config.workers:
        raise BadInput("--ray and --workers both say where workers are", hint="leave out one of them")
    if importlib.util.find_spec("ray") is None:
        raise DeviceMissing("--ray needs Ray, which is not installed", hint="pip install 'tunesmith[ray]'")
    note(f"connecting to Ray at {config.ray}" if config.ray != LOCAL else "starting Ray on this machine")
    short = None if len(tempfile.gettempdir()) <= LONGEST_FOLDER else "/tmp"
    with tempfile.TemporaryDirectory(prefix="tunesmith-ray-", dir=short) as folder:
        cluster = RayCluster(config.ray, Path(folder), note)
        try:
            with reached(cluster.first(), note) as hosts:
                yield hosts
        finally:
            cluster.close()
