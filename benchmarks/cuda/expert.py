"""Tunes plain kernels with nothing but the built-in expert and notes what came of it.

    python -m benchmarks.cuda.expert --out DIR [--problems FOLDER] [--jobs N] [OPTION…] [NAME…]
    python -m benchmarks.cuda.expert --out DIR --runs FOLDER [--page FILE]

Names are folders of problems in FOLDER, by default all that have a kernel.cu in examples/cuda. No template is
given and no model is asked. A problem that a run fails at, or does not finish within S seconds, is noted with
its words, and the next one is taken. Several runs at a time share the device: limit them by --evals. Finished
runs in DIR/expert-runs/NAME are read instead of made; no run is begun after --for S seconds, a later call
goes on. With --runs all runs are read. Figures go to DIR/expert.json, those of earlier calls for other
problems are kept. --page writes the kernels that are no examples as a page.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda.asking import Failed, ask
from benchmarks.cuda.render_expert import others_page
from benchmarks.cuda.tuning import new_run
from tunesmith.base.errors import TunesmithError
from tunesmith.problem.plan import necessary_traffic
from tunesmith.run.folder import CERTIFICATE
from tunesmith.session.problems import load_problem

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


def made(problem: Path, out: Path, more: Sequence[str], within: float | None) -> dict[str, Any]:
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
    options.add_argument("--rounds", type=int, help="refactorings at most, of each")
    options.add_argument("--time", type=float, help="seconds to search, of each")
    options.add_argument("--within", type=float, help="seconds that a run may take")
    options.add_argument("--jobs", type=int, default=1, help="runs at a time")
    options.add_argument("--for", dest="most", type=float, default=math.inf, help="seconds to begin runs in")
    options.add_argument("--page", type=Path, help="file for the table, as Markdown")
    given = options.parse_args()
    there = names(given.problems)
    unknown = set(given.names) - set(there)
    if unknown:
        options.error(f"there is no problem {', '.join(sorted(unknown))}; there are {', '.join(there)}")
    key = "examples" if given.problems.resolve() == evidence.EXAMPLES.resolve() else "others"
    known: dict[str, Any] = (evidence.read(given.out, "expert") or {}).get("expert", {})
    limits = {"--time": given.time, "--evals": given.evals, "--rounds": given.rounds}
    more = [str(word) for pair in limits.items() if pair[1] is not None for word in pair]
    began = time.monotonic()

    def one(name: str) -> dict[str, Any] | None:
        """None where there is no run, and none was begun."""
        run = (given.runs or given.out / "expert-runs") / name
        try:
            if (run / CERTIFICATE).exists() or (given.runs and (run / "journal.jsonl").exists()):
                return read(given.problems / name, run)
            if given.runs is not None or time.monotonic() - began > given.most:
                return None
            return made(given.problems / name, run, more, given.within)
        except TunesmithError as error:
            return {"failed": str(error), "wall_s": None}

    chosen = given.names or there
    with ThreadPoolExecutor(max(given.jobs, 1)) as pool:
        for name, found in zip(chosen, pool.map(one, chosen), strict=True):
            if found is None:
                print(f"{name}: not begun")
                continue
            known.setdefault(key, {})[name] = found
            show(name, found)
            evidence.write(given.out, "expert", {"expert": known}, adds=True)
    told = evidence.read(given.out, "expert")
    if given.page and told is not None:
        given.page.write_text("\n".join(others_page(told)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
