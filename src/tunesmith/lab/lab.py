"""The lab: trials in, outcomes out. Right before fast, and nothing wrong is ever timed."""

from __future__ import annotations

import secrets
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn, Protocol

from tunesmith.backends.port import PortableForm
from tunesmith.base.text import seed_of
from tunesmith.lab import measure
from tunesmith.lab.build import Builders, BuildSurveyor, BuiltCode, unit_of
from tunesmith.lab.judge.cases import CaseJudge, DeviceOracle, HostOracle
from tunesmith.lab.judge.sanitize import Beside, SanitizerTools, Sanitizing, verdict_of
from tunesmith.lab.measure import Original, Ready, TrialTimer, original_failed
from tunesmith.lab.memory import RIGHT, Verdict
from tunesmith.lab.process import WorkerProcess
from tunesmith.lab.references import References, references_of
from tunesmith.lab.runner import Runner
from tunesmith.lab.validate_timing import SampleJudge
from tunesmith.problem.cases import Case, case_reach, full_cases
from tunesmith.problem.device import Device
from tunesmith.problem.dispatch import delivered_variant
from tunesmith.problem.plan import CannotRun, ExtraCase, Plan, Status
from tunesmith.problem.problem import Problem, Workload
from tunesmith.problem.template import Template, ToBuild, Variant, builds_of, original_variant
from tunesmith.run.events import (
    Baseline,
    CaseSeen,
    Extended,
    Profiled,
    ReplacedCase,
    Sanitized,
    Served,
    ServedSize,
    StoredBinary,
    Surveyed,
    Verified,
    VerifiedBuild,
    merge_sanitized,
)
from tunesmith.run.outcome import NO_SIDES, Outcome, Result, Trial, all_or_nothing
from tunesmith.run.ports import Delivery, Power, ResultCache, SizedCall
from tunesmith.space.configset import Config

if TYPE_CHECKING:
    from tunesmith.lab.judge.branch_search import BranchSearch
    from tunesmith.lab.profile import ProfileSession


ROUNDS, LOOKS = 11, 2  # of timed launches, and looks at their results


class BinaryStore(Protocol):
    """Bytes that a run keeps, by digest; on disk when `put` returns."""

    def put(self, data: bytes) -> str: ...
    def get(self, digest: str) -> bytes: ...


@dataclass
class BinaryShelf:
    """Builds in the form in which they are delivered."""

    form: PortableForm | None  # None: this backend delivers sources alone
    store: BinaryStore | None

    def keep(self, code: BuiltCode | Verdict, variant: Variant, workloads: tuple[str, ...]) -> VerifiedBuild:
        binary = None
        if isinstance(code, Verdict):
            return VerifiedBuild(workloads, variant.digest, "")
        if self.form is not None and self.store is not None:
            symbols, data = self.form.unpack(code.binary)
            binary = StoredBinary(self.form.name, self.store.put(data), tuple(symbols.items()))
        return VerifiedBuild(workloads, variant.digest, code.code_digest, binary, code.resources)

    def code_of(self, build: VerifiedBuild | None, variant: Variant, compiler: str) -> BuiltCode | None:
        """The stored binary, to be loaded as it is; None where there is none."""
        if build is None or build.binary is None or self.form is None or self.store is None:
            return None
        data = self.form.pack(dict(build.binary.symbols), self.store.get(build.binary.digest))
        assert build.resources is not None, "stored with the binary"
        return BuiltCode(unit_of(variant, compiler), data, build.code_digest, build.resources, 0.0)


SWITCH_SECONDS = 2e-4
SEED_BITS = 53
NO_SHELF = BinaryShelf(None, None)


@dataclass(frozen=True)
class LabSettings:
    seed: int
    builders: int
    compiler: str = ""
    salt: int = 0  # of the run, beside the seed: nobody can foresee the values of its cases
    seconds: float | None = None  # that the run has for its search


class LocalLab:
    def __init__(
        self,
        problem: Problem,
        device: Device,
        spawn: Callable[[str], WorkerProcess],
        settings: LabSettings,
        *,
        cache: ResultCache | None = None,
        known: Iterable[Outcome] = (),
        progress: Callable[[str], None] = lambda _text: None,
        onlooker: ProfileSession | None = None,
        no_profiles: str = "",
        extra: Sequence[ExtraCase] = (),
        draw_seed: Callable[[], int] = lambda: secrets.randbits(SEED_BITS),
        sanitizers: SanitizerTools | str = "this lab was given no sanitizer",
        beside: Beside | None = None,
        shelf: BinaryShelf = NO_SHELF,
        no_calls: str = "",
        identity: str = "",
        builders: Builders | None = None,
        references: References | None = None,
    ) -> None:
        """`onlooker` None: nothing can be profiled, and `no_profiles` says why. Verifications
        begin from a seed that nobody knows before the first of them. `sanitizers`: or why there are none;
        `beside` watches the same kernels on the host. `builders` and `references`: shared with other labs."""
        self._problem, self._device, self._settings = problem, device, settings
        self._progress, self._draw_seed = progress, draw_seed
        self._verify_seed: int | None = None
        self._seed = seed_of(settings.seed, settings.salt) if settings.salt else settings.seed
        self._shelf, self._identity = shelf, identity
        self._onlooker = onlooker
        self.lacks: dict[Power, str] = {"serve": no_calls} if no_calls else {}
        if no_profiles or not onlooker:
            self.lacks["profile"] = no_profiles or "this lab was given no profiler"
        self._runner = Runner(spawn("device"), device, spawn("spare") if device.inspects else None, progress)
        self._policies = measure.policies_of(device)
        build = (lambda: spawn("build"), device, settings.builders)
        self._builders = builders or Builders(*build, compiler=settings.compiler)
        self._plans = measure.LaunchPlans(problem, device)
        self._original = Original(problem, self._builders, self._plans)
        most = 1 if device.is_host else settings.builders
        self._references = references = references or references_of(problem, spawn, most)
        self._sanitizing = Sanitizing(problem, device, self._plans, self._original, sanitizers, beside)
        self._gated: set[str] = set()  # candidates whose first trial sanitizers have seen
        self._clean = Runner(spawn("judge"), device)  # it runs the original alone
        looks = SampleJudge(problem, references, self._clean, measure.original_deadline)
        timed = (problem, device, self._runner, self._original, looks, self._seed, cache)
        self._timer = TrialTimer(*timed, settings.seconds)
        common = (problem, device, references, self._runner, self._original.plan)
        self._oracle = DeviceOracle(*common) if device.inspects else HostOracle(*common, self._clean)
        apart = (problem, device, references, self._clean, self._original.plan)
        self._apart = DeviceOracle(*apart) if device.inspects else None  # None: no verdict falls in a worker
        both = (self._runner, self._clean)
        self._cases = CaseJudge(problem, device, self._plans, self._oracle, both, self._seed, tuple(extra))
        self._templates: dict[str, Template] = {}
        self._queue: deque[Trial] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="evaluate")
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="ahead")
        self._evaluations: deque[Future[Outcome]] = deque()
        self._built_afresh: set[Config | None] = set()  # for verifications that are still to come
        self._built: set[int] = set()  # trials that were built while nothing was timed, on a CPU
        self._surveyor = BuildSurveyor(problem, device, self._builders)
        self._prepared: dict[Trial, tuple[ToBuild, ...]] = {}
        for outcome in known:
            self.remember(outcome)
        if device.inspects:
            # A thread that waits for the device must not wait for another to end its slice, 5 ms by default.
            sys.setswitchinterval(SWITCH_SECONDS)
            # Processes take a second to start: all at once, while others work. A CPU device needs its cores.
            self._builders.warm()
            self._references.start()
            self._runner.start()

    def remember(self, outcome: Outcome) -> None:
        """Facts from the journal: what the original takes, and what has been timed already."""
        self._timer.remember(outcome)

    def check(self) -> int:
        """Prove the original right over the contract's edges; the number of cases that took."""
        cases = full_cases(self._problem, original_variant(self._problem), self._device, self._seed)
        for number, case in enumerate(cases):
            self._progress(f"checking the original, case {number + 1} of {len(cases)}")
            self._cases.prepare(cases, number)
            verdict = self._cases.established(case) if case.is_odd else self._oracle.establish(case)
            if isinstance(verdict, Verdict) and case.is_odd:
                words = f"the original fails {case.where}, so nobody is held to it there"
                self._progress(f"{words}: {verdict.detail}")
            elif isinstance(verdict, Verdict):
                raise original_failed(self._problem, verdict, case)
        return len(cases)

    def sanitize(self) -> Sanitized:
        """What sanitizers say of the original."""
        return self._sanitizing.of_original(original_variant(self._problem), self._seed)

    def rehearse(self, template: Template | None, config: Config | None, whole: bool = True) -> Rehearsal:
        """A verdict without a time, on the original or a configuration; KernelWrong where the original is."""

        if template is None or config is None:
            return Rehearsal(RIGHT, self.check())
        found = builds_of(self._problem, template.on(self._device), config)
        return rehearse_builds(found, self._builders, self._cases, self._sanitizing, self._seed, whole)

    def extend(self, wanted: Extended) -> Extended:
        accepted, rejected = [], list(wanted.aside)
        for number, one in enumerate(wanted.cases):
            self._progress(f"trying the original on added case {number + 1} of {len(wanted.cases)}")
            fault = self._cases.fault_of_original(one)
            if fault is None:
                accepted.append(one)
            else:
                rejected.append((one, fault))
        self._cases.extra = tuple(accepted)
        return Extended(self._cases.extra, tuple(rejected), wanted.note)

    def baseline(self) -> Baseline:
        started = self._clock()
        self.check()
        code, results = self._timer.baseline(self._progress)
        trial = Trial(-1, None, tuple(w.name for w in self._problem.workloads), "long", "sentinel")
        outcome = self._outcome(trial, original_variant(self._problem).digest, code, results, started)
        self._timer.remember(outcome)
        builds = []
        for item in builds_of(self._problem, None, None):
            built = self._builders.start(item.variant).result()
            if isinstance(built, BuiltCode):
                builds.append(self._shelf.keep(built, item.variant, tuple(w.name for w in item.workloads)))
        by_reference = self._problem.accuracy.reference is not None
        return Baseline(outcome, "reference" if by_reference else "original", tuple(builds))

    def admit(self, template: Template) -> None:
        self._templates[template.digest] = template

    def build(self, trial: Trial) -> None:
        self._surveyor.submit(self._templates[trial.template], trial.config)

    def built(self) -> Surveyed:
        return self._surveyor.collect()

    def drop_builds(self) -> None:
        self._surveyor.drop()

    def changed(self) -> None:
        """None ever: it has one device, and nothing to go on with without it."""

    def leave_out(self, device: str) -> None:
        raise NotImplementedError(device)

    def submit(self, trial: Trial, device: str = "") -> None:
        self._queue.append(trial)
        self._prepared[trial] = self._prepare_builds(trial)
        if not self._device.is_host:
            self._start_builds(trial)
            self._ahead.submit(self._think_ahead, trial)
            # One after the other, while the loop thinks: what the first has taught the next one knows.
            self._evaluations.append(self._thread.submit(self._evaluate, trial))

    def collect(self) -> Outcome:
        trial = self._queue[0]
        # Builds would disturb the measurement on a CPU: there all that wait are built while nothing is timed,
        # and those that come after them when the first of these is due.
        if self._device.is_host and trial.id not in self._built:
            for future in [f for waiting in self._queue for f in self._start_builds(waiting)]:
                future.result()
            self._built = {waiting.id for waiting in self._queue}
        if self._device.is_host:
            self._evaluations.append(self._thread.submit(self._evaluate, trial))
        outcome = self._evaluations.popleft().result()
        self._queue.popleft()
        self._prepared.pop(trial, None)
        return outcome

    def verify(self, trial: Trial, later: Sequence[Trial] = ()) -> Verified:
        """Everything again from the delivered source: fresh processes, seeds and sizes."""
        self._start_afresh(trial)
        started = self._clock()
        results: list[Result] = []
        seen, tried, replaced = list[Case](), list[CaseSeen](), list[ReplacedCase]()
        # The same for all winners, who were chosen before it was drawn: they share references.
        seed = self._verify_seed = self._draw_seed() if self._verify_seed is None else self._verify_seed
        builds: list[VerifiedBuild] = []
        sanitized, sides = list[Sanitized](), NO_SIDES
        code: BuiltCode | Verdict | None = None
        prepared = self._prepare_builds(trial)
        # Side by side: both are built anew, and neither compiler has been started yet.
        self._builders.start(original_variant(self._problem, prepared[0].workloads[0].as_dict()))
        if self._device.inspects:  # on a CPU builds would disturb what is timed
            for other in (trial, *later):
                self._start_builds(other)
            self._built_afresh = {other.config for other in later}
        for item in prepared:
            code = self._builders.start(item.variant).result()
            if isinstance(code, Verdict):
                verdict = code
            else:
                watched = self._sanitizing.start(code, item.variant, seed)
                proven = self._cases.prove(code, item.variant, seed, self._apart, self._branches)
                sides = sides.joined(proven.sides)
                sanitized.append(watched())  # before anything is timed
                self._runner.wait_for_spare()
                verdict, seen, tried = proven.verdict, seen + proven.cases, tried + proven.seen
                replaced += proven.replaced
            if verdict.ok and sanitized:
                verdict = verdict_of(sanitized[-1])
            names = tuple(w.name for w in item.workloads)
            builds.append(self._shelf.keep(code, item.variant, names))
            results += [self._time_winner(item.variant, w, code, verdict, seed) for w in item.workloads]
        built = code if isinstance(code, BuiltCode) else None
        outcome = self._outcome(trial, _variant_digest(prepared), built, results, started)
        found = (tuple(replaced), case_reach(self._problem, seen), tuple(tried), tuple(builds))
        return Verified(outcome, len(seen), seed, *found, merge_sanitized(sanitized), sides)

    def _start_afresh(self, trial: Trial) -> None:
        if trial.config not in self._built_afresh:
            self._builders.forget()
        self._runner.renew()
        if self._verify_seed is None or not self._device.inspects:
            self._clean.restart()  # on a device, where no candidate's outputs come from it, for all winners
        if self._device.inspects:
            self._runner.start()  # while the source is built
            self._runner.prepare_spare(self._ahead)
        self._cases.forget()

    def _time_winner(
        self, variant: Variant, workload: Workload, code: BuiltCode | Verdict, verdict: Verdict, seed: int
    ) -> Result:
        """Against the original, where it has proved right."""
        if isinstance(code, Verdict) or not verdict.ok:
            return Result(workload.name, verdict.status, detail=verdict.detail)
        plan = self._plan(variant, workload, code)
        if isinstance(plan, CannotRun):
            return Result(workload.name, Status.OVER_LIMITS, detail=plan.reason)
        return self._timer.against_original(Ready(workload, code, plan), self._policies.verify, seed)

    def serve(self, delivery: Delivery, calls: Sequence[SizedCall]) -> Served:
        """In a process that no candidate has used, which loads what is delivered."""
        self._runner.renew()
        seed = self._draw_seed()
        served: list[ServedSize] = []
        for number, call in enumerate(calls, 1):
            self._progress(f"calling what is delivered at {call.name}, {number} of {len(calls)}")
            served.append(self._call_delivered(delivery, call, seed))
        return Served(delivery.general, delivery.entries_digest, tuple(served))

    def _call_delivered(self, made: Delivery, call: SizedCall, seed: int) -> ServedSize:
        """Everything that decides comes from what is delivered: the entry, its launches and its binary."""
        sizes = dict(call.sizes)
        entry = made.dispatch.entry_for(sizes)
        config = made.configs.get(entry.digest) if entry.config is not None else None
        if config is None:
            words = Result(call.name, Status.INFEASIBLE, detail="the original serves")
            return ServedSize(call.sizes, entry.file, None, words)
        variant = delivered_variant(made.dispatch, entry, made.files, sizes)
        declared = self._problem.arguments  # with what the lab knows of them beside: values, tolerances
        vetted = made.made_from.get(entry.digest, ())  # as it is delivered
        variant = replace(variant, arguments=(*declared, *variant.arguments[len(declared) :]))
        variant = replace(variant, config=config, made_from=vetted)
        stored = self._shelf.code_of(made.builds.get(entry.digest), variant, self._settings.compiler)
        code = stored if stored is not None else self._builders.start(variant).result()
        workload = Workload(call.name, call.sizes, cache=call.cache)
        if isinstance(code, Verdict):
            result = Result(call.name, code.status, detail=code.detail)
        else:
            plan = self._plans.plan(variant, sizes, code)
            if isinstance(plan, CannotRun):
                result = Result(call.name, plan.status, detail=plan.reason)
            else:
                self._timer.expect(workload, self._timer.estimate_original(sizes))
                policy = replace(self._policies.long, rounds=ROUNDS, looks=LOOKS)
                is_claimed = any(w.name == call.name for w in self._problem.workloads)
                ready = Ready(workload, code, plan)
                result = self._timer.against_original(ready, policy, seed, waits=is_claimed)
        return ServedSize(call.sizes, entry.file, config, result)

    def prepare_profiles(self) -> None:
        """Measure the device's ceilings where they are not known: before a run's clock, whose budget is for
        the search."""
        if self._onlooker is not None:
            self._onlooker.prepare(self._builders, self._runner)

    def profile(self, config: Config | None, workload: str, seconds: float) -> Profiled:
        from tunesmith.lab.profile import ProfileSubject  # which few runs need

        assert self._onlooker is not None, self.lacks["profile"]
        known = [t for t in self._templates.values() if config and t.space.candidate == config.candidate]
        template = known[-1] if known else None
        subject = ProfileSubject(template if config is not None else None, config)
        return self._onlooker.look(self._builders, self._runner, subject, workload, seconds)

    def _branches(self) -> BranchSearch:
        from tunesmith.lab.judge.branch_search import BranchSearch  # which needs a reader of C

        parts = (self._problem, self._device, self._builders, self._plans, self._runner)
        return BranchSearch(*parts, self._cases.established)

    def close(self) -> None:
        self._runner.close()
        self._clean.close()
        self._references.close()
        self._cases.close()
        self._builders.close()
        # What was under way ends at once now: none of its workers answers any more.
        self._ahead.shutdown(wait=True, cancel_futures=True)
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._sanitizing.close()

    def _evaluate(self, trial: Trial) -> Outcome:
        started, busy = self._clock(), self._runner.busy
        prepared = self._prepare_builds(trial)
        results: list[Result] = []
        built: BuiltCode | None = None
        for item in prepared:
            code = self._builders.start(item.variant).result()
            if isinstance(code, Verdict):
                results += [Result(w.name, code.status, detail=code.detail) for w in item.workloads]
                continue
            built = code
            results += self._evaluate_variant(trial, item, code)
        order = {name: i for i, name in enumerate(trial.workloads)}
        results.sort(key=lambda r: order[r.workload])
        outcome = self._outcome(trial, _variant_digest(prepared), built, results, started)
        outcome = replace(outcome, busy=self._runner.busy - busy)
        self.remember(outcome)
        return outcome

    def _clock(self) -> tuple[float, float]:
        """Seconds, and those of them that a worker has waited for the device."""
        return time.perf_counter(), self._runner.waited + self._clean.waited

    def _outcome(
        self,
        trial: Trial,
        digest: str,
        code: BuiltCode | None,
        results: Sequence[Result],
        started: tuple[float, float],
    ) -> Outcome:
        built, resources = (code.code_digest, code.resources) if code else ("", None)
        seconds, waited = (now - then for now, then in zip(self._clock(), started, strict=True))
        about = (digest, built, resources, seconds)
        waited = min(waited, seconds)
        return Outcome(trial, all_or_nothing(results), *about, device=self._identity, waited=waited)

    def _think_ahead(self, trial: Trial) -> None:
        """While the device is busy with another: what follows from the build alone. What fails fails again
        when it is asked for."""
        for item in self._prepare_builds(trial) if trial.config is not None else ():
            code = self._builders.start(item.variant).result()
            if isinstance(code, BuiltCode):
                self._cases.think_ahead(code, item.variant)
                for workload in item.workloads:
                    self._plan(item.variant, workload, code)

    def _evaluate_variant(self, trial: Trial, item: ToBuild, code: BuiltCode) -> list[Result]:
        results: dict[str, Result] = {}
        ready: list[Ready] = []
        for w in item.workloads:
            plan = self._plan(item.variant, w, code)
            if isinstance(plan, CannotRun):
                results[w.name] = Result(w.name, plan.status, detail=plan.reason)
            else:
                ready.append(Ready(w, code, plan))
        verdict = RIGHT
        if ready and trial.config is not None:
            levels = ("smoke", "full") if trial.effort == "long" else ("smoke",)
            for level in levels:
                verdict = verdict if not verdict.ok else self._cases.level(code, item.variant, level)
        if verdict.ok and self._is_first_at_gate(trial):
            verdict = self._sanitizing.at_gate(code, item.variant, self._seed)
        if not verdict.ok:
            timed = [Result(r.workload.name, verdict.status, detail=verdict.detail) for r in ready]
        elif trial.effort == "long":
            timed = [self._timer.against_original(r, self._policies.long) for r in ready]
        else:
            timed = self._timer.alone(ready, is_candidate=trial.config is not None)
        results |= {result.workload: result for result in timed}
        return [results[w.name] for w in item.workloads]

    def _is_first_at_gate(self, trial: Trial) -> bool:
        """Of every draft; where what a model wrote was given, there is no gate and its search begins here.
        The others wait until they win: each look takes seconds."""
        if trial.purpose not in ("gate", "search") or trial.config is None:
            return False
        template = self._templates[trial.template]
        candidate = template.space.candidate
        if candidate in self._gated:
            return False
        self._gated.add(candidate)
        return template.is_foreign or bool(candidate)

    def _prepare_builds(self, trial: Trial) -> tuple[ToBuild, ...]:
        if trial in self._prepared:
            return self._prepared[trial]
        workloads = [self._problem.workload(name) for name in trial.workloads]
        template = self._templates[trial.template] if trial.config is not None else None
        return builds_of(self._problem, template, trial.config, workloads)

    def _start_builds(self, trial: Trial) -> list[Future[BuiltCode | Verdict]]:
        return [self._builders.start(item.variant) for item in self._prepare_builds(trial)]

    def _plan(self, variant: Variant, workload: Workload, code: BuiltCode) -> Plan | CannotRun:
        return self._plans.plan(variant, workload.as_dict(), code)


def _variant_digest(prepared: Sequence[ToBuild]) -> str:
    return prepared[0].variant.digest if prepared else ""


@dataclass(frozen=True)
class Rehearsal:
    verdict: Verdict
    cases: int = 0
    watched: str = ""  # what looked for faults that results need not show


def rehearse_builds(
    builds: Sequence[ToBuild],
    builders: Builders,
    cases: CaseJudge,
    sanitizing: Sanitizing,
    seed: int,
    whole: bool = True,
) -> Rehearsal:
    """Of one configuration: all its builds, up to the first that is not right. `whole`: on all cases, not
    only on the few that a search begins with."""
    tried, watched = 0, list[str]()
    for item in builds:
        code = builders.start(item.variant).result()
        if isinstance(code, Verdict):
            return Rehearsal(code)
        for level in ("smoke", "full") if whole else ("smoke",):
            verdict = cases.level(code, item.variant, level)
            if not verdict.ok:
                return Rehearsal(verdict)
            tried += len(cases.of_level(level, item.variant))
        look = sanitizing.look_at_gate(code, item.variant, seed)
        if not (verdict := verdict_of(look)).ok:
            return Rehearsal(verdict)
        watched.append(look.by if look.tools else "")
    return Rehearsal(RIGHT, tried, watched[0] if watched and all(watched) else "")


class OfflineLab:
    """A lab whose device is absent."""

    def __init__(self, surveyor: BuildSurveyor, missing: str) -> None:
        self.lacks: dict[Power, str] = {"time": missing, "serve": missing, "profile": missing}
        self._surveyor = surveyor
        self._templates: dict[str, Template] = {}

    def admit(self, template: Template) -> None:
        self._templates[template.digest] = template

    def build(self, trial: Trial) -> None:
        self._surveyor.submit(self._templates.get(trial.template), trial.config)

    def built(self) -> Surveyed:
        return self._surveyor.collect()

    def drop_builds(self) -> None:
        self._surveyor.drop()

    def close(self) -> None:
        self._surveyor.close()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise NotImplementedError(self.lacks["time"])

    baseline = extend = submit = collect = changed = leave_out = verify = serve = profile = _refuse
