"""A worker without a process, for kernels known to be harmless: starts at once, and keeps a log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith import backends
from tunesmith.backends.messages import REPLY_TYPES, REQUEST_TYPES, Reply, Request
from tunesmith.backends.port import Backend
from tunesmith.base.codec import decode_tagged, encode_tagged
from tunesmith.lab.process import WorkerProcess, WorkerReplaced
from tunesmith.lab.worker.requests import RequestHandler
from tunesmith.session import place


@dataclass(frozen=True)
class Served:
    purpose: str
    generation: int
    request: Request
    reply: Reply
    begin: float
    end: float


@dataclass
class Log:
    """What the workers of one lab were asked, in the order it was answered."""

    served: list[Served] = field(default_factory=list)
    processes: dict[str, LoggedWorker] = field(default_factory=dict)  # by purpose, where they are real ones

    def of(self, kind: type) -> list[Served]:
        return [s for s in self.served if isinstance(s.request, kind)]

    def clear(self) -> None:
        self.served.clear()


class InProcessWorker:
    """Speaks like `WorkerProcess`, with every message encoded and decoded as on the way to one."""

    _one_at_a_time = threading.Lock()  # a driver in this process is shared by all of them

    def __init__(self, purpose: str, backend: Callable[[], Backend], log: Log) -> None:
        self._purpose = purpose
        self._backend = backend
        self._log = log
        self._bench: RequestHandler | None = None
        self.generation = 0

    @property
    def alive(self) -> bool:
        return self._bench is not None

    def ensure_started(self) -> None:
        if self._bench is None:
            self._bench = RequestHandler(self._backend())
            self.generation += 1

    def close(self) -> None:
        self.kill()

    def kill(self) -> None:
        self._bench = None

    def request(
        self, request: Request, blobs: Sequence[bytes] = (), *, deadline: float, generation: int | None = None
    ) -> tuple[Reply, tuple[bytes, ...]]:
        with self._one_at_a_time:
            self.ensure_started()
            if generation is not None and generation != self.generation:
                raise WorkerReplaced
            begin = time.perf_counter()
            sent = decode_tagged(encode_tagged(request), REQUEST_TYPES)
            assert sent == request, "the request does not survive its journey"
            answer, parts = self._bench.handle(sent, blobs)
            reply = decode_tagged(encode_tagged(answer), REPLY_TYPES)
            served = Served(self._purpose, self.generation, request, reply, begin, time.perf_counter())
            self._log.served.append(served)
            return reply, parts


class LoggedWorker(WorkerProcess):
    """A real worker that keeps the same log."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def __init__(self, purpose: str, worker: WorkerProcess, log: Log) -> None:
        super().__init__(worker._command, worker._environment)
        self._purpose = purpose
        self._log = log

    def request(
        self, request: Request, blobs: Sequence[bytes] = (), *, deadline: float, generation: int | None = None
    ) -> tuple[Reply, tuple[bytes, ...]]:
        begin = time.perf_counter()
        reply, parts = super().request(request, blobs, deadline=deadline, generation=generation)
        served = Served(self._purpose, self.generation, request, reply, begin, time.perf_counter())
        self._log.served.append(served)
        return reply, parts


def spawner(
    spec: str, log: Log, scratch: Path | None, backend: Callable[[], Backend] | None = None
) -> Callable[[str], InProcessWorker | LoggedWorker]:
    """Makes workers for a lab: real ones where there is a scratch folder, else in this process, and then of
    any backend."""
    if scratch is None:
        return lambda purpose: InProcessWorker(purpose, backend or (lambda: backends.make_backend(spec)), log)
    spawn = place.WorkerSite(spec, scratch).spawn
    return lambda purpose: log.processes.setdefault(purpose, LoggedWorker(purpose, spawn(purpose), log))
