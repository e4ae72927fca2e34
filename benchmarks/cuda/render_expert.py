"""The part of the results page on what the built-in expert finds by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda import markdown as md
from tunesmith.run.outcome import geometric_mean

HOW = (
    "From the plain kernels: no template, no model. *At the floors*: the speed-up if every workload took "
    "the time of its [floor](profiling.md). *Of the hand-written*: over the speed-up of the hand-written "
    "template above, each in its own run. *Of a copy*: at the workload that moves most. *Moves*: of the last "
    "template kept."
)
OTHERS = (
    "Kernels of other families and styles (`tests/fixtures/zoo`), with a small budget. 1.00×: the original "
    "stays."
)
OTHERS_HOW = (
    "No template, no model. Each speed-up is the geometric mean over a kernel's workloads, verified on fresh "
    "cases and timed in alternation with the original. *At the floors*: if every workload took just the time "
    "of its floor (docs/profiling.md)."
)

# What the examples were meant to reach, as geometric means over their workloads.
TARGETS = {
    "silu_and_mul": 9.0,
    "silu_and_mul_vector": 1.2,
    "rmsnorm": 2.6,
    "per_token_group_quant_fp8": 2.0,
    "rotary_embedding": 2.0,
    "fused_add_rmsnorm": 1.15,
    "merge_attn_states_lse": 1.04,
}
COPY_SHARE, RUN_S, BEHIND_HAND = 0.9, 180.0, 0.03

Told = Mapping[str, Any]


def expert(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_.get("expert")
    if told is None:
        return ["Not measured.", ""]
    found = told["expert"]
    lines = []
    if "examples" in found:
        hand = (all_.get("examples") or {}).get("examples", {})
        copies = (all_.get("copy_rate") or {}).get("copies", {})
        lines += [HOW, "", *_examples(found["examples"], hand, copies)]
    if "others" in found:
        lines += [OTHERS, "", *_others(found["others"])]
    return [*lines, *md.source_without_software(told)]


def at_floors(rows: Iterable[Told]) -> float | None:
    """The geometric mean of the originals' distances from their floors."""
    known = [(row["distance"], row["weight"]) for row in rows if row["distance"]]
    return geometric_mean([d for d, _ in known], [w for _, w in known]) if known else None


def copy_share(rows: Iterable[Told], copies: Told) -> float | None:
    return evidence.share_of_copy(max(rows, key=lambda row: row["bytes"]), copies)


def _examples(found: Mapping[str, Told], hand: Told, copies: Told) -> list[str]:
    head = ["example", "speed-up", "wanted", "at the floors", "of the hand-written", "of a copy", "run"]
    head += ["evaluations, with the gate's", "moves"]
    rows, claims = [], []
    for name, f in found.items():
        if "failed" in f:
            rows.append([name, f["failed"], *[""] * (len(head) - 2)])
            continue
        wanted, mean = TARGETS.get(name), f["geometric_mean"]
        floors, share = at_floors(f["workloads"]), copy_share(f["workloads"], copies)
        ratio = mean / hand[name]["geometric_mean"] if name in hand else None
        goal = f"≥ {md.times(wanted)}" if wanted else ""
        goal += ", **fell short**" if wanted and mean < wanted else ""
        cells = [name, md.times(mean), goal, md.times(floors)]
        cells += [md.percent(ratio, 1), md.percent(share), f"{f['seconds']:.0f} s", str(f["evaluations"])]
        rows.append([*cells, ", ".join(_moves(f))])
    good = [f for f in found.values() if "failed" not in f]
    ratios = {
        n: f["geometric_mean"] / hand[n]["geometric_mean"]
        for n, f in found.items()
        if n in hand and f in good
    }
    shares = [s for f in good if (s := copy_share(f["workloads"], copies)) is not None]
    slowest = max((f["seconds"] for f in good), default=None)
    if ratios:
        least = min(ratios, key=lambda n: ratios[n])
        words = f"at least {md.percent(ratios[least], 1)} of the hand-written template's speed-up ({least})"
        claims.append(md.claim(ratios[least] >= 1 - BEHIND_HAND, f"{words} (≥ {1 - BEHIND_HAND:.0%})"))
    if shares:
        words = f"at least {md.percent(min(shares))} of a copy's rate at the largest size"
        claims.append(md.claim(min(shares) >= COPY_SHARE, f"{words} (≥ {COPY_SHARE:.0%})"))
    if slowest is not None:
        claims.append(md.claim(slowest <= RUN_S, f"each run in {slowest:.0f} s at most (≤ {RUN_S:.0f} s)"))
    return [*md.table(head, rows), *claims, "", *_workloads(found)]


def _workloads(found: Mapping[str, Told]) -> list[str]:
    """The speed-up of every workload and how far from its floor it is, before and after."""
    rows = []
    for name, f in found.items():
        cells = [
            f"{row['name']} {md.times(row['speedup'])} ({_distances(row)})" for row in f.get("workloads", ())
        ]
        rows.append([name, ", ".join(cells)])
    head = ["example", "workload, speed-up (original → tuned, times the floor)"]
    return [*md.table(head, rows, left=2)]


def _distances(row: Told) -> str:
    before, after = (md.times(row[key]) or "?" for key in ("distance", "tuned_distance"))
    return f"{before} → {after}" if row["config"] else f"{before}, the original stays"


def _moves(found: Told) -> list[str]:
    kept = [r for r in found["rounds"] if r["kept"]]
    return list(kept[-1]["moves"]) if kept else []


def _others(found: Mapping[str, Told]) -> list[str]:
    head = ["kernel", "speed-up", "least", "most", "at the floors", "run", "moves, or why not"]
    rows = []
    for name, f in found.items():
        if "failed" in f:
            rows.append([name, "", "", "", "", "", f["failed"]])
            continue
        each = [row["speedup"] for row in f["workloads"]]
        cells = [name, md.times(f["geometric_mean"]), md.times(min(each)), md.times(max(each))]
        cells += [md.times(at_floors(f["workloads"])), f"{f['seconds']:.0f} s"]
        rows.append([*cells, ", ".join(_moves(f)) or f["reason"]])
    good = [f for f in found.values() if "failed" not in f]
    ahead = sum(f["geometric_mean"] > 1.01 for f in good)
    failed = len(found) - len(good)
    words = [f"- {ahead} of {len(found)} are faster, {failed} failed, the others stay as they are"]
    return [*md.table(head, rows), *words, ""]


def _summary(found: Mapping[str, Told]) -> list[str]:
    good = [f for f in found.values() if "failed" not in f]
    if not good:
        return []
    means = [f["geometric_mean"] for f in good]
    floors = [floor for f in good if (floor := at_floors(f["workloads"])) is not None]
    return [
        f"- geometric mean {md.times(geometric_mean(means))}, least {md.times(min(means))}, most "
        f"{md.times(max(means))}; at the floors {md.times(geometric_mean(floors) if floors else None)}; "
        f"{sum(f['seconds'] for f in good):.0f} s of runs",
        "",
    ]


def others_page(told: Told) -> list[str]:
    """The kernels that are no examples, as a page of its own."""
    found = told["expert"].get("others", {})
    lines = ["# Kernels by the built-in expert alone", "", OTHERS_HOW, "", *_others(found), *_summary(found)]
    return [*lines, *md.source(told)]
