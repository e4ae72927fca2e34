"""Optuna's TPE, restricted to the feasible configurations. Needs the extra `optuna`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tunesmith.errors import BadInput
from tunesmith.run.ports import Proposal, SearchView
from tunesmith.search.models import DRAWN, LISTED, OpenConfigs
from tunesmith.search.simple import draw
from tunesmith.space.params import Config


class Tpe:
    name = "tpe"

    def ask(self, view: SearchView, n: int) -> Proposal:
        """A suggestion that is not feasible or known already becomes the nearest of what is drawn (of
        everything, where the space is small): fewest parameters changed, then the smallest steps."""
        optuna = _optuna()
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
                for config, score in _observed(view):
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
            found += draw(view, n - len(found), rng, {*view.seen, *found})
        return Proposal(tuple(found))


def _observed(view: SearchView) -> list[tuple[Config, float]]:
    """What failed counts as the worst score, what is in flight as the middle one."""
    right = [t.score for t in view.tried if t.score is not None] or [0.0]
    done = [(t.config, min(right) if t.score is None else t.score) for t in view.tried]
    return [*done, *((config, float(np.median(right))) for config in view.in_flight)]


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        hint = "pip install 'tunesmith[optuna]', or choose another --search"
        raise BadInput("the search 'tpe' needs Optuna, which is not installed here", hint=hint) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
