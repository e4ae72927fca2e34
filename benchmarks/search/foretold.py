"""How right earlier runs are: where they put what is best on another GPU, and how good their first are.

    python -m benchmarks.search.foretold FOLDER --out RESULTS [--into SPACE]

RESULTS is of warm.py. For each pair: the rank at which the best configuration is foretold and that of the
first within 10 % of it, medians over the runs of 200 evaluations; and how near the best of those comes that a
search follows (`earlier.BEST`), as optimum ÷ its time, the mean.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.search.compare import spaces, traces
from benchmarks.search.our_arm import prior_of
from benchmarks.search.recorded import Recorded
from benchmarks.search.warm import Trace, pairs
from tunesmith.search.models import Guide

NEAR = 0.9


def ranks(source: Recorded, target: Recorded, asked: Trace) -> tuple[int, int, float]:
    """Of the best of the target and of the first near it; and how near the best of those followed is."""
    nothing = np.zeros(0, dtype=np.int64)
    prior = prior_of(source, asked, source.name)
    guide = Guide(target.space, target.configs, (prior,), nothing, np.zeros(0))
    order = np.argsort(-guide.order(np.arange(len(target.configs))), kind="stable")
    near = target.best / np.nan_to_num(target.times, nan=np.inf)
    best = int(np.flatnonzero(order == target.best_number)[0])
    first = int(np.flatnonzero(near[order] > NEAR)[0])
    return best + 1, first + 1, float(near[guide.best()].max())


def rows(folder: Path, out: Path, into: str = "") -> Iterator[str]:
    found, known = spaces(folder), traces(out, "default")
    yield "| from → to | of | best | first within 10 % | best of those followed |"
    yield "|---|---:|---:|---:|---:|"
    for pair in pairs(found, into):
        source, target = found[pair.source], found[pair.target]
        runs = [asked for (space, _), asked in known.items() if space == pair.source]
        each = np.array([ranks(source, target, asked) for asked in runs])
        best, first = np.median(each[:, :2], axis=0)
        many = f"{len(target.configs)} | {best:.0f} | {first:.0f} | {each[:, 2].mean():.3f}"
        yield f"| {target.kernel}: {source.gpu} → {target.gpu} | {many} |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="the recorded spaces, *.json.gz")
    parser.add_argument("--out", type=Path, required=True, help="what warm.py wrote")
    parser.add_argument("--into", default="", metavar="SPACE", help="one that FOLDER has")
    given = parser.parse_args(arguments)
    print("\n".join(rows(given.folder, given.out, given.into)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
