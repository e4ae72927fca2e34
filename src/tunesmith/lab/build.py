"""Who builds: a pool of workers that only compile, in parallel and each unit once, and what builds tell."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from tunesmith.backends import messages as m
from tunesmith.base.errors import BadInput, TunesmithError
from tunesmith.base.text import digest_of
from tunesmith.lab.memory import Verdict
from tunesmith.lab.process import WorkerDied, WorkerProcess, WorkerTimedOut
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, Variant, builds_of
from tunesmith.run.events import Surveyed, SurveyedBuild
from tunesmith.run.outcome import Result, judge_build
from tunesmith.space.configset import Config

BUILD_SECONDS = 120.0
COMPILER_CRASHED, COMPILER_SLOW = "the compiler crashed", "the compiler took more than"


@dataclass(frozen=True)
class BuiltCode:
    unit: m.Unit
    binary: bytes
    code_digest: str
    resources: Resources
    seconds: float


def unit_of(v: Variant, compiler: str = "") -> m.Unit:
    return m.Unit(v.path, v.source, v.language, v.flags, v.entries, v.headers, compiler)


class Builders:
    """`start` returns at once; equal units share one build. One compiler, by name, builds them all."""

    def __init__(
        self, spawn: Callable[[], WorkerProcess], device: Device, count: int, *, compiler: str = ""
    ) -> None:
        self._spawn = spawn
        self._device = device
        self._compiler = compiler
        self._count = count
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="build")
        self._idle: queue.SimpleQueue[WorkerProcess] = queue.SimpleQueue()
        self._workers: list[WorkerProcess] = []
        self._builds: dict[m.Unit, Future[BuiltCode | Verdict]] = {}
        self._lock = threading.Lock()
        self._closed = False

    def start(self, variant: Variant) -> Future[BuiltCode | Verdict]:
        unit = unit_of(variant, self._compiler)
        with self._lock:
            if unit not in self._builds:
                self._builds[unit] = self._threads.submit(self._build, unit, variant)
            return self._builds[unit]

    def build(self, variant: Variant, what: str, hint: str) -> BuiltCode:
        """The code; an error where the compiler refuses it, which is then the user's to mend."""
        code = self.start(variant).result()
        if isinstance(code, BuiltCode):
            return code
        if code.detail.startswith(COMPILER_CRASHED):
            raise TunesmithError(code.detail, hint="see what is missing with: tunesmith doctor")
        raise BadInput(f"{what} does not compile:\n{code.detail}", where=variant.path, hint=hint)

    def warm(self) -> None:
        """Start every worker now, so that the first builds do not wait for them."""
        with self._lock:
            missing = [self._spawn() for _ in range(self._count - len(self._workers))]
            self._workers += missing
        for worker in missing:
            worker.ensure_started()
            self._idle.put(worker)

    def forget(self) -> None:
        """Drop every finished build and every worker, so that the next build starts from nothing."""
        with self._lock:
            for waiting in self._builds.values():
                waiting.cancel()
            self._builds.clear()
        for worker in self._workers:
            worker.kill()

    def close(self) -> None:
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in list(self._workers):
            worker.kill()
        self._threads.shutdown(wait=True)
        for worker in list(self._workers):
            worker.kill()

    def _build(self, unit: m.Unit, variant: Variant) -> BuiltCode | Verdict:
        if self._closed:
            return Verdict(Status.BUILD_FAILED, "the lab is closing")
        if variant.made_from:
            from tunesmith.problem.vet import variant_fault  # a whole reader of C

            if fault := variant_fault(variant, self._device.limits.capability):
                words = re.sub(r"\A(?:line (\d+))?", lambda at: f":{at[1]}" if at[1] else ": ", fault)
                return Verdict(Status.BUILD_FAILED, unit.path + words)
            unit = replace(unit, vetted=digest_of(unit.source))
        return self._build_unit(unit)

    def _build_unit(self, unit: m.Unit) -> BuiltCode | Verdict:
        worker = self._take_worker()
        try:
            return self._ask_worker(worker, unit)
        finally:
            self._idle.put(worker)

    def _ask_worker(self, worker: WorkerProcess, unit: m.Unit) -> BuiltCode | Verdict:
        start = time.perf_counter()
        try:
            build = m.Build(unit, self._device_at(worker))
            reply, blobs = worker.request(build, deadline=BUILD_SECONDS)
        except WorkerTimedOut:
            return Verdict(Status.BUILD_FAILED, f"{COMPILER_SLOW} {BUILD_SECONDS:.0f} s")
        except (WorkerDied, OSError, ValueError) as error:
            return Verdict(Status.BUILD_FAILED, f"{COMPILER_CRASHED}: {error}")
        if isinstance(reply, m.Failed):
            return Verdict(Status.BUILD_FAILED, reply.message)
        assert isinstance(reply, m.Built)
        return BuiltCode(unit, blobs[0], reply.code_digest, reply.resources, time.perf_counter() - start)

    def _device_at(self, _worker: WorkerProcess) -> Device:
        return self._device

    def _take_worker(self) -> WorkerProcess:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            worker = self._spawn()
            with self._lock:
                self._workers.append(worker)
            return worker


@dataclass
class BuildSurveyor:
    """Builds configurations that do not run yet, and says what their builds tell, in the order in which they
    were submitted, whichever build was faster."""

    _problem: Problem
    _device: Device
    _builders: Builders
    _queue: deque[tuple[Template | None, Config | None]] = field(default_factory=deque)

    def submit(self, template: Template | None, config: Config | None) -> None:
        self._queue.append((template, config))
        for built in builds_of(self._problem, template, config):
            self._builders.start(built.variant)

    def collect(self) -> Surveyed:
        template, config = self._queue[0]
        builds: list[SurveyedBuild] = []
        refused: list[Result] = []
        for built in builds_of(self._problem, template, config):
            names = tuple(w.name for w in built.workloads)
            code = self._builders.start(built.variant).result()
            if isinstance(code, Verdict):
                builds.append(SurveyedBuild(names, built.variant.digest))
                refused += [Result(name, code.status, detail=code.detail) for name in names]
                continue
            found = judge_build(self._problem, built, self._device, code.resources)
            digests = (built.variant.digest, code.code_digest)
            builds.append(SurveyedBuild(names, *digests, code.resources, found.occupancy, found.launches))
            refused += found.refused
        self._queue.popleft()
        return Surveyed(config, tuple(builds), tuple(refused))

    def drop(self) -> None:
        """Forget what nobody will collect; what the compiler has begun it ends."""
        self._queue.clear()

    def close(self) -> None:
        self._builders.close()
