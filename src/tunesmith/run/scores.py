"""How good a configuration is by its short measurements, and what that makes of a search.

A score is a log speed-up over the original around it. `OneSearch` is what the searcher of a candidate sees,
how much there is to build, and when it ends.
"""

from __future__ import annotations

import math
from bisect import bisect, bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from tunesmith.base.text import seed_of
from tunesmith.problem.problem import Problem
from tunesmith.problem.template import Template
from tunesmith.run.budget import count_evaluations, evals_left
from tunesmith.run.candidates import Templates, inherit_rows, rows_for
from tunesmith.run.events import Pruned, Surveyed
from tunesmith.run.outcome import Outcome, geometric_mean, median
from tunesmith.run.ports import Prior, SearchView, Tried
from tunesmith.run.state import Candidate, Shared, State
from tunesmith.space.configset import Config, ConfigSet

T = TypeVar("T")
Make = Callable[[Config, dict[str, float]], T]  # of a configuration and its speed-ups by workload

MAX = 30.0  # of a log speed-up, either way: a factor of 10**13
LEAST_NOISE = 0.002  # no clock here is better than that
USUAL_NOISE = 0.01  # as long as nobody knows
SENTINELS = 3  # that tell the noise
NEAREST = 5  # sentinels that tell the original's time around a trial: drift is slow, noise is not


class SpeedupScale:
    """The original's time around each trial: the median of the nearest sentinels forgives an outlier. Where a
    run has several devices, of the one that the trial ran on."""

    def __init__(self, state: State) -> None:
        sentinels, several = state.sentinels, state.enlisted is not None
        # By workload, or by workload and device.
        keys = [key for key in sentinels.shared.places if isinstance(key, tuple) is several]
        self._known = {key: sorted(sentinels.of(key), key=_trial_number) for key in keys}
        self._medians: dict[tuple[Hashable, int], float] = {}
        self._several = several

    def seconds(self, workload: str, trial: int, device: str = "") -> float:
        key: Hashable = (workload, device) if self._several else workload
        known = self._known.get(key, ())
        if not known and self._several:
            return self._as_others(workload, trial, device)
        if not known:
            raise KeyError(workload)
        after = bisect(known, trial, key=_trial_number)
        start = max(0, min(after - NEAREST // 2, len(known) - NEAREST))
        if (key, start) not in self._medians:
            results = [outcome.result(workload) for outcome in known[start : start + NEAREST]]
            self._medians[key, start] = median([r.timing.seconds for r in results if r and r.timing])
        return self._medians[key, start]

    def _as_others(self, workload: str, trial: int, device: str) -> float:
        """Of a device that has not timed the original there: what others take, times how much slower than
        each of them it is elsewhere."""
        places = [key for key in self._known if isinstance(key, tuple)]
        here = [name for name, other in places if other == device]
        found = []
        for other in (other for name, other in places if name == workload):
            both = [name for name in here if (name, other) in places]
            slower = [self.seconds(n, trial, device) / self.seconds(n, trial, other) for n in both]
            found.append(self.seconds(workload, trial, other) * geometric_mean(slower or [1.0]))
        if not found:
            raise KeyError(workload)
        return median(found)

    def speedups(self, outcome: Outcome) -> dict[str, float]:
        return {
            r.workload: self.seconds(r.workload, outcome.trial.id, outcome.device) / r.timing.seconds
            for r in outcome.results
            if r.timing is not None
        }

    def settled_before(self) -> float:
        """No further sentinel changes what the trials before this number are compared with."""
        known = self._known.values()
        if any(len(found) < NEAREST for found in known):
            return -math.inf
        return min((found[-1 - NEAREST // 2].trial.id for found in known), default=-math.inf)


def _trial_number(outcome: Outcome) -> int:
    return outcome.trial.id


def overall_score(problem: Problem, found: dict[str, float]) -> float | None:
    """Log of the weighted geometric mean; the original stays (1.0) where a configuration cannot run."""
    return _mean_log([(w.name, w.weight) for w in problem.workloads], found) if found else None


def weighted_mean(state: State, found: Mapping[str, float]) -> float:
    """The same as a ratio, for those who have no problem at hand; 0: it ran nowhere."""
    weights = dict(state.started.weights) if state.started is not None else {}
    timed = state.baseline.outcome.results if state.baseline is not None else ()
    names = [r.workload for r in timed] or list(found)
    return math.exp(_mean_log([(name, weights.get(name, 1.0)) for name in names], found)) if found else 0.0


def _mean_log(weights: Sequence[tuple[str, float]], found: Mapping[str, float]) -> float:
    logs = [weight * _clipped_log(found.get(name, 1.0)) for name, weight in weights]
    return sum(logs) / sum(weight for _, weight in weights)


def _clipped_log(speedup: float) -> float:
    """Clipped: one absurd figure must not blind a model to all the others. Below zero there is none."""
    return max(-MAX, min(MAX, math.log(speedup) if speedup else -math.inf))


def score_configs(problem: Problem, state: State, candidate: str | None = None) -> tuple[Tried, ...]:
    """Every configuration tried, in order, of one candidate or of all; None where it failed, tried or not."""
    names = tuple(w.name for w in problem.workloads)

    def tried(config: Config, found: dict[str, float]) -> Tried:
        at = tuple(_clipped_log(found[name]) if name in found else None for name in names)
        return Tried(config, overall_score(problem, found), at)

    kind = (names, tuple(w.weight for w in problem.workloads), candidate)
    unable = state.unable if candidate is None else state.unable.of(("of", candidate))
    nothing = (None,) * len(names)
    first = [Tried(s.config, None, nothing) for s in unable if s.config is not None]
    return tuple(first) + tuple(_each_tried(state, kind, tried, candidate))


@dataclass(frozen=True)
class BestTried:
    """By short measurements: nothing is verified."""

    speedup: float  # geometric mean
    config: Config
    at: dict[str, float]  # speed-ups, by workload


def ranked_tried(state: State) -> list[BestTried]:
    """Every configuration tried, in order, with what short measurements gave; 0 where it failed."""
    return _each_tried(state, "best", lambda c, found: BestTried(weighted_mean(state, found), c, found))


class _Book(Generic[T]):
    """Something computed for each configuration tried. All but the last of it no later sentinel can change,
    so it is computed once for all versions of a state."""

    def __init__(self, tried: Shared[Outcome]) -> None:
        self.tried = tried
        self.rows: list[T] = []
        self._highest: list[int] = []  # number of a trial up to each row
        self._sentinels = -1
        self._settled = -math.inf

    def fill(self, state: State, outcomes: Sequence[Outcome], make: Make[T]) -> None:
        if self._sentinels != len(state.sentinels):
            self._sentinels, self._yardstick = len(state.sentinels), SpeedupScale(state)
            before, self._settled = self._settled, self._yardstick.settled_before()
            same = bisect_left(self._highest, min(before, self._settled))
            del self.rows[same:], self._highest[same:]
        for place in range(len(self.rows), len(outcomes)):
            trial = outcomes[place].trial
            assert trial.config is not None, "the original is a sentinel, and nothing else"
            self.rows.append(make(trial.config, self._yardstick.speedups(outcomes[place])))
            self._highest.append(max(trial.id, self._highest[-1] if self._highest else trial.id))


# By what all versions of a state share as long as no two of them differ in a sentinel.
_BOOKS: WeakKeyDictionary[Shared[Outcome], dict[Hashable, Any]] = WeakKeyDictionary()


def _each_tried(state: State, kind: Hashable, make: Make[T], candidate: str | None = None) -> list[T]:
    books, tried = _BOOKS.setdefault(state.sentinels.shared, {}), state.searched
    book: _Book[T] | None = books.get(kind)
    if book is None or book.tried is not tried.shared:
        book = books[kind] = _Book(tried.shared)
    outcomes = tried if candidate is None else tried.of(("of", candidate))
    book.fill(state, outcomes, make)
    return book.rows[: len(outcomes)]


def measurement_noise(state: State) -> float:
    """Relative: how far apart two short measurements of the same kernel are, by those of the original."""
    times: dict[Hashable, list[float]] = {}
    for outcome in state.sentinels:
        device = outcome.device if state.enlisted is not None else ""  # two devices differ by more than noise
        for result in outcome.results:
            if result.timing is not None and outcome.trial.effort == "short":
                times.setdefault((result.workload, device), []).append(math.log(result.timing.seconds))
    spreads = [
        median([abs(b - a) for a, b in pairwise(logs)]) for logs in times.values() if len(logs) >= SENTINELS
    ]
    return max(LEAST_NOISE, median(spreads)) if spreads else USUAL_NOISE


def last_improvement(tried: Sequence[Tried], least: float) -> int:
    """How many had been tried when last one was better than all before it, in general or at a workload."""
    best: dict[int, float] = {}
    last = 0
    for number, one in enumerate(tried, 1):
        for place, value in enumerate((one.score, *one.at)):
            if value is not None and value > best.get(place, -math.inf):
                if value > best.get(place, -math.inf) + least:
                    last = number
                best[place] = value
    return last


WITNESSES = 4  # measured configurations it takes to condemn the others like them
FAR = 0.25  # log: how far behind the best, at every workload, each of them is
LOW = 25  # per cent of occupancy: from there on nobody is condemned for it


def prune_pool(state: State, tried: Callable[[], Sequence[Tried]]) -> Iterator[Pruned]:
    """All that can be said now of those waiting to be measured. `tried` is called where it matters."""
    # What another template built and never measured vouches for nobody.
    candidates = {found.config.candidate for found in state.pool if found.config is not None}

    def vouches(config: Config) -> bool:
        return config.candidate in candidates or bool(state.searched.count(config))

    witnesses: list[_Witness] | None = None
    for found in state.pool:
        config = found.config
        if config is None:
            continue
        if found.unable:
            why = found.refused[0]
            yield Pruned(config, "cannot_run", f"{why.status}: {why.detail}")
            continue
        alike = (other.config for other in state.surveyed.of(found.what_runs))
        twin = next(other for other in alike if other is not None and vouches(other))
        if twin != config:
            name = twin if twin.candidate == config.candidate else twin.label
            yield Pruned(config, "same_code", f"builds and launches the same as {name}")
        elif (found.most("spills") or 0) or (found.most("occupancy") or LOW) < LOW:
            if witnesses is None:
                known = [t for t in tried() if vouches(t.config) and state.surveyed.count(t.config)]
                witnesses = _find_witnesses(known, {t.config: state.surveyed.of(t.config)[-1] for t in known})
            if verdict := _condemn_config(config, found, witnesses):
                yield verdict


@dataclass(frozen=True)
class _Witness:
    """A configuration that was measured, and whether it is far behind the best at every workload."""

    spills: int
    occupancy: int | None
    is_far: bool


def _find_witnesses(tried: Sequence[Tried], built: Mapping[Config, Surveyed]) -> list[_Witness]:
    measured = [t for t in tried if t.config in built and t.score is not None]
    places = range(len(measured[0].at)) if measured else range(0)
    values = [[v for t in measured if (v := t.at[place]) is not None] for place in places]
    best = [max(at, default=0.0) for at in values]
    return [
        _Witness(
            built[t.config].most("spills") or 0,
            built[t.config].most("occupancy"),
            all(here is None or here <= best[place] - FAR for place, here in enumerate(t.at)),
        )
        for t in measured
    ]


def _condemn_config(config: Config, found: Surveyed, witnesses: Sequence[_Witness]) -> Pruned | None:
    spills = found.most("spills") or 0
    alike = [w for w in witnesses if 0 < w.spills <= spills]
    if len(alike) >= WITNESSES and all(w.is_far for w in alike):
        words = (
            f"spills {spills} bytes of registers; the {len(alike)} measured that spill no more are all far"
        )
        return Pruned(config, "spills", f"{words} behind the best at every workload")
    share = found.most("occupancy")
    if share is None or share >= LOW:
        return None
    alike = [w for w in witnesses if w.occupancy is not None and share <= w.occupancy < LOW]
    if len(alike) >= 2 * WITNESSES and all(w.is_far for w in alike):
        words = f"{share} % occupancy; the {len(alike)} measured from there up to {LOW} % are all far"
        return Pruned(config, "occupancy", f"{words} behind the best at every workload")
    return None


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

    def tried(self) -> tuple[Tried, ...]:
        return score_configs(self.problem, self.state, self.candidate.id)

    @property
    def outcome_count(self) -> int:
        return self.state.searched.count(("of", self.candidate.id))

    def may_build(self) -> int:
        """How many more configurations there are that the budget has room to build."""
        known, left = self._known(), evals_left(self.state)
        unknown = len(self.configs) - known
        if left is None:
            return unknown
        done = count_evaluations(self.state, candidate=self.candidate.id)
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
        state, template, candidate = self.state, self.template, self.candidate.id
        waiting = [t.config for t in (*state.in_flight, *state.building)]
        if pool is None:
            waiting += [found.config for found in state.pool]
        under_way = tuple(dict.fromkeys(config for config in waiting if config is not None))
        # Profiles, priors and instructions change no draw: a search is the same without them.
        events = state.events - len(state.profiled) - len(state.prior_changes) - len(state.instructed)
        first = ((config, None) for primed in state.primed for config in primed.first)
        picked = "build" if pool is None and state.settings.ahead else "search"
        built = state.surveyed.of(("of", candidate))
        return SearchView(
            space=template.space,
            configs=self.configs,
            default=template.default,
            tried=self.tried(),
            in_flight=under_way,
            closed=frozenset(verdict.config for verdict in state.pruned.of(("of", candidate))),
            budget_left=evals_left(state) if pool is not None or not state.settings.ahead else None,
            seed=seed_of(state.settings.seed, "ask", events),
            weights=tuple(w.weight for w in self.problem.workloads),
            priors=self._search_priors(),
            asked=state.asked.count((picked, candidate)),
            pool=pool,
            static={one.config: one.features for one in built if one.config is not None},
            focus=state.focus,
            first=tuple(config for config, _ in rows_for(template, list(first))),
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
        state, candidate = self.state, self.candidate.id
        if state.focus is not None:
            return None  # what is expected is expected of a part
        gains = [gain for gain in state.gains[-CONVINCED:] if gain is not None]
        done = state.searched.count(("of", candidate))
        if len(gains) < CONVINCED or done < max(LEAST, PER_PARAMETER * len(self.template.space.params)):
            return None
        visible = measurement_noise(state)
        if max(gains) >= visible / 2 or len(self.configs) <= LITTLE:
            return None
        tried = self.tried()
        since = len(tried) - last_improvement(tried, visible)
        if since < max(LEAST, done * STALLED):
            return None
        return f"more trials are expected to gain {max(gains):.2%}, measurements here can see {visible:.2%}"

    def _known(self) -> int:
        """Configurations that were built or asked for, or are on the way."""
        return self.state.known.count(("of", self.candidate.id))

    def _search_priors(self) -> tuple[Prior, ...]:
        """What earlier runs found; then what templates of this run did that have no other parameters."""
        template = self.template
        known = [(primed.name, rows_for(template, primed.rows)) for primed in self.state.primed]
        for other in self.state.candidates:
            if other.status == "searched" and other.id != self.candidate.id:
                rows = [(t.config, t.score) for t in score_configs(self.problem, self.state, other.id)]
                known.append((f"template {other.id}", inherit_rows(template, rows)))
        return tuple(Prior(name, tuple(rows)) for name, rows in known if any(s is not None for _, s in rows))
