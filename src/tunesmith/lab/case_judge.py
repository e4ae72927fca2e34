"""Cases and what they say of a kernel: which ones it is tried on, whether the original passes them, and the
verdict on all of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from tunesmith.errors import BadInput
from tunesmith.lab import measuring
from tunesmith.lab.builders import BuiltCode
from tunesmith.lab.memory import Examined, Verdict
from tunesmith.lab.oracles import DeviceOracle, ErrorsByCase, HostOracle, is_moved
from tunesmith.lab.runner import Runner
from tunesmith.problem import languages
from tunesmith.problem.cases import (
    Case,
    ExtraCase,
    Level,
    extra_cases,
    full_cases,
    misfit,
    smoke_cases,
    verify_cases,
)
from tunesmith.problem.device import Device
from tunesmith.problem.plan import CannotRun, Plan, Status
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Variant, original
from tunesmith.run.events import CaseSeen, ReplacedCase
from tunesmith.run.outcome import NO_SIDES, DataSides
from tunesmith.space.params import Config
from tunesmith.text import seed_of

if TYPE_CHECKING:
    from tunesmith.lab.branch_search import BranchSearch

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
    _plans: measuring.LaunchPlans
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
            deadline = measuring.case_deadline(seconds, self._device, code.seconds, plan)
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
            if verdict.ok and languages.named(variant.language).is_c_family:
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
        moved = [case for case in tried if apart and self._is_moved(code, variant, case)]
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

    def _is_moved(self, code: BuiltCode, variant: Variant, case: Case) -> bool:
        plan = self._plans.plan(variant, dict(case.sizes), code)
        return isinstance(plan, Plan) and is_moved(plan)

    def _is_out_of_reach(self, code: BuiltCode, variant: Variant, case: Case) -> bool:
        """Whether a case beyond the workloads takes more than the device has: no dispatch goes so far."""
        plan = self._plans.plan(variant, dict(case.sizes), code)
        beyond = misfit(self._problem, ExtraCase(case.sizes, case.distribution)) is not None
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
        for case in self._extra_cases(original(self._problem), self._seed, [one]):
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
