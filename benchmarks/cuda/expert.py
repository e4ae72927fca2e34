"""Tunes plain kernels with nothing but the built-in expert and notes what came of it.

    python -m benchmarks.cuda.expert --out DIR [--problems FOLDER] [--evals N] [--within S] [NAME…]
    python -m benchmarks.cuda.expert --out DIR --runs FOLDER

Names are folders of problems in FOLDER, by default all that have a kernel.cu in examples/cuda. No template is
given and no model is asked. A problem that a run fails at, or does not finish within S seconds, is noted with
its words, and the next one is taken. Runs stay in DIR/expert-runs/NAME; with --runs, finished ones are read
instead of made. Figures go to DIR/expert.json, those of earlier calls for other problems are kept.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda.asking import Failed, ask
from benchmarks.cuda.tuning import new_run
from tunesmith.errors import TunesmithError
from tunesmith.problem.plan import necessary_traffic
from tunesmith.session.problems import load_problem

# What the examples were meant to reach, as geometric means over their workloads.
TARGETS = {
    "silu_and_mul": 9.0,
    "silu_and_mul_vector": 1.2,
    "rmsnorm": 2.6,
    "per_token_group_quant_fp8": 2.0,
    "rotary_embedding": 2.0,
    "fused_add_rmsnorm": 1.15,
    "merge_attn_states_lse": 1.04,
}
BOUNDS = ("ceiling", "bound", "distance", "tuned_bound", "tuned_distance")
COPY_SHARE, RUN_S, BEHIND_HAND = 0.9, 180.0, 0.03

Told = Mapping[str, Any]


def names(problems: Path) -> list[str]:
    return sorted(p.parent.name for p in problems.glob("*/problem.toml") if (p.parent / "kernel.cu").exists())


def in_words(error: Failed | subprocess.TimeoutExpired) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"not finished after {error.timeout:.0f} s"
    said = [line for line in error.stderr.splitlines() if line.startswith("error: ")]
    return (said or error.stderr.strip().splitlines() or ["no word"])[-1][:400]


def figures(report: Told, problem: Path, wall: float | None) -> dict[str, Any]:
    """What is kept of a report: the speed-ups, the bounds and the story in a line a round."""
    loaded, _ = load_problem(problem)
    bounds = {bound["workload"]: bound for bound in report["bounds"]}
    rows = []
    for row in report["workloads"]:
        bound = bounds.get(row["name"], {})
        rows.append(
            {key: row[key] for key in ("name", "weight", "baseline_us", "tuned_us", "speedup", "interval")}
            | {"bytes": necessary_traffic(loaded, row["sizes"]), "config": row["config"]}
            | {
                key: bound.get(key)
                for key in ("ceiling", "bound", "distance", "tuned_bound", "tuned_distance")
            }
        )
    return {
        "device": report["device"],
        "wall_s": wall,
        "seconds": report["seconds"],
        "reason": report["reason"],
        "geometric_mean": report["geometric_mean"],
        "evaluations": sum(report["evaluations"].values()),
        "feasible": report["space"]["feasible"] if report["space"] else None,
        "rounds": [
            {key: r[key] for key in ("moves", "refused", "evaluations", "speedup", "kept", "verdict")}
            for r in report["rounds"]
        ],
        "workloads": rows,
    }


def made(problem: Path, out: Path, evals: int | None, within: float | None) -> dict[str, Any]:
    more = ["--evals", str(evals)] if evals else []
    words = ["tune", str(problem), "--seed", "1", "--no-prior", *more]
    before = time.perf_counter()
    try:
        report, wall = new_run(words, out, within=within)
    except (Failed, subprocess.TimeoutExpired) as error:
        return {"failed": in_words(error), "wall_s": round(time.perf_counter() - before, 1)}
    return figures(report, problem, round(wall, 1))


def read(problem: Path, run: Path) -> dict[str, Any]:
    try:
        return figures(ask(["report", str(run)]), problem, None)
    except Failed as error:
        return {"failed": in_words(error), "wall_s": None}


def show(name: str, found: Told) -> None:
    if "failed" in found:
        print(f"{name}: {found['failed']}")
    else:
        last = found["rounds"][-1]["verdict"] if found["rounds"] else "no move applies"
        print(f"{name}: {found['geometric_mean']:.3f}x in {found['seconds']:.0f} s; {last}")
    sys.stdout.flush()


def main() -> int:
    options = argparse.ArgumentParser(description="Tune plain kernels with the built-in expert.")
    options.add_argument("names", nargs="*", metavar="NAME", help="folders of problems")
    options.add_argument("--out", type=Path, required=True, help="folder for runs and figures")
    options.add_argument("--problems", type=Path, default=evidence.EXAMPLES, help="where the problems are")
    options.add_argument("--runs", type=Path, help="finished runs, named after their problems")
    options.add_argument("--evals", type=int, help="configurations to try at most, of each")
    options.add_argument("--within", type=float, help="seconds that a run may take")
    arguments = options.parse_args()
    there = names(arguments.problems)
    unknown = set(arguments.names) - set(there)
    if unknown:
        options.error(f"there is no problem {', '.join(sorted(unknown))}; there are {', '.join(there)}")
    key = "examples" if arguments.problems.resolve() == evidence.EXAMPLES.resolve() else "others"
    known: dict[str, Any] = (evidence.read(arguments.out, "expert") or {}).get("expert", {})
    for name in arguments.names or there:
        problem = arguments.problems / name
        if arguments.runs is not None and not (arguments.runs / name / "journal.jsonl").exists():
            continue
        try:
            if arguments.runs is None:
                out = arguments.out / "expert-runs" / name
                found = made(problem, out, arguments.evals, arguments.within)
            else:
                found = read(problem, arguments.runs / name)
        except TunesmithError as error:
            found = {"failed": str(error), "wall_s": None}
        known.setdefault(key, {})[name] = found
        show(name, found)
        evidence.write(arguments.out, "expert", {"expert": known}, adds=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
