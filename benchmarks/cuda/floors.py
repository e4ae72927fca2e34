"""What bounds the examples and how far from their floors they are, before and after tuning.

    python -m benchmarks.cuda.floors RUN… --out DIR
    python -m benchmarks.cuda.floors --pages FOLDER --out DIR

Each RUN is the folder of a finished run, named after its example, and is profiled here with `tunesmith
profile RUN --json`. FOLDER holds what that has said elsewhere, as NAME.profile.json. DIR/floors.json keeps
the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda.asking import ask

Told = Mapping[str, Any]


def profile(run: Path, out: Path) -> dict[str, Any]:
    out.mkdir(parents=True, exist_ok=True)
    return ask(["profile", str(run), "--out", str(out)])


def figures(page: Told) -> dict[str, Any]:
    """Of one page: for each workload the original and, where there is one, the winner."""
    workloads = {}
    for workload in page["workloads"]:
        views = [view_of(view) for view in workload["views"]]
        workloads[workload["name"]] = {"before": views[0], "after": views[1] if len(views) > 1 else None}
    keys = ("device", "driver", "compiler")
    return {"workloads": workloads, **{key: page[key] for key in keys}}


def view_of(view: Told) -> dict[str, Any]:
    profile_, diagnosis = view["profile"], view["diagnosis"]
    return {
        "kernel": profile_["kernel"],
        "us": 1e6 * profile_["seconds"] if profile_["seconds"] is not None else None,
        "bound": diagnosis["bound"],
        "distance": diagnosis["distance"],
        "ceiling": diagnosis["ceiling"],
        "findings": [finding["kind"] for finding in diagnosis["findings"]],
        "counters": profile_["counters"] is not None,
    }


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description="Bounds and distances to the floor, before and after.")
    options.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    options.add_argument("--pages", type=Path, help="folder of NAME.profile.json, in place of runs")
    options.add_argument("--out", type=Path, required=True, help="folder for plots and figures")
    given = options.parse_args(arguments)
    if bool(given.runs) == (given.pages is not None):
        options.error("name runs, or a folder with --pages, and not both")
    if given.pages is not None:
        files = sorted(given.pages.glob("*.profile.json"))
        pages = {f.name.removesuffix(".profile.json"): json.loads(f.read_text("utf-8")) for f in files}
    else:
        pages = {run.name: profile(run, given.out / run.name) for run in given.runs}
    if not pages:
        options.error(f"there is no NAME.profile.json in {given.pages}")
    found = {name: figures(page) for name, page in pages.items()}
    evidence.write(given.out, "floors", {"examples": found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
