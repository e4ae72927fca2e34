"""How long to measure, as one table, so that two figures under the same policy can be compared; the original
in the lab; and times: its own, a candidate's alone, and in alternation for finalists.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tunesmith.backends.messages import Draw, Timed, TimingPolicy
from tunesmith.base.errors import BadInput, KernelWrong, TunesmithError
from tunesmith.base.text import digest_of, seed_of
from tunesmith.lab import validate_timing
from tunesmith.lab.build import Builders, BuiltCode
from tunesmith.lab.disturbance import RETAKEN
from tunesmith.lab.memory import Verdict
from tunesmith.lab.runner import Race, RaceRun, Runner
from tunesmith.lab.validate_timing import DRAWS, SampleJudge, TimingValidator, split_policy, times_vary
from tunesmith.problem.cases import Case
from tunesmith.problem.device import Device
from tunesmith.problem.plan import (
    CannotRun,
    Plan,
    Status,
    least_seconds,
    necessary_traffic,
    plan_launch,
    show_sizes,
)
from tunesmith.problem.problem import Problem, Workload
from tunesmith.problem.template import Variant, original_variant
from tunesmith.problem.vetting.device_words import keeps_in_cache
from tunesmith.run.outcome import Outcome, Result, Timing
from tunesmith.run.ports import ResultCache


@dataclass(frozen=True)
class Policies:
    baseline: TimingPolicy
    short: TimingPolicy
    long: TimingPolicy
    verify: TimingPolicy


# Noisy: chains long enough to span several slices of a scheduler.
_QUEUED = Policies(
    baseline=TimingPolicy(rounds=9, min_rounds=5, chain_seconds=0.02, max_seconds=1.5),
    short=TimingPolicy(rounds=5, min_rounds=3, chain_seconds=0.01, max_seconds=0.4),
    long=TimingPolicy(rounds=17, min_rounds=9, chain_seconds=0.015, max_seconds=1.2, looks=2, whole=True),
    verify=TimingPolicy(rounds=25, min_rounds=11, chain_seconds=0.02, max_seconds=2.0, looks=8, whole=True),
)
# Replayed by the device alone: samples agree within a per cent when they take a millisecond.
_RECORDED = Policies(
    baseline=TimingPolicy(rounds=15, min_rounds=7, chain_seconds=0.003, max_seconds=1.0),
    short=TimingPolicy(rounds=6, min_rounds=4, chain_seconds=0.0006, max_seconds=0.1),
    long=TimingPolicy(rounds=25, min_rounds=11, chain_seconds=0.0015, max_seconds=0.5, looks=4, whole=True),
    verify=TimingPolicy(rounds=31, min_rounds=15, chain_seconds=0.002, max_seconds=0.8, looks=12, whole=True),
)


def policies_of(device: Device) -> Policies:
    return _RECORDED if device.inspects else _QUEUED


def give_up(original: float, best: float | None, device: Device) -> float:
    """How slow a launch may be to be worth more than a look, by the original and the best one so far."""
    factor = OUT_OF_RACE if device.inspects else OUT_OF_NOISY_RACE
    return min(GIVE_UP_FACTOR * original, factor * (original if best is None else best))


UNTIMED_SECONDS = 20.0
ORIGINAL_SECONDS = 20.0  # for one case of the original, whose speed is not known yet
DATA_RATE = 50e6  # bytes per second a worker draws, digests, copies, sends and judges at the very least
LAYOUT_RATE = 500e6  # at which a device that fills its memory by itself lays out what is timed
INPUT_SECONDS = 60.0  # for the user's function that makes inputs, where nobody has seen it at work yet
LONG_ROTATION = 16.0  # caches, where a kernel may ask one to keep data: all but a sixteenth is cold
GIVE_UP_FACTOR = 5.0  # a launch this many times slower than the original is looked at once
OUT_OF_RACE = 1.4  # so is one this many times slower than the best seen, where samples agree within per cents
OUT_OF_NOISY_RACE = 3.0


def data_seconds(plan: Plan) -> float:
    """What handling a case's arrays may take, whatever the kernel does. Also where the device judges: what it
    does not find right at once, which may be right all the same, is read back and judged by the host."""
    return plan.nbytes / DATA_RATE


def original_deadline(plan: Plan) -> float:
    return ORIGINAL_SECONDS + data_seconds(plan)


def case_deadline(original_seconds: float, device: Device, build_seconds: float, plan: Plan) -> float:
    """What a candidate may take for one case: its launches, and everything around them."""
    return launch_deadline(original_seconds, device, build_seconds) + data_seconds(plan)


def launch_deadline(original_seconds: float, device: Device, build_seconds: float) -> float:
    """What a candidate may take for one launch: 100 × the original, a second at least, and more where nothing
    is timed: there threads are switched by the thousand, on a host that others use too. Drivers that finish
    compiling at the first launch get time for that as well, in proportion to the build."""
    allowance = 2.0 + 5.0 * build_seconds if device.finishes_compiling_at_launch else 0.0
    return max(UNTIMED_SECONDS if device.untimed else 1.0, 100.0 * original_seconds) + allowance


def timing_deadline(
    original_seconds: float, device: Device, build_seconds: float, policy: TimingPolicy, contenders: int
) -> float:
    one = launch_deadline(original_seconds, device, build_seconds)
    return 2 * one + contenders * 4 * policy.max_seconds + _layout_seconds(device, 0)


def baseline_deadline(device: Device, nbytes: int) -> float:
    """For an original of unknown speed, of which two launches within ORIGINAL_SECONDS have been seen."""
    launches = 2 + policies_of(device).baseline.min_rounds
    return launches * ORIGINAL_SECONDS / 2 + _layout_seconds(device, nbytes)


def _layout_seconds(device: Device, nbytes: int) -> float:
    """The first request of a workload lays out its data."""
    rate = LAYOUT_RATE if device.inspects else DATA_RATE
    return (2.0 if device.inspects else 5.0) + (nbytes + 3 * device.limits.llc) / rate


def combined_deadline(deadlines: Iterable[float], once: float = 1.0) -> float:
    """For several in one request: each has so many seconds at the least, all together need them but once."""
    return once + sum(deadline - once for deadline in deadlines)


# What they are: `problem/inputs`.
WIDE = (
    "Inputs called wide have sizes from 1e-3 to 1e3 and both signs; where callers' are tamer, say "
    'values = "normal" or a range for that argument'
)

QUIET_SECONDS, PATIENCE = 15.0, 60.0  # that one timing, and all of a run, wait for a quiet device
PATIENCE_SHARE = 0.1  # of the time that a run has, at most
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 2.0
PLANS = 4096  # that are kept
METHOD = 7  # counts changes of how times are taken, so that none is compared with an earlier one's


@dataclass
class LaunchPlans:
    """How kernels are launched at sizes. Planned once each: ahead of time where there is time."""

    _problem: Problem
    _device: Device
    _known: OrderedDict[tuple[object, ...], Plan | CannotRun] = field(default_factory=OrderedDict)

    def plan(self, variant: Variant, sizes: Mapping[str, int], code: BuiltCode) -> Plan | CannotRun:
        key = (variant.digest, variant.config, code.code_digest, tuple(sorted(sizes.items())))
        found = self._known.get(key)
        if found is None:
            found = plan_launch(self._problem, variant, dict(sizes), self._device, code.resources)
            self._known[key] = found
            while len(self._known) > PLANS:
                self._known.popitem(last=False)
        return found


@dataclass
class Original:
    """The original kernel in the lab: built and planned as it is."""

    _problem: Problem
    _builders: Builders
    _plans: LaunchPlans

    def planned(self, sizes: dict[str, int]) -> tuple[BuiltCode, Plan | CannotRun]:
        variant = original_variant(self._problem, sizes)
        hint = "mend the source, or the entry, flags and defines in problem.toml"
        code = self._builders.build(variant, "the kernel", hint)
        return code, self._plans.plan(variant, sizes, code)

    def plan(self, case: Case) -> tuple[BuiltCode, Plan]:
        code, plan = self.planned(dict(case.sizes))
        if isinstance(plan, CannotRun):
            words = f"the kernel cannot be launched at {show_sizes(dict(case.sizes))}: {plan.reason}"
            hint = "narrow the contract in problem.toml to what the kernel can do on this device"
            raise BadInput(words, hint=hint)
        return code, plan


def original_failed(problem: Problem, verdict: Verdict, where: Case | Workload) -> TunesmithError:
    sizes = show_sizes(dict(where.sizes))
    by_value = isinstance(where, Case) and verdict.status in (Status.WRONG, Status.UNSTABLE)
    inputs = f" (inputs: {where.distribution})" if by_value and isinstance(where, Case) else ""
    detail = f"at {sizes}: {verdict.detail}{inputs}"
    if verdict.status in (Status.OVER_LIMITS, Status.INFEASIBLE):
        return BadInput(f"the kernel cannot run here {detail}", hint="choose smaller sizes or another device")
    what = {
        Status.CRASHED: "crashes",
        Status.TIMED_OUT: "does not finish",
        Status.UNSTABLE: "is not deterministic",
    }.get(verdict.status, "is wrong already")
    hint = "mend the kernel, or what problem.toml promises: contract, reference, rtol and atol, values"
    if verdict.status is Status.UNSTABLE:
        hint = "find the race; if run-to-run differences are meant, say deterministic = false in [accuracy]"
    elif by_value and isinstance(where, Case) and where.distribution == "wide":
        hint += f". {WIDE}"
    return KernelWrong(f"the kernel {what} {detail}", hint=hint, where=problem.kernel.path)


@dataclass(frozen=True)
class Ready:
    """A kernel that may be timed at a workload."""

    workload: Workload
    code: BuiltCode
    plan: Plan


@dataclass
class TrialTimer:
    _problem: Problem
    _device: Device
    _runner: Runner
    _original: Original
    _looks: SampleJudge
    _seed: int
    _cache: ResultCache | None
    _run_seconds: float | None = None  # that the run has for its search

    def __post_init__(self) -> None:
        self._policies = policies_of(self._device)
        self._original_seconds: dict[str, float] = {}
        self._best: dict[str, float] = {}  # seconds by workload, of all candidates timed by themselves
        self._timed: dict[str, Timing] = {}  # equal binary and launch are timed once
        self._took: dict[str, float] = {}  # seconds of the original's first timing, all its inputs made anew
        # Seconds that this run still waits for a quiet device.
        self._patience = min(PATIENCE, PATIENCE_SHARE * (self._run_seconds or math.inf))
        layout_seconds = partial(_layout_seconds, self._device)
        self._believer = TimingValidator(self._runner, self._looks, layout_seconds, DATA_RATE)

    def remember(self, outcome: Outcome) -> None:
        """Facts from the journal: what the original takes, and what has been timed already."""
        for result in outcome.results:
            if result.timing is None:
                continue
            if outcome.trial.config is None:
                self._original_seconds.setdefault(result.workload, result.timing.seconds)
            elif outcome.trial.purpose == "search":
                self._timed[result.key] = result.timing
                best = self._best.get(result.workload, result.timing.seconds)
                self._best[result.workload] = min(best, result.timing.seconds)

    def estimate_original(self, sizes: Mapping[str, int]) -> float:
        """Seconds of the original, by the workload that is nearest in volume; generous, for deadlines."""
        volume = math.prod(map(float, sizes.values()))
        known = {
            math.prod(map(float, w.as_dict().values())): self._original_seconds[w.name]
            for w in self._problem.workloads
            if w.name in self._original_seconds
        }
        if not known:
            return 1.0
        near = min(known, key=lambda other: abs(other - volume))
        return known[near] * max(1.0, volume / near)

    def expect(self, workload: Workload, seconds: float) -> None:
        """What the original may take at a workload that is not one of the problem's."""
        self._original_seconds.setdefault(workload.name, seconds)

    def baseline(self, progress: Callable[[str], None]) -> tuple[BuiltCode, list[Result]]:
        """The original at every workload; anything but a time ends the run."""
        results: list[Result] = []
        code: BuiltCode | None = None
        for workload in self._problem.workloads:
            progress(f"timing the original at {workload.name}")
            code, result = self._of_original(workload)
            results.append(result)
        assert code is not None, "a problem has at least one workload"
        return code, results

    def _of_original(self, workload: Workload) -> tuple[BuiltCode, Result]:
        original, policy = self._own(workload), self._policies.baseline
        if isinstance(original, CannotRun):
            raise BadInput(f"workload {workload.name} cannot run on this device: {original.reason}")
        deadline = baseline_deadline(self._device, original.plan.nbytes)
        deadline += self._input_creation_seconds(workload)
        started = time.perf_counter()
        run = self._runner.time(self._plan_race([original], policy), deadline)
        self._took[workload.name] = time.perf_counter() - started
        if isinstance(run, Verdict):
            raise original_failed(self._problem, run, workload)
        timing = Timing(run.timed.samples[0], discarded=run.timed.discarded)
        return original.code, Result(workload.name, Status.OK, timing, key=self._key(original, policy))

    def _cached_original_time(self, workload: Workload) -> float:
        """Seconds of the original; where nobody has timed it yet, it is timed now."""
        if workload.name not in self._original_seconds:
            _, result = self._of_original(workload)
            assert result.timing is not None
            self._original_seconds[workload.name] = result.timing.seconds
        return self._original_seconds[workload.name]

    def alone(self, items: Sequence[Ready], is_candidate: bool) -> list[Result]:
        """Each by itself. What was timed before, here or in an earlier run, is not timed again."""
        found: dict[str, Result] = {}
        left: list[Ready] = []
        for item in items:
            key = self._key(item, self._policies.short)
            timing = self._known(key) if is_candidate else None
            if timing is None:
                left.append(item)
            else:
                found[item.workload.name] = self._credible_result(item.workload, timing, key)
        for item, result in zip(left, self._time_each(left), strict=True):
            found[item.workload.name] = result
            # One look at the hopeless is no measurement to save.
            enough = result.timing and len(result.timing.samples) >= self._policies.short.min_rounds
            if self._cache is not None and is_candidate and result.timing and enough:
                self._cache.put(result.key, result.timing)
        return [found[item.workload.name] for item in items]

    def against_original(
        self, item: Ready, policy: TimingPolicy, fresh: int | None = None, waits: bool = True
    ) -> Result:
        """In alternation with the original. With the seed of `fresh` data nobody else ran in that process.
        Where time may depend on the data its rounds are dealt out to several draws of it. Where others
        disturb it, it is taken again when it `waits` for a quiet device."""
        original = self._own(item.workload)
        if isinstance(original, CannotRun):
            detail = "the original no longer fits the device"
            return Result(item.workload.name, Status.OVER_LIMITS, detail=detail)
        parts: list[Timed] = []
        for number, share in enumerate(split_policy(policy, DRAWS if times_vary(self._problem) else 1)):
            race = self._plan_race([original, item], share, original, fresh, number)
            timed = self._timed_quietly(item, race, share, fresh is not None, waits)
            if isinstance(timed, Verdict):
                return Result(item.workload.name, timed.status, detail=timed.detail)
            parts.append(timed)
        whole, draws = validate_timing.merge_timed(parts), tuple(len(part.samples[0]) for part in parts)
        theirs, ours = whole.samples
        about = (whole.discarded, whole.clocks, whole.disturbed, whole.disturbance)
        timing = Timing(ours, theirs, False, *about, draws)
        return self._credible_result(item.workload, timing, self._key(item, policy))

    def _timed_quietly(
        self, item: Ready, race: Race, policy: TimingPolicy, is_last: bool, waits: bool
    ) -> Timed | Verdict:
        """Again and again until nobody disturbs it, for a while. Each time it is judged as ever."""
        pause, left = FIRST_PAUSE, min(QUIET_SECONDS, self._patience) if waits else 0.0
        loud: tuple[float, float] | None = None  # since when it waits, and for how long it had waited then
        while True:
            deadline = self._trial_deadline(item, policy, 2)
            run = self._runner.time(race, deadline)
            if isinstance(run, RaceRun) and run.timed.left_over:
                return Verdict(Status.WRONG, run.timed.left_over)
            timed = self._believer.believed(item.workload, item.plan, race, run, deadline, is_last)
            if loud is not None:
                self._runner.waited = loud[1] + time.monotonic() - loud[0]
            again = pause + RETAKEN * policy.max_seconds  # at most
            if isinstance(timed, Verdict) or not timed.disturbance or again > left:
                return timed
            self._runner.note(f"waiting for a quiet device: {timed.disturbance}")
            loud = loud or (time.monotonic(), self._runner.waited)
            time.sleep(pause)
            left -= again
            self._patience -= again
            pause = min(2 * pause, LONGEST_PAUSE)

    def _time_each(self, items: Sequence[Ready]) -> Iterator[Result]:
        """In one request where the device allows it, which saves most of what they cost; where that fails,
        and elsewhere, one by one."""
        originals = [self._own(item.workload) for item in items]
        races = [
            self._plan_race([item], self._short(item), original if isinstance(original, Ready) else None)
            for item, original in zip(items, originals, strict=True)
        ]
        deadlines = [self._trial_deadline(item, self._policies.short, 1) for item in items]
        timed: list[RaceRun] | Verdict | None = None
        if self._device.inspects and len(items) > 1:
            # Their data is laid out at most once each, usually long ago.
            layout = _layout_seconds(self._device, 0)
            timed = self._runner.time_all(races, combined_deadline(deadlines, layout))
        for number, (item, race) in enumerate(zip(items, races, strict=True)):
            deadline, workload = deadlines[number], item.workload
            run = timed[number] if isinstance(timed, list) else self._runner.time(race, deadline)
            one = self._believer.believed(workload, item.plan, race, run, deadline, is_last=False)
            if isinstance(one, Verdict):
                yield Result(workload.name, one.status, detail=one.detail)
            else:
                timing = Timing(one.samples[0], discarded=one.discarded)
                yield self._credible_result(workload, timing, self._key(item, self._policies.short))

    def _short(self, item: Ready) -> TimingPolicy:
        name = item.workload.name
        limit = give_up(self._cached_original_time(item.workload), self._best.get(name), self._device)
        return replace(self._policies.short, give_up=limit)

    def _trial_deadline(self, item: Ready, policy: TimingPolicy, contenders: int) -> float:
        usual = self._cached_original_time(item.workload)
        timing = timing_deadline(usual, self._device, item.code.seconds, policy, contenders)
        sending = self._believer.sending_seconds(item.plan, policy)
        return timing + self._input_creation_seconds(item.workload) + sending

    def _input_creation_seconds(self, workload: Workload) -> float:
        """What the user's function may take to make the inputs, for a worker that has none yet."""
        if self._problem.inputs is None:
            return 0.0
        return 2 * self._took.get(workload.name, INPUT_SECONDS / 2)

    def _own(self, workload: Workload) -> Ready | CannotRun:
        code, plan = self._original.planned(workload.as_dict())
        return plan if isinstance(plan, CannotRun) else Ready(workload, code, plan)

    def _plan_race(
        self,
        items: Sequence[Ready],
        policy: TimingPolicy,
        original: Ready | None = None,
        fresh: int | None = None,
        number: int = 0,
    ) -> Race:
        seed = seed_of(self._seed if fresh is None else fresh, "timing", *([number] if number else []))
        draw = Draw("normal", seed, self._problem.inputs)
        warm = items[0].workload.cache == "warm"
        judged_by = (original.code, original.plan) if original else None
        policy = _cold_enough(policy, items)
        return Race(tuple((item.code, item.plan) for item in items), draw, policy, warm, original=judged_by)

    def _known(self, key: str) -> Timing | None:
        timing = self._timed.get(key)
        if timing is None and self._cache is not None:
            timing = self._cache.get(key)
            timing = replace(timing, cached=True) if timing else None
        return timing

    def _credible_result(self, workload: Workload, timing: Timing, key: str) -> Result:
        least = least_seconds(self._problem, workload.as_dict(), self._device.limits)
        original = self._original_seconds.get(workload.name)
        # An original that is faster has shown that not all of its arrays move.
        holds = original is None or original >= least
        if workload.cache == "cold" and holds and timing.seconds < least:
            traffic = necessary_traffic(self._problem, workload.as_dict())
            detail = f"{timing.seconds * 1e6:.3g} µs for {traffic} bytes is faster than the device's pins"
            return Result(workload.name, Status.SUSPECT, detail=detail)
        return Result(workload.name, Status.OK, timing, key=key)

    def _key(self, item: Ready, policy: TimingPolicy) -> str:
        plan = item.plan
        launch = (plan.sizes, plan.buffers, plan.scalars, plan.locals, plan.aliases, plan.launches)
        how = (_cold_enough(policy, [item]), item.workload.cache, METHOD)
        parts = (item.code.code_digest, repr(launch), self._device.key, repr(how))
        return digest_of(*parts, repr(self._problem.inputs))


def _cold_enough(policy: TimingPolicy, items: Sequence[Ready]) -> TimingPolicy:
    keeps = any(keeps_in_cache(item.code.unit.source) for item in items)
    return replace(policy, rotation=LONG_ROTATION) if keeps else policy
