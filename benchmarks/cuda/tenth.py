"""Whether a tenth of the budget is enough: the search with 10 % of the evaluations against all of them.

    python -m benchmarks.cuda.tenth --out DIR [--seeds 1,2,3] [NAME…]

Templates of the examples made wider until they have at least 1,000 feasible configurations: rules of [prefer]
left out, which only say what is worth a try, and more values for parameters. Each is searched exhaustively,
then with a tenth of the evaluations and several seeds. All winners, and whatever came close, are timed again,
long and in alternation (benchmarks.cuda.truth). DIR/tenth.json keeps how far each is behind the exhaustive
winner.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence, truth
from benchmarks.cuda.journals import winners
from benchmarks.cuda.tuning import Tuned, tune

LEAST = 1000
WITHIN = 2.0  # per cent behind the exhaustive winner
# What is left out of [prefer], and parameters with other values.
WIDER: dict[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "rmsnorm": (("short_rows", "many_to_go_on", "hint_if_kept"), {}),
    "fused_add_rmsnorm": (("wide_or_plain", "many_to_go_on", "some_lanes"), {}),
    "merge_attn_states_lse": (("few_registers", "early_is_new"), {"BLOCK": "[64, 128, 192, 256, 384, 512]"}),
}


def wide_template(name: str) -> str:
    dropped, domains = WIDER[name]
    text = (evidence.EXAMPLES / name / "template.cu").read_text(encoding="utf-8")
    for rule in dropped:
        text, count = re.subn(rf"^// {rule} +=.*\n", "", text, flags=re.MULTILINE)
        assert count == 1, f"the template of {name} has no rule {rule}"
    for parameter, values in domains.items():
        pattern = rf"^(// {parameter} *= )\[[^\]]*\]"
        text, count = re.subn(pattern, rf"\g<1>{values}", text, count=1, flags=re.MULTILINE)
        assert count == 1, f"the template of {name} has no list of {parameter}"
    return text


def compare(name: str, out: Path, seeds: list[int]) -> dict[str, Any]:
    folder = evidence.EXAMPLES / name
    template = out / f"wide-{name}.cu"
    template.parent.mkdir(parents=True, exist_ok=True)
    template.write_text(wide_template(name), encoding="utf-8")
    runs = out / "runs"
    everything = tune(
        folder, template, runs / f"{name}-all", seed=1, more=["--search", "exhaustive", "--no-prune"]
    )
    feasible = everything.report["space"]["feasible"]
    budget = -(-feasible // 10)
    tenths = {
        f"{name}-tenth-{seed}": tune(
            folder, template, runs / f"{name}-tenth-{seed}", seed=seed, more=["--evals", str(budget)]
        )
        for seed in seeds
    }
    told = truth.measure([everything.run, *(t.run for t in tenths.values())], {}, passes=1)
    times = {
        workload: {truth.key_of(row["config"]): row["us"] for row in found["field"]}
        for workload, found in told["workloads"].items()
    }
    return {
        "feasible": feasible,
        "budget": budget,
        "exhaustive": facts(everything),
        "runs": {key: facts(t) | {"behind": behind(t, everything, times)} for key, t in tenths.items()},
    }


def facts(tuned: Tuned) -> dict[str, Any]:
    found = tuned.figures()
    return {key: found[key] for key in ("tried", "wall_s", "seconds", "geometric_mean", "winners")} | {
        "reason": tuned.report["reason"]
    }


def behind(tuned: Tuned, everything: Tuned, times: Mapping[str, Mapping[Any, float]]) -> dict[str, float]:
    """By workload, in per cent: what is delivered against what the exhaustive search delivers."""
    own, best = winners(tuned.run)["workloads"], winners(everything.run)["workloads"]
    return {
        workload: 100.0 * (here[truth.key_of(own[workload])] / here[truth.key_of(best[workload])] - 1.0)
        for workload, here in times.items()
    }


def main() -> int:
    options = argparse.ArgumentParser(description="Search wide templates whole, and with a tenth of it.")
    options.add_argument("names", nargs="*", default=list(WIDER), metavar="NAME", help=", ".join(WIDER))
    options.add_argument("--out", type=Path, required=True, help="folder for runs and figures")
    options.add_argument("--seeds", default="1,2,3", help="one run for each")
    arguments = options.parse_args()
    for name in arguments.names:
        found = compare(name, arguments.out, [int(seed) for seed in arguments.seeds.split(",")])
        assert found["feasible"] >= LEAST, f"{name} has {found['feasible']} feasible configurations"
        known = (evidence.read(arguments.out, "tenth") or {}).get("problems", {})
        evidence.write(arguments.out, "tenth", {"problems": known | {name: found}}, adds=True)
        for key, run in found["runs"].items():
            worst = max(run["behind"].values())
            verdict = "reached" if worst <= WITHIN else "fell short"
            print(f"{key}: {run['tried']} of {found['feasible']}, {worst:.2f} % behind at worst: {verdict}")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
