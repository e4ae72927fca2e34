"""Tunes kernels, most beyond the expert's reading, with nothing but their own knobs.

    python -m benchmarks.cuda.knobs --out DIR [--page FILE] [--problems FOLDER] [--time S] [--evals N]
                                    [--within S] [--jobs N] [NAME…]

Names are folders of problems in FOLDER, by default all of tests/fixtures/knobs with a kernel.cu. The expert
plans and writes as in `tunesmith tune`, but `knobs` is the only move there is, so gate, oracle and
verification are those of every run. Each problem is a process of its own and is noted as soon as it ends; one
that fails, or does not finish within S seconds, is noted with its words. Runs stay in DIR/knobs-runs/NAME,
figures go to DIR/knobs.json, those of earlier calls for other problems are kept; FILE is the table. More than
one job at a time disturbs timings.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda import markdown as md
from tunesmith.expert.read.lift import lift_kernel
from tunesmith.expert.read.model import NotReadable
from tunesmith.run.events import Admitted, Event, Measured, Rejected
from tunesmith.run.folder import RunFolder
from tunesmith.session.problems import load_problem

PROBLEMS = evidence.ROOT / "tests" / "fixtures" / "knobs"
KNOBS_ALONE = """
import sys
from tunesmith.cli.app import main
from tunesmith.expert.author import ExpertAuthor
ExpertAuthor.available = lambda self, problem, device: (("knobs",), ())
sys.argv = ["tunesmith", *sys.argv[1:]]
main()
"""
NEUTRAL = ("ok", "infeasible", "over_limits")
HOW = (
    "Kernels tuned with the numbers of their own text alone: `knobs` is the only move. *Read*: whether the "
    "expert would have others. *Tried*: "
    "configurations, those of the gate included. *Refused*: of these, what compiler, gate or oracle turned "
    "away; a configuration that does not fit the device is not counted. *Speed-up*: verified, against "
    "the original in the same run."
)

Told = Mapping[str, Any]


def names(problems: Path) -> list[str]:
    return sorted(path.parent.name for path in problems.glob("*/problem.toml"))


def tuned(problem: Path, out: Path, options: Sequence[str], within: float) -> dict[str, Any]:
    """What came of one problem; never an exception of its own."""
    shutil.rmtree(out, ignore_errors=True)
    words = ["tune", str(problem), "--out", str(out), "--json", "--seed", "1", "--no-prior", "--no-cache"]
    words += ["--no-library", *options]
    before = time.perf_counter()
    try:
        ended = subprocess.run(
            [sys.executable, "-c", KNOBS_ALONE, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=within,
        )
        told = json.loads(ended.stdout)
    except subprocess.TimeoutExpired:
        told = {"error": f"not finished after {within:.0f} s"}
    except json.JSONDecodeError:
        told = {"error": (ended.stderr.strip().splitlines() or ["no word"])[-1][:400]}
    wall = round(time.perf_counter() - before, 1)
    journal = figures(_events(out))
    if "error" in told or "geometric_mean" not in told:
        return {"failed": str(told.get("error", "no report"))[:400], "wall_s": wall, **journal}
    return {**reported(told), "wall_s": wall, **journal}


def _events(out: Path) -> list[Event]:
    """Of the journal, also where the run did not end."""
    if not (out / "journal.jsonl").is_file():
        return []
    return [record.event for record in RunFolder.open(out).journal().read()]


def figures(events: Iterable[Event]) -> dict[str, Any]:
    """What was tried and what of it was refused, with the first words on each kind."""
    statuses: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    drafts: list[str] = []
    rules = feasible = 0
    for event in events:
        if isinstance(event, Rejected):
            drafts.append(event.reason[:400])
        elif isinstance(event, Admitted):
            rules, feasible = rules + len(event.rules), event.feasible
        elif isinstance(event, Measured) and event.outcome.trial.config is not None:
            worst = next((r for r in event.outcome.results if r.status not in NEUTRAL), None)
            status = str((worst or event.outcome.results[0]).status)
            statuses[status] += 1
            if worst is not None:
                config = event.outcome.trial.config
                reasons.setdefault(status, f"{config}: {worst.detail}"[:300])
    refused = sum(count for status, count in statuses.items() if status not in NEUTRAL)
    return {
        "tried": sum(statuses.values()),
        "statuses": dict(statuses),
        "refused": refused,
        "why": reasons,
        "drafts_turned_away": drafts,
        "rules_of_the_gate": rules,
        "feasible": feasible,
    }


def reported(report: Told) -> dict[str, Any]:
    keys = ("name", "baseline_us", "tuned_us", "speedup", "interval", "config")
    return {
        "device": report["device"],
        "seconds": report["seconds"],
        "reason": report["reason"],
        "geometric_mean": report["geometric_mean"],
        "workloads": [{key: row[key] for key in keys} for row in report["workloads"]],
        "notes": [note for note in report.get("notes", ()) if "knobs:" in str(note)],
    }


def is_read(name: str) -> str:
    if not (PROBLEMS / name).exists():
        return ""
    problem, _ = load_problem(PROBLEMS / name)
    return "no" if isinstance(lift_kernel(problem), NotReadable) else "yes"


def knobs_of(found: Told) -> str:
    configs = [row["config"] for row in found.get("workloads", ()) if row["config"]]
    shown = [md.config({k.removeprefix("KNOB_"): v for k, v in config.items()}) for config in configs]
    return "; ".join(dict.fromkeys(shown)) or "the original stays"


def page(told: Told) -> list[str]:
    head = [
        "kernel",
        "read",
        "winner's knobs",
        "why refused",
        "speed-up",
        "least",
        "most",
        "space",
        "tried",
        "refused",
        "run",
    ]
    rows = []
    for name, found in told["knobs"].items():
        why = "; ".join(f"{kind} ({found['statuses'][kind]})" for kind in found.get("why", {}))
        tries = [str(found[key]) for key in ("feasible", "tried", "refused")]
        if "failed" in found:
            failed = [name, is_read(name), found["failed"], why, "", "", ""]
            rows.append([*failed, *tries, f"{found['wall_s']:.0f} s"])
            continue
        each = [row["speedup"] for row in found["workloads"]]
        cells = [
            name,
            is_read(name),
            knobs_of(found),
            why,
            md.times(found["geometric_mean"]),
            md.times(min(each)),
        ]
        rows.append([*cells, md.times(max(each)), *tries, f"{found['wall_s']:.0f} s"])
    good = [found for found in told["knobs"].values() if "failed" not in found]
    ahead = sum(found["geometric_mean"] > 1.01 for found in good)
    tried, refused = (sum(found[key] for found in told["knobs"].values()) for key in ("tried", "refused"))
    share = md.percent(refused / tried, 1) if tried else "none"
    words = [
        f"- {ahead} of {len(told['knobs'])} are faster; {refused} of {tried} configurations refused ({share})"
    ]
    return [
        "# The kernel's own knobs",
        "",
        HOW,
        "",
        *md.table(head, rows, left=4),
        *words,
        "",
        *md.source(told),
    ]


def show(name: str, found: Told) -> None:
    tries = f"{found['tried']} tried, {found['refused']} refused"
    if "failed" in found:
        print(f"{name}: {found['failed']} ({tries}, {found['wall_s']:.0f} s)")
    else:
        mean = f"{found['geometric_mean']:.3f}x"
        print(
            f"{name}: {mean} with {knobs_of(found)}; {tries} of {found['feasible']}, {found['wall_s']:.0f} s"
        )
    for kind, reason in found["why"].items():
        print(f"    {kind}: {reason}")
    sys.stdout.flush()


def main() -> int:
    options = argparse.ArgumentParser(description="Tune kernels with their own knobs alone.")
    options.add_argument("names", nargs="*", metavar="NAME", help="folders of problems")
    options.add_argument("--out", type=Path, required=True, help="folder for runs and figures")
    options.add_argument("--page", type=Path, help="file for the table, as Markdown")
    options.add_argument("--problems", type=Path, default=PROBLEMS, help="where the problems are")
    options.add_argument("--time", type=float, default=15.0, help="seconds to search, of each")
    options.add_argument("--evals", type=int, help="configurations to try at most, of each")
    options.add_argument("--within", type=float, default=150.0, help="seconds that a run may take in all")
    options.add_argument("--jobs", type=int, default=1, help="problems at a time")
    given = options.parse_args()
    there = names(given.problems)
    if unknown := set(given.names) - set(there):
        options.error(f"there is no problem {', '.join(sorted(unknown))}; there are {', '.join(there)}")
    more = ["--time", str(given.time), *(["--evals", str(given.evals)] if given.evals else [])]
    known: dict[str, Any] = (evidence.read(given.out, "knobs") or {}).get("knobs", {})

    def one(name: str) -> tuple[str, dict[str, Any]]:
        return name, tuned(given.problems / name, given.out / "knobs-runs" / name, more, given.within)

    with ThreadPoolExecutor(max(given.jobs, 1)) as pool:
        ours = [name for name in there if (given.problems / name / "kernel.cu").exists()]
        for name, found in pool.map(one, given.names or ours):
            known[name] = found
            show(name, found)
            evidence.write(given.out, "knobs", {"knobs": known}, adds=True)
    told = evidence.read(given.out, "knobs")
    if given.page and told is not None:
        given.page.write_text("\n".join(page(told)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
