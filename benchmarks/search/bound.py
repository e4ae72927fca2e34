"""How much of what a search lacks is for want of knowing which parameters matter.

    python -m benchmarks.search.bound FOLDER --out RESULTS [--seeds 20] [--evals 50] [--jobs 2]

The default search with hyperparameters fitted to the recorded space itself, which no search can know: `ROWS`
of its configurations, half of them the best ones. What it still lacks is not for the hyperparameters to mend.
Writes RESULTS/bound.jsonl and prints its figures.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.search.compare import spaces
from benchmarks.search.our_arm import trace
from benchmarks.search.recorded import nearness
from tunesmith.search import models
from tunesmith.search.default import Default
from tunesmith.space import features as gp

ROWS = 300
BUDGETS = (25, 50, 100, 200)


@cache
def told(folder: Path, name: str) -> gp.Hyperparameters:
    recorded = spaces(folder)[name]
    scores = np.array([np.nan if score is None else score for score in recorded.scores])
    order = np.random.default_rng(0).permutation(len(scores))
    part = order[models.most_telling(scores[order], ROWS)]
    made = models.speed_targets(scores[part][:, None])
    return gp.fit_hyperparameters(
        gp.Encoding.of(recorded.space), recorded.configs.positions(part), made.values
    )


def work(job: tuple[Path, str, int, int]) -> tuple[str, int, list[int]]:
    folder, name, seed, evals = job
    settings = told(folder, name)
    with mock.patch.object(models, "_fitted", return_value=settings):
        return name, seed, trace(Default(), spaces(folder)[name], seed, evals, until_best=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="the recorded spaces, *.json.gz")
    parser.add_argument("--out", type=Path, required=True, help="where results go")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--evals", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    found = spaces(given.folder)
    jobs = [(given.folder, name, seed, given.evals) for seed in range(given.seeds) for name in found]
    curves: dict[str, list[list[float]]] = {name: [] for name in found}
    budgets = [budget for budget in BUDGETS if budget <= given.evals]
    with (
        ProcessPoolExecutor(given.jobs, initializer=threadpool_limits, initargs=(1,)) as pool,
        (given.out / "bound.jsonl").open("w") as file,
    ):
        for name, seed, asked in pool.map(work, jobs):
            file.write(json.dumps({"space": name, "seed": seed, "asked": asked}) + "\n")
            near = nearness(found[name], asked, given.evals)
            curves[name].append([float(near[budget - 1]) for budget in budgets])
    means = np.array([np.mean(each, axis=0) for each in curves.values()])
    for label, figures in (*zip(curves, means, strict=True), ("mean", means.mean(axis=0))):
        print(label, *(f"{budget}: {figure:.3f}" for budget, figure in zip(budgets, figures, strict=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
