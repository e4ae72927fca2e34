"""Tunes the examples in examples/cuda with their hand-written templates and notes every figure of the runs.

    python -m benchmarks.cuda.examples --out DIR [--published FILE] [--evals N] [NAME…]

Without names all of them, one after the other; what earlier calls wrote of other examples is kept, so that
the examples can be spread over several calls. FILE is JSON, {example: {workload: microseconds}}: the times of
the published kernels that the examples are written after, on the same kind of device. Runs stay in
DIR/runs/NAME, figures go to DIR/examples.json; benchmarks.cuda.render puts them beside those of copy_rate.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda.tuning import Tuned, tune
from tunesmith.problem.plan import necessary_traffic

WITHIN = 1.15  # a baseline may take this many times the published kernel's time


def names() -> list[str]:
    return sorted(path.parent.name for path in evidence.EXAMPLES.glob("*/template.cu"))


def figures(tuned: Tuned, published: dict[str, float]) -> dict[str, Any]:
    """The run's figures, each workload with the bytes it must move and the published time."""
    found = tuned.figures()
    problem = tuned.run.problem
    for row in found["workloads"]:
        row["bytes"] = necessary_traffic(problem, row["sizes"])
        row |= against_published(row, published.get(row["name"]))
    return found


def against_published(row: dict[str, Any], published: float | None) -> dict[str, Any]:
    """Where our baseline is the slower one, the speed-up counts from the published time."""
    if published is None:
        return {"published_us": None, "baseline_ratio": None, "honest_speedup": row["speedup"]}
    ratio = row["baseline_us"] / published
    return {
        "published_us": published,
        "baseline_ratio": ratio,
        "honest_speedup": row["speedup"] / max(1.0, ratio),
    }


def show(name: str, found: dict[str, Any]) -> None:
    mean = found["geometric_mean"]
    print(f"{name}: {mean:.2f}x in {found['wall_s']:.1f} s, {found['tried']} tried, {found['seconds']}")
    for row in found["workloads"]:
        ratio = f"{row['baseline_ratio']:.3f} of published" if row["baseline_ratio"] else "nothing published"
        print(
            f"  {row['name']:20} {row['baseline_us']:8.2f} us ({ratio}) -> {row['tuned_us']:8.2f} us, "
            f"{row['speedup']:.2f}x [{row['interval'][0]:.2f}, {row['interval'][1]:.2f}]"
        )
    sys.stdout.flush()


def main() -> int:
    options = argparse.ArgumentParser(description="Tune the CUDA examples.")
    options.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names()))
    options.add_argument("--out", type=Path, required=True, help="folder for runs and figures")
    options.add_argument("--published", type=Path, help="JSON with the published kernels' times")
    options.add_argument("--evals", type=int, help="configurations to try at most, of each")
    arguments = options.parse_args()
    unknown = set(arguments.names) - set(names())
    if unknown:
        options.error(f"there is no example {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    published = json.loads(arguments.published.read_text()) if arguments.published else {}
    more = ["--evals", str(arguments.evals)] if arguments.evals else []
    known = (evidence.read(arguments.out, "examples") or {}).get("examples", {})
    for name in arguments.names or names():
        folder = evidence.EXAMPLES / name
        tuned = tune(folder, folder / "template.cu", arguments.out / "runs" / name, seed=1, more=more)
        known[name] = figures(tuned, published.get(name, {}))
        show(name, known[name])
        # After each: a call that is cut short keeps what it has.
        evidence.write(arguments.out, "examples", {"examples": dict(sorted(known.items()))}, adds=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
