"""Who runs: the worker that submits to the device, what it may answer, and what its death means."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from tunesmith import backends
from tunesmith.backends import messages as m
from tunesmith.base.errors import BadInput, DeviceMissing, TunesmithError
from tunesmith.lab.build import BuiltCode
from tunesmith.lab.device_lock import BUSY, TURN_WAIT
from tunesmith.lab.memory import Verdict, blobs_of
from tunesmith.lab.process import WorkerDied, WorkerProcess, WorkerReplaced, WorkerTimedOut
from tunesmith.lab.references import USER_CODE_HINT
from tunesmith.problem.device import Device
from tunesmith.problem.plan import Plan, Status

R = TypeVar("R", bound=m.Reply)

LOAD_SECONDS = 60.0
ATTEMPTS = 3
NOT_ASKED = Verdict(Status.CRASHED, "the worker answered something else than was asked")
MAX_WAIT = 300.0  # seconds for a turn; then it is timed beside others, which is no quiet measurement
CLOCKS_AGREE, CLOCKS_APART = 1.05, 0.01  # a device's and ours: as factor, and seconds beside it
NO_TURN = Verdict(Status.TIMED_OUT, "another process has the device")
FORGOTTEN = Verdict(Status.CRASHED, "the device has forgotten the case")
_FAILED = {"memory": Status.OVER_LIMITS, "unsupported": Status.INFEASIBLE, "build": Status.BUILD_FAILED}


@dataclass(frozen=True)
class CaseRun:
    """What a worker reported of one case: digests, and the bytes of the outputs after the first run."""

    report: m.Ran
    outputs: tuple[bytes, ...]


@dataclass(frozen=True)
class Race:
    """Kernels to time in alternation, on the same data."""

    contenders: tuple[tuple[BuiltCode, Plan], ...]
    draw: m.Draw
    policy: m.TimingPolicy
    warm: bool
    plain: bool = False  # launched one by one, not as a recording
    original: tuple[BuiltCode, Plan] | None = None  # what the last contender's outputs are compared with
    sends_all: bool = False

    @property
    def codes(self) -> list[BuiltCode]:
        return [code for code, _ in (*self.contenders, *([self.original] if self.original else []))]

    @property
    def request(self) -> m.TimeRuns:
        entries = tuple(m.Contender(code.code_digest, plan) for code, plan in self.contenders)
        original = m.Contender(self.original[0].code_digest, self.original[1]) if self.original else None
        return m.TimeRuns(entries, self.draw, self.policy, self.warm, self.plain, original, self.sends_all)


@dataclass(frozen=True)
class RaceRun:
    """Times, and what looks at the last contender's outputs saw: in their order, of each what it takes."""

    timed: m.Timed
    blobs: tuple[bytes, ...]


Generation = tuple[int, int]


class Runner:
    """Asks one worker; with a `spare`, another has the device open when the first is renewed."""

    def __init__(
        self,
        worker: WorkerProcess,
        device: Device,
        spare: WorkerProcess | None = None,
        notes: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._worker = worker
        self.note = notes
        self._spare = spare
        self._renewals = 0
        self._opening: Future[None] | None = None
        self._device = device
        kind = backends.find_backend_kind(device.backend)
        self._is_clocked = not (kind.simulated or kind.from_file)  # else its times are computed
        self._loaded: set[str] = set()
        self._generation = 0
        self.busy = 0.0  # seconds the device has spent in kernels, as far as the workers said
        self.waited = 0.0  # seconds for the device's lock, and for it to be quiet
        self._took = 0.0  # seconds of the last request without that, by our clock

    @property
    def generation(self) -> Generation:
        """Changes when a worker was replaced, and so has forgotten everything."""
        self._worker.ensure_started()
        return self._renewals, self._worker.generation

    def run(
        self, code: BuiltCode, plan: Plan, draw: m.Draw, deadline: float, shields: bool = False
    ) -> CaseRun | Verdict:
        reply = self.ask_loaded(m.Ran, [code], m.RunCase(code.code_digest, plan, draw, shields), deadline)
        if isinstance(reply, Verdict):
            return reply
        report, outputs = reply
        if len(outputs) != len(plan.compared()):
            return NOT_ASKED
        if any(b.damage for b in report.buffers):
            self.restart()  # what else it hit, perhaps in this very process, nobody knows
        return CaseRun(report, outputs)

    def store(
        self, code: BuiltCode, request: m.StoreCase, blobs: tuple[bytes, ...], deadline: float
    ) -> m.Judged | Verdict:
        reply = self.ask_loaded(m.Judged, [code], request, deadline, blobs)
        return reply if isinstance(reply, Verdict) else self._noted(reply[0])

    def check(self, code: BuiltCode, request: m.CheckCase, deadline: float) -> m.Judged | Verdict | None:
        """None: the device has no such case, or no longer."""
        return self._judged(self.ask_loaded(m.Judged, [code], request, deadline))

    def check_and_send(
        self, code: BuiltCode, request: m.CheckCase, deadline: float
    ) -> tuple[m.Judged, tuple[bytes, ...]] | Verdict | None:
        """And the outputs, where they are right; None: the device has no such case, or no longer."""
        reply = self.ask_loaded(m.Judged, [code], replace(request, sends=True), deadline)
        if isinstance(reply, Verdict):
            return None if reply is FORGOTTEN else reply
        return self._noted(reply[0]), reply[1]

    def judge_outputs(
        self, request: m.JudgeOutputs, outputs: tuple[bytes, ...], deadline: float
    ) -> m.Judged | Verdict | None:
        """None: the device has no such case, or no longer."""
        return self._judged(self.ask_loaded(m.Judged, [], request, deadline, outputs))

    def check_all(
        self, code: BuiltCode, requests: Sequence[m.CheckCase], deadline: float
    ) -> tuple[m.Judged, ...] | Verdict | None:
        """Verdicts up to the first that is not right; None: the device lacks one of the cases."""
        reply = self.ask_loaded(m.AllJudged, [code], m.CheckCases(tuple(requests)), deadline)
        if isinstance(reply, Verdict):
            return None if reply is FORGOTTEN else reply
        count = len(verdicts := reply[0].verdicts)
        return tuple(map(self._noted, verdicts)) if 0 < count <= len(requests) else NOT_ASKED

    def _judged(self, reply: tuple[m.Judged, tuple[bytes, ...]] | Verdict) -> m.Judged | Verdict | None:
        if isinstance(reply, Verdict):
            return None if reply is FORGOTTEN else reply
        return self._noted(reply[0])

    def _noted(self, judged: m.Judged) -> m.Judged:
        self.busy += judged.busy
        if judged.damage:
            self.restart()  # what else it hit nobody knows
        return judged

    def time(self, race: Race, deadline: float) -> RaceRun | Verdict:
        reply = self._in_turn(m.Timed, race.codes, race.request, deadline)
        return reply if isinstance(reply, Verdict) else self._validate_race(RaceRun(*reply), race)

    def time_all(self, races: Sequence[Race], deadline: float) -> list[RaceRun] | Verdict:
        codes = [code for race in races for code in race.codes]
        request = m.TimeAll(tuple(race.request for race in races))
        reply = self._in_turn(m.AllTimed, codes, request, deadline)
        if isinstance(reply, Verdict):
            return reply
        found, (all_timed, blobs) = list[RaceRun](), reply
        if len(all_timed.timed) != len(races):
            return NOT_ASKED
        for race, one in zip(races, all_timed.timed, strict=True):
            count = sum(blobs_of(look) for look in one.looks)
            sensible = self._validate_race(RaceRun(one, blobs[:count]), race)
            blobs = blobs[count:]
            if isinstance(sensible, Verdict):
                return sensible
            found.append(sensible)
        return found

    def _in_turn(
        self, kind: type[R], codes: list[BuiltCode], request: m.TimeRuns | m.TimeAll, deadline: float
    ) -> tuple[R, tuple[bytes, ...]] | Verdict:
        """Asked until the device's turn comes, each time with the whole deadline; without one in the end."""
        last = time.monotonic() + MAX_WAIT
        reply = self.ask_loaded(kind, codes, request, deadline)
        if reply is NO_TURN:
            self.note("waiting for the device: another Tunesmith process is timing on it")
        while reply is NO_TURN:
            request = replace(request, needs_turn=time.monotonic() < last)
            reply = self.ask_loaded(kind, codes, request, deadline)
        return reply

    def _validate_race(self, run: RaceRun, race: Race) -> RaceRun | Verdict:
        """Samples for every contender, as many for one as for the other, times above zero, and a look at
        every measurement that is more than a glance."""
        timed = run.timed
        counts = {len(samples) for samples in timed.samples}
        if len(timed.samples) != len(race.contenders) or len(counts) != 1 or 0 in counts:
            return NOT_ASKED
        samples = [seconds for each in timed.samples for seconds in each]
        if not all(map(math.isfinite, samples)):
            return Verdict(Status.SUSPECT, "the device says that a launch took no finite time")
        if min(samples) <= 0:
            return Verdict(Status.SUSPECT, "the device says that a launch took no time")
        claimed = max(sum(samples), timed.busy)
        if claimed > CLOCKS_AGREE * self._took + CLOCKS_APART and self._is_clocked:
            reason = f"the device says that launches took {claimed:.3g} s of {self._took:.3g} s"
            return Verdict(Status.SUSPECT, f"{reason} in which it was asked and had answered")
        unseen = race.original and not timed.looks and max(counts) >= race.policy.min_rounds
        if len(run.blobs) != sum(blobs_of(look) for look in timed.looks) or unseen:
            return NOT_ASKED
        self.busy += timed.busy
        return run

    def start(self) -> None:
        """Have the worker ready when it is asked."""
        self._worker.ensure_started()

    def restart(self) -> None:
        self._worker.kill()

    def renew(self) -> None:
        """End the worker; the spare, where it is ready, takes its place."""
        self._worker.kill()
        if self._spare is not None and self._opening is not None:
            self.wait_for_spare()
            self._worker, self._spare, self._opening = self._spare, self._worker, None
            self._renewals += 1
            self._generation = 0

    def prepare_spare(self, thread: Executor) -> None:
        if self._spare is not None and self._opening is None:
            self._opening = thread.submit(self._open_spare, self._spare)

    def wait_for_spare(self) -> None:
        """Until it is ready: nothing may be timed beside it."""
        if self._opening is not None:
            self._opening.result()

    def _open_spare(self, spare: WorkerProcess) -> None:
        with suppress(WorkerDied, WorkerTimedOut):  # when it is needed it is started again, and says why
            spare.request(m.Open(self._device), deadline=LOAD_SECONDS)

    def close(self) -> None:
        self._worker.close()
        if self._spare is not None:
            self._spare.close()

    def ask_loaded(
        self,
        kind: type[R],
        codes: list[BuiltCode],
        request: m.OfDevice,
        deadline: float,
        blobs: tuple[bytes, ...] = (),
    ) -> tuple[R, tuple[bytes, ...]] | Verdict:
        """Ask a worker that knows the code; should it die between the two, its successor is told again."""
        lost = ""
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
                return refused or self._ask(kind, request, deadline, blobs)
            except WorkerReplaced as replaced:
                lost = str(replaced)
        if lost:
            raise DeviceMissing(f"{lost} ({ATTEMPTS} times while it was asked the same)")
        raise TunesmithError("device workers die as soon as they are started", hint="run: tunesmith doctor")

    def _load(self, code: BuiltCode) -> Verdict | None:
        if code.code_digest in self._loaded:
            return None
        request = m.Load(code.unit, code.code_digest, self._device)
        if isinstance(reply := self._ask(m.Done, request, LOAD_SECONDS, (code.binary,)), Verdict):
            return reply
        self._loaded.add(code.code_digest)
        return None

    def _ask(
        self, kind: type[R], request: m.Load | m.OfDevice, deadline: float, blobs: tuple[bytes, ...]
    ) -> tuple[R, tuple[bytes, ...]] | Verdict:
        began = time.monotonic()
        try:
            only = self._generation
            patience = deadline + TURN_WAIT  # what it waits for a turn is not its time
            reply, answer = self._worker.request(request, blobs, deadline=patience, generation=only)
        except WorkerTimedOut:
            return Verdict(Status.TIMED_OUT, f"no answer within {deadline:.1f} s")
        except WorkerDied as error:
            return Verdict(Status.CRASHED, str(error))
        took = time.monotonic() - began
        waited = min(took, max(0.0, reply.waited)) if isinstance(reply, m.WAITING) else 0.0
        self.waited, self._took = self.waited + waited, took - waited
        if isinstance(reply, m.Failed):
            if reply.what == "forgotten":
                return FORGOTTEN
            if reply.what == BUSY:
                self.waited += took
                return NO_TURN
            if reply.what == "user":
                raise BadInput(reply.message, hint=USER_CODE_HINT)
            if reply.what == "lost":
                raise DeviceMissing(reply.message)
            if reply.what == "launch":
                self.restart()  # after an illegal access a driver fails whoever comes next
            return Verdict(_FAILED.get(reply.what, Status.CRASHED), reply.message)
        return (reply, answer) if isinstance(reply, kind) else NOT_ASKED
