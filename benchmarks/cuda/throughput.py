"""How fast silu_and_mul is searched: three runs over its whole space, by phases, and against Kernel Tuner.

    python -m benchmarks.cuda.throughput --out DIR [--seeds 1,2,3]

Each run tries every configuration at every size, without the cache of timings. Runs stay in
DIR/runs/throughput-SEED, for benchmarks.cuda.truth. Where kernel_tuner_arm and copy_rate have written to DIR,
the figures are compared with theirs. DIR/throughput.json keeps everything.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda.tuning import Tuned, tune
from tunesmith.problem.plan import necessary_traffic

EXAMPLE = evidence.EXAMPLES / "silu_and_mul"


def figures(tuned: Tuned, copies: dict[str, Any]) -> dict[str, Any]:
    """One run: its phases, seconds for a configuration at a size, and the largest size against a copy."""
    found = tuned.figures()
    problem = tuned.run.problem
    for row in found["workloads"]:
        row["bytes"] = necessary_traffic(problem, row["sizes"])
    pairs = found["timed_pairs"]
    largest = max(found["workloads"], key=lambda row: row["bytes"])
    return {
        **found,
        "pairs": pairs,
        "search_s_per_pair": found["seconds"]["search"] / pairs,
        "wall_s_per_pair": found["wall_s"] / pairs,
        "largest": largest["name"],
        "copy_share": evidence.share_of_copy(largest, copies),
    }


def compared(runs: list[dict[str, Any]], other: dict[str, Any] | None) -> dict[str, Any] | None:
    """How many times faster, phases alike: compile and benchmark against the search, and wall against wall.

    Our search checks every configuration before it is timed, and is not given credit for that.
    """
    if other is None:
        return None
    same = other["compile_and_benchmark_s"] / other["pairs"]
    wall = other["wall_s"] / other["pairs"]
    search = sorted(run["search_s_per_pair"] for run in runs)[len(runs) // 2]
    whole = sorted(run["wall_s_per_pair"] for run in runs)[len(runs) // 2]
    return {
        "other_compile_and_benchmark_s_per_pair": same,
        "other_wall_s_per_pair": wall,
        "search_s_per_pair": search,
        "wall_s_per_pair": whole,
        "ratio_same_phases": same / search,
        "ratio_search_against_wall": wall / search,
        "ratio_whole_run_against_wall": wall / whole,
    }


def main() -> int:
    options = argparse.ArgumentParser(description="Search silu_and_mul's whole space, several times.")
    options.add_argument("--out", type=Path, required=True, help="folder for runs and figures")
    options.add_argument("--seeds", default="1,2,3", help="one run for each")
    arguments = options.parse_args()
    copies = (evidence.read(arguments.out, "copy_rate") or {}).get("copies", {})
    runs = []
    for seed in map(int, arguments.seeds.split(",")):
        tuned = tune(
            EXAMPLE,
            EXAMPLE / "template.cu",
            arguments.out / "runs" / f"throughput-{seed}",
            seed=seed,
            more=["--search", "exhaustive"],
        )
        runs.append({"seed": seed, **figures(tuned, copies)})
        told = runs[-1]
        share = f", {100 * told['copy_share']:.1f} % of a copy" if told["copy_share"] else ""
        print(
            f"seed {seed}: {told['tried']} configurations, search {told['seconds']['search']:.2f} s, "
            f"whole {told['wall_s']:.1f} s {told['seconds']}, busy {100 * told['busy_share']:.0f} %, "
            f"{told['geometric_mean']:.2f}x{share}"
        )
        sys.stdout.flush()
    against = compared(runs, evidence.read(arguments.out, "kernel_tuner_arm"))
    if against:
        print(
            f"Kernel Tuner takes {against['ratio_same_phases']:.1f} times as long for the same phases, "
            f"{against['ratio_whole_run_against_wall']:.1f} times as long as our whole run"
        )
    evidence.write(arguments.out, "throughput", {"runs": runs, "kernel_tuner": against})
    return 0


if __name__ == "__main__":
    sys.exit(main())
