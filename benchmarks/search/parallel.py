"""What several devices do to a search, from runs of compare.py: a table of how near to the optimum it comes.

    python -m benchmarks.search.compare FOLDER --out RESULTS --seeds 40 --arms default default-in-a-run \\
        parallel-batches-of-4 ... (--help lists them)
    python -m benchmarks.search.parallel FOLDER --out RESULTS
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.search.compare import spaces
from benchmarks.search.figures import BUDGETS, Curves, curves, interval
from benchmarks.search.recorded import Recorded

LABELS = {
    "default": "one at a time",
    "parallel-batches-of-4": "batches of 4: all told, then 4 asked",
    "parallel-always-4": "4 always in flight: one told, one asked",
    "parallel-batches-of-16": "batches of 16",
    "parallel-always-16": "16 always in flight",
    "parallel-four-behind-four": "a run on 1 device, before: 4 to 8 in flight",
    "default-in-a-run": "a run on 1 device, now",
    "parallel-run-on-4": "a run on 4 devices",
    "parallel-run-on-16": "a run on 16 devices",
    "parallel-run-on-64": "a run on 64 devices",
    "parallel-bound-16-at-25": "all but the last 16 of 25 one at a time",
    "parallel-bound-16-at-50": "all but the last 16 of 50 one at a time",
}


def budgets(arm: str) -> tuple[int, ...]:
    """Those that an arm says something of."""
    return (int(arm.rpartition("-")[2]),) if "-bound-" in arm else BUDGETS


def table(found: dict[str, Recorded], out: Path) -> Iterator[str]:
    alone = curves(found, out, "default")
    if alone is None:
        raise SystemExit(f"{out} has no runs of `default` on every space: run compare.py first")
    yield "| asked | seeds | " + " | ".join(map(str, BUDGETS)) + " | " + " | ".join(map(str, BUDGETS)) + " |"
    yield "|---|" + "---:|" * (1 + 2 * len(BUDGETS))
    for arm, label in LABELS.items():
        made = curves(found, out, arm)
        if made is not None and made.spaces == alone.spaces:
            yield (
                f"| {label} | {min(made.seeds, alone.seeds)} | " + " | ".join(cells(made, alone, arm)) + " |"
            )


def cells(made: Curves, alone: Curves, arm: str) -> Iterator[str]:
    """The figures, then how far they are from those of one at a time, over the seeds that both have."""
    seeds = min(made.seeds, alone.seeds)
    shown = budgets(arm)
    for budget in BUDGETS:
        yield f"{made.at(budget)[:, :seeds].mean():.3f}".removeprefix("0") if budget in shown else ""
    for budget in BUDGETS:
        apart = made.at(budget)[:, :seeds] - alone.at(budget)[:, :seeds]
        is_shown = budget in shown and arm != "default"
        yield f"{apart.mean():+.3f} ± {interval(apart):.3f}".replace("0.", ".") if is_shown else ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="the recorded spaces, *.json.gz")
    parser.add_argument("--out", type=Path, required=True, help="where compare.py has put its runs")
    given = parser.parse_args(arguments)
    print("\n".join(table(spaces(given.folder), given.out)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
