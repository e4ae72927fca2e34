"""Searchers without a model of ours: at random, everything in turn, evolution, and Optuna's."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from tunesmith.base.errors import BadInput
from tunesmith.run.ports import Proposal, Searcher, SearchView
from tunesmith.search.models import DRAWN, LISTED, OpenConfigs
from tunesmith.space.configset import Config
from tunesmith.space.space import OUTSIDE_EVERY, Side

TRIES = 64  # misses in a row before looking through everything that is left
OPENING = 12  # random configurations before the first child
PARENTS = 8
STRANGERS = 0.1  # of what is asked is random, so that a lost value can come back
CHILD_TRIES = 50  # children that are not feasible or known already before a random one takes the place


class Random:
    """Drawn at random from the feasible configurations."""

    name = "random"

    def ask(self, view: SearchView, n: int) -> Proposal:
        first = view.untried_first[: view.room(n)]
        rng = np.random.default_rng(view.seed)
        return Proposal((*first, *draw_unseen(view, view.room(n) - len(first), rng, {*view.seen, *first})))


def draw_unseen(view: SearchView, n: int, rng: np.random.Generator, seen: set[Config]) -> list[Config]:
    """Up to n unseen configurations; adds them to `seen`."""
    found: list[Config] = []
    everything = view.open
    total = len(everything)
    misses = 0
    while len(found) < n and misses < TRIES and total:
        config = everything[int(rng.integers(total))]
        if config in seen:
            misses += 1
            continue
        misses = 0
        seen.add(config)
        found.append(config)
    if len(found) < n:
        # Almost everything has been tried: list what is left, which is cheap by then.
        left = [c for c in everything if c not in seen]
        for i in rng.permutation(len(left))[: n - len(found)]:
            seen.add(left[int(i)])
            found.append(left[int(i)])
    return found


class Exhaustive:
    """Every feasible configuration once, in the order of the space."""

    name = "exhaustive"

    def ask(self, view: SearchView, n: int) -> Proposal:
        first = view.untried_first
        seen = view.seen.union(first)
        rest = (config for config in view.open if config not in seen)
        return Proposal(tuple(islice(chain(first, rest), view.room(n))))


class Evolution:
    """Children of the best so far, crossed and changed a little."""

    name = "evolution"

    def ask(self, view: SearchView, n: int) -> Proposal:
        rng = np.random.default_rng(view.seed)
        n = view.room(n)
        found = list(view.untried_first[:n])
        seen = {*view.seen, *found}
        scored = [(t.score, t.config) for t in view.tried if t.score is not None]
        parents = [config for _, config in sorted(scored, key=lambda pair: -pair[0])[:PARENTS]]
        while len(found) < n:
            child = None
            if len(seen) >= OPENING and len(parents) > 1 and rng.random() >= STRANGERS:
                child = self._breed_child(view, parents, seen, rng)
            more = draw_unseen(view, 1, rng, seen) if child is None else [child]
            if not more:
                break
            seen.update(more)
            found += more
        return Proposal(tuple(found))

    def _breed_child(
        self, view: SearchView, parents: list[Config], seen: set[Config], rng: np.random.Generator
    ) -> Config | None:
        """Each value from one of two parents, the better ones likelier; then one parameter, sometimes more,
        takes a neighbouring value."""
        likelihood = np.arange(len(parents), 0, -1, dtype=np.float64)
        likelihood /= likelihood.sum()
        changes = 1.5 / max(len(view.space.params), 1)
        for _ in range(CHILD_TRIES):
            one, two = (parents[int(i)] for i in rng.choice(len(parents), 2, replace=False, p=likelihood))
            values: dict[str, int] = {}
            for param in view.space.params:
                value = (one if rng.random() < 0.5 else two)[param.name]
                near = param.neighbours(value)
                values[param.name] = int(rng.choice(near)) if near and rng.random() < changes else value
            child = Config(tuple(values.items()), view.space.candidate)
            if child not in seen and child in view.open:
                return child
        return None


class Tpe:
    """Optuna's TPE, restricted to the feasible configurations. Needs the extra `optuna`."""

    name = "tpe"

    def ask(self, view: SearchView, n: int) -> Proposal:
        """A suggestion that is not feasible or known already becomes the nearest of what is drawn (of
        everything, where the space is small): fewest parameters changed, then the smallest steps."""
        optuna = _import_optuna()
        n = view.room(n)
        found = list(view.untried_first[:n])
        params = [param for param in view.space.params if len(param.values) > 1]
        field = OpenConfigs(view)
        rng = np.random.default_rng(view.seed)
        seen = {i for config in (*view.seen, *found) if (i := field.number(config)) is not None}
        varying = [i for i, param in enumerate(view.space.params) if len(param.values) > 1]
        tops = np.array([len(param.values) - 1 for param in params])
        if params and len(found) < n:
            sampler = optuna.samplers.TPESampler(seed=int(rng.integers(2**31)))
            study = optuna.create_study(direction="maximize", sampler=sampler)
            space = {
                param.name: optuna.distributions.CategoricalDistribution(list(range(len(param.values))))
                for param in params
            }
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for config, score in _observed_scores(view):
                    places = {param.name: param.positions[config[param.name]] for param in params}
                    made = optuna.trial.create_trial(params=places, distributions=space, value=score)
                    study.add_trial(made)
                while len(found) < n:
                    numbers = field.draw(rng, LISTED if field.pool is not None else DRAWN, seen)
                    if not len(numbers):
                        break
                    trial = study.ask(space)
                    wanted = np.array([trial.params[param.name] for param in params])
                    apart = field.positions(numbers)[:, varying].astype(np.int64) - wanted
                    steps = (apart != 0).sum(axis=1) + np.abs(apart / tops).mean(axis=1)
                    number = int(numbers[int(np.argmin(steps))])
                    seen.add(number)
                    found.append(view.configs[number])
        if len(found) < n:
            found += draw_unseen(view, n - len(found), rng, {*view.seen, *found})
        return Proposal(tuple(found))


def _observed_scores(view: SearchView) -> list[tuple[Config, float]]:
    """What failed counts as the worst score, what is in flight as the middle one."""
    right = [t.score for t in view.tried if t.score is not None] or [0.0]
    done = [(t.config, min(right) if t.score is None else t.score) for t in view.tried]
    return [*done, *((config, float(np.median(right))) for config in view.in_flight)]


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        hint = "pip install 'tunesmith[optuna]', or choose another --search"
        raise BadInput("the search 'tpe' needs Optuna, which is not installed here", hint=hint) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class Focused:
    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        self.name = searcher.name

    def ask(self, view: SearchView, n: int) -> Proposal:
        if view.focus is None:
            return self._searcher.ask(view, n)
        n = view.room(n)
        picks: list[Config] = list(view.untried_first[:n])
        turns = range(len(view.seen) + len(picks), len(view.seen) + n)
        outside = sum(turn % OUTSIDE_EVERY == OUTSIDE_EVERY - 1 for turn in turns)
        gains: list[float | None] = []
        followed: frozenset[Config] = frozenset()
        asked = view.with_asked(Proposal(tuple(picks)))
        shares: list[tuple[Side, int]] = [("inside", len(turns) - outside), ("outside", outside)]
        # Whatever one side cannot give, the other does.
        for side, count in (*shares, ("outside", n), ("inside", n)):
            wanted = min(count, n - len(picks))
            if wanted <= 0:
                continue
            found = self._searcher.ask(replace(asked.on(side), budget_left=wanted), wanted)
            asked = asked.with_asked(found)
            picks += found.configs
            gains.append(found.gain)
            followed |= found.followed
        known = [gain for gain in gains if gain is not None]
        return Proposal(tuple(picks), max(known) if known else None, followed)
