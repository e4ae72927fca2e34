"""The figures of warm.py as a page."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.search.compare import spaces
from benchmarks.search.figures import interval, short, table
from benchmarks.search.recorded import Recorded, nearness
from benchmarks.search.warm import (
    CHOSEN_ON,
    COLD_EVALS,
    EARLIER_SEEDS,
    EVALS,
    Pair,
    cold_traces,
    pairs,
    warm_traces,
)

BUDGETS = (8, 25, 50)
GAIN = 0.04  # wanted of the mean over all pairs, at 25
LOSS = 0.02  # allowed in the worst of them, at 50


@dataclass(frozen=True)
class Warmed:
    """Optimum ÷ best so far of one pair: [seed, evaluation], from nothing and from an earlier run."""

    pair: Pair
    cold: NDArray[np.float64]
    warm: NDArray[np.float64]

    def gains(self, budget: int) -> NDArray[np.float64]:
        """By seed."""
        gains: NDArray[np.float64] = (self.warm - self.cold)[:, budget - 1]
        return gains

    def gain(self, budget: int) -> float:
        return float(self.gains(budget).mean())


def warmed(found: dict[str, Recorded], out: Path, seeds: int, into: str = "") -> list[Warmed]:
    """Over the seeds that every pair has."""
    cold, warm = cold_traces(out), warm_traces(out)
    every = pairs(found, into)
    common = [
        seed
        for seed in range(seeds)
        if all((pair, seed) in warm and (pair.target, seed) in cold for pair in every)
    ]
    if not every or not common:
        raise SystemExit("there is no seed with which every pair was run: run warm.py first")
    return [
        Warmed(
            pair,
            np.array([nearness(found[pair.target], cold[pair.target, seed], EVALS) for seed in common]),
            np.array([nearness(found[pair.target], warm[pair, seed], EVALS) for seed in common]),
        )
        for pair in every
    ]


def rows(folder: Path, out: Path, seeds: int, into: str) -> list[str]:
    """Of the pairs that lead to a space."""
    found = spaces(folder)
    return _table(found, warmed(found, out, seeds, into))


def page(folder: Path, out: Path, seeds: int) -> str:
    found = spaces(folder)
    made = warmed(found, out, seeds)
    chosen = [each for each in made if each.pair.was_chosen_on]
    others = [each for each in made if not each.pair.was_chosen_on]
    worst = min(made, key=lambda each: each.gain(50))
    mean, lost = _mean(made, 25), worst.gain(50)
    lines = [
        "# Warm starts",
        "",
        "Gain in optimum ÷ best so far after so many evaluations, from a run of "
        f"{COLD_EVALS} evaluations of the",
        "same kernel on another GPU, over a search from nothing with the same seed. ±: half the 95 %",
        "interval.",
        "",
        "## Pairs not used to choose the settings",
        "",
        *_table(found, others),
        "",
        "## All pairs",
        "",
        f"*Used* to choose the settings: pairs among {', '.join(sorted(CHOSEN_ON))}.",
        "",
        *_summary({"all": made, "not used": others, "used": chosen}),
        "",
        f"- {'reached' if mean >= GAIN else 'fell short'}: the mean gain at 25 is {mean:+.3f}, "
        f"wanted are {GAIN:+.2f}",
        f"- {'reached' if lost >= -LOSS else 'fell short'}: the worst at 50 is {lost:+.3f} "
        f"({_name(found, worst.pair)}), allowed are {-LOSS:+.2f}",
        "",
        "## How it was made",
        "",
        f"{datetime.date.today().isoformat()}, {len(made[0].cold)} seeds, no GPU: the times are looked up.",
        "",
        "```",
        f"python -m benchmarks.search.warm FOLDER --out RESULTS --seeds {len(made[0].cold)} \\",
        "    --page docs/benchmarks/warm.md",
        "```",
        "",
        "More seeds for the pairs that lead to one space: `--seeds 140 --into SPACE` (earlier runs: "
        f"{EARLIER_SEEDS}).",
        "",
    ]
    return "\n".join(lines)


def _table(found: dict[str, Recorded], made: Sequence[Warmed]) -> list[str]:
    rows = [
        [_name(found, each.pair), *(f"{each.gain(b):+.3f} ± {short(_interval([each], b))}" for b in BUDGETS)]
        for each in made
    ]
    return table(["from → to", *(f"at {b}" for b in BUDGETS)], rows)


def _summary(groups: dict[str, Sequence[Warmed]]) -> list[str]:
    rows = [
        [
            f"{name} ({len(each)})",
            *(f"{_mean(each, b):+.3f} ± {short(_interval(each, b))}" for b in BUDGETS),
            f"{min(one.gain(50) for one in each):+.3f}",
        ]
        for name, each in groups.items()
        if each
    ]
    return table(["mean gain over pairs", *(f"at {b}" for b in BUDGETS), "worst pair at 50"], rows)


def _mean(made: Sequence[Warmed], budget: int) -> float:
    return float(np.mean([each.gain(budget) for each in made]))


def _interval(made: Sequence[Warmed], budget: int) -> float:
    return interval(np.stack([each.gains(budget) for each in made]))


def _name(found: dict[str, Recorded], pair: Pair) -> str:
    return f"{found[pair.target].kernel}: {found[pair.source].gpu} → {found[pair.target].gpu}"
