"""The parts of the results page on language models: templates that they wrote, and strategies compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.cuda import markdown as md
from tunesmith.base.codec import decode_json
from tunesmith.plugins.studies.experiment import budget_text
from tunesmith.plugins.studies.pages import comparison_sections
from tunesmith.plugins.studies.result import ComparisonResult

PLOTS = "benchmarks/strategies-"  # before their names, seen from the page
SHOWN = ("Result",)
LIMITS = 2  # how many of the comparison's limits the page repeats: what it was made on, and how often
LEVEL = 1.02  # speed-ups no further apart are level: as much as two runs of one arm differ
TEMPLATES = (
    "A large language model through the mailbox plans and writes templates from the plain kernel; which "
    "model answers a mailbox is not recorded. *Templates*: each was written by the model or by the built-in "
    "expert from moves that the model chose. *Refactoring*, *search*: the gain of the winner's template at "
    "its default, and of its search. *Expert, same budget* and *expert*: the built-in expert with the "
    "model's budget and with its own, above."
)
Told = Mapping[str, Any]


def agents(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_.get("agents")
    if told is None:
        return ["Not measured.", ""]
    expert = (all_.get("expert") or {}).get("expert", {})
    alone = {**expert.get("others", {}), **expert.get("examples", {})}
    head = ["kernel", "run", "templates", "speed-up", "least to most", "refactoring", "search"]
    head += ["evaluations", "requests", "expert, same budget", "expert"]
    rows, ratios = [], []
    for kernel, name, written, facts in _runs(told):
        own = alone.get(kernel, {})
        each = [gain["speedup"] for gain in facts["workloads"]]
        reach = f"{min(each):.2f} to {max(each):.2f}"
        cells = [kernel, name, ", ".join(written), md.times(facts["speedup"]), reach]
        cells += [md.times(facts["refactoring"]), md.times(facts["search"])]
        cells += [str(facts["evaluations"]), str(facts["requests"])]
        cells.append(", ".join(md.times(value) for value in told["expert"].get(kernel, ())))
        cells.append(md.times(own.get("geometric_mean")))
        rows.append(cells)
        if own.get("geometric_mean"):
            ratios.append(facts["speedup"] / own["geometric_mean"])
    lines = [TEMPLATES, "", *md.table(head, rows, left=3)]
    if ratios:
        lines += [_against_expert(ratios), ""]
    return [*lines, *_made_by(told), *md.source_without_software(told)]


def _against_expert(ratios: Sequence[float]) -> str:
    ahead, behind = sum(r > LEVEL for r in ratios), sum(r < 1 / LEVEL for r in ratios)
    level = len(ratios) - ahead - behind
    words = f"{min(ratios):.3f} to {max(ratios):.3f} times its speed-up with its own budget"
    return (
        f"- against the expert: {ahead} of {len(ratios)} runs are ahead, {behind} behind, {level} level "
        f"(within {LEVEL - 1:.0%}); {words}"
    )


def strategies(all_: Mapping[str, Told | None]) -> list[str]:
    told = all_.get("agents")
    if told is None:
        return ["Not measured.", ""]
    found = decode_json(json.dumps(told["comparison"]).encode(), ComparisonResult, "comparison")
    parts = comparison_sections(found, PLOTS)
    lines = [
        f"{len(found.plan.problems)} problems, {found.plan.repeats} runs of each arm at each, every run with "
        f"{budget_text(found.plan.budget)}. [Arms and terms](compare.md).",
        "",
    ]
    for title in SHOWN:
        lines += [*parts[title], ""]
    lines += [*parts["What this does and does not show"][:LIMITS], ""]
    rounds = f"[Gain per round]({PLOTS}gain-per-round.svg). Commands and date: as in the section above."
    return [*lines, rounds, ""]


def _runs(told: Told) -> Iterator[tuple[str, str, Sequence[str], Told]]:
    """Those of templates: kernel, name, who wrote the templates, facts."""
    runs: Iterable[Told] = told["comparison"]["runs"]
    order = [p["folder"] for p in told["comparison"]["plan"]["problems"]]
    for run in sorted(runs, key=lambda r: (order.index(r["planned"]["problem"]), r["planned"]["repeat"])):
        kernel, arm, repeat = (run["planned"][key] for key in ("problem", "arm", "repeat"))
        if arm == "template" and run["status"] == "finished":
            yield kernel, f"repeat {repeat}", told["written"][f"{kernel}/{arm}-{repeat}"], run["facts"]
    for one in told["runs"]:
        yield one["kernel"], "alone", one["written"], one["facts"]


def _made_by(told: Told) -> list[str]:
    """Commands that begin such runs, by their plans; they are resumed when replies are there."""
    plan = told["comparison"]["plan"]
    allowed = f"--rounds {plan['budget']['rounds']} --evals {plan['budget']['evals']} --seed {plan['seed']}"
    compare = "tunesmith compare " + " ".join(p["name"] for p in plan["problems"])
    lines = [
        f"{compare} --strategies {','.join(plan['arms'])} --repeats {plan['repeats']} {allowed} "
        f"--model {plan['model']} --no-wait"
    ]
    if told["expert"]:
        lines.append(f"{compare} --strategies expert {allowed}")
    lines += [
        f"tunesmith tune {one['kernel']} --rounds {one['rounds']} --evals {one['evals']} "
        f"--seed {one['seed']} --model {one['model']} --no-wait"
        for one in told["runs"]
    ]
    where = "The runs, with the problems of `examples/cuda` and `tests/fixtures/zoo` by their names:"
    return [where, "", "```sh", *lines, "```", "", "Read by:", ""]
