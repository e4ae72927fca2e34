"""The report of a run as a value, and how its parts are called."""

from __future__ import annotations

from dataclasses import dataclass, field

from tunesmith.run.budget import Spent
from tunesmith.run.events import Extended
from tunesmith.run.explain import Explanation
from tunesmith.run.rounds import ChainEnd, History, RoundReport
from tunesmith.run.survey import SurveyReport
from tunesmith.text import named_values

# Of `Report` as JSON: raised when a field changes its meaning or goes, not when one is added.
RESULT_VERSION = 1
# What people call the rules of `pruning`.
RULES = {
    "cannot_run": "cannot run", "same_code": "same as another",
    "spills": "spills", "occupancy": "little occupancy",
}  # fmt: skip


@dataclass(frozen=True)
class WorkloadReport:
    name: str
    sizes: dict[str, int]
    weight: float
    baseline_us: float
    tuned_us: float
    speedup: float
    interval: tuple[float, float]
    config: dict[str, int] | None  # None: the original stays
    template: str = ""  # whose configuration it is, where the run has several


@dataclass(frozen=True)
class Failure:
    config: dict[str, int]
    status: str
    detail: str
    template: str = ""


@dataclass(frozen=True)
class PrunedReport:
    """What one rule left out of the measurements, the first of them in its own words."""

    rule: str
    count: int
    config: dict[str, int]
    reason: str


@dataclass(frozen=True)
class BoundReport:
    """What bounds a workload and how many times its floor it takes, before and after."""

    workload: str
    bound: str
    distance: float | None
    ceiling: str
    summary: str
    tuned_bound: str = ""  # empty: the original stays, or the winner was not looked at
    tuned_distance: float | None = None
    note: str = ""  # why it is not known


@dataclass(frozen=True)
class PriorReport:
    """Where the search looked first from an evaluation on, and why."""

    after: int  # evaluations
    focus: str  # empty: everywhere alike
    inside: int  # configurations that meet it
    reason: str
    moved: bool = True  # False: a second look changed nothing


@dataclass(frozen=True)
class UnfinishedBest:
    """What an unfinished run has to show: its best template, by short measurements. Nothing is verified."""

    template: str  # its number
    digest: str  # of its text, among the run's objects
    status: str  # drafted: it waits for the gate; admitted: it is right; searched
    by: str  # the model or the moves
    speedup: float | None = None  # in the geometric mean; None: nothing was measured
    config: dict[str, int] | None = None
    file: str = ""  # where it is, in the run's folder
    noun: str = "template"  # or kernel, where concrete ones are written


@dataclass(frozen=True)
class Report:
    """What came of a run: `Run.result` in Python, what `--json` prints, and report.json in its folder."""

    problem: str
    backend: str
    device: str
    driver: str
    finished: bool
    reason: str
    judged_by: str
    workloads: tuple[WorkloadReport, ...]
    geometric_mean: float | None
    general: dict[str, int] | None
    evaluations: dict[str, int]
    space: dict[str, int]
    verified_cases: int
    failures: tuple[Failure, ...]
    digests: dict[str, str]
    versions: dict[str, str]
    search: str
    seed: int
    seconds: float
    tuned: tuple[str, ...] = ()
    busy: float | None = None  # share of the search's evaluations that was spent in kernels, if it is known
    compiler: str = ""  # name and version, where there is a choice
    survey: SurveyReport | None = None  # where the device is absent: what the builds tell
    built: int = 0  # configurations, those that were not measured included
    pruned: tuple[PrunedReport, ...] = ()
    priors: tuple[str, ...] = ()  # earlier runs that told the search where to begin
    bounds: tuple[BoundReport, ...] = ()  # where kernels were profiled
    profile_notes: tuple[str, ...] = ()  # what profiles could not find out, and why
    steering: tuple[PriorReport, ...] = ()
    history: History = field(default_factory=History)
    explanations: tuple[Explanation, ...] = ()  # what mattered, for each configuration that is delivered
    rounds: tuple[RoundReport, ...] = ()  # how templates came about, where none was given
    templates: dict[str, str] = field(default_factory=dict)  # file -> the template's number, empty: given
    general_template: str = ""  # where the run has several
    general_is_baked: bool = False  # sizes are built in: other sizes keep the original
    models: str = ""  # who played the roles; empty: the expert
    talk: Spent | None = None  # what was asked of models; None: nothing
    added: Extended | None = None  # cases that a tester added
    origin: str = ""  # what was searched again: a run, a template
    known_first: int = 0  # configurations that earlier runs found good, tried before the search had its say
    so_far: UnfinishedBest | None = None  # of a run that is not finished
    strategy: str = "template"
    chain: ChainEnd | None = None  # linear: what the last kernel gave, whichever is delivered
    kernel: str = ""  # the original: its function and its file
    notes: tuple[str, ...] = ()  # on the original's launch
    gated: int = 0  # of the evaluations, those of the gate, where no budget counts them
    version: int = RESULT_VERSION

    @property
    def noun(self) -> str:
        """What was written in its rounds."""
        return "template" if self.strategy == "template" else "kernel"

    @property
    def tried_by(self) -> str:
        """Of the evaluations, which a budget counts and which are extra; empty where it counts them all."""
        searched = sum(self.evaluations.values()) - self.gated
        return f"{searched} of the search, {self.gated} of the gate" if self.gated else ""


def workload_cells(w: WorkloadReport) -> tuple[str, ...]:
    """A row of a table: before, after, speed-up, its interval, configuration."""
    figures = f"{w.baseline_us:.1f} µs", f"{w.tuned_us:.1f} µs", f"{w.speedup:.2f}×"
    return (*figures, interval_text(w), config_text(w.config, w.template))


def interval_text(w: WorkloadReport) -> str:
    return f"{w.interval[0]:.2f} to {w.interval[1]:.2f}" if w.config is not None else "the original stays"


def config_text(config: dict[str, int] | None, template: str = "") -> str:
    if config is None:
        return "original"
    values = named_values(config)
    if not values:
        return f"kernel {template}" if template else "as written"
    return f"{values} of template {template}" if template else values


def general_text(report: Report) -> str:
    """The general configuration, and where it serves if that is less than all sizes."""
    found = config_text(report.general, report.general_template)
    if report.general_is_baked:
        return f"{found}, built for the workloads' sizes alone; the original serves all others"
    return found


def unfinished_text(found: UnfinishedBest) -> str:
    if found.status == "drafted":
        return f"{found.noun} {found.template} by {found.by} is written; it is checked where the device is"
    reached = f"{found.speedup:.2f}×" if found.speedup is not None else "nothing measured"
    values = named_values(found.config or {})
    at = f" at {values}" if values else ""
    return f"{found.noun} {found.template} by {found.by}: {reached}{at}, by short measurements, not verified"
