"""The bench: what a worker does with a request. Where kernels could reach it, it reports and never judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Protocol, TypeVar, runtime_checkable

from tunesmith.backends import messages as m
from tunesmith.backends import port
from tunesmith.backends.port import (
    Backend,
    BuildFailed,
    Executable,
    Marking,
    Memory,
    OutOfMemory,
    Pointer,
    Session,
)
from tunesmith.base.text import digest_of
from tunesmith.lab import memory as guards
from tunesmith.lab import references
from tunesmith.lab.device_lock import BUSY, DeviceBusy, DeviceLock, lock_name
from tunesmith.lab.memory import bind_calls, initial_payload
from tunesmith.lab.worker.buffer_ring import BufferRing, needs_restoring
from tunesmith.lab.worker.device_cases import StoredCases
from tunesmith.lab.worker.host_cases import run_case
from tunesmith.lab.worker.timing import Stopwatch
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Status
from tunesmith.run.protection import Protection

Answer = tuple[m.Reply, tuple[bytes, ...]]
T = TypeVar("T")
MEMORY_ATTEMPTS = 6
OfCase = m.RunCase | m.StoreCase | m.CheckCase | m.CheckCases
# What waits for a turn, though not for long, so as not to disturb whoever times.
RUNS_KERNELS = (m.RunCase, m.StoreCase, m.CheckCase, m.CheckCases, m.LaunchOnce)
_FAILURES: dict[type[Exception], str] = {
    port.BuildFailed: "build",
    OutOfMemory: "memory",
    port.LaunchFailed: "launch",
    port.DeviceLost: "lost",
    port.Unsupported: "unsupported",
    references.UserCodeFailed: "user",
    DeviceBusy: BUSY,
}


@runtime_checkable
class Clustering(Protocol):
    """A session whose driver says how many clusters of a launch run at once."""

    def active_clusters(self, call: port.LaunchCall) -> int | None: ...


class RequestHandler:
    """One backend, one open device, the executables loaded so far."""

    def __init__(self, backend: Backend) -> None:
        self.protection = Protection(())  # of the process, which knows
        self.compilers: Callable[[], tuple[tuple[str, str], ...]] = lambda: ()
        self._backend = backend
        self._session: Session | None = None
        self._device: Device | None = None
        self._executables: dict[str, Executable] = {}
        self._stopwatch: Stopwatch | None = None
        self._lock = DeviceLock()
        self._cases: StoredCases | None = None

    def handle(self, request: m.Request, blobs: Sequence[bytes]) -> Answer:
        waited = self._lock.waited
        try:
            with self._lock.shared() if isinstance(request, RUNS_KERNELS) else nullcontext():
                reply, answer = self._answer_request(request, blobs)
        except tuple(_FAILURES) as error:
            what = next(what for kind, what in _FAILURES.items() if isinstance(error, kind))
            return m.Failed(what, str(error)), ()
        except MemoryError:
            return m.Failed("memory", "the host has no memory left for the inputs"), ()
        if isinstance(reply, m.WAITING):
            reply = replace(reply, waited=self._lock.waited - waited)
        return reply, answer

    def _answer_request(self, request: m.Request, blobs: Sequence[bytes]) -> Answer:
        match request:
            case m.TellProtection():
                return self.protection, ()
            case m.ListDevices():
                found = self._backend.devices()
                return m.Devices(found, tuple(map(self._device_card, found))), ()
            case m.ListCompilers():
                return m.Compilers(self.compilers()), ()
            case m.Build():
                binary = self._build(request.unit, request.device)
                return m.Built(binary.code_digest, binary.resources, binary.log), (binary.data,)
            case m.Open():
                self._make_ready(request.device)
                return m.Done(), ()
            case m.Load():
                self._load(request, blobs[0])
                return m.Done(), ()
            case m.JudgeOutputs():
                judged = self._stored().judge_outputs(request, blobs)
                return judged or m.Failed("forgotten", "there is no such case on the device"), ()
            case m.TimeRuns():
                return self._time(request)
            case m.TimeAll():
                return self._time_each(request)
            case m.CountClusters():
                return self._count_clusters(request), ()
            case m.LaunchOnce():
                self._launch_once(request)
                return m.Done(), ()
            case m.RunBare():
                self._run_bare(request, blobs)
                return m.Done(), ()
            case m.Refer():
                return references.compute_expected(request)
            case m.CompareOutputs():
                return references.answer_comparison(request, blobs), ()
            case m.FindTools() | m.RunUnder() | m.CountLaunches():
                return m.Failed("unsupported", "a worker that runs kernels starts no tools"), ()
        return self._with_room(lambda: self._answer_of_case(request, blobs))

    def _answer_of_case(self, request: OfCase, blobs: Sequence[bytes]) -> Answer:
        match request:
            case m.RunCase():
                return self._run_case(request)
            case m.StoreCase():
                return self._stored().store(request, blobs, self._executables[request.code_digest]), ()
            case m.CheckCase():
                return self._check_and_send(request)
            case m.CheckCases():
                return self._check_cases(request), ()

    def _build(self, unit: m.Unit, device: Device) -> port.KernelBinary:
        if unit.vetted and digest_of(unit.source) != unit.vetted:
            raise BuildFailed(f"{unit.path} is not the text that was vetted")
        return self._backend.build(unit, device)

    def _open(self, device: Device) -> Session:
        if self._session is not None and self._device == device:
            return self._session
        session = self._session = self._opened(device)
        self._device = device
        self._executables.clear()
        self._stopwatch = Stopwatch(session, device)
        self._lock = DeviceLock(lock_name(device, self._device_card(device)))
        inspector = session.inspector
        self._cases = StoredCases(session, inspector, device) if inspector else None
        return session

    def _device_card(self, device: Device) -> str:
        card: Callable[[Device], str] = getattr(self._backend, "card", lambda _device: "")
        return card(device)

    def _make_ready(self, device: Device) -> None:
        session = self._open(device)
        if session.inspector is not None:  # it is built when it is first used
            memory = session.allocate(guards.POISON_PERIOD)
            session.inspector.fill(port.Pointer(memory, 0, guards.POISON_PERIOD), guards.PATTERN)
            session.release(memory)

    def _load(self, request: m.Load, binary: bytes) -> None:
        session = self._open(request.device)
        self._executables[request.code_digest] = session.load(request.unit, binary)

    def _opened(self, device: Device) -> Session:
        """It was listed when the run began: whatever keeps it from being opened, it is gone."""
        try:
            return self._backend.open(device)
        except (port.LaunchFailed, port.Unsupported) as error:
            raise port.DeviceLost(f"{device.name} cannot be opened any more: {error}") from error

    def _with_room(self, action: Callable[[], Answer]) -> Answer:
        # What was laid out for timing may take the room, and then what is kept of other cases.
        for holder in (self._stopwatch, self._cases):
            if holder is not None:
                try:
                    return action()
                except OutOfMemory:
                    holder.give_back()
        return action()

    def _time(self, request: m.TimeRuns) -> Answer:
        executables = [self._executables[c.code_digest] for c in request.contenders]
        original = self._original(request)
        timed, blobs = self._time_in_turn(
            lambda stopwatch: stopwatch.time(request, executables, original), [request], request.needs_turn
        )
        return timed, tuple(blobs)

    def _time_each(self, request: m.TimeAll) -> Answer:
        loaded, requests = self._executables, request.runs
        each = [(r, loaded[c.code_digest], self._original(r)) for r in requests for c in r.contenders]
        assert len(each) == len(requests), "several at once are timed in alternation"
        timed, blobs = self._time_in_turn(
            lambda stopwatch: stopwatch.time_each(each), requests, request.needs_turn
        )
        return m.AllTimed(timed), tuple(blobs)

    def _original(self, request: m.TimeRuns) -> Executable | None:
        """What judges beside the device; the host's judge has its own, elsewhere."""
        judges = request.original is not None and self._session is not None and self._session.inspector
        return self._executables[request.original.code_digest] if judges and request.original else None

    def _count_clusters(self, request: m.CountClusters) -> m.ClustersHeld:
        session: object = self._session
        executable = self._executables[request.code_digest]
        if not isinstance(session, Clustering):
            return m.ClustersHeld((None,) * len(request.plan.launches))
        calls = (
            port.LaunchCall(executable, g.entry, g.grid, g.block, g.shared, (), g.cluster)
            for g in request.plan.launches
        )
        return m.ClustersHeld(tuple(session.active_clusters(c) if c.cluster else None for c in calls))

    def _launch_once(self, request: m.LaunchOnce) -> None:
        session, device, plan = self._session, self._device, request.contender.plan
        assert session is not None and device is not None, "nothing has been loaded"
        # One copy of the data and no more: a profiler that runs a launch several times keeps all memory.
        arenas = BufferRing(session, device)
        laid_out = arenas.lay_out(plan.buffers, 1, plan, request.draw)
        pointers = {b.name: Pointer(laid_out[b.name].memory, 0, max(b.nbytes, 1)) for b in plan.buffers}
        calls = bind_calls(plan, self._executables[request.contender.code_digest], pointers)
        if request.warm:
            session.run(calls)
            for b in filter(needs_restoring, plan.buffers):
                arenas.restore(b, laid_out[b.name], (0,))
        with session.profiled() if isinstance(session, Marking) else nullcontext():
            session.run(calls)
        arenas.give_back()

    def _run_bare(self, request: m.RunBare, blobs: Sequence[bytes]) -> None:
        """Outputs and workspaces stay as they were allocated: what we put there would hide a read of what
        nobody wrote. Nothing lies around an array that a tool would take for a part of it."""
        device = request.device
        if not blobs:
            listed = self._backend.devices()
            if not listed:
                raise port.Unsupported("the tool shows no device")
            device = device if device.untimed else listed[0]
        binary = blobs[0] if blobs else self._build(request.unit, device).data
        session = self._opened(device)
        executable = session.load(request.unit, binary)
        kept: list[dict[str, Memory]] = []  # a tool may mistake a later array for one that lay there before
        for run in request.runs:
            inputs = references.draw_inputs(run.plan, run.draw)
            memory = {b.name: session.allocate(max(b.nbytes, 1)) for b in run.plan.buffers}
            for b in run.plan.buffers:
                if b.name in inputs:
                    session.write(memory[b.name], 0, inputs[b.name].tobytes())
                elif b.init is not None and b.nbytes:
                    session.write(memory[b.name], 0, initial_payload(b, guards.PATTERN))
            pointers = {b.name: Pointer(memory[b.name], 0, max(b.nbytes, 1)) for b in run.plan.buffers}
            kept.append(memory)
            session.run(bind_calls(run.plan, executable, pointers))

    def _time_in_turn(
        self, action: Callable[[Stopwatch], T], requests: Sequence[m.TimeRuns], needs_turn: bool
    ) -> T:
        """In one turn. Data that the host draws is laid out before it."""
        stopwatch = self._stopwatch
        assert stopwatch is not None, "nothing has been loaded"
        if self._device is not None and self._device.untimed:
            raise port.Unsupported(f"nothing is timed on {self._device.name}: it stands in for a GPU")
        for _ in range(MEMORY_ATTEMPTS):
            try:
                if self._device is not None and self._device.is_host:
                    stopwatch.lay_out(requests)
                with self._lock.alone() if needs_turn else self._lock.shared():
                    return action(stopwatch)
            except OutOfMemory:
                if self._cases is not None and self._cases.give_back():
                    continue  # what is kept for judging gives way first
                stopwatch.rotate_less()
        with self._lock.alone() if needs_turn else self._lock.shared():
            return action(stopwatch)

    def _check_case(self, request: m.CheckCase) -> m.Reply:
        judged = self._stored().check(request, self._executables[request.code_digest])
        return judged or m.Failed("forgotten", "there is no such case on the device")

    def _check_and_send(self, request: m.CheckCase) -> Answer:
        reply = self._check_case(request)
        right = isinstance(reply, m.Judged) and reply.status is Status.OK
        return reply, self._stored().outputs(request.plan) if right and request.sends else ()

    def _check_cases(self, request: m.CheckCases) -> m.Reply:
        verdicts: list[m.Judged] = []
        for check in request.checks:
            judged = self._check_case(check)
            if not isinstance(judged, m.Judged):
                return judged
            verdicts.append(judged)
            if judged.status is not Status.OK:
                break
        return m.AllJudged(tuple(verdicts))

    def _stored(self) -> StoredCases:
        assert self._cases is not None, "this backend cannot judge on the device"
        return self._cases

    def _run_case(self, request: m.RunCase) -> Answer:
        session, device = self._session, self._device
        assert session is not None and device is not None, "nothing has been loaded"
        return run_case(session, device, request, self._executables[request.code_digest])
