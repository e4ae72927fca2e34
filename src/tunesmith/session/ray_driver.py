"""The process beside a run with `--ray`: the driver of the cluster, so that Ray's threads and prints are not
the run's. It has one actor for each place that is used, which hosts workers on its node; whoever connects to
the socket and names a place calls that. It ends when its input does, and its actors with it.

On standard output it says, a line of JSON each: {"place": ...}, {"ready": true} after the first of them,
{"left": ID}, or {"fault": TEXT} before it ends. It is started as a program: Ray then sends the actor's class
to nodes by value.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tunesmith.lab.remote import CLOSE_SECONDS, ByteStream, LostHost, call_parts, message_parts, read_call
from tunesmith.problem import codec

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


def places(nodes: Sequence[Mapping[str, Any]]) -> Iterator[ClusterPlace]:
    """One for each GPU, and one for each node without, which only builds; where no node has any, the first
    measures: a run has one processor. A node's cores are shared out among its GPUs."""
    alive = [node for node in nodes if node.get("Alive")]
    is_wanted = not any(_count(node, "GPU") for node in alive)  # one that measures, of those without
    for node in alive:
        identity, cpus, gpus = str(node["NodeID"]), _count(node, "CPU"), _count(node, "GPU")
        host = str(node.get("NodeManagerHostname") or "node")
        title = "".join(c if c.isalnum() or c in "-._" else "_" for c in f"{host}-{identity[:6]}")
        for number in range(gpus):
            name = f"{title}:{number}"
            yield ClusterPlace(f"{identity}:{number}", name, identity, 1, cpus // gpus)
        if not gpus and cpus:
            yield ClusterPlace(identity, title, identity, 0, cpus, measures=is_wanted)
            is_wanted = False


def _count(node: Mapping[str, Any], resource: str) -> int:
    return int(node.get("Resources", {}).get(resource, 0))


class HostActor:
    """The host of workers on a node."""

    def __init__(self) -> None:
        from tunesmith.session import worker_host
        from tunesmith.session.workplace import temporary_scratch

        self._until = contextlib.ExitStack()
        self._host = worker_host.WorkerHost(self._until.enter_context(temporary_scratch()))
        self._until.callback(self._host.close)
        self._greeting = worker_host.host_greeting()

    def greet(self) -> list[bytes]:
        from tunesmith.lab.remote import message_parts

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
        found = {place.id: place for place in places(self._ray.nodes())}
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
            threading.Thread(target=self._answer, args=(client,), name=CARRIES, daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as calls:
            place = self._places.get(calls.readline(1 << 10).decode(errors="replace").strip())
            if place is None:
                _send(client, message_parts(LostHost("the cluster has no such place")))
            else:
                self._carry(client, calls, place)

    def _carry(self, client: socket.socket, calls: ByteStream, place: ClusterPlace) -> None:
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
                _send(client, parts, call)

        try:
            if not self._is_placed(actor, client):
                return
            _send(client, self._ray.get(actor.greet.remote()))
            while (found := read_call(calls)) is not None:
                if found[0]:  # the lab's greeting is for no worker
                    threading.Thread(target=answer, args=found, daemon=True).start()
            self._ray.get(actor.close.remote(), timeout=CLOSE_SECONDS)
        except (OSError, codec.Malformed, self._ray.exceptions.RayError) as error:
            with sending:
                _send(client, message_parts(LostHost(_first_lines(error))))
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
                _send(client, message_parts(LostHost("its node had no room: others hold what it has")))
                return False
        return True  # or it cannot be, which the next call tells


def _send(client: socket.socket, parts: Sequence[bytes], call: int = 0) -> None:
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


def main(address: str, path: str) -> int:
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
    sys.exit(main(*sys.argv[1:]))
