"""The loop without a device: drafts are built, rehearsed on the host and judged by what the compiler says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tunesmith.errors import BadInput
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run.candidates import Faulty, Templates
from tunesmith.run.events import Event, Rejected, Settings, Surveyed
from tunesmith.run.outcome import Rehearsed
from tunesmith.run.ports import RunLog, Searcher, SearchView
from tunesmith.run.rehearsing import GATE_SECONDS, HostGate, NextRehearsal
from tunesmith.run.state import Candidate, State
from tunesmith.run.survey import gate_sentence
from tunesmith.run.talking import Talking, is_by_program, may_mend_draft
from tunesmith.space.params import Config
from tunesmith.text import seed_of

Rehearse = Callable[[Template | None, NextRehearsal | None], Rehearsed | None]


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
    log: RunLog
    rehearse: Rehearse = lambda _template, _next: None  # on the host, where that can be

    def run(self) -> State:
        """Go on from whatever the journal holds until nothing is left to build."""
        if self.templates.given is None and not self._state.surveyed:
            # What the compiler says of the original is told to whoever plans.
            self.surveyor.submit(None, None)
            self._append(self.surveyor.collect())
        if not any(one.config is None for one in self._state.rehearsed):
            self._rehearse(None, None)
        self._candidate = self._given() if self.templates.given is not None else self._drafted()
        waiting: list[Config | None] = []
        while True:
            while (told := self.talk.told(self._state)) is not None:
                self._append(told)
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
            while (said := self.talk.next_event(self._state)) is not None:
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
        seconds = GATE_SECONDS if self.settings.seconds is None else min(GATE_SECONDS, self.settings.seconds)
        gate = HostGate.of(self.templates.of(draft), self.templates.configs(draft), seconds)
        may_mend = may_mend_draft(self._state, self.settings, draft)
        is_model = not is_by_program(self._state, draft)
        while True:
            step = gate.step(self._rehearsed(draft), may_mend, is_model)
            if not isinstance(step, NextRehearsal):
                if said := gate_sentence(self._rehearsed(draft)):
                    self.log.listener.say(said)
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
        self.log.write(event)

    @property
    def _state(self) -> State:
        return self.log.state
