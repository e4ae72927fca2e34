"""The loop: look at the state, do the next thing, write down what happened, look again.

Every step is decided by the state alone and the state is a fold over the journal, so a run that was killed
goes on exactly where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.core import choose
from tunesmith.core.digest import seed_of
from tunesmith.core.events import Admitted, Asked, Decided, Event, Measured, Settings, Stopped
from tunesmith.core.outcome import Effort, Purpose, Trial
from tunesmith.core.ports import Journal, Lab, Listener, Planner, Prior, Searcher, SearchView, Tried
from tunesmith.core.problem import Problem
from tunesmith.core.pruning import prune
from tunesmith.core.racing import heat
from tunesmith.core.scores import last_improvement, noise, scores
from tunesmith.core.space import Config, ConfigSet
from tunesmith.core.state import State, apply, fold
from tunesmith.core.steering import Steerable
from tunesmith.core.steering_steps import ToProfile, next_step
from tunesmith.core.survey import features
from tunesmith.core.template import Template

SENTINEL_EVERY = 16  # trials between two looks at the original
BATCH = 4  # configurations asked for at a time: the fewer, the more each of them owes to those before it
BUILDS = 4  # at most so many for each evaluation the budget has
LITTLE = 64  # configurations are all tried, if the budget allows: less is no saving
LEAST = 40  # evaluations before a searcher is believed that there is nothing more to gain,
PER_PARAMETER = 12  # or so many for each parameter,
CONVINCED = 3  # when it says so so often in a row,
STALLED = 0.4  # and this share of the evaluations has found nothing


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
        self._issued: set[int] = set()
        self._offered = Steerable(dict(self.template.answers), self.template.space.params, self.configs)
        if self.settings.steer and self.lab.no_profiles and self._state.stopped is None:
            self.listener.note(f"the search is not steered: {self.lab.no_profiles}")
        self.lab.admit(self.template)
        self._issue()
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

    # -- searching ----------------------------------------------------------------------------------

    def _search(self) -> None:
        """Ask for a batch when the device is about to run out of work; meanwhile build what may be next."""
        state = self._state
        is_hungry = len(state.in_flight) <= max(0, self.settings.width - BATCH)
        reason = self._exhausted_budget() or self._nothing_to_gain()
        if reason is None:
            if is_hungry and self._steer():
                return
            if self._sentinel_due():
                self._ask([(None, self._workloads)], "short", "sentinel")
                return
            if (is_hungry and self._ask_batch(BATCH)) or self._ask_builds():
                return
            if is_hungry and state.building:
                self._append(self.lab.built())
                return
            if is_hungry and self._ask_batch(1):
                return
            reason = None if state.in_flight else self._nothing_left()
        if state.in_flight:
            self._append(Measured(self.lab.collect()))
        else:
            assert reason is not None
            self._append(Decided("finish", reason))

    def _steer(self) -> bool:
        """Look at a kernel, or move the focus, where that is due. Nothing is looked at while anything is
        measured: what is under way is waited for."""
        if self.lab.no_profiles or not self.settings.steer:
            return False
        state = self._state
        step = next_step(self.problem, state, self._offered, scores(self.problem, state))
        if step is None:
            return False
        if not isinstance(step, ToProfile):
            self._append(step)
        elif state.in_flight:
            self._append(Measured(self.lab.collect()))
        else:
            self._append(self.lab.profile(step.config, step.workload, step.seconds))
        return True

    def _ask_batch(self, least: int) -> bool:
        """Of what is built, the most promising, if there is enough of it; where nothing is built ahead, of
        everything. Before that, what need not be measured is left out."""
        state, pool = self._state, None
        if self.settings.ahead:
            if self.settings.prune and (len(state.pool) >= least or state.pruning):
                # One verdict a step, so that each follows from the state alone.
                verdict = next(prune(state, lambda: scores(self.problem, state)), None)
                if verdict is not None:
                    self._append(verdict)
                    return True
            if len(state.pool) < least:
                return False
            pool = tuple(found.config for found in state.pool if found.config is not None)
        tried = scores(self.problem, state)
        proposal = self.searcher.ask(self._view(pool, tried), BATCH)
        if proposal.configs:
            asked = [(config, self._workloads) for config in proposal.configs]
            self._ask(asked, "short", "search", None if pool else proposal.gain)
        return bool(proposal.configs)

    def _ask_builds(self) -> bool:
        """Keep builders busy with what is likely to be asked for, many at once: each order costs thought."""
        ahead, possible = self.settings.ahead, self._may_build()
        missing = min(possible, ahead - len(self._state.pool) - len(self._state.building))
        if missing <= 0 or missing < min(possible, ahead // 2):
            return False
        proposal = self.searcher.ask(self._view(None, scores(self.problem, self._state)), missing)
        if proposal.configs:
            asked = [(config, self._workloads) for config in proposal.configs]
            self._ask(asked, "build", "search", proposal.gain)
        return bool(proposal.configs)

    def _may_build(self) -> int:
        """How many more configurations there are that the budget has room to build."""
        known, evals = len(self._state.known), self.settings.evals
        left = len(self.configs) - known
        return left if evals is None else max(0, min(left, BUILDS * evals - known))

    def _view(self, pool: tuple[Config, ...] | None, tried: tuple[Tried, ...]) -> SearchView:
        """With a pool all of it is open; without one nothing is that was built or asked for."""
        state = self._state
        waiting = [t.config for t in (*state.in_flight, *state.building)]
        if pool is None:
            waiting += [found.config for found in state.pool]
        under_way = tuple(dict.fromkeys(config for config in waiting if config is not None))
        return SearchView(
            space=self.template.space,
            configs=self.configs,
            default=self.template.default,
            tried=tried,
            in_flight=under_way,
            closed=frozenset(verdict.config for verdict in state.pruned),
            budget_left=self._evals_left() if pool is not None or not self.settings.ahead else None,
            # To have looked at a kernel changes no draw: a search that is not steered is the same without.
            seed=seed_of(self.settings.seed, "ask", state.events - len(state.profiled) - len(state.steered)),
            weights=tuple(w.weight for w in self.problem.workloads),
            priors=tuple(Prior(primed.name, primed.rows) for primed in state.primed),
            pool=pool,
            static={found.config: features(found) for found in state.surveyed if found.config is not None},
            noise=noise(state),
            focus=state.focus,
        )

    def _evals_left(self) -> int | None:
        tried = sum(t.purpose == "search" and t.effort != "build" for t in self._state.asked)
        return None if self.settings.evals is None else max(0, self.settings.evals - tried)

    def _exhausted_budget(self) -> str | None:
        if self._evals_left() == 0:
            return f"the budget of {self.settings.evals} evaluations is used up"
        spent = self._state.elapsed - self._state.attached_at
        if self.settings.seconds is not None and spent > self.settings.seconds:
            return f"the budget of {self.settings.seconds:g} seconds is used up"
        return None

    def _nothing_left(self) -> str:
        if len(self._state.known) >= len(self.configs):
            return "every configuration has been tried"
        if self.settings.ahead and not self._may_build():
            return f"the budget of {len(self._state.known)} builds is used up"
        return "the search proposes nothing more"

    def _nothing_to_gain(self) -> str | None:
        """Whether the searcher expects less than measurements could tell from nothing, and for a good while
        nothing more was found: it is sure of itself sooner than it should be."""
        state = self._state
        if state.focus is not None:
            return None  # what is expected is expected of a part
        gains = [gain for gain in state.gains[-CONVINCED:] if gain is not None]
        done = len(state.searched())
        if len(gains) < CONVINCED or done < max(LEAST, PER_PARAMETER * len(self.template.space.params)):
            return None
        visible = noise(state)
        if max(gains) >= visible / 2 or len(self.configs) <= LITTLE:
            return None
        since = done - last_improvement(scores(self.problem, state), visible)
        if since < max(LEAST, done * STALLED):
            return None
        return f"more trials are expected to gain {max(gains):.2%}, measurements here can see {visible:.2%}"

    def _sentinel_due(self) -> bool:
        since = 0
        for trial in reversed(self._state.asked):
            if trial.purpose == "sentinel":
                break
            since += trial.effort != "build"
        return since >= SENTINEL_EVERY

    # -- finishing ----------------------------------------------------------------------------------

    def _finish(self) -> None:
        state = self._state
        if state.in_flight:
            self._append(Measured(self.lab.collect()))
            return
        if entered := heat(self.problem, state):
            self._ask(entered, "long", "finalist")
            return
        for config, workloads in choose.unverified(self.problem, state):
            self.listener.note(f"verifying {config} in a fresh process")
            trial = Trial(state.next_trial, config, workloads, "long", "finalist", self.template.digest)
            self._append(self.lab.verify(trial))
            return
        if self._profile_winner():
            return
        self._append(Stopped(state.decided[-1].reason))

    def _profile_winner(self) -> bool:
        """What is delivered beside the original: what bounds it now, and how far from its floor it is."""
        state = self._state
        if self.lab.no_profiles or not any(p.config is None for p in state.profiled):
            return False
        done = {(p.config, p.workload) for p in state.profiled}
        for pick in choose.verified_choice(self.problem, state).picks:
            if pick.config is None or (pick.config, pick.workload) in done:
                continue
            timed = choose.timing_of(state, pick.config, pick.workload)
            if timed is not None and timed.timing is not None:
                self._append(self.lab.profile(pick.config, pick.workload, timed.timing.seconds))
                return True
        return False

    # -- small parts --------------------------------------------------------------------------------

    @property
    def _workloads(self) -> tuple[str, ...]:
        return tuple(w.name for w in self.problem.workloads)

    def _ask(
        self,
        what: Sequence[tuple[Config | None, tuple[str, ...]]],
        effort: Effort,
        purpose: Purpose,
        gain: float | None = None,
    ) -> None:
        """One event for all: each event follows from those before it, wherever a run is killed."""
        first = self._state.next_trial
        trials = tuple(
            Trial(first + i, config, workloads, effort, purpose, self.template.digest if config else "")
            for i, (config, workloads) in enumerate(what)
        )
        self._append(Asked(trials, gain))
        self._issue()

    def _issue(self) -> None:
        """Give the lab what it has not been given yet by this process."""
        builds = self._state.building if self._state.searching else ()  # nobody waits for them afterwards
        for trial in (*builds, *self._state.in_flight):
            if trial.id in self._issued:
                continue
            self._issued.add(trial.id)
            if trial.effort == "build":
                self.lab.build(trial)
            else:
                self.lab.submit(trial)

    def _append(self, event: Event) -> None:
        record = self.journal.append(event)
        self._state = apply(self._state, record)
        self.listener.event(record, self._state)
