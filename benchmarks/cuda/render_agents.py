"""The parts of the results page on language models: templates that they wrote, and strategies compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.cuda import markdown as md
from benchmarks.cuda.render_expert import at_floors
from tunesmith.core.codec import decode
from tunesmith.core.compared import Comparison
from tunesmith.deliver.comparison import comparison_sections, what_was_compared

PLOTS = "benchmarks/strategies-"  # before their names, seen from the page
SHOWN = (
    "Result",
    "What this does and does not show",
    "What it cost",
    "Gain per round",
    "Where the gain comes from",
    "What the words mean",
)
TEMPLATES = (
    "A large language model through the mailbox as planner and as author; every reply comes from its "
    "request file alone. It gets the plain kernel, writes templates, and these are searched. Each run "
    "against the original in the same run, the expert's too. *The expert, alike*: with the same budget as "
    "the model, so far as that was run. *The expert*: with its own, as under *The built-in expert* above. "
    "*At the floors*: as there. *Refactoring*, *search*: what the winner's template gave as it was written, "
    "and what its search gave on top."
)
REPORTED_HOW = (
    "What two publications report of kernels of these names. Their baselines are the kernels that a serving "
    "library had then, on their GPUs, at their sizes and with their way of timing; ours are kernels written "
    "in the style of the published ones, at the sizes above, on data that no cache holds, against what they "
    "take on this GPU. So their columns do not compare with ours: what is left to gain depends on how near "
    "to the memory's rate the baseline is. *Astra*: arXiv 2509.07506, H100, o4-mini, five rounds of direct "
    "rewriting by several agents, beside it one agent alone. *Two-stage*: arXiv 2601.12698, Titan RTX, "
    "DeepSeek V3.2, templates that are searched, beside it its agents without the search."
)
# kernel there -> Astra, its single agent, the two-stage tuner, its agents alone
REPORTED: dict[str, tuple[float, float, float, float]] = {
    "merge_attn_states_lse": (1.26, 0.73, 2.03, 1.95),
    "fused_add_rmsnorm": (1.25, 1.18, 1.09, 1.06),
    "silu_and_mul": (1.46, 1.48, 3.55, 2.89),
}
# ours -> the one whose place it has there
SAME = {"silu_and_mul_vector": "silu_and_mul"}

Told = Mapping[str, Any]


def agents(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_.get("agents")
    if told is None:
        return ["Not measured.", ""]
    expert = (all_.get("expert") or {}).get("expert", {})
    alone = {**expert.get("others", {}), **expert.get("examples", {})}
    head = ["kernel", "run", "speed-up", "least and most of a workload", "refactoring", "search", "rounds"]
    head += ["repairs", "evaluations", "requests", "the expert, alike", "the expert", "at the floors"]
    rows, behind = [], []
    for kernel, name, facts in _runs(told):
        own = alone.get(kernel, {})
        each = [gain["speedup"] for gain in facts["workloads"]]
        reach = f"{min(each):.2f} to {max(each):.2f}"
        cells = [kernel, name, md.times(facts["speedup"]), reach]
        cells += [md.times(facts["refactoring"]), md.times(facts["search"]), str(len(facts["rounds"]))]
        cells += [str(facts["repairs"]), str(facts["evaluations"]), str(facts["requests"])]
        cells.append(", ".join(md.times(value) for value in told["expert"].get(kernel, ())))
        cells += [md.times(own.get("geometric_mean")), md.times(at_floors(own.get("workloads", ())))]
        rows.append(cells)
        if own.get("geometric_mean"):
            behind.append(facts["speedup"] / own["geometric_mean"])
    lines = [TEMPLATES, "", *md.table(head, rows, left=2)]
    if behind:
        ahead = sum(ratio >= 1 for ratio in behind)
        words = f"{min(behind):.3f} to {max(behind):.3f} times the expert's own speed-up"
        lines += [f"- {ahead} of {len(behind)} runs are ahead of the expert or level with it: {words}", ""]
    return [*lines, *_reported(told), *_made_by(told), *md.source(told)]


def strategies(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_.get("agents")
    if told is None:
        return ["Not measured.", ""]
    found = decode(json.dumps(told["comparison"]).encode(), Comparison, "comparison")
    parts = comparison_sections(found, PLOTS)
    lines = [*what_was_compared(found), ""]
    for title in SHOWN:
        lines += [f"### {title}", "", *parts[title], ""]
    return [*lines, *md.source(told)]


def _runs(told: Told) -> Iterator[tuple[str, str, Told]]:
    """Those of templates: kernel, name, facts."""
    runs: Iterable[Told] = told["comparison"]["runs"]
    order = [p["folder"] for p in told["comparison"]["plan"]["problems"]]
    for run in sorted(runs, key=lambda r: (order.index(r["planned"]["problem"]), r["planned"]["repeat"])):
        if run["planned"]["arm"] == "template" and run["status"] == "finished":
            yield run["planned"]["problem"], f"repeat {run['planned']['repeat']}", run["facts"]
    for name, run in told["runs"].items():
        yield name, "alone", run["facts"]


def _reported(told: Told) -> list[str]:
    means: dict[str, dict[str, float]] = {}
    for cell in told["comparison"]["cells"]:
        means.setdefault(cell["problem"], {})[cell["arm"]] = cell["mean"]
    head = ["kernel", "Astra", "its single agent", "two-stage", "its agents alone"]
    head += [f"here: {arm}" for arm in told["comparison"]["plan"]["arms"]]
    rows = []
    for kernel, own in means.items():
        there = SAME.get(kernel, kernel)
        cells = [kernel if there == kernel else f"{there} (here {kernel})"]
        cells += [md.times(value) for value in REPORTED.get(there, (None,) * 4)]
        rows.append([*cells, *(md.times(own.get(arm)) for arm in told["comparison"]["plan"]["arms"])])
    return [REPORTED_HOW, "", *md.table(head, rows)]


def _made_by(told: Told) -> list[str]:
    """What was typed; who plays which role and where replies come from is in the model's name."""
    plan = told["comparison"]["plan"]
    allowed = f"--rounds {plan['budget']['rounds']} --evals {plan['budget']['evals']} --seed {plan['seed']}"
    problems = " ".join(f"examples/cuda/{p['name']}" for p in plan["problems"])
    lines = [
        f"tunesmith compare {problems} --strategies {','.join(plan['arms'])} --repeats {plan['repeats']} "
        f"{allowed} --model {plan['model']}"
    ]
    lines += [
        f"tunesmith tune tests/fixtures/zoo/{name} --rounds {run['rounds']} --evals {run['evals']} "
        f"--seed {run['seed']} --model {run['model']}"
        for name, run in told["runs"].items()
    ]
    return ["The runs:", "", "```sh", *lines, "```", "", "Read by:", ""]
