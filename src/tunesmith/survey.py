"""The survey: where the device is absent, build what would be tried and write down what the builds tell.

Like the loop it goes by the state alone: the next configuration follows from the seed and from how many have
been looked at, so a survey that was killed goes on exactly where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tunesmith.core.candidates import Templates
from tunesmith.core.digest import seed_of
from tunesmith.core.errors import BadInput
from tunesmith.core.events import Admitted, Event, Settings, Surveyed
from tunesmith.core.ports import Journal, Listener, Searcher, SearchView, write_down
from tunesmith.core.problem import Problem
from tunesmith.core.space import Config
from tunesmith.core.state import Candidate, State, fold
from tunesmith.core.talking import Talking
from tunesmith.core.template import Template


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

    def run(self) -> State:
        """Go on from whatever the journal holds until nothing is left to build."""
        self._state = fold(self.journal.read())
        if self.templates.given is None and not self._state.surveyed:
            # What the compiler says of the original is told to whoever plans.
            self.surveyor.submit(None, None)
            self._append(self.surveyor.collect())
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
            count = len(self.templates.configs(own))
            self._append(Admitted(given.digest, count, given.space.combinations, baking=given.baking))
        return own

    def _drafted(self) -> Candidate | None:
        """The first template the author writes: before anything is measured there is no second round. The
        gate has to wait for the device."""
        if not self._state.decided and not self._state.dialogue:
            self._append(self.talk.decided(self._state))
        while (said := self.talk.next_event(self._state)) is not None:
            self._append(said)
        draft = self._state.draft
        try:
            return draft if draft is not None and self._may_build(draft) else None
        except BadInput:
            return None  # the gate will say so

    def _may_build(self, draft: Candidate) -> bool:
        """Nothing that a model wrote is built before it is vetted."""
        by_model = draft.drafted is not None and bool(draft.drafted.author)
        if by_model and self.talk.fault_of(self.templates.of(draft)) is not None:
            return False
        return bool(len(self.templates.configs(draft)))

    def _next(self, waiting: list[Config | None]) -> list[Config | None]:
        """The original first, then one configuration at a time; nothing when the budget is used up."""
        looked_at = [*(s.config for s in self._state.surveyed), *waiting]
        if not looked_at:
            return [None]
        if self._candidate is None:
            return []
        template = self.templates.of(self._candidate)
        spent = self._state.elapsed - self._state.attached_at
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
