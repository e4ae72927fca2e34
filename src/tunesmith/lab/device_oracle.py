"""The oracle for devices that judge for themselves: cases are stored there, verdicts come back.

Only where kernels cannot reach the worker's own memory. A kernel may still reach what lies on the device, so
a verdict of `wrong` counts where the original is still right, or once all has been laid out anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tunesmith.backends.messages import CheckCase, Judged, StoreCase
from tunesmith.lab import policies
from tunesmith.lab.builders import BuiltCode
from tunesmith.lab.memory import RIGHT, Examined, Verdict
from tunesmith.lab.references import References, Referred, draw_of
from tunesmith.lab.runner import Runner
from tunesmith.problem.cases import Case
from tunesmith.problem.plan import Plan, Status
from tunesmith.problem.problem import Problem
from tunesmith.text import digest_of

CACHED_BYTES = 1 << 30  # of reference values, in our own memory, for when a worker has to be told again


@dataclass
class _Established:
    seconds: float
    generation: int  # of the worker that has it


@dataclass
class DeviceOracle:
    """`original` plans and builds the original for a case."""

    _problem: Problem
    _references: References
    _runner: Runner
    _original: Callable[[Case], tuple[BuiltCode, Plan]]
    _known: dict[Case, _Established | Verdict] = field(default_factory=dict)
    _referred: OrderedDict[Case, Referred] = field(default_factory=OrderedDict)

    def establish(self, case: Case) -> float | Verdict:
        """Seconds the original takes on the case; a Verdict when it fails there."""
        known = self._known.get(case)
        if isinstance(known, Verdict):
            return known
        if known is None or known.generation != self._runner.generation:
            return self._store(case)
        return known.seconds

    def examine(self, code: BuiltCode, cases: Sequence[Examined]) -> Verdict:
        """In one request, which saves most of what requests cost; singly from the first that is not right."""
        right = 0
        if len(cases) > 1:
            checks = [_request(c.case, code, c.plan) for c in cases]
            judged = self._runner.check_all(code, checks, policies.all_deadlines(c.deadline for c in cases))
            if isinstance(judged, Verdict):
                return judged
            right = sum(j.status is Status.OK for j in judged or ())
            if judged and right < len(judged):
                verdict = self._confirmed(judged[right], code, cases[right])
                if not verdict.ok:
                    return verdict
                right += 1
        for c in cases[right:]:
            found = self._check(c, code)
            verdict = found if isinstance(found, Verdict) else self._confirmed(found, code, c)
            if not verdict.ok:
                return verdict
        return RIGHT

    def _confirmed(self, first: Judged, code: BuiltCode, at: Examined) -> Verdict:
        """A wrong value may be an earlier kernel's doing, who spoilt what lies on the device: the original
        tells, on the case as it lies there. If it is right the candidate is guilty, else all is made anew.

        Nothing stored explains two runs that differ, nor guard zones, which are anew every time."""
        while self._widen(at.case, first.contested):
            again = self._check(at, code)
            if isinstance(again, Verdict):
                return again
            first = again
        verdict = _verdict(first, at.case)
        if first.damage or first.status is not Status.WRONG or self._original_is_right(at):
            return verdict
        self._runner.restart()
        again = self._check(at, code)
        return again if isinstance(again, Verdict) else _verdict(again, at.case)

    def _widen(self, case: Case, contested: Sequence[int]) -> bool:
        """Whether the case is stored anew with these rows among those the reference is asked for."""
        if not self._references.contest(case, contested):
            return False
        self._referred.pop(case, None)
        return not isinstance(self._store(case), Verdict)

    def _original_is_right(self, at: Examined) -> bool:
        code, plan = self._original(at.case)
        judged = self._runner.check(code, _request(at.case, code, plan), at.deadline)
        return judged is not None and judged.status is Status.OK

    def _check(self, at: Examined, code: BuiltCode) -> Judged | Verdict:
        request = _request(at.case, code, at.plan)
        judged = self._runner.check(code, request, at.deadline)
        if judged is None:
            stored = self._store(at.case)
            if isinstance(stored, Verdict):
                return Verdict(stored.status, f"the original itself fails: {stored.detail}")
            judged = self._runner.check(code, request, at.deadline)
        return judged or Verdict(Status.OVER_LIMITS, "the device has no room to keep the case")

    def _store(self, case: Case) -> float | Verdict:
        code, plan = self._original(case)
        referred = self._refer(case, plan)
        accuracy = self._problem.accuracy
        rows = tuple(referred.rows.tolist()) if referred.rows is not None else ()
        launch = (code.code_digest, plan, draw_of(self._problem, case))
        expected = (referred.answer.arrays, rows, tuple(sorted(referred.sampled)))
        rules = (accuracy.deterministic, accuracy.baseline_may_fail)
        request = StoreCase(_name(case), *launch, *expected, *rules)
        # The user's function and the copies from our memory are as slow as anywhere.
        deadline = policies.ORIGINAL_SECONDS + plan.nbytes / policies.DATA_RATE
        deadline += policies.INPUT_SECONDS if self._problem.inputs is not None else 0.0
        judged = self._runner.store(code, request, referred.blobs, deadline)
        if judged.status is Status.CRASHED:
            # Perhaps what an earlier kernel did to that process: only a fresh one can tell.
            self._runner.restart()
            judged = self._runner.store(code, request, referred.blobs, deadline)
        if isinstance(judged, Judged):
            wanted = dict(referred.answer.input_digests)
            self._references.refuse_varying(wanted, dict(judged.input_digests))
        if isinstance(judged, Verdict) or judged.status is not Status.OK:
            verdict = Verdict(judged.status, judged.detail)
            if verdict.status is Status.WRONG:
                self._known[case] = verdict
            return verdict
        self._known[case] = _Established(judged.seconds, self._runner.generation)
        return judged.seconds

    def _refer(self, case: Case, plan: Plan) -> Referred:
        if case not in self._referred:
            self._referred[case] = self._references.ask(case, plan, digests=False)
            while sum(r.nbytes for r in self._referred.values()) > CACHED_BYTES and len(self._referred) > 1:
                self._referred.popitem(last=False)
        self._referred.move_to_end(case)
        return self._referred[case]


def _request(case: Case, code: BuiltCode, plan: Plan) -> CheckCase:
    return CheckCase(_name(case), code.code_digest, plan, case.compares_errors)


def _verdict(judged: Judged, case: Case) -> Verdict:
    detail = f"{case.where}: {judged.detail}" if judged.detail else ""
    return Verdict(judged.status, detail)


def _name(case: Case) -> str:
    return digest_of(repr(case))
