"""What can be said of a configuration by its build alone, and of all that were built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import CannotRun, Status, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, ToBuild, builds_of
from tunesmith.run.budget import is_concrete
from tunesmith.run.events import Surveyed
from tunesmith.run.outcome import Rehearsed, Result, median
from tunesmith.run.state import State
from tunesmith.space.params import Config
from tunesmith.text import counted, digest_of

# What is told of builds, by the names of `Resources`, and what people call it.
LABELS = {
    "registers": "registers",
    "shared": "static shared memory, bytes",
    "spills": "spilled, bytes",
    "private": "stack, bytes",
    "occupancy": "occupancy, %",
}


@dataclass(frozen=True)
class BuildJudgement:
    """What cannot run on the device by its limits alone; of what can, the least occupancy, and a digest of
    the launches."""

    refused: tuple[Result, ...]
    occupancy: int | None
    launches: str


def judge(problem: Problem, built: ToBuild, device: Device, resources: Resources | None) -> BuildJudgement:
    refused: list[Result] = []
    occupancies: list[int | None] = []
    launches: list[str] = []
    for workload in built.workloads:
        plan = plan_launch(problem, built.variant, workload.as_dict(), device, resources)
        if isinstance(plan, CannotRun):
            refused.append(Result(workload.name, plan.status, detail=plan.reason))
        else:
            occupancies += [launch.occupancy for launch in plan.launches]
            launches.append(repr((workload.name, plan.launches, plan.locals, plan.scalars)))
    known = [value for value in occupancies if value is not None]
    least = min(known) if known and len(known) == len(occupancies) else None
    return BuildJudgement(tuple(refused), least, digest_of(*launches))


def still_unable(
    problem: Problem,
    template_of: Callable[[Config], Template],
    surveyed: Sequence[Surveyed],
    device: Device,
    accidents: tuple[str, ...] = (),
) -> tuple[Config, ...]:
    """Those that cannot run on this device either: its limits may differ from those assumed before.

    Details that begin with one of `accidents` tell of the machine that built, and not of the source.
    """
    return tuple(
        found.config
        for found in surveyed
        if found.config is not None
        and found.unable
        and not any(result.detail.startswith(accidents) for result in found.refused)
        and _again(problem, template_of(found.config), found, device) == [r.status for r in found.refused]
    )


def _again(problem: Problem, template: Template, found: Surveyed, device: Device) -> list[Status]:
    known = {build.source_digest: build for build in found.builds}
    statuses: list[Status] = []
    for built in builds_of(problem, template, found.config):
        before = known.get(built.variant.digest)
        if before is None:
            return []  # another version of Tunesmith renders it differently
        if before.code_digest:
            statuses += [r.status for r in judge(problem, built, device, before.resources).refused]
        else:
            statuses += [Status.BUILD_FAILED] * len(built.workloads)
    return statuses


# -- all of them ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Span:
    original: int | None
    least: int
    median: float
    most: int


@dataclass(frozen=True)
class Spilling:
    config: dict[str, int]
    spills: int


@dataclass(frozen=True)
class SurveyReport:
    """What compilers say of configurations on a machine without the device."""

    planned: int  # configurations to be looked at
    statuses: dict[str, int]  # those looked at: ok can run, as far as a build tells
    spans: dict[str, Span]  # over those that can run
    spilling: tuple[Spilling, ...]  # the worst first
    rehearsed: tuple[str, ...] = ()  # what the host's processor says of kernels, in words


def survey_report(state: State) -> SurveyReport:
    found = [s for s in state.surveyed if s.config is not None]
    own = [s for s in state.surveyed if s.config is None]
    counts = Counter(s.status for s in found)
    runnable = [s for s in found if not s.unable]
    spilling = [Spilling(s.config.as_dict(), n) for s in runnable if s.config and (n := s.most("spills"))]
    return SurveyReport(
        planned=planned(state),
        statuses={status.value: counts[status] for status in Status if counts[status]},
        spans={name: span for name in LABELS if (span := _span(name, own, runnable))},
        spilling=tuple(sorted(spilling, key=lambda s: -s.spills)),
        rehearsed=_rehearsed_words(state),
    )


def _rehearsed_words(state: State) -> tuple[str, ...]:
    """Of the original and of each template's first configuration; of its gate, and what was wrong there."""
    words: list[str] = []
    by_candidate: dict[str | None, list[Rehearsed]] = {}
    for one in state.rehearsed:
        by_candidate.setdefault(None if one.config is None else one.config.candidate, []).append(one)
    for done in by_candidate.values():
        words += [one.sentence for n, one in enumerate(done) if n == 0 or one.status is not Status.OK]
        words += [said] if (said := gate_sentence(done)) else []
    return tuple(words)


def gate_sentence(done: Sequence[Rehearsed]) -> str:
    """What was tried of one draft, in words; empty where its first configuration says all."""
    left = done[-1].left if done and done[0].status is Status.OK else 0
    if len(done) < 2 and not left:
        return ""
    wrong = sum(one.convicts for one in done)
    open_ = sum(not one.convicts and one.status is not Status.OK for one in done)
    parts = [f"{wrong} wrong"] * bool(wrong) + [f"{open_} not checked"] * bool(open_)
    right = f"{len(done) - wrong - open_} of {counted(len(done), 'configuration')} right"
    named = done[-1].config.candidate if done[-1].config is not None else ""
    words = f"the gate{f' of {named}' if named else ''} on {done[-1].device}: {right}"
    words += f", {', '.join(parts)}" if parts else ""
    if left:
        spent = sum(one.seconds for one in done)
        words += f"; its time was up after {spent:.0f} s, {left} were not tried"
    return words if wrong else f"{words}; not timed, and to be passed again on a GPU"


def planned(state: State) -> int:
    """How many configurations a survey looks at: the feasible ones, as far as the budget goes."""
    evals = state.started.settings.evals if state.started else None
    if state.admitted is None and any(c.drafted for c in state.candidates):
        if is_concrete(state):
            return 1
        return evals or 0  # what a draft has nobody counts before it has passed the gate
    feasible = state.admitted.feasible if state.admitted else 0
    return feasible if evals is None else min(feasible, evals)


def _span(name: str, own: Sequence[Surveyed], found: Sequence[Surveyed]) -> Span | None:
    values = [value for s in found if (value := s.most(name)) is not None]
    if not values:
        return None
    return Span(own[0].most(name) if own else None, min(values), median(values), max(values))
