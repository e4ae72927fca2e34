"""What a language model reached on the GPU, as finished runs tell it. Nothing is measured here.

    python -m benchmarks.cuda.agents --out DIR [--plots FOLDER] --comparison FOLDER [RUN…]

The comparison is one of `tunesmith compare`; RUNs are runs of `tunesmith tune --model …` at kernels that it
does not have. DIR/agents.json keeps what benchmarks.cuda.render makes tables of, FOLDER the plots.
"""

from __future__ import annotations

import argparse
import json
import sys
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


def main() -> int:
    options = argparse.ArgumentParser(description="Note what a language model reached.")
    options.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folders of finished runs")
    options.add_argument("--out", type=Path, required=True, help="folder for the figures")
    options.add_argument("--comparison", type=Path, required=True, help="folder of a comparison")
    options.add_argument("--plots", type=Path, help="where to put its plots")
    arguments = options.parse_args()
    told = json.loads((arguments.comparison / DATA).read_text(encoding="utf-8"))
    runs = {path.name: one_run(path) for path in arguments.runs}
    evidence.write(arguments.out, "agents", {"comparison": told["comparison"], "runs": runs})
    if arguments.plots is not None:
        arguments.plots.mkdir(parents=True, exist_ok=True)
        for plot in (arguments.comparison / PLOTS).glob("*.svg"):
            (arguments.plots / f"strategies-{plot.name}").write_bytes(plot.read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
