"""The default: a model of what was found proposes what may improve most, and looks around the best.

A few configurations far apart open the search. From then on a model of all outcomes is asked about a random
part of the space and what is beside the best: neighbours and, after a while, what exchanges one size for
another (`models.exchanges`). The largest expected improvement wins. What is in flight, or has just been
picked, is taken to turn out as expected, so that a batch does not crowd.

Where there are earlier runs, some of the first evaluations follow them, and for a while the others go on as
if those had found nothing (`transfer`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tunesmith.run.ports import Proposal, SearchView, Tried
from tunesmith.search.models import (
    DRAWN,
    FOLLOWING,
    LEVEL,
    Guide,
    ImprovementModel,
    Numbers,
    OpenConfigs,
    Outcomes,
    apart,
    exchanges,
    most_telling,
)
from tunesmith.search.simple import draw
from tunesmith.space.gaussian_process import Encoding, Matrix, Trend, Vector
from tunesmith.space.params import Config

FAR_FROM = 60  # drawn, of which the farthest from all others is taken
LEADERS = 5  # whose neighbours are always among the candidates
LOCAL_LEADERS = 2
OUTCOMES = 500  # the best ones a model is made of, where there are more
STATIC = 0.3  # deviation of what one figure of the compiler's is expected to do, beside 1 for everything
SOON = 4  # evaluations that the gain is stated for


@dataclass(frozen=True)
class Choices:
    """What a benchmark may vary; see benchmarks/search."""

    opening: int = 8  # configurations far apart before a model is asked
    level: float = LEVEL  # the quantile of the scores below which they all count the same
    local_every: int | None = None  # so many picks, one is among the neighbours of the best alone; None: none
    exchanges_from: int | None = 25  # outcomes on, exchanges with the best are candidates; None: never


class Default:
    name = "default"

    def __init__(self, choices: Choices | None = None) -> None:
        self._choices = choices or Choices()

    def ask(self, view: SearchView, n: int) -> Proposal:
        n = view.room(n)
        first = view.untried_first[:n]
        if n <= len(first):
            return Proposal(first)
        return _Asking(view, first, self._choices).proposal(n - len(first))


class _Asking:
    """One question: what is known, and what has been picked so far."""

    def __init__(self, view: SearchView, first: tuple[Config, ...], choices: Choices) -> None:
        self.view, self.first, self.choices = view, first, choices
        self.rng = np.random.default_rng(view.seed)
        self.field = OpenConfigs(view)
        self.encoding = Encoding.of(view.space)
        self.guide = Guide(view.space, view.priors) if self.encoding.params else None
        pending = (*view.in_flight, *first)
        numbered = [self.field.number(t.config) for t in view.tried]
        numbers = [number for number in numbered if number is not None]
        self.tried = [t for t, number in zip(view.tried, numbered, strict=True) if number is not None]
        self.known = self.field.positions(np.array(numbers, dtype=np.int64))
        self.scores = _scores(self.tried, view.weights)
        self.turn = view.turn + len(first)
        # Whoever tried it: what did not follow is known to all, and counts towards the opening.
        self.alone = sum(c not in view.followed for c in (*(t.config for t in view.tried), *pending))
        hidden = np.array([t.config in view.followed for t in self.tried], dtype=bool)
        self.own = np.flatnonzero(apart(hidden, self.turn))
        self.pending = [number for c in pending if (number := self.field.number(c)) is not None]
        closed = (self.field.number(config) for config in view.closed)
        self.seen = {*self.pending, *numbers, *(number for number in closed if number is not None)}

    def _follows(self, turn: int) -> bool:
        return bool(self.guide) and turn in FOLLOWING

    def proposal(self, n: int) -> Proposal:
        picks: list[int] = []
        followed: set[Config] = set()
        gain: float | None = None
        right = ~np.isnan(self.scores[:, 0])
        while len(picks) < n and self.encoding.params:
            follows = self._follows(self.turn)
            opening = self.alone < self.choices.opening or right[self.own].sum() < 2
            if follows and (opening or right.sum() < 2):
                more = self._modelled(1)[0] if right.sum() >= 2 else self._followed()
            elif opening:
                more = self._farthest()
            else:
                more, gain = self._modelled(n - len(picks))
            if not more:
                break
            for turn, number in enumerate(more, start=self.turn):
                if self._follows(turn):
                    followed.add(self.view.configs[number])
                else:
                    self.alone += 1
            picks += more
            self.seen.update(more)
            self.pending += more
            self.turn += len(more)
        configs = [*self.first, *(self.view.configs[number] for number in picks)]
        if len(picks) < n:  # the draw found nothing new: little is left, or nothing varies
            configs += draw(self.view, n - len(picks), self.rng, {*self.view.seen, *configs})
        return Proposal(tuple(configs), gain, frozenset(followed))

    # -- the opening --------------------------------------------------------------------------------

    def _farthest(self) -> list[int]:
        drawn = self.field.draw(self.rng, FAR_FROM, self.seen)
        if not len(drawn):
            return []
        if not self.seen:
            return [int(self.rng.choice(drawn))]
        main = ~self.encoding.minor[self.encoding.groups]
        here = self.encoding.features(self.field.positions(drawn))[:, main]
        there = self.encoding.features(self.field.positions(np.array(sorted(self.seen))))[:, main]
        distances = np.abs(here[:, None] - there[None]).sum(axis=2).min(axis=1)
        return [int(drawn[int(np.argmax(distances))])]

    def _followed(self) -> list[int]:
        """The best predicted one that differs in two parameters from all that is seen, if there is one."""
        numbers = np.union1d(self.field.draw(self.rng, DRAWN, self.seen), self._best_of_priors())
        if not len(numbers) or self.guide is None:
            return []
        positions = self.field.positions(numbers)
        predicted = self.guide.predictions(positions, self.known, self.scores[:, 0])
        if self.seen:
            others = self.field.positions(np.array(sorted(self.seen)))
            differing = (positions[:, None] != others[None]).sum(axis=2).min(axis=1)
            predicted = np.where(differing < 2, predicted - 1e3, predicted)
        return [int(numbers[int(np.argmax(predicted))])]

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
        follows = [self._follows(self.turn + k) for k in range(n)]
        among = {side: np.arange(len(self.tried)) if side else self.own for side in sorted(set(follows))}
        used = {side: each[most_telling(self.scores[each, 0], OUTCOMES)] for side, each in among.items()}
        around = {side: self._around(keep) for side, keep in used.items()}
        drawn = self.field.draw(self.rng, DRAWN, self.seen)
        priors = self._best_of_priors() if True in used else drawn[:0]
        numbers = np.unique(np.concatenate([drawn, priors, *(x for each in around.values() for x in each)]))
        if not len(numbers):
            return [], None
        open_ = np.arange(len(numbers) + len(self.pending)) < len(numbers)
        numbers = np.concatenate([numbers, self.pending]).astype(np.int64)
        near = {side: np.isin(numbers, np.concatenate(each[:LOCAL_LEADERS])) for side, each in around.items()}
        models = {side: self._model(side, keep, numbers) for side, keep in used.items()}
        for model in models.values():
            for taken in range(len(numbers) - len(self.pending), len(numbers)):
                model.posterior.expect(taken)
        gain = SOON * float(models[False].improvements()[open_].max()) if False in models else None
        picks: list[int] = []
        for turn, side in enumerate(follows[: int(open_.sum())], start=self.turn):
            every = self.choices.local_every
            is_local = every is not None and (turn + 1) % every == 0 and bool(np.any(open_ & near[side]))
            where = open_ & near[side] if is_local else open_
            place = int(np.argmax(np.where(where, models[side].improvements(), -np.inf)))
            open_[place] = False
            picks.append(int(numbers[place]))
            if len(picks) < n:
                for model in models.values():
                    model.posterior.expect(place)
        return picks, gain

    def _around(self, used: Numbers) -> list[Numbers]:
        """What is next to each of the best."""
        order = np.argsort(-np.nan_to_num(self.scores[used, 0], nan=-np.inf), kind="stable")
        return [self._beside(self.tried[i].config) for i in used[order][:LEADERS]]

    def _beside(self, leader: Config) -> Numbers:
        """What differs in one parameter, and what exchanges one size for another."""
        near = self.field.around(leader, self.seen)
        since = self.choices.exchanges_from
        if since is None or len(self.tried) < since:
            return near
        return np.union1d(near, self.field.among(exchanges(self.view.space, leader), self.seen))

    def _model(self, follows: bool, used: Numbers, numbers: Numbers) -> ImprovementModel:
        outcomes = Outcomes(self.view.space, self.known[used], self.scores[used], self.choices.level)
        weights = _weights(self.view.weights, self.scores.shape[1])
        positions = self.field.positions(numbers)
        guide = self.guide if follows and self.guide else None
        trend = None if guide else self._static_trend([self.tried[i].config for i in used], numbers)
        return outcomes.model(positions, weights, trend, guide)

    def _static_trend(self, known: list[Config], numbers: Numbers) -> Trend | None:
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


def _scores(tried: list[Tried], weights: tuple[float, ...]) -> Matrix:
    """The general score and, where there are several workloads, that of each; NaN where it failed."""
    workloads = len(weights) if len(weights) > 1 and any(t.at for t in tried) else 0
    rows = [(t.score, *(t.at or (None,) * workloads)) if workloads else (t.score,) for t in tried]
    return np.array(rows, dtype=np.float64).reshape(len(rows), 1 + workloads)


def _weights(weights: tuple[float, ...], functions: int) -> Vector:
    shares = np.array(weights) / sum(weights) if functions > 1 else np.zeros(0)
    return np.array([1.0, *shares])
