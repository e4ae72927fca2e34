"""Kernel Tuner's strategies over a recorded space: its own code, with a runner that looks times up."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

from benchmarks.search.recorded import Recorded

STRATEGIES = ("genetic_algorithm", "simulated_annealing", "adaptive_tabu_greywolf", "hybrid_vndx")

# Its annealing schedule is scaled to a temperature below the one where it stops, and ends at 3/4 of the
# evaluations it is told of. It is told of 4/3, so that it uses them all.
_TOLD = {"simulated_annealing": 4 / 3}


def run(recorded: Recorded, strategy: str, seed: int, evals: int) -> list[int]:
    """The configurations queried, by number, in order; each counted once, as often as it is asked for."""
    from kernel_tuner import util
    from kernel_tuner.interface import Options, strategy_map
    from kernel_tuner.runners.runner import Runner
    from kernel_tuner.searchspace import Searchspace

    names = [param.name for param in recorded.space.params]
    rows = [tuple(row) for row in recorded.rows.tolist()]
    numbers = {row: number for number, row in enumerate(rows)}
    asked: dict[int, None] = {}

    class Lookup(Runner):  # type: ignore[misc]
        def run(self, parameter_space, tuning_options):  # type: ignore[no-untyped-def]
            results: list[dict[str, Any] | None] = []
            for element in parameter_space:
                if tuning_options.budget.is_done():
                    results.append(None)
                    continue
                number = numbers[tuple(element)]
                if number not in asked:
                    asked[number] = None
                    tuning_options.budget.add_evaluations(1)
                result = dict(zip(names, element, strict=True))
                time = recorded.times[number]
                if np.isnan(time):
                    result["__error__"] = util.RuntimeFailedConfig()
                result["time"] = float(time)
                results.append(result)
            return results

        def get_device_info(self):  # type: ignore[no-untyped-def]
            return None

        def get_environment(self, tuning_options):  # type: ignore[no-untyped-def]
            return {}

    # A fresh space for every run: one that is shared remembers the neighbours that earlier runs looked up.
    cache = {str(number): dict(zip(names, row, strict=True)) for number, row in enumerate(rows)}
    params = {param.name: list(param.values) for param in recorded.space.params}
    told = round(evals * _TOLD.get(strategy, 1))
    options = Options(
        strategy_options=Options(max_fevals=told),
        objective=["time"],
        objective_higher_is_better=[False],
        budget=util.TuningBudget(None, evals),
        tune_params=params,
        restrictions=[],
        verbose=False,
        cache={},
    )
    random.seed(seed)
    np.random.seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        space = Searchspace(None, None, None, from_cache={"tune_params": params, "cache": cache})
        strategy_map[strategy].tune(space, Lookup(), options)
    return list(asked)[:evals]
