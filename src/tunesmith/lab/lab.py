"""The lab: trials in, outcomes out. Right before fast, and nothing wrong is ever timed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from tunesmith.core.checks.cases import Case, full_cases, smoke_cases, verify_cases
from tunesmith.core.device import Device
from tunesmith.core.digest import digest_of, seed_of
from tunesmith.core.errors import BadInput, TunesmithError
from tunesmith.core.events import Baseline, Verified
from tunesmith.core.messages import Draw, TimingPolicy
from tunesmith.core.outcome import Outcome, Result, Status, Timing, Trial
from tunesmith.core.plan import Plan, Refused, necessary_traffic, plan_launch
from tunesmith.core.ports import ResultCache
from tunesmith.core.problem import Problem, Workload
from tunesmith.core.template import Template, Variant, original
from tunesmith.lab import policies
from tunesmith.lab.builders import COMPILER_CRASHED, Builders, BuiltCode
from tunesmith.lab.oracle import RIGHT, Oracle, Run, Verdict, draw_of
from tunesmith.lab.original_failed import original_failed
from tunesmith.lab.process import WorkerProcess
from tunesmith.lab.runner import Runner


@dataclass(frozen=True)
class LabSettings:
    seed: int
    builders: int


@dataclass(frozen=True)
class _Prepared:
    """One variant of a trial and the workloads it serves; several only where sizes are baked in."""

    variant: Variant
    workloads: tuple[Workload, ...]


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
    ) -> None:
        self._problem = problem
        self._device = device
        self._settings = settings
        self._cache = cache
        self._progress = progress
        self._runner = Runner(spawn("device"), device)
        self._builders = Builders(lambda: spawn("build"), device, settings.builders)
        self._reference = spawn("reference")
        self._oracle = Oracle(
            problem, device.limits.alignment, self._reference, self._plan_original, self._run_original
        )
        self._templates: dict[str, Template] = {}
        self._queue: deque[Trial] = deque()
        self._original_seconds: dict[str, float] = {}
        self._timed: dict[str, Timing] = {}  # equal binary and launch are timed once
        self._judged: dict[tuple[str, str, str], Verdict] = {}
        for outcome in known:
            self.remember(outcome)

    def remember(self, outcome: Outcome) -> None:
        """Facts from the journal: what the original takes, and what has been timed already."""
        for result in outcome.results:
            if result.timing is None:
                continue
            if outcome.trial.config is None:
                self._original_seconds.setdefault(result.workload, result.timing.seconds)
            elif outcome.trial.purpose == "search":
                self._timed[result.key] = result.timing

    # -- the port -----------------------------------------------------------------------------------

    def check(self) -> int:
        """Prove the original right over the contract's edges; the number of cases that took."""
        cases = full_cases(self._problem, self._original({}), self._device, self._settings.seed)
        for number, case in enumerate(cases):
            self._progress(f"checking the original, case {number + 1} of {len(cases)}")
            verdict = self._oracle.expectation(case)
            if isinstance(verdict, Verdict):
                raise original_failed(self._problem, verdict, case)
        return len(cases)

    def baseline(self) -> Baseline:
        started = time.perf_counter()
        self.check()
        results: list[Result] = []
        code: BuiltCode | None = None
        for workload in self._problem.workloads:
            self._progress(f"timing the original at {workload.name}")
            code = self._build_original(workload.as_dict())
            plan = self._plan(self._original(workload.as_dict()), workload, code)
            if isinstance(plan, Refused):
                raise BadInput(f"workload {workload.name} cannot run on this device: {plan.reason}")
            draw = self._timing_draw()
            deadline = policies.baseline_deadline(self._device, plan.nbytes)
            timed = self._runner.time(
                [(code, plan)], draw, policies.BASELINE, workload.cache == "warm", deadline
            )
            if isinstance(timed, Verdict):
                raise original_failed(self._problem, timed, workload)
            key = self._key(code, plan, workload, policies.BASELINE)
            results.append(Result(workload.name, Status.OK, Timing(timed.samples[0]), key=key))
        assert code is not None
        trial = Trial(-1, None, tuple(w.name for w in self._problem.workloads), "long", "sentinel")
        outcome = Outcome(
            trial,
            tuple(results),
            self._original({}).digest,
            code.code_digest,
            code.resources,
            time.perf_counter() - started,
        )
        self.remember(outcome)
        return Baseline(outcome, "reference" if self._oracle.has_reference else "original")

    def admit(self, template: Template) -> None:
        self._templates[template.digest] = template

    def submit(self, trial: Trial) -> None:
        self._queue.append(trial)
        if not self._device.is_host:
            self._start_builds(trial)

    def collect(self) -> Outcome:
        trial = self._queue[0]
        # Builds would disturb the measurement on a CPU: there all that wait are built while nothing is timed,
        # and those that come after them when the first of these is due.
        if self._device.is_host and not all(future.done() for future in self._start_builds(trial)):
            for future in [f for waiting in self._queue for f in self._start_builds(waiting)]:
                future.result()
        outcome = self._evaluate(trial)
        self._queue.popleft()
        self.remember(outcome)
        return outcome

    def verify(self, trial: Trial) -> Verified:
        """Everything again from the delivered source: fresh processes, seeds and sizes."""
        self._builders.forget()
        self._runner.restart()
        self._judged.clear()
        started = time.perf_counter()
        results: list[Result] = []
        count = 0
        code: BuiltCode | Verdict | None = None
        prepared = self._prepare(trial)
        for item in prepared:
            code = self._builders.start(item.variant).result()
            used = {
                c.sizes for c in (*self._cases("smoke", item.variant), *self._cases("full", item.variant))
            }
            seed = seed_of(self._settings.seed, "verify")
            cases = verify_cases(self._problem, item.variant, self._device, seed, used)
            verdict = code if isinstance(code, Verdict) else self._judge(code, item.variant, cases)
            count += len(cases)
            for workload in item.workloads:
                if isinstance(code, Verdict) or not verdict.ok:
                    results.append(Result(workload.name, verdict.status, detail=verdict.detail))
                else:
                    results.append(self._race(code, item.variant, workload, policies.VERIFY))
        built = code if isinstance(code, BuiltCode) else None
        return Verified(self._outcome(trial, prepared, built, results, started), count)

    def close(self) -> None:
        self._builders.close()
        self._runner.restart()
        self._reference.kill()

    # -- one trial ----------------------------------------------------------------------------------

    def _evaluate(self, trial: Trial) -> Outcome:
        started = time.perf_counter()
        prepared = self._prepare(trial)
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
        return self._outcome(trial, prepared, built, results, started)

    def _evaluate_variant(self, trial: Trial, item: _Prepared, code: BuiltCode) -> list[Result]:
        refused: dict[str, Result] = {}
        for w in item.workloads:
            plan = self._plan(item.variant, w, code)
            if isinstance(plan, Refused):
                status = Status.OVER_LIMITS if plan.over_limits else Status.INFEASIBLE
                refused[w.name] = Result(w.name, status, detail=plan.reason)
        open_ = [w for w in item.workloads if w.name not in refused]
        verdict = RIGHT
        if open_ and trial.config is not None:
            levels = ("smoke", "full") if trial.effort == "long" else ("smoke",)
            for level in levels:
                verdict = verdict if not verdict.ok else self._judge_level(code, item.variant, level)
        for w in open_:
            if not verdict.ok:
                refused[w.name] = Result(w.name, verdict.status, detail=verdict.detail)
            elif trial.effort == "long":
                refused[w.name] = self._race(code, item.variant, w, policies.LONG)
            else:
                refused[w.name] = self._time_alone(trial, code, item.variant, w)
        return [refused[w.name] for w in item.workloads]

    def _judge_level(self, code: BuiltCode, variant: Variant, level: str) -> Verdict:
        key = (code.code_digest, variant.digest, level)
        if key not in self._judged:
            cases = self._cases(level, variant)
            nothing = Verdict(
                Status.INFEASIBLE, "no size of the contract lies in this configuration's domain"
            )
            self._judged[key] = self._judge(code, variant, cases) if cases else nothing
        return self._judged[key]

    def _judge(self, code: BuiltCode, variant: Variant, cases: Sequence[Case]) -> Verdict:
        for case in cases:
            expected = self._oracle.expectation(case)
            if isinstance(expected, Verdict):
                # The original fails where the candidate would be judged: nothing can be said for it there.
                return Verdict(expected.status, f"the original itself fails: {expected.detail}")
            plan = plan_launch(self._problem, variant, dict(case.sizes), self._device, code.resources)
            if isinstance(plan, Refused):
                status = Status.OVER_LIMITS if plan.over_limits else Status.INFEASIBLE
                return Verdict(status, plan.reason)
            deadline = policies.case_deadline(expected.seconds, self._device, code.seconds, plan.nbytes)
            run = self._runner.run(code, plan, draw_of(self._problem, case), deadline)
            verdict = run if isinstance(run, Verdict) else self._oracle.judge(case, plan, run)
            if not verdict.ok:
                return verdict
        return RIGHT

    def _time_alone(self, trial: Trial, code: BuiltCode, variant: Variant, workload: Workload) -> Result:
        plan = self._plan(variant, workload, code)
        assert isinstance(plan, Plan)
        usual = self._original_seconds[workload.name]
        policy = replace(policies.SHORT, give_up=None)
        key = self._key(code, plan, workload, policy)
        timing = None
        if trial.config is not None:
            timing = self._timed.get(key)
            if timing is None and self._cache is not None:
                timing = self._cache.get(key)
                timing = replace(timing, cached=True) if timing else None
        if timing is None:
            policy = replace(policy, give_up=policies.GIVE_UP_FACTOR * usual)
            deadline = policies.timing_deadline(usual, self._device, code.seconds, policy, 1)
            timed = self._runner.time(
                [(code, plan)], self._timing_draw(), policy, workload.cache == "warm", deadline
            )
            if isinstance(timed, Verdict):
                return Result(workload.name, timed.status, detail=timed.detail)
            timing = Timing(timed.samples[0])
            if (
                self._cache is not None
                and trial.config is not None
                and len(timing.samples) >= policy.min_rounds
            ):
                self._cache.put(key, timing)
        return self._result(workload, timing, key)

    def _race(self, code: BuiltCode, variant: Variant, workload: Workload, policy: TimingPolicy) -> Result:
        """Time the candidate in alternation with the original."""
        plan = self._plan(variant, workload, code)
        rival = self._build_original(workload.as_dict())
        rival_plan = self._plan(self._original(workload.as_dict()), workload, rival)
        if isinstance(plan, Refused) or isinstance(rival_plan, Refused):
            reason = plan.reason if isinstance(plan, Refused) else "the original no longer fits the device"
            return Result(workload.name, Status.OVER_LIMITS, detail=reason)
        usual = self._original_seconds[workload.name]
        deadline = policies.timing_deadline(usual, self._device, code.seconds, policy, 2)
        pair = [(rival, rival_plan), (code, plan)]
        timed = self._runner.time(pair, self._timing_draw(), policy, workload.cache == "warm", deadline)
        if isinstance(timed, Verdict):
            return Result(workload.name, timed.status, detail=timed.detail)
        timing = Timing(timed.samples[1], paired=timed.samples[0])
        return self._result(workload, timing, self._key(code, plan, workload, policy))

    def _result(self, workload: Workload, timing: Timing, key: str) -> Result:
        floor = self._device.limits.pin_bandwidth
        traffic = necessary_traffic(self._problem, workload.as_dict())
        if workload.cache == "cold" and floor and timing.seconds < traffic / floor:
            detail = f"{timing.seconds * 1e6:.3g} µs for {traffic} bytes is faster than the device's pins"
            return Result(workload.name, Status.SUSPECT, detail=detail)
        return Result(workload.name, Status.OK, timing, key=key)

    # -- small parts --------------------------------------------------------------------------------

    def _prepare(self, trial: Trial) -> list[_Prepared]:
        workloads = tuple(self._problem.workload(name) for name in trial.workloads)
        groups: dict[str, _Prepared] = {}
        for w in workloads:
            variant = self._variant(trial, w)
            before = groups.get(variant.digest)
            groups[variant.digest] = _Prepared(variant, (*(before.workloads if before else ()), w))
        return list(groups.values())

    def _variant(self, trial: Trial, workload: Workload) -> Variant:
        if trial.config is None:
            return self._original(workload.as_dict())
        return self._templates[trial.template].render(self._problem, trial.config, workload.as_dict())

    def _start_builds(self, trial: Trial) -> list[Future[BuiltCode | Verdict]]:
        return [self._builders.start(item.variant) for item in self._prepare(trial)]

    def _cases(self, level: str, variant: Variant) -> tuple[Case, ...]:
        make = smoke_cases if level == "smoke" else full_cases
        return make(self._problem, variant, self._device, self._settings.seed)

    def _plan(self, variant: Variant, workload: Workload, code: BuiltCode) -> Plan | Refused:
        return plan_launch(self._problem, variant, workload.as_dict(), self._device, code.resources)

    def _original(self, sizes: dict[str, int]) -> Variant:
        return original(self._problem, sizes)

    def _build_original(self, sizes: dict[str, int]) -> BuiltCode:
        code = self._builders.start(self._original(sizes)).result()
        if isinstance(code, Verdict):
            if code.detail.startswith(COMPILER_CRASHED):
                raise TunesmithError(code.detail, hint="see what is missing with: tunesmith doctor")
            raise BadInput(
                f"the kernel does not compile:\n{code.detail}",
                where=self._problem.kernel.path,
                hint="mend the source, or the entry, flags and defines in problem.toml",
            )
        return code

    def _plan_original(self, case: Case) -> Plan:
        sizes = dict(case.sizes)
        code = self._build_original(sizes)
        plan = plan_launch(self._problem, self._original(sizes), sizes, self._device, code.resources)
        if isinstance(plan, Refused):
            raise BadInput(f"the kernel cannot be launched at {sizes}: {plan.reason}")
        return plan

    def _run_original(self, case: Case, plan: Plan) -> Run | Verdict:
        code = self._build_original(dict(case.sizes))
        deadline = policies.ORIGINAL_SECONDS + policies.data_seconds(plan.nbytes)
        run = self._runner.run(code, plan, draw_of(self._problem, case), deadline)
        if isinstance(run, Verdict) and run.status is Status.CRASHED:
            # Perhaps what an earlier kernel did to that process: only a fresh one can tell.
            self._runner.restart()
            run = self._runner.run(code, plan, draw_of(self._problem, case), deadline)
        return run

    def _timing_draw(self) -> Draw:
        return Draw("normal", seed_of(self._settings.seed, "timing"), self._problem.inputs)

    def _key(self, code: BuiltCode, plan: Plan, workload: Workload, policy: TimingPolicy) -> str:
        shape = repr((plan.sizes, plan.buffers, plan.scalars, plan.locals, plan.launches, workload.cache))
        return digest_of(code.code_digest, shape, self._device.key, repr(policy), repr(self._problem.inputs))

    def _outcome(
        self,
        trial: Trial,
        prepared: list[_Prepared],
        code: BuiltCode | None,
        results: list[Result],
        started: float,
    ) -> Outcome:
        return Outcome(
            trial,
            tuple(results),
            prepared[0].variant.digest if prepared else "",
            code.code_digest if code else "",
            code.resources if code else None,
            time.perf_counter() - started,
        )
