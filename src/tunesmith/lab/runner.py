"""The one process that submits to the device: what it may answer, and what its death means."""

from __future__ import annotations

from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput, TunesmithError
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
from tunesmith.lab.oracle import USER_CODE_HINT, Run, Verdict
from tunesmith.lab.process import WorkerDied, WorkerProcess, WorkerReplaced, WorkerTimedOut

LOAD_SECONDS = 60.0
ATTEMPTS = 3
_FAILED = {"memory": Status.OVER_LIMITS, "unsupported": Status.INFEASIBLE, "build": Status.BUILD_FAILED}


class Runner:
    def __init__(self, worker: WorkerProcess, device: Device) -> None:
        self._worker = worker
        self._device = device
        self._loaded: set[str] = set()
        self._generation = 0

    def run(self, code: BuiltCode, plan: Plan, draw: Draw, deadline: float) -> Run | Verdict:
        reply = self._ask_loaded([code], RunCase(code.code_digest, plan, draw), deadline)
        if isinstance(reply, Verdict):
            return reply
        report, blobs = reply
        if isinstance(report, Ran) and len(blobs) == len(plan.compared()):
            if any(b.damage for b in report.buffers):
                self.restart()  # what else it hit, perhaps in this very process, nobody knows
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
        entries = tuple(Contender(code.code_digest, plan) for code, plan in contenders)
        codes = [code for code, _ in contenders]
        reply = self._ask_loaded(codes, TimeRuns(entries, draw, policy, warm), deadline)
        if isinstance(reply, Verdict):
            return reply
        timed = reply[0]
        if not isinstance(timed, Timed) or not _as_asked(timed, len(contenders)):
            return Verdict(Status.CRASHED, "the worker answered something else than was asked")
        if min(map(min, timed.samples)) <= 0:
            return Verdict(Status.SUSPECT, "the device says that a launch took no time")
        return timed

    def restart(self) -> None:
        self._worker.kill()

    def _ask_loaded(
        self, codes: list[BuiltCode], request: RunCase | TimeRuns, deadline: float
    ) -> tuple[object, tuple[bytes, ...]] | Verdict:
        """Ask a worker that knows the code; should it die between the two, its successor is told again."""
        for _ in range(ATTEMPTS):
            self._worker.ensure_started()
            if self._generation != self._worker.generation:
                self._loaded.clear()
                self._generation = self._worker.generation
            try:
                refused = next((verdict for code in codes if (verdict := self._load(code))), None)
                return refused or self._ask(request, deadline)
            except WorkerReplaced:
                continue
        raise TunesmithError("device workers die as soon as they are started", hint="run: tunesmith doctor")

    def _load(self, code: BuiltCode) -> Verdict | None:
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
            reply, answer = self._worker.request(
                request, blobs, deadline=deadline, generation=self._generation
            )
        except WorkerTimedOut:
            return Verdict(Status.TIMED_OUT, f"no answer within {deadline:.1f} s")
        except WorkerDied as error:
            return Verdict(Status.CRASHED, str(error))
        if isinstance(reply, Failed):
            if reply.what == "user":
                raise BadInput(reply.message, hint=USER_CODE_HINT)
            if reply.what == "launch":
                self.restart()  # after an illegal access a driver fails whoever comes next
            return Verdict(_FAILED.get(reply.what, Status.CRASHED), reply.message)
        return reply, answer


def _as_asked(timed: Timed, contenders: int) -> bool:
    """Samples for every contender, as many for one as for the other."""
    counts = {len(samples) for samples in timed.samples}
    return len(timed.samples) == contenders and len(counts) == 1 and 0 not in counts
