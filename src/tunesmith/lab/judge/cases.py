"""Cases and what they say of a kernel: which ones it is tried on, whether the original passes them, and the
verdict on all of them together.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, TypeVar

from tunesmith.backends.messages import CheckCase, Judged, JudgeOutputs, StoreCase
from tunesmith.base.errors import BadInput
from tunesmith.base.text import digest_of, seed_of
from tunesmith.lab import measure
from tunesmith.lab import memory as guards
from tunesmith.lab.build import BuiltCode
from tunesmith.lab.memory import RIGHT, Examined, RunEvidence, Verdict, check_integrity, is_fenced, layouts_of
from tunesmith.lab.references import References, draw_of
from tunesmith.lab.runner import NOT_ASKED, CaseRun, Generation, Runner
from tunesmith.lab.values import Array, CaseRules, ExpectedValues, errors_of, establish_expected, wrong_values
from tunesmith.problem import device
from tunesmith.problem.cases import (
    Case,
    Level,
    case_misfit,
    extra_cases,
    full_cases,
    smoke_cases,
    verify_cases,
)
from tunesmith.problem.device import Device
from tunesmith.problem.plan import BufferPlan, CannotRun, ExtraCase, OutputErrors, Plan, Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Variant, original_variant
from tunesmith.run.events import CaseSeen, ReplacedCase
from tunesmith.run.outcome import NO_SIDES, DataSides
from tunesmith.space.configset import Config

if TYPE_CHECKING:
    from tunesmith.lab.judge.branch_search import BranchSearch


# Oracles: what each case should give, and whether what came back is right. One judges on the host. The other
# is for devices that judge for themselves, where kernels cannot reach the worker's own memory: cases are
# stored there, verdicts come back. A kernel may still reach what lies on the device, so a verdict of `wrong`
# counts where the original is still right, or once all has been laid out anew.
CACHED_BYTES = 1 << 29

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
    """What both have in common."""

    _problem: Problem
    _device: Device
    _references: References
    _runner: Runner
    _original: Callable[[Case], tuple[BuiltCode, Plan]]  # plans and builds it for a case
    errors: ErrorsByCase | None = field(default=None, kw_only=True)  # filled while winners are verified


@dataclass
class HostOracle(CaseOracle):
    """Judges in our process, by what a candidate and the original left in memory, in two processes."""

    _clean: Runner  # where the original runs, and nothing else
    _known: OrderedDict[Case, Expectation | Verdict] = field(default_factory=OrderedDict)

    @cached_property
    def _leaves_nan_open(self) -> bool:
        """Whether what the original makes of NaN may depend on the order of its operations."""
        kernel = self._problem.kernel
        names = device.find_language(kernel.language).open_for_nan
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
            run = self._run_shielded(code, c)
            verdict = run if isinstance(run, Verdict) else self.judge(c.case, c.plan, run)
            if not verdict.ok:
                return verdict
        return RIGHT

    def _run_shielded(self, code: BuiltCode, c: Examined) -> CaseRun | Verdict:
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
            established = self._establish_expectation(case)
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
        ask = partial(self._references.compare_candidate, case, plan)
        reason, contested = wrong_values(plan, outputs, expected.values, rules, ask)
        if reason and self._references.contest(case, contested):
            self._known.pop(case, None)  # established anew, with these rows among those asked for
            return self.judge(case, plan, run)
        return Verdict(Status.WRONG, f"{case.where}: {reason}") if reason else RIGHT

    def _rules(self, case: Case) -> CaseRules:
        may_fail = self._problem.accuracy.baseline_may_fail
        open_nan, name = self._leaves_nan_open, case.distribution
        return CaseRules(case.is_odd, may_fail, case.compares_errors, open_nan, name)

    def _establish_expectation(self, case: Case) -> Expectation | Verdict:
        code, plan = self._original(case)
        # Before the original runs, so that nothing the user's own functions do is blamed on it.
        referred = self._references.ask(case, plan, digests=True)
        inputs, gaps = dict(referred.answer.input_digests), dict(referred.answer.gap_digests)
        deadline = measure.original_deadline(plan)
        draw = draw_of(self._problem, case)
        run = self._clean.run(code, plan, draw, deadline)
        if isinstance(run, Verdict):
            return run
        given = {r.name: r.given for r in run.report.buffers}
        read = [b.name for b in plan.buffers if b.role == "input"]
        self._references.refuse_varying(inputs, {name: given.get(name, "") for name in read})
        pointed = referred.key_arrays(plan)
        bare = ExpectedValues(rows=referred.rows, sampled=referred.sampled, inputs=pointed)
        found = Expectation(inputs, gaps, bare, run.report.seconds)
        verdict = self._integrity(case, plan, run, found)
        if not verdict.ok:
            return verdict
        ask = partial(self._references.compare, case, plan)
        values, reason = establish_expected(
            plan, output_arrays(plan, run), referred.arrays, bare, self._rules(case), ask
        )
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
        return check_integrity(plan, self._problem.accuracy.deterministic, evidence)[0]


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
            judged = self._runner.check_all(
                code, checks, measure.combined_deadline(c.deadline for c in cases)
            )
            if isinstance(judged, Verdict):
                return judged
            for c, one in zip(cases, judged or (), strict=False):
                self._note_errors(c.case, one)
            right = sum(j.status is Status.OK for j in judged or ())
            if judged and right < len(judged):
                verdict = self._confirmed(judged[right], code, cases[right])
                if not verdict.ok:
                    return verdict
                right += 1
        for c in cases[right:]:
            found = self._check_stored(c, code)
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
            verdict = (
                judge.judged(c, outputs) if judged.status is Status.OK else _case_verdict(judged, c.case)
            )
            if not verdict.ok:
                return verdict
        return RIGHT

    def judged(self, at: Examined, outputs: tuple[bytes, ...]) -> Verdict:
        """What a kernel gave elsewhere."""
        if len(outputs) != len(at.plan.compared()):
            return NOT_ASKED
        tells = self.errors is not None
        request = JudgeOutputs(_case_digest(at.case), at.plan, at.case.compares_errors, tells)
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
            self._note_errors(at.case, found)
            if found.status is Status.OK or not self._widen_reference_rows(at.case, found.contested):
                return _case_verdict(found, at.case)

    def _confirmed(self, first: Judged, code: BuiltCode, at: Examined) -> Verdict:
        """A wrong value may be an earlier kernel's doing, who spoilt what lies on the device: the original
        tells, on the case as it lies there. If it is right the candidate is guilty, else all is made anew.

        Nothing stored explains two runs that differ, nor guard zones, which are anew every time."""
        while self._widen_reference_rows(at.case, first.contested):
            again = self._check_stored(at, code)
            if isinstance(again, Verdict):
                return again
            first = again
        verdict = _case_verdict(first, at.case)
        if first.damage or first.status is not Status.WRONG or self._original_is_right(at):
            return verdict
        self._runner.restart()
        again = self._check_stored(at, code)
        return again if isinstance(again, Verdict) else _case_verdict(again, at.case)

    def _widen_reference_rows(self, case: Case, contested: Sequence[int]) -> bool:
        """Whether the case is stored anew with these rows among those the reference is asked for."""
        if not self._references.contest(case, contested):
            return False
        return not isinstance(self._store(case), Verdict)

    def _original_is_right(self, at: Examined) -> bool:
        code, plan = self._original(at.case)
        judged = self._runner.check(code, self._request(at.case, code, plan), at.deadline)
        return judged is not None and judged.status is Status.OK

    def _check_stored(self, at: Examined, code: BuiltCode) -> Judged | Verdict:
        request = self._request(at.case, code, at.plan)
        judged = self._of_stored(at.case, partial(self._runner.check, code, request, at.deadline))
        if isinstance(judged, Judged):
            self._note_errors(at.case, judged)
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
        return CheckCase(_case_digest(case), code.code_digest, plan, case.compares_errors, tells_errors=tells)

    def _note_errors(self, case: Case, judged: Judged) -> None:
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
        request = StoreCase(_case_digest(case), *launch, *expected, *rules, referred.answer.inputs, functions)
        # The user's function and the copies from our memory are as slow as anywhere.
        deadline = measure.original_deadline(plan)
        deadline += measure.INPUT_SECONDS if launch[2].inputs is not None else 0.0
        store = partial(self._runner.store, code, request, referred.blobs, deadline)
        if (judged := store()).status is Status.CRASHED:
            self._runner.restart()  # an earlier kernel may have spoilt that process, a fresh one tells
            judged = store()
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


def _case_verdict(judged: Judged, case: Case) -> Verdict:
    detail = f"{case.where}: {judged.detail}" if judged.detail else ""
    return Verdict(judged.status, detail)


def _case_digest(case: Case) -> str:
    return digest_of(repr(case))


SPARES = 2
AHEAD, FAR_AHEAD = 4, 12  # cases whose references are computed while one is tried: on a CPU, beside a GPU
UNFIT_VALUES = Verdict(Status.CRASHED, "the original crashed on such values, or did not end, elsewhere")
NO_CASES = Verdict(Status.INFEASIBLE, "no size of the contract lies in this configuration's domain")


@dataclass(frozen=True)
class ProvenCases:
    verdict: Verdict
    cases: list[Case]
    replaced: list[ReplacedCase]
    seen: list[CaseSeen]
    sides: DataSides


@dataclass
class CaseJudge:
    _problem: Problem
    _device: Device
    _plans: measure.LaunchPlans
    _oracle: DeviceOracle | HostOracle
    _runners: Sequence[Runner]  # of the processes in which the original may fail
    _seed: int
    extra: tuple[ExtraCase, ...] = ()  # of a tester
    _unfit: dict[Case, Verdict] = field(default_factory=dict)
    _unfit_values: set[str] = field(default_factory=set)
    _judged: dict[tuple[str, str, str], Verdict] = field(default_factory=dict)
    _smoke: dict[tuple[str, Config | None], tuple[Case, ...]] = field(default_factory=dict)
    _beside: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "apart"))

    def close(self) -> None:
        self._beside.shutdown(wait=False, cancel_futures=True)

    def forget(self) -> None:
        """All verdicts on candidates."""
        self._judged.clear()

    def level(self, code: BuiltCode, variant: Variant, level: str) -> Verdict:
        key = (code.code_digest, variant.digest, level)
        if key not in self._judged:
            cases = self.of_level(level, variant)
            self._judged[key] = self.judge(code, variant, cases) if cases else NO_CASES
        return self._judged[key]

    @contextmanager
    def telling_errors(self, apart: DeviceOracle | None) -> Iterator[ErrorsByCase]:
        """Filled by what is judged meanwhile. What is judged apart comes later, and counts."""
        found: ErrorsByCase = {}
        asked = [oracle for oracle in (self._oracle, apart) if oracle is not None]
        for oracle in asked:
            oracle.errors = found
        try:
            yield found
        finally:
            for oracle in asked:
                oracle.errors = None

    def judge(
        self, code: BuiltCode, variant: Variant, cases: Sequence[Case], apart: DeviceOracle | None = None
    ) -> Verdict:
        """A case that the original itself fails judges nobody, unless it fails all with ordinary values."""
        examined: list[Examined] = []
        failed = NO_CASES
        plans = [self._plans.plan(variant, dict(case.sizes), code) for case in cases]
        # Up to the first that cannot be launched, where all ends.
        both = list(zip(cases, plans, strict=True))
        launched = [case for case, _ in takewhile(lambda one: isinstance(one[1], Plan), both)]
        for number, (case, plan) in enumerate(both):
            self.prepare(launched, number)
            seconds = self.established(case)
            if isinstance(seconds, Verdict):
                failed = Verdict(seconds.status, f"the original itself fails: {seconds.detail}")
                continue
            if isinstance(plan, CannotRun):
                return Verdict(plan.status, plan.reason)
            deadline = measure.case_deadline(seconds, self._device, code.seconds, plan)
            examined.append(Examined(case, plan, deadline))
        if all(one.case.is_odd for one in examined):
            return failed
        verdict = self._oracle.examine(code, examined)
        if not verdict.ok or apart is None or not isinstance(self._oracle, DeviceOracle):
            return verdict
        return self._oracle.examine_apart(code, examined, apart)

    def prove(
        self,
        code: BuiltCode,
        variant: Variant,
        seed: int,
        apart: DeviceOracle | None,
        branches: Callable[[], BranchSearch],
    ) -> ProvenCases:
        """A winner on fresh cases, and on those that its conditions on data ask for besides."""
        replaced, sides = list[ReplacedCase](), NO_SIDES
        cases = self.fresh(code, variant, seed, replaced, apart)
        with self.telling_errors(apart) as errors:
            verdict = self.judge(code, variant, cases, apart)
            if verdict.ok and device.find_language(variant.language).is_c_family:
                drawn, sides = branches().search(code, variant, cases, seed)
                ordinary = [case for case in cases if not case.is_odd][:1]  # the others alone clear nobody
                verdict = self.judge(code, variant, [*ordinary, *drawn], apart) if drawn else verdict
                cases += drawn
        if verdict is NO_CASES and replaced:
            verdict = Verdict(Status.INFEASIBLE, f"the original itself fails: {replaced[-1].reason}")
        return ProvenCases(verdict, cases, replaced, seen_cases(cases, verdict, errors), sides)

    def established(self, case: Case) -> float | Verdict:
        """Seconds the original takes on the case. Where it fails, a fresh process confirms that: an earlier
        kernel may have spoilt the last one, to be judged by nothing."""
        if case in self._unfit or case.distribution in self._unfit_values:
            return self._unfit.get(case, UNFIT_VALUES)
        found = self._attempt(case)
        if isinstance(found, Verdict):
            for runner in self._runners:
                runner.restart()
            self._oracle.forget(case)
            found = self._attempt(case)
        if isinstance(found, Verdict):
            self._unfit[case] = found
            if case.is_odd and found.status in (Status.CRASHED, Status.TIMED_OUT):
                self._unfit_values.add(case.distribution)  # indices, perhaps: it will at other sizes too
        return found

    def _attempt(self, case: Case) -> float | Verdict:
        try:
            return self._oracle.establish(case)
        except BadInput as error:  # it cannot be launched there, or the reference has no answer
            return Verdict(Status.INFEASIBLE, str(error))

    def fresh(
        self,
        code: BuiltCode,
        variant: Variant,
        seed: int,
        replaced: list[ReplacedCase],
        apart: DeviceOracle | None = None,
    ) -> list[Case]:
        """Those of a verification that the original passes; for each of the others another is tried. They are
        established `apart` at the same time, for what is judged there."""
        used = {c.sizes for level in ("smoke", "full") for c in self.of_level(level, variant)}
        drawn = verify_cases(self._problem, variant, self._device, seed, used)
        spares: list[Case] | None = None
        found: list[Case] = []
        every = dict.fromkeys((*drawn, *self._added_afresh(variant, seed)))
        tried = [case for case in every if not self._is_out_of_reach(code, variant, case)]
        plans = {case: self._plans.plan(variant, dict(case.sizes), code) for case in tried}
        moved = [case for case, plan in plans.items() if isinstance(plan, Plan) and is_moved(plan)]
        beside = [self._beside.submit(apart.establish, case) for case in moved if apart]
        for number, case in enumerate(tried):
            self.prepare(tried, number)
            verdict, attempts = self.established(case), [case.again(1)]
            if not isinstance(verdict, Verdict):
                found.append(case)
                continue
            reason = f"{verdict.status}: {verdict.detail}"
            replaced.append(ReplacedCase(case.sizes, case.distribution, reason))
            if spares is None:
                others = verify_cases(self._problem, variant, self._device, seed_of(seed, "spare"), used)
                spares = [c for c in others if c not in drawn]
            attempts += [c for c in spares if c.distribution == case.distribution][:SPARES]
            fit = (c for c in attempts if not isinstance(self.established(c), Verdict))
            found += islice(fit, 1)
        wait(beside)  # what failed there is asked for again, and fails again
        return list(dict.fromkeys(found))

    def prepare(self, cases: Sequence[Case], first: int) -> None:
        """References of the first, which is asked for next, and of those after it are computed meanwhile;
        what cannot be launched says so in its turn."""
        ahead = AHEAD if self._device.is_host else FAR_AHEAD
        for case in cases[first : first + ahead]:
            if case not in self._unfit and case.distribution not in self._unfit_values:
                with suppress(BadInput):
                    self._oracle.prepare(case)

    def _is_out_of_reach(self, code: BuiltCode, variant: Variant, case: Case) -> bool:
        """Whether a case beyond the workloads takes more than the device has: no dispatch goes so far."""
        plan = self._plans.plan(variant, dict(case.sizes), code)
        beyond = case_misfit(self._problem, ExtraCase(case.sizes, case.distribution)) is not None
        return beyond and isinstance(plan, CannotRun) and plan.status is Status.OVER_LIMITS

    def think_ahead(self, code: BuiltCode, variant: Variant) -> None:
        """What a search will ask, before it does."""
        for case in self.of_level("smoke", variant):
            self._plans.plan(variant, dict(case.sizes), code)

    def of_level(self, level: str, variant: Variant) -> tuple[Case, ...]:
        seed = self._seed
        if level == "smoke":
            key = (variant.digest, variant.config)
            if key not in self._smoke:
                self._smoke[key] = smoke_cases(self._problem, variant, self._device, seed)
            return self._smoke[key]
        added = self._extra_cases(variant, seed, self.extra)
        return tuple(dict.fromkeys((*full_cases(self._problem, variant, self._device, seed), *added)))

    def _extra_cases(
        self, variant: Variant, seed: int, extra: Sequence[ExtraCase], level: Level = "full"
    ) -> tuple[Case, ...]:
        return extra_cases(self._problem, variant, self._device, seed, extra, level)

    def _added_afresh(self, variant: Variant, seed: int) -> tuple[Case, ...]:
        """A tester's cases with values never used before; where the original itself fails on those, with the
        ones it was proved right on."""
        fresh = self._extra_cases(variant, seed, self.extra, "verify")
        known = self._extra_cases(variant, self._seed, self.extra)
        return tuple(
            old if isinstance(self.established(new), Verdict) else new
            for new, old in zip(fresh, known, strict=True)
        )

    def fault_of_original(self, one: ExtraCase) -> str | None:
        for case in self._extra_cases(original_variant(self._problem), self._seed, [one]):
            try:
                verdict = self._oracle.establish(case)
            except BadInput as error:  # it cannot even be launched there
                return str(error)
            if isinstance(verdict, Verdict):
                return f"the original itself is {verdict.status} there: {verdict.detail}"
        return None


def seen_cases(cases: Sequence[Case], verdict: Verdict, errors: ErrorsByCase) -> list[CaseSeen]:
    """They are tried in this order up to the first that fails; a verdict may name none of them."""
    failed = [n for n, case in enumerate(cases) if not verdict.ok and verdict.detail.startswith(case.where)]
    right = len(cases) if verdict.ok else failed[0] if failed else 0
    statuses = [Status.OK.value] * right + [verdict.status.value] * bool(failed)
    statuses += [""] * (len(cases) - len(statuses))
    return [
        CaseSeen(case.sizes, case.distribution, case.seed, status, errors.get(case, ()))
        for case, status in zip(cases, statuses, strict=True)
    ]
