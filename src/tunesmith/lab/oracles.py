"""Oracles: what each case should give, and whether what came back is right. One judges on the host; the
other is for devices that judge for themselves: cases are stored there, verdicts come back.

The latter only where kernels cannot reach the worker's own memory. A kernel may still reach what lies on
the device, so a verdict of `wrong` counts where the original is still right, or once all has been laid out
anew.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tunesmith.backends.messages import CheckCase, Judged, JudgeOutputs, StoreCase
from tunesmith.errors import BadInput
from tunesmith.lab import measuring
from tunesmith.lab import memory as guards
from tunesmith.lab.builders import BuiltCode
from tunesmith.lab.layouts import is_fenced, layouts_of
from tunesmith.lab.memory import RIGHT, Examined, RunEvidence, Verdict, integrity
from tunesmith.lab.references import References, draw_of
from tunesmith.lab.runner import NOT_ASKED, CaseRun, Generation, Runner
from tunesmith.lab.values import Arrays, CaseRules, ExpectedValues, errors_of, establish, wrong_values
from tunesmith.problem import languages
from tunesmith.problem.cases import Case
from tunesmith.problem.device import Device
from tunesmith.problem.freedom import key_arrays
from tunesmith.problem.plan import BufferPlan, OutputErrors, Plan, Status
from tunesmith.problem.problem import Problem
from tunesmith.text import digest_of

CACHED_BYTES = 1 << 29

Array = NDArray[Any]
R = TypeVar("R")
ErrorsByCase = dict[Case, tuple[OutputErrors, ...]]


@dataclass(frozen=True)
class Expectation:
    inputs: dict[str, str]  # digests of the memory that must not change
    gaps: dict[str, str]  # the same for what lies between the elements of in-place arrays
    values: ExpectedValues
    seconds: float  # what one run of the original took


@dataclass
class CaseOracle:
    """What both have in common. `original` plans and builds the original for a case."""

    _problem: Problem
    _device: Device
    _references: References
    _runner: Runner
    _original: Callable[[Case], tuple[BuiltCode, Plan]]
    errors: ErrorsByCase | None = field(default=None, kw_only=True)  # filled while winners are verified

    def _of_original(self, run: Callable[[], R]) -> R:
        """Once more where it crashed: an earlier kernel may have spoilt that process, a fresh one tells."""
        found = run()
        if isinstance(found, Judged | Verdict) and found.status is Status.CRASHED:
            self._runner.restart()
            found = run()
        return found


@dataclass
class HostOracle(CaseOracle):
    """Judges in our process, by what a candidate and the original left in memory, in two processes."""

    _clean: Runner  # where the original runs, and nothing else
    _known: OrderedDict[Case, Expectation | Verdict] = field(default_factory=OrderedDict)

    @cached_property
    def _leaves_nan_open(self) -> bool:
        """Whether what the original makes of NaN may depend on the order of its operations."""
        kernel = self._problem.kernel
        names = languages.named(kernel.language).open_for_nan
        return any(re.search(rf"\b{name}\s*\(", kernel.text) for name in names)

    def establish(self, case: Case) -> float | Verdict:
        """Seconds the original takes on the case; a Verdict when it fails there."""
        expected = self.expectation(case)
        return expected if isinstance(expected, Verdict) else expected.seconds

    def prepare(self, case: Case) -> None:
        """Somebody is about to establish the case: the reference may begin."""
        if case not in self._known:
            self._references.prepare(case, self._original(case)[1], digests=True)

    def forget(self, case: Case) -> None:
        self._known.pop(case, None)

    def examine(self, code: BuiltCode, cases: Sequence[Examined]) -> Verdict:
        for c in cases:
            run = self._run(code, c)
            verdict = run if isinstance(run, Verdict) else self.judge(c.case, c.plan, run)
            if not verdict.ok:
                return verdict
        return RIGHT

    def _run(self, code: BuiltCode, c: Examined) -> CaseRun | Verdict:
        """What it may not write cannot be written. What crashes there and nowhere else has tried."""
        ask = partial(self._runner.run, code, c.plan, draw_of(self._problem, c.case), c.deadline)
        run = ask(shields=True)
        places = layouts_of(c.plan.buffers, self._device, c.case.seed)
        if (
            not isinstance(run, Verdict)
            or run.status is not Status.CRASHED
            or not any(map(is_fenced, places))
        ):
            return run
        if isinstance(ask(), Verdict):
            return run
        words = "it writes to an input or outside its arrays, whatever it puts back there"
        return Verdict(Status.WRONG, f"{c.case.where}: {words}: with those pages read-only, {run.first_line}")

    def expectation(self, case: Case) -> Expectation | Verdict:
        """What the case should give; a Verdict when the original itself fails on it."""
        if case not in self._known:
            established = self._establish(case)
            if isinstance(established, Verdict) and established.status is not Status.WRONG:
                return established  # a crash or a hang may have been another kernel's doing: ask again
            self._known[case] = established
            size = lambda e: e.values.nbytes if isinstance(e, Expectation) else 0  # noqa: E731
            guards.drop_oldest(self._known, size, CACHED_BYTES)
        self._known.move_to_end(case)
        return self._known[case]

    def judge(self, case: Case, plan: Plan, run: CaseRun) -> Verdict:
        expected = self.expectation(case)
        if isinstance(expected, Verdict):
            return expected
        verdict = self._integrity(case, plan, run, expected)
        if not verdict.ok:
            return Verdict(verdict.status, f"{case.where}: {verdict.detail}")
        outputs = output_arrays(plan, run)
        if self.errors is not None:
            self.errors[case] = errors_of(plan, outputs, expected.values)
        rules = self._rules(case)
        ask = partial(self._asked, case, plan)
        reason, contested = wrong_values(plan, outputs, expected.values, rules, ask)
        if reason and self._references.contest(case, contested):
            self._known.pop(case, None)  # established anew, with these rows among those asked for
            return self.judge(case, plan, run)
        return Verdict(Status.WRONG, f"{case.where}: {reason}") if reason else RIGHT

    def _rules(self, case: Case) -> CaseRules:
        may_fail = self._problem.accuracy.baseline_may_fail
        open_nan, name = self._leaves_nan_open, case.distribution
        return CaseRules(case.is_odd, may_fail, case.compares_errors, open_nan, name)

    def _asked(self, case: Case, plan: Plan, output: str, got: Arrays, wanted: Arrays) -> str | None:
        """The user's function on what a candidate gave: if it fails there, no verdict is not a good one."""
        try:
            return self._references.compare(case, plan, output, got, wanted)
        except BadInput as error:
            return f"{output} cannot be compared: {error}"

    def _establish(self, case: Case) -> Expectation | Verdict:
        code, plan = self._original(case)
        # Before the original runs, so that nothing the user's own functions do is blamed on it.
        referred = self._references.ask(case, plan, digests=True)
        inputs, gaps = dict(referred.answer.input_digests), dict(referred.answer.gap_digests)
        arrays = {
            spec.name: np.frombuffer(blob, dtype=spec.dtype).reshape(spec.shape)
            for spec, blob in zip(referred.answer.arrays, referred.blobs, strict=True)
        }
        deadline = measuring.original_deadline(plan)
        draw = draw_of(self._problem, case)
        run = self._clean.run(code, plan, draw, deadline)
        if isinstance(run, Verdict):
            return run
        given = {r.name: r.given for r in run.report.buffers}
        read = [b.name for b in plan.buffers if b.role == "input"]
        self._references.refuse_varying(inputs, {name: given.get(name, "") for name in read})
        keys = zip(key_arrays(plan), referred.keys, strict=True)
        pointed = {name: guards.as_array(plan.buffer(name), memory) for name, memory in keys}
        bare = ExpectedValues(rows=referred.rows, sampled=referred.sampled, inputs=pointed)
        found = Expectation(inputs, gaps, bare, run.report.seconds)
        verdict = self._integrity(case, plan, run, found)
        if not verdict.ok:
            return verdict
        ask = partial(self._references.compare, case, plan)
        values, reason = establish(plan, output_arrays(plan, run), arrays, bare, self._rules(case), ask)
        return Verdict(Status.WRONG, reason) if reason else replace(found, values=values)

    def _integrity(self, case: Case, plan: Plan, run: CaseRun, expected: Expectation) -> Verdict:
        reports = {r.name: r for r in run.report.buffers}
        outputs = dict(zip((b.name for b in plan.compared()), run.outputs, strict=True))
        for b in plan.buffers:
            if b.name not in reports:
                return Verdict(Status.CRASHED, f"the worker said nothing about {b.name}")
            if b.name in outputs and len(outputs[b.name]) != b.nbytes:
                return Verdict(Status.CRASHED, f"the worker garbled {b.name}")

        places = layouts_of(plan.buffers, self._device, case.seed)

        def damage(b: BufferPlan, number: int) -> str:
            intact = reports[b.name].guard_digest == guards.zones_digest(places, number)
            return "" if intact else reports[b.name].damage or "the guard zone changed"

        evidence = RunEvidence(
            damage,
            lambda b: reports[b.name].left != expected.inputs.get(b.name),
            lambda b: guards.gaps_damaged(b, outputs[b.name], expected.gaps.get(b.name)),
            lambda b: not reports[b.name].repeats,
            lambda b: guards.count_poisoned(b, outputs[b.name]),
            lambda b: not reports[b.name].stateless,
        )
        return integrity(plan, self._problem.accuracy.deterministic, evidence)[0]


def output_arrays(plan: Plan, run: CaseRun) -> dict[str, Array]:
    compared = zip(plan.compared(), run.outputs, strict=True)
    return {b.name: guards.as_array(b, data) for b, data in compared}


MOVED_BYTES = 1 << 26  # of one case's outputs, from one process to another
NO_ROOM = Verdict(Status.OVER_LIMITS, "the device has no room to keep the case")


def is_moved(plan: Plan) -> bool:
    """Whether a process where no candidate ran judges the outputs too."""
    return sum(b.nbytes for b in plan.compared()) <= MOVED_BYTES


@dataclass
class _Established:
    seconds: float
    generation: Generation  # of the worker that has it


@dataclass
class DeviceOracle(CaseOracle):
    """Judges by what the device says; only what it convicts is looked at again."""

    _known: dict[Case, _Established | Verdict] = field(default_factory=dict)

    def establish(self, case: Case) -> float | Verdict:
        """Seconds the original takes on the case; a Verdict when it fails there."""
        known = self._known.get(case)
        if isinstance(known, Verdict):
            return known
        if known is None or known.generation != self._runner.generation:
            return self._store(case)
        return known.seconds

    def prepare(self, case: Case) -> None:
        """Somebody is about to establish the case: the reference may begin."""
        known = self._known.get(case)
        if known is None or (isinstance(known, _Established) and known.generation != self._runner.generation):
            self._references.prepare(case, self._original(case)[1], digests=False)

    def forget(self, case: Case) -> None:
        self._known.pop(case, None)

    def examine(self, code: BuiltCode, cases: Sequence[Examined]) -> Verdict:
        """In one request, which saves most of what requests cost; singly from the first that is not right."""
        right = 0
        if len(cases) > 1:
            checks = [self._request(c.case, code, c.plan) for c in cases]
            judged = self._runner.check_all(code, checks, measuring.together(c.deadline for c in cases))
            if isinstance(judged, Verdict):
                return judged
            for c, one in zip(cases, judged or (), strict=False):
                self._note(c.case, one)
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

    def examine_apart(self, code: BuiltCode, cases: Sequence[Examined], judge: DeviceOracle) -> Verdict:
        """The same outputs once more, judged in a process where no candidate ever ran; but for those that are
        too large to be moved."""
        for c in cases:
            if not is_moved(c.plan):
                continue
            found = self._of_stored(c.case, partial(self._sent, c, code))
            if isinstance(found, Verdict):
                return found
            judged, outputs = found
            verdict = judge.judged(c, outputs) if judged.status is Status.OK else _verdict(judged, c.case)
            if not verdict.ok:
                return verdict
        return RIGHT

    def judged(self, at: Examined, outputs: tuple[bytes, ...]) -> Verdict:
        """What a kernel gave elsewhere."""
        if len(outputs) != len(at.plan.compared()):
            return NOT_ASKED
        tells = self.errors is not None
        request = JudgeOutputs(_name(at.case), at.plan, at.case.compares_errors, tells)
        while True:
            known = self.establish(at.case)
            if isinstance(known, Verdict) and known.status is Status.WRONG:
                return RIGHT  # the original is wrong here, and was not there: it judges nobody
            if isinstance(known, Verdict):
                return Verdict(known.status, f"{at.case.where}: it cannot be judged apart: {known.detail}")
            ask = partial(self._runner.judge_outputs, request, outputs, at.deadline)
            found = self._of_stored(at.case, ask)
            if isinstance(found, Verdict):
                return found
            self._note(at.case, found)
            if found.status is Status.OK or not self._widen(at.case, found.contested):
                return _verdict(found, at.case)

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
        return not isinstance(self._store(case), Verdict)

    def _original_is_right(self, at: Examined) -> bool:
        code, plan = self._original(at.case)
        judged = self._runner.check(code, self._request(at.case, code, plan), at.deadline)
        return judged is not None and judged.status is Status.OK

    def _check(self, at: Examined, code: BuiltCode) -> Judged | Verdict:
        request = self._request(at.case, code, at.plan)
        judged = self._of_stored(at.case, partial(self._runner.check, code, request, at.deadline))
        if isinstance(judged, Judged):
            self._note(at.case, judged)
        return judged

    def _sent(self, at: Examined, code: BuiltCode) -> tuple[Judged, tuple[bytes, ...]] | Verdict | None:
        return self._runner.check_and_send(code, self._request(at.case, code, at.plan), at.deadline)

    def _of_stored(self, case: Case, ask: Callable[[], R | Verdict | None]) -> R | Verdict:
        """Once more, with the case stored anew, where the device had to make room for others."""
        found = ask()
        if found is None:
            stored = self._store(case)
            if isinstance(stored, Verdict):
                return Verdict(stored.status, f"the original itself fails: {stored.detail}")
            found = ask()
        return NO_ROOM if found is None else found

    def _request(self, case: Case, code: BuiltCode, plan: Plan) -> CheckCase:
        tells = self.errors is not None
        return CheckCase(_name(case), code.code_digest, plan, case.compares_errors, tells_errors=tells)

    def _note(self, case: Case, judged: Judged) -> None:
        if self.errors is not None:
            self.errors[case] = judged.errors

    def _store(self, case: Case) -> float | Verdict:
        code, plan = self._original(case)
        referred = self._references.ask(case, plan, digests=False)
        accuracy = self._problem.accuracy
        rows = tuple(referred.rows.tolist()) if referred.rows is not None else ()
        launch = (code.code_digest, plan, draw_of(self._problem, case))
        expected = (referred.answer.arrays, rows, tuple(sorted(referred.sampled)))
        rules = (accuracy.deterministic, accuracy.baseline_may_fail, case.is_odd)
        functions = tuple((a.name, a.checker) for a in self._problem.arguments if a.checker is not None)
        request = StoreCase(_name(case), *launch, *expected, *rules, referred.answer.inputs, functions)
        # The user's function and the copies from our memory are as slow as anywhere.
        deadline = measuring.original_deadline(plan)
        deadline += measuring.INPUT_SECONDS if launch[2].inputs is not None else 0.0
        judged = self._of_original(lambda: self._runner.store(code, request, referred.blobs, deadline))
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


def _verdict(judged: Judged, case: Case) -> Verdict:
    detail = f"{case.where}: {judged.detail}" if judged.detail else ""
    return Verdict(judged.status, detail)


def _name(case: Case) -> str:
    return digest_of(repr(case))
