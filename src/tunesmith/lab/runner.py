"""The one process that submits to the device: what it may answer, and what its death means."""

from __future__ import annotations

from tunesmith.core.device import Device
from tunesmith.core.messages import (
    Contender,
    Draw,
    Failed,
    Load,
    Ran,
    RunCase,
    Timed,
    TimeRuns,
    TimingPolicy,
)
from tunesmith.core.outcome import Status
from tunesmith.core.plan import Plan
from tunesmith.lab.builders import BuiltCode
from tunesmith.lab.oracle import Run, Verdict
from tunesmith.lab.process import WorkerDied, WorkerProcess, WorkerTimedOut

LOAD_SECONDS = 60.0
_FAILED = {"memory": Status.OVER_LIMITS, "unsupported": Status.INFEASIBLE, "build": Status.BUILD_FAILED}


class Runner:
    def __init__(self, worker: WorkerProcess, device: Device) -> None:
        self._worker = worker
        self._device = device
        self._loaded: set[str] = set()
        self._generation = 0

    def run(self, code: BuiltCode, plan: Plan, draw: Draw, deadline: float) -> Run | Verdict:
        loaded = self._load(code)
        if loaded is not None:
            return loaded
        reply = self._ask(RunCase(code.code_digest, plan, draw), deadline)
        if isinstance(reply, Verdict):
            return reply
        report, blobs = reply
        if isinstance(report, Ran) and len(blobs) == len(plan.compared()):
            return Run(report, blobs)
        return Verdict(Status.CRASHED, "the worker answered something else than was asked")

    def time(
        self,
        contenders: list[tuple[BuiltCode, Plan]],
        draw: Draw,
        policy: TimingPolicy,
        warm: bool,
        deadline: float,
    ) -> Timed | Verdict:
        for code, _ in contenders:
            loaded = self._load(code)
            if loaded is not None:
                return loaded
        entries = tuple(Contender(code.code_digest, plan) for code, plan in contenders)
        reply = self._ask(TimeRuns(entries, draw, policy, warm), deadline)
        if isinstance(reply, Verdict):
            return reply
        if isinstance(reply[0], Timed) and all(reply[0].samples):
            return reply[0]
        return Verdict(Status.CRASHED, "the worker answered something else than was asked")

    def restart(self) -> None:
        self._worker.kill()

    def _load(self, code: BuiltCode) -> Verdict | None:
        self._worker.ensure_started()
        if self._generation != self._worker.generation:
            self._loaded.clear()
            self._generation = self._worker.generation
        if code.code_digest in self._loaded:
            return None
        reply = self._ask(Load(code.unit, code.code_digest, self._device), LOAD_SECONDS, (code.binary,))
        if isinstance(reply, Verdict):
            return reply
        self._loaded.add(code.code_digest)
        return None

    def _ask(
        self, request: Load | RunCase | TimeRuns, deadline: float, blobs: tuple[bytes, ...] = ()
    ) -> tuple[object, tuple[bytes, ...]] | Verdict:
        try:
            reply, answer = self._worker.request(request, blobs, deadline=deadline)
        except WorkerTimedOut:
            return Verdict(Status.TIMED_OUT, f"no answer within {deadline:.1f} s")
        except WorkerDied as error:
            return Verdict(Status.CRASHED, str(error))
        if isinstance(reply, Failed):
            return Verdict(_FAILED.get(reply.what, Status.CRASHED), reply.message)
        return reply, answer
