"""What can be said of a configuration by its build alone, and of all that were built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tunesmith.core.device import Device, Resources
from tunesmith.core.digest import digest_of
from tunesmith.core.events import Surveyed
from tunesmith.core.outcome import Result, Status
from tunesmith.core.plan import CannotRun, plan_launch
from tunesmith.core.problem import Problem
from tunesmith.core.space import Config
from tunesmith.core.state import State
from tunesmith.core.stats import median
from tunesmith.core.strategy import is_concrete
from tunesmith.core.template import Template, ToBuild, builds_of

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


def features(found: Surveyed) -> tuple[float, ...]:
    """What the compiler says, as numbers for a model: over all builds the most of each."""
    known = [most(found, name) for name in ("registers", "spills", "shared", "private")]
    occupancy = most(found, "occupancy")
    return (*(float(value or 0) for value in known), -1.0 if occupancy is None else float(occupancy))


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


def survey_report(state: State) -> SurveyReport:
    found = [s for s in state.surveyed if s.config is not None]
    own = [s for s in state.surveyed if s.config is None]
    counts = Counter(s.status for s in found)
    runnable = [s for s in found if not s.unable]
    spilling = [Spilling(s.config.as_dict(), n) for s in runnable if s.config and (n := most(s, "spills"))]
    return SurveyReport(
        planned=planned(state),
        statuses={status.value: counts[status] for status in Status if counts[status]},
        spans={name: span for name in LABELS if (span := _span(name, own, runnable))},
        spilling=tuple(sorted(spilling, key=lambda s: -s.spills)),
    )


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
    values = [value for s in found if (value := most(s, name)) is not None]
    if not values:
        return None
    return Span(most(own[0], name) if own else None, min(values), median(values), max(values))


def most(found: Surveyed, name: str) -> int | None:
    """The largest over the builds of a configuration; of the occupancy the least."""
    if name == "occupancy":
        known = [b.occupancy for b in found.builds if b.occupancy is not None]
        return min(known) if known else None
    values = [getattr(b.resources, name) for b in found.builds if b.resources is not None]
    return max((v for v in values if v is not None), default=None)
