"""The process beside a run with `--ray`: the driver of the cluster, so that Ray's threads and prints are not
the run's. It has one actor for each place that is used, which hosts workers on its node; whoever connects to
the socket and names a place calls that. It ends when its input does, and its actors with it.

On standard output it says, a line of JSON each: {"place": ...}, {"ready": true} after the first of them,
{"left": ID}, or {"fault": TEXT} before it ends. It is started as a program: Ray then sends the actor's class
to nodes by value.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tunesmith.base import codec
from tunesmith.base.errors import BadInput, DeviceMissing
from tunesmith.base.text import redact_secrets, truncate_text
from tunesmith.plugins.hosts.hosts import HostWorkers, WorkerEntry, reachable_hosts
from tunesmith.plugins.hosts.transport import (
    CLOSE_SECONDS,
    ByteStream,
    Channel,
    Connection,
    LostHost,
    call_parts,
    message_parts,
    read_call,
)
from tunesmith.run.config import RunConfig, secret_values
from tunesmith.session.place import WorkerSource

LOCAL = "local"  # a cluster of this machine alone, as long as the run needs it
LOOK_EVERY = 2.0  # seconds between two looks at the nodes
PLACED_WITHIN = 55.0  # seconds, before whoever waits for an actor gives up
MOMENT = 0.5  # seconds between two looks whether an actor is still waited for
CARRIES = "carries"  # what threads are called that carry what a run and a place say


@dataclass(frozen=True)
class ClusterPlace:
    """Where an actor can be: a GPU of a node, or a node, and what of it is ours there."""

    id: str
    name: str
    node: str
    gpus: int  # 0: it measures with what a node has beside GPUs, or only builds
    cpus: int
    measures: bool = True


def cluster_places(nodes: Sequence[Mapping[str, Any]]) -> Iterator[ClusterPlace]:
    """One for each GPU, and one for each node without, which only builds; where no node has any, the first
    measures: a run has one processor. A node's cores are shared out among its GPUs."""
    alive = [node for node in nodes if node.get("Alive")]
    is_wanted = not any(_resource_count(node, "GPU") for node in alive)  # one that measures, of those without
    for node in alive:
        identity, cpus, gpus = str(node["NodeID"]), _resource_count(node, "CPU"), _resource_count(node, "GPU")
        host = str(node.get("NodeManagerHostname") or "node")
        title = "".join(c if c.isalnum() or c in "-._" else "_" for c in f"{host}-{identity[:6]}")
        for number in range(gpus):
            name = f"{title}:{number}"
            yield ClusterPlace(f"{identity}:{number}", name, identity, 1, cpus // gpus)
        if not gpus and cpus:
            yield ClusterPlace(identity, title, identity, 0, cpus, measures=is_wanted)
            is_wanted = False


def _resource_count(node: Mapping[str, Any], resource: str) -> int:
    return int(node.get("Resources", {}).get(resource, 0))


class HostActor:
    """The host of workers on a node."""

    def __init__(self) -> None:
        from tunesmith.plugins.hosts import transport
        from tunesmith.session.place import temporary_scratch

        self._until = contextlib.ExitStack()
        self._host = transport.WorkerHost(self._until.enter_context(temporary_scratch()))
        self._until.callback(self._host.close)
        self._greeting = transport.host_greeting()

    def greet(self) -> list[bytes]:
        from tunesmith.plugins.hosts.transport import message_parts

        return message_parts(self._greeting)

    def answer(self, worker: int, frame: Any) -> list[bytes]:
        return list(self._host.answer(worker, frame))

    def close(self) -> None:
        self._until.close()


class Driver:
    def __init__(self, ray: Any, says: int) -> None:
        self._ray, self._says = ray, says
        self._places: dict[str, ClusterPlace] = {}
        self._lock = threading.Lock()

    def say(self, **fact: object) -> None:
        with self._lock:
            os.write(self._says, json.dumps(fact).encode() + b"\n")

    def look(self) -> None:
        """At the nodes: tell of places that have come, and of those that have gone."""
        found = {place.id: place for place in cluster_places(self._ray.nodes())}
        for gone in self._places.keys() - found.keys():
            del self._places[gone]
            self.say(left=gone)
        for place in found.values():
            if place.id not in self._places:
                self._places[place.id] = place
                self.say(place=asdict(place))

    def serve(self, listening: socket.socket) -> None:
        while True:
            client, _ = listening.accept()
            threading.Thread(target=self._answer_client, args=(client,), name=CARRIES, daemon=True).start()

    def _answer_client(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as calls:
            place = self._places.get(calls.readline(1 << 10).decode(errors="replace").strip())
            if place is None:
                _send_parts(client, message_parts(LostHost("the cluster has no such place")))
            else:
                self._relay_calls(client, calls, place)

    def _relay_calls(self, client: socket.socket, calls: ByteStream, place: ClusterPlace) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(place.node, soft=False)
        wanted = {"num_gpus": place.gpus, "num_cpus": place.cpus, "scheduling_strategy": there}
        most = 4 * place.cpus + 32  # builders, devices, tools, and those that are ended meanwhile
        actor = self._ray.remote(HostActor).options(**wanted, max_concurrency=most, max_restarts=0).remote()
        sending = threading.Lock()

        def answer(call: int, worker: int, frame: codec.Frame) -> None:
            try:
                parts = self._ray.get(actor.answer.remote(worker, frame))
            except self._ray.exceptions.RayError as error:
                call, parts = 0, message_parts(LostHost(_first_lines(error)))
            with sending:
                _send_parts(client, parts, call)

        try:
            if not self._is_placed(actor, client):
                return
            _send_parts(client, self._ray.get(actor.greet.remote()))
            while (found := read_call(calls)) is not None:
                if found[0]:  # the lab's greeting is for no worker
                    threading.Thread(target=answer, args=found, daemon=True).start()
            self._ray.get(actor.close.remote(), timeout=CLOSE_SECONDS)
        except (OSError, codec.Malformed, self._ray.exceptions.RayError) as error:
            with sending:
                _send_parts(client, message_parts(LostHost(_first_lines(error))))
        finally:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(actor)  # its GPU is free again; one that waits for it no longer does

    def _is_placed(self, actor: Any, client: socket.socket) -> bool:
        """False where its node has no room for it, or whoever waits has gone before."""
        placed, until = actor.__ray_ready__.remote(), time.monotonic() + PLACED_WITHIN
        while not self._ray.wait([placed], timeout=MOMENT)[0]:
            if is_left(client):
                return False
            if time.monotonic() > until:
                _send_parts(client, message_parts(LostHost("its node had no room: others hold what it has")))
                return False
        return True  # or it cannot be, which the next call tells


def _send_parts(client: socket.socket, parts: Sequence[bytes], call: int = 0) -> None:
    with contextlib.suppress(OSError):  # whoever has gone asks no more
        for part in call_parts(call, 0, parts):
            client.sendall(part)


def is_left(client: socket.socket) -> bool:
    """Whether the other end has closed it, whatever is still to be read."""
    closed = getattr(select, "POLLRDHUP", 0) | select.POLLHUP
    poll = select.poll()
    poll.register(client, closed)
    return bool(poll.poll(0))


def _first_lines(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("class_name", "actor_id", "namespace", "pid"))]
    return "; ".join(kept)[:600] or type(error).__name__


def _end_with_input() -> None:
    while os.read(0, 1 << 12):
        pass
    until = time.monotonic() + CLOSE_SECONDS
    for thread in threading.enumerate():  # those whose connections end with the run
        if thread.name == CARRIES:
            thread.join(max(0.0, until - time.monotonic()))
    os._exit(0)  # Ray ends actors whose driver is gone


def run_driver(address: str, path: str) -> int:
    says = os.dup(1)
    os.dup2(2, 1)  # what Ray prints
    threading.Thread(target=_end_with_input, daemon=True).start()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    driver = Driver(ray, says)
    shown: dict[str, bool] = {"include_dashboard": False} if address == LOCAL else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **shown)
    except Exception as error:  # of many kinds, by what is wrong; the run tells it and ends
        driver.say(fault=_first_lines(error))
        return 1
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        os.chmod(path, 0o600)
        listening.listen(64)
        threading.Thread(target=driver.serve, args=(listening,), daemon=True).start()
        driver.look()
        driver.say(ready=True)
        while True:
            time.sleep(LOOK_EVERY)
            try:
                driver.look()
            except ray.exceptions.RayError as error:
                driver.say(fault=_first_lines(error))
                return 1


if __name__ == "__main__":
    sys.exit(run_driver(*sys.argv[1:]))


# `--ray ADDRESS`: the workers of a Ray cluster. Each GPU is a place with an actor, which is called as a host
# of `--workers` is; nodes without GPUs build. Nodes that come later are made use of; one that goes is left
# out.
START_SECONDS = 90.0  # for a cluster to answer, and to tell of its nodes
WAIT = 60.0  # for an actor to be placed, and to come back
END_SECONDS = 10.0
LONGEST_FOLDER = 70  # the name of a socket has 107 bytes at most
DRIVER = ("-m", "tunesmith.plugins.hosts.ray")
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
            fault = f"the Ray cluster at {self.address!r} cannot be used: {self._fault}"
            raise DeviceMissing(fault, hint=HINT)
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
                    self._take_fact(fact)
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

    def _take_fact(self, fact: dict[str, object]) -> None:
        if isinstance(fault := fact.get("fault"), str):
            self._fault = truncate_text(redact_secrets(fault, secret_values()), 600)
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
        printed = redact_secrets(self._errors.read()[-4096:].decode(errors="replace"), secret_values())
        return truncate_text("; ".join(printed.strip().splitlines()[-4:]) or "its driver ended", 600)


def refuse_missing_ray() -> None:
    if importlib.util.find_spec("ray") is None:
        raise DeviceMissing("--ray needs Ray, which is not installed", hint="pip install 'tunesmith[ray]'")


@contextmanager
def connect_cluster(config: RunConfig, note: Callable[[str], None]) -> Iterator[tuple[HostWorkers, ...]]:
    """Those places of the cluster that answer."""
    if config.workers:
        raise BadInput("--ray and --workers both say where workers are", hint="leave out one of them")
    refuse_missing_ray()
    note(f"connecting to Ray at {config.ray}" if config.ray != LOCAL else "starting Ray on this machine")
    short = None if len(tempfile.gettempdir()) <= LONGEST_FOLDER else "/tmp"
    with tempfile.TemporaryDirectory(prefix="tunesmith-ray-", dir=short) as folder:
        cluster = RayCluster(config.ray, Path(folder), note)
        try:
            with reachable_hosts(cluster.first(), note) as hosts:
                yield hosts
        finally:
            cluster.close()
