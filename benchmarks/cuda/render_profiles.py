"""The sections of docs/results.md about profiles: floors, planted faults, occupancy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.cuda import markdown as md

Told = Mapping[str, Any]
NAMED_WITH, NAMED_WITHOUT, CASES = 9, 7, 500
FLOORS = (
    "[Floors](profiling.md) and diagnoses by `tunesmith profile`. *Away*: the measured time over the floor."
)


def floors(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_.get("floors")
    if told is None:
        return ["Not measured.", ""]
    head = ["example", "workload", "original away", "first finding", "tuned away", "first finding"]
    rows = []
    for name, found in told["examples"].items():
        for workload, views in found["workloads"].items():
            after = views["after"]
            tuned = _view(after) if after is not None else ["the original stays", ""]
            rows.append([name, workload, *_view(views["before"]), *tuned])
    closest = [
        v["after"]["distance"]
        for f in told["examples"].values()
        for v in f["workloads"].values()
        if v["after"] is not None and v["after"]["distance"] is not None
    ]
    near = sum(distance <= 1.15 for distance in closest)
    lines = [FLOORS, "", *md.table(head, rows, left=2)]
    lines += [f"- {near} of {len(closest)} tuned kernels are within 15 % of their floor", ""]
    # Pages may come from another machine: what they say of theirs counts, not where the table was made.
    where = {f"{f['device']}, driver {f['driver']}; {f['compiler']}" for f in told["examples"].values()}
    return [*lines, "```sh", *told["commands"], "```", "", f"{told['date']}, {'; '.join(sorted(where))}.", ""]


def _view(view: Told) -> list[str]:
    finding = view["findings"][0].replace("_", " ") if view["findings"] else "none"
    return [md.times(view["distance"]), finding]


def faults(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_.get("faults")
    if told is None:
        return ["Not measured.", ""]
    rows, named = [], {"with": 0, "without": 0}
    bad = {name: f for name, f in told["kernels"].items() if f["planted"]}
    for name, found in told["kernels"].items():
        cells = [name, ", ".join(found["planted"]) or "none"]
        for way in ("with", "without"):
            first = found[way]["findings"][0] if found[way]["findings"] else "none"
            cells.append(first if found[way]["named"] else f"**{first}**")
            named[way] += bool(found["planted"]) and found[way]["named"]
        rows.append([*cells, md.times(found["with"]["distance"])])
    head = ["kernel", "planted", "first finding", "without counters", "away from its floor"]
    healthy = [f for name, f in told["kernels"].items() if name not in bad]
    clean = sum(f["with"]["named"] and f["without"]["named"] for f in healthy)
    return [
        *md.table(head, rows, left=4),
        md.claim(
            named["with"] >= NAMED_WITH if bad else None,
            f"the planted fault comes first in {named['with']} of {len(bad)} (≥ {NAMED_WITH})",
        ),
        md.claim(
            named["without"] >= NAMED_WITHOUT if bad else None,
            f"with counters forbidden in {named['without']} of {len(bad)} (≥ {NAMED_WITHOUT})",
        ),
        f"- {clean} of {len(healthy)} healthy kernels have no finding",
        "",
        *md.source_without_software(told),
    ]


def occupancy(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_.get("occupancy")
    if told is None:
        return ["Not measured.", ""]
    different, cases = len(told["different"]), told["cases"]
    registers = told["registers"]
    words = (
        f"{cases - different} of {cases} random cases agree with the driver's own occupancy call (≥ {CASES}"
    )
    words += (
        f" cases, none different); {min(registers)} to {max(registers)} registers, blocks of any size, static"
    )
    words += " and dynamic shared memory"
    return [md.claim(different == 0 and cases >= CASES, words), "", *md.source_without_software(told)]
