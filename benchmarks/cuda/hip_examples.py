"""Tunes the HIP examples on an NVIDIA GPU through the header, and writes their rows for docs/hip.md.

    python -m benchmarks.cuda.hip_examples --out DIR [--evals N] [--seconds S] [NAME…]

Each as a user does it, `tunesmith tune examples/hip/NAME --backend cuda --evals N --seed 1`, in S seconds;
the expert writes the template. What earlier calls wrote of other examples is kept. Runs stay in
DIR/runs/hip/NAME, figures go to DIR/hip_examples.json, rows to DIR/hip_examples.md. What is not verified in
time has no figure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda.asking import Failed
from benchmarks.cuda.markdown import source, table, times
from benchmarks.cuda.tuning import new_run

HIP = evidence.ROOT / "examples" / "hip"
EVALS = 120
SEED = 1


def names() -> list[str]:
    return sorted(path.parent.name for path in HIP.glob("*/problem.toml"))


def tuned(name: str, out: Path, evals: int, seconds: float) -> dict[str, Any]:
    words = ["tune", str(HIP / name), "--backend", "cuda", "--evals", str(evals), "--seed", str(SEED)]
    try:
        report, wall = new_run(words, out / "runs" / "hip" / name, within=seconds)
    except subprocess.TimeoutExpired:
        return {"fault": f"not verified within {seconds:.0f} s"}
    except Failed as failure:
        return {"fault": " ".join(failure.stderr.split())[-300:]}
    return figures(report, wall)


def figures(report: dict[str, Any], wall: float) -> dict[str, Any]:
    """A mean without a verification is no result."""
    if not report["verified_cases"] or report["geometric_mean"] is None:
        return {"fault": "nothing was verified"}
    return {
        "geometric_mean": report["geometric_mean"],
        "verified_cases": report["verified_cases"],
        "wall_s": wall,
        "workloads": [
            {key: row[key] for key in ("name", "speedup", "interval")} for row in report["workloads"]
        ],
    }


def page(told: dict[str, Any]) -> str:
    rows = []
    for name, found in told["examples"].items():
        if "fault" in found:
            rows.append([name, found["fault"], "", "", ""])
            continue
        each = ", ".join(f"{row['name']} {times(row['speedup'])}" for row in found["workloads"])
        mean, cases = times(found["geometric_mean"]), str(found["verified_cases"])
        rows.append([name, each, mean, cases, f"{found['wall_s']:.0f} s"])
    head = ["example", "workloads", "geometric mean", "fresh cases", "took"]
    return "\n".join(["# HIP examples on an NVIDIA GPU", "", *source(told), *table(head, rows, left=2)])


def main() -> int:
    options = argparse.ArgumentParser(description="Tune the HIP examples on an NVIDIA GPU.")
    options.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names()))
    options.add_argument("--out", type=Path, required=True, help="folder for runs and figures")
    options.add_argument("--evals", type=int, default=EVALS, help="configurations to try at most, of each")
    options.add_argument("--seconds", type=float, default=300.0, help="for one example")
    arguments = options.parse_args()
    if unknown := set(arguments.names) - set(names()):
        options.error(f"there is no example {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    known = (evidence.read(arguments.out, "hip_examples") or {}).get("examples", {})
    for name in arguments.names or names():
        known[name] = tuned(name, arguments.out, arguments.evals, arguments.seconds)
        # After each: a call that is cut short keeps what it has.
        written = evidence.write(
            arguments.out, "hip_examples", {"examples": dict(sorted(known.items()))}, adds=True
        )
        text = page(evidence.read(arguments.out, "hip_examples") or {})
        written.with_suffix(".md").write_text(text, encoding="utf-8")
        print(text, flush=True)
    return 0 if not any("fault" in found for found in known.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
