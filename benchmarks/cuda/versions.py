"""Two versions of Tunesmith on the same kernels, and what they deliver side by side.

    python -m benchmarks.cuda.versions --other SRC --out DIR [OPTION…] PROBLEM…
    python -m benchmarks.cuda.versions --out DIR --page FILE

SRC is the `src` folder of the other version, such as that of `git worktree add FOLDER COMMIT`. Each problem
is tuned by the built-in expert of both, --jobs N at a time, into DIR/versions-runs; runs that are there
already are taken as they are. Several runs at a time share the device, so limit them by --evals rather than
--time. No run is begun after --for S seconds; a later call goes on. Then original, other and this are called
at every workload through what was delivered, captured in CUDA graphs and replayed in alternation. Figures go
to DIR/versions.json, those of other problems stay there. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda import markdown as md
from benchmarks.cuda.asking import Failed, environment_with
from benchmarks.cuda.delivered import Caller
from benchmarks.cuda.expert import in_words
from benchmarks.cuda.tuning import new_run
from tunesmith.problem.plan import necessary_traffic
from tunesmith.run.folder import CERTIFICATE, RunFolder
from tunesmith.run.outcome import median_interval
from tunesmith.session import problems, result

SLOWER = 0.99
NOT_BEGUN = "not begun: call again"
HOW = (
    "Original, the other version's winners and this version's, each through its own dispatch, in CUDA graphs "
    "over arrays that exceed the cache, replayed in alternation. *This / other*: the median of the paired "
    "ratios, above 1 where this version is faster, with its 95 % interval for the workload where it is least."
)


def tuned(problem: Path, run: Path, src: Path | None, more: list[str], within: float) -> str:
    """ "" where the run has ended well, or why not."""
    if (run / CERTIFICATE).exists():
        return ""
    words = ["tune", str(problem), "--backend", "cuda", "--seed", "1", "--no-prior", *more]
    try:
        new_run(words, run, environment_with(src), within)
    except (Failed, subprocess.TimeoutExpired) as error:
        return in_words(error)
    return ""


def side_by_side(problem_folder: Path, other: Path, this: Path) -> dict[str, Any]:
    problem, _ = problems.load_problem(problem_folder)
    runs = [result.calls_of(run.resolve(), "torch") for run in (other, this)]
    rows = []
    for workload in problem.workloads:
        sizes = dict(workload.sizes)
        rounds = Caller(problem, sizes).rounds([runs[0].original, *runs], warm=False)
        ratios = {
            "other": [original / old for original, old, _ in rounds],
            "this": [original / new for original, _, new in rounds],
            "both": [old / new for _, old, new in rounds],
        }
        found = {name: median_interval(tuple(values), 1) for name, values in ratios.items()}
        rows.append(
            {"name": workload.name, "bytes": necessary_traffic(problem, sizes)}
            | {name: [f.value, f.low, f.high] for name, f in found.items()}
        )
    moves = [_moves(run) for run in (other, this)]
    return {"problem": problem.name, "workloads": rows, "moves": moves}


def _moves(run: Path) -> list[str]:
    """Those of the template that won."""
    state, _ = problems.state_and_templates(RunFolder(run))
    admitted = [candidate for candidate in state.candidates if candidate.moves]
    return list(admitted[-1].moves) if admitted else []


def mean(found: dict[str, Any], name: str) -> float:
    return geometric_mean(row[name][0] for row in found["workloads"])


def row_of(name: str, found: dict[str, Any]) -> list[str]:
    if "failed" in found:
        return [name, found["failed"], "", "", ""]
    least = min(found["workloads"], key=lambda row: row["both"][0])
    value, low, high = least["both"]
    cells = [f"{mean(found, which):.3f}×" for which in ("other", "this", "both")]
    return [name, *cells, f"{value:.3f} ({low:.3f} to {high:.3f}), {least['name']}"]


def page(told: dict[str, Any]) -> list[str]:
    found = told["versions"]
    whole = {name: one for name, one in found.items() if "failed" not in one}
    slower = [name for name, one in whole.items() if mean(one, "both") < SLOWER]
    head = ["problem", "other version", "this version", "this / other", "least"]
    return [
        "# This version beside another",
        "",
        HOW,
        "",
        *md.table(head, [row_of(name, one) for name, one in found.items()]),
        md.claim(not slower, f"slower than 0.99× of the other version: {', '.join(slower) or 'none'}"),
        "",
        *md.source(told),
    ]


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("problems", nargs="*", type=Path, metavar="PROBLEM")
    options.add_argument("--other", type=Path, help="the src folder of the other version")
    options.add_argument("--out", type=Path, required=True, help="folder for runs and figures")
    options.add_argument("--time", type=float, default=10.0, help="seconds to search, of each")
    options.add_argument("--evals", type=int, help="configurations to try at most, of each")
    options.add_argument("--rounds", type=int, help="refactorings at most, of each")
    options.add_argument("--within", type=float, default=240.0, help="seconds that a run may take in all")
    options.add_argument("--jobs", type=int, default=1, help="runs at a time")
    options.add_argument("--for", dest="most", type=float, default=math.inf, help="seconds to begin runs in")
    options.add_argument("--page", type=Path, help="file for the table, as Markdown")
    given = options.parse_args()
    if given.problems and given.other is None:
        options.error("--other: the src folder of the other version is needed to tune")
    known: dict[str, Any] = (evidence.read(given.out, "versions") or {}).get("versions", {})
    runs = given.out / "versions-runs"
    limits = {"--time": given.time, "--evals": given.evals, "--rounds": given.rounds}
    more = [str(word) for pair in limits.items() if pair[1] is not None for word in pair]

    began = time.monotonic()

    def one(problem: Path, which: str) -> str:
        run = runs / which / problem.name
        if not (run / CERTIFICATE).exists() and time.monotonic() - began > given.most:
            return NOT_BEGUN
        src = given.other if which == "other" else None
        return tuned(problem, run, src, more, given.within)

    with ThreadPoolExecutor(max(given.jobs, 1)) as pool:
        pairs = [
            [pool.submit(one, folder, which) for which in ("other", "this")] for folder in given.problems
        ]
        ended = [[future.result() for future in pair] for pair in pairs]
    for problem, (other, this) in zip(given.problems, ended, strict=True):  # nothing else runs now
        name = problem.name
        if NOT_BEGUN in (other, this):
            print(f"{name}: {NOT_BEGUN}", flush=True)
            continue
        if other or this:
            known[name] = {"failed": f"other: {other or 'well'}; this: {this or 'well'}"}
        else:
            known[name] = side_by_side(problem, runs / "other" / name, runs / "this" / name)
        evidence.write(given.out, "versions", {"versions": known}, adds=True)
        print(" | ".join(row_of(name, known[name])), flush=True)
    told = evidence.read(given.out, "versions")
    if given.page and told is not None:
        given.page.write_text("\n".join(page(told)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
