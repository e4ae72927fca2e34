"""Reports of one problem, workload by workload: is what a later run delivers as fast as the first?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.errors import BadInput
from tunesmith.run.chain import is_broken
from tunesmith.run.figures import Figure, mean_figure
from tunesmith.run.report import Report, WorkloadReport
from tunesmith.run.store import DAMAGED
from tunesmith.text import counted, named_values

DRIFTED = 1.05  # an original whose times differ by more is told of
DRIFT = 1.1  # allowed for where nothing but times of two runs can be compared


@dataclass(frozen=True)
class WorkloadDifference:
    """`ratio` is the speed-up after over the one before, each over the original in the same sittings: below 1
    what is delivered got slower. Times of two runs say nothing: a machine drifts, and takes both sides along.
    Where the originals are not the same there is nothing else, so they are compared, drift allowed for."""

    name: str
    sizes: dict[str, int]
    weight: float
    ratio: float
    before_us: float
    after_us: float
    before_speedup: float
    after_speedup: float
    before_interval: tuple[float, float]  # of the speed-up
    after_interval: tuple[float, float]
    before_config: dict[str, int] | None  # None: the original stays
    after_config: dict[str, int] | None
    interval: tuple[float, float] = (0.0, math.inf)  # of the ratio: below 1 if those of the speed-ups exclude
    before_original_us: float = 0.0  # what the original took in the same sittings
    after_original_us: float = 0.0
    certified: bool = True  # on both sides

    @property
    def is_clear(self) -> bool:
        """Whether the intervals of the two speed-ups exclude each other."""
        return self.certified and not self.interval[0] <= 1 <= self.interval[1]

    @property
    def moved(self) -> str:
        """Which side is not as it was, in words; empty: none is, or nobody knows."""
        if not self.before_original_us or not self.after_original_us:
            return ""
        own, other = self.after_us / self.before_us, self.after_original_us / self.before_original_us
        was = f"from {self.before_original_us:.1f} to {self.after_original_us:.1f} µs"
        if not self.is_clear and abs(math.log(other)) > math.log(DRIFTED):
            side = "slower" if other > 1 else "faster"
            return f"the original was {side}, {was}, and the tuned kernel with it: the ratio is the same"
        if not self.is_clear:
            return ""
        if abs(math.log(own)) >= abs(math.log(other)):
            return f"the tuned kernel moved, from {self.before_us:.1f} to {self.after_us:.1f} µs"
        return f"the original moved, {was}, and the tuned kernel did not move with it"


@dataclass(frozen=True)
class ComparedRun:
    """What a run was made with, and what it came to."""

    name: str
    device: str
    driver: str
    compiler: str
    tunesmith: str  # its version
    strategy: str
    authors: str  # models, or the expert
    search: str
    seed: int
    evaluations: int
    seconds: float
    geometric_mean: float | None  # of its verified speed-ups
    headline: str = ""  # that in words

    @classmethod
    def of(cls, report: Report, name: str) -> ComparedRun:
        return cls(
            name,
            report.device,
            report.driver,
            report.compiler,
            report.versions.get("tunesmith", ""),
            report.strategy,
            report.models or ("the expert" if report.rounds else "given"),
            report.search,
            report.seed,
            sum(report.evaluations.values()),
            report.seconds,
            report.geometric_mean,
            report.figure.words if report.figure is not None else "",
        )


@dataclass(frozen=True)
class RunDifference:
    """The first run against the second; `others` has the first against each further one."""

    problem: str
    before: str  # what the runs are called
    after: str
    judged_by: str  # time or speed-up
    ratio: float  # the weighted geometric mean
    workloads: tuple[WorkloadDifference, ...]
    notes: tuple[str, ...] = ()
    version: int = 1
    runs: tuple[ComparedRun, ...] = ()  # all of them, the first first
    others: tuple[RunDifference, ...] = ()
    interval: tuple[float, float] = (0.0, math.inf)  # of the mean

    @property
    def pairs(self) -> tuple[RunDifference, ...]:
        """Each run against the first."""
        return (replace(self, others=()), *self.others)

    @property
    def worst(self) -> WorkloadDifference:
        return min(self.workloads, key=lambda w: w.ratio)

    def below(self, threshold: float) -> tuple[WorkloadDifference, ...]:
        """The workloads whose ratio is less than this, with all of its interval."""
        return tuple(w for w in self.workloads if w.certified and w.interval[1] < threshold)

    def unclear(self, threshold: float) -> tuple[WorkloadDifference, ...]:
        """Those of which nobody can tell: the ratio is less, not all of its interval is."""
        below = self.below(threshold)
        return tuple(w for w in self.workloads if w.ratio < threshold and w not in below)


def differences(reports: Sequence[tuple[Report, str]]) -> RunDifference:
    """Two or more, each with its name; BadInput where one cannot be compared with the first."""
    (first, name), *rest = reports
    pairs = [difference(first, other, name, called) for other, called in rest]
    runs = tuple(ComparedRun.of(report, called) for report, called in reports)
    return replace(pairs[0], runs=runs, others=tuple(pairs[1:]))


def difference(before: Report, after: Report, before_name: str, after_name: str) -> RunDifference:
    """BadInput where the two cannot be compared."""
    for report, name in ((before, before_name), (after, after_name)):
        if is_broken(report.unproven):
            raise BadInput(f"this run is not verified: {report.unproven}", where=name, hint=DAMAGED)
        if not report.finished or not report.workloads:
            hint = f"finish it first: tunesmith resume {name}"
            raise BadInput("this run is not finished, so it has no winners", where=name, hint=hint)
    hint = "name two runs of the same problem"
    if before.problem != after.problem:
        fault = f"two problems cannot be compared: {before.problem} in {before_name}, {after.problem} here"
        raise BadInput(fault, where=after_name, hint=hint)
    old = {w.name: w for w in before.workloads}
    new = {w.name: w for w in after.workloads}
    changed = [n for n in old if n in new and (old[n].sizes, old[n].weight) != (new[n].sizes, new[n].weight)]
    if resized := [name for name in changed if old[name].sizes != new[name].sizes]:
        was, now = (named_values(side[resized[0]].sizes) for side in (old, new))
        fault = f"the workload {resized[0]} is not the same in both: {was} in {before_name}, {now} here"
        raise BadInput(fault, where=after_name, hint=hint)
    shared = [name for name in old if name in new]
    if not shared:
        both = f"{', '.join(old)} in {before_name}, {', '.join(new)} here"
        raise BadInput(f"the two have no workload in common: {both}", where=after_name, hint=hint)
    same_device = (before.backend, before.device) == (after.backend, after.device)
    by_time = same_device and not _same_original(before, after)
    rows = tuple(compared_workload(old[name], new[name], by_time) for name in shared)
    mean = mean_figure([Figure(row.ratio, *row.interval) for row in rows], [row.weight for row in rows])
    notes = _notes(before, after, old, new, same_device)
    notes += [f"the weight of {name} is not the same in both; the second run's counts" for name in changed]
    judged_by = "time" if by_time else "speed-up"
    interval = mean.low, mean.high
    parts = (judged_by, mean.value, rows, tuple(notes))
    return RunDifference(before.problem, before_name, after_name, *parts, interval=interval)


def _same_original(before: Report, after: Report) -> bool:
    return before.digests.get("original source") == after.digests.get("original source")


def compared_workload(old: WorkloadReport, new: WorkloadReport, by_time: bool = False) -> WorkloadDifference:
    ratio = new.speedup / old.speedup
    low = _over(new.interval[0], old.interval[1])
    high = _over(new.interval[1], old.interval[0])
    if by_time:
        shift = old.tuned_us / new.tuned_us / ratio
        ratio, low, high = ratio * shift, low * shift / DRIFT, high * shift * DRIFT
    return WorkloadDifference(
        name=new.name,
        sizes=new.sizes,
        weight=new.weight,
        ratio=ratio,
        before_us=old.tuned_us,
        after_us=new.tuned_us,
        before_speedup=old.speedup,
        after_speedup=new.speedup,
        before_interval=old.interval,
        after_interval=new.interval,
        before_config=old.config,
        after_config=new.config,
        interval=(low, high),
        before_original_us=0.0 if by_time else old.baseline_us,
        after_original_us=new.baseline_us,
        certified=not old.doubt and not new.doubt,
    )


def _over(one: float, other: float) -> float:
    return one / other if other > 0 else math.inf


def _notes(
    before: Report,
    after: Report,
    old: Mapping[str, WorkloadReport],
    new: Mapping[str, WorkloadReport],
    same_device: bool,
) -> list[str]:
    notes = []
    if not same_device:
        notes.append(f"the devices are {before.device} and {after.device}")
    elif before.driver != after.driver:
        notes.append(f"the driver changed from {before.driver} to {after.driver}")
    if before.compiler != after.compiler:
        notes.append(f"the compiler changed from {before.compiler or 'none'} to {after.compiler or 'none'}")
    if not _same_original(before, after):
        what = f"times are compared, and {DRIFT - 1:.0%} either way may be the machine's drift"
        notes.append(
            f"the original kernel is not the same in both: {what if same_device else 'speed-ups say little'}"
        )
    doubts = {w.name: w.doubt for w in (*old.values(), *new.values()) if w.doubt}
    notes += [f"{name} is not certified in both runs: {doubt}" for name, doubt in doubts.items()]
    notes += [f"the first run was {before.unproven}"] if before.unproven else []
    notes += [f"the second run was {after.unproven}"] if after.unproven else []
    alone = [*(n for n in old if n not in new), *(n for n in new if n not in old)]
    if alone:
        notes.append(f"{counted(len(alone), 'workload')} of one run alone: {', '.join(alone)}")
    return notes
