"""Reports of one problem, workload by workload: is what a later run delivers as fast as the first?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.errors import BadInput
from tunesmith.run.chain import is_broken
from tunesmith.run.report import Report, WorkloadReport
from tunesmith.run.store import DAMAGED
from tunesmith.text import counted, named_values


@dataclass(frozen=True)
class WorkloadDifference:
    """Times are those of the winners. `ratio` is the time before over the time after: below 1 it got slower.
    Where the devices differ, times say nothing, and it is that of the speed-ups."""

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

    @property
    def is_clear(self) -> bool:
        """Whether the intervals of the two speed-ups lie apart."""
        (low, high), (other_low, other_high) = self.before_interval, self.after_interval
        return high < other_low or other_high < low


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

    @property
    def pairs(self) -> tuple[RunDifference, ...]:
        """Each run against the first."""
        return (replace(self, others=()), *self.others)

    @property
    def worst(self) -> WorkloadDifference:
        return min(self.workloads, key=lambda w: w.ratio)

    def below(self, threshold: float) -> tuple[WorkloadDifference, ...]:
        """The workloads whose ratio is less than this."""
        return tuple(w for w in self.workloads if w.ratio < threshold)


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
    by_time = (before.backend, before.device) == (after.backend, after.device)
    rows = tuple(_pair(old[name], new[name], by_time) for name in shared)
    total = sum(row.weight for row in rows)
    mean = math.exp(sum(row.weight * math.log(row.ratio) for row in rows) / total)
    notes = _notes(before, after, old, new, by_time)
    notes += [f"the weight of {name} is not the same in both; the second run's counts" for name in changed]
    judged_by = "time" if by_time else "speed-up"
    return RunDifference(before.problem, before_name, after_name, judged_by, mean, rows, tuple(notes))


def _pair(old: WorkloadReport, new: WorkloadReport, by_time: bool) -> WorkloadDifference:
    ratio = old.tuned_us / new.tuned_us if by_time else new.speedup / old.speedup
    times, speedups = (old.tuned_us, new.tuned_us), (old.speedup, new.speedup)
    intervals, configs = (old.interval, new.interval), (old.config, new.config)
    figures = ratio, *times, *speedups
    return WorkloadDifference(new.name, new.sizes, new.weight, *figures, *intervals, *configs)


def _notes(
    before: Report,
    after: Report,
    old: Mapping[str, WorkloadReport],
    new: Mapping[str, WorkloadReport],
    by_time: bool,
) -> list[str]:
    notes = []
    if not by_time:
        devices = f"{before.device} and {after.device}"
        notes.append(f"the devices are {devices}: speed-ups are compared, since times cannot be")
    elif before.driver != after.driver:
        notes.append(f"the driver changed from {before.driver} to {after.driver}")
    if before.compiler != after.compiler:
        notes.append(f"the compiler changed from {before.compiler or 'none'} to {after.compiler or 'none'}")
    if before.digests.get("original source") != after.digests.get("original source"):
        notes.append("the original kernel is not the same in both: compare times, not speed-ups")
    notes += [f"the first run was {before.unproven}"] if before.unproven else []
    notes += [f"the second run was {after.unproven}"] if after.unproven else []
    alone = [*(n for n in old if n not in new), *(n for n in new if n not in old)]
    if alone:
        notes.append(f"{counted(len(alone), 'workload')} of one run alone: {', '.join(alone)}")
    return notes
