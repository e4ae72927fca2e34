"""The search of one candidate: what its searcher sees, how much there is to build, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run.budget import evals_left, evaluations
from tunesmith.run.candidates import Templates, inherited, rows_for
from tunesmith.run.ports import Prior, SearchView, Tried
from tunesmith.run.prior import Answers
from tunesmith.run.scores import last_improvement, noise, scores
from tunesmith.run.state import Candidate, State
from tunesmith.run.survey import features
from tunesmith.space.configset import ConfigSet
from tunesmith.space.params import Config
from tunesmith.text import seed_of

BUILDS = 4  # at most so many for each evaluation the budget has
LITTLE = 64  # configurations are all tried, if the budget allows: less is no saving
LEAST = 40  # evaluations before a searcher is believed that there is nothing more to gain,
PER_PARAMETER = 12  # or so many for each parameter,
CONVINCED = 3  # when it says so so often in a row,
STALLED = 0.4  # and this share of the evaluations has found nothing


@dataclass(frozen=True)
class OneSearch:
    """A look at the state with nothing in mind but the candidate that is searched."""

    problem: Problem
    state: State
    templates: Templates

    @property
    def candidate(self) -> Candidate:
        assert self.state.under_way is not None, "nothing is under way"
        return self.state.candidate(self.state.under_way.candidate)

    @property
    def template(self) -> Template:
        return self.templates.of(self.candidate)

    @property
    def configs(self) -> ConfigSet:
        return self.templates.configs(self.candidate)

    @property
    def answers(self) -> Answers:
        return Answers(dict(self.template.answers), self.template.space.params, self.configs)

    def tried(self) -> tuple[Tried, ...]:
        """What came of its configurations."""
        return scores(self.problem, self.state, self.candidate.id)

    def may_build(self) -> int:
        """How many more configurations there are that the budget has room to build."""
        known, left = self._known(), evals_left(self.state)
        unknown = len(self.configs) - known
        if left is None:
            return unknown
        done = evaluations(self.state, candidate=self.candidate.id)
        return max(0, min(unknown, BUILDS * (done + left) - known))

    def ahead(self) -> int:
        """How many are built or being built for what is searched now: those that were asked for under another
        focus stay in the pool, and do not keep others out of it."""
        state = self.state
        moved_after = max((change.asked for change in state.prior_changes if change.moved), default=0)
        if not moved_after:
            return len(state.pool) + len(state.building)
        recent = {t.config for t in state.asked[moved_after:] if t.effort == "build"}
        built = sum(found.config in recent for found in state.pool)
        return built + sum(trial.config in recent for trial in state.building)

    def view(self, pool: tuple[Config, ...] | None) -> SearchView:
        """With a pool all of it is open; without one nothing is that was built or asked for."""
        state, template, own = self.state, self.template, self.candidate.id
        waiting = [t.config for t in (*state.in_flight, *state.building)]
        if pool is None:
            waiting += [found.config for found in state.pool]
        under_way = tuple(dict.fromkeys(config for config in waiting if config is not None))
        # Profiles and priors change no draw: a search that has no prior is the same without them.
        events = state.events - len(state.profiled) - len(state.prior_changes)
        return SearchView(
            space=template.space,
            configs=self.configs,
            default=template.default,
            tried=self.tried(),
            in_flight=under_way,
            closed=frozenset(verdict.config for verdict in state.pruned.of(("of", own))),
            budget_left=evals_left(state) if pool is not None or not state.settings.ahead else None,
            seed=seed_of(state.settings.seed, "ask", events),
            weights=tuple(w.weight for w in self.problem.workloads),
            priors=self._priors(),
            followed=self._followed(),
            asked=state.asked.count(("build" if pool is None and state.settings.ahead else "search", own)),
            pool=pool,
            static={s.config: features(s) for s in state.surveyed.of(("of", own)) if s.config is not None},
            focus=state.focus,
            first=tuple(
                config for p in state.primed for config, _ in rows_for(template, [(c, None) for c in p.first])
            ),
        )

    def sentinel_missing(self) -> bool:
        """Whether the original has not been timed since this kernel was, if it is the only one to time: what
        models need to think about the next one is long enough for a clock to drift."""
        return self.state.asked.last(("of", self.candidate.id)) > self.state.asked.last("sentinel")

    def nothing_left(self) -> str:
        if self._known() >= len(self.configs):
            return "every configuration has been tried"
        if self.state.settings.ahead and not self.may_build():
            return f"the budget of {self._known()} builds is used up"
        return "the search proposes nothing more"

    def nothing_to_gain(self) -> str | None:
        """Whether the searcher expects less than measurements could tell from nothing, and for a good while
        nothing more was found: it is sure of itself sooner than it should be."""
        state, own = self.state, self.candidate.id
        if state.focus is not None:
            return None  # what is expected is expected of a part
        gains = [gain for gain in state.gains[-CONVINCED:] if gain is not None]
        done = state.searched.count(("of", own))
        if len(gains) < CONVINCED or done < max(LEAST, PER_PARAMETER * len(self.template.space.params)):
            return None
        visible = noise(state)
        if max(gains) >= visible / 2 or len(self.configs) <= LITTLE:
            return None
        tried = self.tried()
        since = len(tried) - last_improvement(tried, visible)
        if since < max(LEAST, done * STALLED):
            return None
        return f"more trials are expected to gain {max(gains):.2%}, measurements here can see {visible:.2%}"

    def _followed(self) -> frozenset[Config]:
        """What followed earlier runs when it was last asked for: to be built, or to be measured."""
        asked, own = self.state.asked, self.candidate.id
        if not asked.count(("followed", own)):
            return frozenset()
        last = {t.config: t.followed for t in asked.of(("of", own)) if t.purpose == "search" and t.config}
        return frozenset(config for config, followed in last.items() if followed)

    def _known(self) -> int:
        """Configurations that were built or asked for, or are on the way."""
        return self.state.known.count(("of", self.candidate.id))

    def _priors(self) -> tuple[Prior, ...]:
        """What earlier runs found; then what templates of this run did that have no other parameters."""
        template = self.template
        told = [(primed.name, rows_for(template, primed.rows)) for primed in self.state.primed]
        for other in self.state.candidates:
            if other.status == "searched" and other.id != self.candidate.id:
                rows = [(t.config, t.score) for t in scores(self.problem, self.state, other.id)]
                told.append((f"template {other.id}", inherited(template, rows)))
        return tuple(Prior(name, tuple(rows)) for name, rows in told if any(s is not None for _, s in rows))
