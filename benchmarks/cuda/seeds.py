"""Whether the seed decides: the examples tuned with two seeds, and what both deliver timed again.

    python -m benchmarks.cuda.seeds --out DIR [--seeds 1,2] [NAME…]

Each example is tuned with its hand-written template and the default budget, once for each seed. Everything
delivered is then timed long and in alternation (benchmarks.cuda.truth, winners only). DIR/seeds.json keeps,
for every workload, how much longer what the slower run delivers takes than what the faster one does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence, examples, truth
from benchmarks.cuda.journals import winners
from benchmarks.cuda.tuning import tune
from tunesmith.run.outcome import geometric_mean

WITHIN = 2.0  # per cent between the runs
PASSES = 3


def compare(name: str, out: Path, seeds: list[int]) -> dict[str, Any]:
    folder = evidence.EXAMPLES / name
    tuned = [
        tune(folder, folder / "template.cu", out / "runs" / f"{name}-seed-{seed}", seed=seed)
        for seed in seeds
    ]
    told = truth.measure([one.run for one in tuned], {}, passes=PASSES, winners_only=True)
    chosen = [winners(one.run)["workloads"] for one in tuned]
    times = {
        workload: [delivered(found, choice[workload]) for choice in chosen]
        for workload, found in told["workloads"].items()
    }
    means = [geometric_mean([here[i] for here in times.values()]) for i in range(len(tuned))]
    return {
        "seeds": seeds,
        "tried": [one.figures()["tried"] for one in tuned],
        "wall_s": [one.wall for one in tuned],
        "us": times,
        "apart_percent": {workload: apart(here) for workload, here in times.items()},
        "general_apart_percent": apart(means),
    }


def delivered(found: Mapping[str, Any], config: Mapping[str, int] | None) -> float:
    table = {truth.key_of(row["config"]): row for row in found["field"]}
    return float(truth.served(table, config)["us"])


def apart(times: list[float]) -> float:
    return 100.0 * (max(times) / min(times) - 1.0)


def main() -> int:
    options = argparse.ArgumentParser(description="Tune examples with several seeds and compare.")
    options.add_argument("names", nargs="*", default=examples.names(), metavar="NAME")
    options.add_argument("--out", type=Path, required=True, help="folder for runs and figures")
    options.add_argument("--seeds", default="1,2", help="one run for each")
    arguments = options.parse_args()
    for name in arguments.names:
        found = compare(name, arguments.out, [int(seed) for seed in arguments.seeds.split(",")])
        known = (evidence.read(arguments.out, "seeds") or {}).get("problems", {})
        evidence.write(arguments.out, "seeds", {"problems": known | {name: found}}, adds=True)
        worst = max(found["apart_percent"].values())
        verdict = "reached" if worst < WITHIN else "fell short"
        whole = found["general_apart_percent"]
        print(f"{name}: {worst:.2f} % apart at worst, {whole:.2f} % on the whole: {verdict}")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
