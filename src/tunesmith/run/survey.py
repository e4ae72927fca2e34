"""What can be said of a configuration by its build alone, and of all that were built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tunesmith.errors import BadInput
from tunesmith.problem.device import Device, Resources
from tunesmith.problem.plan import CannotRun, Status, plan_launch
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template, ToBuild, builds_of
from tunesmith.run.budget import is_concrete
from tunesmith.run.candidates import Faulty, Templates
from tunesmith.run.events import Event, Rejected, Settings, Surveyed
from tunesmith.run.outcome import Rehearsed, Result, median
from tunesmith.run.ports import Journal, Listener, Searcher, SearchView, write_down
from tunesmith.run.state import Candidate, State, fold
from tunesmith.run.talking import Talking, is_by_program, may_mend_draft
from tunesmith.space.params import Config
from tunesmith.text import digest_of, seed_of

if TYPE_CHECKING:
    from tunesmith.run.rehearsing import NextRehearsal

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
    if not state.rehearsed:
        return ()
    from tunesmith.run.rehearsing import gate_sentence  # which few runs need

    words: list[str] = []
    by_candidate: dict[str | None, list[Rehearsed]] = {}
    for one in state.rehearsed:
        by_candidate.setdefault(None if one.config is None else one.config.candidate, []).append(one)
    for done in by_candidate.values():
        words += [one.sentence for n, one in enumerate(done) if n == 0 or one.status is not Status.OK]
        words += [said] if (said := gate_sentence(done)) else []
    return tuple(words)


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


Rehearse = Callable[["Template | None", "NextRehearsal | None"], "Rehearsed | None"]


class Surveyor(Protocol):
    def submit(self, template: Template | None, config: Config | None) -> None: ...
    def collect(self) -> Surveyed: ...


@dataclass
class Survey:
    problem: Problem
    templates: Templates
    settings: Settings
    surveyor: Surveyor
    searcher: Searcher  # one that needs no scores
    talk: Talking
    journal: Journal
    listener: Listener
    answer: Callable[[State], Event | None] = lambda _state: None  # a model's question, as far as it can be
    rehearse: Rehearse = lambda _template, _next: None  # on the host, where that can be

    def run(self) -> State:
        """Go on from whatever the journal holds until nothing is left to build."""
        self._state = fold(self.journal.read())
        if self.templates.given is None and not self._state.surveyed:
            # What the compiler says of the original is told to whoever plans.
            self.surveyor.submit(None, None)
            self._append(self.surveyor.collect())
        if not any(one.config is None for one in self._state.rehearsed):
            self._rehearse(None, None)
        self._candidate = self._given() if self.templates.given is not None else self._drafted()
        waiting: list[Config | None] = []
        while True:
            while len(waiting) < self.settings.ahead and (chosen := self._next(waiting)):
                waiting += chosen
                template = None if self._candidate is None else self.templates.of(self._candidate)
                self.surveyor.submit(template, chosen[0])
            if not waiting:
                return self._state
            waiting.pop(0)
            self._append(self.surveyor.collect())

    def _given(self) -> Candidate:
        given = self.templates.given
        assert given is not None
        own = Candidate("", given.digest)
        if self._state.admitted is None:
            self._append(self.templates.admitted(own))
        if not self._rehearsed(own):  # there is no gate for what is given
            from tunesmith.run.rehearsing import NextRehearsal

            configs = self.templates.configs(own)
            first = given.default if given.default in configs else configs[0]
            self._rehearse(own, NextRehearsal(first, True, 0))
        return own

    def _drafted(self) -> Candidate | None:
        """The first template the author writes: before anything is measured there is no second round. What
        the host finds wrong at the gate is turned away here; what it finds right passes the gate again on the
        device."""
        if not self._state.decided and not self._state.dialogue:
            self._append(self.talk.decided(self._state))
        while True:
            while (said := self.talk.next_event(self._state) or self.answer(self._state)) is not None:
                self._append(said)
            draft = self._state.draft
            if draft is None or not self._can_be_built(draft):
                return None
            step = self._gate_on_host(draft)
            if step is None:
                return draft
            is_model = not is_by_program(self._state, draft)
            again = may_mend_draft(self._state, self.settings, draft) and (is_model or bool(step.without))
            self._append(Rejected(draft.id, step.reason, (), step.without, again))

    def _gate_on_host(self, draft: Candidate) -> Faulty | None:
        """None: it may go on to the device."""
        from tunesmith.run.rehearsing import GATE_SECONDS, HostGate, NextRehearsal, gate_sentence

        seconds = GATE_SECONDS if self.settings.seconds is None else min(GATE_SECONDS, self.settings.seconds)
        gate = HostGate.of(self.templates.of(draft), self.templates.configs(draft), seconds)
        may_mend = may_mend_draft(self._state, self.settings, draft)
        is_model = not is_by_program(self._state, draft)
        while True:
            step = gate.step(self._rehearsed(draft), may_mend, is_model)
            if not isinstance(step, NextRehearsal):
                if said := gate_sentence(self._rehearsed(draft)):
                    self.listener.say(said)
                return step if isinstance(step, Faulty) else None
            if not self._rehearse(draft, step):
                return None

    def _can_be_built(self, draft: Candidate) -> bool:
        if draft.drafted is None:
            return False
        try:
            # Nothing that a model wrote is built before it is vetted.
            template = self.templates.of(draft)
            if draft.drafted.author and self.talk.draft_fault(self._state, draft, template) is not None:
                return False
            return len(self.templates.configs(draft)) > 0
        except BadInput:
            return False  # the gate will say so

    def _rehearsed(self, candidate: Candidate) -> list[Rehearsed]:
        """What the host has said of it."""
        every = self._state.rehearsed
        return [one for one in every if one.config is not None and one.config.candidate == candidate.id]

    def _rehearse(self, candidate: Candidate | None, wanted: NextRehearsal | None) -> bool:
        """Of the original, or of a template by one configuration; whether the host can say anything."""
        found = self.rehearse(None if candidate is None else self.templates.of(candidate), wanted)
        if found is not None:
            self._append(found)
        return found is not None

    def _next(self, waiting: list[Config | None]) -> list[Config | None]:
        """The original first, then one configuration at a time; nothing when the budget is used up."""
        looked_at = [*(s.config for s in self._state.surveyed), *waiting]
        if not looked_at:
            return [None]
        if self._candidate is None:
            return []
        template = self.templates.of(self._candidate)
        checked = sum(one.seconds for one in self._state.rehearsed)  # which has a limit of its own
        spent = self._state.elapsed - self._state.attached_at - checked
        if self.settings.seconds is not None and spent > self.settings.seconds:
            return []
        seen = tuple(config for config in looked_at if config is not None)
        evals = self.settings.evals
        view = SearchView(
            space=template.space,
            configs=self.templates.configs(self._candidate),
            default=template.default,
            tried=(),
            in_flight=seen,
            budget_left=None if evals is None else max(0, evals - len(seen)),
            seed=seed_of(self.settings.seed, "survey", len(seen)),
        )
        return [*self.searcher.ask(view, 1).configs]

    def _append(self, event: Event) -> None:
        self._state = write_down(event, self._state, self.journal, self.listener)
