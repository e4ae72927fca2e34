"""What a language model reached on the GPU, as finished runs tell it. Nothing is measured here.

    python -m benchmarks.cuda.agents --out DIR --comparison FOLDER [--expert FOLDER] [--plots FOLDER] [RUN…]

The comparison is one of `tunesmith compare`. That of the expert is another: the expert alone at the same
problems with the same budget; its runs that are finished are taken. RUNs are runs of `tunesmith tune --model
…` at other kernels. DIR/agents.json keeps what benchmarks.cuda.render makes tables of.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from tunesmith.comparison_runs import journal_facts
from tunesmith.core.codec import encode
from tunesmith.deliver.comparison import DATA, PLOTS


def one_run(path: Path) -> dict[str, Any]:
    """A run's facts as a comparison has them, and what it was allowed."""
    state, facts = journal_facts(path)
    if state.stopped is None:
        raise SystemExit(f"{path} is not finished; go on with: tunesmith resume {path}")
    settings = state.settings
    return {
        "facts": json.loads(encode(facts)),
        "rounds": settings.rounds,
        "evals": settings.evals,
        "seed": settings.seed,
        "model": settings.models,
    }


def compared(path: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((path / DATA).read_text(encoding="utf-8"))["comparison"]
    return told


def beside(ours: Mapping[str, Any], expert: Mapping[str, Any]) -> dict[str, list[float]]:
    """Problem -> speed-ups of the expert's runs, which must have had the same problems and budget."""
    for part in ("problems", "budget"):
        if expert["plan"][part] != ours["plan"][part]:
            raise SystemExit(f"the expert's comparison has other {part}: {expert['plan'][part]}")
    found: dict[str, list[float]] = {}
    for run in expert["runs"]:
        if run["planned"]["arm"] == "expert" and run["status"] == "finished":
            found.setdefault(run["planned"]["problem"], []).append(run["facts"]["speedup"])
    return found


def main() -> int:
    options = argparse.ArgumentParser(description="Note what a language model reached.")
    options.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folders of finished runs")
    options.add_argument("--out", type=Path, required=True, help="folder for the figures")
    options.add_argument("--comparison", type=Path, required=True, help="folder of a comparison")
    options.add_argument("--expert", type=Path, help="folder of one of the expert alone")
    options.add_argument("--plots", type=Path, help="where to put its plots")
    arguments = options.parse_args()
    told = compared(arguments.comparison)
    expert = beside(told, compared(arguments.expert)) if arguments.expert is not None else {}
    runs = {path.name: one_run(path) for path in arguments.runs}
    evidence.write(arguments.out, "agents", {"comparison": told, "expert": expert, "runs": runs})
    if arguments.plots is not None:
        arguments.plots.mkdir(parents=True, exist_ok=True)
        for plot in (arguments.comparison / PLOTS).glob("*.svg"):
            (arguments.plots / f"strategies-{plot.name}").write_bytes(plot.read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
