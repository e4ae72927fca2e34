"""The default: a model of what was found proposes what may improve most, and looks around the best.

A few configurations far apart open the search. From then on a model of all outcomes is asked about a random
part of the space and what is beside the best: neighbours and, after a while, what exchanges one size for
another (`models.exchange_sizes`). The largest expected improvement wins. What is in flight, or has just been
picked, is taken to turn out as expected, so that a batch does not crowd.

Where there are earlier runs, half of the first picks and most of those after them follow what these foretell,
for a while, and as long as outcomes do not speak against it (`earlier`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tunesmith.run.ports import Proposal, SearchView, Tried
from tunesmith.search.models import (
    DRAWN,
    POWER,
    Foretold,
    ImprovementModel,
    Numbers,
    OpenConfigs,
    Outcomes,
    exchange_sizes,
    most_promising,
    most_telling,
)
from tunesmith.search.simple import draw_unseen
from tunesmith.space.configset import Config
from tunesmith.space.features import Encoding, Matrix, Trend, Vector

if TYPE_CHECKING:
    from tunesmith.search.models import Guide

FAR_FROM = 60  # drawn, of which the farthest from all others is taken
LEADERS = 5  # whose neighbours are always among the candidates
LOCAL_LEADERS = 2
OUTCOMES = 256  # a model is made of, where there are more: the best, and some from all over
STATIC = 0.3  # deviation of what one figure of the compiler's is expected to do, beside 1 for everything
SOON = 4  # evaluations that the gain is stated for
SHORTLIST = 256  # candidates that are compared again after each of several picks,
SHORTLIST_EACH = 4  # or so many for each pick


@dataclass(frozen=True)
class Choices:
    """What a benchmark may vary; see benchmarks/search."""

    opening: int = 8  # configurations far apart before a model is asked
    power: float = POWER  # of a speed beside the best, which a model is made of
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
        pending = (*view.in_flight, *first)
        numbered = [self.field.number(t.config) for t in view.tried]
        numbers = [number for number in numbered if number is not None]
        self.tried = [t for t, number in zip(view.tried, numbered, strict=True) if number is not None]
        self.numbers = np.array(numbers, dtype=np.int64)
        self.known = self.field.positions(self.numbers)
        self.scores = _score_matrix(self.tried, view.weights)
        self.turn = view.turn + len(first)
        self.begun = len(view.tried) + len(pending)  # by whomever: all of it counts towards the opening
        self.guide = _make_guide(view, self.numbers, self.scores[:, 0]) if self.encoding.params else None
        self.pending = [number for c in pending if (number := self.field.number(c)) is not None]
        closed = (self.field.number(config) for config in view.closed)
        self.seen = {*self.pending, *numbers, *(number for number in closed if number is not None)}

    def _is_guided(self, turn: int) -> bool:
        return self.guide is not None and self.guide.is_followed(turn)

    def proposal(self, n: int) -> Proposal:
        picks: list[int] = []
        followed: set[Config] = set()
        gain: float | None = None
        right = ~np.isnan(self.scores[:, 0])
        while len(picks) < n and self.encoding.params:
            opening = self.begun < self.choices.opening or right.sum() < 2
            early = self.guide is not None and self.guide.is_early(self.turn)
            if (opening or early) and self._is_guided(self.turn):
                more = self._followed()
            elif opening:
                more = self._farthest_config()
            else:
                more, gain = self._pick_by_model(1 if early else n - len(picks))
            if not more:
                break
            for turn, number in enumerate(more, start=self.turn):
                if self._is_guided(turn):
                    followed.add(self.view.configs[number])
            picks += more
            self.seen.update(more)
            self.pending += more
            self.turn += len(more)
            self.begun += len(more)
        configs = [*self.first, *(self.view.configs[number] for number in picks)]
        if len(picks) < n:  # the draw found nothing new: little is left, or nothing varies
            configs += draw_unseen(self.view, n - len(picks), self.rng, {*self.view.seen, *configs})
        return Proposal(tuple(configs), gain, frozenset(followed))

    def _farthest_config(self, among: Numbers | None = None) -> list[int]:
        drawn = self.field.draw(self.rng, FAR_FROM, self.seen) if among is None else among
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
        """Of what is foretold to be best one far from all that is seen; the best that is open, if none is."""
        best = self._best_of_priors()
        if len(best):
            return self._farthest_config(self.rng.choice(best, min(len(best), FAR_FROM), replace=False))
        drawn = self.field.draw(self.rng, DRAWN, self.seen)
        if self.guide is None or not len(drawn):
            return []
        return [int(drawn[int(np.argmax(self.guide.order(drawn)))])]

    def _best_of_priors(self) -> Numbers:
        """What earlier runs foretell to be best, as far as it is open here."""
        if self.guide is None:
            return np.zeros(0, dtype=np.int64)
        best = self.field.open(self.guide.best())
        return best[~np.isin(best, list(self.seen))]

    def _pick_by_model(self, n: int) -> tuple[list[int], float | None]:
        """Picks by expected improvement, and what the next few may add."""
        follows = [self._is_guided(self.turn + k) for k in range(n)]
        used = {side: most_telling(self.scores[:, 0], OUTCOMES) for side in sorted(set(follows))}
        around = {side: self._neighbours_of_best(keep) for side, keep in used.items()}
        drawn = self.field.draw(self.rng, DRAWN, self.seen)
        priors = self._best_of_priors() if True in used else drawn[:0]
        numbers = np.unique(np.concatenate([drawn, priors, *(x for each in around.values() for x in each)]))
        if not len(numbers):
            return [], None
        pending = np.arange(len(numbers), len(numbers) + len(self.pending))
        numbers = np.concatenate([numbers, self.pending]).astype(np.int64)
        near = {side: np.isin(numbers, np.concatenate(each[:LOCAL_LEADERS])) for side, each in around.items()}
        models = {side: self._model(side, keep, numbers) for side, keep in used.items()}
        for model in models.values():
            model.posterior.expect(pending)
        worth = {side: model.improvements() for side, model in models.items()}
        for each in worth.values():
            each[pending] = -np.inf
        gain = SOON * models[False].most(worth[False] > -np.inf) if False in models else None
        if n == 1:
            return [int(numbers[self._best_place(self.turn, worth[follows[0]], near[follows[0]])])], gain
        kept = _shortlist_numbers(n, worth, near)
        numbers, near = numbers[kept], {side: each[kept] for side, each in near.items()}
        joint = {side: model.posterior.joint(kept) for side, model in models.items()}
        taken: list[int] = []
        for turn, side in enumerate(follows[: len(numbers)], start=self.turn):
            now = models[side].improvements(joint[side])
            now[taken] = -np.inf
            taken.append(self._best_place(turn, now, near[side]))
            for each_side in joint.values():
                each_side.expect(taken[-1])
        return numbers[taken].tolist(), gain

    def _best_place(self, turn: int, worth: Vector, near: NDArray[np.bool_]) -> int:
        """Every so many turns of those near the best alone, if any of them is open."""
        local, every = np.where(near, worth, -np.inf), self.choices.local_every
        is_local = every is not None and (turn + 1) % every == 0 and local.max() > -np.inf
        return int(np.argmax(local if is_local else worth))

    def _neighbours_of_best(self, used: Numbers) -> list[Numbers]:
        order = np.argsort(-np.nan_to_num(self.scores[used, 0], nan=-np.inf), kind="stable")
        return [self._beside(self.tried[i].config) for i in used[order][:LEADERS]]

    def _beside(self, leader: Config) -> Numbers:
        """What differs in one parameter, and what exchanges one size for another."""
        near = self.field.around(leader, self.seen)
        since = self.choices.exchanges_from
        if since is None or len(self.tried) < since:
            return near
        return np.union1d(near, self.field.among(exchange_sizes(self.view.space, leader), self.seen))

    def _model(self, follows: bool, used: Numbers, numbers: Numbers) -> ImprovementModel:
        outcomes = Outcomes(self.view.space, self.known[used], self.scores[used], self.choices.power)
        weights = _function_weights(self.view.weights, self.scores.shape[1])
        positions = self.field.positions(numbers)
        trend = self._static_trend([self.tried[i].config for i in used], numbers)
        foretold = None
        if follows and self.guide is not None:
            foretold = Foretold(self.guide.filter(self.numbers[used]), self.guide.filter(numbers))
        return outcomes.model(positions, weights, trend, foretold)

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


def _make_guide(view: SearchView, known: Numbers, scores: Vector) -> Guide | None:
    if not view.priors:
        return None
    from tunesmith.search.models import Guide  # which few runs need

    return Guide(view.space, view.configs, view.priors, known, scores)


def _shortlist_numbers(
    n: int, worth: Mapping[bool, Vector], near: Mapping[bool, NDArray[np.bool_]]
) -> Numbers:
    """Of the candidates those that may be among n picks: the most promising, of all and of those near."""
    count = max(SHORTLIST, SHORTLIST_EACH * n)
    kept = [most_promising(each, count) for each in worth.values()]
    kept += [most_promising(np.where(near[side], each, -np.inf), count) for side, each in worth.items()]
    return np.unique(np.concatenate(kept))


def _score_matrix(tried: list[Tried], weights: tuple[float, ...]) -> Matrix:
    """The general score and, where there are several workloads, that of each; NaN where it failed."""
    workloads = len(weights) if len(weights) > 1 and any(t.at for t in tried) else 0
    rows = [(t.score, *(t.at or (None,) * workloads)) if workloads else (t.score,) for t in tried]
    return np.array(rows, dtype=np.float64).reshape(len(rows), 1 + workloads)


def _function_weights(weights: tuple[float, ...], functions: int) -> Vector:
    shares = np.array(weights) / sum(weights) if functions > 1 else np.zeros(0)
    return np.array([1.0, *shares])
