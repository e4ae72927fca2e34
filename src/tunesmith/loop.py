"""The loop: look at the state, do the next thing, write down what happened, look again.

Every step is decided by the state alone and the state is a fold over the journal, so a run that was killed
goes on exactly where it was.
"""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.core import choose
from tunesmith.core.digest import seed_of
from tunesmith.core.events import Admitted, Asked, Decided, Event, Measured, Settings, Stopped
from tunesmith.core.outcome import Effort, Purpose, Trial
from tunesmith.core.ports import Journal, Lab, Listener, Planner, Searcher, SearchView
from tunesmith.core.problem import Problem
from tunesmith.core.space import Config, ConfigSet
from tunesmith.core.state import State, apply, fold
from tunesmith.core.template import Template

SENTINEL_EVERY = 16  # trials between two looks at the original


@dataclass
class Loop:
    problem: Problem
    template: Template
    configs: ConfigSet
    settings: Settings
    lab: Lab
    searcher: Searcher
    planner: Planner
    journal: Journal
    listener: Listener

    def run(self) -> State:
        """Go on from whatever the journal holds until the run has stopped."""
        self._state = fold(self.journal.read())
        self._submitted: set[int] = set()
        self.lab.admit(self.template)
        while self._state.stopped is None:
            self._step()
        return self._state

    def _step(self) -> None:
        state = self._state
        if state.baseline is None:
            self._append(self.lab.baseline())
        elif state.admitted is None:
            self._append(Admitted(self.template.digest, len(self.configs), self.template.space.combinations))
        elif not state.decided:
            self._append(self.planner.decide(state))
        elif state.searching:
            self._search()
        else:
            self._finish()

    def _search(self) -> None:
        state = self._state
        room = self.settings.width - len(state.in_flight)
        left = self._evals_left()
        reason = self._exhausted_budget(left)
        if room > 0 and reason is None:
            if self._sentinel_due():
                self._ask(None, "sentinel")
                return
            # One at a time: each event follows from those before it, wherever a run is killed.
            for config in self.searcher.ask(self._view(left), 1):
                self._ask(config, "search")
                return
            reason = "every configuration has been tried"
        if state.in_flight:
            self._collect()
        else:
            self._append(Decided("finish", reason or "nothing is left to try"))

    def _finish(self) -> None:
        state = self._state
        asked = {trial.config for trial in state.asked if trial.purpose == "finalist"}
        for config in choose.finalists(self.problem, state, self.settings.finalists):
            if config not in asked:
                self._ask(config, "finalist")
                return
        if state.in_flight:
            self._collect()
            return
        for config, workloads in choose.unverified(self.problem, state):
            self.listener.note(f"verifying {config} in a fresh process")
            trial = Trial(state.next_trial, config, workloads, "long", "finalist", self.template.digest)
            self._append(self.lab.verify(trial))
            return
        self._append(Stopped(state.decided[-1].reason))

    def _ask(self, config: Config | None, purpose: Purpose) -> None:
        workloads = tuple(w.name for w in self.problem.workloads)
        effort: Effort = "long" if purpose == "finalist" else "short"
        template = self.template.digest if config is not None else ""
        trial = Trial(self._state.next_trial, config, workloads, effort, purpose, template)
        self._append(Asked(trial))

    def _collect(self) -> None:
        for trial in self._state.in_flight:
            if trial.id not in self._submitted:
                self._submitted.add(trial.id)
                self.lab.submit(trial)
        self._append(Measured(self.lab.collect()))

    def _view(self, left: int | None) -> SearchView:
        state = self._state
        return SearchView(
            space=self.template.space,
            configs=self.configs,
            default=self.template.default,
            tried=choose.scores(self.problem, state),
            in_flight=tuple(t.config for t in state.in_flight if t.config is not None),
            budget_left=left,
            seed=seed_of(self.settings.seed, "ask", state.events),
        )

    def _evals_left(self) -> int | None:
        tried = sum(t.purpose == "search" for t in self._state.asked) + len(self._state.unable)
        return None if self.settings.evals is None else max(0, self.settings.evals - tried)

    def _exhausted_budget(self, left: int | None) -> str | None:
        if left == 0:
            return f"the budget of {self.settings.evals} evaluations is used up"
        spent = self._state.elapsed - self._state.attached_at
        if self.settings.seconds is not None and spent > self.settings.seconds:
            return f"the budget of {self.settings.seconds:g} seconds is used up"
        return None

    def _sentinel_due(self) -> bool:
        since = 0
        for trial in reversed(self._state.asked):
            if trial.purpose == "sentinel":
                break
            since += 1
        return since >= SENTINEL_EVERY

    def _append(self, event: Event) -> None:
        record = self.journal.append(event)
        self._state = apply(self._state, record)
        self.listener.event(record, self._state)
