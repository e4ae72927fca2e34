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
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from tunesmith.base.codec import Malformed, decode_json, encode_json
from tunesmith.base.errors import TunesmithError
from tunesmith.plugins.studies.pages import DATA, PLOTS, RUNS
from tunesmith.plugins.studies.plan import RunFacts
from tunesmith.plugins.studies.result import ComparisonResult
from tunesmith.plugins.studies.run import journal_facts
from tunesmith.run.state import State


def one_run(path: Path) -> dict[str, Any]:
    """A run's facts as a comparison has them, its kernel, whose templates it has, and what it was allowed."""
    try:
        state, facts = journal_facts(path)
    except TunesmithError as error:
        raise SystemExit(f"{path} is no run of tunesmith: {error}") from error
    if state.started is None or state.stopped is None:
        raise SystemExit(f"{path} is not finished; go on with: tunesmith resume {path}")
    settings = state.settings
    return {
        "kernel": state.started.problem,
        "facts": json.loads(encode_json(facts)),
        "written": written(state),
        "rounds": settings.rounds,
        "evals": settings.evals,
        "seed": settings.seed,
        "model": settings.models,
    }


def written(state: State) -> list[str]:
    """Who made each template, in their order: the model as author, or moves that it named."""
    return ["model" if c.drafted.author else "moves" for c in state.candidates if c.drafted is not None]


def compared(path: Path) -> ComparisonResult:
    try:
        told = json.loads((path / DATA).read_text(encoding="utf-8"))["comparison"]
        return decode_json(json.dumps(told).encode(), ComparisonResult, "comparison")
    except (OSError, ValueError, KeyError, Malformed) as error:
        raise SystemExit(
            f"{path} is no folder of tunesmith compare: {DATA} cannot be read: {error}"
        ) from error


def whole(path: Path) -> ComparisonResult:
    """A comparison of which all runs are over."""
    found = compared(path)
    if found.unfinished:
        names = ", ".join(run.planned.place for run in found.unfinished)
        raise SystemExit(f"{path} is not finished ({names}); go on with: tunesmith compare --resume {path}")
    return found


def beside(ours: ComparisonResult, expert: ComparisonResult) -> dict[str, list[float]]:
    """Problem -> speed-ups of the expert's runs, which must have had the same problems and budget."""
    for part in ("problems", "budget"):
        if getattr(expert.plan, part) != getattr(ours.plan, part):
            raise SystemExit(f"the expert's comparison has other {part} than the model's")
    found: dict[str, list[float]] = {}
    for run in expert.of("expert"):
        if run.status == "finished" and run.speedup is not None:
            found.setdefault(run.planned.problem, []).append(run.speedup)
    if not found:
        raise SystemExit("the expert's comparison has no finished run of the expert")
    return found


def machine(facts: RunFacts) -> dict[str, Any]:
    """Where a run was made, which need not be here."""
    versions = dict(facts.versions)
    python = versions.pop("python", "unknown")
    versions.pop("system", None)
    return {
        "device": facts.device,
        "driver": facts.driver,
        "compilers": [facts.compiler],
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
    found = whole(arguments.comparison)
    runs = {
        run.planned.place: journal_facts(arguments.comparison / RUNS / run.planned.place)
        for run in found.runs
    }
    figures = {
        "comparison": json.loads(encode_json(found)),
        "written": {place: written(state) for place, (state, _) in runs.items()},
        "expert": beside(found, compared(arguments.expert)) if arguments.expert is not None else {},
        "runs": [one_run(path) for path in arguments.runs],
    }
    measured_on = machine(next(facts for _, facts in runs.values()))
    evidence.write(arguments.out, "agents", figures, measured_on=measured_on)
    if arguments.plots is not None:
        arguments.plots.mkdir(parents=True, exist_ok=True)
        for plot in (arguments.comparison / PLOTS).glob("*.svg"):
            (arguments.plots / f"strategies-{plot.name}").write_bytes(plot.read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
