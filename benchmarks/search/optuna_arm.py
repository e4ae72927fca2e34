"""Optuna's TPE over a recorded space, restricted to the feasible configurations."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.search.recorded import Recorded


def run(recorded: Recorded, seed: int, evals: int, until_best: bool = False) -> list[int]:
    """The configurations queried, by number, in order; `until_best` ends it with the optimum.

    Every parameter is a categorical one, which serves TPE better on these spaces than integers do. A
    suggestion that is not feasible or known already becomes the nearest configuration that is feasible and
    new: fewest parameters changed, then the smallest steps. A failed one is told as the slowest time so far.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(sampler=sampler)
    free = [i for i, param in enumerate(recorded.space.params) if len(param.values) > 1]
    names = [recorded.space.params[i].name for i in free]
    tops = np.array([len(recorded.space.params[i].values) - 1 for i in free])
    space: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.CategoricalDistribution(list(range(int(top) + 1)))
        for name, top in zip(names, tops, strict=True)
    }
    positions = recorded.configs.positions()[:, free].astype(np.int64)
    known = np.zeros(len(positions), dtype=bool)
    asked: list[int] = []
    slowest = 0.0
    while len(asked) < evals and not (until_best and recorded.best_number in asked):
        trial = study.ask(space)
        wanted = np.array([trial.params[name] for name in names])
        steps = (positions != wanted).sum(axis=1) + np.abs((positions - wanted) / tops).mean(axis=1)
        number = int(np.argmin(np.where(known, np.inf, steps)))
        known[number] = True
        asked.append(number)
        time = float(recorded.times[number])
        slowest = slowest if np.isnan(time) else max(slowest, time)
        value = float(np.log((slowest or 1.0) if np.isnan(time) else time))
        if not steps[number]:
            study.tell(trial, value)
            continue
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        chosen = {name: int(place) for name, place in zip(names, positions[number], strict=True)}
        study.add_trial(optuna.trial.create_trial(params=chosen, distributions=space, value=value))
    return asked
