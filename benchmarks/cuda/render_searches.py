"""How far a search can be trusted: a tenth of the evaluations against all of them, two seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.cuda import markdown as md
from benchmarks.cuda.seeds import WITHIN as SEEDS_WITHIN
from benchmarks.cuda.tenth import WITHIN as TENTH_WITHIN
from tunesmith.run.outcome import geometric_mean

Told = Mapping[str, Any]


def tenth(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_.get("tenth")
    if told is None:
        return ["Not measured.", ""]
    head = ["example", "feasible", "evaluations", "run", "behind on the whole", "behind at worst", "at"]
    head += ["wall", "wall of the exhaustive run"]
    rows, whole, at_worst = [], [], []
    for name, found in told["problems"].items():
        for run, facts in found["runs"].items():
            by_workload = facts["behind"]
            worst = max(by_workload, key=lambda w: by_workload[w])
            mean = 100.0 * (geometric_mean([1.0 + b / 100.0 for b in by_workload.values()]) - 1.0)
            whole.append(mean)
            at_worst.append(by_workload[worst])
            cells = [name, str(found["feasible"]), str(facts["tried"]), run.rpartition("-")[2]]
            cells += [f"{mean:.2f} %", f"{by_workload[worst]:.2f} %", worst]
            rows.append([*cells, f"{facts['wall_s']:.0f} s", f"{found['exhaustive']['wall_s']:.0f} s"])
    return [
        "*Behind* the winners of the exhaustive search of the same template, timed in alternation.",
        "",
        *md.table(head, rows),
        _within("runs on the whole", whole, TENTH_WITHIN),
        _within("runs at each of their workloads", at_worst, TENTH_WITHIN),
        "",
        *md.source_without_software(told),
    ]


def seeds(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_.get("seeds")
    if told is None:
        return ["Not measured.", ""]
    rows, whole, at_worst = [], [], []
    for name, found in told["problems"].items():
        by_workload = found["apart_percent"]
        worst = max(by_workload, key=lambda w: by_workload[w])
        whole.append(found["general_apart_percent"])
        at_worst.append(by_workload[worst])
        cells = [name, ", ".join(map(str, found["seeds"])), ", ".join(map(str, found["tried"]))]
        rows.append([*cells, f"{whole[-1]:.2f} %", f"{at_worst[-1]:.2f} %", worst])
    head = ["example", "seeds", "evaluations", "apart on the whole", "apart at worst", "at"]
    return [
        *md.table(head, rows),
        _within("examples on the whole", whole, SEEDS_WITHIN),
        _within("examples at each of their workloads", at_worst, SEEDS_WITHIN),
        "",
        *md.source_without_software(told),
    ]


def _within(what: str, found: list[float], bound: float) -> str:
    good = sum(value <= bound for value in found)
    words = f"{good} of {len(found)} {what} within {bound:.0f} %, at worst {max(found):.2f} %"
    return md.claim(good == len(found), words)
