"""What a kept template is worth at sizes it was never tuned for: seconds, speed-up, share of the best.

    python -m benchmarks.cuda.retune --out DIR [--seeds 1,2,3] [--passes N] RUN…

RUNs are folders of finished runs of the examples on this device, such as benchmarks.cuda.examples leaves in
DIR/runs. Each is retuned at the sizes of SIZES, once for every seed, with the budget that `tunesmith retune`
has by itself; then searched exhaustively there, and once with the same budget and nothing known. All winners,
whatever came close, and the run's old general configuration as it is are timed again, long and in alternation
(benchmarks.cuda.truth). DIR/retune.json keeps the figures; the share is the time of the exhaustive search's
choice over that of ours.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence, truth
from benchmarks.cuda.journals import Run, read_run, winners
from benchmarks.cuda.tuning import Tuned, retune
from tunesmith.run.outcome import geometric_mean
from tunesmith.run.report import delivered_templates

SHARE = 0.97  # of the exhaustive best, over all sizes of an example
SECONDS = 60.0
UNCHANGED = "not retuned"

# Two or three sizes in each contract that no workload of the example has, and that are no near neighbours:
# other rows and other widths at once.
SIZES: dict[str, dict[str, dict[str, int]]] = {
    "fused_add_rmsnorm": {
        "decode_48x5120": {"tokens": 48, "d": 5120},
        "batch_768x7168": {"tokens": 768, "d": 7168},
        "prefill_6000x2048": {"tokens": 6000, "d": 2048},
    },
    "merge_attn_states_lse": {
        "t64_h16_d128": {"tokens": 64, "heads": 16, "head_dim": 128},
        "t2000_h48_d64": {"tokens": 2000, "heads": 48, "head_dim": 64},
        "t4096_h24_d192": {"tokens": 4096, "heads": 24, "head_dim": 192},
    },
    "per_token_group_quant_fp8": {
        "decode_24x5120": {"tokens": 24, "d": 5120},
        "batch_1500x3072": {"tokens": 1500, "d": 3072},
        "prefill_10000x4096": {"tokens": 10000, "d": 4096},
    },
    "rmsnorm": {
        "decode_24x5120": {"tokens": 24, "d": 5120},
        "batch_700x3000": {"tokens": 700, "d": 3000},
        "prefill_6000x7168": {"tokens": 6000, "d": 7168},
    },
    "rotary_embedding": {
        "decode": {
            "tokens": 48,
            "heads": 40,
            "kv_heads": 8,
            "head_dim": 128,
            "rot_dim": 128,
            "max_pos": 4096,
        },
        "half": {"tokens": 3000, "heads": 24, "kv_heads": 24, "head_dim": 96, "rot_dim": 48, "max_pos": 4096},
    },
    "silu_and_mul": {
        "decode_24x7168": {"tokens": 24, "d": 7168},
        "batch_300x3000": {"tokens": 300, "d": 3000},
        "prefill_3000x18432": {"tokens": 3000, "d": 18432},
    },
    "silu_and_mul_vector": {
        "decode_24x7168": {"tokens": 24, "d": 7168},
        "batch_300x3000": {"tokens": 300, "d": 3000},
        "prefill_3000x18432": {"tokens": 3000, "d": 18432},
    },
}


def workloads_file(name: str, folder: Path, sizes: Mapping[str, Mapping[str, int]] | None = None) -> Path:
    """As `tunesmith retune --workloads` reads it."""
    tables = []
    for workload, values in (sizes or SIZES[name]).items():
        tables += [f"[workloads.{workload}]", *(f"{key} = {value}" for key, value in values.items()), ""]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"sizes-{name}.toml"
    path.write_text("\n".join(tables), encoding="utf-8")
    return path


def subject(run: Run) -> tuple[Path, list[str], dict[str, int] | None]:
    """What is retuned, with which further words; and the general configuration that the run delivered."""
    delivered = delivered_templates(run.problem, run.state, run.choice)
    if len(delivered) == 1:
        return run.folder, [], winners(run)["general"]
    # Of several templates the comparison can follow one: the general winner's, as it was delivered.
    template = run.folder / next(iter(delivered.values()))
    return template, ["--problem", str(evidence.EXAMPLES / run.problem.name)], winners(run)["general"]


def compare(
    path: Path,
    out: Path,
    seeds: Sequence[int],
    passes: int,
    sizes: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, Any]:
    run = read_run(path)
    name, runs = run.problem.name, out / "retuned"
    target, words, old = subject(run)
    words += ["--workloads", str(workloads_file(name, out, sizes))]

    # A template file finds the run it comes from in the folder of runs.
    environment = {**os.environ, "TUNESMITH_RUNS": str(path.parent)}

    def again(label: str, seed: int, *more: str) -> Tuned:
        folder = runs / f"{name}-{label}"
        return retune(target, folder, seed=seed, more=[*words, *more], environment=environment)

    everything = again("all", 1, "--search", "exhaustive", "--no-prune", "--no-prior")
    ours = {f"seed {seed}": again(str(seed), seed) for seed in seeds}
    ours["nothing known"] = again("cold", seeds[0], "--no-prior")
    unchanged = {} if old is None else {w.name: old for w in everything.run.problem.workloads}
    told = truth.measure([everything.run, *(t.run for t in ours.values())], {UNCHANGED: unchanged}, passes)
    best = winners(everything.run)["workloads"]
    field = {w: {truth.key_of(r["config"]): r for r in f["field"]} for w, f in told["workloads"].items()}
    weights = {w.name: w.weight for w in everything.run.problem.workloads}
    arms = {
        key: facts(t) | shares(field, weights, best, winners(t.run)["workloads"]) for key, t in ours.items()
    }
    if unchanged:
        arms[UNCHANGED] = shares(field, weights, best, unchanged)
    feasible = everything.report["space"]["feasible"]
    return {"from": path.name, "feasible": feasible, "exhaustive": facts(everything), "arms": arms}


def facts(tuned: Tuned) -> dict[str, Any]:
    found = tuned.figures()
    kept = ("tried", "wall_s", "seconds", "geometric_mean", "winners")
    rows = {r["name"]: {key: r[key] for key in ("speedup", "interval")} for r in found["workloads"]}
    return {key: found[key] for key in kept} | {"reason": tuned.report["reason"], "workloads": rows}


def shares(
    field: Mapping[str, Mapping[Any, Mapping[str, Any]]],
    weights: Mapping[str, float],
    best: Mapping[str, dict[str, int] | None],
    own: Mapping[str, dict[str, int] | None],
) -> dict[str, Any]:
    """At each workload, and over all: 1 is what the exhaustive search delivers."""
    here = {w: truth.served(t, best[w])["us"] / truth.served(t, own[w])["us"] for w, t in field.items()}
    return {"share": geometric_mean(list(here.values()), [weights[w] for w in here]), "shares": here}


def show(name: str, found: Mapping[str, Any]) -> None:
    whole = found["exhaustive"]
    mean, wall = whole["geometric_mean"], whole["wall_s"]
    print(f"{name}: exhaustive {mean:.2f}x, {whole['tried']} tried in {wall:.1f} s")
    for key, arm in found["arms"].items():
        spent = f", {arm['tried']} tried in {arm['wall_s']:.1f} s" if "wall_s" in arm else ""
        speed = f" {arm['geometric_mean']:.2f}x" if "geometric_mean" in arm else ""
        print(f"  {key:14}{speed}, {100 * arm['share']:.1f} % of the exhaustive best{spent}")
    sys.stdout.flush()


def main() -> int:
    options = argparse.ArgumentParser(description="Retune runs of the examples at sizes they never saw.")
    options.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folders of finished runs")
    options.add_argument("--out", type=Path, required=True, help="folder for runs and figures")
    options.add_argument("--seeds", default="1,2,3", help="one retuning for each")
    options.add_argument("--passes", type=int, default=1, help="how often the whole field is timed")
    arguments = options.parse_args()
    for path in arguments.runs:
        name = read_run(path).problem.name
        if name not in SIZES:
            options.error(f"{path} is a run of {name}; there are new sizes for {', '.join(SIZES)}")
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    for path in arguments.runs:
        name = read_run(path).problem.name
        found = compare(path, arguments.out, seeds, arguments.passes)
        known = (evidence.read(arguments.out, "retune") or {}).get("problems", {})
        problems = {"problems": dict(sorted((known | {name: found}).items()))}
        # After each: a call that is cut short keeps what it has.
        evidence.write(arguments.out, "retune", problems, adds=True)
        show(name, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
