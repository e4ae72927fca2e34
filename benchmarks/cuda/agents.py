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
from tunesmith.core.errors import TunesmithError
from tunesmith.deliver.comparison import DATA, PLOTS, RUNS


def one_run(path: Path) -> dict[str, Any]:
    """A run's facts as a comparison has them, of which kernel, and what it was allowed."""
    try:
        state, facts = journal_facts(path)
    except TunesmithError as error:
        raise SystemExit(f"{path} is no run of tunesmith: {error}") from error
    if state.started is None or state.stopped is None:
        raise SystemExit(f"{path} is not finished; go on with: tunesmith resume {path}")
    settings = state.settings
    return {
        "kernel": state.started.problem,
        "facts": json.loads(encode(facts)),
        "rounds": settings.rounds,
        "evals": settings.evals,
        "seed": settings.seed,
        "model": settings.models,
    }


def compared(path: Path) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads((path / DATA).read_text(encoding="utf-8"))["comparison"]
    except (OSError, ValueError, KeyError) as error:
        raise SystemExit(
            f"{path} is no folder of tunesmith compare: {DATA} cannot be read: {error}"
        ) from error
    return told


def whole(path: Path) -> dict[str, Any]:
    """A comparison of which all runs are over."""
    told = compared(path)
    left = [run["planned"] for run in told["runs"] if run["status"] not in ("finished", "failed")]
    if left:
        names = ", ".join(f"{one['problem']}/{one['arm']}-{one['repeat']}" for one in left)
        raise SystemExit(f"{path} is not finished ({names}); go on with: tunesmith compare --resume {path}")
    return told


def authors(path: Path, told: Mapping[str, Any]) -> dict[str, list[str]]:
    """Run -> who made each of its templates, in their order: the model as author, or moves that it named."""
    found = {}
    for run in told["runs"]:
        one = run["planned"]
        place = f"{one['problem']}/{one['arm']}-{one['repeat']}"
        found[place] = written_by(path / RUNS / place)
    return found


def written_by(run: Path) -> list[str]:
    state, _ = journal_facts(run)
    drafts = [c.drafted for c in state.candidates if c.drafted is not None]
    return ["model" if drafted.author else "moves" for drafted in drafts]


def beside(ours: Mapping[str, Any], expert: Mapping[str, Any]) -> dict[str, list[float]]:
    """Problem -> speed-ups of the expert's runs, which must have had the same problems and budget."""
    for part in ("problems", "budget"):
        if expert["plan"][part] != ours["plan"][part]:
            raise SystemExit(f"the expert's comparison has other {part} than the model's")
    found: dict[str, list[float]] = {}
    for run in expert["runs"]:
        if run["planned"]["arm"] == "expert" and run["status"] == "finished":
            found.setdefault(run["planned"]["problem"], []).append(run["facts"]["speedup"])
    if not found:
        raise SystemExit("the expert's comparison has no finished run of the expert")
    return found


def machine(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Where a run was made, which need not be here."""
    versions = dict(facts["versions"])
    python = versions.pop("python", "unknown")
    versions.pop("system", None)
    return {
        "device": facts["device"],
        "driver": facts["driver"],
        "compilers": [facts["compiler"]],
        "cores": None,
        "python": python,
        "packages": versions,
    }


def main() -> int:
    options = argparse.ArgumentParser(description="Note what a language model reached.")
    options.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folders of finished runs")
    options.add_argument("--out", type=Path, required=True, help="folder for the figures")
    options.add_argument("--comparison", type=Path, required=True, help="folder of a comparison")
    options.add_argument("--expert", type=Path, help="folder of one of the expert alone")
    options.add_argument("--plots", type=Path, help="where to put its plots")
    arguments = options.parse_args()
    told = whole(arguments.comparison)
    expert = beside(told, compared(arguments.expert)) if arguments.expert is not None else {}
    runs = [one_run(path) | {"written": written_by(path)} for path in arguments.runs]
    written = authors(arguments.comparison, told)
    figures = {"comparison": told, "written": written, "expert": expert, "runs": runs}
    evidence.write(arguments.out, "agents", figures, measured_on=machine(told["runs"][0]["facts"]))
    if arguments.plots is not None:
        arguments.plots.mkdir(parents=True, exist_ok=True)
        for plot in (arguments.comparison / PLOTS).glob("*.svg"):
            (arguments.plots / f"strategies-{plot.name}").write_bytes(plot.read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
