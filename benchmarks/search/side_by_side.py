"""Prints the tables of docs/benchmarks/searcher.md: our default, what it was before, and Optuna's TPE.

    python -m benchmarks.search.compare FOLDER --out RESULTS --seeds 40 --until-best \\
        --arms default optuna-tpe choice-...
    python -m benchmarks.search.compare FOLDER --out BEFORE --seeds 40 --until-best --arms default    # then
    python -m benchmarks.search.side_by_side FOLDER --out RESULTS --before BEFORE
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from benchmarks.search.compare import spaces
from benchmarks.search.figures import BUDGETS, Curves, curves, short, table
from benchmarks.search.leave_one_out import leave_one_out
from benchmarks.search.render import left_out

GOALS = {25: 0.88, 50: 0.94, 100: 0.98, 200: 0.995}
ARMS = {"default": "default", "before": "before", "optuna-tpe": "Optuna's TPE"}


def together(made: dict[str, Curves]) -> list[str]:
    rows = [["goal", "", *(short(GOALS[budget]) for budget in BUDGETS)]]
    for arm, each in made.items():
        figures = [f"{short(each.mean(b))} ± {short(each.interval(b))}" for b in BUDGETS]
        rows.append([ARMS[arm], str(each.seeds), *figures])
    return table(["mean over the spaces", "seeds", *(str(b) for b in BUDGETS)], rows)


def by_space(made: dict[str, Curves]) -> list[str]:
    """The default, with what it was before and TPE in brackets."""
    ours, *others = made.values()
    rows = []
    for place, name in enumerate(ours.spaces):
        cells = []
        for budget in BUDGETS:
            figures = [short(float(each.at(budget)[place].mean())) for each in (ours, *others)]
            cells.append(f"{figures[0]} ({' '.join(figures[1:])})")
        rows.append([name, *cells])
    return table(["space", *(str(b) for b in BUDGETS)], rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="the recorded spaces, *.json.gz")
    parser.add_argument("--out", type=Path, required=True, help="what compare.py wrote")
    parser.add_argument(
        "--before", type=Path, required=True, help="what it wrote of the default at another commit"
    )
    given = parser.parse_args(arguments)
    found = spaces(given.folder)
    runs = {arm: curves(found, given.out, arm) for arm in ("default", "optuna-tpe")}
    runs["before"] = curves(found, given.before, "default")
    made = {arm: each for arm in ARMS if (each := runs[arm]) is not None}
    if len(made) < len(ARMS) or len({(each.spaces, each.seeds) for each in made.values()}) > 1:
        told = ", ".join(
            f"{arm}: {each.seeds} seeds of {len(each.spaces)} spaces" for arm, each in made.items()
        )
        raise SystemExit(
            f"{', '.join(ARMS)} must have the same seeds of the same spaces, found {told or 'none'}: "
            "run compare.py with these arms to its end"
        )
    chosen = leave_one_out(found, given.out)
    for lines in (together(made), by_space(made), left_out(chosen) if chosen else ["no settings"]):
        print("\n".join(lines), end="\n\n")
    pairs = zip(made["default"].spaces, *(each.at(50).mean(axis=1) for each in made.values()), strict=True)
    ahead = [float(ours - before) for _, ours, before, _ in pairs]
    print(f"least gain over before at 50: {np.min(ahead):+.3f}, largest {np.max(ahead):+.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
