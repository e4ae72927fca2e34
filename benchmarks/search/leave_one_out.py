"""Would the default have been chosen without having seen a kernel?

For each kernel the setting with the best mean over the *other* kernels' spaces is taken (averaged over the
budgets), and its figures on the kernel's own spaces count. Settings are the default and those of
`compare.CHOICES` that have been run by `compare --arms choice-...`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.search.compare import CHOICES
from benchmarks.search.figures import BUDGETS, Curves, curves
from benchmarks.search.recorded import Recorded


@dataclass(frozen=True)
class LeftOut:
    seeds: int
    chosen: dict[str, str]  # by kernel: the setting that the others choose
    figures: dict[int, float]  # by budget, each kernel with the setting chosen without it
    all_settings: dict[str, dict[int, float]]  # by setting and budget, over all spaces


def leave_one_out(found: dict[str, Recorded], out: Path) -> LeftOut | None:
    """On the seeds that every setting has; None where there is nothing to choose from, or by."""
    made = {
        name: curves(found, out, arm)
        for name, arm in {"default": "default", **{name: f"choice-{name}" for name in CHOICES}}.items()
    }
    runs: dict[str, Curves] = {name: each for name, each in made.items() if each is not None}
    if "default" not in runs or len(runs) < 2 or len({each.kernel for each in found.values()}) < 2:
        return None
    seeds = min(each.seeds for each in runs.values())
    names = runs["default"].spaces
    at = {
        name: np.stack([each.at(budget)[:, :seeds].mean(axis=1) for budget in BUDGETS])
        for name, each in runs.items()
    }  # [budget, space]
    kernels = [found[name].kernel for name in names]
    chosen: dict[str, str] = {}
    columns = np.zeros((len(BUDGETS), len(names)))
    for kernel in sorted(set(kernels)):
        own = np.array([each == kernel for each in kernels])
        chosen[kernel] = max(at, key=lambda name: float(at[name][:, ~own].mean()))
        columns[:, own] = at[chosen[kernel]][:, own]
    return LeftOut(
        seeds,
        chosen,
        dict(zip(BUDGETS, columns.mean(axis=1).tolist(), strict=True)),
        {name: dict(zip(BUDGETS, each.mean(axis=1).tolist(), strict=True)) for name, each in at.items()},
    )
