"""Writes docs/benchmarks/search.md and search.svg from the results of compare.py.

python -m benchmarks.search.render FOLDER --out RESULTS [--docs docs/benchmarks]
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.search.compare import ARMS, commits, spaces
from benchmarks.search.figures import BUDGETS, Curves, curves, short, table
from benchmarks.search.leave_one_out import LeftOut, leave_one_out
from benchmarks.search.plot import plot
from benchmarks.search.recorded import Recorded
from tunesmith.run.ports import SearchView, Tried
from tunesmith.search.default import Default
from tunesmith.space.configset import Config

TARGETS = {25: 0.88, 50: 0.93, 100: 0.97, 200: 0.99}
LABELS = {
    "default": "Tunesmith",
    "default-in-a-run": "Tunesmith, as a run asks",
    "evolution": "Tunesmith evolution",
    "random": "random",
    "optuna-tpe": "Optuna TPE",
    "kernel-tuner-genetic_algorithm": "KT genetic algorithm",
    "kernel-tuner-simulated_annealing": "KT simulated annealing",
    "kernel-tuner-adaptive_tabu_greywolf": "KT tabu grey wolf",
    "kernel-tuner-hybrid_vndx": "KT hybrid VNDX",
}


def cold(made: dict[str, Curves]) -> list[str]:
    rows = [["target", "", *(short(TARGETS[budget]) for budget in BUDGETS)]]
    for arm, each in made.items():
        figures = [f"{short(each.mean(b))} ± {short(each.interval(b))}" for b in BUDGETS]
        rows.append([LABELS[arm], str(each.seeds), *figures])
    return table(["mean over the spaces", "seeds", *(str(b) for b in BUDGETS)], rows)


def verdicts(ours: Curves) -> list[str]:
    """Each target with what became of it; within the interval is neither."""
    lines = []
    for budget, wanted in TARGETS.items():
        off = ours.mean(budget) - wanted
        word = "reached" if off >= 0 else "fell short"
        lines.append(f"- {word} at {budget}: {off:+.3f} ± {short(ours.interval(budget))}")
    return lines


def ahead(made: dict[str, Curves]) -> list[str]:
    """The difference to TPE, and to the best Kernel Tuner strategy at each budget."""
    ours = made["default"]
    rows = []
    groups = {"Optuna TPE": ["optuna-tpe"], "the best of Kernel Tuner": [a for a in made if "kernel" in a]}
    for label, arms in groups.items():
        cells = []
        for budget in BUDGETS:
            rival = made[max(arms, key=lambda arm: made[arm].mean(budget))]
            spread = np.hypot(ours.interval(budget), rival.interval(budget))
            cells.append(f"{ours.mean(budget) - rival.mean(budget):+.3f} ± {short(float(spread))}")
        rows.append([label, *cells])
    return table(["ahead of", *(str(b) for b in BUDGETS)], rows)


def left_out(found: LeftOut) -> list[str]:
    def figures(each: Mapping[int, float]) -> str:
        return " ".join(short(each[b]) for b in BUDGETS)

    settings = "; ".join(f"{name} {figures(each)}" for name, each in found.all_settings.items())
    best = max(found.all_settings, key=lambda name: sum(found.all_settings[name].values()))
    return [
        f"Settings ({found.seeds} seeds): {settings}. Leaving one kernel out: {figures(found.figures)}.",
        f"All kernels together choose {best}.",
    ]


def milliseconds(recorded: Recorded, outcomes: int) -> float:
    """Of processor time for each of 8 configurations; hyperparameters are fitted anew each time."""
    rng = np.random.default_rng(0)
    picked = rng.choice(len(recorded.configs), outcomes, replace=False)
    tried = tuple(Tried(recorded.config(int(i)), recorded.scores[int(i)]) for i in picked)
    view = SearchView(recorded.space, recorded.configs, Config(()), tried, (), None, 0)
    taken = []
    for turn in range(5):
        begun = time.process_time()
        Default().ask(replace(view, tried=tried[turn:], seed=turn), 8)
        taken.append(time.process_time() - begun)
    return 1000 * float(np.median(taken)) / 8


def commit_of(out: Path) -> str:
    """What the runs of our default were made at, which must be the same for all of them."""
    arms = [arm for arm in ARMS if arm.startswith(("default", "choice-"))]
    found = {commit for arm in arms for commit in commits(out, arm)}
    if len(found) != 1:
        told = ", ".join(sorted(each or "none told" for each in found))
        raise SystemExit(
            f"the results are of {len(found)} commits ({told}): "
            "run compare.py at one, into files of their own"
        )
    return found.pop()


def how(made: dict[str, Curves], chosen: LeftOut | None) -> list[str]:
    """The commands that give the page."""
    run = "python -m benchmarks.search"
    lines = [f"{run}.compare FOLDER --out RESULTS --seeds {made['default'].seeds}"]
    if "default-in-a-run" not in made:
        lines[0] += " \\"
        lines.append(f"    --arms {' '.join(made)}")
    if chosen:
        arms = " ".join(f"choice-{name}" for name in chosen.all_settings if name != "default")
        lines.append(f"{run}.compare FOLDER --out RESULTS --seeds {chosen.seeds} --arms {arms}")
    return ["pip install optuna kernel_tuner==1.5.0", *lines, f"{run}.render FOLDER --out RESULTS"]


def page(folder: Path, out: Path) -> tuple[str, str]:
    found, commit = spaces(folder), commit_of(out)
    arms = {arm: curves(found, out, arm) for arm in LABELS}
    made = {arm: each for arm, each in arms.items() if each is not None and len(each.spaces) == len(found)}
    largest = max(found.values(), key=lambda each: len(each.configs))
    took = milliseconds(largest, 200)
    chosen = leave_one_out(found, out)
    older = any(commits(out, arm) != {commit} for arm in made)
    lines = [
        "# Search",
        "",
        "How close to the optimum a search comes after so many evaluations, on recorded spaces:",
        f"{', '.join(found)}.",
        "The figure is optimum ÷ best so far; ± half the 95 % interval over seeds. An evaluation is one new",
        "configuration, failed ones included.",
        "",
        "![curves](search.svg)",
        "",
        "## Cold starts",
        "",
        *cold(made),
        "",
        *verdicts(made["default"]),
        "",
        *ahead(made),
        "",
        "All searchers are asked for one configuration at a time. Kernel Tuner 1.5.0 gets a new",
        "search-space object for every run, and 4/3 of the evaluations for annealing, which stops at 3/4.",
        "Optuna 5.0's TPE has categorical parameters; an infeasible or known suggestion is replaced by the",
        "nearest new one that is feasible, and a failure counts as the slowest so far. Up to .816 .895 .948",
        ".987 have been reported for TPE on these spaces with other restrictions.",
        "",
        f"A batch of 8 at 200 known outcomes takes {took:.1f} ms of processor time for each configuration,",
        f"on {largest.name} ({len(largest.configs):,} configurations), hyperparameters included.",
        "",
        *([*left_out(chosen), ""] if chosen else []),
        "## How it was made",
        "",
        f"{datetime.date.today().isoformat()}, {os.cpu_count()} cores, no GPU: the times are looked up.",
        f"Tunesmith's default and its settings: commit {commit}.",
        *(["The other searchers: earlier commits."] if older else []),
        "",
        "```",
        *how(made, chosen),
        "```",
        "",
    ]
    shown = {LABELS[arm]: each.values.mean(axis=(0, 1)).tolist() for arm, each in made.items()}
    return "\n".join(lines), plot(shown)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="the recorded spaces, *.json.gz")
    parser.add_argument("--out", type=Path, required=True, help="what compare.py wrote")
    parser.add_argument("--docs", type=Path, default=Path("docs/benchmarks"))
    given = parser.parse_args(arguments)
    text, picture = page(given.folder, given.out)
    given.docs.mkdir(parents=True, exist_ok=True)
    (given.docs / "search.md").write_text(text)
    (given.docs / "search.svg").write_text(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
