"""The survey: where the device is absent, build what would be tried and write down what the builds tell.

Like the loop it goes by the state alone: the next configuration follows from the seed and from how many have
been looked at, so a survey that was killed goes on exactly where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tunesmith.core.digest import seed_of
from tunesmith.core.events import Admitted, Event, Settings, Surveyed
from tunesmith.core.ports import Journal, Listener, Searcher, SearchView
from tunesmith.core.space import Config, ConfigSet
from tunesmith.core.state import State, apply, fold
from tunesmith.core.template import Template


class Surveyor(Protocol):
    def submit(self, template: Template, config: Config | None) -> None: ...
    def collect(self) -> Surveyed: ...


@dataclass
class Survey:
    template: Template
    configs: ConfigSet
    settings: Settings
    surveyor: Surveyor
    searcher: Searcher  # one that needs no scores
    journal: Journal
    listener: Listener

    def run(self) -> State:
        """Go on from whatever the journal holds until nothing is left to build."""
        self._state = fold(self.journal.read())
        if self._state.admitted is None:
            self._append(Admitted(self.template.digest, len(self.configs), self.template.space.combinations))
        waiting: list[Config | None] = []
        while True:
            while len(waiting) < self.settings.ahead and (chosen := self._next(waiting)):
                waiting += chosen
                self.surveyor.submit(self.template, chosen[0])
            if not waiting:
                return self._state
            waiting.pop(0)
            self._append(self.surveyor.collect())

    def _next(self, waiting: list[Config | None]) -> list[Config | None]:
        """The original first, then one configuration at a time; nothing when the budget is used up."""
        looked_at = [*(s.config for s in self._state.surveyed), *waiting]
        if not looked_at:
            return [None]
        spent = self._state.elapsed - self._state.attached_at
        if self.settings.seconds is not None and spent > self.settings.seconds:
            return []
        seen = tuple(config for config in looked_at if config is not None)
        evals = self.settings.evals
        view = SearchView(
            space=self.template.space,
            configs=self.configs,
            default=self.template.default,
            tried=(),
            in_flight=seen,
            budget_left=None if evals is None else max(0, evals - len(seen)),
            seed=seed_of(self.settings.seed, "survey", len(seen)),
        )
        return [*self.searcher.ask(view, 1).configs]

    def _append(self, event: Event) -> None:
        record = self.journal.append(event)
        self._state = apply(self._state, record)
        self.listener.event(record, self._state)
