"""How far winners are from the true best: all close contenders again, long, in alternation, builders idle.

    python -m benchmarks.cuda.truth --out DIR [--passes N] [--other NAME=FILE]… RUN…

RUNs are folders of finished runs of one problem on this device. At every workload the field is: each
configuration that any run saw within 15 % of the best there (12 to 40 of them), the 12 best in general, the
original, and every winner of every run. `--other` adds the winners of another tool: JSON, {workload:
{parameter: value}}, alone or under the key "winners". The true best has the lowest median. DIR/truth.json
keeps the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cuda import evidence
from benchmarks.cuda.journals import Run, general_scores, read_run, search_speedups, winners
from benchmarks.cuda.race import Contender, Track, behind
from tunesmith.backends.messages import TimingPolicy
from tunesmith.problem.problem import Problem, Workload
from tunesmith.problem.template import Template, Variant, original_variant
from tunesmith.run.outcome import geometric_mean, median
from tunesmith.space.configset import Config

CLOSE = 1.15  # seen within this factor of the best: in the field
LEAST, MAX = 12, 40
GENERAL = 12
LONG = TimingPolicy(rounds=41, min_rounds=41, chain_seconds=0.002, max_seconds=300.0)
WITHIN = 3.0  # per cent: what a winner may be behind

Named = dict[str, dict[str, int]]  # workload -> configuration
Choice = tuple[tuple[str, int], ...] | None  # None: the original


@dataclass(frozen=True)
class Field:
    """Who runs at one workload; equal code launched alike runs once."""

    contenders: list[Contender]
    place: dict[Choice, int]


def key_of(config: Config | Mapping[str, int] | None) -> Choice:
    if config is None:
        return None
    return tuple(sorted((config.as_dict() if isinstance(config, Config) else config).items()))


def close_ones(speedups: Mapping[Config, float]) -> list[Config]:
    """The best first, until one is too far behind; never fewer than LEAST nor more than MOST."""
    ranked = sorted(speedups, key=lambda config: -speedups[config])
    close = [config for config in ranked if speedups[config] * CLOSE >= speedups[ranked[0]]]
    return ranked[: min(MAX, max(LEAST, len(close)))]


def wanted(
    runs: Sequence[Run], others: Mapping[str, Named], winners_only: bool = False
) -> dict[str, list[Choice]]:
    """Every choice to be timed, by workload, the original first."""
    speedups, general = search_speedups(runs), general_scores(runs)
    best = sorted(general, key=lambda config: -general[config])[:GENERAL]
    found: dict[str, list[Choice]] = {}
    for workload in runs[0].problem.workloads:
        here: list[Choice] = [None]
        if not winners_only:
            here += [key_of(config) for config in (*close_ones(speedups.get(workload.name, {})), *best)]
        for run in runs:
            won = winners(run)
            here += [key_of(won["general"]), *(key_of(config) for config in won["workloads"].values())]
        here += [key_of(config) for named in others.values() for config in named.values()]
        found[workload.name] = list(dict.fromkeys(here))
    return found


def render(problem: Problem, template: Template, choice: Choice, workload: Workload) -> Variant:
    if choice is None:
        return original_variant(problem, workload.as_dict())
    values = dict(choice)
    order = {param.name: values[param.name] for param in template.space.params}
    return template.render(problem, Config(tuple(order.items())), workload.as_dict())


def fields_of(track: Track, run: Run, choices: Mapping[str, Sequence[Choice]]) -> dict[str, Field]:
    """Everything is built before anything is timed."""
    problem, workloads = run.problem, run.problem.workloads
    variants = {(w.name, c): render(problem, run.template, c, w) for w in workloads for c in choices[w.name]}
    built = track.build(variants.values(), run.state.compiler)
    fields = {}
    for workload in workloads:
        contenders: dict[str, tuple[int, Contender]] = {}
        place: dict[Choice, int] = {}
        for choice in choices[workload.name]:
            variant = variants[workload.name, choice]
            made = track.contender(problem, variant, workload.as_dict(), built[variant.digest])
            if isinstance(made, Contender):  # else it cannot run here, and the dispatch serves the original
                place[choice], _ = contenders.setdefault(made.key, (len(contenders), made))
        fields[workload.name] = Field([made for _, made in contenders.values()], place)
    return fields


def measure(
    runs: Sequence[Run], others: Mapping[str, Named], passes: int, winners_only: bool = False
) -> dict[str, Any]:
    first = runs[0]
    assert first.state.started is not None
    choices = wanted(runs, others, winners_only)
    workloads: dict[str, Any] = {}
    with Track(first.state.started.backend, first.state.device) as track:
        fields = fields_of(track, first, choices)
        for workload in first.problem.workloads:
            field = fields[workload.name]
            samples = track.time(first.problem, workload, field.contenders, LONG, passes, seed=1)
            workloads[workload.name] = told(field, samples, [p.name for p in first.template.space.params])
            best = workloads[workload.name]["best"]
            print(
                f"{workload.name:20} {len(field.contenders)} timed, best {best['us']:.2f} us {best['config']}"
            )
            sys.stdout.flush()
    weights = {w.name: w.weight for w in first.problem.workloads}
    return {
        "passes": passes,
        "rounds": LONG.rounds,
        "chain_s": LONG.chain_seconds,
        "workloads": workloads,
        "runs": {run.folder.name: judged(winners(run), workloads, weights) for run in runs},
        "others": {name: judged({"workloads": named}, workloads, weights) for name, named in others.items()},
    }


def told(field: Field, samples: Sequence[Sequence[float]], order: Sequence[str]) -> dict[str, Any]:
    """Medians of the field, how far each is behind the best, and how much the best moved between rounds."""
    medians = [median(s) for s in samples]
    first = min(range(len(medians)), key=medians.__getitem__)
    rows = [
        {
            "config": {name: dict(choice)[name] for name in order} if choice is not None else None,
            "us": 1e6 * medians[i],
            "behind_percent": behind(samples[i], samples[first]),
        }
        for choice, i in sorted(field.place.items(), key=lambda item: medians[item[1]])
    ]
    ordered = sorted(samples[first])
    spread = ordered[3 * len(ordered) // 4] / ordered[len(ordered) // 4] - 1
    return {"best": rows[0], "field": rows, "timed": len(samples), "spread_percent": 100 * spread}


def judged(
    won: Mapping[str, Any], workloads: Mapping[str, Any], weights: Mapping[str, float]
) -> dict[str, Any]:
    """How far each choice is behind at its workload; and the general configuration, as one for all."""
    tables = {name: {key_of(r["config"]): r for r in found["field"]} for name, found in workloads.items()}
    rows = {
        name: {"config": config, "behind_percent": served(tables[name], config)["behind_percent"]}
        for name, config in won["workloads"].items()
    }
    answer: dict[str, Any] = {"workloads": rows}
    if "general" in won:
        general = won["general"]
        answer["general"] = {
            "config": general,
            "behind_percent": behind_in_general(tables, weights, general),
            "workloads": {name: served(tables[name], general)["behind_percent"] for name in tables},
        }
    return answer


def served(table: Mapping[Choice, Mapping[str, Any]], config: Mapping[str, int] | None) -> Mapping[str, Any]:
    """The row of a choice; where it cannot run the dispatch falls back to the original."""
    return table.get(key_of(config), table[None])


def behind_in_general(
    tables: Mapping[str, Mapping[Choice, Mapping[str, Any]]],
    weights: Mapping[str, float],
    config: Mapping[str, int] | None,
) -> float:
    """Against the best single configuration: by geometric means over all workloads, in per cent."""

    def mean(choice: Mapping[str, int] | None) -> float:
        return geometric_mean([served(tables[w], choice)["us"] for w in tables], [weights[w] for w in tables])

    everywhere = set.intersection(*(set(table) for table in tables.values()))
    best = min(mean(dict(choice) if choice is not None else None) for choice in everywhere)
    return 100.0 * (mean(config) / best - 1.0)


def named(text: str) -> tuple[str, Named]:
    name, _, path = text.partition("=")
    told = json.loads(Path(path).read_text(encoding="utf-8"))
    return name, told.get("winners", told)


def main() -> int:
    options = argparse.ArgumentParser(description="Find the true best among the close contenders of runs.")
    options.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folders of finished runs")
    options.add_argument("--out", type=Path, required=True, help="folder for the figures")
    options.add_argument("--passes", type=int, default=3, help="how often the whole field is timed")
    options.add_argument("--other", action="append", default=[], metavar="NAME=FILE", help="others' winners")
    arguments = options.parse_args()
    runs = [read_run(path) for path in arguments.runs]
    if len({run.problem.digest for run in runs}) > 1:
        options.error("the runs are of different problems")
    figures = measure(runs, dict(map(named, arguments.other)), arguments.passes)
    known = (evidence.read(arguments.out, "truth") or {}).get("problems", {})
    known[runs[0].problem.name] = figures
    evidence.write(arguments.out, "truth", {"problems": known}, adds=True)
    for name, judgement in {**figures["runs"], **figures["others"]}.items():
        worst = max(row["behind_percent"] for row in judgement["workloads"].values())
        general = judgement.get("general", {}).get("behind_percent")
        print(
            f"{name}: at worst {worst:.2f} % behind"
            + (f", general {general:.2f} %" if general is not None else "")
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
