"""The one process that submits to the device: what it may answer, and what its death means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.core.device import Device
from tunesmith.core.errors import BadInput, TunesmithError
from tunesmith.core.messages import (
    AllJudged,
    AllTimed,
    CheckCase,
    CheckCases,
    Contender,
    Draw,
    Failed,
    Judged,
    KeepCase,
    Load,
    Ran,
    RunCase,
    TimeAll,
    Timed,
    TimeRuns,
    TimingPolicy,
)
from tunesmith.core.outcome import Status
from tunesmith.core.plan import Plan
from tunesmith.lab.builders import BuiltCode
from tunesmith.lab.process import WorkerDied, WorkerProcess, WorkerReplaced, WorkerTimedOut
from tunesmith.lab.references import USER_CODE_HINT
from tunesmith.lab.verdicts import Verdict

LOAD_SECONDS = 60.0
ATTEMPTS = 3
Asked = RunCase | KeepCase | CheckCase | CheckCases | TimeRuns | TimeAll
FORGOTTEN = Verdict(Status.CRASHED, "the device has forgotten the case")
_FAILED = {"memory": Status.OVER_LIMITS, "unsupported": Status.INFEASIBLE, "build": Status.BUILD_FAILED}


@dataclass(frozen=True)
class CaseOutputs:
    """What a worker reported of one case: digests, and the bytes of the outputs after the first run."""

    report: Ran
    outputs: tuple[bytes, ...]


@dataclass(frozen=True)
class Race:
    """Kernels to time in alternation, on the same data."""

    contenders: tuple[tuple[BuiltCode, Plan], ...]
    draw: Draw
    policy: TimingPolicy
    warm: bool
    plain: bool = False  # launched one by one, not as a recording

    @property
    def request(self) -> TimeRuns:
        entries = tuple(Contender(code.code_digest, plan) for code, plan in self.contenders)
        return TimeRuns(entries, self.draw, self.policy, self.warm, self.plain)


class Runner:
    def __init__(self, worker: WorkerProcess, device: Device) -> None:
        self._worker = worker
        self._device = device
        self._loaded: set[str] = set()
        self._generation = 0
        self.busy = 0.0  # seconds the device has spent in kernels, as far as the workers said

    @property
    def generation(self) -> int:
        """Changes when a worker was replaced, and so has forgotten everything."""
        self._worker.ensure_started()
        return self._worker.generation

    def run(self, code: BuiltCode, plan: Plan, draw: Draw, deadline: float) -> CaseOutputs | Verdict:
        reply = self._ask_loaded([code], RunCase(code.code_digest, plan, draw), deadline)
        if isinstance(reply, Verdict):
            return reply
        report, blobs = reply
        if isinstance(report, Ran) and len(blobs) == len(plan.compared()):
            if any(b.damage for b in report.buffers):
                self.restart()  # what else it hit, perhaps in this very process, nobody knows
            return CaseOutputs(report, blobs)
        return Verdict(Status.CRASHED, "the worker answered something else than was asked")

    def keep(
        self, code: BuiltCode, request: KeepCase, blobs: tuple[bytes, ...], deadline: float
    ) -> Judged | Verdict:
        return self._judged(self._ask_loaded([code], request, deadline, blobs))

    def check(self, code: BuiltCode, request: CheckCase, deadline: float) -> Judged | Verdict | None:
        """None: the device has no such case, or no longer."""
        reply = self._ask_loaded([code], request, deadline)
        if isinstance(reply, Verdict) and reply is FORGOTTEN:
            return None
        return self._judged(reply)

    def _judged(self, reply: tuple[object, tuple[bytes, ...]] | Verdict) -> Judged | Verdict:
        if isinstance(reply, Verdict):
            return reply
        if not isinstance(reply[0], Judged):
            return Verdict(Status.CRASHED, "the worker answered something else than was asked")
        self.busy += reply[0].busy
        if reply[0].damage:
            self.restart()  # what else it hit nobody knows
        return reply[0]

    def check_all(
        self, code: BuiltCode, requests: Sequence[CheckCase], deadline: float
    ) -> tuple[Judged, ...] | Verdict | None:
        """Verdicts up to the first that is not right; None: the device lacks one of the cases."""
        reply = self._ask_loaded([code], CheckCases(tuple(requests)), deadline)
        if isinstance(reply, Verdict):
            return None if reply is FORGOTTEN else reply
        answer = reply[0]
        if not isinstance(answer, AllJudged) or not 0 < len(answer.verdicts) <= len(requests):
            return Verdict(Status.CRASHED, "the worker answered something else than was asked")
        for verdict in answer.verdicts:
            self._judged((verdict, ()))
        return answer.verdicts

    def time(self, race: Race, deadline: float) -> Timed | Verdict:
        reply = self._ask_loaded([code for code, _ in race.contenders], race.request, deadline)
        return reply if isinstance(reply, Verdict) else self._sensible(reply[0], race)

    def time_all(self, races: Sequence[Race], deadline: float) -> list[Timed] | Verdict:
        codes = [code for race in races for code, _ in race.contenders]
        reply = self._ask_loaded(codes, TimeAll(tuple(race.request for race in races)), deadline)
        if isinstance(reply, Verdict):
            return reply
        answer = reply[0]
        if not isinstance(answer, AllTimed) or len(answer.timed) != len(races):
            return Verdict(Status.CRASHED, "the worker answered something else than was asked")
        timed: list[Timed] = []
        for race, one in zip(races, answer.timed, strict=True):
            sensible = self._sensible(one, race)
            if isinstance(sensible, Verdict):
                return sensible
            timed.append(sensible)
        return timed

    def _sensible(self, timed: object, race: Race) -> Timed | Verdict:
        if not isinstance(timed, Timed) or not _as_asked(timed, len(race.contenders)):
            return Verdict(Status.CRASHED, "the worker answered something else than was asked")
        samples = [seconds for each in timed.samples for seconds in each]
        if not all(map(math.isfinite, samples)):
            return Verdict(Status.SUSPECT, "the device says that a launch took no finite time")
        if min(samples) <= 0:
            return Verdict(Status.SUSPECT, "the device says that a launch took no time")
        self.busy += timed.busy
        return timed

    def start(self) -> None:
        """Have the worker ready when it is asked."""
        self._worker.ensure_started()

    def restart(self) -> None:
        self._worker.kill()

    def close(self) -> None:
        self._worker.close()

    def _ask_loaded(
        self,
        codes: list[BuiltCode],
        request: Asked,
        deadline: float,
        blobs: tuple[bytes, ...] = (),
    ) -> tuple[object, tuple[bytes, ...]] | Verdict:
        """Ask a worker that knows the code; should it die between the two, its successor is told again."""
        for _ in range(ATTEMPTS):
            try:
                self._worker.ensure_started()
            except WorkerDied as error:
                return Verdict(Status.CRASHED, str(error))
            if self._generation != self._worker.generation:
                self._loaded.clear()
                self._generation = self._worker.generation
            try:
                refused = next((verdict for code in codes if (verdict := self._load(code))), None)
                return refused or self._ask(request, deadline, blobs)
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
        self,
        request: Load | Asked,
        deadline: float,
        blobs: tuple[bytes, ...] = (),
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
            if reply.what == "forgotten":
                return FORGOTTEN
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
