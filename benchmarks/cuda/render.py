"""Makes docs/results.md from what the other benchmarks have written.

    python -m benchmarks.cuda.render DIR [--notes FILE] > docs/results.md

Every sentence that says "reached" or "fell short" is computed from the figures. FILE is JSON, {section:
text}: what only a person can add, such as why a bound was not reached; sections are those of SECTIONS. A part
that was not measured says so.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda import markdown as md
from benchmarks.cuda.examples import WITHIN as BASELINE_WITHIN
from benchmarks.cuda.examples import against_published
from benchmarks.cuda.render_agents import agents, strategies
from benchmarks.cuda.render_expert import expert
from benchmarks.cuda.render_profiles import faults, floors, occupancy
from benchmarks.cuda.render_retune import retune
from benchmarks.cuda.render_searches import seeds, tenth
from benchmarks.cuda.throughput import compared
from benchmarks.cuda.truth import WITHIN as TRUTH_WITHIN
from tunesmith.base.text import format_count
from tunesmith.run.outcome import geometric_mean

FLAGSHIP = "silu_and_mul"
CONFIGURATIONS, SEARCH_S, RUN_S = 100, 10.0, 60.0
MEAN, COPY_SHARE, FASTER, HOSTILE = 8.0, 0.95, 6.0, 40
INTRODUCTION = """\
Made by `benchmarks/cuda/render.py`; each table comes with its commands. They write below `build`, which is
not kept. Runs with a language model are kept in `tests/fixtures/comparisons/h200.tar.xz`.

- Times are µs per launch, cold: no cache holds the data. Speed-ups are those of the verification, in fresh
  processes.
- *Of a copy*: the time of a plain copy of the same bytes over the kernel's; above 100 % where the kernel
  reads a larger share than a copy does.
- *Against published*: counted from the published kernel's time, measured beforehand on the same kind of
  device, where our baseline is slower.
- *Reached*, *fell short*: against goals set before the work began.
"""

Told = Mapping[str, Any]


def honest_mean(found: Told, published: Told) -> float:
    """The geometric mean of the speed-ups, each from the published time where our baseline is slower."""
    rows = found["workloads"]
    honest = [against_published(r, published.get(r["name"]))["honest_speedup"] for r in rows]
    return geometric_mean(honest, [r["weight"] for r in rows])


def published_times(examples: Told | None, name: str) -> dict[str, float]:
    rows = ((examples or {}).get("examples", {}).get(name) or {}).get("workloads", [])
    return {r["name"]: r["published_us"] for r in rows if r["published_us"]}


WORKLOADS = "Each workload: original → tuned in µs, speed-up (95 % interval), of a copy."

# -- examples -------------------------------------------------------------------------------------------


def examples(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_["examples"]
    if told is None:
        return ["Not measured.", ""]
    copies = (all_["copy_rate"] or {}).get("copies", {})
    lines = [*_overview(told), *_baselines(told["examples"]), "", WORKLOADS, "", *_workloads(told, copies)]
    lines += md.source_without_software(told)
    if all_["copy_rate"] is not None:
        lines += ["The copies:", "", *md.source_without_software(all_["copy_rate"])]
    return lines


def _workloads(told: Told, copies: Told) -> list[str]:
    rows = []
    for name, found in told["examples"].items():
        rows.append([name, "; ".join(_workload(r, copies) for r in found["workloads"])])
    return md.table(["example", "workloads"], rows, left=2)


def _workload(r: Told, copies: Told) -> str:
    words = f"{r['name']} {md.us(r['baseline_us'])} → {md.us(r['tuned_us'])}, {md.times(r['speedup'])}"
    words += f" ({r['interval'][0]:.2f} to {r['interval'][1]:.2f})" if r["config"] else " (the original)"
    share = md.percent(evidence.share_of_copy(r, copies))
    return f"{words}, {share}" if share else words


def _overview(told: Told) -> list[str]:
    head = ["example", "geometric mean", "against published", "tried", "wall", "search", "device busy"]
    rows = []
    for name, f in told["examples"].items():
        honest = honest_mean(f, published_times(told, name))
        cells = [name, md.times(f["geometric_mean"]), md.times(honest), str(f["tried"])]
        cells += [f"{f['wall_s']:.1f} s", f"{f['seconds']['search']:.1f} s", md.percent(f["busy_share"])]
        rows.append(cells)
    return md.table(head, rows)


def _baselines(found: Mapping[str, Told]) -> list[str]:
    rated = [
        (f"{name}/{r['name']}", r["baseline_ratio"])
        for name, f in found.items()
        for r in f["workloads"]
        if r["baseline_ratio"]
    ]
    slow = [f"{name} ({ratio:.2f})" for name, ratio in rated if ratio > BASELINE_WITHIN]
    words = f"{len(rated) - len(slow)} of {len(rated)} baselines within 15 % of the published kernel's time"
    if slow:
        words += f"; slower: {', '.join(slow)}"
    fast = [f"{name} ({ratio:.2f})" for name, ratio in rated if ratio < 2 - BASELINE_WITHIN]
    if fast:
        words += f"; more than 15 % faster, so a harder start: {', '.join(fast)}"
    return [md.claim(not slow if rated else None, words)]


# -- silu_and_mul ---------------------------------------------------------------------------------------


BUSY = (
    "*Device busy*: time in the kernels under test over the wall time of evaluations. Checks, restoring "
    "buffers and loading code do not count; slow configurations are launched a few times only."
)


def throughput(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_["throughput"]
    if told is None:
        return ["Not measured.", ""]
    copies = (all_["copy_rate"] or {}).get("copies", {})
    head = ["seed", "configurations", "search", "whole run", "device busy", "geometric mean"]
    head += ["against published", "of a copy, largest size"]
    rows, shares = [], []
    published = published_times(all_["examples"], FLAGSHIP)
    for r in told["runs"]:
        largest = max(r["workloads"], key=lambda w: w["bytes"])
        shares.append(evidence.share_of_copy(largest, copies))
        cells = [str(r["seed"]), str(r["tried"]), f"{r['seconds']['search']:.2f} s"]
        cells += [f"{r['wall_s']:.2f} s", md.percent(r["busy_share"])]
        means = [md.times(r["geometric_mean"]), md.times(honest_mean(r, published))]
        rows.append([*cells, *means, md.percent(shares[-1], 1)])
    runs = told["runs"]
    search, whole = max(r["seconds"]["search"] for r in runs), max(r["wall_s"] for r in runs)
    fewest, mean = min(r["tried"] for r in runs), min(honest_mean(r, published) for r in runs)
    known = [share for share in shares if share is not None]
    return [
        *md.table(head, rows),
        md.claim(fewest >= CONFIGURATIONS, f"{fewest} configurations at every size (≥ {CONFIGURATIONS})"),
        md.claim(
            search <= SEARCH_S,
            f"build, smoke check and timing of all of them in {search:.2f} s at worst (≤ {SEARCH_S:.0f} s)",
        ),
        md.claim(whole <= RUN_S, f"the whole run in {whole:.1f} s at worst (≤ {RUN_S:.0f} s)"),
        md.claim(mean >= MEAN, f"geometric mean against published {mean:.2f}× at least (≥ {MEAN:.0f}×)"),
        md.claim(
            min(known) >= COPY_SHARE if known else None,
            f"{md.percent(min(known), 1) if known else '?'} of a copy's rate at the largest size (≥ 95 %)",
        ),
        md.claim(
            min(r["busy_share"] for r in runs) > 0.5,
            f"device busy {md.percent(min(r['busy_share'] for r in runs))} at least (more than half)",
        ),
        "",
        BUSY,
        "",
        *md.source_without_software(told),
    ]


def kernel_tuner(all_: Mapping[str, Told | None]) -> list[str]:
    other, own = all_["kernel_tuner_arm"], all_["throughput"]
    if other is None:
        return ["Not measured.", ""]
    head = ["workload", "wall", "compile", "benchmark", "its winner", "its time"]
    rows = []
    for name, r in other["workloads"].items():
        parts = [f"{r['seconds'][part]:.2f} s" for part in ("compile", "benchmark")]
        winner = [md.config(r["winner"]), f"{md.us(r['winner_us'])} µs"]
        rows.append([name, f"{r['wall_s']:.2f} s", *parts, *winner])
    lines = md.table(head, rows)
    against = compared(list(own["runs"]), dict(other)) if own is not None else None
    if against is not None:
        ratio = against["ratio_same_phases"]
        ours, theirs = against["search_s_per_pair"], against["other_compile_and_benchmark_s_per_pair"]
        lines += [
            f"One configuration at one size: Kernel Tuner compiles and benchmarks in {1e3 * theirs:.1f} ms, "
            f"we build, check and time in {1e3 * ours:.2f} ms. By wall, whole runs: "
            f"{1e3 * against['other_wall_s_per_pair']:.1f} ms and {1e3 * against['wall_s_per_pair']:.2f} ms. "
            "Its run checks no results. It times with a warm cache, we time cold: the times of the two do "
            "not compare.",
            "",
            md.claim(ratio >= FASTER, f"{ratio:.1f} times faster counting the same phases (≥ {FASTER:.0f})"),
            f"- whole run against its wall: {against['ratio_whole_run_against_wall']:.1f} times faster",
            "",
        ]
    return [*lines, *md.source_without_software(other)]


def truth(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_["truth"]
    if told is None:
        return ["Not measured.", ""]
    lines = []
    for problem, found in told["problems"].items():
        runs, others = found["runs"], found["others"]
        head = ["workload", "timed", "true best", "configuration", "its spread"]
        head += [f"choice / general, worst of {format_count(len(runs), 'run')}", *others]
        rows = []
        for name, w in found["workloads"].items():
            cells = [name, str(w["timed"]), f"{md.us(w['best']['us'])} µs", md.config(w["best"]["config"])]
            cells.append(f"{w['spread_percent']:.1f} %")
            choice = max(r["workloads"][name]["behind_percent"] for r in runs.values())
            general = max(r["general"]["workloads"][name] for r in runs.values())
            cells.append(f"{md.behind(choice)} / {md.behind(general)}")
            cells += [md.behind(o["workloads"].get(name, {}).get("behind_percent")) for o in others.values()]
            rows.append(cells)
        lines += [f"{problem}, {found['passes']} × {found['rounds']} rounds:", "", *md.table(head, rows)]
        worst = max(w["behind_percent"] for r in runs.values() for w in r["workloads"].values())
        general = max(r["general"]["behind_percent"] for r in runs.values())
        words = f"choices at most {md.behind(worst)} behind, the general configuration {md.behind(general)} "
        words += f"behind the best single one (≤ {TRUTH_WITHIN:.0f} %)"
        lines.append(md.claim(max(worst, general) <= TRUTH_WITHIN, words))
        for name, o in others.items():
            worst = max(w["behind_percent"] for w in o["workloads"].values())
            lines.append(f"- {name}: winners at most {md.behind(worst)} behind")
        lines.append("")
    return [*lines, *md.source_without_software(told)]


# -- hostile kernels ------------------------------------------------------------------------------------


def hostile(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_["hostile"]
    if told is None:
        return ["Not measured.", ""]
    verdict, kernels = told["verdict"], told["kernels"]
    groups: Counter[tuple[str, str]] = Counter()
    for k in kernels:
        found = k["got"] if k["right"] else f"**{k['got']}**"
        groups[" or ".join(k["expected"]), found] += 1
    rows = [[*statuses, str(count)] for statuses, count in groups.items()]
    good = sum(k["right"] for k in kernels)
    missed = "".join(f"; not: {k['what']}" for k in kernels if not k["right"])
    none_left = not verdict["strays"]
    return [
        "Each is described in `tests/fixtures/hostile_cuda/expected.json`.",
        "",
        *md.table(["expected", "found", "kernels"], rows, left=2),
        md.claim(
            verdict["all_right"] and verdict["hostile"] >= HOSTILE,
            f"{good} of {len(kernels)} kernels got the right status, {verdict['hostile']} of them hostile"
            + missed,
        ),
        md.claim(verdict["winner_right"], f"the right winner was delivered: KIND {verdict['winner'][0]}"),
        md.claim(none_left, "no process of the run was left" if none_left else f"left: {verdict['strays']}"),
        md.claim(
            verdict["usable_afterwards"],
            f"a run over the right kernels alone, right after, delivers KIND {verdict['clean_winner'][0]}",
        ),
        f"- the mixed run took {told['mixed']['wall_s']:.0f} s",
        "",
        *md.source_without_software(told),
    ]


SECTIONS: dict[str, tuple[str, Callable[[Mapping[str, Told | None]], list[str]]]] = {
    "examples": ("Examples", examples),
    "expert": ("The built-in expert", expert),
    "agents": ("Templates by a language model", agents),
    "strategies": ("Strategies compared", strategies),
    "floors": ("Bounds and floors", floors),
    "throughput": (f"Throughput: {FLAGSHIP}", throughput),
    "kernel_tuner": ("Against Kernel Tuner", kernel_tuner),
    "truth": ("The true best", truth),
    "retune": ("Retuned at new sizes", retune),
    "tenth": ("A tenth of the evaluations", tenth),
    "seeds": ("One seed and another", seeds),
    "faults": ("Planted faults", faults),
    "occupancy": ("Occupancy", occupancy),
    "hostile": ("Hostile kernels", hostile),
}
FILES = (
    "examples",
    "copy_rate",
    "throughput",
    "kernel_tuner_arm",
    "truth",
    "hostile",
    "expert",
    "agents",
    "floors",
    "faults",
    "occupancy",
    "retune",
    "tenth",
    "seeds",
)


def page(all_: Mapping[str, Told | None], notes: Mapping[str, str]) -> str:
    measured = [told for told in all_.values() if told is not None]
    device = measured[0]["machine"]["device"] if measured else "a device"
    # Floors are read from pages that may come from another machine, which they name themselves.
    software = dict.fromkeys(md.software(told) for name, told in all_.items() if told and name != "floors")
    lines = [
        f"# Results on one {device}",
        "",
        *INTRODUCTION.splitlines(),
        *(f"- Software: {versions}." for versions in software),
        "",
    ]
    for key, (title, make) in SECTIONS.items():
        lines += [f"## {title}", "", *make(all_)]
        if key in notes:
            lines += [notes[key], ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    options = argparse.ArgumentParser(description="Make the page of results.")
    options.add_argument("out", type=Path, metavar="DIR", help="where the benchmarks have written")
    options.add_argument("--notes", type=Path, help="JSON: what to add to which section")
    arguments = options.parse_args()
    notes = json.loads(arguments.notes.read_text(encoding="utf-8")) if arguments.notes else {}
    sys.stdout.write(page({name: evidence.read(arguments.out, name) for name in FILES}, notes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
