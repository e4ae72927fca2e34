"""The report of a run: its parts, how they are called, and how it is folded from the state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from tunesmith.base.text import seconds_text
from tunesmith.problem.compare import verdict_words
from tunesmith.problem.device import Device
from tunesmith.problem.dispatch import Dispatch
from tunesmith.problem.plan import Status, overstated_traffic
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, builds_of
from tunesmith.profiles.facts import RoofFacts
from tunesmith.run import budget
from tunesmith.run.candidates import TemplateOf, Templates, draft_name, gate_sentence
from tunesmith.run.delivery import general_condition
from tunesmith.run.devices import DeviceUse, device_uses
from tunesmith.run.events import Extended, Pruned, ReplacedCase, Surveyed, notes_beside, sanitizer_lines
from tunesmith.run.explain import Explanation, explain_winners, history_of
from tunesmith.run.figures import Figure, candidate_speedups, mean_figure, run_figure
from tunesmith.run.figures import WorkloadReport as WorkloadReport
from tunesmith.run.journal import is_broken
from tunesmith.run.outcome import Rehearsed, judge_build, median
from tunesmith.run.prior import best_config
from tunesmith.run.race import Winners, sound_scores, timing_of, verified_cases, verified_choice
from tunesmith.run.rounds import ChainEnd, History, RoundReport, best_scores, chain_end, round_reports
from tunesmith.run.state import State, run_protections
from tunesmith.space.configset import Config

# What is told of builds, by the names of `Resources`, and what people call it.
LABELS = {
    "registers": "registers",
    "shared": "static shared memory, bytes",
    "spills": "spilled, bytes",
    "private": "stack, bytes",
    "occupancy": "occupancy, %",
}


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
    still = []
    for found in surveyed:
        if found.config is None or not found.unable:
            continue
        is_accident = any(result.detail.startswith(accidents) for result in found.refused)
        before = [result.status for result in found.refused]
        if not is_accident and before == _rejudge_survey(problem, template_of(found.config), found, device):
            still.append(found.config)
    return tuple(still)


def _rejudge_survey(problem: Problem, template: Template, found: Surveyed, device: Device) -> list[Status]:
    known = {build.source_digest: build for build in found.builds}
    statuses: list[Status] = []
    for built in builds_of(problem, template, found.config):
        before = known.get(built.variant.digest)
        if before is None:
            return []  # another version of Tunesmith renders it differently
        if before.code_digest:
            statuses += [r.status for r in judge_build(problem, built, device, before.resources).refused]
        else:
            statuses += [Status.BUILD_FAILED] * len(built.workloads)
    return statuses


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
    original = next((s for s in state.surveyed if s.config is None), None)
    counts = Counter(s.status for s in found)
    runnable = [s for s in found if not s.unable]
    spilling = [Spilling(s.config.as_dict(), n) for s in runnable if s.config and (n := s.most("spills"))]
    return SurveyReport(
        planned=survey_size(state),
        statuses={status.value: counts[status] for status in Status if counts[status]},
        spans={name: span for name in LABELS if (span := _metric_span(name, original, runnable))},
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


def survey_size(state: State) -> int:
    """How many configurations a survey looks at: the feasible ones, as far as the budget goes."""
    evals = state.started.settings.evals if state.started else None
    if state.admitted is None and any(c.drafted for c in state.candidates):
        if budget.is_concrete(state):
            return 1
        return evals or 0  # what a draft has nobody counts before it has passed the gate
    feasible = state.admitted.feasible if state.admitted else 0
    return feasible if evals is None else min(feasible, evals)


def _metric_span(name: str, original: Surveyed | None, found: Sequence[Surveyed]) -> Span | None:
    values = [value for s in found if (value := s.most(name)) is not None]
    if not values:
        return None
    return Span(original.most(name) if original else None, min(values), median(values), max(values))


# Of `Report` as JSON: raised when a field changes its meaning or goes, not when one is added.
RESULT_VERSION = 1
TOLD_WAIT = 1.0  # seconds


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
    roof: RoofFacts | None = None  # what the floor follows from


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
    """What an unfinished run has to show: its best template, by the search. Nothing is verified."""

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
    explanations: tuple[Explanation, ...] = ()  # the parameters' effects, for each configuration delivered
    rounds: tuple[RoundReport, ...] = ()  # how templates came about, where none was given
    templates: dict[str, str] = field(default_factory=dict)  # file -> the template's number, empty: given
    general_template: str = ""  # where the run has several
    general_is_baked: bool = False  # sizes are built in: other sizes keep the original
    models: str = ""  # who played the roles; empty: the expert
    talk: budget.Spent | None = None  # what was asked of models; None: nothing
    budgets: tuple[budget.BudgetUse, ...] = ()  # what was used of each, whether it has a limit or not
    added: Extended | None = None  # cases that a tester added
    replaced: tuple[ReplacedCase, ...] = ()  # that the original itself failed at verification
    sanitizers: tuple[str, ...] = ()  # which watched what was verified, and what they found
    where: tuple[str, ...] = ()  # the general configuration serves where all of these hold, then the original
    shown: str = ""  # what that rests on
    serves: str | None = None  # the condition of what is delivered in general; None: the workloads alone
    beyond: str = ""  # where builds with sizes in them serve beside their workloads, and what that rests on
    timed: int = 0  # sizes at which that was timed beside the workloads' own
    least: float | None = None  # and the least that it gained there
    language: str = ""  # of the kernel
    origin: str = ""  # what was searched again: a run, a template
    known_first: int = 0  # configurations that earlier runs found good, tried before the search had its say
    so_far: UnfinishedBest | None = None  # of a run that is not finished
    strategy: str = "template"
    chain: ChainEnd | None = None  # linear: what the last kernel gave, whichever is delivered
    kernel: str = ""  # the original: its function and its file
    notes: tuple[str, ...] = ()  # on the original's launch
    gated: int = 0  # of the evaluations, those of the gate, where no budget counts them
    live: bool = False  # a process is at work on it
    winners: int = 0  # tuned kernels that won and were verified: one configuration may be several
    left_out: tuple[str, ...] = ()  # a sentence on each of them that could not be delivered
    unproven: str = ""  # why the journal's chain does not carry it; where that is broken nothing is claimed
    devices: tuple[DeviceUse, ...] = ()  # where several measured: what each did
    interval: tuple[float, float] | None = None  # of the geometric mean, 95 %
    headline: str = ""  # the geometric mean in words, or what it is at least
    version: int = RESULT_VERSION

    @property
    def figure(self) -> Figure | None:
        if self.geometric_mean is None or not self.workloads:
            return None
        known = [w.figure for w in self.workloads], [w.weight for w in self.workloads]
        return replace(mean_figure(*known), value=self.geometric_mean)

    @property
    def noun(self) -> str:
        """What was written in its rounds."""
        return "template" if self.strategy == "template" else "kernel"

    @property
    def tried_by(self) -> str:
        """Of the evaluations, which a budget counts and which are extra; empty where it counts them all."""
        searched = sum(self.evaluations.values()) - self.gated
        return f"{searched} of the search, {self.gated} of the gate" if self.gated else ""


def build_report(
    problem: Problem,
    state: State,
    files: tuple[str, ...] = (),
    template_of: TemplateOf | None = None,
    templates: Templates | None = None,
    dispatch: Dispatch | None = None,
) -> Report:
    """Without `template_of` nothing is explained; `templates` have it, too. `dispatch`: of one that ended."""
    template_of = templates.lookup(state) if templates is not None else template_of
    assert state.started is not None
    kernels = (o for o in state.outcomes if o.trial.purpose in ("search", "gate"))
    measured = Counter(o.status for o in (kernels if budget.is_concrete(state) else state.searched))
    # Before the end nothing is claimed, not even that the original stays.
    claims = state.stopped is not None and not is_broken(state.unproven)
    choice = verified_choice(problem, state) if claims else Winners(None, ())
    workloads = tuple(_workload_report(problem, state, choice, i) for i in range(len(choice.picks)))
    started, general, figure = state.started, choice.general, run_figure(problem, choice)
    is_baked = bool(template_of and general and template_of(general).bakes_sizes(general))
    untold = dict.fromkeys(note for p in state.profiled if p.diagnosis is not None for note in p.notes)
    kept = delivered_templates(problem, state, choice) if claims else {}
    return Report(
        problem=started.problem,
        backend=started.backend,
        device=state.device.name,
        driver=state.device.driver,
        finished=state.stopped is not None,
        reason=state.stopped.reason if state.stopped else "not finished",
        judged_by=judged_by(problem, state),
        workloads=workloads,
        geometric_mean=figure.value if figure is not None else None,
        general=general.as_dict() if general else None,
        evaluations={status.value: n for status in Status if (n := measured[status])},
        space=_space_counts(state),
        verified_cases=0 if state.unproven else verified_cases(state, choice),
        failures=_list_failures(state),
        digests=_evidence_digests(problem, state),
        versions=dict(started.versions),
        search=started.settings.search,
        seed=started.settings.seed,
        seconds=state.elapsed,
        tuned=files,
        busy=_busy_share(state),
        compiler=state.compiler,
        survey=survey_report(state) if state.device.absent else None,
        built=len({s.config for s in state.surveyed if s.config} | {o.trial.config for o in state.searched}),
        pruned=_pruned_reports(state),
        priors=tuple(primed.name for primed in state.primed),
        bounds=_bound_reports(problem, state, choice),
        profile_notes=tuple(untold),
        steering=tuple(
            PriorReport(c.tried, str(f) if f else "", f.inside if f else 0, c.event.reason, c.moved)
            for c in state.prior_changes
            for f in (c.event.focus,)
        ),
        history=history_of(problem, state),
        explanations=explain_winners(problem, template_of, state, choice)
        if template_of and choice.picks and not budget.is_concrete(state)
        else (),
        rounds=round_reports(problem, state, templates),
        templates={name: candidate for candidate, name in kept.items()},
        general_template=_template_label(state, general),
        general_is_baked=is_baked,
        models=started.settings.models,
        talk=budget.sum_model_usage(state) if state.dialogue else None,
        budgets=budget.budget_uses(state),
        added=state.extended,
        replaced=tuple(case for v in state.verified for case in v.replaced),
        sanitizers=(
            watched := sanitizer_lines((str(v.outcome.trial.config), v.sanitized) for v in state.verified)
        ),
        where=() if is_baked else choice.where,
        shown=choice.shown,
        serves=general_condition(problem, dispatch, general.as_dict())
        if dispatch is not None and general is not None and not is_baked
        else None,
        beyond=dispatch.shown.removeprefix(choice.shown).lstrip("; ") if dispatch is not None else "",
        timed=choice.timed,
        least=choice.least,
        language=problem.kernel.language,
        origin=started.origin,
        known_first=sum(len(primed.first) for primed in state.primed),
        so_far=best_unfinished(problem, state),
        strategy=started.settings.strategy,
        chain=chain_end(problem, state),
        kernel=f"{problem.kernel.entry} in {problem.kernel.path}",
        notes=notes_beside((*started.notes, *_report_notes(problem, state)), watched),
        gated=budget.beside_budget(state),
        winners=dispatch.winners if dispatch is not None else len(choice.configs()),
        left_out=dispatch.left_out if dispatch is not None else (),
        unproven=state.unproven,
        devices=device_uses(state),
        interval=(figure.low, figure.high) if figure is not None else None,
        headline=figure.words if figure is not None else "",
    )


def delivered_templates(problem: Problem, state: State, choice: Winners) -> dict[str, str]:
    """The candidates whose templates the user takes home, and their files' names: those of the winners, the
    general one's first; without a winner the best that was searched."""
    won = dict.fromkeys(config.candidate for config in choice.configs())
    if not won:
        known = [c.id for c in state.candidates if c.status in ("admitted", "searched")]
        best = best_scores(sound_scores(problem, state))
        known.sort(key=lambda candidate: -best.get(candidate, 0.0))
        won = dict.fromkeys(known[:1])
    others = (draft_name(problem, candidate or "given") for candidate in list(won)[1:])
    names = (unfinished_name(problem), *others)
    return dict(zip(won, names, strict=False))


def best_unfinished(problem: Problem, state: State) -> UnfinishedBest | None:
    """The best that has passed the gate, else the draft that waits there; None where there is neither, or the
    run has ended."""
    sound = [c for c in state.candidates if c.drafted and c.status in ("admitted", "searched")]
    scored = best_scores(sound_scores(problem, state))
    best = max(sound, key=lambda c: scored.get(c.id, float("-inf")), default=state.draft)
    if best is None or best.drafted is None or state.stopped is not None:
        return None
    config = best_config(problem, state)
    by = best.drafted.author or ", ".join(best.drafted.moves) or "the expert"
    return UnfinishedBest(
        best.id,
        best.template,
        best.status,
        by,
        candidate_speedups(problem, state).get(best.id),
        config.as_dict() if config is not None and config.candidate == best.id else None,
        noun=budget.candidate_noun(state.settings),
    )


def unfinished_name(problem: Problem) -> str:
    """The file that an unfinished run keeps it in: the one that the finished run delivers."""
    return f"template{PurePosixPath(draft_name(problem, '')).suffix}"


def _template_label(state: State, config: Config | None) -> str:
    """Whose it is, where that needs to be said."""
    several = sum(c.drafted is not None for c in state.candidates) > 1
    several = several or any(c.id and c.drafted is None for c in state.candidates)  # several were given
    return config.candidate if several and config is not None else ""


def _report_notes(problem: Problem, state: State) -> tuple[str, ...]:
    timed = state.baseline.outcome.results if state.baseline is not None else ()
    seconds = {result.workload: result.timing.seconds for result in timed if result.timing is not None}
    unmet = [f"{v.outcome.trial.config}: {v.sides.sentence}" for v in state.verified if v.sides.sentence]
    unmet += [held.sentence for held in run_protections(state)]
    if state.waited >= TOLD_WAIT:
        waited = f"{seconds_text(state.waited)} of {seconds_text(state.elapsed)}"
        unmet.append(f"others used the device: the run waited {waited}, which no budget counts")
    return (*overstated_traffic(problem, state.device.limits, seconds), *unmet)


def _bound_reports(problem: Problem, state: State, choice: Winners) -> tuple[BoundReport, ...]:
    looked = {(p.config, p.workload): p for p in state.profiled}
    picked = {pick.workload: pick.config for pick in choice.picks}
    found: list[BoundReport] = []
    for workload in problem.workloads:
        before = looked.get((None, workload.name))
        if before is None:
            continue
        if before.diagnosis is None:
            found.append(BoundReport(workload.name, "", None, "", "", note="; ".join(before.notes)))
            continue
        known = before.diagnosis
        told_of = known.bound.value, known.distance, known.ceiling, known.summary
        row = BoundReport(workload.name, *told_of, roof=known.roof)
        config = picked.get(workload.name)
        after = looked.get((config, workload.name)) if config is not None else None
        if after is not None and after.diagnosis is not None:
            # It may have been looked at with the time of a short measurement; what is proven counts.
            proven, floor = timing_of(state, config, workload.name), after.diagnosis.floor
            seconds = proven.timing.seconds if proven is not None and proven.timing is not None else None
            distance = seconds / floor if seconds is not None and floor else after.diagnosis.distance
            row = replace(row, tuned_bound=after.diagnosis.bound.value, tuned_distance=distance)
        found.append(row)
    return tuple(found)


def _busy_share(state: State) -> float | None:
    busy, taken = (sum(getattr(o, name) for o in state.searched) for name in ("busy", "seconds"))
    # Where times are looked up, kernels may take longer than anybody waited: then it says nothing.
    return busy / taken if 0 < busy <= taken else None


def _workload_report(problem: Problem, state: State, choice: Winners, index: int) -> WorkloadReport:
    workload, pick = problem.workloads[index], choice.picks[index]
    assert state.baseline is not None
    baseline = state.baseline.outcome.result(workload.name)
    assert baseline is not None and baseline.timing is not None
    before = after = baseline.timing.seconds
    proven = timing_of(state, pick.config, workload.name) if pick.config else None
    if proven is not None and proven.timing is not None:
        before, after = median(proven.timing.paired), proven.timing.seconds
    return WorkloadReport(
        name=workload.name,
        sizes=workload.as_dict(),
        weight=workload.weight,
        baseline_us=before * 1e6,
        tuned_us=after * 1e6,
        speedup=pick.speedup.value,
        interval=(pick.speedup.low, pick.speedup.high),
        config=pick.config.as_dict() if pick.config else None,
        template=_template_label(state, pick.config),
        doubt=pick.doubt,
    )


def judged_by(problem: Problem, state: State) -> str:
    """By what results were found right, and whose rules those were."""
    if state.unproven:
        return f"not verified: {state.unproven}" if is_broken(state.unproven) else state.unproven
    if state.baseline is None:
        return "not judged yet"
    return verdict_words(problem, state.baseline.judged_by == "reference")


def _space_counts(state: State) -> dict[str, int]:
    admitted = [c.admitted for c in state.candidates if c.admitted is not None and c.status != "rejected"]
    counts = {name: sum(getattr(a, name) for a in admitted) for name in ("combinations", "feasible")}
    return counts if admitted else {}


def _pruned_reports(state: State) -> tuple[PrunedReport, ...]:
    first: dict[str, PrunedReport] = {}
    known = {p.config for p in state.pruned}
    unable = [s for s in state.unable if s.config not in known]  # surveyed where the device was absent
    found = [Pruned(s.config, "cannot_run", s.refused[0].detail) for s in unable if s.config is not None]
    for pruned in (*found, *state.pruned):
        new = PrunedReport(pruned.rule, 0, pruned.config.as_dict(), pruned.reason)
        report = first.get(pruned.rule, new)
        first[pruned.rule] = replace(report, count=report.count + 1)
    return tuple(first.values())


def _list_failures(state: State) -> tuple[Failure, ...]:
    unable = (s for s in (state.surveyed if state.device.absent else state.unable) if s.unable)
    found = [(s.config, s.refused[0]) for s in unable if s.status is not Status.INFEASIBLE]
    for outcome in (*state.outcomes, *(v.outcome for v in state.verified)):
        bad = [r for r in outcome.results if not r.ok and r.status is not Status.INFEASIBLE]
        found += [(outcome.trial.config, why) for why in bad[:1]]
    return tuple(
        Failure(config.as_dict(), why.status.value, why.detail, _template_label(state, config))
        for config, why in found
        if config is not None
    )


def _evidence_digests(problem: Problem, state: State) -> dict[str, str]:
    digests = {"problem": problem.digest}
    if state.baseline:
        before = state.baseline.outcome
        digests |= {"original source": before.source_digest, "original binary": before.code_digest}
    for candidate in state.candidates:
        digests[f"template {candidate.id}".rstrip()] = candidate.template
    for v in state.verified:
        config = v.outcome.trial.config
        name = config.label if config and _template_label(state, config) else str(config)
        digests[f"source of {name}"] = v.outcome.source_digest
        digests[f"binary of {name}"] = v.outcome.code_digest
    return digests
