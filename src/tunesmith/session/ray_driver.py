"""The process beside a run with `--ray`: the driver of the cluster, so that Ray's threads and prints are not
the run's. It has one actor for each place that is used, which runs `tunesmith worker` on its node; whoever
connects to the socket and names a place speaks with that. It ends when its input does, and its actors with
it.

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
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

LOCAL = "local"  # a cluster of this machine alone, as long as the run needs it
CHUNK = 1 << 20  # bytes
LOOK_EVERY = 2.0  # seconds between two looks at the nodes
MOMENT = 0.5  # seconds between two looks whether an actor is still waited for
WHY = "why "  # before a place: what became of it


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
    """On its node: runs the host of workers, and carries its bytes. The host ends when its input does, which
    is when this goes."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-P", "-m", "tunesmith", "worker"]
        self._host = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
        )
        self._printed = b""
        self._drain = threading.Thread(target=self._listen, daemon=True)
        self._drain.start()

    def write(self, data: bytes) -> None:
        assert self._host.stdin is not None
        view = memoryview(data)
        while view:
            view = view[self._host.stdin.write(view) :]

    def end_input(self) -> None:
        assert self._host.stdin is not None
        self._host.stdin.close()

    def read(self, most: int) -> bytes:
        assert self._host.stdout is not None
        return self._host.stdout.read(most) or b""

    def last_words(self) -> str:
        self._drain.join(timeout=1)
        code = self._host.poll()
        return f"exit status {code}; {self._printed.decode(errors='replace').strip()}"

    def _listen(self) -> None:
        assert self._host.stderr is not None
        while data := self._host.stderr.read(1 << 16):
            self._printed = (self._printed + data)[-4096:]


class Driver:
    def __init__(self, ray: Any, says: int) -> None:
        self._ray, self._says = ray, says
        self._places: dict[str, ClusterPlace] = {}
        self._why: dict[str, str] = {}
        self._lock = threading.Lock()

    def say(self, **fact: object) -> None:
        with self._lock:
            os.write(self._says, json.dumps(fact).encode() + b"\n")

    def look(self) -> None:
        """At the nodes: tell of places that have come, and of those that have gone."""
        found = {place.id: place for place in places(self._ray.nodes())}
        for gone in self._places.keys() - found.keys():
            del self._places[gone]
            self._why[gone] = "its node has left the cluster"
            self.say(left=gone)
        for place in found.values():
            if place.id not in self._places:
                self._places[place.id] = place
                self.say(place=asdict(place))

    def serve(self, listening: socket.socket) -> None:
        while True:
            client, _ = listening.accept()
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, client.makefile("rb", buffering=0) as lines:
            asked = lines.readline(1 << 10).decode(errors="replace").strip()
            if asked.startswith(WHY):
                client.sendall(self._why.get(asked.removeprefix(WHY), "").encode())
            elif (place := self._places.get(asked)) is not None:
                self._carry(client, place)
            else:
                self._why.setdefault(asked, "the cluster has no such place")

    def _carry(self, client: socket.socket, place: ClusterPlace) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(place.node, soft=False)
        wanted = {"num_gpus": place.gpus, "num_cpus": place.cpus, "scheduling_strategy": there}
        actor = self._ray.remote(HostActor).options(**wanted, max_concurrency=3, max_restarts=0).remote()
        self._why[place.id] = "the connection was closed"
        try:
            if not self._is_placed(actor, client):
                self._why[place.id] = "its node had no room: others hold what it has"
                return
            down = threading.Thread(target=self._carry_down, args=(client, place, actor), daemon=True)
            down.start()
            while data := client.recv(CHUNK):
                self._ray.get(actor.write.remote(data))
            self._ray.get(actor.end_input.remote())
            down.join(timeout=5)
        except (OSError, self._ray.exceptions.RayError) as error:
            self._why[place.id] = _first_lines(error)
        finally:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(actor)  # its GPU is free again; one that waits for it no longer does

    def _is_placed(self, actor: Any, client: socket.socket) -> bool:
        """False where whoever waits for it has gone before its node had room."""
        placed = actor.__ray_ready__.remote()
        while not self._ray.wait([placed], timeout=MOMENT)[0]:
            if is_left(client):
                return False
        return True  # or it cannot be, which the next call tells

    def _carry_down(self, client: socket.socket, place: ClusterPlace, actor: Any) -> None:
        try:
            while data := self._ray.get(actor.read.remote(CHUNK)):
                client.sendall(data)
            self._why[place.id] = self._ray.get(actor.last_words.remote(), timeout=5)
        except (OSError, self._ray.exceptions.RayError) as error:
            self._why[place.id] = _first_lines(error)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


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
    os._exit(0)  # Ray ends actors whose driver is gone


def main(address: str, path: str) -> int:
    says = os.dup(1)
    os.dup2(2, 1)  # what Ray prints
    threading.Thread(target=_end_with_input, daemon=True).start()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    driver = Driver(ray, says)
    own: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **own)
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
