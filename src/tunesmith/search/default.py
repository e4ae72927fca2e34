"""The default: a Gaussian process that proposes what may improve most, and looks around the best.

A few configurations far apart open the search. From then on a model of all outcomes is asked about a random
part of the space and the neighbours of the best, and the largest expected improvement wins; every third
time only neighbours of the two best are compared, because a model is never quite right about details. What
is in flight, or has just been picked, is taken to turn out as expected, so that a batch does not crowd.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tunesmith.core.ports import Proposal, SearchView, Tried
from tunesmith.core.space import Config, Space
from tunesmith.search.acquisition import improvement
from tunesmith.search.candidates import DRAWN, Field, Numbers
from tunesmith.search.encoding import Encoding, Matrix, Positions
from tunesmith.search.gaussian_process import Posterior, Settings, Trend, Vector, fit
from tunesmith.search.random import draw
from tunesmith.search.targets import LEVEL, Targets, targets
from tunesmith.search.transfer import DOUBT, TRUST, Guide, listens

FAR_FROM = 60  # drawn, of which the farthest from all others is taken
LEADERS = 5  # whose neighbours are always among the candidates
LOCAL_LEADERS = 2
OUTCOMES = 500  # the best ones a model is made of, where there are more
FITTED = 60  # outcomes that hyperparameters are fitted to
REFIT_EVERY = 5  # outcomes: between, the same hyperparameters serve
STATIC = 0.3  # deviation of what one figure of the compiler's is expected to do, beside 1 for everything
SOON = 4  # evaluations that the gain is stated for


@dataclass(frozen=True)
class Choices:
    """What a benchmark may vary; see benchmarks/search."""

    opening: int = 8  # configurations far apart before a model is asked
    level: float = LEVEL  # the quantile of the scores below which they all count the same
    local_every: int = 3  # so many picks, one is among the neighbours of the best alone


class Default:
    name = "default"

    def __init__(self, choices: Choices | None = None) -> None:
        self._choices = choices or Choices()

    def ask(self, view: SearchView, n: int) -> Proposal:
        n = view.room(n)
        first = view.untried_default[:n]
        if n <= len(first):
            return Proposal(first)
        return _Asking(view, first, self._choices).proposal(n - len(first))


class _Asking:
    """One question: what is known, and what has been picked so far."""

    def __init__(self, view: SearchView, first: tuple[Config, ...], choices: Choices) -> None:
        self.view, self.first, self.choices = view, first, choices
        self.rng = np.random.default_rng(view.seed)
        self.field = Field(view)
        self.encoding = Encoding.of(view.space)
        pending = (*view.in_flight, *first)
        found = [(number, t) for t in view.tried if (number := self.field.number(t.config)) is not None]
        self.tried = [t for _, t in found]
        numbers = [number for number, _ in found]
        self.known = self.field.positions(np.array(numbers, dtype=np.int64))
        self.scores = _scores(self.tried, view.weights)
        self.pending = [number for c in pending if (number := self.field.number(c)) is not None]
        closed = (self.field.number(config) for config in view.closed)
        self.seen = {*self.pending, *numbers, *(number for number in closed if number is not None)}
        self.guide = Guide(view.space, view.priors) if self.encoding.params else None

    def proposal(self, n: int) -> Proposal:
        picks: list[int] = []
        gain: float | None = None
        right = int(np.sum(~np.isnan(self.scores[:, 0])))
        while len(picks) < n and self.encoding.params:
            if len(self.seen) >= self.choices.opening and right >= 2:
                more, gain = self._modelled(n - len(picks))
            else:
                more = self._opening()
            if not more:
                break
            picks += more
        configs = [*self.first, *(self.view.configs[number] for number in picks)]
        if len(picks) < n:  # the draw found nothing new: little is left, or nothing varies
            configs += draw(self.view, n - len(picks), self.rng, {*self.view.seen, *configs})
        return Proposal(tuple(configs), gain)

    # -- the opening --------------------------------------------------------------------------------

    def _opening(self) -> list[int]:
        """What earlier runs found best is half of it, the rest is far from everything seen."""
        if self.guide and len(self.seen) < self.choices.opening // 2:
            picked = self._followed(self.guide)
        else:
            picked = self._farthest(self.field.draw(self.rng, FAR_FROM, self.seen))
        if picked is None:
            return []
        self.seen.add(picked)
        self.pending.append(picked)
        return [picked]

    def _farthest(self, drawn: Numbers) -> int | None:
        if not len(drawn):
            return None
        if not self.seen:
            return int(self.rng.choice(drawn))
        main = ~self.encoding.minor[self.encoding.groups]
        here = self.encoding.features(self.field.positions(drawn))[:, main]
        there = self.encoding.features(self.field.positions(np.array(sorted(self.seen))))[:, main]
        distances = np.abs(here[:, None] - there[None]).sum(axis=2).min(axis=1)
        return int(drawn[int(np.argmax(distances))])

    def _followed(self, guide: Guide) -> int | None:
        """The best predicted one that differs in two parameters from all that is seen, if there is one."""
        numbers = np.union1d(self.field.draw(self.rng, DRAWN, self.seen), self._best_of_priors())
        if not len(numbers):
            return None
        positions = self.field.positions(numbers)
        predicted = guide.predictions(positions, self.known, self.scores[:, 0])
        if self.seen:
            others = self.field.positions(np.array(sorted(self.seen)))
            differing = (positions[:, None] != others[None]).sum(axis=2).min(axis=1)
            predicted = np.where(differing < 2, predicted - 1e3, predicted)
        return int(numbers[int(np.argmax(predicted))])

    def _best_of_priors(self) -> Numbers:
        """The best of each earlier run that are open here."""
        found: list[int] = []
        for prior in self.view.priors:
            right = [(score, config) for config, score in prior.rows if score is not None]
            best = sorted(right, key=lambda row: -row[0])[:100]
            numbers = [self.field.number(config) for _, config in best]
            found += [number for number in numbers if number is not None and number not in self.seen]
        return self.field.open(np.unique(np.array(found, dtype=np.int64)))

    # -- with a model -------------------------------------------------------------------------------

    def _modelled(self, n: int) -> tuple[list[int], float | None]:
        """Picks by expected improvement, and what the next few may add."""
        keep = _most_telling(self.scores[:, 0], OUTCOMES)
        known, scores = self.known[keep], self.scores[keep]
        made = targets(scores, self.choices.level)
        best = [self.tried[i].config for i in keep[np.argsort(-made.values[:, 0], kind="stable")][:LEADERS]]
        around = [self.field.around(config, self.seen) for config in best]
        local = np.concatenate(around[:LOCAL_LEADERS])
        numbers = np.unique(np.concatenate([self.field.draw(self.rng, DRAWN, self.seen), *around]))
        guided = self.guide if self.guide and any(listens(len(self.seen) + k) for k in range(n)) else None
        if guided:
            numbers = np.union1d(numbers, self._best_of_priors())
        if not len(numbers):
            return [], None
        numbers = np.concatenate([numbers, self.pending]).astype(np.int64)
        positions = self.field.positions(numbers)
        weights = _weights(self.view.weights, scores.shape[1])
        settings = self._settings(known, scores)
        told = self._told([self.tried[i].config for i in keep], numbers)
        own = Posterior(self.encoding, settings, known, made.values, positions, told)
        models = [_Model(own, made, weights)]
        if guided:
            trended = self._guided(guided, settings, known, scores, made, positions)
            models.append(_Model(trended, made, weights))
        for model in models:
            for place in range(len(numbers) - len(self.pending), len(numbers)):
                model.posterior.expect(place)
        open_ = np.ones(len(numbers), dtype=bool)
        open_[len(numbers) - len(self.pending) :] = False
        near = np.isin(numbers, local)
        gain = SOON * float(models[0].improvements()[open_].max())
        picks: list[int] = []
        for _ in range(min(n, int(open_.sum()))):
            turn = len(self.seen)
            model = models[-1] if guided and listens(turn) else models[0]
            is_local = (turn + 1) % self.choices.local_every == 0 and bool(np.any(open_ & near))
            among = open_ & near if is_local else open_
            place = int(np.argmax(np.where(among, model.improvements(), -np.inf)))
            open_[place] = False
            picks.append(int(numbers[place]))
            if len(picks) < n:
                for each in models:
                    each.posterior.expect(place)
            self.seen.add(picks[-1])
        self.pending += picks
        return picks, gain

    def _settings(self, known: Positions, scores: Matrix) -> Settings:
        """Fitted to outcomes up to a round number of them: a question soon after finds the answer ready."""
        count = max(len(known) - len(known) % REFIT_EVERY, 2)
        part = _most_telling(scores[:count, 0], FITTED)
        values = targets(scores[part], self.choices.level).values
        return _fitted(self.view.space, known[part].tobytes(), known.dtype.str, values.tobytes())

    def _told(self, known: list[Config], numbers: Numbers) -> Trend | None:
        """What the compiler says of builds, as a trend: it may matter beyond what the parameters tell."""
        if self.view.pool is None:
            return None
        asked = [*known, *(self.view.configs[int(number)] for number in numbers)]
        rows = [row for config in asked if (row := self.view.static.get(config)) is not None]
        if len(rows) < len(asked):
            return None
        columns = np.log2(2.0 + np.array(rows))  # numbers from -1, which is unknown
        columns -= columns.mean(axis=0)
        spread = columns.std(axis=0)
        columns = STATIC * columns[:, spread > 0] / spread[spread > 0]
        return Trend(columns[: len(known)], columns[len(known) :])

    def _guided(
        self,
        guide: Guide,
        settings: Settings,
        known: Positions,
        scores: Matrix,
        made: Targets,
        positions: Positions,
    ) -> Posterior:
        """With the earlier runs' prediction as a trend: of the expected weight, give or take what our own
        outcomes say."""
        every = guide.predictions(np.concatenate([known, positions]), known, scores[:, 0]) / made.scales[0]
        every -= every[: len(known)].mean()
        there, here = every[: len(known)], every[len(known) :]
        trend = Trend(_with_constant(DOUBT * there), _with_constant(DOUBT * here))
        left = made.values - TRUST * there[:, None]
        posterior = Posterior(self.encoding, settings, known, left, positions, trend)
        posterior.means += TRUST * here[:, None]
        return posterior


class _Model:
    def __init__(self, posterior: Posterior, made: Targets, weights: Vector) -> None:
        self.posterior, self._made, self._weights = posterior, made, weights

    def improvements(self) -> Vector:
        return improvement(self.posterior, self._made, self._weights)


@lru_cache(maxsize=32)  # pure: the same outcomes give the same hyperparameters
def _fitted(space: Space, positions: bytes, kind: str, values: bytes) -> Settings:
    rows = np.frombuffer(positions, dtype=kind).reshape(-1, len(space.params))
    return fit(Encoding.of(space), rows, np.frombuffer(values).reshape(len(rows), -1))


def _scores(tried: list[Tried], weights: tuple[float, ...]) -> Matrix:
    """The general score and, where there are several workloads, that of each; NaN where it failed."""
    workloads = len(weights) if len(weights) > 1 and any(t.at for t in tried) else 0
    rows = [(t.score, *(t.at or (None,) * workloads)) if workloads else (t.score,) for t in tried]
    return np.array(rows, dtype=np.float64).reshape(len(rows), 1 + workloads)


def _weights(weights: tuple[float, ...], functions: int) -> Vector:
    shares = np.array(weights) / sum(weights) if functions > 1 else np.zeros(0)
    return np.array([1.0, *shares])


def _most_telling(scores: Vector, count: int) -> Numbers:
    """Which outcomes to keep, in their order: half of them the best, the rest evenly from the others."""
    order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")
    if len(order) <= count:
        return np.arange(len(order))
    others = order[count // 2 :]
    spread = others[np.linspace(0, len(others) - 1, count - count // 2).astype(np.int64)]
    return np.sort(np.concatenate([order[: count // 2], spread]))


def _with_constant(column: Vector) -> Matrix:
    return np.stack([np.ones(len(column)), column], axis=1)
